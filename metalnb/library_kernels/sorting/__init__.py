"""Sorting, selection, searching and sets: sort and argsort, topk, searchsorted, unique, union1d.

Input: arrays. Output: arrays; NaN sorts after every number. ``launching.radix_sort`` starts the sorts.
"""
