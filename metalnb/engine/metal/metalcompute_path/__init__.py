"""The engine ``metal:metalcompute``: an Apple GPU through metalcompute, or through its double.

It implements the interface in ``engine/base.py``; metalcompute's kernels, buffers and handles stay inside.

metalcompute dispatches one row of full threadgroups, as large as the kernel allows. So ``lowering``
rewrites the kernel to compute its position in any grid from its position in that row. It is compiled once for each
number of threads in a threadgroup, a multiple of 32, as metalcompute takes only full SIMD-groups.

Idle threads must not break barriers. The threads that only pad the last SIMD-group return at the start of the kernel,
which is safe: an Apple GPU's barrier waits for SIMD-groups, and each still has a live thread that reaches it. An
entirely idle SIMD-group would not be safe (MSL 6.9 requires every thread of the threadgroup to reach a barrier). So the
smaller threadgroups at a grid's far edges are not padded to full size: if the cell has a threadgroup barrier, each
region of equal threadgroups is a separate dispatch, at most eight in all. Without a barrier one dispatch is enough.
"""

from __future__ import annotations

import importlib
import os
import platform
from typing import Any

from metalnb.engine.base import Engine, refuse_device
from metalnb.errors import EngineUnavailable

__all__ = ["open_engine"]

_NEEDS = "engine 'metal:metalcompute' needs macOS 14 and metalcompute: pip install metalcompute"


def open_engine(device: int = 0, *, module: Any = None) -> Engine:
    """Open the engine.

    Parameters
    ----------
    device : int, optional
        0 is the system's own choice; other numbers count the devices of `get_devices`.
    module : module, optional
        A module with metalcompute's API; by default metalcompute, or with ``METALNB_METALCOMPUTE=double`` the double.

    Raises
    ------
    EngineUnavailable
        If there is no Metal on this machine, or no such device.
    """
    module = module or _metalcompute()
    from .metalcompute_engine import MetalcomputeEngine  # imported only when needed

    if device:
        count = len(module.get_devices())
        if device >= count:
            refuse_device("metal:metalcompute", device, count)
    try:
        return MetalcomputeEngine(module, device)
    except module.error as error:
        message = f"engine 'metal:metalcompute' found no Metal device: {error}"
        raise EngineUnavailable(message) from error


def _metalcompute() -> Any:
    if os.environ.get("METALNB_METALCOMPUTE") == "double":
        return importlib.import_module("metalnb.metalcompute")
    if platform.system() != "Darwin":
        raise EngineUnavailable(_NEEDS)
    try:
        return importlib.import_module("metalcompute")
    except ImportError as error:
        raise EngineUnavailable(_NEEDS) from error
