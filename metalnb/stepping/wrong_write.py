"""Handle ``until=`` of `trace`: find the thread that wrote a wrong element, and the step that wrote it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from metalnb.call.kernel import Dispatch
from metalnb.engine.base import Grid
from metalnb.errors import ArgumentError
from metalnb.timing.units import trim_grid
from metalnb.validation.access_report import Difference, Validation
from metalnb.validation.expected_outputs import named_arrays
from metalnb.validation.validated_call import SECONDS, run_and_judge

from .trace_record import TraceAim, TraceMemory, TraceStep
from .variable_values import value_text

__all__ = ["WrongElement", "aim_at", "wrong_element"]

_ELEMENT = re.compile(r"(\w+)\[([\d, ]+)\]")


class WrongElement(NamedTuple):
    """An element of an output, and the thread that wrote it.

    Attributes
    ----------
    name : str
        The name of the parameter.
    label : str
        ``"out[3, 5]"``.
    byte : int
        The element's byte offset in the array.
    thread : tuple of 3 int
        The position in the grid of the thread that last wrote it.
    position : str
        The element's position as text, ``"3, 5"``.
    line : int
        The line that wrote it; 0 if unknown.
    expected : str
        The value that it should have; empty if unknown.
    """

    name: str
    label: str
    byte: int
    thread: Grid
    position: str
    line: int
    expected: str


def wrong_element(until: Any, dispatch: Dispatch, args: Sequence[Any], call: dict[str, Any]) -> WrongElement:
    """Return the element that ``until`` names, and the thread that wrote it; parameters as for `trace`.

    Raises
    ------
    ArgumentError
        If `until` does not name an element of an output, or no thread wrote the element.
    """
    difference = _difference(until) if isinstance(until, (Validation, Difference)) else None
    name, index = (difference.name, difference.index) if difference else _parse_element(until)
    arrays = named_arrays(dispatch, args, call)
    params = {p.name: p for p in dispatch.kernel.signature.buffers if p.writable and p.name in arrays}
    if name not in params:
        if not params:
            _refuse("needs an array that the kernel writes, and it writes none")
        _refuse(f"must name an element of {' or '.join(params)}; got {name!r}")
    byte_offset = _byte_offset(name, index, arrays[name], params[name].type.size)
    label, line = f"{name}[{', '.join(map(str, index))}]", 0
    if difference and difference.thread >= 0:
        thread, line = difference.thread, difference.line
    else:
        judge = run_and_judge(dispatch, SECONDS)[1]
        thread, _, line_of_writer = judge.writer(name, byte_offset)
        line = judge.location(line_of_writer)[0]
    if thread < 0:
        _refuse(f"names {label}, which no thread wrote; pass thread= to trace the thread that should have written it")
    x, y, _ = dispatch.grid
    thread_position = (thread % x, thread // x % y, thread // (x * y))
    position = ", ".join(map(str, thread_position[: len(trim_grid(dispatch.grid))]))
    expected = value_text(difference.expected) if difference else ""
    return WrongElement(name, label, byte_offset, thread_position, position, line, expected)


def aim_at(
    wrong: WrongElement, memory: Sequence[TraceMemory], sizes: Sequence[int], threads: Sequence[Sequence[TraceStep]],
    thread: int,
) -> TraceAim:  # fmt: skip
    """Return the step at which a trace opens: the thread's last write of the element.

    Parameters
    ----------
    sizes : sequence of int
        Bytes of an element of each memory.
    thread : int
        The index of the thread in its threadgroup.
    """
    number = next(i for i, m in enumerate(memory) if m.name == wrong.name and m.space != "threadgroup")
    element = wrong.byte // sizes[number]
    steps = threads[thread]
    writes = [s for s in steps if any(t.written and t.memory == number and t.covers(element) for t in s.touched)]
    on_line = [s for s in steps if s.line == wrong.line]
    step = next(iter([*writes[::-1], *on_line[::-1], *steps[-1:]]), None)
    if writes:
        touch = [t for t in writes[-1].touched if t.written and t.memory == number and t.covers(element)][-1]
        event = f"writes {value_text(touch.values[element - touch.first])} to {wrong.label} on line {writes[-1].line}"
    else:
        event = f"did not write {wrong.label} here, where no other threadgroup runs"
    expected = f"; expected {wrong.expected}" if wrong.expected else ""
    text = f"Thread {wrong.position} {event}{expected}."
    return TraceAim(number, element, step.tick if step else 0, text)


def _difference(report: Validation | Difference) -> Difference:
    if isinstance(report, Validation):
        if not report.differences:
            reason = "are as expected" if report.compared else "were not compared; pass expected= to validate"
            _refuse(f"has no wrong element to trace: the outputs {reason}")
        report = report.differences[0]
    if report.case:
        _refuse(f"was found in a smaller call, of grid {report.case}; trace that call instead")
    return report


def _parse_element(text: Any) -> tuple[str, tuple[int, ...]]:
    match = _ELEMENT.fullmatch(text.strip()) if isinstance(text, str) else None
    if not match or not match[2].strip(" ,"):
        _refuse(f'must be a report of validate or an element such as "out[3]" or "out[2, 5]"; got {text!r}')
    return match[1], tuple(int(n) for n in match[2].split(",") if n.strip())


def _byte_offset(name: str, index: Sequence[int], array: Any, size: int) -> int:
    """Return an element's byte offset; a single index counts the elements as the kernel does."""
    shape, item = tuple(np.shape(array)), np.dtype(array.dtype).itemsize
    if len(index) == 1 and len(shape) > 1:
        shape, item = (item * int(np.prod(shape)) // size,), size
    if len(index) > len(shape) or any(i >= n for i, n in zip(index, shape, strict=False)):
        _refuse(f"is out of bounds: {name} has shape {tuple(np.shape(array))}; got {name}{list(index)}")
    full_index = (*index, *(0 for _ in shape[len(index) :]))
    return int(np.ravel_multi_index(full_index, shape)) * item if shape else 0


def _refuse(text: str) -> NoReturn:
    message = f"trace: until= {text}."
    raise ArgumentError(message)
