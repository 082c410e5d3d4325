"""A call of a kernel: from Python's arguments to a dispatch.

Input: a compiled kernel and a caller's arguments. Output: a checked `Dispatch`. A call compiles, binds, then launches.
``kernel.py`` is the callable; ``argument_binding.py`` and ``packing.py`` turn values into memory, ``grids.py``,
``outputs.py`` and ``threadgroup_memory.py`` fill in what the caller omits. Engines are used only through
``engine/base.py``, arrays through ``engine_arrays.py``; nothing here reads MSL or knows a kernel's program.
"""
