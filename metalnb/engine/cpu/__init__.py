"""The engine ``cpu``: kernels compiled for this machine by clang, on NumPy's own memory.

It implements the interface in ``engine/base.py``. The package ``lanes`` maps a SIMD-group's threads to vector
registers. A kernel that cannot be vectorized runs a thread at a time (``thread_form``): as a loop over a threadgroup's
threads, or, with barriers, SIMD functions or checks, as one fiber per thread. ``entry_texts`` writes each form,
``host.h`` defines the primitives of the MSL headers, ``toolchain`` compiles, links and loads, and ``runtime`` is C:
``lanes.c``, ``loops.c`` or ``fibers.c`` goes into each kernel's library, ``pool.c`` into the process.
``iteration_ends`` and ``call_sites`` determine the order in which fibers converge. ``cpu_checks`` is the host's side of
a checked dispatch; ``validated``, ``profiled`` and ``traced_run`` run a dispatch for `validate`, `profile` and `trace`.
"""

from __future__ import annotations

from .cpu_engine import CpuEngine, open_engine

__all__ = ["CpuEngine", "open_engine"]
