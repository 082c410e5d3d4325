"""Functions of arrays fused into one kernel: `metalnb.fuse`.

Input: a function of arrays. ``tracing`` calls it with placeholders for arrays and records its operations,
``fused_text`` writes those as MSL, and ``fused_kernel`` compiles and starts the kernel. Output: an op; each call is
one dispatch.
"""
