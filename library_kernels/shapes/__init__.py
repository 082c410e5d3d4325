"""Ops that change an array's shape or put arrays together: views, joins, splits, pads, repeats, flips.

Input: arrays. Output: views of the same memory where strides allow it, else strided copies by ``copy.metal``.
"""
