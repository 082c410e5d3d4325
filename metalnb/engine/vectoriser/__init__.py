"""The vectoriser: the 32 threads of a SIMD-group in vector registers, a thread in each lane.

LLVM's text of one thread comes in (engine/llvm), and LLVM's text of a threadgroup goes out. ``simd_forms`` lays out a
threadgroup's threads over lanes, ``shape_analysis`` finds how each value changes from lane to lane, ``vector_code``
writes all lanes' text, and ``group_driver`` the loops around it. Nothing here knows an engine. docs/vectoriser.md
explains it to a reader who knows GPUs, and not yet SPMD on SIMD.
"""
