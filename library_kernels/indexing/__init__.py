"""Ops that read and write elements by index: ``x[key]``, take and put, and the indices of elements that are not 0.

Input: arrays, and arrays of indices. Output: the elements there. An index that is out of bounds raises IndexError.
"""
