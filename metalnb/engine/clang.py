"""The compiler driver: one text in, SPIR-V out, kept on disk by content.

clang comes in the wheel ``ziglang``; ``METALNB_CLANG`` names another (clang 22 or later, with the SPIR-V target).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from metalnb import cache
from metalnb.errors import CompileError, Diagnostic, EngineUnavailable
from metalnb.msl.libclang.deep_stack import time_limit
from metalnb.msl.libclang.flags import TARGET
from metalnb.msl.libclang.hints import hint_for, reword
from metalnb.msl.lower import Unit
from metalnb.msl.text.includes import INCLUDE
from metalnb.msl.text.scanned_cell import MAIN, Cell

from .spirv_forms import DUMP, FORMS, PRINTED, Form, odd_width

__all__ = ["Refused", "clang", "expand", "spirv", "version"]

# NaN and infinities stay honoured in fast math: a kernel's own tests for them must work. -fassociative-math is left out
# for that: with it the CPU runtime divides by an approximation in which 1/0 and 1/inf are NaN.
_FAST = (
    "-ffp-contract=fast", "-freciprocal-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno",
    "-D$FAST_MATH=1",
)  # fmt: skip
# What the MSL headers use of SPIR-V beyond its core.
_SPIRV = (
    "--target=spirv64-unknown-unknown",
    "-mllvm", "-spirv-ext=+SPV_KHR_subgroup_rotate,+SPV_EXT_shader_atomic_float_add,+SPV_KHR_bit_instructions",
)  # fmt: skip
_PRECISE = ("-ffp-contract=on", "-D$FAST_MATH=0")
_MATH = {"fast": _FAST, "precise": _PRECISE, "scalar": _PRECISE}
_LANGUAGE = (
    "-x", "clcpp", "-cl-std=CLC++2021", "-cl-no-stdinc", "-nostdinc", "-cl-single-precision-constant", "-fdeclspec",
    "-ferror-limit=64", "-ftemplate-depth=512", "-Wno-everything", "-D__METAL_VERSION__=310", "-D__METAL__=1",
    "-D$REFLECT=0", "-fno-crash-diagnostics",
)  # fmt: skip
_PRELUDE = TARGET / "prelude.h"
_PLAIN = ("-include", str(_PRELUDE))  # without precompiled headers


@functools.cache
def clang() -> tuple[str, ...]:
    """Return the command that starts clang.

    Raises
    ------
    EngineUnavailable
        When there is none.
    """
    named = os.environ.get("METALNB_CLANG")
    if named:
        return (named,)
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        message = "no compiler: the package ziglang, which brings clang, is missing: pip install ziglang"
        raise EngineUnavailable(message)
    binary = Path(spec.submodule_search_locations[0]) / ("zig.exe" if os.name == "nt" else "zig")
    return (str(binary), "clang")


@functools.cache
def version() -> str:
    """Return a name of the compiler's version for the cache, without starting it."""
    command = clang()
    path = Path(command[0])
    return cache.fingerprint([path]) if path.is_file() else " ".join(command)


@functools.cache
def _headers() -> str:
    files = [f for f in (*INCLUDE.rglob("*"), *TARGET.glob("*.h")) if f.is_file()]
    return cache.fingerprint(files)


class Refused(CompileError):
    """clang's backend cannot write a kernel in the form at hand; another form may do."""


def spirv(unit: Unit, text: str, form: Form = FORMS[0]) -> bytes:
    """Compile a lowered text to SPIR-V.

    Raises
    ------
    CompileError
        With the places mapped back to the author's text.
    Refused
        When the text is right, and clang's backend cannot write it in this form, or would write it wrongly.
    """
    flags = (*_SPIRV, *_LANGUAGE, *form.flags, *_MATH[unit.math])
    authored = [part for name, h in sorted(unit.headers.items()) for part in (name, h.edited.text)]
    key = cache.digest(text, *authored, _headers(), version(), *flags)

    def build() -> bytes:
        with tempfile.TemporaryDirectory(prefix="metalnb-") as name:
            folder = Path(name)
            _write(folder, MAIN, text, unit.headers)
            command = [*clang(), *flags, *PRINTED, *_paths(folder), "-c", MAIN, "-o", "out.spv"]
            prelude = _precompiled(flags)
            try:
                printed = _run([*command, *(("-include-pch", str(prelude)) if prelude else _PLAIN)], folder, unit)
            except Refused:
                raise
            except CompileError:
                if prelude is None:
                    raise
                printed = _run([*command, *_PLAIN], folder, unit)
                prelude.unlink(missing_ok=True)  # it was damaged: the text is fine
            width = odd_width(printed)
            if width:
                message = f"clang made an integer of {width} bits, which SPIR-V does not have"
                raise Refused([_at_kernel(unit, message)])
            return (folder / "out.spv").read_bytes()

    return cache.store().make(key, "spirv", build)


def expand(cell: Cell, headers: dict[str, Cell]) -> str:
    """Run the preprocessor alone over the author's own text; metalnb's headers are left out."""
    with tempfile.TemporaryDirectory(prefix="metalnb-") as name:
        folder = Path(name)
        for header, other in headers.items():
            path = folder / header
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(other.bare, encoding="utf-8")
        (folder / MAIN).write_text(cell.bare, encoding="utf-8")
        command = [
            *clang(), "-E", "-x", "c++", "-nostdinc", "-Wno-everything", "-D__METAL_VERSION__=310", "-D__METAL__=1",
            f"-I{folder}", MAIN,
        ]  # fmt: skip
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=time_limit())
        return done.stdout.decode(errors="replace")


def _paths(folder: Path) -> list[str]:
    return [f"-I{INCLUDE}", f"-I{TARGET.parent}", f"-I{folder}"]


def _write(folder: Path, name: str, text: str, headers: Mapping[str, Cell]) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    for header, cell in headers.items():
        path = folder / header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(cell.edited.text, encoding="utf-8")


def _precompiled(flags: tuple[str, ...]) -> Path | None:
    """Return the MSL headers precompiled for these flags; they are made once for each state of headers and compiler."""
    kept = cache.store()
    key = cache.digest(_headers(), version(), str(_PRELUDE), *flags)
    path = kept.path(key, "headers").with_suffix(".pch")
    if path.exists():
        return path
    try:
        kept.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="metalnb-", dir=kept.root) as name:
            folder = Path(name)
            command = [
                *clang(), *flags, f"-I{INCLUDE}", f"-I{TARGET.parent}",
                "-Xclang", "-emit-pch", "-c", str(_PRELUDE), "-o", "out.pch",
            ]  # fmt: skip
            done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=time_limit())
            if done.returncode:
                return None
            (folder / "out.pch").replace(path)
    except OSError:
        return None
    return path


def _run(command: list[str], folder: Path, unit: Unit) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=time_limit())
    except subprocess.TimeoutExpired:
        message = f"the compiler gave no answer in {time_limit():.0f} s"
        hint = "make the kernel smaller, or set METALNB_COMPILE_TIMEOUT to more seconds"
        raise CompileError([_at_kernel(unit, message, hint)]) from None
    output = done.stderr.decode(errors="replace")
    if done.returncode and DUMP in output:  # the text was read, and optimised: what failed came after that
        *_, reason = ["it crashed", *_REASON.findall(output)]
        raise Refused([_at_kernel(unit, f"clang's backend cannot write it: {reason}")])
    if done.returncode:
        raise CompileError(_diagnostics(output, unit))
    return output


_REASON = re.compile(r"^(?:fatal )?error: (.*)$", re.MULTILINE)
_LINE = re.compile(
    r"^(?:\./)?(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?(?P<kind>error|note): (?P<text>.*)$",
    re.MULTILINE,
)


def _diagnostics(output: str, unit: Unit) -> list[Diagnostic]:
    """Read clang's own report: each error at the author's place, or at the note that leads there."""
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
            text = "the compiler broke down on this kernel"
            hint = "an expression or a type is nested too deeply: split it"
        found.append(_at_kernel(unit, text, hint))
    return found


def _at_kernel(unit: Unit, message: str, hint: str = "") -> Diagnostic:
    line = unit.signature.line
    return Diagnostic(line, 1, f"'{unit.signature.name}': {message}", unit.cell.edited.line(line), unit.cell.name, hint)
