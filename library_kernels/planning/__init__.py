"""Plans: which kernels, over which grids, with which records. Numbers alone.

Comes in: shapes, strides, offsets and sizes. Goes out: frozen records that ``launching`` carries out, among them the
bytes that a kernel reads as its struct. Nothing here knows an array, an engine or a program, so that a plan can be
tested without one; the structs are those of the files in ``metal``, and the two change together.
"""
