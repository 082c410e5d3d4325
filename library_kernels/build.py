"""Compile the library's kernels: as exact as the engine's compiler can be told to be."""

from __future__ import annotations

from typing import Any

from .. import engine as engines
from ..program import Math, Program
from ..program import compile as compile_program

__all__ = ["compile"]


def compile(source: str, *, engine: str, math: Math = "precise", **options: Any) -> Program:
    """Compile a library kernel's text.

    Parameters
    ----------
    source : str
    engine : str
        The engine's name.
    math : {"precise", "fast"}
        ``precise`` is fast on an engine that has no other: results are then within Metal's fast-math bounds.
    **options
        As for `metalnb.compile`.

    Raises
    ------
    CompileError
    """
    return compile_program(
        source, engine=engine, math=math if engines.named(engine).caps.precise else "fast", **options
    )
