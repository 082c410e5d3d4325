"""Reject cells that print, on engines that do not show the output."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from metalnb.engine import Engine
from metalnb.engine.unit import Unit
from metalnb.errors import CompileError, Diagnostic
from metalnb.msl.text.bracket_tree import outline

__all__ = ["refuse_unseen_prints"]

_OWN = "$printf"  # no Metal function has this name
_PRINTS = frozenset({_OWN, "os_log_default", "os_log"})


def refuse_unseen_prints(units: Mapping[str, Unit], engine: Engine) -> None:
    """Raise an error if a cell prints and the engine cannot show the output.

    Raises
    ------
    CompileError
        At the first statement whose output would not be shown.
    """
    if engine.name == "cpu" or not units:
        return
    unit = next(iter(units.values()))
    for cell in (unit.cell, *unit.headers.values()):
        for offset, word in _printing(cell.edited.text):
            if word == _OWN or not engine.caps.prints:
                line = cell.edited.text.count("\n", 0, offset) + 1
                raise CompileError([Diagnostic(
                    line, 1, f"the engine '{engine.name}' cannot show what a kernel prints", cell.edited.line(line),
                    cell.name, "run it on the engine 'cpu': mnb.use(\"cpu\"), or %%metal --engine cpu",
                )])  # fmt: skip


@functools.lru_cache(64)
def _printing(text: str) -> tuple[tuple[int, str], ...]:
    """Return the position of a cell's first print statement, and the word that prints."""
    tokens = (token for tree in outline(text).trees for token in tree.tokens)
    return tuple((token.start, token.text) for token in tokens if token.text in _PRINTS)
