"""Bind a call's arguments to a kernel's parameters: by position and by name, checked, in place, nothing guessed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from struct import Struct as Packer
from struct import error as PackError
from typing import Any

import numpy as np

from .errors import ArgumentError
from .layouts import pack, type_dtype
from .msl.signature import Param, Reflection, Signature

__all__ = ["Binder", "Slot"]

Array = np.ndarray[Any, np.dtype[Any]]
Memory = Array | bytearray

# Scalars that need no more than the standard library to be packed: this is the hot path of a small dispatch.
_PLAIN = "bBhHiIlLqQefd"
_EXACT = frozenset({int, float, np.float32, np.float64, np.int32, np.int64, np.uint32})


class Slot:
    """One buffer parameter, with all that is needed to check an argument for it fast.

    Attributes
    ----------
    param : Param
    dtype : numpy.dtype
        Of an array for it.
    value_shape : tuple of int
        The axes of one element: ``()`` for ``float``, ``(4,)`` for ``float4``.
    opaque : bool
        True for ``void*``: any dtype will do.
    """

    __slots__ = ("_pack", "_reflection", "dtype", "kernel", "opaque", "param", "takes_array", "value_shape")

    def __init__(self, kernel: str, param: Param, reflection: Reflection) -> None:
        self.kernel = kernel
        self.param = param
        self.opaque = param.type.name == "void"
        self.dtype, self.value_shape = type_dtype(param.type, reflection)
        self.takes_array = not param.reference or param.writable
        self._reflection = reflection
        plain = not self.takes_array and not self.value_shape and self.dtype.char in _PLAIN
        self._pack = Packer(self.dtype.char).pack if plain else None

    @property
    def label(self) -> str:
        """``saxpy: argument 'y' [[buffer(1)]] is device const float*``."""
        return f"{self.kernel}: argument '{self.param.name}' {self.param.attribute} is {self.param.spelling}"

    def bind(self, value: Any) -> Memory:
        """Check an argument; give the memory to bind.

        Raises
        ------
        ArgumentError
        """
        if not self.takes_array:
            if self._pack is not None and type(value) in _EXACT:
                try:
                    return bytearray(self._pack(value))
                except (PackError, OverflowError):
                    pass  # does not fit: worded below
            if isinstance(value, np.ndarray) and value.shape == self.value_shape and value.dtype == self.dtype:
                return np.ascontiguousarray(value)
            return pack(self.param.type, value, self.label, self._reflection)
        if not isinstance(value, np.ndarray):
            self._refuse(f"got {_described(value)}", self._cure_for(value))
        if value.dtype != self.dtype and not self.opaque:
            self._refuse(f"got {value.dtype}, shape {value.shape}", self._dtype_cure())
        flags = value.flags
        if not flags.c_contiguous:
            cure = "Pass a contiguous array" if self.param.writable else f"Pass np.ascontiguousarray({self.param.name})"
            self._refuse(f"got a non-contiguous array, shape {value.shape}, strides {value.strides}", cure)
        if self.param.writable and not flags.writeable:
            self._refuse("the kernel writes to it; got a read-only array", "Pass an array that can be written")
        if self.param.reference and value.size != math.prod(self.value_shape):
            self._refuse(f"got shape {value.shape}", "Pass an array of one element")
        if self.value_shape:
            self.elements(value)
        return value

    def elements(self, array: Array) -> tuple[int, ...]:
        """Give an array's shape in elements of the parameter's type."""
        inner = self.value_shape
        if not inner:
            return array.shape
        if array.shape[-len(inner) :] == inner:
            return array.shape[: -len(inner)]
        count = math.prod(inner)
        if array.ndim == 1 and array.size % count == 0:
            return (array.size // count,)
        last = ", ".join(map(str, inner))
        self._refuse(f"got shape {array.shape}", f"One element is {count} numbers: pass shape (…, {last})")
        return ()

    def allocate(self, shape: tuple[int, ...]) -> Array:
        """Make an output of ``shape`` elements, all zero."""
        if self.opaque:
            self._refuse("it was left out", "Its size cannot be told: pass an array")
        return np.zeros(self.value_shape if self.param.reference else shape + self.value_shape, self.dtype)

    def _refuse(self, got: str, cure: str) -> None:
        message = f"{self.label}; {got}. {cure}."
        raise ArgumentError(message)

    def _dtype_cure(self) -> str:
        if self.dtype.names:
            return f"Make it with dtype program.dtype({self.param.type.name!r})"
        return f"Pass {self.param.name}.astype(np.{'bool_' if self.dtype.name == 'bool' else self.dtype.name})"

    def _cure_for(self, value: Any) -> str:
        if isinstance(value, (list, tuple)):
            return f"Pass np.array({self.param.name}, np.{self.dtype.name})"
        if self.param.writable:
            return "Pass an array, or leave it out and name the arguments after it"
        return "Pass a NumPy array"


class Binder:
    """Sorts a call's arguments into the kernel's buffer parameters."""

    def __init__(self, signature: Signature, params: tuple[Param, ...], reflection: Reflection) -> None:
        self.signature = signature
        self.slots = tuple(Slot(signature.name, p, reflection) for p in params)
        self._places = {slot.param.name: i for i, slot in enumerate(self.slots)}

    def bind(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Memory | None]:
        """Bind a call; None stands for a writable buffer that was left out.

        Raises
        ------
        ArgumentError
        """
        slots = self.slots
        if len(args) > len(slots):
            message = f"{self.signature.name}: takes {self._count()}; got {len(args)} by position. {self._usage()}"
            raise ArgumentError(message)
        bound: list[Memory | None] = [slot.bind(a) for slot, a in zip(slots, args, strict=False)]
        if len(bound) < len(slots):
            bound += [None] * (len(slots) - len(bound))
        for name, value in named.items():
            i = self._places.get(name)
            if i is None:
                message = f"{self.signature.name}: has no argument {name!r}. {self._usage()}"
                raise ArgumentError(message)
            if i < len(args):
                message = f"{self.signature.name}: argument {name!r} is given twice, by position and by name. {self._usage()}"
                raise ArgumentError(message)
            bound[i] = slots[i].bind(value)
        for slot, value in zip(slots, bound, strict=True):
            if value is None and not slot.param.writable:
                message = f"{slot.label}; it is missing. {self._usage()}"
                raise ArgumentError(message)
        return bound

    def _count(self) -> str:
        n = len(self.slots)
        return f"{n} argument{'' if n == 1 else 's'}"

    def _usage(self) -> str:
        return f"Call {self.signature.name}({', '.join(s.param.name for s in self.slots)})."


def _described(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '…'}"  # noqa: PLR2004

