"""What is known of a kernel before a dispatch runs.

These are the ranges of its values, the turns of its loops, and the room that a pointer has. All is found on the host,
from the grid, the sizes and the scalars.
"""
