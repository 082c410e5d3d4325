"""The engine ``cpu``: kernels compiled for this machine by clang, on NumPy's own memory.

Units and launches come in, as ``engine/base.py`` has them. A kernel whose threads never meet is a loop over the threads
of a threadgroup, which clang vectorises; one with barriers or SIMD functions is run by fibers, one for each thread.
``entry_texts`` writes either form, ``host.h`` is what the MSL headers stand on here, ``toolchain`` compiles, links and
loads, and ``runtime`` is C: ``loops.c`` or ``fibers.c`` goes into each kernel's library, ``pool.c`` into the process.
``turns`` and ``places`` say in which order lanes meet. The room ``checked`` runs a dispatch with every access watched.
"""

from __future__ import annotations

from .cpu_engine import CpuEngine, open_engine

__all__ = ["CpuEngine", "open_engine"]
