"""Find the scalars of a call, including those inside vectors and structs, each with a range for a slider."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalnb.errors import ArgumentError

from .bound_call import BoundArgument, BoundCall

__all__ = ["Knob", "apply_settings", "free_knobs", "knobs", "lengths", "set_ranges"]

_MAX_KNOBS = 16  # at most this many components of a value get a knob
_LARGEST_EXACT = 2**53  # sliders use JavaScript's numbers, which are exact up to here
_SLIDER_STEPS = 10_000
_SMALLEST_LENGTH = 8  # a whole number from here on that equals an array's length is assumed to be that length


@dataclass(frozen=True, slots=True)
class Knob:
    """One number of a call.

    Attributes
    ----------
    label : str
        ``a``, ``c.x``, ``params.scale``.
    part : int
        The position of its argument in the call.
    dtype : numpy.dtype
    offset : int
        The offset of the number in the argument, in bytes.
    value : bool, int or float
        The value that was passed.
    low, high : int or float
        The range of its slider.
    """

    label: str
    part: int
    dtype: np.dtype[Any]
    offset: int
    value: Any
    low: float = 0
    high: float = 0

    @property
    def step(self) -> float:
        """The step of its slider."""
        if self.dtype.kind in "iub":
            return 1
        exponent = math.floor(math.log10((self.high - self.low) / _SLIDER_STEPS or 1))
        return float(10.0**exponent)


def knobs(call: BoundCall) -> list[Knob]:
    """Return a call's scalars, each with a range around its value."""
    result = []
    for i, part in enumerate(call.parts):
        if part.is_array or part.param.writable:
            continue
        leaves = list(_leaves(part))
        numbers = [abs(v) for _, dtype, _, v in leaves if dtype.kind == "f" and math.isfinite(v)]
        reach = max(numbers, default=0) or 1.0
        for label, dtype, offset, value in leaves:
            low, high = _range(dtype, value, reach, is_alone=len(leaves) == 1)
            result.append(Knob(label, i, dtype, offset, value, low, high))
    return result


def lengths(call: BoundCall) -> set[int]:
    """Return all axes' lengths and all arrays' sizes; a whole number that equals one of these is not free."""
    sizes = set()
    for part in call.parts:
        if part.is_array:
            sizes |= {*part.shape, part.value.size, math.prod(part.shape)}
    return {n for n in (*sizes, *call.grid, math.prod(call.grid)) if n >= _SMALLEST_LENGTH}


def free_knobs(call: BoundCall) -> list[Knob]:
    """Return the scalars that can change without making an array too short, as far as metalnb can tell."""
    tied = lengths(call)
    return [k for k in knobs(call) if k.dtype.kind not in "iu" or k.value not in tied]


def set_ranges(caller: str, scalars: Sequence[Knob], ranges: Mapping[str, Any] | None) -> list[Knob]:
    """Set the ranges that a caller requests; None removes a knob.

    Raises
    ------
    ArgumentError
        If a label is unknown, or a range is invalid.
    """
    by_label = {k.label: k for k in scalars}
    for label, pair in (ranges or {}).items():
        if label not in by_label:
            names = ", ".join(k.label for k in scalars) or "none"
            raise ArgumentError(f"{caller}: ranges[{label!r}] is not a scalar of the kernel; it has: {names}.")
        if pair is None:
            del by_label[label]
            continue
        try:
            with np.errstate(over="ignore"):
                low, high = (by_label[label].dtype.type(n).item() for n in pair)
        except (TypeError, ValueError, OverflowError):
            low = high = 0
        if not -math.inf < low < high < math.inf:
            message = f"{caller}: ranges[{label!r}] is (low, high), or None for no slider; got {pair!r}."
            raise ArgumentError(message)
        k = by_label[label]
        by_label[label] = Knob(k.label, k.part, k.dtype, k.offset, k.value, min(low, k.value), max(high, k.value))
    return list(by_label.values())


def apply_settings(parts: Sequence[BoundArgument], settings: Mapping[Knob, Any], values: list[Any]) -> list[Any]:
    """Return the arguments of a call with settings applied; the arguments that change are copied."""
    values = list(values)
    fresh: dict[int, bytearray] = {}
    for knob, setting in settings.items():
        memory = fresh.setdefault(knob.part, bytearray(np.ascontiguousarray(values[knob.part]).tobytes()))
        size = knob.dtype.itemsize
        memory[knob.offset : knob.offset + size] = np.array(setting, knob.dtype).tobytes()
    for i, memory in fresh.items():
        part = parts[i]
        values[i] = np.frombuffer(memory, part.value.dtype).reshape(part.inner)
    return values


def _leaves(part: BoundArgument) -> Iterator[tuple[str, np.dtype[Any], int, Any]]:
    """Yield the numbers of a value: label, dtype, offset, value."""
    memory = part.value.tobytes()
    name, layout = part.param.name, part.param.type.layout
    if layout is None:
        places = list(_fields(part.value.dtype, name, 0))
    else:
        width = (layout.shape or (1,))[-1] if part.inner else 0
        places = list(_components(part.value.dtype, part.inner, name, 0, width))
    for label, dtype, offset in places[:_MAX_KNOBS]:
        number = np.frombuffer(memory, dtype, 1, offset)[0]
        if dtype.kind in "fiub" and math.isfinite(number) and offset not in part.pointers:
            yield label, dtype, offset, float(str(number)) if dtype.kind == "f" else number.item()  # 0.1, not 0.1000…1


def _fields(dtype: np.dtype[Any], name: str, start: int) -> Iterator[tuple[str, np.dtype[Any], int]]:
    for field, (inner, offset, *_) in (dtype.fields or {}).items():
        label = f"{name}.{field}"
        if inner.fields:
            yield from _fields(inner, label, start + offset)
        elif inner.subdtype:
            base, shape = inner.subdtype
            yield from _components(base, shape, label, start + offset, shape[-1]) if not base.fields else ()
        else:
            yield label, inner, start + offset


def _components(
    dtype: np.dtype[Any], shape: tuple[int, ...], name: str, start: int, width: int,
) -> Iterator[tuple[str, np.dtype[Any], int]]:  # fmt: skip
    if not shape:
        yield name, dtype, start
        return
    for i, index in enumerate(np.ndindex(*shape)):
        if index[-1] >= width:
            continue  # padding: the fourth component of a float3
        is_vector = len(shape) == 1 and width <= 4
        label = f"{name}.{'xyzw'[index[0]]}" if is_vector else name + "".join(f"[{n}]" for n in index)
        yield label, dtype, start + i * dtype.itemsize


def _range(dtype: np.dtype[Any], value: Any, reach: float, *, is_alone: bool) -> tuple[float, float]:
    """Choose a range: up to twice the value; symmetric around zero for the numbers of vectors and structs."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        limit = min(np.iinfo(dtype).max, _LARGEST_EXACT)
        low = 0 if value == 0 else 1 if value > 0 else 2 * value
        return max(low, int(np.iinfo(dtype).min), -_LARGEST_EXACT), max(low + 1, min(limit, max(2 * value, 10)))
    largest = float(np.finfo(dtype).max)
    if not is_alone:
        return max(-2 * reach, -largest), min(2 * reach, largest)
    return (0, min(2 * value, largest)) if value > 0 else (max(2 * value, -largest), 0) if value < 0 else (-1, 1)
