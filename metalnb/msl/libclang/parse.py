"""Parse a cell with libclang, in process: one translation unit, and its diagnostics in the author's own text."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from metalnb.compile_limits import time_limit
from metalnb.errors import CompileError, Diagnostic

from ..language.unsupported import declarator, is_refusal, refusal
from ..language.versions import DEFAULT, Version
from ..text.includes import INCLUDE
from ..text.scanned_cell import MAIN, Cell
from ..text.unused_functions import without_instantiations
from .ambiguous_calls import choice
from .deep_stack import on_a_deep_stack
from .flags import FOLDER, TARGET, flags, header_file, posix_path
from .hints import TO_BFLOAT, hint_for, reword
from .precompiled import begins_with_library, precompiled_header

if TYPE_CHECKING:
    from clang import cindex

__all__ = ["Parsed", "parse"]


class Parsed:
    """A parsed cell.

    Attributes
    ----------
    unit : clang.cindex.TranslationUnit
    cell : Cell
    headers : mapping of str to Cell
    version : tuple of int
        The version of the language.
    """

    def __init__(
        self, unit: cindex.TranslationUnit, cell: Cell, headers: Mapping[str, Cell], version: Version = DEFAULT,
    ) -> None:  # fmt: skip
        self.version = version
        self.unit = unit
        self.cell = cell
        self.headers = headers
        self._cells = {f"{FOLDER}/{name}": header for name, header in headers.items()}
        self._cells[f"{FOLDER}/{MAIN}"] = cell
        self._owners: dict[int, Cell | None] = {}

    def owner(self, location: cindex.SourceLocation) -> Cell | None:
        """Return the author's cell that contains a location; None for metalnb's own headers."""
        clang, file = _cindex(), _cindex().c_object_p()
        clang.conf.lib.clang_getInstantiationLocation(location, ctypes.byref(file), None, None, None)
        if not file:
            return None
        file_id = ctypes.addressof(file.contents)  # identifies the file: getting its name takes longer
        if file_id not in self._owners:
            self._owners[file_id] = self._cells.get(posix_path(location.file.name))
        return self._owners[file_id]

    def line(self, location: cindex.SourceLocation) -> int:
        """Return the line of a location in the author's text; 1 if it is outside."""
        cell = self.owner(location)
        return max(1, min(location.line, cell.edited.line_count)) if cell else 1

    def diagnostic(self, location: Any, message: str, hint: str = "", severity: str = "error") -> Diagnostic:
        """Return a diagnostic at a location in the author's text."""
        cell = self.owner(location)
        if cell is None:
            return Diagnostic(1, 1, message, file=self.cell.name, hint=hint, severity=severity)
        return cell.diagnostic(location.line, location.column, message, hint, severity)

    def errors(self) -> Iterator[Diagnostic]:
        """Yield the parser's errors, each at a place in the author's text."""
        # From CXDiagnostic_Error on.
        errors = [d for d in self.unit.diagnostics if d.severity >= 3 and not self._is_undetermined(d.spelling)]
        errors = [d for d in errors if not self._is_of_an_input(d.spelling)] or errors
        not_ours = [d for d in errors if not self._is_ours(d.location)]
        for error in not_ours or errors:
            refused = self._refusal(error.spelling)
            if refused is not None:
                yield refused
                continue
            yield self._unsupported_declaration(error) or self._unended_using(error) or self.finding(error)

    def finding(self, diagnostic: cindex.Diagnostic, severity: str = "error") -> Diagnostic:
        """Return a parser diagnostic at its place in the author's text, with the macro that contains it."""
        location = diagnostic.location
        if self.owner(location) is None:  # inside a header: report it at the author's #include
            notes = (n for n in diagnostic.children if not n.spelling.startswith("in file included from"))
            location = next((n.location for n in notes if self.owner(n.location)), location)
        message = _shorten(diagnostic.spelling)
        hint = choice(self.unit, location) if message.endswith("' is ambiguous") else ""
        if any(_ROUNDED.search(note.spelling) for note in diagnostic.children):
            hint = TO_BFLOAT
        hint = hint or hint_for(message)
        return self.diagnostic(location, reword(message) + self._in_macro(diagnostic), hint, severity)

    def _in_macro(self, diagnostic: cindex.Diagnostic) -> str:
        """Return text that names the author's macro that contains a finding, or an empty string."""
        notes = ((re.fullmatch(
            r"expanded from macro '(\w+)'", n.spelling,
        ), n.location) for n in diagnostic.children)  # fmt: skip
        macros = [
            (match[1], self.owner(place), place.line)
            for match, place in itertools.takewhile(lambda note: note[0] is not None, notes)
            if match is not None and self.owner(place) is not None
        ]
        if not macros:
            return ""
        name, cell, line = macros[-1]  # the innermost
        file = f"{cell.name} " if cell is not None and cell is not self.owner(diagnostic.location) else ""
        return f" (in the macro {name}, {file}line {line})"

    def _unsupported_declaration(self, diagnostic: cindex.Diagnostic) -> Diagnostic | None:
        """Report the texture or sampler itself if the parser only reports a word in its declaration."""
        cell = self.owner(diagnostic.location)
        if cell is None:
            return None
        text_before = cell.edited.text.encode()[: diagnostic.location.offset].decode(errors="replace")
        match = declarator(_shorten(diagnostic.spelling), text_before)
        if match is None:
            return None
        lines = text_before[: match.start()].split("\n")
        return cell.diagnostic(len(lines), len(lines[-1].encode()) + 1, *refusal(match[0]))

    def _unended_using(self, diagnostic: cindex.Diagnostic) -> Diagnostic | None:
        """Report a ``using namespace`` that lacks its semicolon at its own line, not at the next kernel."""
        cell = self.owner(diagnostic.location)
        if cell is None or diagnostic.spelling != "expected ';' after attribute list":
            return None
        text_before = cell.edited.text.encode()[: diagnostic.location.offset].decode(errors="replace")
        match = re.search(r"\busing\s+namespace\s+\w+(?=[^;{}]*\Z)", text_before)
        if match is None:
            return None
        lines = text_before[: match.end()].split("\n")
        message = "expected ';' after namespace name"
        return cell.diagnostic(len(lines), len(lines[-1].encode()) + 1, message, hint_for(message))

    def _is_ours(self, location: cindex.SourceLocation) -> bool:
        """Return whether a location is past the cell's own text, where appended declarations repeat its errors."""
        return self.owner(location) is self.cell and location.line > self.cell.edited.text.count("\n") + 1

    def _is_undetermined(self, message: str) -> bool:
        """Return whether an error only says that a constexpr function constant has no value before it is compiled."""
        match = re.fullmatch(r"constexpr variable '(\w+)' must be initialized by a constant expression", message)
        return match is not None and any(f"$initial({match[1]})" in c.edited.text for c in self._cells.values())

    def _is_of_an_input(self, message: str) -> bool:
        """Return whether an error says only that a program-scope input was not passed to a place with another error."""
        match = re.fullmatch(r"'(\w+)' does not refer to a value", message)
        return match is not None and any(i.name == match[1] for c in self._cells.values() for i in c.scope_inputs)

    def _refusal(self, message: str) -> Diagnostic | None:
        """Return the scan's refusal that a parser's message stands for, if any."""
        mark = re.search(r"\$refused_\w+", message)
        return next((c.refused[mark[0]] for c in self._cells.values() if mark[0] in c.refused), None) if mark else None

    def includes_files(self) -> bool:
        """Return whether the parser read a file that is neither a cell nor one of metalnb's headers."""
        ours = (f"{INCLUDE.as_posix()}/", f"{TARGET.as_posix()}/")
        files_read = (posix_path(i.include.name) for i in self.unit.get_includes())
        return any(name not in self._cells and not name.startswith(ours) for name in files_read)


def _lacks_a_name(parsed: Parsed) -> bool:
    """Return whether an error is about an unknown name, for which the parser's suggestion depends on the text.

    With the precompiled library the parser knows other names ("did you mean 'using'?"); its other messages are the
    same.
    """
    return any(d.severity >= 3 and _NO_SUCH_NAME.search(d.spelling) for d in parsed.unit.diagnostics)


_NO_SUCH_NAME = re.compile(r"did you mean|undeclared|unknown|no (?:\w+ )?\w+ named|does not name")
_ROUNDED = re.compile(r"no known conversion from '[^']*\bfloat'.* to '[^']*\bbfloat'")
_LONGEST = 4096  # most characters in a message: the name of a recursively nested type can have millions


def _shorten(message: str) -> str:
    half = _LONGEST // 2
    return message if len(message) <= _LONGEST else f"{message[:half]} … {message[-half:]}"


_LONG_WORD = re.compile(r"[\w$]{512}")


@functools.cache
def _cindex() -> Any:
    from clang import cindex

    return cindex


def parse(
    cell: Cell, headers: Mapping[str, Cell], tail: str = "", version: Version = DEFAULT, *,
    with_instantiations: bool = True, allow_errors: bool = False,
) -> Parsed:  # fmt: skip
    """Parse a scanned cell.

    Parameters
    ----------
    cell : Cell
    headers : mapping of str to Cell
        The header cells it may include, scanned.
    tail : str
        Declarations to append to the cell's text.
    version : tuple of int
        The version of the language.
    with_instantiations : bool
        Whether to parse the cell's explicit instantiations too, each of which adds a function.
    allow_errors : bool
        Whether to also parse a cell that has errors, as far as possible.

    Raises
    ------
    CompileError
        If the cell does not parse, with every error found.
    """
    main = f"{FOLDER}/{MAIN}"
    text, *header_texts = (
        c.edited.text if with_instantiations else without_instantiations(c) for c in (cell, *headers.values())
    )
    files = [(header_file(name), header_text) for name, header_text in zip(headers, header_texts, strict=True)]
    files.append((main, text if text.endswith("\n") or not tail else text + "\n"))
    if tail:
        files[-1] = (main, files[-1][1] + tail)
    result = _parse_files(cell, headers, files, version, library=begins_with_library(text))
    if allow_errors:
        return result
    errors = list(result.errors())
    if errors and begins_with_library(text) and _lacks_a_name(result):  # the text changes its suggestions
        result = _parse_files(cell, headers, files, version, library=False)
        errors = list(result.errors())
    if errors:
        raise CompileError(_first_errors(errors, result))
    return result


def _parse_files(
    cell: Cell, headers: Mapping[str, Cell], files: list[tuple[str, str]], version: Version, *, library: bool,
) -> Parsed:  # fmt: skip
    """Parse the files, the cell last; either the library is precompiled, or the cell includes parts of it."""
    cindex = _cindex()

    def work() -> Any:
        flags_used = flags(version)
        if any(_LONG_WORD.search(text) for _, text in files):  # searching for a similar name would take minutes
            flags_used[flags_used.index("-fspell-checking")] = "-fno-spell-checking"
        header_path = precompiled_header(cindex, tuple(flags_used), library=library)
        if header_path is not None:
            fast_flags = [*flags_used[: flags_used.index("-include")], "-include-pch", str(header_path)]
            with contextlib.suppress(cindex.TranslationUnitLoadError):  # another parser wrote it: use the text
                return cindex.Index.create().parse(files[-1][0], args=fast_flags, unsaved_files=files)
        return cindex.Index.create().parse(files[-1][0], args=flags_used, unsaved_files=files)

    seconds = time_limit(sum(len(text) for _, text in files))
    try:
        unit = on_a_deep_stack(work, seconds)
    except TimeoutError:
        message = f"the parser did not finish within {seconds:.0f} s"
        hint = "let templates instantiate fewer others, or set METALNB_COMPILE_TIMEOUT to more seconds"
        raise CompileError([cell.about_all(message, hint)]) from None
    parsed = Parsed(unit, cell, headers, version)
    if parsed.includes_files():  # the scan refuses file includes; if it misses one, do not reveal the file
        raise CompileError([cell.about_all("the cell includes a file: a cell cannot include files")])
    return parsed


def _first_errors(errors: list[Diagnostic], parsed: Parsed) -> list[Diagnostic]:
    """Drop duplicates, and further errors on a line with a refusal."""
    refusals = [r for c in (parsed.cell, *parsed.headers.values()) for r in c.refused.values()]
    ordinary = [d for d in dict.fromkeys(errors) if d not in refusals and not is_refusal(d.message)]
    lines = {(d.file, d.line) for d in errors if d not in ordinary}
    return [d for d in dict.fromkeys(errors) if d not in ordinary or (d.file, d.line) not in lines]
