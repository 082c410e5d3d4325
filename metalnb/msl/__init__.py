"""The MSL front end: turns a cell's source into an edited source, signatures and diagnostics.

`text` tokenizes it, `rewrite` edits it into a form that clang accepts, `libclang` parses the result, and `analysis`
reads the syntax tree; `editor` serves a cell that is still being written. `signature` has the records that the rest of
metalnb uses. Nothing here depends on an engine, NumPy or a notebook. ``include`` is MSL's library as headers.
For libclang, which parses every cell, ``target`` declares the primitives that these headers use; each engine that
compiles with clang defines them in its own header, ``$TARGET``.
"""
