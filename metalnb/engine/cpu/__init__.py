"""The engine ``cpu``: kernels as SPIR-V on an OpenCL CPU device, on NumPy's own memory.

Units and launches come in, as ``engine/base.py`` has them; OpenCL's programs, queues and events stay inside.
``cpu_engine`` compiles a unit, through ``engine/clang.py`` and the passes in ``spirv``, and starts its dispatches;
``opencl`` finds the device and builds programs for it. The text that clang is given is `metalnb.msl.lower.opencl`'s,
and the headers before it are those in ``msl/target``, against which the front end has parsed the cell. Nothing outside
imports more of this room than `open_engine`, but the tests.
"""

from __future__ import annotations

from .cpu_engine import CpuEngine, open_engine

__all__ = ["CpuEngine", "open_engine"]
