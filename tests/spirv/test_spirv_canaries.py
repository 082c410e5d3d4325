"""Each pass over SPIR-V has a canary: its kernel without it, and what is then still wrong.

A canary fails when clang or the runtime no longer needs the pass, which can then go. Those of passes with a file of
tests of their own stand there. Two passes are for speed alone: ``benchmarks/passes.py`` tells what they bring.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, applied, module, opcodes, validate, without, without_options

import metalnb as mnb
from metalnb.engine.clang.entry_point import opencl
from metalnb.engine.cpu.spirv.module import parsed
from metalnb.engine.cpu.spirv.opcodes import Spv
from metalnb.engine.cpu.spirv.pass_table import PASSES
from metalnb.engine.cpu.spirv_forms import FORMS, PLAIN, Form, spirv

FOR_SPEED = {"plain_extrema", "signed_indices"}

TREE = HEAD + """
kernel void tree(const device float* x, device float* sums, uint i [[thread_position_in_grid]],
                 uint t [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]],
                 uint group [[threadgroup_position_in_grid]]) {
    threadgroup float tile[256];
    tile[t] = x[i];
    for (uint step = 128; step > 0; step /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (t < step && t + step < size) tile[t] += tile[t + step];
    }
    if (t == 0) sums[group] = tile[0];
}"""
STEPS = HEAD + """
kernel void steps(const device ushort* x, device ushort* out, uint i [[thread_position_in_grid]]) {
    ushort v = x[i];
    for (uint k = 0; k < 3; ++k) {
        if (v >= 65535) v = 1;
        else v += ushort(absdiff(ushort(1), v));
    }
    out[i] = v;
}"""


def test_every_pass_has_a_canary() -> None:
    """A test runs a kernel without it, and names it in what it says when it fails."""
    text = "".join(path.read_text("utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    named = set(re.findall(r"no longer needs? the pass (\w+)", text)) | FOR_SPEED
    assert [row.name for row in PASSES if row.name not in named] == []


def sums_of(text: str) -> list[float]:
    x, sums = np.ones(512, np.float32), np.zeros(2, np.float32)
    mnb.compile(text, engine="cpu").tree(x, sums, grid=512, threadgroup=256)
    return sums.tolist()


def test_a_counter_that_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sums_of(TREE) == [256, 256]
    without(monkeypatch, "counters_in_memory")
    assert sums_of(TREE + "// without") != [256, 256], "the runtime no longer needs the pass counters_in_memory"


def test_operands_of_two_widths(tmp_path: Path) -> None:
    """In the form that leaves expressions as the author wrote them."""
    unit = mnb.compile(STEPS, engine="cpu").steps.unit
    code = spirv(unit, opencl(unit), PLAIN)
    mended = applied("equal_widths", code)
    assert mended != code, "clang no longer needs the pass equal_widths"
    with pytest.raises(AssertionError, match=r"error"):
        validate(code, tmp_path)
    validate(mended, tmp_path)


def test_a_kernel_is_written_twice(tmp_path: Path) -> None:
    code = module(TREE, "tree")
    assert opcodes(code).count(Spv.FUNCTION) == 2, "clang no longer needs the pass without_stubs"
    validate(applied("without_stubs", code), tmp_path)


ARMS = HEAD + """
__attribute__((noinline)) uint total(uint x) { return simd_sum(x); }
kernel void arms(device uint* out, device const uint* a, uint i [[thread_position_in_grid]]) {
    uint x = a[i], y = 0;
    if (x & 1) y = total(x);
    else y = total(x + 1);
    out[i] = y;
}"""


def test_a_function_called_in_two_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.arange(32, dtype=np.uint32)

    def sums(text: str) -> list[int]:
        out = np.zeros(32, np.uint32)
        mnb.compile(text, engine="cpu").arms(out, a, grid=32, threadgroup=32)
        return out.tolist()

    assert sums(ARMS) == [256] * 32  # of the odd ones; of the even ones with one more each
    a *= 2
    a[::2] += 1
    right = [sum(range(1, 64, 4)) if n % 2 == 0 else sum(range(3, 64, 4)) for n in range(32)]
    assert sums(ARMS) == right
    without(monkeypatch, "meeting_inline")
    without_options(monkeypatch)
    assert sums(ARMS + "// without") != right, "the runtime no longer needs the pass meeting_inline"


GUARDED = HEAD + """
kernel void k(device uint* y, device const uint* a, constant uint& n, uint i [[thread_position_in_grid]],
              uint lid [[thread_position_in_threadgroup]]) {
    uint s = 7;
    TEXT
    y[i] = s;
}"""
GUARDS = {
    "loop": "for (uint k = 0; k < n; k++) if (lid != 0) s += i / lid;",
    "condition of the loop's": "for (uint k = 0; k < n; k++) if (a[k] > 3) s ^= i % lid;",
    "two": "if (a[0]) s += i / lid; if (a[1]) s += i / lid;",
}


def first_divisions(text: str, form: Form) -> list[bool]:
    """Whether each kernel's first block divides, where no guard has been passed."""
    unit = mnb.compile(GUARDED.replace("TEXT", text), engine="cpu").k.unit
    made = parsed(spirv(unit, opencl(unit), form))
    assert made is not None
    divides = {Spv.U_DIV, Spv.U_MOD}
    return [any(i.op in divides for i in f.blocks[0].instructions) for f in made.functions if f.blocks]


@pytest.mark.parametrize("form", [*FORMS], ids=lambda form: form.name)
@pytest.mark.parametrize("guard", GUARDS)
def test_a_division_stays_behind_its_guard(guard: str, form: Form) -> None:
    assert not any(first_divisions(GUARDS[guard], form))


def test_the_backend_would_take_it_out() -> None:
    """A canary, of the switches that leave out what clang's backend optimises."""
    kept = [f for f in PLAIN.flags if not f.startswith(("-disable-machine", "-mllvm"))]
    words = [w for f in kept for w in ((f,) if f == "-O2" else ("-mllvm", f))]
    found = [any(first_divisions(text, Form("believed", tuple(words)))) for text in GUARDS.values()]
    assert all(found), "clang's backend leaves divisions where they are: the switches can go"
