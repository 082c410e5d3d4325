"""Completion: libclang's candidates at a position in a cell, restricted to Metal's and the author's names.

One translation unit is kept, so that an answer takes about 50 ms. A parser that takes too long is abandoned.
"""

from __future__ import annotations

import atexit
import functools
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..language.attributes import ATTRIBUTES
from ..language.reference import KEYWORDS, lookup
from ..libclang.deep_stack import on_a_deep_stack
from ..libclang.flags import FOLDER, flags
from ..text.includes import INCLUDE
from ..text.scanned_cell import MAIN
from .class_members import methods
from .draft import Draft, TypedPart, read_draft

__all__ = ["Completion", "complete"]

SECONDS = 3.0  # the parser's time limit; a process's first answer takes 0.3

# clang's cursor kinds, and how a completer shows them.
_KINDS = {
    **dict.fromkeys((8, 21, 24, 26, 30), "function"),
    **dict.fromkeys((2, 3, 4, 5, 20, 27, 31, 32, 36, 601), "type"),
    **dict.fromkeys((7, 9, 10, 28), "variable"),
    6: "field", 22: "namespace", 33: "namespace", 501: "macro",
}  # fmt: skip
_CLASSES = {2, 3, 4, 31}
_VARIABLES = {9, 10}
_TYPED_TEXT = 1  # CXCompletionChunk_TypedText
_AVAILABLE = {0, 1}  # deprecated names are also available
_LOCAL = 34  # clang's priority for declarations in the function itself
_SWIZZLE = re.compile(r"[xyzw]{1,4}|[rgba]{1,4}")
_RUNS = {run[i:j] for run in ("xyzw", "rgba") for i in range(4) for j in range(i + 1, 5)}
_UNOFFERED = {"half", "not"}  # clang's own words in this dialect
_DIRECTIVES = ("define", "elif", "else", "endif", "error", "if", "ifdef", "ifndef", "include", "pragma", "undef")


@dataclass(frozen=True, slots=True)
class Completion:
    """One candidate.

    Attributes
    ----------
    text : str
        The complete word, which replaces the part already typed.
    kind : {"function", "type", "variable", "field", "keyword", "attribute", "macro", "namespace", "header"}
    """

    text: str
    kind: str


def complete(
    source: str, offset: int, headers: Mapping[str, str] | None = None, name: str = MAIN
) -> tuple[str, list[Completion]]:
    """Return the completions at a position in a cell.

    Parameters
    ----------
    source : str
        The cell's text; it may be invalid or incomplete.
    offset : int
        The cursor's position in it, in characters.
    headers : mapping of str to str, optional
        The header cells, by the name that ``#include`` takes.
    name : str
        The name by which others include the cell, if it is a header cell.

    Returns
    -------
    word : str
        The part of the word before the cursor, which each completion replaces.
    completions : list of Completion
        The closest scope first: the function's names, then the cell's, then Metal's.
    """
    draft = read_draft(source, offset, headers or {}, name)
    typed = draft.typed_part()
    return typed.word, [c for c in _completions(draft, typed) if c.text.lower().startswith(typed.word.lower())]


def _completions(draft: Draft, typed: TypedPart) -> Iterable[Completion]:
    if typed.kind == "silent":
        return ()
    if typed.kind == "include":
        return _headers(typed, draft)
    if typed.kind == "directive":
        return (Completion(name, "keyword") for name in _DIRECTIVES)
    if typed.kind == "attribute":
        return _attributes(typed)
    return _parsed_completions(draft, typed)


def _headers(typed: TypedPart, draft: Draft) -> list[Completion]:
    library_headers = sorted(
        path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*") if path.is_file() and path.name[0] != "$"
    )
    standard_first = sorted(library_headers, key=lambda name: name != "metal_stdlib")
    names = sorted(draft.headers) if typed.bracket == '"' else standard_first
    return [Completion(name, "header") for name in names]


def _attributes(typed: TypedPart) -> Iterator[Completion]:
    """Yield the attributes of compute kernels: those for arguments, or those for functions and constants."""
    uses = {"input", "parameter", "constant"} if typed.in_parentheses else {"function", "constant"}
    return (Completion(a.name, "attribute") for a in ATTRIBUTES.values() if a.use in uses)


def _parsed_completions(draft: Draft, typed: TypedPart) -> list[Completion]:
    line, column = draft.position(draft.offset - len(typed.word))
    answers = _PARSER.ask(draft.files, draft.path, line, column)
    if typed.kind == "member":
        return _members(answers, typed.word, draft)
    by_name = {}
    for answer in answers:
        rank = _rank(answer)
        if rank is not None and answer.name not in by_name:
            by_name[answer.name] = (rank, answer.name.lower(), Completion(answer.name, _kind(answer)))
    for name in _UNOFFERED - by_name.keys() if typed.kind == "code" else ():
        by_name[name] = (2, name, Completion(name, lookup(name)[0].kind))
    return [completion for *_, completion in sorted(by_name.values(), key=lambda row: row[:2])]


class _Answer(NamedTuple):
    """A completion from clang."""

    name: str
    kind: int
    priority: int


def _kind(answer: _Answer) -> str:
    entries_of_name = lookup(answer.name)
    if entries_of_name and entries_of_name[0].kind in {"function", "type"}:
        return entries_of_name[0].kind
    if entries_of_name and answer.name.islower() and _KINDS.get(answer.kind) == "macro":
        return "keyword"  # such as device, which words.h defines
    return _KINDS.get(answer.kind, "keyword")


def _rank(answer: _Answer) -> int | None:
    """Rank a name by its scope: the function's, the cell's, Metal's, C++'s, the library's; None for any other."""
    name = answer.name
    entries_of_name = lookup(name)
    is_hidden = not entries_of_name and name.startswith(("$", "__", "_" if name in _library() else "$"))
    is_authors = answer.kind in _KINDS and name not in _beneath() and name not in _library()
    ranks = (
        (None, is_hidden),
        (0, answer.priority <= _LOCAL and answer.kind in _VARIABLES),
        (3 if name.isupper() else 2, entries_of_name),
        (4, name in KEYWORDS),
        (1, is_authors and name.isidentifier()),
        (5, name in _library()),
    )
    return next((rank for rank, applies in ranks if applies), None)  # None also for OpenCL's names and clang's patterns


def _members(answers: list[_Answer], word: str, draft: Draft) -> list[Completion]:
    """Return a class's members; until a letter is typed, its swizzles are reduced to runs such as ``xy``."""
    if any(answer.name == "sizeof" for answer in answers):  # the parser is lost: these are not members
        return []
    candidates = {
        (0, 0, name, "function") for a in answers if a.kind in _CLASSES for name in _methods_of(a.name, draft)
    }
    for answer in answers:
        if not re.fullmatch(r"[^\W\d]\w*", answer.name) or _KINDS.get(answer.kind) == "type":
            continue
        swizzle = _SWIZZLE.fullmatch(answer.name) and answer.kind not in _KINDS
        if not swizzle:
            candidates.add((0, 0, answer.name, "function" if _KINDS.get(answer.kind) == "function" else "field"))
        elif word or answer.name in _RUNS:
            component_digits = "".join(str("xyzwrgba".index(c)) for c in answer.name)
            candidates.add((len(answer.name), int(component_digits), answer.name, "field"))
    return [Completion(name, kind) for *_, name, kind in sorted(candidates)]


def _methods_of(name: str, draft: Draft) -> set[str]:
    """Return the methods of a class; clang omits those that would change the object's address space."""
    cells = [draft.cell, *draft.headers.values()]
    texts = [cell.edited.original for cell in cells]
    return {m for text in texts for m in methods(text).get(name, ())} or set(_library_methods().get(name, ()))


@functools.cache
def _library_methods() -> Mapping[str, tuple[str, ...]]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(INCLUDE.iterdir()) if path.is_file()]
    return {name: matches for text in texts for name, matches in methods(text).items() if matches}


@functools.cache
def _beneath() -> frozenset[str]:
    """Return the names visible in an empty cell: OpenCL's names, and those that the headers are built on."""
    return _visible("kernel void f() {\n}\n", 2)


@functools.cache
def _library() -> frozenset[str]:
    """Return the names of the standard library."""
    return _visible("#include <metal_stdlib>\nusing namespace metal;\nkernel void f() {\n}\n", 4) - _beneath()


def _visible(text: str, line: int) -> frozenset[str]:
    path = f"{FOLDER}/{MAIN}"
    names = frozenset(answer.name for answer in _PARSER.ask([(path, text)], path, line, 1))
    if not names:
        raise TimeoutError  # so that nothing is cached
    return names


@dataclass(slots=True)
class _Parser:
    """Keeps the translation unit."""

    unit: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, files: list[tuple[str, str]], path: str, line: int, column: int) -> list[_Answer]:
        """Ask libclang at a position in a file; return nothing if it takes too long."""
        with self.lock:
            kept_unit = self.unit

            def work() -> tuple[Any, list[_Answer]]:
                unit = kept_unit or _unit(files)
                return unit, list(_answers(unit, files, path, line, column))

            self.unit = None  # an abandoned thread keeps it
            try:
                self.unit, answers = on_a_deep_stack(work, SECONDS)
            except TimeoutError:
                return []
            return answers


_PARSER = _Parser()
atexit.register(lambda: setattr(_PARSER, "unit", None))  # while libclang is still loaded


def _unit(files: list[tuple[str, str]]) -> Any:
    from clang import cindex

    return cindex.Index.create().parse(files[-1][0], args=flags(), unsaved_files=files)


def _answers(unit: Any, files: list[tuple[str, str]], path: str, line: int, column: int) -> Iterator[_Answer]:
    """Read libclang's answers through its C interface; the binding's objects take three times as long."""
    from clang import cindex

    options = {"include_macros": True, "include_code_patterns": True}  # `while` is a pattern
    completions = unit.codeComplete(path, line, column, unsaved_files=files, **options)
    if completions is None:
        return
    lib = cindex.conf.lib
    for i in range(completions.results.numResults):
        result = completions.results.results[i]
        string = result.completionString
        name = _typed_text(lib, string)
        is_ours = name.startswith("$") and result.cursorKind not in _CLASSES
        if name and not is_ours and lib.clang_getCompletionAvailability(string) in _AVAILABLE:
            yield _Answer(name, result.cursorKind, lib.clang_getCompletionPriority(string))


def _typed_text(lib: Any, string: Any) -> str:
    """Return the text that a completion inserts: its first chunk of typed text."""
    for k in range(lib.clang_getNumCompletionChunks(string)):
        if lib.clang_getCompletionChunkKind(string, k) == _TYPED_TEXT:
            return str(lib.clang_getCompletionChunkText(string, k))
    return ""
