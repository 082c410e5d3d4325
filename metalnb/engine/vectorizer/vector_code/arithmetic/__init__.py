"""Arithmetic on vectors of lanes: LLVM's operations, integer quotients, functions of halves, estimates.

Uniform and strided values stay scalar until a varying instruction uses them.
"""
