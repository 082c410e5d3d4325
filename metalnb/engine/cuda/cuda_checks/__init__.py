"""Checked kernels on a GPU: clang's text with the checks of engine/robust in it, and their dispatches.

``cuda_entry`` describes the values that the entry point passes on, ``gpu_target`` the functions that a check calls, and
``checked_ptx`` compiles both to PTX. ``gpu_dispatch`` has the input and the results of a checked dispatch,
``host_signals`` its flag and the word that reports a fault; ``stoppable_gpu_runs`` stops loops, and a ``gpu_ticket``
waits for a dispatch. ``cpu/cpu_checks`` is the counterpart for the engine ``cpu``.
"""
