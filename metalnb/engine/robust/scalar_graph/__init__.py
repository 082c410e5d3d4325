"""A function's values as scalars, for the proofs to reason about: no vectors and no copies are left.

In comes a function that ``engine/llvm`` has read; out comes a graph of scalars, by the names that LLVM IR has for
them. Nothing here depends on a dispatch, and nothing is proven here.
"""
