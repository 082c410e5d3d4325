"""Pictures for notebooks: the rounds of a tree, who reads what when, and how fast each version of a kernel was.

They are transparent PNGs in colours that hold on a light page and on a dark one, so that they show wherever a notebook
does. Each has a twin in words.

canvas.py    the record of a picture, the colours of both pages, boxes in rows
and a file for each picture
"""

from __future__ import annotations

from .canvas import Picture
from .matrix_tiles import tiles
from .ownership_map import plane
from .rate_bars import ladder
from .rate_curves import curves
from .read_pattern import reads
from .reduction_tree import tree
from .timeline import turns

__all__ = ["Picture", "curves", "ladder", "plane", "reads", "tiles", "tree", "turns"]
