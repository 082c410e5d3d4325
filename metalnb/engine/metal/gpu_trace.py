"""A recording for Xcode of what one device is asked to do: a ``.gputrace``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metalnb.errors import EngineUnavailable

from .bindings import Bindings

__all__ = ["recorded"]

_SWITCH = "set MTL_CAPTURE_ENABLED=1 in the environment before Jupyter starts"


@contextlib.contextmanager
def recorded(found: Bindings, device: Any, path: Path) -> Iterator[None]:
    """Record the block's command buffers to a file that does not exist yet.

    Raises
    ------
    EngineUnavailable
        When Metal does not record: it must be switched on before the process starts.
    """
    metal = found.metal
    manager = metal.MTLCaptureManager.sharedCaptureManager()
    where = metal.MTLCaptureDestinationGPUTraceDocument
    if not manager.supportsDestination_(where):
        raise EngineUnavailable(f"Metal records nothing in this process: {_SWITCH}")
    described = metal.MTLCaptureDescriptor.alloc().init()
    described.setCaptureObject_(device)
    described.setDestination_(where)
    described.setOutputURL_(found.metal.NSURL.fileURLWithPath_(str(path.resolve())))
    begun, error = manager.startCaptureWithDescriptor_error_(described, None)
    if not begun:
        raise EngineUnavailable(f"Metal does not record: {error.localizedDescription()} ({_SWITCH})")
    try:
        yield
    finally:
        manager.stopCapture()
