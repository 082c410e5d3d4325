"""Where a cell runs that prints: on the engine ``native``, which can."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping

from metalnb import engine as engines
from metalnb.engine.unit import Unit
from metalnb.errors import CompileError, Diagnostic
from metalnb.msl.text.bracket_tree import outline

__all__ = ["engine_of"]

_OWN = frozenset({"$printf"})  # Metal has no such function
_PRINTS = _OWN | {"os_log_default", "os_log"}


def engine_of(units: Mapping[str, Unit], chosen: engines.Engine) -> engines.Engine:
    """Return the engine that runs a cell's kernels: the one chosen, but ``native`` for ``cpu`` if the cell prints.

    Raises
    ------
    CompileError
        When the cell prints, and the engine chosen does not show it.
    """
    if chosen.name == "native" or not units:
        return chosen
    unit = next(iter(units.values()))
    cells = (unit.cell, *unit.headers.values())
    told = [(cell, at, word) for cell in cells for at, word in _printing(cell.edited.text)]
    if not told:
        return chosen
    if chosen.name == "cpu":
        sys.stdout.write(f"{', '.join(units)}: a cell that prints runs on the engine 'native'\n")
        return engines.named("native")
    beyond = [(cell, at) for cell, at, word in told if word in _OWN or not chosen.caps.prints]
    if not beyond:
        return chosen
    cell, at = beyond[0]
    line = cell.edited.text.count("\n", 0, at) + 1
    raise CompileError([Diagnostic(
        line, 1, f"the engine '{chosen.name}' cannot show what a kernel prints", cell.edited.line(line), cell.name,
        "run it on the engine 'native': mnb.use(\"native\"), or %%metal --engine native",
    )])  # fmt: skip


@functools.lru_cache(64)
def _printing(text: str) -> tuple[tuple[int, str], ...]:
    """Return where a cell prints, and with which word."""
    tokens = (token for tree in outline(text).trees for token in tree.tokens)
    return tuple((token.start, token.text) for token in tokens if token.text in _PRINTS)
