"""Write one source text for a target: the cell behind the MSL headers, and an entry point for one kernel.

A kernel becomes an ordinary function. The entry point takes every buffer as an untyped pointer, gives each
the type that the kernel asks for, computes the kernel's inputs, and calls it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .signature import Constant, Input, Param, Signature
from .text.scanned_cell import MAIN, Cell

__all__ = ["ENTRY", "Unit", "literal", "opencl"]

ENTRY = "metalnb_entry"

# Nothing of the cell's is seen from outside: what the one entry point does not need is dropped.
_INTERNAL = (
    "#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = any(function, variable(is_global)))"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """One kernel to compile: what an engine is given.

    Attributes
    ----------
    signature : Signature
    cell : Cell
    headers : mapping of str to Cell
    constants : mapping of Constant to value
        The function constants that have a value.
    undefined : tuple of Constant
        Those that have none.
    math : {"fast", "precise", "scalar"}
        ``scalar`` is precise, and lets the device make scalar code of a kernel whose threadgroups have one thread. It
        is for those of the library's kernels that take turns, whose tests cover that code; no cell can ask for it.
    """

    signature: Signature
    cell: Cell
    headers: Mapping[str, Cell] = field(default_factory=dict)
    constants: Mapping[Constant, Any] = field(default_factory=dict)
    undefined: tuple[Constant, ...] = ()
    math: str = "fast"

    def absent(self, param: Param) -> bool:
        """Return whether a function constant removes a parameter (MSL 5.8.1)."""
        return bool(param.gate) and not any(c.name == param.gate and v for c, v in self.constants.items())


def opencl(unit: Unit, *, flat: bool = False, even: bool = False, wide: bool = False) -> str:
    """Write the text for a target that speaks C++ for OpenCL.

    Parameters
    ----------
    unit : Unit
    flat : bool
        True for threadgroups dispatched as one row (``$region`` in ``target/entry.h``); the region is then the
        entry point's last argument.
    even : bool
        True when such a row's lines are of whole SIMD-groups.
    wide : bool
        True when a thread's position may be 2^31 or more.
    """
    text = unit.cell.edited.text
    return "\n".join([
        *_constants(unit),
        _INTERNAL,
        f'#line 1 "{MAIN}"',
        text,
        "#pragma clang attribute pop",
        '#line 1 "entry point"',
        _entry(unit.signature, flat=flat, even=even, wide=wide, scalar=unit.math == "scalar"),
        "",
    ])  # fmt: skip


def _constants(unit: Unit) -> list[str]:
    lines = []
    for constant, value in unit.constants.items():
        lines.append(f"#define $value_{constant.name} {literal(constant.type, value)}")
        lines.append(f"#define $defined_{constant.name} true")
    for constant in unit.undefined:
        lines += [f"#define $value_{constant.name} {{}}", f"#define $defined_{constant.name} false"]
    return lines


def literal(kind: str, value: Any) -> str:
    """Write a scalar as MSL, ``literal("half", 0.5)`` -> ``(half)0x1p-1f``, or a vector, from a tuple."""
    if isinstance(value, tuple):
        return f"{kind}({', '.join(literal(kind[:-1], v) for v in value)})"
    if kind == "bool":
        return "true" if value else "false"
    if kind in {"float", "half", "bfloat"}:
        return f"({kind}){_real(struct.unpack('f', struct.pack('f', value))[0])}"
    number = int(value)
    suffix = ("u" if kind.startswith("u") else "") + ("l" if kind.endswith("long") else "")
    if number == -(2**63):
        return "(-0x7fffffffffffffffl - 1)"
    return f"(({kind}){number}{suffix})" if kind in {"int", "uint"} else f"{number}{suffix}"


def _real(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nanf("")'
    if math.isinf(value):
        return f"({'-' if value < 0 else ''}__builtin_inff())"
    return f"{value.hex()}f"


_PLACE = {
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
    **{name: f"here.{member}" for name, member in _PLACE.items()},
    "grid_origin": "$uint3{0, 0, 0}",
    "thread_index_in_simdgroup": "get_sub_group_local_id()",
    "simdgroup_index_in_threadgroup": "get_sub_group_id()",
    "threads_per_simdgroup": "32u",
    "thread_execution_width": "32u",
    "simdgroups_per_threadgroup": "(here.threads + 31) / 32",
    "dispatch_simdgroups_per_threadgroup": f"({_NOMINAL} + 31) / 32",
    "thread_index_in_quadgroup": "here.index_in_threadgroup % 4",
    "quadgroup_index_in_threadgroup": "here.index_in_threadgroup / 4",
    "quadgroups_per_threadgroup": "(here.threads + 3) / 4",
    "dispatch_quadgroups_per_threadgroup": f"({_NOMINAL} + 3) / 4",
}


def _entry(signature: Signature, *, flat: bool, even: bool, wide: bool, scalar: bool) -> str:
    function = signature.function
    arguments = [""] * signature.arity
    formals = []
    for i, param in enumerate(signature.params):
        space = "__local" if param.space == "threadgroup" else "__global"
        formals.append(f"{space} void* b{i}")
        kind = f"$parameter<{param.position}, decltype({function})>::type"
        arguments[param.position] = f"*($pointer<{kind}>::type)b{i}" if param.reference else f"({kind})b{i}"
    for given in signature.inputs:
        arguments[given.position] = _input(given, function)
    if flat:
        formals.append("const __global $region* region")
    # Every SIMD-group meets first. With a sub-group operation in it the device runs a partial SIMD-group by the same
    # vector code under a mask, where it would otherwise make scalar code, which its optimiser gets wrong (`min(x, ~x)`,
    # sums of floats reassociated in precise math). And it cuts SIMD-groups before `if (i < 5) return;`, not after it.
    meet = "" if scalar else "  $simd_barrier(0);\n"
    here = f"$here<{_truth(wide)}, {_truth(even)}>(region)" if flat else f"$here<{_truth(wide)}>()"
    return (
        f"__attribute__((intel_reqd_sub_group_size(32))) __kernel void {ENTRY}({', '.join(formals)}) {{\n"
        f"{meet}"
        f"  $place here = {here};\n"
        f"  {function}({', '.join(arguments)});\n"
        "}"
    )


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _input(given: Input, function: str) -> str:
    kind = f"$parameter<{given.position}, decltype({function})>::type"
    return f"$input<{kind}>::from({_INPUT[given.attribute]})"
