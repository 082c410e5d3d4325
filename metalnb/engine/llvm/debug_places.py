"""Where in an author's text an instruction comes from: LLVM's ``!DILocation``, through what was inlined."""

from __future__ import annotations

import re

from .instructions import IRModule

__all__ = ["line_in"]

_LINE = re.compile(r"\bline: (\d+)")
_REFERENCE = {word: re.compile(rf"\b{word}: (![0-9]+)") for word in ("scope", "inlinedAt", "file")}
_FILE = re.compile(r'filename: "([^"]*)"')


def line_in(module: IRModule, place: str, file: str) -> int:
    """Return the line of a file that an instruction belongs to.

    Parameters
    ----------
    module : IRModule
        Compiled with line tables.
    place : str
        The instruction's ``!dbg !7``.
    file : str

    Returns
    -------
    int
        From 1; 0 where nothing of the file leads there. Of functions that were inlined the innermost in this file.
    """
    at = place.removeprefix("!dbg ")
    while text := module.metadata.get(at):
        found = _LINE.search(text)
        if found and _file_of(module, text) == file:
            return int(found[1])
        outer = _REFERENCE["inlinedAt"].search(text)
        at = outer[1] if outer else ""
    return 0


def _file_of(module: IRModule, text: str) -> str:
    """Return the file of a location's scope."""
    while scope := _REFERENCE["scope"].search(text):
        text = module.metadata.get(scope[1], "")
        if file := _REFERENCE["file"].search(text):
            named = _FILE.search(module.metadata.get(file[1], ""))
            return named[1] if named else ""
    return ""
