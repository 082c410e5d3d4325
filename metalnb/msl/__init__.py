"""The language: a cell's text comes in; an edited text, signatures and diagnostics go out.

`text` reads it, `rewrite` edits it into what clang takes, `libclang` parses that, and `analysis` reads the syntax tree;
`editor` serves a cell that is still being written. `signature` holds the records that the rest of metalnb sees. Nothing
here knows an engine, NumPy or a notebook. ``include`` is MSL's library as headers, and ``target`` declares the ground
that they rely on, for libclang, which parses every cell. Each engine that compiles with clang has a header of its own
that defines it, ``$TARGET``.
"""
