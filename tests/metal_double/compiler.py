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
        found = [struct.unpack("<f", b"\0\0" + p)[0] for p in parts]
    else:
        found = [struct.unpack(f"<{code}", p)[0] for p in parts]
    return tuple(found) if count > 1 else found[0]


def library_of(source: str, options: MTLCompileOptions) -> MTLLibrary:
    """Compile a source.

    Raises
    ------
    CompileError
    """
    cell = scan(source, "program_source")
    found = newer_words(cell, options.version)
    if found:
        raise CompileError([Diagnostic(d.line, d.column, f"unknown type name '{w}'", d.text) for w, _, d in found])
    if cell.scope_inputs:
        more = scope_inputs(cell, {}, options.version)[cell.name]
        cell = dataclasses.replace(cell, edited=cell.edited.add_edits(more))
    made = cell.instantiations
    if any(word.startswith("os_log") for word in words(cell)):
        must(options.logging, "a cell that logs, compiled without logging")
    must(options.macros in ({}, {"METALNB": "1"}), "the double of the compiler supports no other macros")
    must(options.macros or not re.search(r"\bMETALNB\b", source), "Metal's compiler does not define METALNB by itself")
    if cell.expands:
        from metalnb.engine.clang.driver import expand

        made = instantiations(expand(cell, {}, options.version))
    try:
        found_kernels = reflect(cell, {}, made, options.version)
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
    def __init__(self, cell: Cell, found: Reflection, options: MTLCompileOptions) -> None:
        self._cell, self._found, self._options = cell, found, options

    @selector("newFunctionWithName:", "#")
    def newFunctionWithName_(self, name: str) -> MTLFunction | None:
        made = self._function(name, {})
        if made is not None:
            made.specialized = not any(words(self._cell).count(c.name) > 1 for c in self._found.constants)
        return made

    @selector("newFunctionWithName:constantValues:error:", "##o")
    def newFunctionWithName_constantValues_error_(
        self, name: str, values: MTLFunctionConstantValues, error: None
    ) -> tuple[MTLFunction | None, NSError | None]:
        given: dict[Constant, Any] = {}
        for constant in self._found.constants:
            if constant.index in values.values:
                kind, value = values.values[constant.index]
                if kind != constant.type:
                    return None, NSError(f"constant {constant.name} has type {constant.type}; got {kind}", 3)
                given[constant] = value
        used = words(self._cell)
        for constant in self._found.constants:
            if constant not in given and not constant.optional and used.count(constant.name) > 1:
                return None, NSError(f"Function {name} needs a value for {constant.name}", 3)
        made = self._function(name, given)
        return (made, None) if made else (None, NSError(f"Function {name} not found", 5))

    def _function(self, name: str, given: dict[Constant, Any]) -> MTLFunction | None:
        signature = next((k for k in self._found.kernels if k.name == name), None)
        if signature is None:
            return None
        missing = tuple(c for c in self._found.constants if c not in given)
        math = "precise" if self._options.mode == CONSTANTS["MTLMathModeSafe"] else "fast"
        version = self._options.version
        unit = Unit(signature, self._cell, constants=given, undefined=missing, math=math, version=version)
        return MTLFunction(unit, self._found)


class MTLFunction(ObjCObject):
    def __init__(self, unit: Unit, library: Reflection) -> None:
        self.unit, self.library, self.specialized = unit, library, True
