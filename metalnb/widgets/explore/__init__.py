"""`explore`: a kernel's output as a picture, with sliders for its scalars.

``explorer`` is the widget; ``painter``, beside this folder, turns an array into PNG. Everything runs on copies: the
caller's arguments are only read.
"""

from .explorer import Explorer, explore

__all__ = ["Explorer", "explore"]
