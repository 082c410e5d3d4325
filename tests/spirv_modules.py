"""What the tests of the passes over SPIR-V share: modules of kernels, one pass alone, all but one, the validator."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import metalnb as mnb
from metalnb.engine.clang.entry_point import opencl
from metalnb.engine.cpu import form_ladder
from metalnb.engine.cpu.spirv import pass_table
from metalnb.engine.cpu.spirv.module import parsed
from metalnb.engine.cpu.spirv_forms import spirv
from metalnb.engine.unit import Unit

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SIZES = (1, 8, 31, 32, 33, 64, 256)


def module_of(unit: Unit) -> bytes:
    """A kernel's module as clang writes it."""
    return spirv(unit, opencl(unit))


def module(source: str, name: str, math: str = "fast") -> bytes:
    return module_of(mnb.compile(source, engine="cpu", math=math)[name].unit)


def applied(name: str, code: bytes) -> bytes:
    """A module after one pass alone."""
    found = parsed(code)
    if found is None:
        return code
    next(p for p in pass_table.PASSES if p.name == name).run(found)
    return found.written()


def without(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Leave one pass out."""
    kept = tuple(p for p in pass_table.PASSES if p.name != name)
    assert len(kept) == len(pass_table.PASSES) - 1
    monkeypatch.setattr(pass_table, "PASSES", kept)


def without_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the device's compiler run without options: for the canary of a fault that they take away, too."""
    monkeypatch.setattr(form_ladder, "options_for", lambda **_: "")


def instructions(code: bytes) -> list[tuple[int, ...]]:
    """All instructions as words, by no code of ours."""
    words = memoryview(code).cast("I")
    found, at = [], 5
    while at < len(words):
        assert words[at] >> 16, "an instruction without a length"
        found.append(tuple(words[at : at + (words[at] >> 16)]))
        at += words[at] >> 16
    assert at == len(words)
    return found


def opcodes(code: bytes) -> list[int]:
    return [words[0] & 0xFFFF for words in instructions(code)]


def validate(code: bytes, tmp_path: Path) -> None:
    """Hold a module to the validator."""
    if shutil.which("spirv-val") is None:
        pytest.skip("needs spirv-val: apt-get install spirv-tools")
    path = tmp_path / "module.spv"
    path.write_bytes(code)
    done = subprocess.run(
        ["spirv-val", "--target-env", "spv1.4", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
