"""A kernel in words: its docstring, and its card in a notebook."""

from __future__ import annotations

from metalnb.display import Card
from metalnb.engine.base import Binary, Caps
from metalnb.engine.unit import Unit
from metalnb.msl.signature import Reflection, Signature

__all__ = ["declares_memory", "docstring_of", "make_card"]


def declares_memory(unit: Unit) -> bool:
    """Return whether a kernel's cells declare threadgroup variables, whose size only the binary knows."""
    cells = (unit.cell, *unit.headers.values())
    return any("$threadgroup_storage" in cell.edited.text for cell in cells)


def make_card(
    unit: Unit, reflection: Reflection, engine: str, caps: Caps, binary: Binary | None, source: str,
) -> Card:  # fmt: skip
    """Return the notebook's description of a kernel; `binary` is None if it has not been compiled."""
    signature = unit.signature
    return Card(
        signature, reflection, engine, caps.device, unit.math,
        constants={c.name: v for c, v in unit.constants.items()},
        absent=frozenset(p.name for p in signature.params if unit.is_absent(p)),
        threadgroup_bytes=binary.threadgroup_bytes if binary is not None else 0,
        threadgroup_limit=caps.threadgroup_memory,
        pointers=caps.pointers,
        threads=binary.threads if binary is not None else 0,
        more=tuple(binary.facts()) if binary is not None else (),
        source=source,
    )  # fmt: skip


def docstring_of(signature: Signature) -> str:
    """Return a kernel's docstring: its comment in the cell, its parameters, and the options of a call."""
    lines = [signature.doc or f"Metal kernel {signature.name}.", ""]
    if signature.params:
        lines += ["Parameters", "----------"]
        origins = {p.name: ", made by the launch" for p in signature.threadgroup}
        lines += [f"{p.name} : {p.spelling} {p.attribute}{origins.get(p.name, '')}" for p in signature.params]
    if signature.inputs:
        lines += ["", "Kernel inputs", "-------------"]
        lines += [f"{i.name} : {i.type} [[{i.attribute}]]" for i in signature.inputs]
    options = "grid, groups, threadgroup, shapes, threadgroup_memory, timeout"
    lines += ["", f"Options of a call: {options}; see help(metalnb.Kernel)."]
    return "\n".join(lines).rstrip() + "\n"
