"""Play Metal's part in metalcompute: compile a library from source, find its functions, and dispatch one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from metalnb.engine import named
from metalnb.engine.base import Ticket, compiled
from metalnb.engine.unit import CHECKED, Unit
from metalnb.errors import CompileError, Diagnostic, EngineUnavailable
from metalnb.msl.analysis.reflect import reflect
from metalnb.msl.analysis.rules import no_kernel
from metalnb.msl.language.versions import newer_words, words
from metalnb.msl.rewrite.scan import instantiations, scan
from metalnb.msl.signature import Param, Reflection
from metalnb.msl.text.scanned_cell import Cell

from .codes import Code, error, error_of
from .memory import Buffer

__all__ = ["Library", "PipelineFunction", "engine"]

_MSL = (2, 3)  # metalcompute.swift, mc_sw_kern_open: languageVersion = .version2_3
_SIMD = 32  # threadExecutionWidth of every Apple GPU
_MAX_COUNT = 2**32 - 1
_MAX_THREADS = 1024  # maxTotalThreadsPerThreadgroup of a kernel that requests no other


def engine() -> Any:
    """Return the engine that stands in for the GPU.

    Raises
    ------
    error
        If the engine cannot run here.
    """
    try:
        return named("cpu")
    except EngineUnavailable as reason:
        raise error_of(Code.CANNOT_CREATE_DEVICE) from reason


class Library:
    """A compiled program.

    Parameters
    ----------
    source : str
        Metal Shading Language.

    Raises
    ------
    error
        If the program does not compile; the message is the compiler's.
    """

    def __init__(self, source: str) -> None:
        if "\0" in source:  # metalcompute.c parses it with PyArg_ParseTuple's "s"
            raise ValueError("embedded null character")
        try:
            self.cell, self.reflection = _front_end(source)
        except CompileError as refused:
            raise _compiler_error(refused) from None

    def function(self, name: str) -> PipelineFunction | None:
        """Return a kernel by name; None if there is none."""
        signature = next((k for k in self.reflection.kernels if k.name == name), None)
        if signature is None:
            return None
        constants = self.reflection.constants
        unit = Unit(signature, self.cell, undefined=constants, version=_MSL, checked=CHECKED)
        uses = words(self.cell)
        return PipelineFunction(unit, is_specialized=not any(uses.count(c.name) > 1 for c in constants))


def _front_end(source: str) -> tuple[Cell, Reflection]:
    cell = scan(source, "program_source")
    problem_words = newer_words(cell, _MSL)
    if problem_words:
        raise CompileError([
            Diagnostic(d.line, d.column, _undeclared_text(word), d.text, d.file) for word, _, d in problem_words
        ])  # fmt: skip
    instances = cell.instantiations
    if cell.expands:
        from metalnb.engine.clang.driver import expand

        instances = instantiations(expand(cell, {}, _MSL))
    try:
        return cell, reflect(cell, {}, instances, _MSL)
    except CompileError as failure:
        if failure.diagnostics != (no_kernel(cell),):  # a library may be empty
            raise
        return cell, Reflection(())


def _undeclared_text(word: str) -> str:
    is_function = word.endswith("_explicit") or "shuffle" in word
    return f"use of undeclared identifier '{word}'" if is_function else f"unknown type name '{word}'"


def _compiler_error(failure: CompileError) -> error:
    """Write diagnostics as Apple's compiler does: ``program_source:LINE:COLUMN: error: …``, the line and a caret."""
    lines = []
    for d in failure.diagnostics:
        indent = "".join("\t" if c == "\t" else " " for c in d.text[: d.column - 1])
        lines += [f"program_source:{d.line}:{d.column}: {d.severity}: {d.message}", d.text, f"{indent}^"]
    return error("\n".join([*lines, ""]))


class PipelineFunction:
    """A kernel function.

    Parameters
    ----------
    unit : Unit
    is_specialized : bool
        False if it needs function constants, which metalcompute cannot set.
    """

    def __init__(self, unit: Unit, *, is_specialized: bool) -> None:
        self.unit = unit
        self.is_specialized = is_specialized
        self._engine = engine()
        if is_specialized:
            try:
                self._binary = compiled(self._engine, unit)
            except CompileError as failure:
                raise _compiler_error(failure) from None

    def dispatch(self, count: int, buffers: Sequence[Buffer]) -> Ticket | None:
        """Start whole threadgroups for ``count`` threads; return None if there is nothing to wait for.

        Raises
        ------
        error
        """
        signature = self.unit.signature
        if not self.is_specialized or self._binary.threadgroup_bytes > self._engine.caps.threadgroup_memory:
            raise error_of(Code.CANNOT_CREATE_PIPELINE_STATE)
        self._check_defined()
        # metalcompute.swift, mc_sw_run_open: w = threadExecutionWidth, h = maxTotalThreadsPerThreadgroup / w
        group = (signature.max_threads or _MAX_THREADS) // _SIMD * _SIMD
        groups = -(-count // group)
        arguments = []
        for param in signature.params:
            if param.index >= len(buffers):
                self._warn(param, len(buffers))
                return None
            arguments.append(buffers[param.index].memory)
        if groups < 1:
            return None
        if groups * group > _MAX_COUNT:
            raise error(f"kernel '{signature.name}' got a count of {count:,}: its threads' positions have 32 bits")
        ticket: Ticket = self._engine.launch(self._binary, arguments, (groups * group, 1, 1), (group, 1, 1))
        return ticket

    def _warn(self, param: Param, count: int) -> None:
        label = f"kernel '{self.unit.signature.name}' has an argument '{param.name}' {param.attribute}"
        message = f"{label}, but got {count} buffers: it does not run, and metalcompute would not say so"
        warnings.warn(message, RuntimeWarning, stacklevel=6)

    def _check_defined(self) -> None:
        """Refuse calls whose outcome metalcompute leaves undefined."""
        signature = self.unit.signature
        label = f"kernel '{signature.name}'"
        if signature.threadgroup:
            param = signature.threadgroup[0]
            label = f"{label} has an argument '{param.name}' {param.attribute}"
            raise error(f"{label}: metalcompute gives it no memory; declare it in the kernel's body")
        if 0 < signature.max_threads < _SIMD:
            label = f"{label} allows {signature.max_threads} threads in a threadgroup"
            raise error(f"{label}: metalcompute divides by its SIMD-groups and ends the process; allow {_SIMD} or more")
