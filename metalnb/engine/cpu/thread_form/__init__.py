"""Kernels run one thread at a time, for the engine ``cpu``: those that cannot be vectorised.

A unit comes in. ``thread_build`` compiles it to an object file, as a loop over threads or as fibers; ``thread_binary``
is what the engine launches, with the checked forms that its dispatches have needed so far.
"""
