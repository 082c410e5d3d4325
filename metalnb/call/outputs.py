"""Allocate the buffers that a call leaves out: in the shapes that it passes for them, otherwise in the grid's shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metalnb.errors import ArgumentError
from metalnb.msl.signature import Signature

from .argument_binding import Memory, Slot
from .engine_arrays import Resident
from .grids import Shape, check_shape

__all__ = ["make_outputs", "refuse_options", "refuse_shapes"]


def make_outputs(
    slots: Sequence[Slot],
    buffers: list[Memory | None],
    shape: Shape,
    shapes: Mapping[str, Any],
    engine_arrays: tuple[Resident, ...],
) -> list[Any]:
    """Allocate the outputs of a call and bind them.

    Parameters
    ----------
    slots : sequence of Slot
    buffers : list
        The memory for each slot. A slot whose buffer was left out is None and is filled in here.
    shape : tuple of int
        The shape, in elements, of the outputs that ``shapes`` does not name.
    shapes : mapping of str to shape
    engine_arrays : tuple of Resident
        The call's arrays on the engine. If there are any, the outputs, except for records, are such arrays, too.

    Returns
    -------
    list of numpy.ndarray or Array
    """
    outputs: list[Any] = []
    left_out = []
    for i, slot in enumerate(slots):
        if buffers[i] is None:
            name = slot.param.name
            left_out.append(name)
            output_shape = check_shape(slot.kernel, name, shapes[name]) if name in shapes else shape
            if slot.param.reference and name in shapes and math.prod(output_shape) != 1:
                message = f"{slot.label}, one element; got shapes[{name!r}]={shapes[name]!r}. Leave it out."
                raise ArgumentError(message)
            neighbor = None if slot.dtype.names else next(iter(engine_arrays), None)
            output, buffers[i] = _make(slot, output_shape, neighbor)
            outputs.append(output)
    refuse_shapes(slots, shapes, left_out)
    return outputs


def _make(slot: Slot, shape: Shape, neighbor: Resident | None) -> tuple[Any, Memory]:
    """Allocate one output, on the engine of `neighbor` or in NumPy's memory; return it and its memory."""
    full_shape = slot.output_shape(shape)
    try:
        if neighbor is None:
            array = np.zeros(full_shape, slot.dtype)
            return array, array
        resident = neighbor.__metal_zeros__(full_shape, slot.dtype)
        return resident, resident.__metal_memory__()
    except (ValueError, MemoryError) as error:
        nbytes = math.prod(full_shape) * slot.dtype.itemsize
        reason = f": {error}".rstrip(": .") if type(error) is MemoryError else ""  # an engine's: NumPy's is a subclass
        message = f"no memory for an output of shape {shape} ({nbytes:,} bytes){reason}. Pass a smaller shape."
        raise ArgumentError(f"{slot.label}; {message}") from None


def refuse_options(signature: Signature, shapes: Any, memory: Any) -> None:
    """Refuse values such as ``shapes=3`` or ``threadgroup_memory=5``: both options map parameter names to values.

    Raises
    ------
    ArgumentError
    """
    for option, value in (("shapes", shapes), ("threadgroup_memory", memory)):
        if value is None or isinstance(value, Mapping):
            continue
        if option == "shapes":
            name, example = next((p.name for p in signature.buffers if p.writable), "y"), "(4, 4)"
        else:
            name, example = next((p.name for p in signature.threadgroup), "tile"), "1024"
        message = f"{signature.name}: {option} is a mapping by parameter, like {{{name!r}: {example}}}; got {value!r}."
        raise ArgumentError(message)


def refuse_shapes(slots: Sequence[Slot], shapes: Mapping[str, Any], left_out: Sequence[str] = ()) -> None:
    """Refuse a shape for a buffer that the call passes.

    Raises
    ------
    ArgumentError
    """
    for name in shapes:
        if name not in left_out:
            names = ", ".join(sorted(left_out)) or "none"
            message = f"shapes[{name!r}] must name a buffer that was left out of the call (left out: {names})."
            raise ArgumentError(f"{slots[0].kernel if slots else 'kernel'}: {message}")
