"""Bind a call's arguments to a kernel's parameters, by position and by name, without copies or guesses."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from metalnb.dtypes import is_masked
from metalnb.engine.base import Pointed
from metalnb.errors import ArgumentError
from metalnb.msl.signature import Param, Reflection, Signature
from metalnb.plurals import quantity

from .engine_arrays import Resident, is_resident
from .packing import describe, pack, type_dtype
from .struct_pointers import arrays_of, holds_pointers, with_pointers

__all__ = ["OPTIONS", "Binder", "Memory", "Slot"]

Array = np.ndarray[Any, np.dtype[Any]]
Memory = Array | bytearray

# Formats of the scalars that the standard library can pack, for speed in small dispatches. Their sizes are fixed
# (standard mode), since a native format turns 1e39 into an infinite float.
_PLAIN = {c: f"<{c}" for c in "bBhHiIqQef"} | {"l": "<q", "L": "<Q"}
OPTIONS = ("grid", "groups", "threadgroup", "shapes", "threadgroup_memory", "timeout")
_SCALAR_TYPES = frozenset({int, float, np.float32, np.float64, np.int32, np.int64, np.uint32})


class Slot:
    """A buffer parameter and what is needed to check its arguments quickly.

    Attributes
    ----------
    param : Param
    dtype : numpy.dtype
        The dtype that an array passed for the parameter must have.
    value_shape : tuple of int
        The axes of one element: ``()`` for ``float``, ``(4,)`` for ``float4``.
    opaque : bool
        Whether any dtype is accepted, as for ``void*``.
    points : bool
        Whether the parameter is a struct with pointers.
    """

    __slots__ = (
        "_pack", "_record", "_reflection", "components", "dtype", "kernel", "opaque", "param", "points", "takes_array",
        "value_shape",
    )  # fmt: skip

    def __init__(self, kernel: str, param: Param, reflection: Reflection) -> None:
        self.kernel = kernel
        self.param = param
        self.opaque = param.type.name == "void"
        self.dtype, self.value_shape = type_dtype(param.type, reflection)
        self.takes_array = not param.reference or param.writable
        self.points = not self.takes_array and holds_pointers(param.type, reflection)
        self.components = math.prod(self.value_shape)
        self._reflection = reflection
        is_plain = not self.takes_array and not self.value_shape and self.dtype.char in _PLAIN
        self._pack = struct.Struct(_PLAIN[self.dtype.char]).pack if is_plain else None
        is_value = not (self.takes_array or self.value_shape or self.points)
        self._record = _plain_record(self.dtype) if is_value else None

    @property
    def label(self) -> str:
        """``saxpy: argument 'y' [[buffer(1)]] is device const float*``."""
        return f"{self.kernel}: argument '{self.param.name}' {self.param.attribute} is {self.param.spelling}"

    def bind(self, value: Any) -> Memory:
        """Check an argument and return the memory to bind.

        Raises
        ------
        ArgumentError
        """
        if not self.takes_array:
            return self._value(value)
        argument = value
        if not isinstance(value, np.ndarray) or is_masked(value):
            if not is_resident(value):
                self._refuse(f"got {describe(value)}", self._cure_for(value))
            value = value.__metal_memory__()
        if value.dtype != self.dtype and not self.opaque:
            kind = "records" if value.dtype.names else value.dtype
            self._refuse(f"got {kind}, shape {value.shape}", self._dtype_cure(value.dtype))
        if self.opaque and value.dtype.hasobject:
            self._refuse(f"got {describe(value)}", "Pass numbers: an element of it is an address of Python's")
        flags = value.flags
        if not flags.c_contiguous:
            on_engine = is_resident(argument)
            cure = f"Pass {self.param.name}.copy()" if on_engine else f"Pass np.ascontiguousarray({self.param.name})"
            if self.param.writable:
                cure = "Pass a C-contiguous array: the kernel writes in place"
            self._refuse(f"got an array that is not C-contiguous, shape {value.shape}, strides {value.strides}", cure)
        if self.param.reference and value.size != self.components:
            self._refuse(f"got shape {value.shape}", "Pass an array of one element")
        if self.value_shape:
            self.elements(value)
        if flags.writeable:
            memory: Array = value
            return memory
        if self.param.writable:
            self._refuse("the kernel writes to it; got a read-only array", "Pass a writable array")
        return _writable_view(value)

    def _value(self, value: Any) -> Memory:
        """Pack the value of a read-only reference."""
        if self._pack is not None and type(value) in _SCALAR_TYPES:
            try:
                return bytearray(self._pack(value))
            except (struct.error, OverflowError):
                pass  # the value does not fit, which is reported below
        if self._record is not None and type(value) is dict:
            names, packer = self._record
            if value.keys() == names.keys() and all(type(v) in _SCALAR_TYPES for v in value.values()):
                try:
                    return bytearray(packer.pack(*map(value.__getitem__, names)))
                except (struct.error, OverflowError):
                    pass
        if self.points and isinstance(value, Pointed):  # an earlier call packed it
            return value
        if is_resident(value):
            value = value.read()
        if is_masked(value):
            self._refuse(f"got {describe(value)}", self._cure_for(value))
        if isinstance(value, np.ndarray) and value.dtype == self.dtype and self._is_one_element(value.shape):
            return bytearray(value.tobytes())
        data = pack(self.param.type, value, self.label, self._reflection).tobytes()
        return with_pointers(data, value) if self.points else bytearray(data)

    def _is_one_element(self, shape: tuple[int, ...]) -> bool:
        """Return whether a shape is that of one element, or of an array of one element."""
        return shape == (1,) * (len(shape) - len(self.value_shape)) + self.value_shape

    def elements(self, array: Array) -> tuple[int, ...]:  # noqa: RET503  (_refuse never returns)
        """Return an array's shape in elements of the parameter's type."""
        inner = self.value_shape
        if not inner:
            return tuple(array.shape)
        if array.shape[-len(inner) :] == inner:
            return tuple(array.shape[: -len(inner)])
        count = math.prod(inner)
        layout = self.param.type.layout
        is_padded = layout is not None and layout.shape[-1:] == (3,) and layout.stride[-1:] == (4,)
        # Rows of three numbers may be meant as elements that MSL pads to four.
        if array.ndim and array.shape[-1] % count == 0 and (array.ndim == 1 or not is_padded):
            return (*array.shape[:-1], array.shape[-1] // count)
        last = ", ".join(map(str, inner))
        cure = f"Pass shape (…, {last})"
        if layout is not None and is_padded:
            cure += f": 3 numbers occupy the memory of 4 (MSL 2.2){self._packed_hint(array, layout.name)}"
        elif array.size and array.size % count == 0:
            cure += f", as {self.param.name}.reshape(-1, {last}) has"
        self._refuse(f"got shape {array.shape}", cure)

    def _packed_hint(self, array: Array, name: str) -> str:
        fits = array.shape[-1:] == (3,) and self.value_shape == (4,)
        return f"; or declare it packed_{name}, which takes (…, 3)" if fits else ""

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the NumPy shape of an output that has ``shape`` in elements."""
        if self.opaque:
            self._refuse("it was left out", "Its size is unknown: pass an array")
        return self.value_shape if self.param.reference else shape + self.value_shape

    def refuse_short(self, array: Array, threads: int) -> None:
        """Refuse an array that is too short to have an element for each thread of the grid."""
        if array.size == 0:
            self._refuse("got an empty array, but the grid is not empty", "Pass at least one element")
        name, count = self.param.name, array.size // self.components
        self._refuse(
            f"each of the grid's {quantity(threads, 'thread')} accesses the element at its own position; got {count:,}",
            f"Pass at least {quantity(threads, 'element')}, or grid={count}, or guard {name}[…] in the kernel",
        )

    def _refuse(self, got: str, cure: str) -> NoReturn:
        message = f"{self.label}; {got}. {cure}."
        raise ArgumentError(message)

    def _dtype_cure(self, dtype: np.dtype[Any]) -> str:
        name, dtype_name = self.param.name, _numpy_name(self.dtype)
        if self.dtype.names:
            record = f"{self.kernel}.program.dtype({self.param.type.name!r})"
            as_it_is = f", or pass {name}.view({record})" if dtype.itemsize == self.dtype.itemsize else ""
            return f"Make it with dtype {record}{as_it_is}"
        # Bytes, and bfloat bits in NumPy integers, are often meant as raw memory, which a conversion would change.
        raw = self.dtype.kind in "iu" and self.dtype.itemsize == 1 < dtype.itemsize
        is_packed = self.dtype.kind in "iu" and dtype.kind in "iu" and dtype.itemsize == 1 < self.dtype.itemsize
        bits = self.dtype.kind not in "?biufc" and dtype.kind in "iu" and dtype.itemsize == self.dtype.itemsize
        as_it_is = f"{name}.view({dtype_name})" if raw or is_packed or bits or dtype.names else ""
        if is_packed and self.components > 1:
            as_it_is += f".reshape(-1, {self.components})"
        if dtype.names:
            return f"Pass {as_it_is}, the records' bytes as they are"
        if self.param.writable:
            alternative = f", or pass {as_it_is}, its bytes as they are" if as_it_is else ""
            return f"Make it with dtype {dtype_name}: the kernel writes in place{alternative}"
        return f"Pass {name}.astype({dtype_name}){f', or {as_it_is} for its bytes as they are' if as_it_is else ''}"

    def _cure_for(self, value: Any) -> str:
        if is_masked(value):
            return f"Pass {self.param.name}.filled(…): kernels do not support masks"
        if isinstance(value, (list, tuple)) and not self.param.writable and not self.dtype.names:
            return f"Pass np.array({self.param.name}, {_numpy_name(self.dtype)})"
        kind = "an array of one element" if self.param.reference else "a NumPy array"
        if self.param.writable:
            return f"Pass {kind}, or leave it out and name the arguments after it"
        return f"Pass {kind}"


class Binder:
    """Sorts a call's arguments into the kernel's buffer parameters."""

    def __init__(self, signature: Signature, params: tuple[Param, ...], reflection: Reflection) -> None:
        self.signature = signature
        self.slots = tuple(Slot(signature.name, p, reflection) for p in params)
        self._places = {slot.param.name: i for i, slot in enumerate(self.slots)}
        self.points = any(slot.points for slot in self.slots)

    def bind(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[Memory | None]:
        """Return the memory for each slot; None for a writable buffer that the call leaves out.

        Raises
        ------
        ArgumentError
        """
        slots = self.slots
        if len(args) > len(slots):
            message = f"{self.signature.name}: takes {self._count()}; got {len(args)} by position. {self._usage()}"
            raise ArgumentError(message)
        buffers: list[Memory | None] = [slot.bind(a) for slot, a in zip(slots, args, strict=False)]
        if len(buffers) < len(slots):
            buffers += [None] * (len(slots) - len(buffers))
        for name, value in keywords.items():
            i = self._places.get(name)
            if i is None:
                raise ArgumentError(self._unknown_name_error(name))
            if i < len(args):
                twice = "is passed twice, by position and by name"
                message = f"{self.signature.name}: argument {name!r} {twice}. {self._usage()}"
                raise ArgumentError(message)
            buffers[i] = slots[i].bind(value)
        for slot, value in zip(slots, buffers, strict=True):
            if value is None and not slot.param.writable:
                name, cure = slot.param.name, self._usage()
                if name in OPTIONS:  # the caller may have passed it, but as the option
                    cure = f"By name, {name}=… is an option of the call: pass the argument by position. {cure}"
                raise ArgumentError(f"{slot.label}; it is missing. {cure}")
        return buffers

    def pointer_arrays(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[tuple[str, Resident]]:
        """Return the arrays that a call's structs point to, each with the name of its struct."""
        arguments = [*zip(self._places, args, strict=False), *keywords.items()]
        places = self._places
        return [(n, a) for n, v in arguments if n in places and self.slots[places[n]].points for a in arrays_of(v)]

    def _unknown_name_error(self, name: str) -> str:
        """Return the error for an argument whose name is not that of a buffer."""
        for param in self.signature.threadgroup:
            if param.name == name:
                label = f"{self.signature.name}: argument {name!r} {param.attribute} is {param.spelling}"
                cure = f"Leave it out, or pass its size: threadgroup_memory={{{name!r}: bytes}}."
                return f"{label}; the launch allocates it. {cure}"
        for param in self.signature.buffers:
            if param.name == name:  # the buffer exists, so its position can be stated
                label = f"{self.signature.name}: argument {name!r} {param.attribute}"
                return f"{label} does not exist: {param.gate} is false. Set the constants with specialize(…)."
        import difflib

        matches = difflib.get_close_matches(name, [*self._places, *OPTIONS], n=1)
        hint = f"Did you mean {matches[0]!r}? " if matches else ""
        return f"{self.signature.name}: has no argument {name!r}. {hint}{self._usage()}"

    def _count(self) -> str:
        return quantity(len(self.slots), "argument")

    def _usage(self) -> str:
        return f"Call {self.signature.name}({', '.join(s.param.name for s in self.slots)})."


def _plain_record(dtype: np.dtype[Any]) -> tuple[dict[str, None], struct.Struct] | None:
    """Return a record's field names in order of offset, and their packer; None unless all fields are plain scalars."""
    if not dtype.fields or any(f[0].char not in _PLAIN for f in dtype.fields.values()):
        return None
    text, end = "<", 0
    fields = sorted(dtype.fields.items(), key=lambda f: f[1][1])
    for _, (kind, offset, *_) in fields:
        if offset < end:
            return None  # a union
        text += f"{offset - end}x{_PLAIN[kind.char][1:]}"
        end = offset + kind.itemsize
    return dict.fromkeys(name for name, _ in fields), struct.Struct(f"{text}{dtype.itemsize - end}x")


def _writable_view(array: Array) -> Array:
    """Return a writable view of the same memory, for engines that require one; no kernel writes to it."""
    flat = array.reshape(-1).view(np.uint8)
    interface = {**flat.__array_interface__, "data": (flat.ctypes.data, False)}
    alias = np.asarray(SimpleNamespace(__array_interface__=interface, owner=array))
    return alias.view(array.dtype).reshape(array.shape)


def _numpy_name(dtype: np.dtype[Any]) -> str:
    module = "np" if dtype.isbuiltin == 1 else dtype.type.__module__
    return f"{module}.{'bool_' if dtype.name == 'bool' else dtype.name}"
