"""The language's own rules, which clang does not know: what Apple's compiler refuses is refused here.

Each message says what, the cure, and the section of the Metal Shading Language specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from metalnb.errors import Diagnostic

from .attributes import INPUTS
from .hints import reword
from .parse import Parsed
from .scan import Cell
from .signature import Signature

__all__ = ["MAX_BUFFERS", "check", "is_input", "no_kernel", "no_space", "reword", "space_of", "unbound"]

MAX_BUFFERS = 31


def is_input(name: str) -> bool:
    """Tell whether an attribute makes a kernel input (MSL 5.2.3.6)."""
    return name in INPUTS


def space_of(pointee: Any) -> Literal["device", "constant", "threadgroup"] | None:
    """Read the address space of what a parameter points to; None for thread or none."""
    words = re.findall(r"__\w+", pointee.spelling.split("<")[0])
    if "__global_device" in words:
        return "device"
    if "__local" in words:
        return "threadgroup"
    return "constant" if "__global" in words else None


def no_kernel(cell: Cell) -> Diagnostic:
    """Word the finding that a cell has no kernel."""
    text = cell.edited.line(1)
    return Diagnostic(
        1, 1, "no kernel in this cell", text, cell.name,
        "mark a function with kernel void …, or keep the text for other cells with %%metal --header NAME",
    )  # fmt: skip


def no_space(parsed: Parsed, problems: list[Diagnostic], cursor: Any) -> None:
    """Note a kernel parameter without an address space a kernel can have (MSL 4, 5.2.1)."""
    problems.append(parsed.diagnostic(
        cursor.location, f"kernel parameter '{cursor.spelling}' has no address space",
        "write device or constant (or threadgroup) before its type (MSL 4)",
    ))  # fmt: skip


def unbound(parsed: Parsed, problems: list[Diagnostic], cursor: Any, kind: Any) -> None:
    """Note a kernel parameter that is neither a buffer nor an input (MSL 5.2.1)."""
    spelled = reword(kind.spelling)
    problems.append(parsed.diagnostic(
        cursor.location, f"kernel parameter '{cursor.spelling}' of type '{spelled}' is neither a buffer nor an input",
        f"for a value from Python write: constant {spelled}& {cursor.spelling}; "
        "for a thread index add an attribute such as [[thread_position_in_grid]] (MSL 5.2)",
    ))  # fmt: skip


def check(parsed: Parsed, kernels: list[Signature]) -> Iterator[Diagnostic]:
    """Check what the parser let pass."""
    yield from _kernel_names(parsed, kernels)


def _kernel_names(parsed: Parsed, kernels: list[Signature]) -> Iterator[Diagnostic]:
    seen: dict[str, Signature] = {}
    for k in kernels:
        if k.name in seen:
            text = parsed.cell.edited.line(k.line)
            yield Diagnostic(k.line, 1, f"two kernels are named '{k.name}' (the other is on line {seen[k.name].line})",
                             text, parsed.cell.name, "rename one: a program binds each kernel by its name")  # fmt: skip
        seen[k.name] = k
