"""Reductions and scans: sums, products, extremes, any and all; running sums; reductions that ignore NaN; users' own.

Input: an array and the axes to reduce. A function here picks the monoid (what to combine, in which types), and
``launching.reduction_launch`` or ``launching.scan_launch`` runs it. Output: the reduced array.
"""
