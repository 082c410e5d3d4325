"""Checked kernels on a GPU: clang's text with the checks of engine/robust in it, and their dispatches.

``cuda_entry`` says what the entry point gives a kernel, ``gpu_target`` what a check calls, and ``two_step_ptx`` makes
PTX of both. ``gpu_watch`` is what a dispatch is given and leaves behind, ``stoppable_runs`` ends loops, and whoever
waits for a dispatch has a ``gpu_ticket``.
"""
