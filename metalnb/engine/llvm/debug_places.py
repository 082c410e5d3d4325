"""Where in an author's text an instruction comes from: LLVM's ``!DILocation``, through what was inlined."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .instructions import IRModule

__all__ = ["SourcePlace", "line_in", "place_in"]

_LINE, _COLUMN = re.compile(r"\bline: (\d+)"), re.compile(r"\bcolumn: (\d+)")
_REFERENCE = {word: re.compile(rf"\b{word}: (![0-9]+)") for word in ("scope", "inlinedAt", "file")}
_FILE = re.compile(r'filename: "([^"]*)"')


class SourcePlace(NamedTuple):
    """A place in one of the author's texts, as clang was given it.

    Attributes
    ----------
    file : str
    line, column : int
        From 1.
    """

    file: str
    line: int
    column: int


def place_in(module: IRModule, place: str, is_own: Callable[[str], bool]) -> SourcePlace | None:
    """Return the place in the author's files that an instruction belongs to; None where nothing of them leads there.

    Parameters
    ----------
    module : IRModule
        Compiled with line tables.
    place : str
        The instruction's ``!dbg !7``.
    is_own : callable
        Says whether a file is the author's.
    """
    at = place.removeprefix("!dbg ")
    while text := module.metadata.get(at):
        line, file = _LINE.search(text), _file_of(module, text)
        if line and line[1] != "0" and is_own(file):
            column = _COLUMN.search(text)
            return SourcePlace(file, int(line[1]), int(column[1]) if column else 1)
        outer = _REFERENCE["inlinedAt"].search(text)
        at = outer[1] if outer else ""
    return None


def line_in(module: IRModule, place: str, file: str) -> int:
    """Return the line of a file that an instruction belongs to; 0 where nothing of the file leads there.

    See `place_in`. Of functions that were inlined it is the innermost in this file.
    """
    found = place_in(module, place, lambda one: one == file)
    return found.line if found else 0


def _file_of(module: IRModule, text: str) -> str:
    """Return the file of a location's scope."""
    while scope := _REFERENCE["scope"].search(text):
        text = module.metadata.get(scope[1], "")
        if file := _REFERENCE["file"].search(text):
            named = _FILE.search(module.metadata.get(file[1], ""))
            return named[1].removeprefix("./") if named else ""
    return ""
