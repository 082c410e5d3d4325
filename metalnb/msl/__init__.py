"""The MSL front end: turns a cell's text into an edited text, signatures and diagnostics.

`text` tokenises it, `rewrite` edits it into text that clang accepts, `libclang` parses the result, and `analysis` reads
the syntax tree; `editor` serves a cell that is still being written. `signature` holds the records that the rest of
metalnb sees. Nothing here depends on an engine, NumPy or a notebook. ``include`` is MSL's library as headers.
``target`` declares the primitives that these rely on, for libclang, which parses every cell; each engine that compiles
with clang defines them in a header of its own, ``$TARGET``.
"""
