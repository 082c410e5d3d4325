"""Derive facts about a kernel before a dispatch runs: ranges of values, iterations of loops, and the room of pointers.

The host derives them from the grid, the sizes and the scalars, and from the function's control flow and values.
"""
