"""A thread's array is not read ahead of the guard of its index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, applied, module, opcodes, validate

import metalnb as mnb
from metalnb.engine.cpu.spirv.hiding.selected_indices import guarded_as_written
from metalnb.engine.cpu.spirv.liveouts import lanes_leave
from metalnb.engine.cpu.spirv.opcodes import Spv
from metalnb.engine.cpu.spirv.pass_table import rewritten

TEXT = HEAD + """
kernel void k(device uint* out, device const uint* x, constant uint& n, uint i [[thread_position_in_grid]],
              uint l [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
    threadgroup uint tile[256];
    uint w[8], v = 1;
    for (uint j = 0; j < 8; ++j) w[j] = 1 + j;
    w[l & 7] = 9;
    BODY
    out[i] = v;
}
"""
BARRIER = "tile[l] = 1; threadgroup_barrier(mem_flags::mem_threadgroup); "
FORMS = {
    "both at once": "if ((n < 8) & (x[i] > 3)) v = w[n] / w[l & 3];",
    "behind a barrier": (
        f"{BARRIER} uint one = tile[1 % size]; if (n > 3) {{ if (w[one & 3] != 0) v = i / w[one & 3]; }}"
        "else if (x[i] > 3) v *= w[n & 7] + w[i & 7]; v += one;"
    ),
    "a counter": "for (uint k = 0; k < 1000000; ++k) if ((k < 8) & (x[i] > k)) v += w[k] / w[l & 3];",
    "a counter that doubles": "for (uint k = 1; k != 0; k <<= 1) if ((k < 8) & (x[i] > k)) v += w[k] / w[l & 3];",
}
GROUPS = (1, 8, 31, 32, 33, 64, 256)


def wanted(form: str, i: int, x: int, n: int, lane: int) -> int:
    w = [9 if j == lane % 8 else 1 + j for j in range(8)]
    if form == "both at once":
        return w[n] // w[lane & 3] if n < 8 and x > 3 else 1
    if form == "behind a barrier":
        return 1 + (i // w[1] if n > 3 else w[n & 7] + w[i & 7] if x > 3 else 1)
    steps = range(8) if form == "a counter" else (1, 2, 4)
    return 1 + sum(w[k] // w[lane & 3] for k in steps if x > k)


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("form", FORMS)
def test_the_guard_holds(form: str, math: mnb.program.Math) -> None:
    kernel = mnb.compile(TEXT.replace("BODY", FORMS[form]), engine="cpu", math=math).k
    x = np.arange(300, dtype=np.uint32) * 7 % 13
    for group in GROUPS if "counter" not in form else (33, 64):
        for n in (3, 2**32 - 1):
            out = np.zeros(300, np.uint32)
            kernel(out, x, n, grid=300, threadgroup=group)
            assert out.tolist() == [wanted(form, i, int(x[i]), n, i % group) for i in range(300)], (group, n)


CHILD = """
import sys
import numpy as np
from metalnb.engine.cpu.spirv import pass_table
import metalnb as mnb
pass_table.PASSES = tuple(p for p in pass_table.PASSES if p.name not in {"guarded_indices", "opaque_known_indices"})
kernel = mnb.compile(sys.stdin.read(), engine="cpu").k
for group in (31, 64, 256):
    kernel(np.zeros(300, np.uint32), np.arange(300, dtype=np.uint32), 2**32 - 1, grid=300, threadgroup=group)
"""


@pytest.mark.parametrize("form", FORMS)
def test_without_the_pass_the_process_ends(form: str) -> None:
    """A canary, in a process of its own."""
    text = TEXT.replace("BODY", FORMS[form])
    done = subprocess.run([sys.executable, "-c", CHILD], input=text, text=True, capture_output=True, check=False)
    assert done.returncode < 0, f"the runtime no longer needs the pass guarded_indices: {done.stderr}"


@pytest.mark.parametrize("form", FORMS)
def test_the_module_is_valid(form: str, tmp_path: Path) -> None:
    validate(rewritten(module(TEXT.replace("BODY", FORMS[form]), "k"), wide=False), tmp_path)


SHORT = (
    "for (uint j = 0; j < 8; ++j) v += w[j] * x[j];",
    "for (uint j = 8; j > 0; --j) v += w[j - 1] * x[j];",
    "for (uint j = 0; j < 2; ++j) for (uint q = 0; q < 4; ++q) v += w[j * 4 + q] * x[j];",
)


@pytest.mark.parametrize("loop", SHORT)
def test_counters_of_short_loops_are_left_alone(loop: str) -> None:
    """They are constants when the loop is unrolled."""
    code = module(TEXT.replace("w[l & 7] = 9;", "").replace("BODY", f"if (n > 3) {{ {loop} }}"), "k")
    assert applied("guarded_indices", code) == code


@pytest.mark.parametrize("loop", SHORT)
def test_they_are_not_where_lanes_leave_loops_apart(loop: str, tmp_path: Path) -> None:
    """Such loops are compiled as they are written; a canary is seed 11370188 of the fuzzer."""
    left = "while (v < 90) { v += 1 + simd_sum(l & 1); if (x[v & 7] > l) break; }"
    text = TEXT.replace("w[l & 7] = 9;", "").replace("BODY", f"{left} if (n > 3) {{ {loop} }}")
    code = rewritten(module(text, "k"), wide=False)
    assert lanes_leave(code)
    hidden = guarded_as_written(code)
    assert opcodes(hidden).count(Spv.BITWISE_XOR) > opcodes(code).count(Spv.BITWISE_XOR)
    validate(hidden, tmp_path)
