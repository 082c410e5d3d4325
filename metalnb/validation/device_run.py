"""Repeat a call on its device, under the device's own validation, and judge it like a validated call.

A device reveals less than the validated build of the engine `cpu`, which sees each access, but it can run where that
build cannot.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np

from metalnb.arrays.stream import synchronize
from metalnb.call.kernel import Dispatch
from metalnb.engine.base import Bytes, Pointed
from metalnb.errors import Diagnostic

from .access_report import Finding, Validation
from .validated_call import Outcome, run_and_judge

__all__ = ["BY", "run_on_device"]

BY = "Metal's shader validation"
_UNKNOWN = -2


class DeviceOutcome:
    """The contents of memory after a run; the writers are unknown.

    Parameters
    ----------
    contents : dict of str to Bytes
        Each buffer's bytes, by the parameter's name.
    """

    def __init__(self, contents: dict[str, Bytes]) -> None:
        self._contents = contents

    def contents(self, name: str) -> Bytes:
        """Return a buffer's bytes."""
        return self._contents[name]

    def written(self, name: str, shape: tuple[int, ...], size: int) -> tuple[Any, Any]:
        """Return all False: no element is known to be unwritten, or written twice."""
        del name, size
        return np.zeros(shape, np.bool), np.zeros(shape, np.bool)

    def writer(self, name: str, byte: int) -> tuple[int, int, None]:
        """Return "unknown" for the writer of a byte."""
        del name, byte
        return _UNKNOWN, _UNKNOWN, None

    def location(self, line: None) -> tuple[int, int, str]:
        """Return an empty position, since none is known."""
        del line
        return 0, 0, ""


def run_on_device(dispatch: Dispatch, seconds: float) -> tuple[Validation, Outcome]:
    """Run a call under its engine's own validation, or in the validated build if the engine has none.

    Raises
    ------
    ArgumentError, EngineUnavailable
    """
    kernel = dispatch.kernel
    run = getattr(kernel.engine, "shader_faults", None)
    if run is None or any(isinstance(a, Pointed) for a in dispatch.arguments):  # the memory they point to is not copied
        return run_and_judge(dispatch, seconds)
    if dispatch.residents:
        synchronize(kernel.engine.name)  # earlier dispatches may still be writing
    copies = _copy_arrays(kernel.engine, dispatch.arguments)
    messages = run(kernel.unit, copies, dispatch.grid, dispatch.threadgroup)
    if messages is None:
        return run_and_judge(dispatch, seconds)
    pairs = zip(kernel.signature.params, copies, strict=True)
    contents = {p.name: np.frombuffer(a, np.uint8) for p, a in pairs if isinstance(a, np.ndarray)}
    report = Validation(
        kernel=kernel.signature.name, grid=dispatch.grid, threadgroup=dispatch.threadgroup, buffers=(),
        findings=_findings(messages), unwritten={}, accesses=0, left_out=0, make_log=lambda: np.empty((0, 4), np.int64),
        by=BY,
    )  # fmt: skip
    return report, DeviceOutcome(contents)


def _findings(messages: tuple[Diagnostic, ...]) -> tuple[Finding, ...]:
    """Return one finding for each message about a position, with its count."""
    counts = Counter((d.line, d.column, d.message, d.text) for d in messages)
    return tuple(
        Finding("reported", line, column, _UNKNOWN, _UNKNOWN, source=text, operation=message, count=count)
        for (line, column, message, text), count in counts.items()
    )


def _copy_arrays(engine: Any, arguments: list[Any]) -> list[Any]:
    """Return copies of the arrays in the engine's own memory; arrays that overlap also overlap as copies."""
    arrays = [i for i, a in enumerate(arguments) if a is not None and not isinstance(a, (int, bytes, bytearray))]
    views = {i: np.frombuffer(np.ascontiguousarray(arguments[i]), np.uint8) for i in arrays}
    spans = {i: (view.__array_interface__["data"][0], view.size) for i, view in views.items()}
    copies: list[Any] = list(arguments)
    groups: list[_Group] = []
    for i in sorted(arrays, key=spans.__getitem__):
        start, size = spans[i]
        if groups and start < groups[-1].end:
            groups[-1].members.append(i)
            groups[-1].end = max(groups[-1].end, start + size)
        else:
            groups.append(_Group(start, start + size, [i]))
    for group in groups:
        memory = np.frombuffer(engine.alloc(group.end - group.start), np.uint8)
        for i in group.members:
            first = spans[i][0] - group.start
            copies[i] = memory[first : first + spans[i][1]]
            copies[i][:] = views[i]
    return copies


@dataclasses.dataclass(slots=True)
class _Group:
    """Overlapping arguments, and their addresses."""

    start: int
    end: int
    members: list[int]
