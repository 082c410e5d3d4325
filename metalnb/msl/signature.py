"""The interface of a kernel, as the rest of metalnb sees it: frozen records, and their JSON form.

The nouns are Metal's: a kernel has *parameters* (buffers and threadgroup memory, bound by the caller)
and *inputs* (thread_position_in_grid and similar ones, which the dispatch provides).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from metalnb.dtypes import Layout, layout_of
from metalnb.errors import Diagnostic

__all__ = ["Constant", "Field", "Input", "Param", "Reflection", "Signature", "Struct", "Type", "function_expression"]

Space = Literal["device", "constant", "threadgroup"]


@dataclass(frozen=True, slots=True)
class Type:
    """A host-visible type: a scalar, vector, matrix or struct, or an array of one.

    Attributes
    ----------
    name : str
        MSL's spelling, without array extents: ``float4``, ``Particle``.
    size, alignment : int
        The size and alignment in bytes of one value, including all array extents. A size of 0 means an opaque type
        (``void``).
    extents : tuple of int
        Array extents, outermost first; empty for a single value.
    """

    name: str
    size: int
    alignment: int
    extents: tuple[int, ...] = ()

    @property
    def layout(self) -> Layout | None:
        """The scalar, vector or matrix layout; None for a struct or an opaque type."""
        return layout_of(self.name)

    def __str__(self) -> str:
        return self.name + "".join(f"[{n}]" for n in self.extents)


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a struct: its name, type and byte offset."""

    name: str
    type: Type
    offset: int


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct's memory layout, as the compiler laid it out."""

    name: str
    fields: tuple[Field, ...]
    size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter that the caller binds.

    Attributes
    ----------
    name : str
    index : int
        The n of ``[[buffer(n)]]`` or ``[[threadgroup(n)]]``, explicit or assigned in order.
    position : int
        Position in the kernel's parameter list, from 0.
    space : {"device", "constant", "threadgroup"}
    type : Type
        The type pointed at or referred to.
    const : bool
        True if the kernel can only read it.
    reference : bool
        True for ``T&`` (one value), False for ``T*`` (an array of them).
    gate : str
        The function constant that decides whether it exists, or an empty string.
    every : bool
        True if every thread of a 1-D grid is certain to access the element at its own position.
    use : {"none", "read", "write", "update", ""}
        How the kernel uses it; "update" means that it is both read and written, and "" that the use is unknown.
    condition : str
        The expression of a `gate` that the cell derives from function constants, ``is_function_constant_defined ( A )
        && A``; else empty.
    """

    name: str
    index: int
    position: int
    space: Space
    type: Type
    const: bool
    reference: bool = False
    gate: str = ""
    every: bool = False
    use: str = ""
    condition: str = ""

    @property
    def spelling(self) -> str:
        """The parameter's type as MSL spells it: ``device const float*``."""
        const = "const " if self.const and self.space == "device" else ""
        return f"{self.space} {const}{self.type}{'&' if self.reference else '*'}"

    @property
    def attribute(self) -> str:
        """``[[buffer(n)]]`` or ``[[threadgroup(n)]]``."""
        return f"[[{'threadgroup' if self.space == 'threadgroup' else 'buffer'}({self.index})]]"

    @property
    def writable(self) -> bool:
        """True if the kernel may write to it."""
        return self.space == "device" and not self.const


@dataclass(frozen=True, slots=True)
class Input:
    """A kernel input that the dispatch provides: ``uint2 gid [[thread_position_in_grid]]``.

    Attributes
    ----------
    name, attribute, type : str
    position : int
        Position in the kernel's parameter list, from 0; for an input at program scope, that of the parameter that
        passes it.
    scoped : bool
        Whether it is declared at program scope (MSL 5.9).
    """

    name: str
    attribute: str
    type: str
    position: int
    scoped: bool = False

    @property
    def width(self) -> int:
        """Number of components, 1 to 3."""
        return int(self.type[-1]) if self.type[-1].isdigit() else 1


@dataclass(frozen=True, slots=True)
class Constant:
    """A function constant: ``constant int N [[function_constant(0)]];``.

    Attributes
    ----------
    optional : bool
        True if the cell tests it with ``is_function_constant_defined``, and so works without a value.
    """

    name: str
    index: int
    type: str
    optional: bool = False


def function_expression(function: str, kind: str) -> str:
    """Return the expression for a function; with a type, for the overload of that type."""
    return f"static_cast<{kind.replace('(', '(&)(', 1)}>({function})" if kind else function


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel as its caller sees it.

    Attributes
    ----------
    name : str
        The name under which it is bound (``host_name`` for an instantiation).
    function : str
        Its name in the cell's source: ``saxpy``, ``copy<float, 4>``.
    params : tuple of Param
        Buffers in index order, then threadgroup memory in index order.
    inputs : tuple of Input
    arity : int
        The total number of the function's parameters.
    doc : str
        The comment above the kernel, cleaned.
    line : int
        The line in the cell on which it is defined, from 1.
    max_threads : int
        ``[[max_total_threads_per_threadgroup(n)]]``, else 0.
    simd : bool
        True if it may use SIMD-groups or quad-groups. Only for such a kernel must an engine form SIMD-groups as Metal
        does; it may run the threads of other kernels in any order.
    own_elements : tuple of (str, str, int)
        Arrays in threadgroup memory in which every thread is certain to use the element at its own index: the array,
        the input that is the index, and the number of elements.
    type : str
        The function's type, ``void (device float*, uint)``, if its name is overloaded; else empty.
    """

    name: str
    function: str
    params: tuple[Param, ...] = ()
    inputs: tuple[Input, ...] = ()
    arity: int = 0
    doc: str = ""
    line: int = 1
    max_threads: int = 0
    simd: bool = True
    own_elements: tuple[tuple[str, str, int], ...] = ()
    type: str = ""

    @property
    def callee(self) -> str:
        """The expression that names the function unambiguously."""
        return function_expression(self.function, self.type)

    @property
    def buffers(self) -> tuple[Param, ...]:
        """The parameters bound to buffers."""
        return tuple(p for p in self.params if p.space != "threadgroup")

    @property
    def threadgroup(self) -> tuple[Param, ...]:
        """The parameters that are threadgroup memory."""
        return tuple(p for p in self.params if p.space == "threadgroup")

    def __str__(self) -> str:
        words = [f"{p.spelling} {p.name}" for p in self.params]
        return f"{self.name}({', '.join(words)})"


@dataclass(frozen=True, slots=True)
class Reflection:
    """Everything that reflection found in one cell.

    Attributes
    ----------
    kernels : tuple of Signature
    structs : tuple of Struct
    constants : tuple of Constant
    cautions : tuple of Diagnostic
        The warnings for its author.
    """

    kernels: tuple[Signature, ...]
    structs: tuple[Struct, ...] = ()
    constants: tuple[Constant, ...] = ()
    cautions: tuple[Diagnostic, ...] = ()

    def struct(self, name: str) -> Struct | None:
        """Find a struct by name."""
        return next((s for s in self.structs if s.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `from_json` reads."""
        values: dict[str, Any] = _plain(self)
        return values

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Reflection:
        """Read what `to_json` wrote.

        Raises
        ------
        KeyError, TypeError
            If the data has another form.
        """
        return cls(
            tuple(_signature(k) for k in data["kernels"]),
            tuple(_struct(s) for s in data["structs"]),
            tuple(Constant(**c) for c in data["constants"]),
            tuple(Diagnostic(**d) for d in data["cautions"]),
        )


def _plain(value: Any) -> Any:
    """Return dataclasses as dicts, five times as fast as ``dataclasses.asdict``, which also copies immutable values."""
    if type(value) in _PLAIN:
        return value
    if dataclasses.is_dataclass(value):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


_PLAIN = frozenset({str, int, bool})


def _type(data: dict[str, Any]) -> Type:
    return Type(**{**data, "extents": tuple(data["extents"])})


def _struct(data: dict[str, Any]) -> Struct:
    fields = tuple(Field(f["name"], _type(f["type"]), f["offset"]) for f in data["fields"])
    return Struct(**{**data, "fields": fields})


def _signature(data: dict[str, Any]) -> Signature:
    params = tuple(Param(**{**p, "type": _type(p["type"])}) for p in data["params"])
    inputs = tuple(Input(**i) for i in data["inputs"])
    own_elements = tuple((name, attribute, count) for name, attribute, count in data["own_elements"])
    return Signature(**{**data, "params": params, "inputs": inputs, "own_elements": own_elements})
