"""The compiler driver: compile one source to a device's code, cached on disk by content.

The wheel ``ziglang`` provides clang; ``METALNB_CLANG`` names another one (clang 22 or later).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from metalnb import cache
from metalnb.errors import CompileError, Diagnostic, EngineUnavailable
from metalnb.msl.language.versions import DEFAULT, Version
from metalnb.msl.libclang.deep_stack import time_limit
from metalnb.msl.libclang.flags import TARGET
from metalnb.msl.libclang.hints import hint_for, reword
from metalnb.msl.text.includes import INCLUDE
from metalnb.msl.text.scanned_cell import MAIN, Cell

from ..unit import Unit

__all__ = ["DUMP", "Refused", "Target", "at_kernel", "clang", "compiled", "expand", "printed", "run", "version"]

# Fast math still honours NaN and infinities, so that kernels can test for them. This rules out
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
        Also the kind of its cache entries.
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
def clang() -> tuple[str, ...]:
    """Return the command that starts clang.

    Raises
    ------
    EngineUnavailable
        If there is none.
    """
    named = os.environ.get("METALNB_CLANG")
    if named:
        return (named,)
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        message = "no compiler: the package ziglang, which contains clang, is missing: pip install ziglang"
        raise EngineUnavailable(message)
    binary = Path(spec.submodule_search_locations[0]) / ("zig.exe" if os.name == "nt" else "zig")
    return (str(binary), "clang")


@functools.cache
def version() -> str:
    """Return the compiler's version for the cache key, without starting it."""
    command = clang()
    path = Path(command[0])
    return cache.fingerprint([path]) if path.is_file() else " ".join(command)


@functools.cache
def _headers(own: Path) -> str:
    files = [*INCLUDE.rglob("*"), *TARGET.glob("*.h"), *_ENTRY_POINT.glob("*.h"), *own.rglob("*.h")]
    return cache.fingerprint([f for f in files if f.is_file()])


class Refused(CompileError):
    """Raised if clang's backend cannot compile a kernel in its current form; another form may work."""


def compiled(
    unit: Unit, text: str, target: Target, *more: str, check: Callable[[str], str] = lambda _: "",
) -> bytes:  # fmt: skip
    """Compile a lowered source for a target.

    Parameters
    ----------
    unit : Unit
    text : str
        See `metalnb.engine.clang.entry_point`.
    target : Target
    *more : str
        Further flags for clang.
    check : callable
        Receives clang's output; returns the reason why this file must not be used, or an empty string.

    Raises
    ------
    CompileError
        With positions mapped back to the author's source.
    Refused
        If the source is valid, but clang's backend cannot compile it with these flags, or would miscompile it.
    """
    flags = (*target.flags, *_LANGUAGE, _version(unit.version), *more, *_MATH[unit.math])
    headers = {name: part for name, part in unit.texts.items() if name != MAIN}
    authored = [part for each in sorted(headers.items()) for part in each]
    key = cache.digest(text, *authored, _headers(target.prelude.parent), version(), *flags)

    def build() -> bytes:
        with cache.store().scratch() as folder:
            _write(folder, {**headers, MAIN: text})
            command = [*clang(), *flags, *_paths(target), f"-I{folder}", "-c", MAIN, "-o", "out"]
            plain = ("-include", str(target.prelude))
            prelude = _precompiled(target, _of_headers(flags))
            try:
                told = _run([*command, *(("-include-pch", str(prelude)) if prelude else plain)], folder, unit)
            except Refused:
                raise
            except CompileError:
                if prelude is None:
                    raise
                told = _run([*command, *plain], folder, unit)
                prelude.unlink(missing_ok=True)  # only the cached file was damaged
            reason = check(told)
            if reason:
                raise Refused([at_kernel(unit, reason)])
            return (folder / "out").read_bytes()

    return cache.store().make(key, target.name, build)


def printed(unit: Unit, text: str, target: Target, *more: str) -> str:
    """Compile a lowered source and return clang's output with these flags; nothing is cached."""
    flags = (*target.flags, *_LANGUAGE, _version(unit.version), *more, *_MATH[unit.math])
    with cache.store().scratch() as folder:
        _write(folder, {**unit.texts, MAIN: text})
        named = ("-include", str(target.prelude), "-c", MAIN, "-o", "out")
        return _run([*clang(), *flags, *_paths(target), f"-I{folder}", *named], folder, unit)


def expand(cell: Cell, headers: dict[str, Cell], asked: Version = DEFAULT) -> str:
    """Run only the preprocessor, on the author's source without metalnb's headers."""
    with cache.store().scratch() as folder:
        for header, other in headers.items():
            path = folder / header
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(other.bare, encoding="utf-8")
        (folder / MAIN).write_text(cell.bare, encoding="utf-8")
        command = [
            *clang(), "-E", "-x", "c++", "-nostdinc", "-Wno-everything", _version(asked), "-D__METAL__=1",
            "-DMETALNB=1",
            f"-I{folder}", MAIN,
        ]  # fmt: skip
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=time_limit())
        return done.stdout.decode(errors="replace")


def _version(version: Version) -> str:
    return f"-D__METAL_VERSION__={version[0] * 100 + version[1] * 10}"


def _paths(target: Target) -> list[str]:
    return [f"-I{folder}" for folder in (INCLUDE, TARGET.parent, _ENTRY_POINT, target.prelude.parent)]


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        if path.parent != folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _of_headers(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Drop the flags that do not affect headers, so that one precompiled header serves many code-generation options."""
    found: list[str] = []
    left = iter(flags)
    for flag in left:
        if flag in {"-mllvm", "-Xclang"}:  # the next is an option of the code generator or of the compiler
            option = next(left)
            found += [flag, option] if flag == "-Xclang" and option not in _OF_CODE else []
        elif flag not in _OF_CODE:
            found.append(flag)
    return tuple(found)


_OF_CODE = frozenset({
    "-S", "-emit-llvm", "-disable-llvm-passes", "-funroll-loops", "-fno-vectorize", "-fno-slp-vectorize",
    "-fno-finite-loops", "-gdwarf-4", "-gline-tables-only", "-fno-optimize-sibling-calls",
})  # fmt: skip


def _precompiled(target: Target, flags: tuple[str, ...]) -> Path | None:
    """Return the MSL headers, precompiled for these flags once for each version of headers and compiler."""
    kept = cache.store()
    key = cache.digest(_headers(target.prelude.parent), version(), str(target.prelude), *flags)
    path = kept.path(key, "headers", ".pch")
    if kept.is_open:
        return None
    if kept.has(path):
        return path
    try:
        kept.prepare(path)
        with kept.scratch() as folder:
            command = [
                *clang(), *flags, *_paths(target),
                "-Xclang", "-emit-pch", "-c", str(target.prelude), "-o", "out.pch",
            ]  # fmt: skip
            done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=time_limit())
            if done.returncode:
                return None
            kept.take(folder / "out.pch", path)
    except (OSError, subprocess.TimeoutExpired):  # compiling the cell will report the error
        return None
    return path


def run(command: list[str], folder: Path, unit: Unit) -> tuple[int, str]:
    """Run the compiler in a folder; return its exit status and error output.

    Raises
    ------
    CompileError
        If it did not finish in time.
    """
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=time_limit())
    except subprocess.TimeoutExpired:
        message = f"the compiler did not finish within {time_limit():.0f} s"
        hint = "make the kernel smaller, or set METALNB_COMPILE_TIMEOUT to more seconds"
        raise CompileError([at_kernel(unit, message, hint)]) from None
    return done.returncode, done.stderr.decode(errors="replace")


def _run(command: list[str], folder: Path, unit: Unit) -> str:
    failed, output = run(command, folder, unit)
    if failed and DUMP in output:  # parsing and optimisation succeeded; a later stage failed
        *_, reason = ["it crashed", *_REASON.findall(output)]
        lacking = _SELECTED.search(reason)
        if lacking:
            reason = f"it has no instruction for {lacking[1].removeprefix('G_').replace('_', ' ').lower()}"
        hint = "the source is valid: write that part differently"
        raise Refused([at_kernel(unit, f"clang's backend cannot write it: {reason}", hint)])
    if failed:
        raise CompileError(_diagnostics(output, unit))
    return output


_SELECTED = re.compile(r"cannot select:.*= (G_\w+)")
_REASON = re.compile(r"^(?:fatal )?error: (.*)$", re.MULTILINE)
_LINE = re.compile(
    r"^(?:\./)?(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?(?P<kind>error|note): (?P<text>.*)$",
    re.MULTILINE,
)


def _diagnostics(output: str, unit: Unit) -> list[Diagnostic]:
    """Parse clang's report; each error is at the author's position, or at the note that leads there."""
    cells = {MAIN: unit.cell, **unit.headers}
    found: list[Diagnostic] = []
    pending: str | None = None
    for match in _LINE.finditer(output):
        name = match["file"].split("/")[-1] if match["file"] not in cells else match["file"]
        cell = cells.get(name)
        if match["kind"] == "error":
            pending = match["text"]
        if pending is not None and cell is not None:
            found.append(cell.diagnostic(int(match["line"]), int(match["column"]), reword(pending), hint_for(pending)))
            pending = None
    if not found:
        text = reword(pending or output.strip()[-2000:] or "the compiler failed")
        hint = ""
        if "frontend command failed" in output:
            text = "the compiler crashed on this kernel"
            hint = "clang itself failed, not the cell: write the kernel differently, or use another clang"
            if any(_depth(cell.edited.original) > _DEEP for cell in cells.values()):
                hint = "an expression or a type is nested too deeply: split it"
        found.append(at_kernel(unit, text, hint))
    return found


_DEEP = 256  # nested brackets; handwritten code has about ten


def _depth(text: str) -> int:
    """Return the nesting depth of a source's brackets, template lists or operators."""
    deepest = depth = 0
    for mark in re.findall(r"[(\[{}\])]", text):
        depth = max(0, depth + (1 if mark in "([{" else -1))
        deepest = max(deepest, depth)
    lists = (chain.count("<") for chain in re.findall(r"(?:[\w:]+\s*<\s*)+", text))
    operators = (len(re.findall(r"[-+*/%!~&|^?]", part)) for part in re.split(r"[;,{}]", text))
    return int(max(deepest, *lists, *operators))


def at_kernel(unit: Unit, message: str, hint: str = "") -> Diagnostic:
    """Return a message about an entire kernel, at its name's line."""
    line = unit.signature.line
    return Diagnostic(line, 1, f"'{unit.signature.name}': {message}", unit.cell.edited.line(line), unit.cell.name, hint)
