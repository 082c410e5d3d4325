"""The double's shader validation: accesses beyond buffers, as metalnb's validated build finds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalnb.engine.cpu.validated.validated_run import run_validated
from metalnb.engine.unit import Unit
from metalnb.validation.access_report import Finding
from metalnb.validation.judgment import Judge

from .runtime import ObjCObject, selector
from .structures import CONSTANTS


class MTLFunctionLogDebugLocation(ObjCObject):
    def __init__(self, line: int, column: int) -> None:
        self._line, self._column = line, column

    @selector("line")
    def line(self) -> int:
        return self._line

    @selector("column")
    def column(self) -> int:
        return self._column


class MTLFunctionLog(ObjCObject):
    located = True  # whether the library has line numbers

    def __init__(self, kernel: str, finding: Finding) -> None:
        self._kernel, self._finding = kernel, finding

    @selector("type")
    def type(self) -> int:
        return CONSTANTS["MTLFunctionLogTypeValidation"]

    @selector("debugLocation")
    def debugLocation(self) -> MTLFunctionLogDebugLocation | None:
        return MTLFunctionLogDebugLocation(self._finding.line, self._finding.column) if self.located else None

    @selector("description")
    def description(self) -> str:
        deed = "store" if self._finding.written else "load"
        return f'Invalid device {deed} executing kernel function "{self._kernel}"'


def logged(unit: Unit, arguments: list[Any], grid: Any, group: Any) -> list[MTLFunctionLog]:
    """Run a dispatch on copies in the validated build; return the log entries."""
    copies = [a if a is None or isinstance(a, int) else np.array(a) for a in arguments]
    facts = run_validated(unit, copies, grid, group, 10.0)
    before = {
        p.name: a for p, a in zip(unit.signature.params, copies, strict=True) if isinstance(a, np.ndarray)
    }  # fmt: skip
    findings = Judge(unit, grid, group, facts, before, complete=True).findings()
    return [MTLFunctionLog(unit.signature.name, f) for f in findings if f.kind == "beyond"]
