"""Check whether a kernel solves its puzzle, and explain its errors in a learner's terms."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from metalnb.call.kernel import Dispatch, Kernel
from metalnb.engine.time_limits import call_limit, current_limit
from metalnb.errors import CompileError, EngineUnavailable, MetalnbError
from metalnb.plurals import quantity
from metalnb.profiling.profile_call import profile
from metalnb.validation import Event, Validation, sentence, watch

from .puzzle import Case, Puzzle
from .simdgroup_order import reverse_simdgroups

__all__ = ["Verdict", "check_kernel"]

_GUARD = 64  # elements before and after each array, so that a wrong index is harmless
_UNWRITTEN = {"f": 0x7FC0BEEF, "u": 0xBADC0DE5, "i": 0xBADC0DE5}
_PATIENCE = 10.0  # seconds after which a kernel is stopped: it may have an endless loop
_SHOWN = 6
_WRAPPED = 1 << 31  # a uint from here on has wrapped


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of `check`.

    Attributes
    ----------
    puzzle : str
    passed : bool
    message : str
        The error, its position, and a hint; for a correct kernel, a confirmation.
    """

    puzzle: str
    passed: bool
    message: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return f"{'✓' if self.passed else '✗'} {self.puzzle}: {self.message}"

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        color = "#2da44e" if self.passed else "#cf222e"
        parts = itertools.groupby(self.message.split("\n"), lambda line: line.startswith(" "))  # lines of the cell
        body = "".join(_lines_html(list(lines), is_code=is_code) for is_code, lines in parts)
        style = f"border-left:4px solid {color};padding:.3em .8em;margin:.3em 0"
        title = f"<b>{'✓' if self.passed else '✗'} {escape(self.puzzle)}</b>"
        return {"text/plain": repr(self), "text/html": f'<div style="{style}">{title} {body}</div>'}


def _lines_html(lines: list[str], *, is_code: bool) -> str:
    if is_code:
        return f'<pre style="margin:.3em 0;overflow-x:auto">{escape(chr(10).join(lines))}</pre>'
    return "<br>".join(map(escape, lines))


def check_kernel(puzzle: Puzzle, kernel: Kernel, seed: int | None = None) -> Verdict:
    """Run a kernel on the puzzle's sizes with new random inputs; stop at the first wrong result."""
    rng = np.random.default_rng(seed)
    random_cases = [Case("", n, puzzle.given(rng, n)) for n in puzzle.sizes]
    for case in (*random_cases, *puzzle.cases):
        try:
            problem = _check_size(puzzle, kernel, case.inputs, case.n)
        except MetalnbError as error:
            problem = str(error)
        if problem:
            return Verdict(puzzle.name, passed=False, message=f"{_size(case)}: {problem}")
    problem = _check_other_order(puzzle, kernel, case)
    if problem:
        return Verdict(puzzle.name, passed=False, message=f"{_size(case)}: {problem}")
    excess = _check_budgets(puzzle, kernel, random_cases[-1])
    if excess:
        return Verdict(puzzle.name, passed=False, message=f"{_size(random_cases[-1])}: right, but {excess}")
    message = f"right on {quantity(len(puzzle.sizes), 'size')}, from {puzzle.sizes[0]} to {puzzle.sizes[-1]}"
    if puzzle.cases:
        message += f", and {quantity(len(puzzle.cases), 'awkward case')}"
    if puzzle.budgets:
        message += ", and within its budget"
    return Verdict(puzzle.name, passed=True, message=f"{message}.")


def _check_other_order(puzzle: Puzzle, kernel: Kernel, case: Case) -> str:
    """Return the error that shows when the only threadgroup's SIMD-groups run in reverse order; empty if none does."""
    launch = puzzle.launch(case.n)
    threads = launch.get("threadgroup")
    twin = reverse_simdgroups(kernel, threads) if isinstance(threads, int) and launch["grid"] == threads else None
    if twin is None:
        return ""
    expected = np.asarray(puzzle.spec(**case.inputs))
    problem = _compare(puzzle, _run_guarded(twin, puzzle, case.inputs, expected.shape, launch)[0], expected, [])
    if not problem:
        return ""
    return (
        f"right here by luck. With its SIMD-groups run in another order, {problem}\n"
        "Only barriers determine that order. Which one is missing?"
    )


def _check_budgets(puzzle: Puzzle, kernel: Kernel, case: Case) -> str:
    """Return a message about the budget that a correct kernel exceeds, by its profile; empty if it exceeds none."""
    if not puzzle.budgets:
        return ""
    out = np.zeros(np.shape(puzzle.spec(**case.inputs)), puzzle.dtype)
    try:
        counts = profile(kernel, **_arguments(kernel, {**case.inputs, puzzle.out: out}), **puzzle.launch(case.n))
    except (CompileError, EngineUnavailable):  # the kernel is correct but cannot be profiled here
        return ""
    return next(filter(None, (budget(counts) for budget in puzzle.budgets)), "")


def _size(case: Case) -> str:
    arrays = {name: a for name, a in case.inputs.items() if isinstance(a, np.ndarray)}
    sizes = [
        f"{name} of {quantity(a.size, 'element') if a.ndim == 1 else f'shape {a.shape}'}" for name, a in arrays.items()
    ]
    message = f"with {' and '.join(sizes)}" if sizes else "at the first size"
    return f"{message}, {case.description}" if case.description else message


def _check_size(puzzle: Puzzle, kernel: Kernel, inputs: dict[str, Any], n: int) -> str:
    """Return the error at one size; empty if there is none."""
    expected = np.asarray(puzzle.spec(**inputs))
    unknown = puzzle.unknown_parameter([p.name for p in kernel.signature.buffers], inputs)
    if unknown:
        return unknown
    launch = puzzle.launch(n)
    out = _between_guards(expected.shape, puzzle)[1]
    report = _watch(kernel.rehearse(**_arguments(kernel, {**inputs, puzzle.out: out}), **launch))
    if report is not None and report.beyond:
        return _out_of_bounds(report.beyond[0], {**inputs, puzzle.out: out}, launch)
    actual, damage = _run_guarded(kernel, puzzle, inputs, expected.shape, launch)
    if damage:
        return damage
    problem = _compare(puzzle, actual, expected, report.events if report is not None else [])
    faults = [f for f in report.findings if f.is_fault] if report is not None else []
    messages = [problem] if problem else []
    if faults and "which write is last depends on chance" not in problem:
        messages.append(sentence(faults[0]))
        if faults[0].kind == "never written" and faults[0].index is not None:  # an element of threadgroup memory
            messages.append("Does a thread store it? Do all wait at a barrier before they read?")
    return "\n".join(messages)


def _watch(dispatch: Dispatch) -> Validation | None:
    """Run a call in the validated build; None if that cannot be done."""
    try:
        return watch(dispatch)
    except EngineUnavailable:
        return None


def _arguments(kernel: Kernel, arguments: dict[str, Any]) -> dict[str, Any]:
    return {p.name: arguments[p.name] for p in kernel.signature.buffers if p.name in arguments}


def _fill(puzzle: Puzzle) -> np.uint32:
    """Return the bits that fill an output before the kernel runs: a value that no kernel writes by chance."""
    return np.uint32(0 if puzzle.zeroed else _UNWRITTEN[np.dtype(puzzle.dtype).kind])


def _between_guards(shape: tuple[int, ...], puzzle: Puzzle) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return memory with guards before and after an output, and the output inside, both as the kernel finds them."""
    count = int(np.prod(shape))
    memory = np.full(count + 2 * _GUARD, _fill(puzzle), np.uint32).view(puzzle.dtype)
    return memory, memory[_GUARD : _GUARD + count].reshape(shape)


def _out_of_bounds(event: Event, arrays: Mapping[str, Any], launch: Mapping[str, Any]) -> str:
    size = arrays[event.buffer].size
    verb = "writes" if event.written else "reads"
    fault = "before the start" if event.index < 0 else "beyond the end"
    if _WRAPPED <= event.index < 2 * _WRAPPED:
        fault = f"which is {event.index - (1 << 32)} in unsigned arithmetic"
    return (
        f"thread {event.thread} {verb} {event.buffer}[{event.index}], {fault}: "
        f"{event.buffer} has {quantity(size, 'element')}. "
        f"{_threads(launch)} Guard the access, or check how the index is computed."
    )


def _threads(launch: Mapping[str, Any]) -> str:
    grid = launch["grid"]
    size = " × ".join(map(str, grid)) if isinstance(grid, tuple) else str(grid)
    return f"The grid has {size} thread{'' if size == '1' else 's'}."


def _run_guarded(
    kernel: Kernel, puzzle: Puzzle, inputs: dict[str, Any], shape: tuple[int, ...], launch: Mapping[str, Any]
) -> tuple[np.ndarray[Any, Any], str]:
    """Run the kernel with guards around its output; return the output, and a message if a guard was overwritten."""
    memory, out = _between_guards(shape, puzzle)
    count = out.size
    copies = {name: np.copy(a) if isinstance(a, np.ndarray) else a for name, a in inputs.items()}
    with call_limit(min(_PATIENCE, current_limit() or _PATIENCE)):
        kernel(**_arguments(kernel, {**copies, puzzle.out: out}), **launch)
    bits = memory.view(np.uint32)
    written_positions = np.flatnonzero(bits != _fill(puzzle))
    stray = written_positions[(written_positions < _GUARD) | (written_positions >= _GUARD + count)]
    if stray.size:
        index = int(stray[0]) - _GUARD
        elements = quantity(count, "element")
        return out, f"{puzzle.out}[{index}] is written, but {puzzle.out} has {elements}. Guard the write."
    return out, ""


def _compare(puzzle: Puzzle, actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], events: list[Event]) -> str:
    bits = np.ascontiguousarray(actual).view(np.uint32).reshape(actual.shape)
    unwritten = np.argwhere(bits == _fill(puzzle))
    if len(unwritten) and not puzzle.zeroed:
        examples = ", ".join(_element(puzzle.out, i) for i in unwritten[:_SHOWN])
        rest = f" and {len(unwritten) - _SHOWN} more" if len(unwritten) > _SHOWN else ""
        message = f"{examples}{rest} never written: {len(unwritten):,} of {quantity(actual.size, 'element')}."
        return f"{message} Which thread should write them?"
    if actual.dtype.kind == "f":
        close = np.isclose(actual, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    else:
        close = actual == expected
    race = _find_race(puzzle, events)
    if close.all():
        return race
    first = np.argwhere(~close)[0]
    index = tuple(int(i) for i in first)
    wrong = int((~close).sum())
    message = f"{_element(puzzle.out, first)} is {_number(actual[index])}, expected {_number(expected[index])}"
    message += f" ({wrong:,} of {quantity(actual.size, 'element')} {'is' if wrong == 1 else 'are'} wrong)."
    return f"{message}\n{race}" if race else message


def _find_race(puzzle: Puzzle, events: list[Event]) -> str:
    """Return a message about an element that two threads wrote, since chance decides which write is last."""
    if not puzzle.once:
        return ""
    writers: dict[int, set[int]] = {}
    for event in events:
        if event.written and event.buffer == puzzle.out:
            writers.setdefault(event.index, set()).add(event.thread)
    for index in sorted(writers):
        if len(writers[index]) > 1:
            names = ", ".join(map(str, sorted(writers[index])[:_SHOWN]))
            names += ", …" if len(writers[index]) > _SHOWN else ""
            return (
                f"{puzzle.out}[{index}] is written by {len(writers[index])} threads ({names}): "
                "which write is last depends on chance. Let one thread write each element."
            )
    return ""


def _number(value: np.generic) -> str:
    return str(value) if np.issubdtype(value.dtype, np.integer) else f"{value:.6g}"


def _element(name: str, index: Any) -> str:
    return f"{name}[{', '.join(map(str, index))}]"
