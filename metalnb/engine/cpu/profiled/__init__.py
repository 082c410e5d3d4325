"""The counted build of the engine ``cpu``: it runs a dispatch in vector registers and counts each line's cost.

Input: a unit and a dispatch. Output: counts (``counts``), which ``profiling`` interprets. The vectoriser's text
at 32 lanes is the engine's own, from the same text of one thread; ``counting_code`` puts a few instructions before each
block, branch and access of it, ``operation_counts`` says what a block computes, ``counted_build`` compiles it with
``runtime/counts.c``, and ``counted_run`` runs it on copies, after ``checked_first`` has found no access out of bounds:
all threadgroups, or as many as there is time for, spread evenly. ``counting_workers`` does that on all cores.
"""
