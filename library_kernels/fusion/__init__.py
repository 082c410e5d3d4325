"""Functions of arrays made one kernel: `metalnb.fuse`.

Comes in: a function of arrays. ``tracing`` calls it with stand-ins for arrays and writes down what it does,
``fused_text`` makes that MSL, and ``fused_kernel`` compiles and starts it. Goes out: an op; each call is one dispatch.
"""
