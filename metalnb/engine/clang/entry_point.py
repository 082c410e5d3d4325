"""Write one source for a target: the MSL headers, the cell, and an entry point for one kernel.

A kernel becomes an ordinary function. The entry point takes every buffer as an untyped pointer, casts each to the type
in the kernel's signature, computes the kernel's inputs, and calls it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from metalnb.msl.signature import Signature
from metalnb.msl.text.scanned_cell import MAIN

from ..unit import Unit, literal

__all__ = ["ENTRY_POINT", "Head", "entry_source", "kernel_call", "source_with_entry"]

ENTRY_POINT = "metalnb_entry"


@dataclass(frozen=True, slots=True)
class Head:
    """The start of an entry point for a target in C++ for OpenCL.

    Attributes
    ----------
    kernel : str
        The text before ``void``.
    lines : tuple of str
        The first lines of its body; they declare ``here``, a ``$thread_position``.
    last : str
        A parameter after the kernel's, or an empty string.
    threadgroup : tuple of (str, str)
        For a parameter in threadgroup memory, with ``{i}`` for its number: the entry point's parameter, and the untyped
        pointer derived from it.
    """

    kernel: str
    lines: tuple[str, ...]
    last: str = ""
    threadgroup: tuple[str, str] = ("__local void* b{i}", "b{i}")


# Only the entry point is exported, so clang drops everything that it does not need.
_INTERNAL = (
    "#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = any(function, variable(is_global)))"
)


def entry_source(unit: Unit, head: Head) -> str:
    """Return the source for a target that takes C++ for OpenCL, with its own head of the entry point."""
    params = unit.signature.params
    forms = [head.threadgroup if param.space == "threadgroup" else ("__global void* b{i}", "b{i}") for param in params]
    formals = [formal.format(i=i) for i, (formal, _) in enumerate(forms)] + ([head.last] if head.last else [])
    pointers = [form.format(i=i) for i, (_, form) in enumerate(forms)]
    lines = (*head.lines, f"{kernel_call(unit.signature, pointers=pointers)};")
    body = "".join(f"  {line}\n" for line in lines)
    return source_with_entry(unit, f"{head.kernel} void {ENTRY_POINT}({', '.join(formals)}) {{\n{body}}}")


def source_with_entry(unit: Unit, entry: str, cell: str = "") -> str:
    """Return a unit's source, followed by an entry point; the same for every target.

    A target that edits the cell passes the edited source, with unchanged line numbers.
    """
    return "\n".join([
        *_constants(unit),
        _INTERNAL,
        f'#line 1 "{MAIN}"',
        cell or unit.text,
        "#pragma clang attribute pop",
        '#line 1 "entry point"',
        entry,
        "",
    ])  # fmt: skip


def kernel_call(
    signature: Signature, inputs: Mapping[str, str] = MappingProxyType({}), pointers: Sequence[str] | None = None,
) -> str:  # fmt: skip
    """Return the call of a kernel; ``here`` is a ``$thread_position``.

    Parameters
    ----------
    signature : Signature
    inputs : mapping of str to str
        The target's expressions for inputs, by attribute.
    pointers : sequence of str, optional
        The untyped pointers to its buffers; by default b0, b1, ….
    """
    function = signature.callee
    arguments = [""] * signature.arity
    for i, param in enumerate(signature.params):
        kind = f"$parameter<{param.position}, decltype({function})>::type"
        pointer = pointers[i] if pointers else f"b{i}"
        arguments[param.position] = f"*($pointer<{kind}>::type){pointer}" if param.reference else f"({kind}){pointer}"
    for input_ in signature.inputs:
        expression = inputs.get(input_.attribute) or _INPUT[input_.attribute]
        kind = f"$parameter<{input_.position}, decltype({function})>::type"
        arguments[input_.position] = f"$input<{kind}>::from({expression})"
    return f"{function}({', '.join(arguments)})"


def _constants(unit: Unit) -> list[str]:
    lines = []
    for constant, value in unit.constants.items():
        lines.append(f"#define $value_{constant.name} {literal(constant.type, value)}")
        lines.append(f"#define $defined_{constant.name} true")
    for constant in unit.undefined:
        lines += [f"#define $value_{constant.name} {{}}", f"#define $defined_{constant.name} false"]
    return lines


_POSITION_MEMBERS = {
    "thread_position_in_grid": "position_in_grid",
    "thread_position_in_threadgroup": "position_in_threadgroup",
    "threadgroup_position_in_grid": "threadgroup_position",
    "threads_per_grid": "threads_per_grid",
    "grid_size": "threads_per_grid",
    "threads_per_threadgroup": "threads_per_threadgroup",
    "dispatch_threads_per_threadgroup": "dispatch_threads_per_threadgroup",
    "threadgroups_per_grid": "threadgroups_per_grid",
    "thread_index_in_threadgroup": "index_in_threadgroup",
}
_NOMINAL = " * ".join(f"here.dispatch_threads_per_threadgroup.{axis}" for axis in "xyz")
_INPUT = {
    **{name: f"here.{member}" for name, member in _POSITION_MEMBERS.items()},
    "grid_origin": "$uint3{0, 0, 0}",
    "thread_index_in_simdgroup": "$simd_lane()",
    "simdgroup_index_in_threadgroup": "$simd_group()",
    "threads_per_simdgroup": "32u",
    "thread_execution_width": "32u",
    "simdgroups_per_threadgroup": "(here.threads + 31) / 32",
    "dispatch_simdgroups_per_threadgroup": f"({_NOMINAL} + 31) / 32",
    "thread_index_in_quadgroup": "here.index_in_threadgroup % 4",
    "quadgroup_index_in_threadgroup": "here.index_in_threadgroup / 4",
    "quadgroups_per_threadgroup": "(here.threads + 3) / 4",
    "dispatch_quadgroups_per_threadgroup": f"({_NOMINAL} + 3) / 4",
}
