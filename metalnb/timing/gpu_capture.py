"""Record calls for Xcode's GPU debugger."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from metalnb import engine as engines
from metalnb.arrays.stream import synchronize
from metalnb.errors import ArgumentError

__all__ = ["capture"]


@contextlib.contextmanager
def capture(path: str | os.PathLike[str] = "metalnb.gputrace", *, engine: str | None = None) -> Iterator[Path]:
    """Record the GPU's commands within a ``with`` block, for Xcode.

    Open the file with ``open metalnb.gputrace``: Xcode replays it, and shows each dispatch with its buffers, its
    counters and the time of each line. The process must have been started with ``MTL_CAPTURE_ENABLED=1``.

    Parameters
    ----------
    path : path, optional
        The file to create, which must end in ``.gputrace`` and not exist yet.
    engine : str, optional
        The engine to record; by default the one in use. Only `metal` can record.

    Raises
    ------
    ArgumentError
        If the engine does not record, or the file cannot be created.
    EngineUnavailable
        If Metal cannot record in this process.
    """
    device_engine = engines.named(engine)
    record = getattr(device_engine, "record", None)
    if record is None:
        raise ArgumentError(f"capture: engine '{device_engine.name}' cannot record. Use the engine 'metal'.")
    file = Path(path)
    if file.suffix != ".gputrace":
        raise ArgumentError(f"capture: the file's name ends in .gputrace; got {str(path)!r}.")
    if file.exists():
        raise ArgumentError(f"capture: {str(path)!r} exists. Remove it, or name another file.")
    synchronize(device_engine.name)  # earlier dispatches are not part of the recording
    with record(file):
        yield file
        synchronize(device_engine.name)
