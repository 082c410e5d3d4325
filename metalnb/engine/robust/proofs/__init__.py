"""What is known of a kernel before a dispatch runs.

These are the ranges of its values, the iterations of its loops, and the room that a pointer has. The host derives all
of it from the grid, the sizes and the scalars, and from the graph of the function's control flow, conditions and
values.
"""
