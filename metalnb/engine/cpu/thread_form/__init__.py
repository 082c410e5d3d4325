"""Kernels run one thread at a time, for the engine ``cpu``: those that cannot be vectorised.

``thread_build`` compiles a unit to an object file, as a loop over threads or as fibers; ``thread_binary`` has the
kernel that the engine launches, with the checked forms that its dispatches have needed so far.
"""
