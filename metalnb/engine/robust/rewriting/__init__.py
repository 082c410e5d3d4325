"""LLVM's text with checks: a branch around each access that is not proven, a flag in loops that may run for long.

It writes instructions into a copy of a function that was read, and knows of an engine only how it hands over arguments
and receives a fault (`check_target`).
"""
