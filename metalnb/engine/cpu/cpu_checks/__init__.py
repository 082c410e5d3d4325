"""Checked dispatches: the host's side of engine/robust.

It has the checks that a dispatch needs, the memory with its kernel's limits and records of faults, its ticket, and the
thread for dispatches that may have to be stopped. ``cuda/cuda_checks`` is the same for the engine ``cuda``; what
`validate` runs is ``validated``.
"""
