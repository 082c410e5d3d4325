"""Structs with pointers (argument buffers, MSL 2.13), for which a caller passes arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from metalnb.engine.base import Pointed
from metalnb.errors import ArgumentError
from metalnb.msl.signature import Reflection, Type

from .engine_arrays import Resident, is_resident

__all__ = ["address", "arrays_of", "holds_pointers", "with_pointers"]


def holds_pointers(kind: Type, reflection: Reflection) -> bool:
    """Return whether a struct, or a struct inside it, has a pointer."""
    record = reflection.struct(kind.name)
    if record is None:
        return False
    return any(f.type.name == "pointer" or holds_pointers(f.type, reflection) for f in record.fields)


def arrays_of(value: Any) -> Iterator[Resident]:
    """Yield the arrays on an engine among a struct's fields."""
    if is_resident(value):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from arrays_of(inner)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for member in dataclasses.fields(value):
            yield from arrays_of(getattr(value, member.name))


def address(value: Any, label: str) -> int:
    """Return what a struct stores for an array: the device address of its elements.

    Raises
    ------
    ArgumentError
        Unless the value is an array on an engine that supports pointers.
    """
    if not is_resident(value):
        message = f"{label}: it takes an array that lives on engine 'metal' or 'cpu'; got {type(value).__name__}"
        raise ArgumentError(f"{message}. Pass mnb.array(…), or make the pointer a parameter.")
    engine: Any = value.engine
    if not engine.caps.pointers:
        message = f"{label}: engine '{engine.name}' has no argument buffers: make the pointer a parameter"
        raise ArgumentError(f"{message}, or run the cell on engine 'metal' or 'cpu'.")
    memory = value.__metal_memory__()
    if not memory.flags.c_contiguous:
        raise ArgumentError(f"{label}; got an array that is not C-contiguous, shape {memory.shape}. Pass a copy.")
    try:
        device_address: int = engine.address(memory)
    except ArgumentError as error:
        raise ArgumentError(f"{label}: {error}") from error
    return device_address


def with_pointers(data: bytes, value: Any) -> Pointed:
    """Return a struct's bytes, and the memory that its addresses point to."""
    return Pointed(data, tuple(array.__metal_memory__() for array in arrays_of(value)))
