"""Write a call of a kernel as Python, to be copied: with the arrays' names, and a value for each scalar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metalnb.call.argument_binding import OPTIONS
from metalnb.display.argument_names import named_argument, variable_of
from metalnb.timing.units import trim_grid

from .bound_call import BoundArgument, BoundCall

__all__ = ["call_text"]


def call_text(call: BoundCall, values: Sequence[Any], *, grid: Any = None, threadgroup: Any = None) -> str:
    """Return a call as Python; ``values`` are its arguments in buffer order."""
    pairs = [
        (part.param.name, _argument_text(part, value)) for part, value in zip(call.parts, values, strict=True)
        if part.param.name not in call.left_out
    ]  # fmt: skip
    by_position = max((i for i, (name, _) in enumerate(pairs, 1) if name in OPTIONS), default=0)
    arguments = [text if i < by_position else named_argument(name, text) for i, (name, text) in enumerate(pairs)]
    arguments.append(f"grid={_extents(grid or call.grid)}")
    group = threadgroup or call.threadgroup
    arguments += [f"threadgroup={_extents(group)}"] if group else []
    shapes = {
        part.param.name: BoundArgument(part.param, value, part.inner).shape
        for part, value in zip(call.parts, values, strict=True) if part.param.name in (call.shapes or {})
    }  # fmt: skip
    arguments += [f"shapes={shapes!r}"] if shapes else []
    arguments += [f"threadgroup_memory={dict(call.memory)!r}"] if call.memory else []
    arguments += [f"timeout={call.timeout!r}"] if call.timeout is not None else []
    results = ", ".join(map(variable_of, call.left_out))
    return f"{f'{results} = ' if results else ''}{call.kernel.signature.name}({', '.join(arguments)})"


def _argument_text(part: BoundArgument, value: Any) -> str:
    if part.param.writable or part.is_array or part.pointees:
        return variable_of(part.param.name)
    layout = part.param.type.layout
    width = layout.shape[-1] if layout is not None and layout.shape and part.inner else None
    return _value_text(np.asarray(value), width)


def _extents(extents: Any) -> str:
    if isinstance(extents, int):
        return str(extents)
    sizes = trim_grid(tuple(extents))
    return str(sizes[0]) if len(sizes) == 1 else str(tuple(sizes))


def _value_text(value: Any, width: int | None = None) -> str:
    """Return the first ``width`` components of a value as Python; the other components are padding."""
    if value.dtype.names:
        return "{" + ", ".join(f"{name!r}: {_value_text(value[name])}" for name in value.dtype.names) + "}"
    if value.ndim:
        parts = [_value_text(v, width) for v in (value[:width] if value.ndim == 1 else value)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    number = value[()]
    if value.dtype.kind == "f" and not np.isfinite(number):
        return f"float('{number}')"
    return str(number) if value.dtype.kind == "f" else repr(number.item())  # 0.1, not 0.1000…1
