"""Functions of arrays made one kernel: `metalnb.fuse`.

Input: a function of arrays. ``tracing`` calls it with stand-ins for arrays and records its operations,
``fused_text`` writes those as MSL, and ``fused_kernel`` compiles and starts the kernel. Output: an op; each call is
one dispatch.
"""
