"""Arithmetic on vectors of lanes: LLVM's operations, integer quotients, and estimates refined by a Newton step.

Uniform and strided values stay scalar; their vectors are made where a varying instruction uses them.
"""
