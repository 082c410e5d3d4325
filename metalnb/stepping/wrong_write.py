"""The argument ``until=`` of `trace`: find the thread that wrote a wrong element, and the step that did."""

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
from metalnb.validation.validated_call import SECONDS, judged

from .trace_record import TraceAim, TraceMemory, TraceStep
from .variable_values import shown

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
        Its byte offset in the array.
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
        If it names no element, or no thread wrote the element.
    """
    found = _difference(until) if isinstance(until, (Validation, Difference)) else None
    name, index = (found.name, found.index) if found else _named(until)
    arrays = named_arrays(dispatch, args, call)
    params = {p.name: p for p in dispatch.kernel.signature.buffers if p.writable and p.name in arrays}
    if name not in params:
        _refuse(f"names an element of {' or '.join(params) or 'no array: the kernel writes none'}; got {name!r}")
    place = _place(name, index, arrays[name], params[name].type.size)
    label, line = f"{name}[{', '.join(map(str, index))}]", 0
    if found and found.thread >= 0:
        thread, line = found.thread, found.line
    else:
        judge = judged(dispatch, SECONDS)[1]
        thread, _, where = judge.writer(name, place)
        line = judge.place(where)[0]
    if thread < 0:
        _refuse(f"asks which thread wrote {label}, but no thread did: thread= shows the one that should have")
    x, y, _ = dispatch.grid
    at = (thread % x, thread // x % y, thread // (x * y))
    position = ", ".join(map(str, at[: len(trim_grid(dispatch.grid))]))
    return WrongElement(name, label, place, at, position, line, shown(found.expected) if found else "")


def aim_at(
    wanted: WrongElement, memory: Sequence[TraceMemory], sizes: Sequence[int], threads: Sequence[Sequence[TraceStep]],
    own: int,
) -> TraceAim:  # fmt: skip
    """Return the step at which a trace opens: the thread's last write of the element.

    Parameters
    ----------
    sizes : sequence of int
        Bytes of an element of each memory.
    own : int
        The index of the thread in its threadgroup.
    """
    number = next(i for i, m in enumerate(memory) if m.name == wanted.name and m.space != "threadgroup")
    element = wanted.byte // sizes[number]
    steps = threads[own]
    writes = [s for s in steps if any(t.written and t.memory == number and t.covers(element) for t in s.touched)]
    near = [s for s in steps if s.line == wanted.line]
    step = next(iter([*writes[::-1], *near[::-1], *steps[-1:]]), None)
    if writes:
        written = [t for t in writes[-1].touched if t.written and t.memory == number and t.covers(element)][-1]
        deed = f"writes {shown(written.values[element - written.first])} to {wanted.label} on line {writes[-1].line}"
    else:
        deed = f"did not write {wanted.label} here, where no other threadgroup runs"
    expected = f"; expected {wanted.expected}" if wanted.expected else ""
    text = f"Thread {wanted.position} {deed}{expected}."
    return TraceAim(number, element, step.tick if step else 0, text)


def _difference(given: Validation | Difference) -> Difference:
    if isinstance(given, Validation):
        if not given.differences:
            why = "are as expected" if given.compared else "were compared with nothing: pass expected= to validate"
            _refuse(f"is a report without a wrong element: the outputs {why}")
        given = given.differences[0]
    if given.case:
        _refuse(f"is of a call with {given.case} threads, in which {given.name} was wrong: trace that call")
    return given


def _named(text: Any) -> tuple[str, tuple[int, ...]]:
    found = _ELEMENT.fullmatch(text.strip()) if isinstance(text, str) else None
    if not found or not found[2].strip(" ,"):
        _refuse(f'is a report of validate, or an element like "out[3]" or "out[2, 5]"; got {text!r}')
    return found[1], tuple(int(n) for n in found[2].split(",") if n.strip())


def _place(name: str, index: Sequence[int], array: Any, size: int) -> int:
    """Return an element's byte offset; a single index counts the elements as the kernel does."""
    shape, item = tuple(np.shape(array)), np.dtype(array.dtype).itemsize
    if len(index) == 1 and len(shape) > 1:
        shape, item = (item * int(np.prod(shape)) // size,), size
    if len(index) > len(shape) or any(i >= n for i, n in zip(index, shape, strict=False)):
        _refuse(f"is beyond the end: {name} has shape {tuple(np.shape(array))}; got {name}{list(index)}")
    whole = (*index, *(0 for _ in shape[len(index) :]))
    return int(np.ravel_multi_index(whole, shape)) * item if shape else 0


def _refuse(text: str) -> NoReturn:
    message = f"trace: until= {text}."
    raise ArgumentError(message)
