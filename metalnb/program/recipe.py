"""The inputs of a program: the checked source and options, and a key for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from metalnb.errors import ArgumentError, CompileError, Diagnostic
from metalnb.msl.language.versions import DEFAULT, Version, read
from metalnb.msl.text.includes import is_header
from metalnb.msl.text.scanned_cell import MAIN

__all__ = ["Recipe", "check_text", "decode", "header_name"]


class Recipe:
    """The inputs of a program. Pickling a program pickles its recipe.

    Attributes
    ----------
    msl : str or None
        The requested version of the language.
    newest : tuple of int
        The newest version that the engine supports. It is not pickled: another process determines its own.
    own : bool
        Whether the source is the library's own. Its template instances are then read at their first call.
    """

    __slots__ = ("checked", "constants", "engine", "headers", "math", "msl", "name", "newest", "own", "source")

    def __init__(
        self, source: str, constants: Mapping[str, Any], math: str, headers: Mapping[str, str], engine: str, name: str,
        msl: str | None = None, checked: bool = False,
    ) -> None:  # fmt: skip
        self.source = source
        self.constants = dict(constants)
        self.math = math
        self.headers = dict(headers)
        self.engine = engine
        self.name = name
        self.msl = msl
        self.checked = checked
        self.newest = DEFAULT
        self.own = False

    @property
    def version(self) -> Version:
        """The version of the language: the requested version, or else metalnb's, limited to the engine's newest."""
        return min(read(self.msl) if self.msl else DEFAULT, self.newest)

    @property
    def content(self) -> tuple[Any, ...]:
        """Everything that the kernels depend on; the cell's name and line numbers matter only to diagnostics."""
        constants = tuple((k, type(v).__name__, repr(v)) for k, v in sorted(self.constants.items()))
        headers = tuple(sorted(self.headers.items()))
        return self.source.lstrip("\n"), constants, self.math, headers, self.engine, self.msl, self.checked, self.own

    @property
    def key(self) -> tuple[Any, ...]:
        """A hashable key for the entire recipe."""
        return *self.content, self.name, self.source

    def within(self, newest: Version) -> Recipe:
        """Limit the recipe to the newest version that its engine supports, and return it."""
        self.newest = newest
        return self

    def of_library(self, is_library: bool = True) -> Recipe:
        """Mark the source as the library's own, or not, and return the recipe."""
        self.own = is_library
        return self

    def specialized(self, constants: Mapping[str, Any]) -> Recipe:
        """Return the recipe with different values for some of its function constants."""
        values = {**self.constants, **constants}
        arguments = self.source, values, self.math, self.headers, self.engine, self.name, self.msl, self.checked
        return Recipe(*arguments).of_library(self.own)

    def on(self, engine: str) -> Recipe:
        """Return the recipe for another engine."""
        arguments = self.source, self.constants, self.math, self.headers, engine, self.name, self.msl, self.checked
        return Recipe(*arguments).of_library(self.own)

    def __reduce__(self) -> tuple[Any, ...]:
        rest = self.headers, self.engine, self.name, self.msl, self.checked
        return Recipe, (self.source, self.constants, self.math, *rest), (None, {"own": self.own})


def decode(data: bytes, name: str) -> str:
    """Read a file's bytes as text.

    Raises
    ------
    CompileError
        If the bytes are not UTF-8; the error has the line and column.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        data, start = error.object, error.start
        begin = data.rfind(b"\n", 0, start) + 1
        column = len(data[begin:start].decode("utf-8")) + 1
        text = data[begin:].split(b"\n", 1)[0].decode("utf-8", "replace")
        message = f"the file is not UTF-8: byte 0x{data[start]:02x}"
        diagnostic = Diagnostic(data.count(b"\n", 0, start) + 1, column, message, text, name, "save it as UTF-8")
        raise CompileError([diagnostic]) from None


_HEADER = re.compile(r"[A-Za-z0-9_][\w.-]*(?:/[\w][\w.-]*)*", re.ASCII)


def header_name(name: str) -> str:
    """Check the name of a header cell; return it without leading ``../``.

    Raises
    ------
    ArgumentError
    """
    if isinstance(name, str):
        name = re.sub(r"^(?:\.\.?/)+", "", name)
    if name == MAIN or is_header(name):
        owner = "one of MSL's own headers" if name != MAIN else "the cell itself"
        raise ArgumentError(f"headers: {name!r} is the name of {owner}. Choose another name.")
    if not _HEADER.fullmatch(str(name)):
        raise ArgumentError(f"headers: a name has letters, digits and '_', '-', '.', '/' for folders; got {name!r}.")
    return name


def check_text(source: Any, name: str) -> str:
    """Check a text.

    Raises
    ------
    ArgumentError
        If the source is not a str.
    CompileError
        If the source is not valid Unicode; the error has the line and column.
    """
    if not isinstance(source, str):
        message = f"compile: source is a str of MSL; got {type(source).__name__}."
        raise ArgumentError(message)
    try:
        source.encode("utf-8")
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        column = error.start - (source.rfind("\n", 0, error.start) + 1) + 1
        line_text = source.split("\n")[line - 1].encode("utf-8", "replace").decode()
        message = "the text is not valid Unicode: a lone surrogate"
        raise CompileError([Diagnostic(line, column, message, line_text, name, "save it as UTF-8")]) from None
    return source
