"""Derive facts before a dispatch: ranges of values, iterations of loops, how far pointers may move in their memory.

The host derives them from the grid, the sizes and the scalars, and from the function's control flow and values.
"""
