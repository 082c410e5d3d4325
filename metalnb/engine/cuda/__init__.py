"""The engine ``cuda``: kernels as PTX on an NVIDIA GPU, in the context that PyTorch, CuPy and JAX use too.

Units and launches come in, as ``engine/base.py`` has them; the driver's modules, streams and events stay inside.
``ptx`` has clang write a unit as PTX, behind ``prelude.h``: ``nvptx.h`` is what the MSL headers rely on, and
``grid_place.h`` gives a thread's position. ``driver_api`` is the driver's API, ``nvidia_driver`` a GPU, ``gpu_memory``
is memory there, ``pinned_copies`` takes large arrays to and fro, ``launch_record`` packs a launch, ``stream_events``
marks its start and end, ``assembling`` has the driver assemble PTX, ``cuda_engine`` does the rest; ``checked_kernels``
holds what only checked kernels have. Nothing of NVIDIA's is imported before the engine is opened.
"""

from __future__ import annotations

from metalnb.engine.base import Engine

from .driver_api import driver_api

__all__ = ["open_engine"]


def open_engine(device: int = 0) -> Engine:
    """Open the engine on a GPU.

    Raises
    ------
    EngineUnavailable
        When something that it needs is missing, or there is no such GPU.
    """
    driver_api()  # most machines have none: what follows takes 80 ms to import
    from metalnb.engine.clang.driver import clang

    from .cuda_engine import CudaEngine
    from .nvidia_driver import open_gpu

    clang()
    return CudaEngine(open_gpu(device))
