"""The engine ``cuda``: kernels as PTX on an NVIDIA GPU, in the context that PyTorch, CuPy and JAX also use.

It implements the interface in ``engine/base.py``; the driver's modules, streams and events stay inside.
``ptx`` compiles a unit to PTX with clang, after ``prelude.h``: ``nvptx.h`` implements what the MSL headers rely on,
and ``grid_position.h`` computes a thread's position. ``driver_api`` loads the driver's API, ``nvidia_driver`` wraps a
GPU and ``gpu_memory`` its memory; ``pinned_copies`` copies large arrays, ``argument_cache`` keeps small ones on the
GPU, ``launch_record`` packs a launch, ``stream_events`` marks its start and end, ``assembling`` has the driver assemble
PTX, and ``cuda_engine`` ties these together. ``cuda_checks`` is only for checked kernels. None of NVIDIA's packages is
imported before the engine is opened.
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
        If a dependency is missing, or there is no such GPU.
    """
    driver_api()  # most machines have no GPU, and the imports below take 80 ms
    from metalnb.engine.clang.driver import clang_command

    from .cuda_engine import CudaEngine
    from .nvidia_driver import open_gpu

    clang_command()
    return CudaEngine(open_gpu(device))
