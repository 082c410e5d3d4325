"""Process a recipe: scan the cells, read their declarations, and build one unit per kernel."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from metalnb import cache
from metalnb.call.packing import check_constant
from metalnb.engine.unit import Unit
from metalnb.errors import ArgumentError, CompileError, Diagnostic
from metalnb.msl.language.versions import Version, newer_words, version_text
from metalnb.msl.libclang.precompiled import parser_version
from metalnb.msl.rewrite.scan import instantiations, scan
from metalnb.msl.signature import Constant, Reflection
from metalnb.msl.text.bracket_tree import outline
from metalnb.msl.text.edits import Edit
from metalnb.msl.text.scanned_cell import Cell, Instantiation

from .recipe import Recipe

__all__ = ["read", "reflect_again"]


def read(recipe: Recipe, on_unknown: Callable[[], object] = lambda: None) -> tuple[Reflection, dict[str, Unit]]:
    """Return a recipe's declarations, and a unit for each kernel by name.

    Parameters
    ----------
    recipe : Recipe
    on_unknown : callable, optional
        Called before parsing a cell that is not in the cache.

    Raises
    ------
    CompileError
        If the source is not a valid Metal program.
    ArgumentError
        If a function constant is unknown or missing, or does not fit.
    """
    cell, headers = _scan(recipe)
    if recipe.msl:
        _check_version(recipe, cell, headers)
    reflection = _reflection(recipe, cell, headers, on_unknown)
    values, undefined = _constants(recipe.constants, reflection, (cell, *headers.values()))
    arguments = cell, headers, values, undefined, recipe.math, recipe.version, recipe.checked
    units = {k.name: Unit(k, *arguments) for k in reflection.kernels}
    return reflection, units


def reflect_again(recipe: Recipe) -> Reflection:
    """Return a recipe's declarations, parsed again rather than taken from the cache.

    Raises
    ------
    CompileError
    """
    from metalnb.msl.analysis.reflect import reflect

    cell, headers = _scan(recipe)
    return reflect(cell, headers, _instantiations(cell, headers, recipe.version), recipe.version)


def _scan(recipe: Recipe) -> tuple[Cell, dict[str, Cell]]:
    """Scan a recipe's cell, and the header cells that it includes."""
    names = frozenset(recipe.headers)
    headers = {n: _header(text, n, names) for n, text in recipe.headers.items()}
    cell = scan(recipe.source, recipe.name, names)
    headers = _included_headers(cell, headers)
    if any(c.scope_inputs for c in (cell, *headers.values())):
        cell, headers = _apply_edits(recipe, cell, headers, "scope_inputs")
    if any(c.overloaded for c in (cell, *headers.values())):
        cell, headers = _apply_edits(recipe, cell, headers, "overload_calls")
    return cell, headers


def _apply_edits(recipe: Recipe, cell: Cell, headers: dict[str, Cell], analysis: str) -> tuple[Cell, dict[str, Cell]]:
    """Return the cells with the edits that the named analysis of `metalnb.msl.analysis` makes to the parsed text."""
    edits = _edits(recipe, cell, headers, analysis)
    cells = (cell, *headers.values())
    cell, *header_cells = (dataclasses.replace(c, edited=c.edited.add_edits(edits[c.name])) for c in cells)
    return cell, {c.name: c for c in header_cells}


def _edits(recipe: Recipe, cell: Cell, headers: dict[str, Cell], analysis: str) -> dict[str, list[Edit]]:
    """Return an analysis's edits of each text, by the text's name, from the cache if possible."""
    key = cache.digest(analysis, *_texts(recipe, headers), _front_end())
    data = cache.store().get(key, "edits")
    if data is not None:
        try:
            return {name: [Edit(*row) for row in edits] for name, edits in json.loads(data).items()}
        except (ValueError, AttributeError, TypeError):
            pass  # damaged, so rebuilt
    module = importlib.import_module(f"metalnb.msl.analysis.{analysis}")
    edits_by_name: dict[str, list[Edit]] = getattr(module, analysis)(cell, headers, recipe.version)
    rows = {name: [dataclasses.astuple(edit) for edit in edits] for name, edits in edits_by_name.items()}
    cache.store().put(key, "edits", json.dumps(rows).encode())
    return edits_by_name


def _check_version(recipe: Recipe, cell: Cell, headers: Mapping[str, Cell]) -> None:
    """Reject words that the requested version of MSL lacks; the library's own files are exempt."""
    problems = [
        Diagnostic(d.line, d.column, f"{d.message}; the cell requests MSL {recipe.msl}", d.text, d.file,
                   f"do without it, or ask for its version: --msl {version_text(since)}, msl='{version_text(since)}'")
        for text in (cell, *headers.values())
        for _, since, d in newer_words(text, recipe.version)
    ]  # fmt: skip
    if problems:
        raise CompileError(problems)


@functools.lru_cache(64)
def _header(text: str, name: str, names: frozenset[str]) -> Cell:
    """Scan a header cell; the kernel library's headers are the same for every cell."""
    return scan(text, name, names)


def _included_headers(cell: Cell, headers: dict[str, Cell]) -> dict[str, Cell]:
    """Return only the header cells that the cell includes, so that changing another one does not recompile the cell."""
    included: dict[str, Cell] = {}
    pending = list(cell.includes)
    while pending:
        name = pending.pop()
        if name not in included:
            included[name] = headers[name]
            pending += headers[name].includes
    return {name: headers[name] for name in sorted(included)}


def _reflection(
    recipe: Recipe, cell: Cell, headers: dict[str, Cell], on_unknown: Callable[[], object],
) -> Reflection:  # fmt: skip
    key = cache.digest(*_texts(recipe, headers), _front_end(), *["own"] * recipe.own)
    data = cache.store().get(key, "signatures")
    if data is not None:
        try:
            return Reflection.from_json(json.loads(data))
        except (ValueError, KeyError, TypeError):
            pass  # damaged, so rebuilt
    on_unknown()
    from metalnb.msl.analysis.reflect import MAX_CHECKED_INSTANTIATIONS, reflect

    limit = 0 if recipe.own else MAX_CHECKED_INSTANTIATIONS
    reflection = reflect(cell, headers, _instantiations(cell, headers, recipe.version), recipe.version, limit)
    cache.store().put(key, "signatures", json.dumps(reflection.to_json()).encode())
    return reflection


def _texts(recipe: Recipe, headers: dict[str, Cell]) -> list[str]:
    """Return everything that determines the parser's input."""
    texts = [part for n, h in headers.items() for part in (n, h.edited.original)]
    return [recipe.source, recipe.name, version_text(recipe.version), *texts]


def _instantiations(cell: Cell, headers: dict[str, Cell], version: Version) -> tuple[Instantiation, ...]:
    """Find the template instantiations, in the source or, if macros write them, in the preprocessor's output."""
    if not (cell.expands or any(h.expands for h in headers.values())):
        return tuple(i for c in (*headers.values(), cell) for i in c.instantiations)
    from metalnb.engine.clang.driver import expand

    return instantiations(expand(cell, headers, version))


@functools.cache
def _front_end() -> str:
    """Return a key for the versions of the front end and libclang, since reflections are not reused across versions."""
    package = Path(__file__).parent.parent
    files = [package / "dtypes.py", *(f for f in (package / "msl").rglob("*") if f.is_file() and f.suffix != ".pyc")]
    return f"{cache.fingerprint(files)} {parser_version()}"


def _constants(
    values_given: Mapping[str, Any], reflection: Reflection, cells: Iterable[Cell],
) -> tuple[dict[Constant, Any], tuple[Constant, ...]]:  # fmt: skip
    declared_constants = {c.name: c for c in reflection.constants}
    for name in values_given:
        if name not in declared_constants:
            names = ", ".join(declared_constants) or "none"
            message = f"constants: the cell has no function constant {name!r}; it has: {names}."
            raise ArgumentError(message)
    missing = [c for c in reflection.constants if c.name not in values_given and not c.optional]
    if missing:  # a constant that is declared and never used needs no value (MSL 5.8)
        uses = Counter(word for c in cells for word in outline(c.edited.original).words)
        missing = [c for c in missing if uses[c.name] > 1]
    if missing:
        declarations = ", ".join(f"{c.type} {c.name} [[function_constant({c.index})]]" for c in missing)
        python = ", ".join(f"'{c.name}': …" for c in missing)
        line = " ".join(f"--constant {c.name}=…" for c in missing)
        cure = f"write %%metal {line}, or pass constants={{{python}}}"
        raise ArgumentError(f"constants: the cell needs a value for {declarations}; {cure}.")
    values = {c: check_constant(c, values_given[c.name]) for c in reflection.constants if c.name in values_given}
    return values, tuple(c for c in reflection.constants if c.name not in values_given)
