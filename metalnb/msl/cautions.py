"""What clang warns of by itself and is seldom meant: its author gets it as a `MetalnbWarning`, located as errors are.

A cell that means it silences one as everywhere: ``#pragma clang diagnostic ignored "-Wreturn-type"``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from types import FrameType
from typing import TYPE_CHECKING

from metalnb.errors import Diagnostic, MetalnbWarning

if TYPE_CHECKING:
    from .parse import Parsed

__all__ = ["ASKED", "cautions", "warn"]

# Of clang's groups those in which code that is right is hardly ever found.
_GROUPS = frozenset(f"-W{name}" for name in (
    "#warnings", "array-bounds", "division-by-zero", "parentheses", "return-stack-address", "return-type",
    "uninitialized", "unused-comparison",
))  # fmt: skip
# The one of them that is off in clang; and what it refuses by itself: `static constant float` with a value in a struct.
ASKED = ("-Wuninitialized", "-Wno-static-float-init")
_BUNDLED = "metalnb/"  # the kernel library's files: their author is not the cell's
_WARNING = 2  # CXDiagnostic_Warning


def cautions(parsed: Parsed, doubts: Iterable[Diagnostic] = ()) -> tuple[Diagnostic, ...]:
    """Give the warnings at places of the author's own, each once however often a template is instantiated.

    Parameters
    ----------
    parsed : Parsed
    doubts : iterable of Diagnostic
        Those of the rules.
    """
    told = [
        parsed.finding(each, severity="warning")
        for each in parsed.unit.diagnostics
        if each.severity == _WARNING and each.option in _GROUPS and parsed.owner(each.location) is not None
    ]
    found = dict.fromkeys(d for d in (*told, *doubts) if not d.file.startswith(_BUNDLED))
    return tuple(sorted(found, key=lambda d: (d.file != parsed.cell.name, d.line, d.column)))


def warn(found: Iterable[Diagnostic]) -> None:
    """Issue warnings, as from the line that asked metalnb to compile; again for a cell that was changed elsewhere."""
    for each in found:
        frame = _outside()
        # `warnings.warn` would say the same of the same line once, whatever has become of the cell around it.
        warnings.warn_explicit(each.report(), MetalnbWarning, frame.f_code.co_filename, frame.f_lineno)


def _outside() -> FrameType:
    """Give the innermost frame that is not metalnb's."""
    frame = sys._getframe(1)  # noqa: SLF001  (as `warnings` itself finds it)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "metalnb":
        frame = frame.f_back
    return frame
