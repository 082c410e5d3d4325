"""The language: a cell's text comes in; signatures, diagnostics and one source text for a target go out.

`text` reads it, `rewrite` edits it into what clang takes, `libclang` parses that, `analysis` reads the syntax tree, and
`lower` holds the `Unit` that an engine is given and writes it as C++ for OpenCL; `editor` serves a cell that is still
being written. `signature` holds the records that the rest of metalnb sees. Nothing here knows an engine, NumPy or a
notebook. ``include`` is MSL's library as headers, and ``target`` the ground that they stand on: OpenCL's functions, as
libclang must parse every cell against those of some target. An engine for another target defines ``$TARGET``.
"""
