"""Rewrite a cell into text that clang accepts, with one pass per file.

`passes.PASSES` is the table: each pass has its section of the specification and a golden cell. A pass sees the author's
text and none of the other passes' edits; it may neither ask the parser nor move a line. `scan` runs them all.
"""
