"""Render records for a notebook: as text, and as HTML with the same content, in one frame.

Input: records and texts. Output: text, HTML and MIME bundles. Nothing here computes, measures or depends on an engine.
The HTML is readable by its structure alone (GitHub removes styles), takes JupyterLab's own colors where they exist,
and elsewhere mixes its grays from the text's color, so that it suits a light page and a dark one.
"""

from __future__ import annotations

from .card import Card, bundle, cards_html, cards_text, folded
from .frame import framed, mix, nbytes, note
from .highlight import Source, highlight
from .text_table import Listing, Table, wrapping

__all__ = [
    "Card", "Listing", "Source", "Table", "bundle", "cards_html", "cards_text", "folded", "framed", "highlight", "mix",
    "nbytes", "note", "wrapping",
]  # fmt: skip
