"""The unit that an engine compiles: one kernel, with everything that determines its meaning."""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from metalnb.msl.language.versions import DEFAULT, Version
from metalnb.msl.signature import Constant, Param, Signature
from metalnb.msl.text.conditions import evaluate
from metalnb.msl.text.scanned_cell import MAIN, Cell
from metalnb.msl.text.unused_functions import without_unused

__all__ = ["CHECKED", "LIBRARY_CHECKED", "Unit", "literal", "threadgroup_variables"]

_THREADGROUP_VARIABLE = re.compile(r"(?:(\w+) )?\(&(\w+)\)[^;=]*= \$threadgroup_storage<__COUNTER__")

# The default for cells and for the library's own kernels; docs/robustness.md says what the checks cost.
CHECKED = os.environ.get("METALNB_CHECKED") != "0"
LIBRARY_CHECKED = os.environ.get("METALNB_CHECKED") == "1"


@dataclass(frozen=True, slots=True)
class Unit:
    """One kernel, for an engine to compile.

    Attributes
    ----------
    signature : Signature
    cell : Cell
    headers : mapping of str to Cell
    constants : mapping of Constant to value
        The function constants that have a value.
    undefined : tuple of Constant
        The function constants without a value.
    math : {"fast", "precise", "scalar"}
        ``scalar`` is precise, and lets the device compile a kernel whose threadgroups have one thread to scalar code.
        Reserved for the library's kernels that synchronize, whose tests cover that code; a cell cannot select it.
    version : tuple of int
        The version of the language, as the cell sees it.
    checked : bool
        Whether accesses must stay within the kernel's arguments; ignored by an engine that cannot ensure it.
    whole : bool
        Whether the compiler gets the entire cell and its headers, even if the kernel seems to need only part.
    """

    signature: Signature
    cell: Cell
    headers: Mapping[str, Cell] = field(default_factory=dict)
    constants: Mapping[Constant, Any] = field(default_factory=dict)
    undefined: tuple[Constant, ...] = ()
    math: str = "fast"
    version: Version = DEFAULT
    checked: bool = False
    whole: bool = False
    _texts: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def texts(self) -> Mapping[str, str]:
        """The edited texts of the cell and its headers; unneeded parts are blank, unless ``whole``."""
        if not self._texts:
            cells = {MAIN: self.cell, **self.headers}
            complete_texts = (cell.edited.text for cell in cells.values())
            texts = complete_texts if self.whole else without_unused(cells.values(), self.signature.function)
            self._texts.update(zip(cells, texts, strict=True))
        return self._texts

    @property
    def text(self) -> str:
        """The text of the cell."""
        return self.texts[MAIN]

    def with_texts(self, texts: Mapping[str, str]) -> Unit:
        """Return the unit with other texts, whose lines keep their numbers."""
        changed = replace(self)
        changed._texts.update(texts)  # noqa: SLF001  (its own)
        return changed

    def is_absent(self, param: Param) -> bool:
        """Return whether a function constant removes a parameter (MSL 5.8.1)."""
        if not param.gate:
            return False
        values = {c.name: None for c in self.undefined} | {c.name: v for c, v in self.constants.items()}
        return not evaluate(param.condition or param.gate, values)


def threadgroup_variables(unit: Unit) -> list[tuple[str, str]]:
    """Return the type and the name of each threadgroup variable that the kernel's text declares, by `__COUNTER__`.

    The type is empty if it is not a single word. With header cells, whose declarations count too, the list is empty.
    """
    return _THREADGROUP_VARIABLE.findall(unit.text) if not unit.headers else []


def literal(kind: str, value: Any) -> str:
    """Return a scalar as MSL, ``literal("half", 0.5)`` -> ``(half)0x1p-1f``, or a vector, from a tuple."""
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
