"""clang, for the engines that compile with it: a unit comes in, and a file for their device goes out.

``entry_point`` writes a unit as one text of C++ for OpenCL, with an entry point over ``entry_point.h``; ``driver`` runs
clang on it for a `Target`, which is an engine's own: its flags, and the header that says what the MSL headers rely on
there. ``loop_exits`` keeps SIMD functions inside their loops. Results are kept on disk, and messages go back to the
author's lines. Nothing here knows a device.
"""
