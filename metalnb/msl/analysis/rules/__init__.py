"""Check MSL's own rules, which clang does not know: reject code that Apple's compiler rejects.

Each message states the error, the fix, and the section of the Metal Shading Language specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from metalnb.errors import Diagnostic

from ...language.attributes import ATTRIBUTES, INPUTS
from ...libclang.parse import Parsed
from ...signature import Signature
from ...text.scanned_cell import Cell, Instantiation
from . import (
    barriers,
    call_graph,
    conversions,
    endless_loops,
    entry_points,
    print_arguments,
    restrictions,
    shifts,
    spaces,
)
from .entry_points import (
    constant_type,
    input_type,
    misplaced_attribute,
    missing_space,
    thread_limit,
    unbound_parameter,
    uninstantiated_template,
)
from .syntax_walk import CellSyntax

__all__ = [
    "MAX_BUFFERS", "check", "constant_type", "input_type", "is_graphics", "is_input", "misplaced_attribute",
    "missing_space", "no_kernel", "space_of", "thread_limit", "unbound_parameter", "uninstantiated_template",
]  # fmt: skip

MAX_BUFFERS = 31


def is_input(name: str) -> bool:
    """Return whether an attribute makes a kernel input (MSL 5.2.3.6)."""
    return name in INPUTS


def space_of(pointee: Any) -> Literal["device", "constant", "threadgroup"] | None:
    """Read the address space that a parameter points to; None for the thread space, or if there is none."""
    words = re.findall(r"__\w+", pointee.spelling.split("<")[0])
    if "__global_device" in words:
        return "device"
    if "__local" in words:
        return "threadgroup"
    return "constant" if "__global" in words else None


def is_graphics(name: str) -> bool:
    """Return whether an attribute belongs to the graphics pipeline (MSL 5.2.3)."""
    return name in ATTRIBUTES and ATTRIBUTES[name].use == "graphics"


def no_kernel(cell: Cell) -> Diagnostic:
    """Return the diagnostic for a cell without a kernel."""
    hint = "mark a function with kernel void …, or keep the text for other cells with %%metal --header NAME"
    return cell.about_all("no kernel in this cell", hint)


def check(
    parsed: Parsed, kernels: list[Signature], instances: Iterable[Instantiation], syntax: CellSyntax,
) -> Iterator[Diagnostic]:  # fmt: skip
    """Check a cell that the parser accepted; a finding of severity "warning" does not reject it.

    Parameters
    ----------
    parsed : Parsed
    kernels : list of Signature
        The cell's kernels.
    instances : iterable of Instantiation
        The statements that instantiate some of them.
    syntax : CellSyntax
        The cell's contents.
    """
    yield from _kernel_names(parsed, kernels, instances)
    space_errors = list(spaces.check(parsed, syntax))
    yield from space_errors
    yield from entry_points.check(parsed, syntax)
    yield from call_graph.check(parsed, syntax)
    # A pointer without an address space is treated as a thread pointer, which causes errors that are only noise.
    lines = {(d.file, d.line) for d in space_errors}
    yield from (d for d in conversions.check(parsed, syntax) if (d.file, d.line) not in lines)
    yield from restrictions.check(parsed, syntax)
    yield from shifts.check(parsed, syntax)
    yield from endless_loops.check(parsed, syntax)
    yield from barriers.check(parsed, syntax)
    yield from print_arguments.check(parsed, syntax)


def _kernel_names(
    parsed: Parsed, kernels: list[Signature], instances: Iterable[Instantiation],
) -> Iterator[Diagnostic]:  # fmt: skip
    lines = {(m.name, m.function, m.type): m.line for m in instances}
    by_name: dict[str, int] = {}
    for k in kernels:
        line = lines.get((k.name, k.function, k.type), k.line)
        if k.name in by_name:
            text = parsed.cell.edited.line(line)
            match = re.search(rf"\b{re.escape(k.name)}\b", text)
            column = match.start() + 1 if match else 1
            yield Diagnostic(
                line, column, f"two kernels are named '{k.name}' (the other is on line {by_name[k.name]})",
                text, parsed.cell.name, "rename one: a program binds each kernel by its name",
            )  # fmt: skip
        by_name[k.name] = line
