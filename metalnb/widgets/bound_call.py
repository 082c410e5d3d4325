"""Take a call apart, to repeat it with different scalars, sizes or threadgroups."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalnb.arrays.stream import synchronize
from metalnb.call.engine_arrays import is_resident
from metalnb.call.kernel import Dispatch, Kernel
from metalnb.call.packing import type_dtype
from metalnb.call.struct_pointers import arrays_of
from metalnb.engine.base import Grid, Pointed
from metalnb.engine.staging import binding_of, copy_to_host
from metalnb.errors import ArgumentError, LaunchError
from metalnb.msl.signature import Param, Reflection, Type

__all__ = ["BoundArgument", "BoundCall", "bound_call", "check_kernel"]


@dataclass(frozen=True, slots=True)
class BoundArgument:
    """An argument of a call.

    Attributes
    ----------
    param : Param
    value : numpy.ndarray
        The bound value: an array, or the value of a reference.
    inner : tuple of int
        The axes of one element: ``(4,)`` for ``float4``.
    pointees : tuple of (numpy.ndarray, numpy.ndarray)
        The arrays that a struct's pointers refer to: a copy of each of the caller's arrays, with its first contents.
    pointers : frozenset of int
        The offsets of these pointers in the struct, in bytes.
    """

    param: Param
    value: np.ndarray[Any, Any]
    inner: tuple[int, ...]
    pointees: tuple[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]], ...] = ()
    pointers: frozenset[int] = frozenset()

    @property
    def is_array(self) -> bool:
        """Whether the argument is an array rather than one value."""
        return not self.param.reference

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's axes, in elements of the parameter's type; one axis if an array of vectors was passed flat."""
        shape, inner = self.value.shape, self.inner
        if not inner or shape[-len(inner) :] == inner:
            return tuple(shape[: len(shape) - len(inner)])
        return (self.value.size // int(np.prod(inner)),)


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call: its kernel, its arguments in buffer order, and its launch.

    The arrays that the kernel writes are copies: running it does not change the user's.

    Attributes
    ----------
    groups : int, tuple of int or None
        The number of threadgroups, for a call with ``groups=``: it stays the same for other threadgroup sizes.
    shapes : mapping of str to shape or None
        The shapes that were passed for the arrays that the call leaves out.
    timeout : float or None
        The time limit of each run, in seconds.
    residents : tuple of Array
        The engine's arrays among the arguments: they are kept alive so that their memory is not reused.
    """

    kernel: Kernel
    parts: tuple[BoundArgument, ...]
    grid: Grid
    threadgroup: Any
    memory: Mapping[str, int] | None
    left_out: tuple[str, ...]
    groups: Any = None
    shapes: Mapping[str, Any] | None = None
    timeout: float | None = None
    residents: tuple[Any, ...] = ()

    def dispatch(
        self, values: Sequence[Any] | None = None, *, grid: Grid | None = None, threadgroup: Any = None,
        kernel: Kernel | None = None,
    ) -> Dispatch:  # fmt: skip
        """Bind the call again; arguments left out are unchanged.

        Raises
        ------
        ArgumentError, LaunchError, CompileError
        """
        by_groups = grid is None and self.groups is not None
        values = [p.value for p in self.parts] if values is None else values
        return (kernel or self.kernel).prepare(
            *(_with_pointees(part, value) for part, value in zip(self.parts, values, strict=True)),
            grid=None if by_groups else grid or self.grid,
            groups=self.groups if by_groups else None,
            threadgroup=self.threadgroup if threadgroup is None else threadgroup,
            threadgroup_memory=self.memory,
            timeout=self.timeout,
        )

    @property
    def pointees(self) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        """All arrays that pointers in structs refer to, each with its first contents."""
        return [pair for part in self.parts for pair in part.pointees]

    def restore_pointees(self) -> None:
        """Restore the first contents of the arrays that pointers refer to."""
        for memory, contents in self.pointees:
            np.copyto(memory, contents)


def _with_pointees(part: BoundArgument, value: Any) -> Any:
    """Return a value to bind; a struct with pointers keeps the memory that they refer to alive."""
    return Pointed(value.tobytes(), tuple(memory for memory, _ in part.pointees)) if part.pointees else value


def check_kernel(caller: str, kernel: Any) -> None:
    """Reject anything but a kernel.

    Raises
    ------
    ArgumentError
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f"{caller}: takes a kernel of a %%metal cell or of compile(); got {type(kernel).__name__}.")


def bound_call(caller: str, kernel: Any, args: tuple[Any, ...], launch: Mapping[str, Any]) -> BoundCall:
    """Bind a call, and take it apart.

    Parameters
    ----------
    caller : str
        The caller's name, for messages.
    kernel, args, launch
        As for a call of the kernel.

    Raises
    ------
    ArgumentError, LaunchError
        As for the call; also if `kernel` is not a kernel, or the grid is empty.
    """
    check_kernel(caller, kernel)
    copies: dict[int, Any] = {}
    dispatch = kernel.prepare(
        *(_copy_pointees(value, copies) for value in args),
        **{name: _copy_pointees(value, copies) for name, value in launch.items()},
    )
    if dispatch.residents:
        synchronize(kernel.engine.name)  # the arguments' memory is read here
    signature = kernel.signature
    if 0 in dispatch.grid:
        raise LaunchError(f"{caller}: {signature.name}: grid {dispatch.grid} is empty: nothing would run.")
    outputs = {id(a) for a in dispatch.outputs}
    parts = []
    for param, value in zip(signature.params, dispatch.arguments, strict=True):
        if param.space == "threadgroup" or kernel.unit.is_absent(param):
            continue
        dtype, inner = type_dtype(param.type, kernel.reflection)
        pointees: tuple[Any, ...] = ()
        if param.reference and not param.writable:
            pointees = tuple((memory, memory.copy()) for memory in getattr(value, "memories", ()))
            array = np.frombuffer(bytes(memoryview(value)), dtype).reshape(inner)
        else:
            is_fresh_output = id(value) in outputs and binding_of(value) is None
            array = value if is_fresh_output or not param.writable else copy_to_host(kernel.engine, value)
        pointers = frozenset(_pointer_offsets(param.type, kernel.reflection) if pointees else ())
        parts.append(BoundArgument(param, array, inner, pointees, pointers))
    return BoundCall(
        kernel, tuple(parts), dispatch.grid, launch.get("threadgroup"), launch.get("threadgroup_memory"),
        dispatch.output_names, launch.get("groups"), launch.get("shapes"), launch.get("timeout"),
        dispatch.residents,
    )  # fmt: skip


def _pointer_offsets(kind: Type, reflection: Reflection, start: int = 0) -> Iterator[int]:
    record = reflection.struct(kind.name)
    for member in record.fields if record is not None else ():
        if member.type.name == "pointer":
            yield start + member.offset
        else:
            yield from _pointer_offsets(member.type, reflection, start + member.offset)


def _copy_pointees(value: Any, copies: dict[int, Any]) -> Any:
    """Return an argument with copies of the arrays that a struct points to; ``copies`` has those made so far."""
    if is_resident(value) or not any(True for _ in arrays_of(value)):
        return value
    if isinstance(value, Mapping):
        return {name: _copy_member(member, copies) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy_member(member, copies) for member in value]
    return {f.name: _copy_member(getattr(value, f.name), copies) for f in dataclasses.fields(value)}


def _copy_member(value: Any, copies: dict[int, Any]) -> Any:
    if not is_resident(value):
        return _copy_pointees(value, copies)
    if id(value) not in copies:
        elements = value.read()
        copies[id(value)] = value.__metal_zeros__(elements.shape, elements.dtype)
        np.copyto(copies[id(value)].__metal_memory__(), elements)
    return copies[id(value)]
