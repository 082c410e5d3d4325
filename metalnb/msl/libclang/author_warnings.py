"""Pass on clang's warnings about code that is rarely intended, as `MetalnbWarning` at the author's line.

A cell silences one as usual: ``#pragma clang diagnostic ignored "-Wreturn-type"``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING

from metalnb.errors import Diagnostic, MetalnbWarning

if TYPE_CHECKING:
    from .parse import Parsed

__all__ = ["at_the_text", "cautions", "warn"]

# Whether a warning is shown at its line of Metal: when IPython runs a magic, there is no line of Python to name.
at_the_text: ContextVar[bool] = ContextVar("at_the_text", default=False)

# The groups of clang's warnings that correct code hardly ever triggers.
_GROUPS = frozenset(f"-W{name}" for name in (
    "#warnings", "array-bounds", "division-by-zero", "parentheses", "return-stack-address", "return-type",
    "uninitialized", "unused-comparison",
))  # fmt: skip
_COMMA = "left operand of comma operator has no effect"  # for x[row, column]; its group contains more warnings
_BUNDLED = "metalnb/"  # the kernel library's files: their author is not the cell's
_WARNING = 2  # CXDiagnostic_Warning


def cautions(parsed: Parsed, notes: Iterable[Diagnostic] = ()) -> tuple[Diagnostic, ...]:
    """Return the warnings in the author's own text, each only once even if a template is instantiated repeatedly.

    Parameters
    ----------
    parsed : Parsed
    notes : iterable of Diagnostic
        The rules' own warnings.
    """
    parser = [
        parsed.finding(finding, severity="warning")
        for finding in parsed.unit.diagnostics
        if finding.severity == _WARNING
        and (finding.option in _GROUPS or finding.spelling == _COMMA)
        and parsed.owner(finding.location) is not None
    ]
    unique = dict.fromkeys(d for d in (*parser, *notes) if not d.file.startswith(_BUNDLED))
    return tuple(sorted(unique, key=lambda d: (d.file != parsed.cell.name, d.line, d.column)))


def warn(warnings_found: Iterable[Diagnostic]) -> None:
    """Issue warnings at the line that asked metalnb to compile, and again after an unrelated change to the cell."""
    for finding in warnings_found:
        frame = _outside()
        place = (finding.file, finding.line) if at_the_text.get() else (frame.f_code.co_filename, frame.f_lineno)
        # `warnings.warn` would warn once per line, even after the cell around that line has changed.
        warnings.warn_explicit(MetalnbWarning(finding), MetalnbWarning, *place)


def _outside() -> FrameType:
    """Return the innermost frame outside metalnb."""
    frame = sys._getframe(1)  # noqa: SLF001  (as `warnings` itself finds it)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "metalnb":
        frame = frame.f_back
    return frame
