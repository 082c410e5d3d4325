"""Ops that read and write elements by index: ``x[key]``, take and put, and the indices of elements that are not 0.

Input: arrays, and arrays of indices. Output: the elements at the indices. An index out of bounds raises IndexError.
"""
