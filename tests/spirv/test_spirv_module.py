"""SPIR-V modules: read and written without a change, left alone when not understood, valid after the passes."""

from __future__ import annotations

import array
import re
import subprocess
import sys
from pathlib import Path

import pytest
from spirv_modules import HEAD, applied, instructions, module, opcodes, validate

from metalnb.engine.cpu.spirv import pass_table
from metalnb.engine.cpu.spirv.module import parsed
from metalnb.engine.cpu.spirv.opcodes import Spv
from metalnb.engine.cpu.spirv.pass_table import PASSES, rewritten

SUM = HEAD + """
kernel void sum(device const float* x, device float* out, constant uint& n, uint i [[thread_position_in_grid]]) {
    float total = 0;
    for (uint k = 0; k < n; ++k)
        switch (k & 3) { case 0: total += x[k]; break; case 1: total -= x[k]; break; default:; }
    out[i] = total;
}"""


@pytest.mark.parametrize("code", [b"", b"abc", b"\0" * 40, bytes(range(64)), b"\3\2\x23\7" * 6])
def test_what_is_no_module_is_left_alone(code: bytes) -> None:
    assert rewritten(code, wide=False) == code


def test_a_damaged_module_is_left_alone() -> None:
    code = module(SUM, "sum")
    words = array.array("I", code)
    starts = [5]
    while starts[-1] < len(words):
        starts.append(starts[-1] + (words[starts[-1]] >> 16))
    for at in starts[1:-1]:
        unknown = words[:at] + array.array("I", [2 << 16 | 9999, 0]) + words[at:]
        endless = words[:at] + array.array("I", [0]) + words[at:]
        for damaged in (code[: 4 * at + 2], unknown.tobytes(), endless.tobytes()):
            assert rewritten(damaged, wide=False) == damaged
    long = [at for at in starts[:-1] if words[at] >> 16 > 2]
    for cut in (code[: 4 * (at + 2)] for at in long):  # in the middle of an instruction
        assert rewritten(cut, wide=False) == cut
        found = parsed(cut)
        assert found is None
    inside = starts[opcodes(code).index(Spv.LABEL) + 2]
    assert rewritten(code[: 4 * inside], wide=False) == code[: 4 * inside]


def test_read_and_written_it_is_the_same() -> None:
    code = module(SUM, "sum")
    found = parsed(code)
    assert found is not None
    assert found.written() == code


def test_each_word_of_an_instruction_is_accounted_for() -> None:
    """The table's layouts: letters, and a star at most at the end."""
    assert all(re.fullmatch(r"t?r?[il]*\*?s?", op.layout) for op in Spv)
    assert len({op.value for op in Spv}) == len(Spv.__members__)


def test_what_no_entry_point_reaches_is_dropped(tmp_path: Path) -> None:
    code = module(SUM, "sum")
    after = applied("without_stubs", code)
    assert opcodes(code).count(Spv.FUNCTION) > opcodes(after).count(Spv.FUNCTION) == 1
    made = {words[2] for words in instructions(after) if words[0] & 0xFFFF == Spv.FUNCTION}
    named = [words for words in instructions(after) if words[0] & 0xFFFF == Spv.ENTRY_POINT]
    assert made == {named[0][2]}
    validate(after, tmp_path)


def widths_apart(code: bytes) -> bytes:
    """A module in which a sum of 32 bits has an operand of 64, as clang's backend leaves it."""
    found = parsed(code)
    assert found is not None
    for function in found.functions:
        for i in function:
            wide = i.words[3] if i.op == Spv.U_CONVERT else 0
            if wide and found.key(i.type)[1] == 32 and found.key(found.type_of(wide))[1] == 64:
                for user in function:
                    if user.op == Spv.I_ADD and i.result in user.words[3:]:
                        user.words[user.words.index(i.result, 3)] = wide
                        return found.written()
    raise AssertionError


WIDTHS = HEAD + """
kernel void k(device const ulong* x, device uint* out, uint i [[thread_position_in_grid]]) {
    ulong v = x[i];
    out[i] = uint(v) + out[i];
}"""


def test_operands_of_two_widths_are_mended(tmp_path: Path) -> None:
    broken = widths_apart(module(WIDTHS, "k"))
    with pytest.raises(AssertionError, match=r"error"):
        validate(broken, tmp_path)
    validate(applied("equal_widths", broken), tmp_path)


def test_each_pass_says_why() -> None:
    assert all(row.run.__name__ == row.name and len(row.why) > 20 for row in PASSES)
    assert pass_table.PASSES is PASSES


OPS = (
    "abs", "ceil", "cos", "exp", "floor", "log", "negative", "round", "sign", "sin", "sqrt", "tanh", "trunc", "sum",
    "prod", "max", "min", "mean", "var", "argmax", "argmin", "cumulative_sum", "sort", "argsort", "softmax",
)  # fmt: skip
PAIRS = ("add", "atan2", "divide", "maximum", "multiply", "pow", "remainder", "subtract", "matmul")
CHILD = """
import sys
from pathlib import Path
import numpy as np
import metalnb as mnb
from metalnb.engine.cpu import form_ladder
done, kept = form_ladder.rewritten, Path(sys.argv[1])
def rewritten(code, **options):
    after = done(code, **options)
    number = len(list(kept.glob("*.before")))
    (kept / f"{number}.before").write_bytes(code)
    (kept / f"{number}.after").write_bytes(after)
    return after
form_ladder.rewritten = rewritten
x = np.random.default_rng(1).random((64, 64), np.float32)
for name in sys.argv[2].split():
    np.asarray(getattr(mnb, name)(x[0]))
for name in sys.argv[3].split():
    np.asarray(getattr(mnb, name)(x, x))
"""


@pytest.mark.slow
def test_the_library_is_valid_after_the_passes(tmp_path: Path) -> None:
    """In a process that has compiled nothing yet."""
    command = [sys.executable, "-c", CHILD, str(tmp_path), " ".join(OPS), " ".join(PAIRS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before = sorted(tmp_path.glob("*.before"))
    assert len(before) > 24
    for path in before:
        found = parsed(path.read_bytes())
        assert found is not None, "an instruction that the table does not list"
        assert found.written() == path.read_bytes()
    for path in sorted(tmp_path.glob("*.after")):
        validate(path.read_bytes(), tmp_path)
