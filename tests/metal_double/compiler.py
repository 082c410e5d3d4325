"""The double's libraries, functions and pipelines: metalnb's front end reads the source, its engine compiles it."""

from __future__ import annotations

import dataclasses
import os
import re
import struct
from typing import Any

from metalnb.engine import named
from metalnb.engine.base import Engine
from metalnb.engine.unit import Unit
from metalnb.errors import CompileError, Diagnostic
from metalnb.msl.analysis.reflect import reflect
from metalnb.msl.analysis.rules import no_kernel
from metalnb.msl.analysis.scope_inputs import scope_inputs
from metalnb.msl.language.versions import VERSIONS, newer_words, words
from metalnb.msl.rewrite.scan import instantiations, scan
from metalnb.msl.signature import Constant, Reflection
from metalnb.msl.text.scanned_cell import Cell

from .runtime import NSError, ObjCObject, is_bytes, must, objc, selector
from .structures import CONSTANTS, SCALARS


def engine() -> Engine:
    """Return the engine that replaces the GPU; it runs on NumPy's memory in place."""
    return named(os.environ.get("METAL_DOUBLE_ENGINE", "cpu"))


class MTLCompileOptions(ObjCObject):
    def __init__(self) -> None:
        self.version, self.mode, self.functions, self.logging = (3, 2), 2, 0, False
        self.macros: dict[str, str] = {}

    @selector("setPreprocessorMacros:", "@")
    def setPreprocessorMacros_(self, macros: dict[str, str] | None) -> None:
        table = macros or {}
        is_valid = all(type(k) is str and type(v) in {str, int} for k, v in table.items())
        must(is_valid, "macros map strings to strings or integers")
        self.macros = table

    @selector("setLanguageVersion:", "Q")
    def setLanguageVersion_(self, version: int) -> None:
        self.version = (version >> 16, version & 0xFFFF)
        must(self.version in VERSIONS, f"no version of the language: {version}")

    @selector("setEnableLogging:", "Z")
    def setEnableLogging_(self, enable: bool) -> None:
        self.logging = enable

    @selector("setMathMode:", "q")
    def setMathMode_(self, mode: int) -> None:
        must(mode in {0, 1, 2}, f"no MTLMathMode: {mode}")
        self.mode = mode

    @selector("setMathFloatingPointFunctions:", "q")
    def setMathFloatingPointFunctions_(self, functions: int) -> None:
        self.functions = functions

    @selector("setFastMathEnabled:", "Z")
    def setFastMathEnabled_(self, fast: bool) -> None:
        self.mode = 2 if fast else 0


class MTLFunctionConstantValues(ObjCObject):
    def __init__(self) -> None:
        self.values: dict[int, tuple[str, Any]] = {}

    @selector("setConstantValue:type:atIndex:", "nQQ")
    def setConstantValue_type_atIndex_(self, value: Any, kind: int, index: int) -> None:
        table = objc.registered[b"setConstantValue:type:atIndex:"]  # otherwise PyObjC accepts no bytes here
        must(table["arguments"][2]["type_modifier"] == b"n", "PyObjC does not know that the value is read")
        must(is_bytes(value), "a function constant has no value")
        for name, (first, code) in SCALARS.items():
            if first <= kind < first + 4:
                count = kind - first + 1
                self.values[index] = (name.lower() + (str(count) if count > 1 else ""), unpacked(code, count, value))
                return
        must(False, f"no type of a function constant: {kind}")


def unpacked(code: str, count: int, value: Any) -> Any:
    size = 2 if code == "bfloat" else struct.calcsize(code)
    data = bytes(value)
    must(len(data) == size * (4 if count == 3 else count), f"{len(data)} bytes for {count} of {code}")
    parts = [data[i * size : (i + 1) * size] for i in range(count)]
    if code == "bfloat":
        numbers = [struct.unpack("<f", b"\0\0" + p)[0] for p in parts]
    else:
        numbers = [struct.unpack(f"<{code}", p)[0] for p in parts]
    return tuple(numbers) if count > 1 else numbers[0]


def library_of(source: str, options: MTLCompileOptions) -> MTLLibrary:
    """Compile a source.

    Raises
    ------
    CompileError
    """
    cell = scan(source, "program_source")
    newer = newer_words(cell, options.version)
    if newer:
        raise CompileError([Diagnostic(d.line, d.column, f"unknown type name '{w}'", d.text) for w, _, d in newer])
    if cell.scope_inputs:
        edits = scope_inputs(cell, {}, options.version)[cell.name]
        cell = dataclasses.replace(cell, edited=cell.edited.add_edits(edits))
    requested = cell.instantiations
    if any(word.startswith("os_log") for word in words(cell)):
        must(options.logging, "a cell that logs, compiled without logging")
    must(options.macros in ({}, {"METALNB": "1"}), "the double of the compiler supports no other macros")
    must(options.macros or not re.search(r"\bMETALNB\b", source), "Metal's compiler does not define METALNB by itself")
    if cell.expands:
        from metalnb.engine.clang.driver import expand

        requested = instantiations(expand(cell, {}, options.version))
    try:
        found_kernels = reflect(cell, {}, requested, options.version)
    except CompileError as refused:
        if refused.diagnostics != (no_kernel(cell),):
            raise
        found_kernels = Reflection(())
    return MTLLibrary(cell, found_kernels, options)


def report(refused: CompileError) -> NSError:
    """Format diagnostics as Apple's compiler does."""
    lines = ["program_source:1:1: warning: a warning, not an error", "", "^"]
    for d in refused.diagnostics:
        lines += [f"program_source:{d.line}:{d.column}: {d.severity}: {d.message}", d.text, " " * (d.column - 1) + "^"]
    return NSError("\n".join(lines), 3)


class MTLLibrary(ObjCObject):
    def __init__(self, cell: Cell, reflection: Reflection, options: MTLCompileOptions) -> None:
        self._cell, self._reflection, self._options = cell, reflection, options

    @selector("newFunctionWithName:", "#")
    def newFunctionWithName_(self, name: str) -> MTLFunction | None:
        function = self._function(name, {})
        if function is not None:
            function.specialized = not any(words(self._cell).count(c.name) > 1 for c in self._reflection.constants)
        return function

    @selector("newFunctionWithName:constantValues:error:", "##o")
    def newFunctionWithName_constantValues_error_(
        self, name: str, values: MTLFunctionConstantValues, error: None
    ) -> tuple[MTLFunction | None, NSError | None]:
        constants: dict[Constant, Any] = {}
        for constant in self._reflection.constants:
            if constant.index in values.values:
                kind, value = values.values[constant.index]
                if kind != constant.type:
                    return None, NSError(f"constant {constant.name} has type {constant.type}; got {kind}", 3)
                constants[constant] = value
        used = words(self._cell)
        for constant in self._reflection.constants:
            if constant not in constants and not constant.optional and used.count(constant.name) > 1:
                return None, NSError(f"Function {name} needs a value for {constant.name}", 3)
        function = self._function(name, constants)
        return (function, None) if function else (None, NSError(f"Function {name} not found", 5))

    def _function(self, name: str, constants: dict[Constant, Any]) -> MTLFunction | None:
        signature = next((k for k in self._reflection.kernels if k.name == name), None)
        if signature is None:
            return None
        missing = tuple(c for c in self._reflection.constants if c not in constants)
        math = "precise" if self._options.mode == CONSTANTS["MTLMathModeSafe"] else "fast"
        version = self._options.version
        unit = Unit(signature, self._cell, constants=constants, undefined=missing, math=math, version=version)
        return MTLFunction(unit, self._reflection)


class MTLFunction(ObjCObject):
    def __init__(self, unit: Unit, library: Reflection) -> None:
        self.unit, self.library, self.specialized = unit, library, True
