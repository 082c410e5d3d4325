"""The ops that are not elementwise, declared: a function under the decorator `op`, with its NumPy reference.

Comes in: what a caller gives. A declaration checks and names its arguments, works out shapes and dtypes, and hands
arrays to ``launching``; goes out: an array. Nothing here starts a kernel by itself, and a new file is named in
``MODULES`` of ``table.py``.
"""
