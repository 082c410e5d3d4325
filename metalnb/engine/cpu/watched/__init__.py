"""Checked dispatches: the host's side of engine/robust.

It has the checks that a dispatch needs, the memory with its kernel's limits and records of faults, its ticket, and the
thread for dispatches that may have to be stopped.
"""
