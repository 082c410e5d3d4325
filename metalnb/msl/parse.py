"""libclang, in process: one parsed translation unit for a cell, and its diagnostics in the author's own text."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from metalnb.errors import CompileError, Diagnostic

from .cautions import ASKED
from .cell import MAIN, Cell
from .hints import hint_for, reword
from .includes import INCLUDE
from .outside import declarator, is_refusal, refusal
from .prelude import begins_with_library, precompiled

if TYPE_CHECKING:
    from clang import cindex

__all__ = ["FOLDER", "Parsed", "flags", "on_a_deep_stack", "parse", "time_limit"]

T = TypeVar("T")

TARGET = Path(__file__).parent / "target"
FOLDER = "/metalnb-cell"  # of the cell and its header cells, which exist only in memory
_LOCK = threading.Lock()


def flags(version: int = 310) -> list[str]:
    """Give libclang's flags: C++ for OpenCL 2021 with the vendor's extensions that MSL needs."""
    return [
        "-x", "cl", "-cl-std=CLC++2021", "-cl-no-stdinc", "-nostdinc", "-cl-single-precision-constant",
        "-target", "spir64", "-fdeclspec", "-fparse-all-comments", "-fspell-checking", "-ferror-limit=64",
        "-ftemplate-depth=512", "-fno-elide-type",
        *ASKED, f"-D__METAL_VERSION__={version}", "-D__METAL__=1", "-D$REFLECT=1", "-D$FAST_MATH=1",
        f"-I{INCLUDE}", f"-I{FOLDER}", f"-I{TARGET.parent}",
        "-include", str(TARGET / "words.h"), "-include", str(TARGET / "cpu.h"),
    ]  # fmt: skip


class Parsed:
    """A parsed cell.

    Attributes
    ----------
    unit : clang.cindex.TranslationUnit
    cell : Cell
    headers : mapping of str to Cell
    """

    def __init__(self, unit: cindex.TranslationUnit, cell: Cell, headers: Mapping[str, Cell]) -> None:
        self.unit = unit
        self.cell = cell
        self.headers = headers
        self._cells = {f"{FOLDER}/{name}": header for name, header in headers.items()}
        self._cells[f"{FOLDER}/{MAIN}"] = cell

    def owner(self, location: cindex.SourceLocation) -> Cell | None:
        """Give the author's cell that a location lies in; None for metalnb's own headers."""
        return self._cells.get(location.file.name) if location.file else None

    def diagnostic(self, location: Any, message: str, hint: str = "", severity: str = "error") -> Diagnostic:
        """Word a finding at a location of the author's text."""
        cell = self.owner(location)
        if cell is None:
            return Diagnostic(1, 1, message, file=self.cell.name, hint=hint, severity=severity)
        return cell.diagnostic(location.line, location.column, message, hint, severity)

    def errors(self) -> Iterator[Diagnostic]:
        """Yield the parser's errors, each at a place of the author's."""
        errors = [d for d in self.unit.diagnostics if d.severity >= 3 and not self._is_undetermined(d.spelling)]
        own = [d for d in errors if not self._is_ours(d.location)]  # CXDiagnostic_Error and worse
        for found in own or errors:
            refused = self._refused(found.spelling)
            if refused is not None:
                yield refused
                continue
            yield self._outside(found) or self.finding(found)

    def finding(self, found: cindex.Diagnostic, severity: str = "error") -> Diagnostic:
        """Word what the parser found: at the author's place, and in which macro it stands there."""
        location = found.location
        if self.owner(location) is None:  # inside a header: where the author asked for it
            location = next((n.location for n in found.children if self.owner(n.location)), location)
        message = reword(found.spelling) + self._in_macro(found)
        return self.diagnostic(location, message, hint_for(found.spelling), severity)

    def _in_macro(self, found: cindex.Diagnostic) -> str:
        """Tell in which macro of the author's something stands; an empty string when in none."""
        notes = ((re.fullmatch(r"expanded from macro '(\w+)'", n.spelling), n.location) for n in found.children)
        own = [
            (match[1], self.owner(place), place.line)
            for match, place in itertools.takewhile(lambda note: note[0] is not None, notes)
            if match is not None and self.owner(place) is not None
        ]
        if not own:
            return ""
        name, cell, line = own[-1]  # the innermost
        file = f"{cell.name} " if cell is not None and cell is not self.owner(found.location) else ""
        return f" (in the macro {name}, {file}line {line})"

    def _outside(self, found: cindex.Diagnostic) -> Diagnostic | None:
        """Speak of the texture or sampler where the parser met no more than a word that goes with it."""
        cell = self.owner(found.location)
        if cell is None:
            return None
        before = cell.edited.text.encode()[: found.location.offset].decode(errors="replace")
        named = declarator(found.spelling, before)
        if named is None:
            return None
        lines = before[: named.start()].split("\n")
        return cell.diagnostic(len(lines), len(lines[-1].encode()) + 1, *refusal(named[0]))

    def _is_ours(self, location: cindex.SourceLocation) -> bool:
        """Tell a place behind the cell's own text, where our declarations repeat its errors."""
        return self.owner(location) is self.cell and location.line > self.cell.edited.text.count("\n") + 1

    def _is_undetermined(self, message: str) -> bool:
        """Tell the complaint that a function constant, called constexpr, has no value yet: it has one when compiled."""
        found = re.fullmatch(r"constexpr variable '(\w+)' must be initialized by a constant expression", message)
        return found is not None and any(f"$initial({found[1]})" in c.edited.text for c in self._cells.values())

    def _refused(self, message: str) -> Diagnostic | None:
        """Find what the scan refused, when it is that which the parser met."""
        mark = re.search(r"\$refused_\w+", message)
        return next((c.refused[mark[0]] for c in self._cells.values() if mark[0] in c.refused), None) if mark else None

    def strangers(self) -> bool:
        """Tell whether a file was read that is neither a cell nor a header of metalnb's."""
        ours = (f"{INCLUDE}/", f"{TARGET}/")
        return any(
            i.include.name not in self._cells and not i.include.name.startswith(ours) for i in self.unit.get_includes()
        )


@functools.cache
def _cindex() -> Any:
    from clang import cindex

    return cindex


def parse(cell: Cell, headers: Mapping[str, Cell], tail: str = "") -> Parsed:
    """Parse a scanned cell.

    Parameters
    ----------
    cell : Cell
    headers : mapping of str to Cell
        The header cells it may include, scanned.
    tail : str
        Declarations of ours, put after the cell's own text.

    Raises
    ------
    CompileError
        When the cell does not parse; it holds every error that was found.
    """
    main = f"{FOLDER}/{MAIN}"
    files = [(f"{FOLDER}/{name}", header.edited.text) for name, header in headers.items()]
    text = cell.edited.text
    files.append((main, text if text.endswith("\n") or not tail else text + "\n"))
    if tail:
        files[-1] = (main, files[-1][1] + tail)
    found = _parsed(cell, headers, files, library=begins_with_library(text))
    errors = list(found.errors())
    if errors and begins_with_library(text):  # the library as kept may be damaged; and it is spelled out in some errors
        found = _parsed(cell, headers, files, library=False)
        errors = list(found.errors())
    if errors:
        raise CompileError(_first(errors, found))
    return found


def _parsed(cell: Cell, headers: Mapping[str, Cell], files: list[tuple[str, str]], *, library: bool) -> Parsed:
    """Parse the files, the cell's being the last; with the library as it is kept, or from its text."""
    cindex = _cindex()

    def work() -> Any:
        plain = flags()
        kept = precompiled(cindex, tuple(plain)) if library else None
        if kept is not None:
            quick = [*plain[: plain.index("-include")], "-include-pch", str(kept)]
            with contextlib.suppress(cindex.TranslationUnitLoadError):  # another parser's: the text serves as well
                return cindex.Index.create().parse(files[-1][0], args=quick, unsaved_files=files)
        return cindex.Index.create().parse(files[-1][0], args=plain, unsaved_files=files)

    try:
        unit = on_a_deep_stack(work, time_limit())
    except TimeoutError:
        message = f"the parser gave no answer in {time_limit():.0f} s"
        hint = "make the cell smaller, or set METALNB_COMPILE_TIMEOUT to more seconds"
        raise CompileError([Diagnostic(1, 1, message, cell.edited.line(1), cell.name, hint)]) from None
    parsed = Parsed(unit, cell, headers)
    if parsed.strangers():  # the scan refuses every #include of a file; nothing of one must show if it ever missed any
        raise CompileError([Diagnostic(1, 1, "the cell includes a file: a cell reads no files", file=cell.name)])
    return parsed


_STACK = 1 << 28  # bytes, of address space


def time_limit() -> float:
    """Give the seconds that a compiler may take: ``METALNB_COMPILE_TIMEOUT``, else 120."""
    return float(os.environ.get("METALNB_COMPILE_TIMEOUT", "120"))


def on_a_deep_stack(work: Callable[[], T], seconds: float) -> T:
    """Run in a thread of ours: in libclang's own, of 8 MB, a deep expression overflows, which ends the process.

    A parser that gives no answer is left behind: it cannot be stopped, and ends with the process if not before.

    Raises
    ------
    TimeoutError
        When there is no answer after `seconds`.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001  (handed on)
            outcome.set_exception(error)

    with _LOCK:
        os.environ["LIBCLANG_NOTHREADS"] = "1"
        usual = threading.stack_size(_STACK)
        try:
            threading.Thread(target=run, name="metalnb-parse", daemon=True).start()
        finally:
            threading.stack_size(usual)
    return outcome.result(timeout=seconds)


def _first(errors: list[Diagnostic], parsed: Parsed) -> list[Diagnostic]:
    """Drop what is said twice, and what else the parser says of a line where it met something refused."""
    refused = [r for c in (parsed.cell, *parsed.headers.values()) for r in c.refused.values()]
    plain = [d for d in dict.fromkeys(errors) if d not in refused and not is_refusal(d.message)]
    lines = {(d.file, d.line) for d in errors if d not in plain}
    return [d for d in dict.fromkeys(errors) if d not in plain or (d.file, d.line) not in lines]
