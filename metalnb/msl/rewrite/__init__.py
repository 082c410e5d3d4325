"""A cell's tree comes in; the edits that make it text that clang takes go out, one pass a file.

`passes.PASSES` is the table: each pass has its section of the specification and a golden cell. A pass sees the author's
text and none of the other passes' edits; it may neither ask the parser nor move a line. `scan` runs them all.
"""
