"""Errors and warnings of the front end for a cell that is being edited."""

from __future__ import annotations

from collections.abc import Mapping

from metalnb.errors import CompileError, Diagnostic
from metalnb.library_includes import bundle_files
from metalnb.msl.text.scanned_cell import MAIN

from .front_end import reflect_again
from .recipe import Recipe

__all__ = ["findings"]

_INCLUDING = '#include <metal_stdlib>\nusing namespace metal;\n#include "{}"\n'  # a header cell, as included


def findings(source: str, headers: Mapping[str, str], name: str = MAIN) -> tuple[Diagnostic, ...]:
    """Return the diagnostics for a cell, without compiling for a device and without caching.

    Parameters
    ----------
    source : str
    headers : mapping of str to str
        The header cells, by their names in ``#include``.
    name : str
        The name by which other cells include this one, if it is a header cell.

    Returns
    -------
    tuple of Diagnostic
        The errors or, if there are none, the warnings. Only those in this cell are returned, not those in its includes.
    """
    headers = {**bundle_files((source, *headers.values())), **headers}
    recipe = Recipe(source, {}, "fast", headers, "", MAIN)
    if name != MAIN:
        recipe = Recipe(_INCLUDING.format(name), {}, "fast", {**headers, name: source}, "", MAIN)
    try:
        diagnostics = reflect_again(recipe).cautions
    except CompileError as error:
        diagnostics = error.diagnostics
    return tuple(diagnostic for diagnostic in diagnostics if diagnostic.file == name)
