"""Pictures for notebooks, from plain numbers: a transparent PNG with a description in words.

There is one module per picture: the rounds of a tree, which thread reads what and when, how fast each version of a
kernel was. ``canvas`` has the shared parts: the record of a picture, boxes in rows, and colors that suit a light and a
dark page. Nothing is run or measured here.
"""

from __future__ import annotations

from .canvas import Picture
from .matrix_tiles import tiles
from .ownership_map import plane
from .rate_bars import ladder
from .rate_curves import curves
from .read_pattern import reads
from .reduction_tree import tree
from .timeline import timeline

__all__ = ["Picture", "curves", "ladder", "plane", "reads", "tiles", "timeline", "tree"]
