"""The engine ``cpu``'s form for kernels that cannot be vectorized: one thread at a time.

``thread_build`` compiles a unit to an object file, as a loop over threads or as fibers; ``thread_binary`` has the
kernel that the engine launches, with the checked forms that its dispatches have needed so far.
"""
