"""An engine of a CPU that passes for a GPU, so that the plans for one are made, and their kernels run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import metalnb as mnb
from metalnb.library_kernels.launching import arg_reduction_launch, reduction_launch, scan_launch


@pytest.fixture(params=["cpu", "native"])
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return what makes an engine pass for a GPU of some processors."""
    if not mnb.engines()[request.param].available:
        pytest.skip(f"needs the engine {request.param!r}")
    engine = mnb.use(request.param)
    device: Any = engine.connect() if hasattr(engine, "connect") else engine

    def forget() -> None:
        for room, names in ((reduction_launch, ("_stages", "build")), (arg_reduction_launch, ("_steps", "_program")),
                            (scan_launch, ("_steps", "_program"))):  # fmt: skip
            for name in names:
                getattr(room, name).cache_clear()

    def passes(processors: int, matrices: Iterable[str] = ()) -> str:
        forget()
        caps = dataclasses.replace(
            device.caps, processors=processors, serial=False, matrices=frozenset(matrices)
        )
        monkeypatch.setattr(device, "caps", caps)
        return str(request.param)

    yield passes
    forget()
    mnb.use(None)
