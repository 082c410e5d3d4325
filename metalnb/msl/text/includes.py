"""Check a cell's includes: MSL's headers and the author's header cells are allowed. A cell cannot read files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .bracket_tree import Tree
from .edits import Edit, Refusal
from .tokens import Directive, Token

__all__ = ["INCLUDE", "Includes", "header_cell", "is_header", "read_includes"]

INCLUDE = Path(__file__).parent.parent / "include"

_PATH = re.compile(r"\w[\w.]*(?:/\w[\w.]*)*")

# Directives that read a file, including clang's own.
_READERS = frozenset({"include", "include_next", "import", "embed", "__include_macros"})
_INCLUDES = frozenset({"include", "import"})
_PROBES = frozenset({"__has_include", "__has_include_next", "__has_embed"})
_ALLOWED = "MSL's own headers and your header cells (%%metal --header NAME) can be included"

@dataclass(slots=True)
class Includes:
    """The includes of one text.

    Attributes
    ----------
    cells : list of str
        The header cells.
    edits : list of Edit or Refusal
        Edits that hide text from the compiler: a refused ``#include`` becomes an ``#error``, which ``#if 0`` still
        hides.
    bare : list of Edit
        Edits that also hide text from the preprocessor: every ``#include`` except those of header cells.
    """

    cells: list[str] = field(default_factory=list)
    edits: list[Edit | Refusal] = field(default_factory=list)
    bare: list[Edit] = field(default_factory=list)


def is_header(name: str) -> bool:
    """Return whether MSL has a header with that name."""
    return bool(_PATH.fullmatch(name)) and (INCLUDE / name).is_file()


def read_includes(directives: Sequence[Directive], headers: frozenset[str], folder: str = "") -> Includes:
    """Check what each directive includes.

    Parameters
    ----------
    directives : sequence of Directive
    headers : frozenset of str
        The names of the author's header cells.
    folder : str
        The folder in the name of a header cell, from which its includes may be named, as in
        ``#include "../common/types.h"``.
    """
    result = Includes()
    for directive in directives:
        if directive.name not in _READERS:
            result.edits += _answer_probes(directive.tokens, headers, folder)
            continue
        words = directive.tokens
        semicolon = words[-1] if words and words[-1].text == ";" else None  # published code often has a semicolon there
        author_name = _quoted_name(words[:-1] if semicolon else words)
        name = header_cell(author_name, headers, folder)
        is_allowed = directive.name in _INCLUDES and (name in headers or is_header(name))
        if is_allowed and name in headers:
            result.cells.append(name)
        else:
            result.bare.append(Edit(directive.start, directive.end, ""))
        if not is_allowed:
            result.edits.append(_refusal(directive, author_name, headers))
        if is_allowed and name != author_name:
            result.edits.append(Edit(words[0].start, words[0].end, f'"{name}"'))
        if is_allowed and semicolon:
            result.edits.append(Edit(semicolon.start, semicolon.end, ""))
    return result


def _refusal(directive: Directive, name: str, headers: frozenset[str]) -> Refusal:
    text = f"#{directive.name} {''.join(t.text for t in directive.tokens)}".strip()
    import difflib

    similar = difflib.get_close_matches(name, [*headers, "metal_stdlib"], n=1)
    hint = f"did you mean {similar[0]!r}? {_ALLOWED}" if similar else _ALLOWED
    message = f"{text}: a cell cannot include files"
    return Refusal(directive.start, directive.end, directive.start, message, hint, "#error {}")


def _quoted_name(words: list[Token]) -> str:
    """Return the name in ``<name>`` or ``"name"``, or an empty string for anything else."""
    if len(words) == 1 and words[0].kind == "string" and words[0].text[:1] + words[0].text[-1:] in {"<>", '""'}:
        return words[0].text[1:-1]
    return ""


def header_cell(name: str, headers: frozenset[str], folder: str) -> str:
    """Return the header cell that a name refers to, relative to the including text's folder or else by itself."""
    relative_name = posixpath.normpath(posixpath.join(folder, name))
    if relative_name in headers or name in headers or "./" not in name:
        return relative_name if relative_name in headers else name
    plain_name = posixpath.normpath(name)
    while plain_name.startswith("../"):  # above the top folder only the header cells exist
        plain_name = plain_name[3:]
    return next((n for n in (relative_name, plain_name) if n in headers), name)


def _answer_probes(tokens: list[Token], headers: frozenset[str], folder: str) -> Iterator[Edit]:
    """Answer ``__has_include`` here, like an ``#include``: it must not reveal which files exist."""
    tree = Tree(tokens)
    for i, token in enumerate(tokens):
        if token.text not in _PROBES:
            continue
        end = tree.close(i + 1)
        name = header_cell(_quoted_name(tokens[i + 2 : end]), headers, folder) if end > i else ""
        exists = token.text == "__has_include" and (name in headers or is_header(name))
        yield Edit(token.start, tokens[max(end, i)].end, "1" if exists else "0")
