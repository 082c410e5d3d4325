"""Rewrite a cell into text that clang accepts, with one pass per file.

`passes.PASSES` lists the passes, each with its section of the specification and a golden cell. A pass sees the author's
text but not the other passes' edits; it must not use the parser or move a line. `scan` runs all passes.
"""
