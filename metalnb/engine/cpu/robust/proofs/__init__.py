"""What is known of a kernel before a dispatch runs: the ranges of its values, the turns of its loops, the room that a
pointer has. It is found on the host, from the grid, the sizes and the scalars.
"""
