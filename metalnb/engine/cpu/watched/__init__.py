"""Checked dispatches: the host's side of engine/robust.

Which checks a dispatch needs, the memory that its kernel reads limits from and records faults in, its ticket, and the
thread in which dispatches run that may have to be stopped.
"""
