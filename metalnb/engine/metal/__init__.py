"""The engine ``metal``: an Apple GPU through PyObjC's module ``Metal``.

It implements the interface in ``engine/base.py``; Metal's objects stay inside. A cell is compiled as its
author wrote it, with its header cells inserted where it includes them. A dispatch covers exactly the grid, and small
dispatches share a compute encoder while the GPU is busy. Memory is shared: an array is in an `MTLBuffer` that NumPy
sees, the GPU works in place on complete pages of NumPy's memory, and any other memory is copied.

``metalcompute_path`` is another way to reach the same GPU, the engine ``metal:metalcompute``, for a Mac without PyObjC.
"""

from __future__ import annotations

from typing import Any

from metalnb.engine.base import Engine, refuse_device
from metalnb.errors import EngineUnavailable

from .bindings import load_bindings

__all__ = ["open_engine"]


def open_engine(device: int = 0, *, module: Any = None) -> Engine:
    """Open the engine.

    Parameters
    ----------
    device : int, optional
        0 is the system's choice; other numbers count the devices of `MTLCopyAllDevices`.
    module : module, optional
        A double of PyObjC's ``Metal``.

    Raises
    ------
    EngineUnavailable
        If there is no PyObjC or no Metal on this machine, or no such device.
    """
    bindings = load_bindings(module)
    from .metal_engine import MetalEngine  # imported only when needed

    with bindings.pool():
        chosen = bindings.metal.MTLCreateSystemDefaultDevice()
        if device and chosen is not None:
            every = list(bindings.metal.MTLCopyAllDevices())
            if device >= len(every):
                refuse_device("metal", device, len(every))
            chosen = every[device]
    if chosen is None:
        message = "engine 'metal' found no Metal device: this process has no GPU, as in some virtual machines"
        raise EngineUnavailable(message)
    return MetalEngine(bindings, chosen, device)
