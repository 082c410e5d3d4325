"""Checked kernels on a GPU: LLVM IR with the checks of engine/robust, and dispatches of such kernels.

``cuda_entry`` describes the entry point's arguments, ``gpu_target`` the function that a check calls, and
``two_step_ptx`` compiles both to PTX. ``gpu_watch`` has the input and results of a checked dispatch,
``stoppable_runs`` stops loops, and a ``gpu_ticket`` waits for a dispatch.
"""
