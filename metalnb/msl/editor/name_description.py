"""Describe names for Shift-Tab: Metal's own from `reference`, the author's from libclang and the author's text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..analysis.declarations import comment
from ..language.reference import Entry, lookup
from ..libclang.deep_stack import on_a_deep_stack
from ..libclang.flags import FOLDER, flags, posix_path
from ..text.bracket_tree import Tree, outline
from ..text.scanned_cell import MAIN, Cell
from ..text.tokens import Token, tokenize
from .draft import Draft, read_draft

__all__ = ["Description", "describe", "describe_name"]

SECONDS = 3.0  # the parser's time limit
_LINES = 16  # a struct of up to this many lines is shown in full
_LETTERS = 800  # a declaration is shown up to this many letters

_CLASSES = {"STRUCT_DECL", "CLASS_DECL", "UNION_DECL", "ENUM_DECL", "CLASS_TEMPLATE"}
_ENDS = {"VAR_DECL": ";,)", "PARM_DECL": ",)>", "FIELD_DECL": ";", "ENUM_CONSTANT_DECL": ",}"}


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a name.

    Attributes
    ----------
    name : str
    signatures : tuple of str
        The declarations of the name in MSL.
    summary : str
        A one-line description for Metal's names; for the author's, the comment above the declaration.
    where : str
        The specification's section, or the line of the cell.
    letters : str
        The meaning of the letters in the signatures.
    """

    name: str
    signatures: tuple[str, ...]
    summary: str
    where: str
    letters: str = ""

    def __str__(self) -> str:
        lines = [*self.summary.split("\n"), self.letters, self.where]
        return "\n".join([*self.signatures, *(f"    {line}" for line in lines if line)])


def describe_name(name: str, *, attribute: bool | None = None) -> tuple[Description, ...]:
    """Describe one of Metal's names.

    Parameters
    ----------
    name : str
    attribute : bool, optional
        True for only the attribute of that name, False for everything else of that name.

    Returns
    -------
    tuple of Description
        One for each chapter of the specification that has the name; empty if Metal has no such name.
    """
    entries_of_name = (e for e in lookup(name) if attribute is None or (e.kind == "attribute") == attribute)
    return tuple(_metal_description(name, entry) for entry in entries_of_name)


def _metal_description(name: str, entry: Entry) -> Description:
    section = f"MSL {entry.section}, {entry.title}"
    return Description(name, entry.signatures or (name,), entry.summary, section, entry.letters)


def describe(
    source: str, offset: int, headers: Mapping[str, str] | None = None, name: str = MAIN
) -> tuple[Description, ...]:
    """Describe the name at a position in a cell, or the function whose arguments are being written there.

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
    tuple of Description
        Empty if there is no name there, or nothing is known about it.
    """
    draft = read_draft(source, offset, headers or {}, name)
    for start, word in _names(draft):
        descriptions = _describe_at(draft, start, word)
        if descriptions:
            return descriptions
    return ()


def _names(draft: Draft) -> Iterator[tuple[int, str]]:
    """Yield the candidates, each with its offset: the name under the cursor, then functions whose calls enclose it."""
    text, offset = draft.source, draft.offset
    word = re.search(r"\w*$", text[:offset])
    rest = re.match(r"\w*", text[offset:])
    start = word.start() if word else offset
    name = text[start : offset + (rest.end() if rest else 0)]
    first = start == offset and text[:offset].rstrip()[-1:] in {"(", ","}  # before an argument the user means the call
    if name and not first:
        yield start, name
    open_tokens: list[Token] = []  # the open brackets; for a parenthesis, the token before it
    previous: Token | None = None
    for token in tokenize(text[:offset]).program:
        if token.text in {"(", "[", "{"}:
            open_tokens.append(previous if previous and token.text == "(" else token)
        elif token.text in {")", "]", "}"} and open_tokens:
            open_tokens.pop()
        previous = token
    yield from ((t.start, t.text) for t in reversed(open_tokens) if t.kind == "word")
    if name and first:
        yield start, name


def _describe_at(draft: Draft, start: int, name: str) -> tuple[Description, ...]:
    text_before = draft.source[:start]
    if re.search(r"\[\[(?:[^\[\]()]|\([^()]*\))*$", text_before):
        return describe_name(name, attribute=True)
    metals = describe_name(name, attribute=False)
    if not re.search(rf"(?:\.|->)\s*$|\b{re.escape(name)}\b", text_before) and metals:
        return metals  # not a member, and the name does not occur earlier
    authors = _author_description(draft, start, name)
    return (authors,) if authors else metals


def _author_description(draft: Draft, start: int, name: str) -> Description | None:
    for cell in (draft.cell, *draft.headers.values()):
        for directive in tokenize(cell.edited.original).directives:
            if directive.name == "define" and directive.tokens and directive.tokens[0].text == name:
                text = cell.edited.original[directive.start : directive.end]
                return Description(
                    name, (_shorten(text),), "", _place_text(cell, draft, cell.edited.position(directive.start)[0])
                )
    try:
        return on_a_deep_stack(lambda: _declaration(draft, start, name), SECONDS)
    except TimeoutError:
        return None


def _declaration(draft: Draft, start: int, name: str) -> Description | None:
    """Find the declaration through the parser: the one that the position refers to, else the first with that name."""
    from clang import cindex

    files = draft.files
    unit = cindex.Index.create().parse(files[-1][0], args=flags(), unsaved_files=files)
    location = cindex.SourceLocation.from_position(unit, unit.get_file(draft.path), *draft.position(start))
    cursor = cindex.Cursor.from_location(unit, location)
    declaration = next((c for c in (cursor.referenced, cursor) if c is not None and c.spelling == name), None)
    if declaration is None or not _is_declaration(declaration):
        declaration = next((c for c in _declarations(unit.cursor, draft) if c.spelling == name), None)
    cell = _owner(declaration, draft) if declaration is not None else None
    if declaration is None or cell is None:
        return None
    declaration = _template(declaration) or declaration
    diagnostic = cell.diagnostic(declaration.extent.start.line, declaration.extent.start.column, "")
    text = _author_text(declaration, cell, cell.edited.offset(diagnostic.line, diagnostic.column))
    inside = declaration.semantic_parent
    member = inside is not None and inside.kind.name in _CLASSES and inside.spelling
    place_text = _place_text(cell, draft, diagnostic.line) + (f", in {inside.spelling}" if member else "")
    return Description(name, (_shorten(text, diagnostic.column - 1),), comment(declaration), place_text)


def _is_declaration(cursor: Any) -> bool:
    return bool(cursor.kind.is_declaration()) and cursor.location.file is not None


def _declarations(cursor: Any, draft: Draft) -> Iterator[Any]:
    """Yield the author's declarations outside functions."""
    for child in cursor.get_children():
        if _is_declaration(child) and _owner(child, draft) is not None:
            yield child
            if child.kind.name in _CLASSES | {"NAMESPACE"}:
                yield from _declarations(child, draft)


def _owner(cursor: Any, draft: Draft) -> Cell | None:
    file = posix_path(cursor.location.file.name) if cursor.location.file else ""
    return draft.cell if file == draft.path else draft.headers.get(file.removeprefix(f"{FOLDER}/"))


def _place_text(cell: Cell, draft: Draft, line: int) -> str:
    return f"line {line} of this cell" if cell is draft.cell else f'line {line} of "{cell.name}"'


def _template(cursor: Any) -> Any:
    """Return the template that a function or class is instantiated from; None if there is none."""
    from clang import cindex

    template = cindex.conf.lib.clang_getSpecializedCursorTemplate(cursor)
    return template if template is not None and template.kind.is_declaration() else None


def _author_text(cursor: Any, cell: Cell, start: int) -> str:
    """Return a declaration as its author wrote it."""
    text = cell.edited.original[start:]
    return text[: _end(outline(text).program, cursor.kind.name, cursor.spelling)]


def _end(tree: Tree, kind: str, name: str) -> int:
    """Find where a declaration ends: before a function's body, after a class's body, or at the end of a statement."""
    stops = _ENDS.get(kind, ";")
    is_named = False
    i = 0
    while i < len(tree.tokens):
        token = tree.tokens[i]
        is_named = is_named or token.text == name
        if token.text == "{" and kind not in _ENDS:
            end = tree.close(i)
            is_class = kind in _CLASSES and end > 0
            return tree.tokens[end].end if is_class else token.start
        if is_named and token.text in stops:
            return token.start
        i = tree.skip(i)
    return tree.tokens[-1].end if tree.tokens else 0


def _shorten(text: str, indentation: int = 0) -> str:
    """Remove the first line's indentation from the other lines, and shorten a long declaration."""
    lines = text.rstrip().split("\n")
    lines = [lines[0], *(x[min(indentation, len(x) - len(x.lstrip())) :] for x in lines[1:])]
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], "…"]
    shortened = "\n".join(lines)
    return shortened if len(shortened) <= _LETTERS else f"{shortened[:_LETTERS]}…"
