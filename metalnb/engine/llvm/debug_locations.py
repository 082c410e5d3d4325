"""Find an instruction's position in the author's source: LLVM's ``!DILocation``, followed through inlining."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .instructions import IRModule

__all__ = ["Frame", "SourceLocation", "frames_of", "line_in", "location_in"]

_NUMBER = {word: re.compile(rf"\b{word}: (\d+)") for word in ("line", "column")}
_REFERENCE = {word: re.compile(rf"\b{word}: (![0-9]+)") for word in ("scope", "inlinedAt", "file")}
_FILE = re.compile(r'filename: "([^"]*)"')


class SourceLocation(NamedTuple):
    """A position in one of the author's sources, as clang compiled it.

    Attributes
    ----------
    file : str
    line, column : int
        Counted from 1.
    """

    file: str
    line: int
    column: int


class Frame(NamedTuple):
    """A location in one function: file, line and column, and the call site where it was inlined, or ``""``."""

    file: str
    line: int
    column: int
    site: str


def frames_of(module: IRModule, debug_location: str) -> Iterator[Frame]:
    """Yield the locations of an instruction, from the innermost inlined function to the outermost.

    Parameters
    ----------
    module : IRModule
        A module compiled with line tables.
    debug_location : str
        The instruction's ``!dbg !7``.
    """
    node = debug_location.removeprefix("!dbg ")
    while text := module.metadata.get(node):
        line, column = (int(match[1]) if (match := pattern.search(text)) else 0 for pattern in _NUMBER.values())
        outer = _REFERENCE["inlinedAt"].search(text)
        node = outer[1] if outer else ""
        yield Frame(_file_of(module, text), line, column, node)


def location_in(module: IRModule, debug_location: str, is_own: Callable[[str], bool]) -> SourceLocation | None:
    """Return an instruction's position in the author's files, or None.

    Parameters
    ----------
    module, debug_location
        As for `frames_of`.
    is_own : callable
        Returns whether a file is the author's.
    """
    frame = next((frame for frame in frames_of(module, debug_location) if frame.line and is_own(frame.file)), None)
    return SourceLocation(frame.file, frame.line, frame.column or 1) if frame else None


def line_in(module: IRModule, debug_location: str, file: str) -> int:
    """Return an instruction's line in a file; 0 if it has none.

    See `location_in`. Among inlined functions, the innermost one in this file counts.
    """
    location = location_in(module, debug_location, lambda name: name == file)
    return location.line if location else 0


def _file_of(module: IRModule, text: str) -> str:
    """Return the file of a location's scope."""
    while scope := _REFERENCE["scope"].search(text):
        text = module.metadata.get(scope[1], "")
        if file := _REFERENCE["file"].search(text):
            match = _FILE.search(module.metadata.get(file[1], ""))
            return match[1].removeprefix("./") if match else ""
    return ""
