"""Record the commands of one device for Xcode, as a ``.gputrace``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from metalnb.errors import EngineUnavailable

from .bindings import Bindings

__all__ = ["recorded"]

_SWITCH = "set MTL_CAPTURE_ENABLED=1 in the environment before Jupyter starts"


@contextlib.contextmanager
def recorded(found: Bindings, device: Any, path: Path, hand_over: Callable[[], None]) -> Iterator[None]:
    """Record the block's command buffers to a file that does not exist yet.

    Parameters
    ----------
    found : Bindings
    device : MTLDevice
    path : Path
    hand_over : callable
        Commits the command buffer that is still open.

    Raises
    ------
    EngineUnavailable
        If capture is not enabled, which must happen before the process starts.
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
    hand_over()
    begun, error = manager.startCaptureWithDescriptor_error_(described, None)
    if not begun:
        raise EngineUnavailable(f"Metal does not record: {error.localizedDescription()} ({_SWITCH})")
    try:
        yield
    finally:
        hand_over()
        manager.stopCapture()
