"""Copy the arrays that a kernel writes, to detect writes past their ends and different results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..bound_call import BoundArgument, BoundCall

__all__ = ["GuardedArguments", "differs"]

_MARK = 0xA5
_MAX_GUARD = 1 << 26  # most guard bytes after an array
_MIN_GUARD = 1 << 12
_PART = 1 << 19  # elements compared at once
# Allowed difference of results, relative to the largest: a different order of summation causes less, a mistake far
# more.
_TOLERANCE = {"float16": 0.02, "bfloat16": 0.05, "float32": 1e-3}


class GuardedArguments:
    """The arguments of a call, with guard memory after each array that the kernel writes.

    A kernel that relies on a certain threadgroup size (because it writes one result per threadgroup, say) may write
    past the ends of its arrays with another size. It then writes to the guard memory, which has room for one element
    per thread of the grid.

    An engine that copies its arguments does not copy the guard memory; on such an engine only the results show a
    mistake.
    """

    def __init__(self, call: BoundCall) -> None:
        self.call = call
        threads = math.prod(call.grid)
        self._written = [(i, p) for i, p in enumerate(call.parts) if p.is_array and p.param.writable]
        self.values: list[Any] = [p.value for p in call.parts]
        self._guards: list[tuple[BoundArgument, Any]] = []
        for i, part in self._written:
            nbytes = part.value.nbytes
            guard_bytes = max(_MIN_GUARD, min(_MAX_GUARD, threads * part.value.itemsize * math.prod(part.inner)))
            memory = np.empty(nbytes + guard_bytes, np.uint8)
            memory[nbytes:] = _MARK
            self.values[i] = memory[:nbytes].view(part.value.dtype).reshape(part.value.shape)
            self._guards.append((part, memory[nbytes:]))
        self.reset()

    def reset(self) -> None:
        """Restore the original contents."""
        for i, part in self._written:
            self.values[i][...] = part.value
        self.call.restore_pointees()

    def find_overrun(self) -> str:
        """Return the name of an array that was written past its end since the last call; empty if there is none."""
        name = ""
        for part, memory in self._guards:
            if not (memory == _MARK).all():
                name = name or part.param.name
                memory[:] = _MARK
        return name

    def results(self) -> dict[str, Any]:
        """Return copies of the kernel's outputs."""
        return {part.param.name: self.values[i].copy() for i, part in self._written}

    def find_difference(
        self, expected: Mapping[str, Any], *, same_shapes: bool = True, on_step: Callable[[], object] = lambda: None
    ) -> str:
        """Return the name of an array with unexpected contents; empty if there is none.

        Only arrays named in ``expected`` are compared; without ``same_shapes``, arrays of another shape are skipped.
        ``on_step`` is called between parts of large arrays, and may raise.
        """
        for i, part in self._written:
            result, expected_result = self.values[i], expected.get(part.param.name)
            if expected_result is None or (not same_shapes and np.shape(expected_result) != result.shape):
                continue
            if np.size(expected_result) != result.size or differs(
                result, np.asarray(expected_result, result.dtype).reshape(result.shape), on_step
            ):  # fmt: skip
                return part.param.name
        return ""


def differs(result: Any, expected: Any, on_step: Callable[[], object] = lambda: None) -> bool:
    """Return whether results differ by more than a reordering of operations explains; integers must be equal."""
    if result.dtype.names:
        return any(differs(result[name], expected[name], on_step) for name in result.dtype.names)
    tolerance = _TOLERANCE.get(result.dtype.name, 0.0)
    if not tolerance:
        return not np.array_equal(result, expected)
    flat, wants = result.reshape(-1), expected.reshape(-1)
    pairs = [(flat[i : i + _PART], wants[i : i + _PART]) for i in range(0, flat.size, _PART)]
    largest = 0.0
    for _, values in pairs:
        on_step()
        b = values.astype(np.float64)
        largest = max(largest, float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))))
    for actual, values in pairs:
        on_step()
        a, b = actual.astype(np.float64), values.astype(np.float64)
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance * largest, equal_nan=True):
            return True
    return False
