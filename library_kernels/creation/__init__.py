"""Ops that make arrays: filled with one value, evenly spaced, matrices, and grids of indices.

Comes in: shapes and numbers. Goes out: new arrays, on the engine in use unless ``device`` names another.
"""
