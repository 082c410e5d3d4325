"""The language: a cell's text comes in; signatures, diagnostics and one source text for a target go out.

`text` reads it, `rewrite` edits it into what clang takes, `libclang` parses that, `analysis` reads the syntax tree, and
`lower` and `lower_metal` write the text for a target; `editor` serves a cell that is still being written. `signature`
holds the records that the rest of metalnb sees. Nothing here knows an engine, NumPy or a notebook.
"""
