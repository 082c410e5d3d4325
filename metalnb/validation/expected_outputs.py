"""Compare outputs with a reference: where they differ, by how much, and which thread wrote the wrong elements."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from metalnb.call.argument_binding import OPTIONS
from metalnb.call.kernel import Dispatch, Kernel
from metalnb.errors import ArgumentError, MetalnbError
from metalnb.plurals import quantity

from .access_report import Difference, Validation
from .judgment import has_padding
from .validated_call import Outcome, Watcher

__all__ = ["compare_outputs", "named_arrays"]

_RELATIVE = {2: (1e-2, 1e-3), 4: (1e-5, 1e-6), 8: (1e-12, 1e-14)}
Arrays = dict[str, Any]


def compare_outputs(
    kernel: Kernel, args: tuple[Any, ...], call: Mapping[str, Any], expected: Any, seconds: float,
    tolerances: tuple[float | None, float | None], run: Watcher,
) -> Validation:  # fmt: skip
    """Run a validated call, and compare its outputs with the expected ones; parameters as for `validate`.

    ``tolerances`` holds its ``rtol`` and ``atol``, and ``run`` repeats a call with its accesses watched.

    Raises
    ------
    ArgumentError
        If the expected values do not fit the outputs.
    """
    options = {k: v for k, v in call.items() if k in OPTIONS}
    inputs = _inputs(kernel, args, call)
    dispatch = kernel.rehearse(*args, **call)
    report, judge = run(dispatch, seconds)
    results = _expected_results(kernel, expected, inputs, _outputs(dispatch, inputs))
    differences = list(_differences(kernel, dispatch, inputs, judge, results, tolerances, report.left_out))
    findings, cases = list(report.findings), []
    for case, smaller in () if differences or not callable(expected) else _smaller_calls(dispatch, inputs, options):
        try:
            smaller_call = kernel.prepare(**smaller, **options)
            smaller_report, smaller_judge = run(smaller_call, seconds / 4)
            smaller_results = _expected_results(kernel, expected, smaller, _outputs(smaller_call, smaller))
            smaller_differences = [*_differences(
                kernel, smaller_call, smaller, smaller_judge, smaller_results, tolerances, smaller_report.left_out,
            )]  # fmt: skip
        except MetalnbError:
            continue  # the call does not fit this size
        cases.append(case)
        if not differences:
            differences = [dataclasses.replace(d, case=case) for d in smaller_differences]
        kinds = {(f.kind, f.line, f.name) for f in findings}
        new_faults = [f for f in smaller_report.findings if f.is_fault and (f.kind, f.line, f.name) not in kinds]
        findings += [dataclasses.replace(f, case=case) for f in new_faults]
    findings.sort(key=lambda f: not f.is_fault)
    return dataclasses.replace(
        report, findings=tuple(findings), compared=tuple(results), differences=tuple(differences), tried=tuple(cases),
    )  # fmt: skip


def named_arrays(dispatch: Dispatch, args: Sequence[Any], call: Mapping[str, Any]) -> Arrays:
    """Return a call's arguments, and the outputs that it allocated, by the parameters' names."""
    return {**_inputs(dispatch.kernel, args, call), **dict(zip(dispatch.output_names, dispatch.outputs, strict=True))}


def _inputs(kernel: Kernel, args: Sequence[Any], call: Mapping[str, Any]) -> Arrays:
    parameters = [p.name for p in kernel.signature.buffers if not kernel.unit.is_absent(p)]
    return {**dict(zip(parameters, args, strict=False)), **{k: v for k, v in call.items() if k not in OPTIONS}}


def _outputs(dispatch: Dispatch, inputs: Arrays) -> Arrays:
    """Return the arrays that the kernel may write, passed or allocated."""
    allocated = iter(dispatch.outputs)
    present = [p for p in dispatch.kernel.signature.buffers if not dispatch.kernel.unit.is_absent(p)]
    return {p.name: inputs[p.name] if p.name in inputs else next(allocated) for p in present if p.writable}


def _copy(value: Any) -> Any:
    return np.array(value) if hasattr(value, "shape") and np.shape(value) else value


def _expected_results(kernel: Kernel, expected: Any, inputs: Arrays, outputs: Arrays) -> Arrays:
    """Return each output's expected values."""
    name = kernel.signature.name
    if callable(expected):
        arguments = {k: _copy(v) for k, v in {**outputs, **inputs}.items()}
        parameters = _parameter_names(expected)
        if parameters is not None and set(parameters) <= arguments.keys():
            result = expected(**{k: arguments[k] for k in parameters})
        else:
            result = expected(*(arguments[k] for k in inputs))
        if result is None:
            return {k: arguments[k] for k in outputs}
    else:
        result = expected
    if isinstance(result, Mapping):
        unknown = [k for k in result if k not in outputs]
        if unknown:
            message = f"{name}: expected: no output {unknown[0]!r}; there are {', '.join(outputs)}."
            raise ArgumentError(message)
        return dict(result)
    results = list(result) if isinstance(result, (tuple, list)) and len(outputs) > 1 else [result]
    if len(results) != len(outputs):
        message = (
            f"{name}: expected= must have {quantity(len(outputs), 'output')} ({', '.join(outputs)}); "
            f"got {len(results)}. Pass an array for each, or a dict by name."
        )
        raise ArgumentError(message)
    return dict(zip(outputs, results, strict=True))


def _parameter_names(function: Any) -> list[str] | None:
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
    kernel: Kernel, dispatch: Dispatch, inputs: Arrays, judge: Outcome, results: Arrays,
    tolerances: tuple[float | None, float | None], left_out: int,
) -> Iterator[Difference]:  # fmt: skip
    outputs = _outputs(dispatch, inputs)
    for name, value in results.items():
        contents, output = judge.contents(name), outputs[name]
        kind = np.dtype(output.dtype)
        if contents.size != kind.itemsize * int(np.prod(output.shape)):
            message = f"{kernel.signature.name}: {name!r} cannot be compared: its memory is not the array's alone."
            raise ArgumentError(message)
        actual = contents.view(kind).reshape(output.shape)
        expected_value = np.asarray(value)
        if expected_value.shape != actual.shape:
            shapes = f"{name!r} has shape {actual.shape}; expected has shape {expected_value.shape}"
            raise ArgumentError(f"{kernel.signature.name}: {shapes}.")
        wrong = ~_is_close(actual, expected_value, *tolerances)
        param = next(p for p in kernel.signature.params if p.name == name)
        if has_padding(param, kind.itemsize):
            wrong.flat[3::4] = False
        unwritten, twice = judge.written(name, actual.shape, kind.itemsize)
        if left_out:
            wrong &= ~unwritten  # threadgroups that did not run might have written them
        if not wrong.any():
            continue
        first = np.unravel_index(int(wrong.argmax()), wrong.shape)
        flat = int(np.ravel_multi_index(first, wrong.shape)) if wrong.shape else 0
        thread, group, location = judge.writer(name, flat * kind.itemsize)
        yield Difference(
            name=name, wrong=wrong, unwritten=unwritten, twice=twice, index=tuple(int(i) for i in first),
            got=actual[first].item(), expected=expected_value[first].item(),
            ulp=_ulp(actual[wrong], expected_value[wrong]), thread=thread, threadgroup=group,
            line=judge.location(location)[0],
        )  # fmt: skip


def _is_close(actual: Any, expected: Any, rtol: float | None, atol: float | None) -> np.ndarray[Any, np.dtype[np.bool]]:
    if actual.dtype.kind not in "fV" and rtol is None and atol is None:
        return np.asarray(actual == expected)
    if actual.dtype.kind == "V" and actual.dtype.names:
        return np.asarray(actual == expected.astype(actual.dtype))
    relative, absolute = _RELATIVE.get(actual.dtype.itemsize, _RELATIVE[4])
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.isclose(
            actual.astype(np.float64), expected.astype(np.float64), rtol=relative if rtol is None else rtol,
            atol=absolute if atol is None else atol, equal_nan=True,
        )  # fmt: skip
    return np.asarray(close)


def _ulp(actual: Any, expected: Any) -> float:
    """Return the largest difference, in units in the last place of the expected value."""
    if actual.dtype.kind != "f":
        return float("nan")
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(expected.astype(actual.dtype))).astype(np.float64)
        deviations = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) / unit
    return float(np.nanmax(deviations)) if np.isfinite(deviations).any() else float("inf")


def _smaller_calls(dispatch: Dispatch, inputs: Arrays, options: Mapping[str, Any]) -> Iterator[tuple[str, Arrays]]:
    """Yield smaller calls of the same kernel, of sizes that the threadgroup does not divide.

    A call can be made smaller if its grid follows from the arrays' shapes: the arrays are cut, and a number that is one
    of their sizes is reduced. Overlapping arrays are not cut, because a cut array is a copy.
    """
    if options.keys() & {"grid", "groups", "shapes"} or _overlap(inputs):
        return
    shape = tuple(n for n in reversed(dispatch.grid))
    shape = shape[next((i for i, n in enumerate(shape) if n > 1), len(shape) - 1) :]
    if any(n in shape for n in (0, 1)) or not any(np.shape(v) == shape for v in inputs.values()):
        return
    sides = dispatch.threadgroup[: len(shape)][::-1]
    slightly_smaller = tuple(_indivisible(n - 1, t) for n, t in zip(shape, sides, strict=True))
    one_group = tuple(min(m, t // 2 + 1) for m, t in zip(slightly_smaller, sides, strict=True))
    for extents in dict.fromkeys((slightly_smaller, one_group, (1,) * len(shape))):
        part = tuple(slice(0, n) for n in extents)
        sizes = dict(zip(shape, extents, strict=True)) | {int(np.prod(shape)): int(np.prod(extents))}
        smaller: Arrays = {}
        for name, value in inputs.items():
            if np.shape(value) == shape:
                smaller[name] = np.ascontiguousarray(np.asarray(value)[part])
            elif isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool)):
                smaller[name] = type(value)(sizes.get(int(value), value))
            else:
                smaller[name] = value
        yield " × ".join(str(n) for n in reversed(extents)), smaller


def _overlap(inputs: Arrays) -> bool:
    arrays = [np.asarray(v) for v in inputs.values() if np.shape(v)]
    return any(np.may_share_memory(a, b) for a, b in itertools.combinations(arrays, 2))


def _indivisible(n: int, side: int) -> int:
    """Return the largest size up to ``n`` that is not a multiple of a side; ``n`` if there is none."""
    return n - 1 if side > 1 and n > 1 and n % side == 0 else max(1, n)
