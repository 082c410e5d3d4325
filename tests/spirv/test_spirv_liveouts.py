"""Values that leave a loop with several exits: each thread keeps those of its own last iteration."""

from __future__ import annotations

import numpy as np
import pytest
from spirv_modules import applied, instructions, module_of, without

import metalnb as mnb
from metalnb.engine.clang.entry_point import opencl
from metalnb.engine.cpu.spirv_forms import FORMS, spirv

SIDE, LIMIT = 128, 50
HEAD = """#include <metal_stdlib>
using namespace metal;
static int escape(float2 c, int limit) {
    float a = 0, b = 0;
    for (int n = 0; n < limit; ++n) {
        if (a * a + b * b > 4) return n * 5;
        float t = a * a - b * b + c.x; b = 2 * a * b + c.y; a = t;
    }
    return 7;
}
kernel void points(device int* out, device const int* fives, constant float2& start, constant float2& step,
                   constant uint& side, constant int& limit, uint id [[thread_position_in_grid]]) {
    float2 c = start + step * float2(id % side, id / side);
    float a = 0, b = 0;
    int n = 0;
"""
STEP = "float t = a * a - b * b + c.x; b = 2 * a * b + c.y; a = t;"
BODIES = {
    "two conditions": "while (n < limit && a*a + b*b <= 4) { STEP ++n; } if (n == limit) PUT = 7; else PUT = n*5;",
    "return": "for (; n < limit; ++n) { if (a*a + b*b > 4) { PUT = n*5; return; } STEP } PUT = 7;",
    "break": "int r = 7; for (; n < limit; ++n) { if (a*a + b*b > 4) { r = n*5; break; } STEP } PUT = r;",
    "store": "PUT = 7; for (; n < limit; ++n) { if (a*a + b*b > 4) { PUT = n*5; break; } STEP }",
    "flag": "bool e = false; for (; n < limit; ++n) { if (a*a + b*b > 4) { e = true; break; } STEP } "
    "PUT = e ? n*5 : 7;",
    "three exits": """int r = 7;
        for (; n < limit; ++n) { if (a*a + b*b > 4) { r = n*5; break; } if (a > 1e9f) { r = -1; break; } STEP }
        PUT = r;""",
    "nested": """int r = 7;
        for (int q = 0; q < 2; ++q) {
            a = b = 0; r = 7;
            for (n = 0; n < limit; ++n) { if (a*a + b*b > 4) { r = n*5; break; } STEP }
        }
        PUT = r;""",
    "function": "PUT = escape(c, limit);",
    "ushort": "ushort k = 0; while (k < ushort(limit) && a*a + b*b <= 4) { STEP ++k; } PUT = k == limit ? 7 : k*5;",
    "long": "long k = 0; "
    "while (k < limit && a*a + b*b <= 4) { STEP ++k; } if (k == limit) PUT = 7; else PUT = int(k*5);",
    "float": "float k = 0; "
    "while (k < limit && a*a + b*b <= 4) { STEP ++k; } if (k == limit) PUT = 7; else PUT = int(k*5);",
    "half": "half k = 0; "
    "while (k < limit && a*a + b*b <= 4) { STEP ++k; } if (k == limit) PUT = 7; else PUT = int(k)*5;",
    "vector": """int2 k = 0;
        while (k.x < limit && a*a + b*b <= 4) { STEP k += int2(1, 2); }
        if (k.x == limit) PUT = 7; else PUT = k.x + 2*k.y;""",
    "bool": """bool odd = false;
        while (n < limit && a*a + b*b <= 4) { STEP ++n; odd = !odd; }
        if (n == limit) PUT = 7; else PUT = odd ? (n/2*2 + 1)*5 : n/2*2*5;""",
    "pointer": """device const int* p = fives;
        while (p < fives + limit && a*a + b*b <= 4) { STEP ++p; }
        if (p == fives + limit) PUT = 7; else PUT = *p;""",
}  # fmt: skip


def source(body: str) -> str:
    return HEAD + body.replace("STEP", STEP).replace("PUT", "out[id]") + "\n}\n"


def expected() -> np.ndarray:
    """The same in NumPy, in float32 as the kernel has it."""
    x = (np.float32(-2) + np.float32(3 / SIDE) * np.arange(SIDE, dtype=np.float32))[None, :]
    y = (np.float32(-1.5) + np.float32(3 / SIDE) * np.arange(SIDE, dtype=np.float32))[:, None]
    a, b = np.zeros((SIDE, SIDE), np.float32), np.zeros((SIDE, SIDE), np.float32)
    n = np.zeros((SIDE, SIDE), int)
    for _ in range(LIMIT):
        inside = a * a + b * b <= 4
        a, b = np.where(inside, a * a - b * b + x, a), np.where(inside, 2 * a * b + y, b)
        n += inside
    return np.where(n == LIMIT, 7, n * 5)


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_each_thread_keeps_its_own(body: str, math: str) -> None:
    kernel = mnb.compile(source(body), math=math, engine="cpu").points
    out = np.zeros((SIDE, SIDE), np.int32)
    fives = 5 * np.arange(LIMIT + 1, dtype=np.int32)
    kernel(out, fives, (-2, -1.5), (3 / SIDE, 3 / SIDE), SIDE, LIMIT, grid=SIDE * SIDE)
    # Contracted arithmetic moves a point at the set's edge by an iteration; what this guards moves four in ten.
    assert (out == expected()).mean() > 0.995


def test_a_loop_with_one_exit_is_left_alone() -> None:
    unit = mnb.compile("""
kernel void sum(device const float* x, device float* out, constant uint& n, uint i [[thread_position_in_grid]]) {
    float total = 0;
    for (uint k = 0; k < n; ++k) total += x[k];
    out[i] = total;
}""", engine="cpu").sum.unit  # fmt: skip
    code = module_of(unit)
    assert applied("divergent_liveouts", code) == code


def test_a_loop_that_turns_once_is_left_alone() -> None:
    """Its condition is one of two constants. Around it, a product of a matrix and a vector took three times as long."""
    unit = mnb.compile("""
template <ushort W> float each(device const float* x, bool inside, uint lane, float s) {
    float y[W];
    #pragma unroll
    for (ushort w = 0; w < W; ++w) y[w] = inside ? x[lane + w] : 0.0f;
    #pragma unroll
    for (ushort w = 0; w < W; ++w) s += y[w] * x[w];
    return s;
}
kernel void dot(device const float* x, device float* out, constant uint& n, uint i [[thread_position_in_grid]],
                uint lane [[thread_index_in_simdgroup]]) {
    float total = 0;
    uint k = 0;
    for (; k + 32 <= n; k += 32, x += 32) total = each<1>(x, true, lane, total);
    if (k < n) total = each<1>(x, lane < n - k, lane, total);
    out[i] = total;
}""", engine="cpu").dot.unit  # fmt: skip
    for form in FORMS:
        code = spirv(unit, opencl(unit), form)
        assert applied("divergent_liveouts", code) == code, form.name


def test_without_the_pass_all_threads_have_one_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary: it tells when the runtime no longer needs the pass."""
    without(monkeypatch, "divergent_liveouts")
    wrong = {}
    for name in ("return", "break", "nested", "flag"):
        out = np.zeros((SIDE, SIDE), np.int32)
        fives = 5 * np.arange(LIMIT + 1, dtype=np.int32)
        kernel = mnb.compile(source(BODIES[name]) + "// without", engine="cpu").points  # compiled anew
        kernel(out, fives, (-2, -1.5), (3 / SIDE, 3 / SIDE), SIDE, LIMIT, grid=SIDE * SIDE)
        wrong[name] = (out != expected()).mean()
    assert max(wrong.values()) > 0.05, f"the runtime no longer needs the pass divergent_liveouts: {wrong}"


def test_the_module_changes_and_stays_well_formed() -> None:
    code = module_of(mnb.compile(source(BODIES["break"]), engine="cpu").points.unit)
    after = applied("divergent_liveouts", code)
    assert len(instructions(after)) > len(instructions(code))
