"""A function's values as scalars: what the proofs reason about, with nothing of a vector or of a copy left.

In comes a function that ``engine/llvm`` has read; out comes a graph of scalars, by the names that LLVM's text has for
them. Nothing here knows a dispatch, and nothing is proven here.
"""
