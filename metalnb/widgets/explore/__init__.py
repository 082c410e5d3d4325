"""`explore`: a kernel and its arguments in; its output as a picture under sliders for the scalars out.

``explorer`` is the widget; ``painter``, beside this folder, turns an array into PNG. Everything runs on copies: the
caller's arguments are only read.
"""

from .explorer import Explorer, explore

__all__ = ["Explorer", "explore"]
