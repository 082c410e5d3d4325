"""Ops that create arrays: filled with one value, evenly spaced, matrices, and grids of indices.

Input: shapes and numbers. Output: new arrays, on the engine in use unless ``device`` names another.
"""
