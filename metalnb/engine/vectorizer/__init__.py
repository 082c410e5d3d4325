"""The vectorizer: puts the 32 threads of a SIMD-group into vector registers, one thread per lane.

The input is the LLVM IR of one thread (engine/llvm), the output the LLVM IR of a threadgroup. ``simd_forms`` maps a
threadgroup's threads to lanes, ``shape_analysis`` finds how each value changes from lane to lane, ``vector_code``
writes the IR of all lanes, and ``group_driver`` the loops around it. Nothing here depends on an engine.
docs/vectorizer.md explains the design to readers who know GPUs but not SPMD on SIMD.
"""
