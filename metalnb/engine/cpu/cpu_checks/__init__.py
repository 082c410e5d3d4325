"""Checked dispatches: the host's side of engine/robust.

The package chooses the checks of a dispatch, holds the memory for limits and fault records, and has the ticket and the
thread for dispatches that may have to be stopped. ``cuda/cuda_checks`` is its counterpart for the engine ``cuda``;
`validate` runs ``validated``.
"""
