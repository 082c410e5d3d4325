"""The vectoriser: the 32 threads of a SIMD-group in vector registers, one thread a lane.

LLVM's text of one thread comes in (engine/llvm), and LLVM's text of a threadgroup goes out. ``flow`` has dominators and
loops; ``divergence``, ``rules`` and ``analysis`` find how each value changes from lane to lane, in the terms of
``shapes``; ``regions`` writes blocks under masks; ``operations``, ``addresses``, ``memory``, ``atomics``, ``calls`` and
``collectives`` write instructions; ``coroutines`` are barriers. Nothing here knows an engine. docs/vectoriser.md explains
it to a reader who knows GPUs, and not SPMD on SIMD.
"""
