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
from ..text.instantiations import explicit_instantiations, restated_head, template_id, text_of_range
from ..text.scanned_cell import Cell, Instantiation
from .function_heads.space_overloads import overloaded_names
from .input_declarations import scope_inputs
from .passes import PASSES

__all__ = ["instantiations", "normalize_text", "scan"]

_DEEPEST_LIST = 4096


def scan(source: str, name: str = "cell", headers: frozenset[str] = frozenset()) -> Cell:
    """Scan a cell.

    Parameters
    ----------
    source : str
        The author's text.
    name : str
        The text's name in diagnostics.
    headers : frozenset of str
        The names of the author's header cells, which ``#include`` may name.

    Raises
    ------
    CompileError
        If the template for a ``host_name`` is ambiguous, or template lists are too deep for the parser.
    """
    source = normalize_text(source)
    text = outline(source)
    for tree in text.trees:
        _check_nesting(text, tree, name)
    includes = read_includes(text.directives, headers, posixpath.dirname(name) if name in headers else "")
    pass_edits = [edit for edit_pass in PASSES for edit in edit_pass.edits(text)]
    author_text = EditedText(source, [])
    edits, refusals = _refusals(author_text, name, [*includes.edits, *pass_edits])
    notes = tuple(
        _diagnostic(author_text, name, edit.at, edit.message, edit.hint, "warning")
        for edit in pass_edits
        if isinstance(edit, Omission)
    )
    instantiations_found = tuple(_instantiations(text, text.program, name))
    return Cell(
        name=name, edited=EditedText(source, edits),
        instantiations=tuple(instantiation for _, instantiation in instantiations_found),
        expands=_needs_preprocessor(instantiations_found, text), includes=tuple(includes.cells),
        optional=frozenset(_tested_constants(text)), simd=any(names_simdgroups(word) for word in text.words),
        bare=EditedText(source, includes.bare).text, refused=refusals, notes=notes, derived=derived_constants(text),
        overloaded=overloaded_names(text), scope_inputs=tuple(scope_inputs(text.program)),
    )  # fmt: skip


def normalize_text(source: str) -> str:
    """Return a text with line ends as in C++, and without characters that no compiler accepts."""
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")


def instantiations(expanded: str) -> tuple[Instantiation, ...]:
    """Find the instantiations in a preprocessed text, with ``# line`` markers."""
    text = outline(expanded)
    marks = [(d.start, int(d.name)) for d in text.directives if d.name.isdigit()]
    result = []
    for offset, instantiation in _instantiations(text, text.program, "cell"):
        line, last = instantiation.line, bisect_right(marks, (offset, len(expanded)))
        if last:
            start, number = marks[last - 1]
            line = number + expanded.count("\n", start, offset) - 1
        result.append(dataclasses.replace(instantiation, line=line))
    return tuple(result)


def _refusals(
    text: EditedText, name: str, all_edits: Iterable[Edit | Refusal | Omission]
) -> tuple[list[Edit], dict[str, Diagnostic]]:
    """Turn refusals into diagnostics, and into edits that insert an undeclared name for each."""
    edits: list[Edit] = []
    refusals: dict[str, Diagnostic] = {}
    for edit in all_edits:
        if isinstance(edit, Refusal):
            placeholder = f"$refused_{zlib.crc32(name.encode()):08x}_{len(refusals)}"
            refusals[placeholder] = _diagnostic(text, name, edit.at, edit.message, edit.hint)
            edits.append(Edit(edit.start, edit.end, edit.form.format(placeholder)))
        elif isinstance(edit, Omission):
            edits.append(Edit(edit.start, edit.end, edit.form))
        else:
            edits.append(edit)
    return edits, refusals


def _diagnostic(
    text: EditedText, name: str, offset: int, message: str, hint: str = "", severity: str = "error",
) -> Diagnostic:  # fmt: skip
    line, column = text.position(offset)
    return Diagnostic(line, column, message, text.line(line), name, hint, severity)


def _refuse(text: Outline, name: str, offset: int, message: str, hint: str) -> NoReturn:
    raise CompileError([_diagnostic(EditedText(text.source, []), name, offset, message, hint)])


def _check_nesting(text: Outline, tree: Tree, name: str) -> None:
    """Refuse template lists so deep that they would overflow the parser's stack, which it does not check."""
    depth = 0
    for previous, token in pairwise(tree.tokens):
        if token.text == "<" and previous.kind == "word":
            depth += 1
            if depth > _DEEPEST_LIST:
                message = f"template lists are nested more than {_DEEPEST_LIST} deep"
                _refuse(text, name, token.start, message, "name the inner ones")
        elif token.kind != "word" and token.text != "::":
            depth = 0


def _tested_constants(text: Outline) -> Iterator[str]:
    """Yield the function constants that the text tests with ``is_function_constant_defined``."""
    for tree in text.trees:
        for i in range(tree.first, len(tree.texts) - 2):
            if tree.texts[i] == "is_function_constant_defined":
                yield tree.texts[i + 2]


def _instantiations(text: Outline, tree: Tree, name: str) -> Iterator[tuple[int, Instantiation]]:
    """Yield the explicit instantiations with a host name, each with its offset."""
    author_text = EditedText(text.source, [])
    named_instantiations = [instantiation for instantiation in explicit_instantiations(tree) if instantiation.host]
    templates = _templates(tree) if named_instantiations else Counter()
    for instantiation in named_instantiations:
        offset = tree.tokens[instantiation.start].start
        token_range = template_id(tree, instantiation.start + 1, instantiation.stop)
        head = restated_head(tree, instantiation)
        function = text_of_range(text, tree, token_range) if token_range is not None else ""
        overload_type = ""
        base = function.partition("<")[0].split("::")[-1].strip()
        if head and (not function or templates[base] > 1):
            function, overload_type = function or head[0], head[1]
        if not function:
            host_name = f'host_name("{instantiation.name}")'
            _refuse(text, name, offset, f'host_name "{instantiation.name}": cannot tell which template is instantiated',
                    f"write: template [[{host_name}]] [[kernel]] decltype(f<T>) f<T>;")  # fmt: skip
        function = f"::{_namespace(tree, instantiation.start)}{function}"
        yield offset, Instantiation(instantiation.name, function, author_text.position(offset)[0], overload_type)


def _templates(tree: Tree) -> Counter[str]:
    """Return the number of function templates defined with each name."""
    heads = ((tree.texts[f.name], tree.statement(f.name)) for f in tree.functions if tree.texts[f.end] == "{")
    return Counter(name for name, start in heads if tree.texts[start : start + 2] == ["template", "<"])


def _namespace(tree: Tree, i: int) -> str:
    """Return the namespaces around a position: ``a::b::``."""
    names = ""
    i = tree.enclosing(i, "{")
    while i >= 0:
        if tree.text(i - 2) == "namespace":
            names = f"{tree.texts[i - 1]}::{names}"
        i = tree.enclosing(i, "{")
    return names


def _needs_preprocessor(instantiations_found: Sequence[tuple[int, Instantiation]], text: Outline) -> bool:
    """Return whether the preprocessor creates or affects an instantiation, through an ``#if`` or a macro in it."""
    if any(instantiation.host for tree in text.macros for instantiation in explicit_instantiations(tree)):
        return True
    if not instantiations_found:
        return False
    macros = {d.tokens[0].text for d in text.directives if d.name in {"define", "undef"} and d.tokens}
    instantiations = [instantiation for _, instantiation in instantiations_found]
    words = {word for instantiation in instantiations for word in re.findall(r"[\w$]+", instantiation.function)}
    is_conditional = any(d.name in {"if", "ifdef", "ifndef"} for d in text.directives)
    return is_conditional or not macros.isdisjoint(words) or not all(i.name for i in instantiations)
