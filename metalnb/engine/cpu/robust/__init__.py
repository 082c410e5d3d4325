"""Robust buffer access: no access of a cell's kernel leaves the memory that it was given.

A SPIR-V module comes in, and a mask of the accesses that the host has proven for the dispatch at hand; the module goes
out with a check before each of the others. ``docs/robustness.md`` says what is guaranteed.
"""
