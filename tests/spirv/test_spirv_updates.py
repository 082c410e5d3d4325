"""What a loop changes for some threads only, of a value that begins as the same for all: each thread has its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from spirv_modules import HEAD, applied, module, without, without_options

import metalnb as mnb
from metalnb.engine.cpu.spirv.divergence import Divergence
from metalnb.engine.cpu.spirv.hiding import opaque

# Statements that leave `v`, and what it is then in a thread.
Case = tuple[str, Callable[[int, int], int]]
CASES: dict[str, Case] = {
    "if": (
        "float v = 100; for (uint k = 0; k < n; k += 2) if (t % 2) v -= 1;",
        lambda t, n: 100 - t % 2 * len(range(0, n, 2)),
    ),
    "up to and with": (
        "float v = 100; for (uint k = 1; k <= n; k++) if (t > 7) v -= 1;",
        lambda t, n: 100 - (t > 7) * n,
    ),
    "else": (
        "float v = 100; for (uint k = 1; k <= n; k++) v = t % 2 ? v - 1 : v + 2;",
        lambda t, n: 100 + (-1 if t % 2 else 2) * n,
    ),
    "constant": (
        "float v = 100; for (uint k = 1; k <= n; k++) if (t % 2) v = 5;",
        lambda t, n: 5 if t % 2 and n else 100,
    ),
    "integer": (
        "uint v = 2; for (uint k = 1; k <= n; k++) if (t % 2) v = v * v + 1 & 1023;",
        lambda t, n: _squared(t % 2 * n),
    ),
    "behind it": (
        "float v = 1; for (uint k = 1; k <= n; k++) { if (t % 2) v += 1; v *= 2; }",
        lambda t, n: 2**n + t % 2 * (2 ** (n + 1) - 2),
    ),
    "two conditions": (
        "float v = 200; for (uint k = 1; k <= n; k++) if (t % 2 && k > 2) v -= 1;",
        lambda t, n: 200 - t % 2 * max(n - 2, 0),
    ),
    "another's value": (
        "uint v = 200, w = 3; for (uint k = 1; k <= n; k++) if (t % 2) v = w; else w = w * w & 255;",
        lambda t, n: 3 if t % 2 and n else 200,
    ),
    "inner loop": (
        "float v = 100; for (ushort k = ushort(n % 5); k > 0; k--) for (uchar q = 0; q < uchar(t % 2); q += 2) v -= 1;",
        lambda t, n: 100 - t % 2 * (n % 5),
    ),
    "switch": (
        """uint v = 5; for (uint k = 1; k <= n; k++)
            switch (t % 3) { case 0: v += 3; break; case 1: v = v * 3 & 255; break; default: v ^= k; }""",
        lambda t, n: _switched(t % 3, n),
    ),
}  # fmt: skip

# What begins as 1 in all threads, though it is computed from what each has of its own, or is let out of another loop.
ONES = {
    "written over": "short v = short(t); for (short k = 0; k <= 9; k++) v = 1;",
    "on a way that no thread takes": "int v = 1, z = 0; for (int k = 0; k <= 5; k++) z |= k; if (z == 100) v = int(t);",
    "left by one of two ways": "short v = 2; for (short k = 0; k <= 9; k++) { v = 1; if (n < 1) break; }",
    "loop after loop": "int v = 2; for (int q = 0; q < 2; q++) { v = q ? v : int(t); if (q == 0) v = 1; }",
}
CHANGED = """
    using T = decltype(v);
    for (ushort k = 0; k < ushort(n); k++) v = t == 1 ? T(-v) : T(1 + max(v, T(1)));"""
for _name, _body in ONES.items():
    CASES[_name] = (_body + CHANGED, lambda t, n: (-1) ** n if t == 1 else 1 + n)


def _squared(turns: int) -> int:
    v = 2
    for _ in range(turns):
        v = v * v + 1 & 1023
    return v


def _switched(way: int, n: int) -> int:
    v = 5
    for k in range(1, n + 1):
        v = (v + 3, v * 3 & 255, v ^ k)[way]
    return v


def _source(body: str, mark: str = "") -> str:
    return f"""{HEAD}// {mark}
kernel void k(device float* out, constant uint& n, uint i [[thread_position_in_grid]],
              uint t [[thread_position_in_threadgroup]]) {{
    {body}
    out[i] = v;
}}"""


def _wrong(case: Case, *, mark: str = "", math: str = "fast") -> list[tuple[int, int]]:
    """The turns and threadgroups with which a thread has another's value."""
    body, expected = case
    kernel = mnb.compile(_source(body, mark), math=math, engine="cpu").k
    wrong = []
    for n in (0, 1, 4, 5):
        for threadgroup in (1, 31, 32, 64):
            out = np.zeros(96, np.float32)
            kernel(out, n, grid=96, threadgroup=threadgroup)
            if out.tolist() != [expected(i % threadgroup, n) for i in range(96)]:
                wrong.append((n, threadgroup))
    return wrong


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_thread_has_its_own(case: Case, math: str) -> None:
    assert _wrong(case, math=math) == []


def test_without_the_pass_all_threads_have_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary for a compiler without options: with them it makes no two loops of one."""
    without(monkeypatch, "divergent_updates")
    without_options(monkeypatch)
    shown = ("if", "up to and with", "integer")
    wrong = {name: _wrong(CASES[name], mark="without") for name in shown}
    assert all(wrong.values()), f"the runtime no longer needs the pass divergent_updates: {wrong}"


JOINED = f"""{HEAD}
kernel void k(device uint* out, constant uint& n, uint i [[thread_position_in_grid]],
              uint t [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {{
    long r = 1;
    for (uint k = 0; k < t; k++) r = n & 1;
    uint w = simd_min(1u);
    if (1 <= r) {{
        for (ushort k = 0; k <= ushort(n % 4); k++) simd_broadcast_first(1u);
        w = size;
    }} else simd_xor(t == 0 ? i : out[t]);
    out[i] = w;
}}"""


def _brought(mark: str = "", math: str = "fast") -> list[tuple[int, int]]:
    """The numbers and threadgroups with which a thread has what another brought."""
    kernel, wrong = mnb.compile(JOINED + mark, math=math, engine="cpu").k, []
    for n in (0, 1, 2, 3):
        for size in (7, 32, 33, 64):
            out = np.zeros(size, np.uint32)
            kernel(out, n, grid=size, threadgroup=size)
            if out.tolist() != [size if n % 2 or t == 0 else 1 for t in range(size)]:
                wrong.append((n, size))
    return wrong


@pytest.mark.parametrize("math", ["fast", "precise"])
def test_where_ways_meet_each_thread_has_what_it_brought(math: str) -> None:
    """Beside a loop with SIMD functions that only some threads run: seeds 202683 and 100252."""
    assert _brought(math=math) == []


def test_without_sums_there_all_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary, as above."""
    monkeypatch.setattr(Divergence, "joined", lambda *_: [])
    assert _brought("// without"), "the runtime no longer needs sums where ways meet"


MET = f"""{HEAD}
inline uint bits(float x) {{ return x != x ? 0x7fc00000u : x == 0.0f ? 0u : as_type<uint>(x); }}
inline uint bits(float4 x) {{ return bits(x.x) * 7u + bits(x.y) * 5u + bits(x.z) * 5u + bits(x.w); }}
kernel void k(device uint* out, device const float* f, uint i [[thread_position_in_grid]],
              uint t [[thread_position_in_threadgroup]]) {{
    float4 w = float4(1, f[1], f[t & 63], 1);
    uint most = simd_max(7u);
    if (t >= 1) {{
        out[i * 2] = bits(w);
        out[i * 2 + 1] = most;
        return;
    }}
    uint least = simd_min(t + 3u);
    out[i * 2] = bits(w) * 31u;
    out[i * 2 + 1] = least;
}}"""


def _met(mark: str = "", math: str = "fast") -> list[list[int]]:
    """What the first threads of a SIMD-group store where clang has made one store of two: 3 first, then 7s."""
    out = np.zeros((64, 2), np.uint32)
    mnb.compile(MET + mark, math=math, engine="cpu").k(out, np.ones(64, np.float32), grid=64, threadgroup=32)
    return out[:, 1].reshape(2, 32).tolist()


@pytest.mark.parametrize("math", ["fast", "precise"])
def test_what_each_way_brings_has_a_zero_of_its_own(math: str) -> None:
    """An early return before SIMD functions: seeds 700897 and 102408."""
    assert _met(math=math) == [[3] + [7] * 31] * 2


def test_with_one_zero_its_sum_moves_behind_the_place_where_ways_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary, as above."""
    monkeypatch.setattr(opaque, "_ZEROS", 1)
    assert _met("// one zero") != [[3] + [7] * 31] * 2, "the runtime no longer needs a zero for each way"


# What comes straight out of a loop in each arm; no lanes meet. In one whose turns differ threads have another value.
OUT_OF_LOOPS = HEAD + """
kernel void k(device uint* out, device const int* s, uint i [[thread_position_in_grid]],
              uint lid [[thread_position_in_threadgroup]]) {
    uchar v = 1;
    char c = 1;
    ushort q = 1;
    if (s[i] == 31) {
        char w[8];
        for (uint j = 0; j < 8; ++j) w[j] = char(j);
    } else {
        v = 2;
        for (uint k = 0; k < 3; k += 3)
            for (uint j = 0; j < 1; ++j) q = max(ushort(mulhi(q, q)), ushort(s[1]));
        for (long k = 0; k < long(lid % 2); k += 3) {
            uint z = 0;
            while (q != 1 && z++ < 3) c &= char(absdiff(c, char(0)));
            q *= ushort(ushort(1) > ushort(c));
        }
    }
    out[i] = v;
}
"""


def _wrong_out_of_loops(source: str, math: str) -> int:
    """The wrong threads, in threadgroups of several sizes."""
    kernel, s, wrong = mnb.compile(source, engine="cpu", math=math).k, np.arange(300, dtype=np.int32) % 40, 0
    for size in (1, 31, 32, 33, 96, 256):
        out = np.zeros(300, np.uint32)
        kernel(out, s, grid=300, threadgroup=size)
        wrong += int((out != np.where(s == 31, 1, 2)).sum())
    return wrong


@pytest.mark.parametrize("math", ["fast", "precise"])
def test_what_loops_bring_to_where_their_ways_meet(math: str) -> None:
    assert _wrong_out_of_loops(OUT_OF_LOOPS, math) == 0


def test_without_sums_there_loops_bring_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A canary: it tells when the runtime no longer needs sums where no lanes meet."""
    monkeypatch.setattr(Divergence, "joined", lambda *_: [])
    assert _wrong_out_of_loops(OUT_OF_LOOPS + "// without", "precise") > 0


@pytest.mark.parametrize("name", ["written over", "on a way that no thread takes", "left by one of two ways"])
def test_what_was_known_to_differ_may_be_found_not_to(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Where what a loop starts from counts as differing by its data, the runtime knows better."""
    monkeypatch.setattr(Divergence, "_changed", lambda _: set())
    without_options(monkeypatch)
    assert _wrong(CASES[name], mark="trusting"), "the runtime no longer needs more sums than those"


ALONE = {
    "data": "float v = 0; for (uint k = 0; k < n; k++) v += out[i + k];",
    "data, for some": "float v = 0; for (uint k = 0; k < n; k++) if (t % 2) v += out[i + k];",
    "the same for all": "float v = 0; for (uint k = 0; k < n; k++) if (n > 7) v += k;",
    "a loop for some": "float v = 0; if (t < 7) for (uint k = 0; k < n; k++) v += out[i] * k;",
    "other turns": "float v = 0; for (uint k = 0; k < t; k++) v += out[i] * k;",
    "a loop in a loop": "float v = 0; for (uint k = 0; k < n; k++) for (uint q = 0; q < k; q++) v += out[i + k * q];",
    "maximum": "float v = 0; for (uint k = 0; k < n; k++) if (out[i + k] > v) v = out[i + k];",
    "counters": "float v = 0; for (uint k = t, q = i; k < n; k += 2, q--) v += out[i + k * q];",
    "no loop": "float v = 0; if (t % 2) v = n;",
}


@pytest.mark.parametrize("body", ALONE.values(), ids=ALONE.keys())
def test_what_the_runtime_sees_is_left_alone(body: str) -> None:
    """Counters and addresses above all: a loop would gather what it loads."""
    code = applied("without_stubs", module(_source(body), "k"))
    assert applied("divergent_updates", code) == code


# A function that is called, and what is passed to it.
PASSED = {
    "an address that walks from the thread's place": (
        """float f(device float* x, uint t, uint n) {
            for (uint k = 0; k < n; ++k, x += n) if (t < n % 7) *x = k;
            return n;
        }""",
        "f(out + t, t, n)",
    ),
    "a place in rows, where threads never part": (
        """long f(uint2 p, uint n) {
            long at = n;
            uint rest = p.y;
            for (uint d = 1; d < n; ++d) { at += rest % n * long(d); rest /= n; }
            return at;
        }""",
        "f(uint2(i, t), n)",
    ),
}


@pytest.mark.parametrize("called", PASSED.values(), ids=PASSED.keys())
def test_what_a_function_is_passed_is_known_there(called: tuple[str, str]) -> None:
    """A sum of columns took twice as long, an array with strides three times, with sums that nobody needs."""
    function, call = called
    source = _source(f"float v = {call};").replace("kernel void", f"__attribute__((noinline)) {function}\nkernel void")
    code = applied("without_stubs", module(source, "k"))
    assert applied("divergent_updates", code) == code
