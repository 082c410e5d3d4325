"""Add checks to LLVM IR: a branch around each unproven access, a stop flag in loops that may run for long.

The instructions are written into a copy of a parsed function. `check_target` describes how an engine passes arguments
and receives faults.
"""
