"""The engine ``cpu``: kernels as SPIR-V on an OpenCL CPU device, on NumPy's own memory.

Units and launches come in, as ``engine/base.py`` has them; OpenCL's programs, queues and events stay inside.
``cpu_engine`` compiles a unit and starts its dispatches: ``spirv_forms`` has clang make SPIR-V of it behind
``prelude.h``, the passes in ``spirv`` mend that, and ``opencl`` finds the device and builds programs for it. Nothing
outside imports more of this room than `open_engine`, but the tests.
"""

from __future__ import annotations

from .cpu_engine import CpuEngine, open_engine

__all__ = ["CpuEngine", "open_engine"]
