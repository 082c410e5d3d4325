"""The compiler driver: compile one source to a device's code, cached on disk by content.

The wheel ``ziglang`` provides clang; ``METALNB_CLANG`` names another one (clang 22 or later).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from metalnb import cache
from metalnb.compile_limits import time_limit
from metalnb.errors import CompileError, Diagnostic, EngineUnavailable
from metalnb.msl.language.versions import DEFAULT, Version
from metalnb.msl.libclang.flags import TARGET
from metalnb.msl.libclang.hints import hint_for, reword
from metalnb.msl.text.includes import INCLUDE
from metalnb.msl.text.scanned_cell import MAIN, Cell

from ..unit import Unit

__all__ = [
    "DUMP", "BackendError", "Target", "clang_command", "compile_source", "compiler_output", "compiler_version",
    "expand", "kernel_diagnostic", "run_clang",
]  # fmt: skip

# Fast math still honors NaN and infinities, so that kernels can test for them. This rules out
# -fassociative-math, which lets a backend divide by an estimate for which 1/0 and 1/inf are NaN.
_FAST = (
    "-ffp-contract=fast", "-freciprocal-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno",
    "-D$FAST_MATH=1",
)  # fmt: skip
_PRECISE = ("-ffp-contract=on", "-D$FAST_MATH=0")
_MATH = {"fast": _FAST, "precise": _PRECISE, "scalar": _PRECISE}
_LANGUAGE = (
    "-x", "clcpp", "-cl-std=CLC++2021", "-cl-no-stdinc", "-nostdinc", "-cl-single-precision-constant", "-fdeclspec",
    "-ferror-limit=64", "-ftemplate-depth=512", "-Wno-everything", "-D__METAL__=1",
    "-DMETALNB=1", "-D$REFLECT=0", "-fno-crash-diagnostics",
)  # fmt: skip
_ENTRY_POINT = Path(__file__).parent  # the folder of entry_point.h
DUMP = "*** IR Dump"  # the first words of the LLVM IR that clang prints on request


@dataclass(frozen=True, slots=True)
class Target:
    """A device as a target for clang.

    Attributes
    ----------
    name : str
        The target's name, also used as the kind of its cache entries.
    prelude : Path
        The header included before every cell: Metal's keywords, the target's part of the MSL headers, the MSL headers,
        and ``entry_point.h``. It is precompiled once for each set of flags; its folder is searched for headers.
    flags : tuple of str
        The target triple, and flags that depend on it.
    """

    name: str
    prelude: Path
    flags: tuple[str, ...]


@functools.cache
def clang_command() -> tuple[str, ...]:
    """Return the command that starts clang.

    Raises
    ------
    EngineUnavailable
        If no clang is installed.
    """
    path = os.environ.get("METALNB_CLANG")
    if path:
        return (path,)
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        message = "no compiler: the package ziglang, which contains clang, is missing: pip install ziglang"
        raise EngineUnavailable(message)
    binary = Path(spec.submodule_search_locations[0]) / ("zig.exe" if os.name == "nt" else "zig")
    return (str(binary), "clang")


@functools.cache
def compiler_version() -> str:
    """Return the compiler's version for the cache key, without starting it."""
    command = clang_command()
    path = shutil.which(command[0])
    return cache.fingerprint([Path(path)]) if path else " ".join(command)


@functools.cache
def _headers(folder: Path) -> str:
    files = [*INCLUDE.rglob("*"), *TARGET.glob("*.h"), *_ENTRY_POINT.glob("*.h"), *folder.rglob("*.h")]
    return cache.fingerprint([f for f in files if f.is_file()])


class BackendError(CompileError):
    """Raised if clang's backend cannot compile a kernel in its current form; another form may work."""


def compile_source(
    unit: Unit, text: str, target: Target, *options: str, check: Callable[[str], str] = lambda _: "",
) -> bytes:  # fmt: skip
    """Compile a lowered source for a target.

    Parameters
    ----------
    unit : Unit
    text : str
        See `metalnb.engine.clang.entry_point`.
    target : Target
    *options : str
        Further flags for clang.
    check : callable
        Receives clang's output; returns the reason why this file must not be used, or an empty string.

    Raises
    ------
    CompileError
        If the source is invalid; positions are the author's.
    BackendError
        If the source is valid, but clang's backend cannot compile it with these flags, or would miscompile it.
    """
    flags = _flags(unit, target, options)
    headers = {name: part for name, part in unit.texts.items() if name != MAIN}
    header_parts = [part for header in sorted(headers.items()) for part in header]
    key = cache.digest(text, *header_parts, _headers(target.prelude.parent), compiler_version(), *flags)

    def build() -> bytes:
        with cache.store().scratch() as folder:
            _write_files(folder, {**headers, MAIN: text})
            command = _command(flags, target, folder)
            include = ("-include", str(target.prelude))
            prelude = _precompile_headers(target, _header_flags(flags))
            try:
                output = _run_to_output(
                    [*command, *(("-include-pch", str(prelude)) if prelude else include)], folder, unit
                )  # fmt: skip
            except BackendError:
                raise
            except CompileError:
                if prelude is None:
                    raise
                output = _run_to_output([*command, *include], folder, unit)
                prelude.unlink(missing_ok=True)  # only the cached header was damaged
            reason = check(output)
            if reason:
                raise BackendError([kernel_diagnostic(unit, reason)])
            return (folder / "out").read_bytes()

    return cache.store().make(key, target.name, build)


def compiler_output(unit: Unit, text: str, target: Target, *options: str) -> str:
    """Compile a lowered source and return clang's output with these flags; nothing is cached."""
    flags = _flags(unit, target, options)
    with cache.store().scratch() as folder:
        _write_files(folder, {**unit.texts, MAIN: text})
        return _run_to_output([*_command(flags, target, folder), "-include", str(target.prelude)], folder, unit)


def expand(cell: Cell, headers: dict[str, Cell], version: Version = DEFAULT) -> str:
    """Run only the preprocessor, on the author's source without metalnb's headers."""
    with cache.store().scratch() as folder:
        for header, header_cell in headers.items():
            path = folder / header
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(header_cell.bare, encoding="utf-8")
        (folder / MAIN).write_text(cell.bare, encoding="utf-8")
        command = [
            *clang_command(), "-E", "-x", "c++", "-nostdinc", "-Wno-everything", _version_flag(version),
            "-D__METAL__=1", "-DMETALNB=1", f"-I{folder}", MAIN,
        ]  # fmt: skip
        result = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=time_limit())
        return result.stdout.decode(errors="replace")


def _flags(unit: Unit, target: Target, options: tuple[str, ...]) -> tuple[str, ...]:
    return (*target.flags, *_LANGUAGE, _version_flag(unit.version), *options, *_MATH[unit.math])


def _command(flags: tuple[str, ...], target: Target, folder: Path) -> list[str]:
    """Return the command that compiles the main file of a folder; the caller adds the prelude."""
    return [*clang_command(), *flags, *_include_flags(target), f"-I{folder}", "-c", MAIN, "-o", "out"]


def _version_flag(version: Version) -> str:
    return f"-D__METAL_VERSION__={version[0] * 100 + version[1] * 10}"


def _include_flags(target: Target) -> list[str]:
    return [f"-I{folder}" for folder in (INCLUDE, TARGET.parent, _ENTRY_POINT, target.prelude.parent)]


def _write_files(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        if path.parent != folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _header_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Drop the flags that do not affect headers, so that one precompiled header serves many code-generation options."""
    header_flags: list[str] = []
    remaining = iter(flags)
    for flag in remaining:
        if flag in {"-mllvm", "-Xclang"}:  # the next flag is an option of the code generator or of the compiler
            option = next(remaining)
            header_flags += [flag, option] if flag == "-Xclang" and option not in _CODE_FLAGS else []
        elif flag not in _CODE_FLAGS:
            header_flags.append(flag)
    return tuple(header_flags)


_CODE_FLAGS = frozenset({
    "-S", "-emit-llvm", "-disable-llvm-passes", "-funroll-loops", "-fno-vectorize", "-fno-slp-vectorize",
    "-fno-finite-loops", "-gdwarf-4", "-gline-tables-only", "-fno-optimize-sibling-calls",
})  # fmt: skip


def _precompile_headers(target: Target, flags: tuple[str, ...]) -> Path | None:
    """Return the MSL headers, precompiled for these flags once for each version of headers and compiler."""
    store = cache.store()
    key = cache.digest(_headers(target.prelude.parent), compiler_version(), str(target.prelude), *flags)
    path = store.path(key, "headers", ".pch")
    if store.is_writable_by_others:
        return None
    if store.has(path):
        return path
    try:
        store.prepare(path)
        with store.scratch() as folder:
            command = [
                *clang_command(), *flags, *_include_flags(target),
                "-Xclang", "-emit-pch", "-c", str(target.prelude), "-o", "out.pch",
            ]  # fmt: skip
            result = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=time_limit())
            if result.returncode:
                return None
            store.take(folder / "out.pch", path)
    except (OSError, subprocess.TimeoutExpired):  # compiling the cell will report the error
        return None
    return path


def run_clang(command: list[str], folder: Path, unit: Unit) -> tuple[int, str]:
    """Run the compiler in a folder; return its exit status and error output.

    Raises
    ------
    CompileError
        If the compiler did not finish in time.
    """
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=time_limit())
    except subprocess.TimeoutExpired:
        message = f"the compiler did not finish within {time_limit():.0f} s"
        hint = "make the kernel smaller, or set METALNB_COMPILE_TIMEOUT to more seconds"
        raise CompileError([kernel_diagnostic(unit, message, hint)]) from None
    return result.returncode, result.stderr.decode(errors="replace")


def _run_to_output(command: list[str], folder: Path, unit: Unit) -> str:
    status, output = run_clang(command, folder, unit)
    if status and DUMP in output:  # parsing and optimization succeeded; a later stage failed
        *_, reason = ["it crashed", *_REASON.findall(output)]
        unselectable = _UNSELECTABLE.search(reason)
        if unselectable:
            reason = f"it has no instruction for {unselectable[1].removeprefix('G_').replace('_', ' ').lower()}"
        hint = "the source is valid: write that part differently"
        raise BackendError([kernel_diagnostic(unit, f"clang's backend cannot compile it: {reason}", hint)])
    if status:
        raise CompileError(_diagnostics(output, unit))
    return output


_UNSELECTABLE = re.compile(r"cannot select:.*= (G_\w+)")
_REASON = re.compile(r"^(?:fatal )?error: (.*)$", re.MULTILINE)
_LINE = re.compile(
    r"^(?:\./)?(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?(?P<kind>error|note): (?P<text>.*)$",
    re.MULTILINE,
)


def _diagnostics(output: str, unit: Unit) -> list[Diagnostic]:
    """Parse clang's report; each error is at the author's position, or at the note that leads there."""
    cells = {MAIN: unit.cell, **unit.headers}
    diagnostics: list[Diagnostic] = []
    pending: str | None = None
    for match in _LINE.finditer(output):
        name = match["file"].split("/")[-1] if match["file"] not in cells else match["file"]
        cell = cells.get(name)
        if match["kind"] == "error":
            pending = match["text"]
        if pending is not None and cell is not None:
            diagnostics.append(
                cell.diagnostic(int(match["line"]), int(match["column"]), reword(pending), hint_for(pending))
            )  # fmt: skip
            pending = None
    if not diagnostics:
        text = reword(pending or output.strip()[-2000:] or "the compiler failed")
        hint = ""
        if "frontend command failed" in output:
            text = "the compiler crashed on this kernel"
            hint = "clang itself failed, not the cell: write the kernel differently, or use another clang"
            if any(_nesting_depth(cell.edited.original) > _MAX_NESTING for cell in cells.values()):
                hint = "an expression or a type is nested too deeply: split it"
        diagnostics.append(kernel_diagnostic(unit, text, hint))
    return diagnostics


_MAX_NESTING = 256  # nested brackets; handwritten code has about ten


def _nesting_depth(text: str) -> int:
    """Return the nesting depth of a source's brackets, template lists or operators."""
    deepest = depth = 0
    for mark in re.findall(r"[(\[{}\])]", text):
        depth = max(0, depth + (1 if mark in "([{" else -1))
        deepest = max(deepest, depth)
    lists = (chain.count("<") for chain in re.findall(r"(?:[\w:]+\s*<\s*)+", text))
    operators = (len(re.findall(r"[-+*/%!~&|^?]", part)) for part in re.split(r"[;,{}]", text))
    return int(max(deepest, *lists, *operators))


def kernel_diagnostic(unit: Unit, message: str, hint: str = "") -> Diagnostic:
    """Return a message about an entire kernel, at its name's line."""
    line = unit.signature.line
    return Diagnostic(line, 1, f"'{unit.signature.name}': {message}", unit.cell.edited.line(line), unit.cell.name, hint)
