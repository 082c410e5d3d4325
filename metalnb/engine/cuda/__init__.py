"""The engine ``cuda``: kernels as PTX on an NVIDIA GPU, in the context that PyTorch, CuPy and JAX use too.

Units and launches come in, as ``engine/base.py`` has them; the driver's modules, streams and events stay inside.
``ptx`` has clang write a unit as PTX, behind ``prelude.h``: ``nvptx.h`` is what the MSL headers stand on, and
``grid_place.h`` says where a thread stands. ``nvidia_driver`` reaches the driver, ``gpu_memory`` is memory there,
``pinned_copies`` takes large arrays to and fro, ``launch_record`` packs a launch, ``stream_events`` marks its start and
end, ``assembling`` has the driver assemble PTX, ``cuda_engine`` does the rest; ``checked_kernels`` holds what only
checked kernels have. Nothing of NVIDIA's is imported before the engine is opened.
"""

from __future__ import annotations

from .cuda_engine import CudaEngine, open_engine

__all__ = ["CudaEngine", "open_engine"]
