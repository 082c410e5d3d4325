"""Sorting, selection, searching and sets: sort and argsort, topk, searchsorted, unique, union1d.

Comes in: arrays. Goes out: arrays; NaN sorts after every number. ``launching.radix_sort`` has the kernels.
"""
