"""Compare outputs with a reference: where they differ, by how much, and which thread wrote the wrong elements."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from metalnb.call.kernel import Dispatch, Kernel
from metalnb.errors import ArgumentError, MetalnbError

from .access_report import Difference, Validation
from .validated_call import Outcome, Watcher

__all__ = ["compared", "named_arrays"]

_RELATIVE = {2: (1e-2, 1e-3), 4: (1e-5, 1e-6), 8: (1e-12, 1e-14)}
_OPTIONS = ("grid", "groups", "threadgroup", "shapes", "threadgroup_memory", "timeout")
Arrays = dict[str, Any]


def compared(
    kernel: Kernel, args: tuple[Any, ...], call: Mapping[str, Any], expected: Any, seconds: float,
    tolerances: tuple[float | None, float | None], run: Watcher,
) -> Validation:  # fmt: skip
    """Run a validated call, and compare its outputs with the expected ones; parameters as for `validate`.

    `tolerances` is its ``rtol`` and ``atol``, and ``run`` makes a call watched.

    Raises
    ------
    ArgumentError
        If the expected values do not fit the outputs.
    """
    options = {k: v for k, v in call.items() if k in _OPTIONS}
    given = _given(kernel, args, call)
    dispatch = kernel.rehearse(*args, **call)
    found, judge = run(dispatch, seconds)
    wanted = _wanted(kernel, expected, given, _outputs(dispatch, given))
    differences = list(_differences(kernel, dispatch, given, judge, wanted, tolerances, found.left_out))
    findings, tried = list(found.findings), []
    for case, smaller in () if differences or not callable(expected) else _smaller(dispatch, given, options):
        try:
            again = kernel.prepare(**smaller, **options)
            other, own = run(again, seconds / 4)
            right = _wanted(kernel, expected, smaller, _outputs(again, smaller))
            worse = [*_differences(kernel, again, smaller, own, right, tolerances, other.left_out)]
        except MetalnbError:
            continue  # does not fit such a size
        tried.append(case)
        if not differences:
            differences = [dataclasses.replace(d, case=case) for d in worse]
        known = {(f.kind, f.line, f.name) for f in findings}
        new = [f for f in other.findings if f.is_fault and (f.kind, f.line, f.name) not in known]
        findings += [dataclasses.replace(f, case=case) for f in new]
    findings.sort(key=lambda f: not f.is_fault)
    return dataclasses.replace(
        found, findings=tuple(findings), compared=tuple(wanted), differences=tuple(differences), tried=tuple(tried),
    )  # fmt: skip


def named_arrays(dispatch: Dispatch, args: Sequence[Any], call: Mapping[str, Any]) -> Arrays:
    """Return a call's arguments, and the outputs that it allocated, by the parameters' names."""
    return {**_given(dispatch.kernel, args, call), **dict(zip(dispatch.made, dispatch.outputs, strict=True))}


def _given(kernel: Kernel, args: Sequence[Any], call: Mapping[str, Any]) -> Arrays:
    names = [p.name for p in kernel.signature.buffers if not kernel.unit.is_absent(p)]
    return {**dict(zip(names, args, strict=False)), **{k: v for k, v in call.items() if k not in _OPTIONS}}


def _outputs(dispatch: Dispatch, given: Arrays) -> Arrays:
    """Return the arrays that the kernel may write, passed or allocated."""
    made = iter(dispatch.outputs)
    present = [p for p in dispatch.kernel.signature.buffers if not dispatch.kernel.unit.is_absent(p)]
    return {p.name: given[p.name] if p.name in given else next(made) for p in present if p.writable}


def _copy(value: Any) -> Any:
    return np.array(value) if hasattr(value, "shape") and np.shape(value) else value


def _wanted(kernel: Kernel, expected: Any, given: Arrays, outputs: Arrays) -> Arrays:
    """Return each output's expected values."""
    name = kernel.signature.name
    if callable(expected):
        known = {k: _copy(v) for k, v in {**outputs, **given}.items()}
        accepted = _accepted(expected)
        if accepted is not None and set(accepted) <= known.keys():
            found = expected(**{k: known[k] for k in accepted})
        else:
            found = expected(*(known[k] for k in given))
        if found is None:
            return {k: known[k] for k in outputs}
    else:
        found = expected
    if isinstance(found, Mapping):
        unknown = [k for k in found if k not in outputs]
        if unknown:
            message = f"{name}: expected: no output {unknown[0]!r}; there are {', '.join(outputs)}."
            raise ArgumentError(message)
        return dict(found)
    each = list(found) if isinstance(found, (tuple, list)) and len(outputs) > 1 else [found]
    if len(each) != len(outputs):
        message = (
            f"{name}: expected: {len(outputs)} outputs ({', '.join(outputs)}); got {len(each)}. "
            "Give an array for each, or a dict by name."
        )
        raise ArgumentError(message)
    return dict(zip(outputs, each, strict=True))


def _accepted(function: Any) -> list[str] | None:
    """Return the names of a function's parameters; None if they do not determine what to pass."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = {p.kind for p in parameters}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY}:
        return None
    return [p.name for p in parameters if p.default is inspect.Parameter.empty and p.kind != p.VAR_KEYWORD]


def _differences(
    kernel: Kernel, dispatch: Dispatch, given: Arrays, judge: Outcome, wanted: Arrays,
    tolerances: tuple[float | None, float | None], left_out: int,
) -> Iterator[Difference]:  # fmt: skip
    outputs = _outputs(dispatch, given)
    for name, value in wanted.items():
        contents, output = judge.contents(name), outputs[name]
        kind = np.dtype(output.dtype)
        if contents.size != kind.itemsize * int(np.prod(output.shape)):
            message = f"{kernel.signature.name}: {name!r} cannot be compared: its memory is not the array's alone."
            raise ArgumentError(message)
        made = contents.view(kind).reshape(output.shape)
        right = np.asarray(value)
        if right.shape != made.shape:
            message = f"{kernel.signature.name}: {name!r} has shape {made.shape}; expected has shape {right.shape}."
            raise ArgumentError(message)
        wrong = ~_close(made, right, *tolerances)
        none, twice = judge.written(name, made.shape, kind.itemsize)
        if left_out:
            wrong &= ~none  # perhaps by threadgroups that were not run
        if not wrong.any():
            continue
        first = np.unravel_index(int(wrong.argmax()), wrong.shape)
        flat = int(np.ravel_multi_index(first, wrong.shape)) if wrong.shape else 0
        thread, group, place = judge.writer(name, flat * kind.itemsize)
        yield Difference(
            name, wrong, none, twice, tuple(int(i) for i in first), made[first].item(), right[first].item(),
            _ulp(made[wrong], right[wrong]), thread, group, judge.place(place)[0],
        )  # fmt: skip


def _close(made: Any, right: Any, rtol: float | None, atol: float | None) -> np.ndarray[Any, np.dtype[np.bool]]:
    if made.dtype.kind not in "fV" and rtol is None and atol is None:
        return np.asarray(made == right)
    if made.dtype.kind == "V" and made.dtype.names:
        return np.asarray(made == right.astype(made.dtype))
    relative, beside = _RELATIVE.get(made.dtype.itemsize, _RELATIVE[4])
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.isclose(
            made.astype(np.float64), right.astype(np.float64), rtol=relative if rtol is None else rtol,
            atol=beside if atol is None else atol, equal_nan=True,
        )  # fmt: skip
    return np.asarray(close)


def _ulp(made: Any, right: Any) -> float:
    """Return the largest difference, in units in the last place of the expected value."""
    if made.dtype.kind != "f":
        return float("nan")
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(right.astype(made.dtype))).astype(np.float64)
        off = np.abs(made.astype(np.float64) - right.astype(np.float64)) / unit
    return float(np.nanmax(off)) if np.isfinite(off).any() else float("inf")


def _smaller(dispatch: Dispatch, given: Arrays, options: Mapping[str, Any]) -> Iterator[tuple[str, Arrays]]:
    """Yield smaller calls of the same kernel, of sizes that the threadgroup does not divide.

    They can be made if the grid follows from the arrays' shapes: these are cut, and so is a number that is one of their
    sizes. Overlapping arrays are not cut, because a cut array is a copy.
    """
    if options.keys() & {"grid", "groups", "shapes"} or _overlap(given):
        return
    shape = tuple(n for n in reversed(dispatch.grid))
    shape = shape[next((i for i, n in enumerate(shape) if n > 1), len(shape) - 1) :]
    if any(n in shape for n in (0, 1)) or not any(np.shape(v) == shape for v in given.values()):
        return
    sides = dispatch.threadgroup[: len(shape)][::-1]
    less = tuple(_indivisible(n - 1, t) for n, t in zip(shape, sides, strict=True))
    few = tuple(min(m, t // 2 + 1) for m, t in zip(less, sides, strict=True))
    for each in dict.fromkeys((less, few, (1,) * len(shape))):
        cut = tuple(slice(0, n) for n in each)
        sizes = dict(zip(shape, each, strict=True)) | {int(np.prod(shape)): int(np.prod(each))}
        smaller: Arrays = {}
        for name, value in given.items():
            if np.shape(value) == shape:
                smaller[name] = np.ascontiguousarray(np.asarray(value)[cut])
            elif isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool)):
                smaller[name] = type(value)(sizes.get(int(value), value))
            else:
                smaller[name] = value
        yield " × ".join(str(n) for n in reversed(each)), smaller


def _overlap(given: Arrays) -> bool:
    arrays = [np.asarray(v) for v in given.values() if np.shape(v)]
    return any(np.may_share_memory(a, b) for a, b in itertools.combinations(arrays, 2))


def _indivisible(n: int, side: int) -> int:
    """Return the largest size up to ``n`` that is not a multiple of a side, or ``n``."""
    return n - 1 if side > 1 and n > 1 and n % side == 0 else max(1, n)
