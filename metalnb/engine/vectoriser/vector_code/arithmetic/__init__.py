"""Arithmetic on vectors of lanes: LLVM's operations, quotients of integers, estimates that a Newton step makes exact.

What is uniform or evenly spaced over the lanes stays scalar; a vector is made of it where something varying uses it.
"""
