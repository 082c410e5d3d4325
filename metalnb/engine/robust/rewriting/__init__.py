"""Add checks to LLVM IR: a branch around each unproven access, a stop flag in loops that may run for long.

It writes instructions into a copy of a parsed function. All it knows of an engine is how that passes arguments and
receives a fault (`check_target`).
"""
