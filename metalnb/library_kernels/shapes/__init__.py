"""Ops that change an array's shape or join arrays: views, joins, splits, pads, repeats, flips.

Input: arrays. Output: views of the same memory if strides allow it, else strided copies by ``copy.metal``.
"""
