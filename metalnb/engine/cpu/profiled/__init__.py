"""The counted build of the engine ``cpu``, which runs a dispatch in vector registers and counts each line's cost.

Input: a unit and a dispatch. Output: counts (``counts``), which ``profiling`` interprets. It uses the engine's own
vector code at 32 lanes. ``counting_code`` inserts a few instructions before each block, branch and access,
``operation_counts`` counts a block's operations, and ``counted_build`` compiles the result with ``runtime/counts.c``.
``counted_run`` runs it on copies, after ``checked_run`` has found no access out of bounds: all threadgroups, or as
many as there is time for, spread evenly. ``counting_workers`` runs them on all cores, each with its own ``counters``.
"""
