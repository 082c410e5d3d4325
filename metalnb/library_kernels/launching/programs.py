"""Compile the library's kernels in the most precise math mode that the engine has."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import engine as engines
from ...engine.base import Engine
from ...engine.unit import LIBRARY_CHECKED
from ...program import Math, Program
from ...program.compiled import program_of, recipe_of

__all__ = ["compile", "compile_templates", "instantiation", "kernel_source", "program", "program_with_macros"]

_METAL = Path(__file__).parent.parent / "metal"


@functools.cache
def kernel_source(name: str) -> str:
    """Return the source of one of the library's Metal files."""
    return (_METAL / name).read_text("utf-8")


def compile(source: str, *, engine: str, math: Math = "precise", **options: Any) -> Program:
    """Compile a library kernel's source.

    Parameters
    ----------
    source : str
    engine : str
        The engine's name.
    math : {"precise", "fast"}
        ``precise`` becomes ``fast`` on an engine that lacks it; results are then within Metal's fast-math bounds.
    **options
        As for `metalnb.compile`.

    Raises
    ------
    CompileError
    """
    math_mode: Math = math if engines.named(engine).caps.precise else "fast"
    recipe = recipe_of(source, **{"engine": engine, "math": math_mode, "checked": LIBRARY_CHECKED, **options})
    return program_of(recipe.of_library())


def program(file: str, engine: Engine, **constants: Any) -> Program:
    """Compile one of the library's files for an engine, with its function constants."""
    return _program(file, engine.name, tuple(constants.items()))


@functools.cache
def _program(file: str, engine: str, constants: tuple[tuple[str, Any], ...]) -> Program:
    # Some of these kernels promise an order of operations, so nothing may be contracted or reordered. In a kernel where
    # one thread does a threadgroup's work sequentially, vector code for one lane would cost up to twenty times as much.
    math: Any = "scalar" if file.endswith("_serial.metal") else "precise"
    return compile(kernel_source(file), constants=dict(constants), engine=engine, math=math, name=file)


@functools.cache
def program_with_macros(file: str, engine: str, **macros: str) -> Program:
    """Compile one of the library's files for an engine, with macros defined before it."""
    definitions = "".join(f"#define {name} {text}\n" for name, text in macros.items())
    return compile(definitions + kernel_source(file), engine=engine)


def instantiation(name: str, template: str) -> str:
    """Return the line that instantiates a kernel template, ``reduce_rows<…>``, under a name."""
    return f'template [[host_name("{name}")]] [[kernel]] decltype({template}) {template};'


def compile_templates(
    file: str, templates: Mapping[str, str], engine: str, *, definitions: str = "", name: str = ""
) -> Program:
    """Compile instantiations of a file's kernel templates.

    Each kernel is built when it is first used.

    Parameters
    ----------
    file : str
        One of the library's files.
    templates : mapping of str to str
        The templates with their arguments, by kernel name.
    engine : str
        The engine's name.
    definitions : str, optional
        MSL definitions that the template arguments need.
    name : str, optional
        The source's name in diagnostics; by default the file's name.
    """
    lines = [f"#include <metalnb/{file}>", definitions, *(instantiation(n, t) for n, t in templates.items())]
    return compile("\n".join(lines) + "\n", engine=engine, name=name or file)
