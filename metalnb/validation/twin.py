"""Compile a kernel again from a rewritten source, for the same engine, with the same constants and math mode."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from metalnb.call.kernel import Kernel
from metalnb.errors import CompileError, MetalnbWarning
from metalnb.program import compile

__all__ = ["twin_of"]


def twin_of(kernel: Kernel, source: str, headers: Mapping[str, str] | None = None) -> Kernel | None:
    """Compile a kernel's twin; None if the rewritten source does not compile.

    Parameters
    ----------
    kernel : Kernel
    source : str
        The rewritten source of its cell.
    headers : mapping of str to str, optional
        Further headers that the source includes.
    """
    recipe = kernel.program.recipe
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetalnbWarning)  # the author has seen it, for the original kernel
            program = compile(
                source,
                constants=recipe.constants,
                math=recipe.math,
                headers={**recipe.headers, **(headers or {})},
                engine=kernel.engine.name,
                msl=recipe.msl,
                checked=recipe.checked,
            )
        twin = program[kernel.signature.name]
        _ = twin.binary
    except CompileError:
        return None
    return twin
