"""Scan a cell: rewrite code that only Apple's compiler can parse; record includes and instantiations.

Every edit is recorded, so that diagnostics can be mapped back to the author's text. `PASSES` lists the edits.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NoReturn

from metalnb.errors import CompileError, Diagnostic

from ..language.simdgroup_names import names_simdgroups
from ..text.bracket_tree import Outline, Tree, outline
from ..text.conditions import derived_constants
from ..text.edits import Edit, EditedText, Omission, Refusal
from ..text.includes import read_includes
from ..text.instantiations import explicit_instantiations, restated_head, template_id, written
from ..text.scanned_cell import Cell, Instantiation
from .function_heads.parted_members import parted_names
from .input_declarations import scope_inputs
from .passes import PASSES

__all__ = ["instantiations", "plain", "scan"]

_NESTED = 4096


def scan(source: str, name: str = "cell", headers: frozenset[str] = frozenset()) -> Cell:
    """Scan a cell.

    Parameters
    ----------
    source : str
        The author's text.
    name : str
        Its name in diagnostics.
    headers : frozenset of str
        The names of the author's header cells, which ``#include`` may name.

    Raises
    ------
    CompileError
        For a ``host_name`` whose template is ambiguous, or template lists too deep for the parser.
    """
    source = plain(source)
    text = outline(source)
    for tree in text.trees:
        _check_nesting(text, tree, name)
    included = read_includes(text.directives, headers, posixpath.dirname(name) if name in headers else "")
    edited = [each for made in PASSES for each in made.edits(text)]
    places = EditedText(source, [])
    edits, refused = _refusals(places, name, [*included.edits, *edited])
    notes = tuple(
        _diagnostic(places, name, each.at, each.message, each.hint, "warning")
        for each in edited
        if isinstance(each, Omission)
    )
    found = tuple(_instantiations(text, text.program, name))
    return Cell(
        name,
        EditedText(source, edits),
        tuple(made for _, made in found),
        _preprocessed(found, text),
        tuple(included.cells),
        frozenset(_asked_for(text)),
        any(names_simdgroups(word) for word in text.words),
        EditedText(source, included.bare).text,
        refused,
        notes,
        derived_constants(text),
        parted_names(text),
        tuple(scope_inputs(text.program)),
    )


def plain(source: str) -> str:
    """Return a text with line ends as in C++, and without characters that no compiler accepts."""
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")


def instantiations(expanded: str) -> tuple[Instantiation, ...]:
    """Find the instantiations in a preprocessed text, with ``# line`` markers."""
    text = outline(expanded)
    marks = [(d.start, int(d.name)) for d in text.directives if d.name.isdigit()]
    found = []
    for offset, made in _instantiations(text, text.program, "cell"):
        line, last = made.line, bisect_right(marks, (offset, len(expanded)))
        if last:
            start, number = marks[last - 1]
            line = number + expanded.count("\n", start, offset) - 1
        found.append(dataclasses.replace(made, line=line))
    return tuple(found)


def _refusals(
    text: EditedText, name: str, found: Iterable[Edit | Refusal | Omission]
) -> tuple[list[Edit], dict[str, Diagnostic]]:
    """Turn refusals into diagnostics, and into edits that insert an undeclared name for each."""
    edits: list[Edit] = []
    refused: dict[str, Diagnostic] = {}
    for each in found:
        if isinstance(each, Refusal):
            mark = f"$refused_{zlib.crc32(name.encode()):08x}_{len(refused)}"
            refused[mark] = _diagnostic(text, name, each.at, each.message, each.hint)
            edits.append(Edit(each.start, each.end, each.form.format(mark)))
        elif isinstance(each, Omission):
            edits.append(Edit(each.start, each.end, each.form))
        else:
            edits.append(each)
    return edits, refused


def _diagnostic(
    text: EditedText, name: str, at: int, message: str, hint: str = "", severity: str = "error",
) -> Diagnostic:  # fmt: skip
    line, column = text.place(at)
    return Diagnostic(line, column, message, text.line(line), name, hint, severity)


def _refuse(text: Outline, name: str, at: int, message: str, hint: str) -> NoReturn:
    raise CompileError([_diagnostic(EditedText(text.source, []), name, at, message, hint)])


def _check_nesting(text: Outline, tree: Tree, name: str) -> None:
    """Refuse template lists so deep that they would exhaust the parser's stack, which it does not limit."""
    depth = 0
    for before, token in pairwise(tree.tokens):
        if token.text == "<" and before.kind == "word":
            depth += 1
            if depth > _NESTED:
                message = f"template lists are nested more than {_NESTED} deep"
                _refuse(text, name, token.start, message, "name the inner ones")
        elif token.kind != "word" and token.text != "::":
            depth = 0


def _asked_for(text: Outline) -> Iterator[str]:
    """Yield the function constants that the text tests with ``is_function_constant_defined``."""
    for tree in text.trees:
        for i in range(tree.first, len(tree.texts) - 2):
            if tree.texts[i] == "is_function_constant_defined":
                yield tree.texts[i + 2]


def _instantiations(text: Outline, tree: Tree, name: str) -> Iterator[tuple[int, Instantiation]]:
    """Yield the explicit instantiations with a host name, each with its offset."""
    places = EditedText(text.source, [])
    hosted = [made for made in explicit_instantiations(tree) if made.host]
    templates = _templates(tree) if hosted else Counter()
    for made in hosted:
        at = tree.tokens[made.start].start
        found = template_id(tree, made.start + 1, made.stop)
        restated = restated_head(tree, made)
        function = written(text, tree, found) if found is not None else ""
        kind = ""
        base = function.partition("<")[0].split("::")[-1].strip()
        if restated and (not function or templates[base] > 1):
            function, kind = function or restated[0], restated[1]
        if not function:
            _refuse(text, name, at, f'host_name "{made.name}": cannot tell which template is instantiated',
                    f'write: template [[host_name("{made.name}")]] [[kernel]] decltype(f<T>) f<T>;')  # fmt: skip
        function = f"::{_namespace(tree, made.start)}{function}"
        yield at, Instantiation(made.name, function, places.place(at)[0], kind)


def _templates(tree: Tree) -> Counter[str]:
    """Return the number of function templates defined with each name."""
    heads = ((tree.texts[f.name], tree.statement(f.name)) for f in tree.functions if tree.texts[f.end] == "{")
    return Counter(name for name, start in heads if tree.texts[start : start + 2] == ["template", "<"])


def _namespace(tree: Tree, i: int) -> str:
    """Return the namespaces around a position: ``a::b::``."""
    names = ""
    i = tree.around(i, "{")
    while i >= 0:
        if tree.text(i - 2) == "namespace":
            names = f"{tree.texts[i - 1]}::{names}"
        i = tree.around(i, "{")
    return names


def _preprocessed(found: Sequence[tuple[int, Instantiation]], text: Outline) -> bool:
    """Return whether the preprocessor creates or affects an instantiation, through an ``#if`` or a macro in it."""
    if any(made.host for tree in text.macros for made in explicit_instantiations(tree)):
        return True
    if not found:
        return False
    macros = {d.tokens[0].text for d in text.directives if d.name in {"define", "undef"} and d.tokens}
    words = {word for _, made in found for word in re.findall(r"[\w$]+", made.function)}
    conditional = any(d.name in {"if", "ifdef", "ifndef"} for d in text.directives)
    return conditional or not macros.isdisjoint(words) or any(not made.name for _, made in found)
