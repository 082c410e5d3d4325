"""Record the commands of one device for Xcode, as a ``.gputrace``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from metalnb.errors import EngineUnavailable

from .bindings import Bindings

__all__ = ["record_trace"]

_SWITCH = "set MTL_CAPTURE_ENABLED=1 in the environment before Jupyter starts"


@contextlib.contextmanager
def record_trace(bindings: Bindings, device: Any, path: Path, commit: Callable[[], None]) -> Iterator[None]:
    """Record the block's command buffers to a file that does not exist yet.

    Parameters
    ----------
    bindings : Bindings
    device : MTLDevice
    path : Path
    commit : callable
        Commits the command buffer that is still open.

    Raises
    ------
    EngineUnavailable
        If capture is not enabled, which must happen before the process starts.
    """
    metal = bindings.metal
    manager = metal.MTLCaptureManager.sharedCaptureManager()
    destination = metal.MTLCaptureDestinationGPUTraceDocument
    if not manager.supportsDestination_(destination):
        raise EngineUnavailable(f"Metal records nothing in this process: {_SWITCH}")
    descriptor = metal.MTLCaptureDescriptor.alloc().init()
    descriptor.setCaptureObject_(device)
    descriptor.setDestination_(destination)
    descriptor.setOutputURL_(bindings.metal.NSURL.fileURLWithPath_(str(path.resolve())))
    commit()
    is_started, error = manager.startCaptureWithDescriptor_error_(descriptor, None)
    if not is_started:
        raise EngineUnavailable(f"Metal does not record: {error.localizedDescription()} ({_SWITCH})")
    try:
        yield
    finally:
        commit()
        manager.stopCapture()
