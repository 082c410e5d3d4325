"""`explore`: a kernel and its arguments in; its output as a picture under sliders for the scalars out.

``painter`` turns an array into PNG, ``explorer`` is the widget. Everything runs on copies.
"""

from .explorer import Explorer, explore

__all__ = ["Explorer", "explore"]
