"""Compile a cell's text to a pipeline: libraries, functions with their constants, and Metal's error messages."""

from __future__ import annotations

import dataclasses
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metalnb.engine.unit import Unit
from metalnb.errors import CompileError, Diagnostic
from metalnb.msl.language.versions import Version, newer_words, version_text
from metalnb.msl.text.edits import EditedText
from metalnb.msl.text.scanned_cell import Cell

from .assembled_source import OWN_MACRO, AssembledSource, Assembly
from .bindings import Bindings
from .kernel_logs import may_log
from .launch_limits import BUFFERS
from .pipeline_archives import PipelineArchives

__all__ = ["Libraries", "Pipeline", "author_text", "diagnostic_at_kernel"]

_MAX_LIBRARIES = 32  # libraries; a cell's kernels share one

# For each scalar type, its Metal data type and its `struct` format; bfloat is written by hand.
_SCALARS = {
    "bool": ("Bool", "?"), "char": ("Char", "b"), "uchar": ("UChar", "B"), "short": ("Short", "h"),
    "ushort": ("UShort", "H"), "int": ("Int", "i"), "uint": ("UInt", "I"), "long": ("Long", "q"),
    "ulong": ("ULong", "Q"), "half": ("Half", "e"), "float": ("Float", "f"), "bfloat": ("BFloat", ""),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A kernel that the GPU can run.

    Attributes
    ----------
    state : MTLComputePipelineState
    threads : int
        The largest threadgroup.
    width : int
        Threads of a SIMD-group.
    threadgroup_bytes : int
        Bytes of threadgroup memory that the kernel declares.
    may_log : bool
        Whether it may log.
    """

    state: Any
    threads: int
    width: int
    threadgroup_bytes: int
    may_log: bool = False


def author_text(unit: Unit) -> AssembledSource:
    """Return the text for Metal's compiler: the cell as written, with its header cells inserted."""
    text = Assembly({name: _author_cell(cell) for name, cell in unit.headers.items()})
    text.add_cell(_author_cell(unit.cell))
    return text.finish()


def _author_cell(cell: Cell) -> Cell:
    return dataclasses.replace(cell, edited=EditedText(cell.edited.original, []))


class Libraries:
    """Compiles kernels for one device, and caches their libraries.

    Parameters
    ----------
    bindings : Bindings
    device : MTLDevice
    newest : tuple of int
        The newest version of the language that a cell can select.
    """

    def __init__(self, bindings: Bindings, device: Any, newest: Version) -> None:
        self._bindings = bindings
        self._device = device
        self._newest = newest
        self._archives = PipelineArchives(bindings, device)
        self._libraries: dict[tuple[Any, ...], Any] = {}
        self._lock = threading.Lock()

    def pipeline(self, unit: Unit) -> Pipeline:
        """Compile one kernel.

        Raises
        ------
        CompileError
        """
        self._check_features(unit)
        text = author_text(unit)
        with self._bindings.pool():
            function = self._function(unit, text)
            state, error = None, None
            if not may_log(unit):
                version = version_text(min(unit.version, self._newest))
                values = repr(sorted((c.index, c.type, value) for c, value in unit.constants.items()))
                state = self._archives.state(function, text.text, unit.signature.name, values, unit.math, version)
            if state is None:
                state, error = self._device.newComputePipelineStateWithFunction_error_(function, None)
            return _pipeline(unit, text, state, error)

    def compile_validated(self, unit: Unit, compile_with: Callable[[Any], tuple[Any, Any]]) -> Pipeline | None:
        """Compile one kernel for a validated run.

        Parameters
        ----------
        unit : Unit
        compile_with : callable
            Makes a pipeline from a function; returns it and an error.

        Returns
        -------
        Pipeline or None
            None if there is neither a pipeline nor an error.

        Raises
        ------
        CompileError
        """
        text = author_text(unit)
        with self._bindings.pool():
            state, error = compile_with(self._function(unit, text))
            return None if state is None and error is None else _pipeline(unit, text, state, error)

    def _check_features(self, unit: Unit) -> None:
        """Refuse features that this system's Metal is known to lack, in the cell's terms."""
        problems = []
        for cell in (unit.cell, *unit.headers.values()):
            for _, _, feature in newer_words(cell, self._newest):
                message = f"{feature.message}; this macOS has MSL {version_text(self._newest)}"
                problems.append(dataclasses.replace(feature, message=message, hint="update macOS, or do without it"))
        last = max((p.index for p in unit.signature.buffers), default=0)
        if last >= BUFFERS:
            message = f"[[buffer({last})]]; Metal has [[buffer(0)]] to [[buffer({BUFFERS - 1})]]"
            problems.append(diagnostic_at_kernel(unit, message, "put several values into one struct"))
        if problems:
            raise CompileError(problems)

    def _function(self, unit: Unit, text: AssembledSource) -> Any:
        library = self._library(unit, text)
        name = unit.signature.name
        if unit.constants or unit.undefined:
            function, error = library.newFunctionWithName_constantValues_error_(name, self._values(unit), None)
        else:
            function, error = library.newFunctionWithName_(name), None
        if function is None:
            raise _compile_error(unit, text, error)
        return function

    def _library(self, unit: Unit, text: AssembledSource) -> Any:
        """Compile a source once for each version and math mode, at most one at a time."""
        key = text.text, unit.math, min(unit.version, self._newest)
        with self._lock:
            if key not in self._libraries:
                options = self._options(unit)
                library, error = self._device.newLibraryWithSource_options_error_(text.text, options, None)
                if library is None:  # for mere warnings, Metal returns both a library and an error
                    raise _compile_error(unit, text, error)
                if len(self._libraries) >= _MAX_LIBRARIES:
                    del self._libraries[next(iter(self._libraries))]
                self._libraries[key] = library
            return self._libraries[key]

    def _options(self, unit: Unit) -> Any:
        metal = self._bindings.metal
        options = metal.MTLCompileOptions.alloc().init()
        major, minor = min(unit.version, self._newest)
        options.setPreprocessorMacros_({OWN_MACRO: "1"})
        options.setLanguageVersion_(getattr(metal, f"MTLLanguageVersion{major}_{minor}"))
        if may_log(unit):
            options.setEnableLogging_(True)
        fast = unit.math == "fast"
        if hasattr(options, "setMathMode_"):  # macOS 15
            # Not MTLMathModeFast, which may assume that NaN and infinity do not occur: `math="fast"` honors both.
            options.setMathMode_(metal.MTLMathModeRelaxed if fast else metal.MTLMathModeSafe)
            functions = metal.MTLMathFloatingPointFunctionsFast if fast else metal.MTLMathFloatingPointFunctionsPrecise
            options.setMathFloatingPointFunctions_(functions)
        else:
            options.setFastMathEnabled_(fast)
        return options

    def _values(self, unit: Unit) -> Any:
        """Return the values of function constants; a constant without a value stays undefined."""
        metal = self._bindings.metal
        values = metal.MTLFunctionConstantValues.alloc().init()
        for constant, value in unit.constants.items():
            kind, data = constant_bytes(constant.type, value)
            values.setConstantValue_type_atIndex_(data, getattr(metal, f"MTLDataType{kind}"), constant.index)
        return values


def constant_bytes(kind: str, value: Any) -> tuple[str, bytes]:
    """Return a function constant's type among Metal's data types, and its bytes; a vector's value is a tuple."""
    parts = value if isinstance(value, tuple) else (value,)
    count = str(len(parts)) if isinstance(value, tuple) else ""
    name, code = _SCALARS[kind.removesuffix(count)]
    data = [struct.pack(f"<{code}", part) if code else _bfloat(part) for part in parts]
    padded = [*data, bytes(len(data[0]))] if len(parts) == 3 else data  # MSL 2.2: a vector of 3 has the size of 4
    return f"{name}{count}", b"".join(padded)


def _bfloat(value: float) -> bytes:
    """Round to the nearest, ties to even: the upper half of a float."""
    bits = int.from_bytes(struct.pack("<f", value), "little")
    if value == value:  # noqa: PLR0124  (NaN's bits are truncated, not rounded)
        bits += 0x7FFF + (bits >> 16 & 1)
    return (bits >> 16 & 0xFFFF).to_bytes(2, "little")


def _pipeline(unit: Unit, text: AssembledSource, state: Any, error: Any) -> Pipeline:
    if state is None:
        raise _compile_error(unit, text, error)
    return Pipeline(
        state, state.maxTotalThreadsPerThreadgroup(), state.threadExecutionWidth(),
        state.staticThreadgroupMemoryLength(), may_log(unit),
    )  # fmt: skip


def _compile_error(unit: Unit, text: AssembledSource, error: Any) -> CompileError:
    """Return the compile error of a kernel: the compiler's errors at the author's lines, or else Metal's message."""
    report = "" if error is None else str(error.localizedDescription())
    diagnostics = text.diagnostics(report)
    first = next(iter(report.strip().splitlines()), "it has no such function")
    return CompileError(diagnostics or [diagnostic_at_kernel(unit, f"Metal refused the kernel: {first}")])


def diagnostic_at_kernel(unit: Unit, message: str, hint: str = "") -> Diagnostic:
    """Return a diagnostic about the entire kernel, at the line of its head."""
    line = unit.signature.line
    text = unit.cell.edited.line(line)
    return Diagnostic(line, 1, f"kernel '{unit.signature.name}': {message}", text, unit.cell.name, hint)
