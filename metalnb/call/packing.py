"""Convert Python values to MSL's memory layout: dtypes of structs, and bytes of scalars, vectors and structs."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from metalnb.dtypes import Layout, is_masked, layout_of, numpy_dtype
from metalnb.errors import ArgumentError
from metalnb.msl.signature import Constant, Reflection, Struct, Type
from metalnb.plurals import quantity

from .engine_arrays import is_resident
from .struct_pointers import address

__all__ = ["check_constant", "describe", "pack", "scalar", "struct_dtype", "type_dtype"]


def type_dtype(kind: Type, reflection: Reflection, *, single: bool = False) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the component dtype of a type and the shape that one value of it has in NumPy.

    A 3-component vector keeps its unused fourth component, except with ``single``, for a field of a struct, whose
    offsets already include the padding.
    """
    layout = kind.layout
    if layout is not None:
        loose = single and not kind.extents and len(layout.shape) == 1
        return layout.dtype, kind.extents + (layout.shape if loose else layout.stride)
    record = reflection.struct(kind.name)
    if record is None:
        return np.dtype(np.uint64 if kind.name == "pointer" else np.uint8), kind.extents
    return struct_dtype(record, reflection), kind.extents


def struct_dtype(record: Struct, reflection: Reflection) -> np.dtype[np.void]:
    """Return the structured dtype of a struct, with the offsets and the size that the compiler uses."""
    formats = []
    for field in record.fields:
        dtype, shape = type_dtype(field.type, reflection, single=True)
        formats.append((dtype, shape) if shape else dtype)
    return np.dtype({
        "names": [f.name for f in record.fields],
        "formats": formats,
        "offsets": [f.offset for f in record.fields],
        "itemsize": record.size,
    })  # fmt: skip


def check_constant(constant: Constant, value: Any) -> Any:
    """Check a function constant's value against its type; the value of a vector becomes a tuple of components."""
    label = f"constants: {constant.name!r} [[function_constant({constant.index})]] is {constant.type}"
    name = constant.type.replace("bfloat", "float")  # the compiler rounds the value, so no NumPy dtype is needed
    layout = layout_of(name)
    if layout is None or not layout.shape:
        return scalar(name, value, label)[()].item()
    components = _components(Type(name, layout.size, layout.alignment), layout, value, label)
    return tuple(components[: layout.shape[0]].tolist())


# The largest finite value of each floating type, and the smallest value that rounds to infinity.
_LARGEST_VALUES = {
    "half": ("65504", 65520.0),
    "bfloat": ("3.3895314e+38", float.fromhex("0x1.ffp127")),
    "float": ("3.4028235e+38", float.fromhex("0x1.ffffffp127")),
}


def scalar(kind: str, value: Any, label: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Convert a Python or NumPy scalar to an array of one MSL scalar; refuse a value that does not fit.

    Raises
    ------
    ArgumentError
        If the value is not a number, has a fraction that an integer cannot represent, or is out of range.
    """
    dtype = numpy_dtype(kind)
    if is_resident(value):
        value = value.read()
    if isinstance(value, np.ndarray):
        if value.ndim:
            message = f"{label}; got {describe(value)}. Pass one number."
            raise ArgumentError(message)
        value = value[()]
    if isinstance(value, np.generic) and value.dtype.isbuiltin == 2 and value.dtype.kind in "Vf":
        value = float(value)  # a scalar of ml_dtypes, such as bfloat16: a Python float represents it exactly
    if not isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        needed = "a real number" if isinstance(value, (complex, np.complexfloating)) else "one number"
        message = f"{label}; got {describe(value)}. Pass {'True or False' if kind == 'bool' else needed}."
        raise ArgumentError(message)
    if kind == "bool":
        if value not in (0, 1):
            message = f"{label}; got {value!r}. Pass True or False."
            raise ArgumentError(message)
        return np.array(bool(value))
    if dtype.kind in "iu":
        return _integer(dtype, value, label)
    largest, overflow = _LARGEST_VALUES[kind]
    number = value if isinstance(value, int) else float(value)
    if abs(number) >= overflow and number not in (math.inf, -math.inf):
        message = f"{label}, which holds -{largest} to {largest}; got {_short_repr(value)}."
        raise ArgumentError(message)
    return np.array(float(number)).astype(dtype)


def _integer(dtype: np.dtype[Any], value: Any, label: str) -> np.ndarray[Any, np.dtype[Any]]:
    if isinstance(value, (float, np.floating)) and not float(value).is_integer():
        message = f"{label}; got {_short_repr(value)}. Pass a whole number."
        raise ArgumentError(message)
    number = int(value)
    info = np.iinfo(dtype)
    if not info.min <= number <= info.max:
        message = f"{label}, which holds {info.min} to {info.max}; got {_short_repr(value)}."
        raise ArgumentError(message)
    return np.array(number, dtype)


def pack(kind: Type, value: Any, label: str, reflection: Reflection) -> np.ndarray[Any, np.dtype[Any]]:
    """Pack one value of a type (an argument for ``constant T&``) into memory as the kernel sees it.

    Raises
    ------
    ArgumentError
        If the value does not fit the type. The message begins with ``label``, which names the kernel, the argument and
        its type.
    """
    layout = kind.layout
    if layout is not None and not layout.shape and not kind.extents:
        return scalar(layout.scalar, value, label)
    if layout is not None:
        return _components(kind, layout, value, label)
    record = reflection.struct(kind.name)
    if record is None:
        message = f"{label}: metalnb cannot make a '{kind}' from Python."
        raise ArgumentError(message)
    result = np.zeros(kind.extents, struct_dtype(record, reflection))
    is_record = isinstance(value, (np.ndarray, np.void)) and value.dtype == result.dtype
    if is_record and (value.shape == kind.extents if kind.extents else value.size == 1):
        return np.array(value).reshape(kind.extents)
    _fill_all(result, record, value, label, reflection)
    return result


def _components(kind: Type, layout: Layout, value: Any, label: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Pack a vector, a matrix or an array of them from a sequence of components."""
    shape = kind.extents + layout.shape
    numbers_given = np.asarray(value, object)  # integers stay integers, and `scalar` checks each component
    if numbers_given.shape != shape:
        numbers = quantity(shape[0], "number") if len(shape) == 1 else f"numbers of shape {shape}"
        message = f"{label}; got {describe(value)}. Pass {numbers}."
        raise ArgumentError(message)
    flat = [scalar(layout.scalar, v, label)[()] for v in numbers_given.ravel().tolist()]
    result = np.zeros(kind.extents + layout.stride, layout.dtype)
    result[tuple(slice(n) for n in shape)] = np.array(flat, layout.dtype).reshape(shape)
    return result


def _fill_all(target: Any, record: Struct, value: Any, label: str, reflection: Reflection, index: str = "") -> None:
    """Fill one record, or an array of records from nested sequences; ``index`` is the position in the array."""
    shape = target.shape
    inner = f"{label}: element {index} is {record.name}{''.join(f'[{n}]' for n in shape)}" if index else label
    if not shape:
        _fill(target, record, value, inner, reflection)
        return
    if isinstance(value, np.ndarray) and value.dtype == target.dtype and value.shape == shape:
        target[...] = value
        return
    if not _is_sequence(value) or len(value) != shape[0]:
        got = f"a {type(value).__name__} of {len(value)}" if isinstance(value, (list, tuple)) else describe(value)
        kinds = "lists" if len(shape) > 1 else "dicts, dataclasses or NumPy records"
        message = f"{inner}; got {got}. Pass a list of {shape[0]} {kinds}."
        raise ArgumentError(message)
    for i, item in enumerate(value):
        _fill_all(target[i], record, item, label, reflection, f"{index}[{i}]")


def _fill(target: Any, record: Struct, value: Any, label: str, reflection: Reflection) -> None:
    """Fill a record from a dict, a dataclass, or a NumPy record."""
    names = [f.name for f in record.fields]
    if record.name.startswith("array<") and _is_sequence(value) and getattr(value, "dtype", None) != target.dtype:
        value = {names[0]: value}  # an array<T, N> (MSL 2.12) is a struct of its elements
    values = _as_mapping(value)
    if values is None:
        example = ", ".join(f"'{n}': …" for n in names)
        message = f"{label}; got {describe(value)}. Pass a dict {{{example}}}, a dataclass or a NumPy record."
        raise ArgumentError(message)
    missing = [n for n in names if n not in values]
    for one, other in _unions(record):  # pass one of the two; a NumPy record has both, over the same bytes
        if one in values and other in values and not isinstance(value, (np.ndarray, np.void)):
            message = f"{label}; fields {one!r} and {other!r} share memory. Pass one of them."
            raise ArgumentError(message)
        if one in values or other in values:
            missing = [n for n in missing if n not in {one, other}]
    unknown = [str(n) for n in values if n not in names]
    if missing or unknown:
        are = "fields {} are" if len(missing) > 1 else "field {} is"
        parts = [f"{are.format(', '.join(map(repr, missing)))} missing"] if missing else []
        parts += [f"there is no field {', '.join(map(repr, unknown))}"] if unknown else []
        message = f"{label}; {' and '.join(parts)}; its fields are {', '.join(names)}."
        raise ArgumentError(message)
    for field in record.fields:
        if field.name not in values:
            continue
        inner = f"{label}: field '{field.name}' is {field.type}"
        struct = reflection.struct(field.type.name)
        if struct is not None:
            _fill_all(target[field.name], struct, values[field.name], inner, reflection)
            continue
        if field.type.name == "pointer":
            target[field.name] = address(values[field.name], inner)
            continue
        data = pack(field.type, values[field.name], inner, reflection)
        slot = target.dtype.fields[field.name][0].shape
        target[field.name] = data[tuple(slice(n) for n in slot)] if slot else data


@functools.cache
def _unions(record: Struct) -> tuple[tuple[str, str], ...]:
    """Return pairs of names of fields that share memory."""
    return tuple(
        (a.name, b.name) for a, b in itertools.combinations(record.fields, 2)
        if a.offset < b.offset + b.type.size and b.offset < a.offset + a.type.size
    )  # fmt: skip


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _as_mapping(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray) and value.dtype.names and value.size == 1:
        value = value.reshape(())[()]
    if isinstance(value, np.void) and value.dtype.names:
        return {n: value[n] for n in value.dtype.names}
    return None


def describe(value: Any) -> str:
    """Return a short description of an argument."""
    if isinstance(value, (np.ndarray, np.void)):
        kind = "records" if value.dtype.names else value.dtype
        kind_of_array = "a masked array" if is_masked(value) else "an array"
        return f"{kind_of_array} of {kind}, shape {value.shape}"
    return "None" if value is None else f"{type(value).__name__} {_short_repr(value)}"


def _short_repr(value: Any) -> str:
    text = repr(value)
    if len(text) <= 40:
        return text
    return f"{text[:36]}…{text[-1]}" if isinstance(value, (str, bytes)) else f"{text[:37]}…"
