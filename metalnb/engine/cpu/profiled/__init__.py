"""The counted build of the engine ``cpu``: a dispatch in vector registers, with what each line costs.

A unit and a dispatch come in, counts go out (``counts``), which the room ``profiling`` explains. The vectoriser's text
at 32 lanes is the engine's own, from the same text of one thread; ``counting_code`` puts a few instructions before each
block, branch and access of it, ``operation_counts`` says what a block computes, ``counted_build`` compiles it with
``runtime/counts.c``, and ``counted_run`` runs it on copies: all threadgroups, or as many as there is time for, spread
evenly.
"""
