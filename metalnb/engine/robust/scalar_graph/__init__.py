"""A function's values as a graph of scalars, without vectors and copies, for the proofs.

The input is a function parsed by ``engine/llvm``; scalars keep their names in LLVM IR. Nothing here depends on a
dispatch.
"""
