"""What is known of a kernel before a dispatch runs.

These are the ranges of its values, the iterations of its loops, and the room that a pointer has. All is found on the
host, from the grid, the sizes and the scalars; of the function's control flow, conditions and values as a graph.
"""
