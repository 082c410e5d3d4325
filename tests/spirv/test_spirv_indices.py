"""Unsigned indices, and min and max, on a CPU: the rewriting changes the speed of a kernel and never its answer."""

from __future__ import annotations

import array

import numpy as np
import pytest
from spirv_modules import applied, instructions, module_of, opcodes

import metalnb as mnb
from metalnb.engine.cpu import cpu_engine

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
CELL = HEAD + """
kernel void stencil(device const float* a, device float* out, constant uint& w, constant uint& h,
                    uint2 p [[thread_position_in_grid]]) {
    if (p.x == 0 || p.y == 0 || p.x + 1 >= w || p.y + 1 >= h) return;
    uint i = p.y * w + p.x;
    out[i] = a[i - 1] + a[i + 1] + a[i - w] + a[i + w] - 4 * a[i];
}
kernel void convolve(device const float* a, device const float* f, device float* out, constant uint& n,
                     constant uint& r, uint i [[thread_position_in_grid]]) {
    float sum = 0;
    uint start = i - r;                      // wraps below zero, and back
    for (uint k = 0; k < 2 * r + 1; ++k) {
        uint j = start + k;
        if (j < n) sum += a[j] * f[k];
    }
    out[i] = sum;
}
kernel void offsets(device const float* a, device const int* by, device float* out,
                    uint i [[thread_position_in_grid]]) {
    out[i] = a[i + by[i]];
}
kernel void hashed(device const float* a, device float* out, constant uint& n, uint i [[thread_position_in_grid]]) {
    out[i] = a[(i * 2654435761u) % n] + a[((i + 7) * 2654435761u) >> 22] + a[(i * 0x9E3779B9u) & 1023u];
}
kernel void sieve(device const uint* start, device uint* out, constant uint& n, uint i [[thread_position_in_grid]]) {
    uint square = start[i] * start[i];       // passes 2^31, and is compared
    out[i] = square;
    if (square >= 8 && square < n) out[square] = 1;
}
"""


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(CELL, engine="cpu")


@pytest.fixture(params=["usual", "wide"])
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "wide":
        monkeypatch.setattr(cpu_engine, "_is_wide", lambda *_: True)
    return str(request.param)


@pytest.mark.usefixtures("variant")
class TestAnswers:
    def test_neighbours_in_two_dimensions(self, program: mnb.Program, rng: np.random.Generator) -> None:
        a = rng.random((37, 53), np.float32)
        out = np.zeros_like(a)
        program.stencil(a, out, w=53, h=37)
        wide = a.astype(np.float64)
        want = np.zeros_like(wide)
        want[1:-1, 1:-1] = wide[1:-1, :-2] + wide[1:-1, 2:] + wide[:-2, 1:-1] + wide[2:, 1:-1] - 4 * wide[1:-1, 1:-1]
        np.testing.assert_allclose(out, want, atol=2e-6)

    def test_an_index_that_wraps_and_comes_back(self, program: mnb.Program, rng: np.random.Generator) -> None:
        a, f = rng.random(1000, np.float32), rng.random(7, np.float32)
        out = program.convolve(a, f, n=1000, r=3)
        want = np.convolve(a.astype(np.float64), f[::-1].astype(np.float64), mode="same")
        np.testing.assert_allclose(out, want, rtol=1e-5)

    def test_signed_offsets(self, program: mnb.Program, rng: np.random.Generator) -> None:
        a = rng.random(500, np.float32)
        to = rng.permutation(500).astype(np.int32)
        out = program.offsets(a, to - np.arange(500, dtype=np.int32))
        np.testing.assert_array_equal(out, a[to])

    def test_hashes_keep_their_unsigned_arithmetic(self, program: mnb.Program, rng: np.random.Generator) -> None:
        a = rng.random(1024, np.float32)
        out = program.hashed(a, n=1000, grid=5000)
        i = np.arange(5000, dtype=np.uint32)
        k = np.uint32(2654435761)
        with np.errstate(over="ignore"):
            want = a[(i * k) % 1000] + a[((i + np.uint32(7)) * k) >> 22] + a[(i * np.uint32(0x9E3779B9)) & 1023]
        np.testing.assert_allclose(out, want, rtol=1e-6)

    def test_what_is_also_compared(self, program: mnb.Program) -> None:
        start = np.array([3, 5, 46341, 65535, 65536, 65537], np.uint32)
        out = np.zeros(64, np.uint32)
        program.sieve(start, out, n=64, grid=6)
        want = np.zeros(64, np.uint32)
        want[:6] = (start.astype(np.uint64) ** 2).astype(np.uint32)
        want[[9, 25]] = 1
        np.testing.assert_array_equal(out, want)


NEIGHBOURS = """
kernel void pooled(device const float* a, device float* out, uint i [[thread_position_in_grid]]) {
    float sum = a[i];
    if (i >= 1) sum += a[i - 1];
    if (i >= 2) sum += a[i - 2];
    out[i] = sum;
}
kernel void flat(device const float* a, device float* out, constant uint& w, uint i [[thread_position_in_grid]]) {
    float sum = 0;
    if (i >= w) sum += a[i - w];
    if (i + 3 < 2 * w) sum += a[i + 3];
    out[i] = sum;
}
"""


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 257, 10_000])
def test_neighbours_behind_a_guard(n: int, rng: np.random.Generator) -> None:
    """The first thread has an index before the array, never used; a constant of -1 must not become 2^32 - 1."""
    program = mnb.compile(NEIGHBOURS, engine="cpu")
    a = rng.random(n, np.float32)
    wide = a.astype(np.float64)
    np.testing.assert_allclose(program.pooled(a), np.convolve(wide, np.ones(3))[:n], rtol=1e-6)
    w = max(n // 2, 1)
    want = np.zeros(n)
    want[w:] += wide[: n - w]
    ahead = min(2 * w, n + 3) - 3
    if ahead > 0:
        want[:ahead] += wide[3 : 3 + ahead]
    if 2 * w <= n:
        np.testing.assert_allclose(program.flat(a, w=w), want, rtol=1e-6)


def signed(code: bytes) -> bytes:
    return applied("signed_indices", code)


def test_the_module_stays_well_formed_and_only_indices_change(program: mnb.Program) -> None:
    before = module_of(program.stencil.unit)
    after = signed(before)
    assert opcodes(after).count(114) > opcodes(before).count(114), "no conversion became signed"
    assert len(opcodes(after)) >= len(opcodes(before))
    assert signed(after) == after or opcodes(signed(after)) == opcodes(after)


def _products(code: bytes) -> list[tuple[int, ...]]:
    """Return the module's multiplications, with their types."""
    return [words for words in instructions(code) if words[0] & 0xFFFF == 132]


def test_what_is_compared_too_keeps_its_wrapping_arithmetic(program: mnb.Program) -> None:
    before = module_of(program.sieve.unit)
    assert _products(before)
    assert _products(signed(before)) == _products(before)


def test_an_index_that_is_stored_too_keeps_its_type() -> None:
    """A stored value is a use like any other: were it widened, 64 bits would be stored where 32 are meant."""
    cell = HEAD + """
    kernel void place(device const uint* a, device uint* out, uint i [[thread_position_in_grid]]) {
        const uint place = a[i] + a[i + 32];
        out[place] = place;
    }"""
    out = np.full(96, 7, np.uint32)
    mnb.compile(cell, engine="cpu").place(np.arange(64, dtype=np.uint32), out, grid=32)
    assert out[32:].tolist() == [n for even in range(32, 96, 2) for n in (even, 7)]


def test_a_number_of_an_instruction_is_not_taken_for_a_value() -> None:
    """The number of an instruction of OpenCL's library, an alignment, a mode: each may be some index's id by chance."""
    cell = HEAD + """
    kernel void least(device const float* a, device float* out, uint2 p [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]]) {
        uint place = p.y * size.x + p.x;
        out[place] = min(1.5 * a[place], 1.0);
    }"""
    unit = mnb.compile(cell, engine="cpu").least.unit
    before = module_of(unit)
    rewritten = opcodes(signed(before))
    assert rewritten != opcodes(before)
    words = array.array("I", before)
    at, modes = 5, []
    while at < len(words):
        if words[at] == 4 << 16 | 16:  # OpExecutionMode: the kernel, the mode, a literal
            modes.append(at + 3)
        at += words[at] >> 16
    assert modes
    for value in range(1, words[3]):
        for mode in modes:
            words[mode] = value
        assert opcodes(signed(words.tobytes())) == rewritten, value


# min and max of integers, which clang makes of comparisons too.
TYPES = {"int": np.int32, "uint": np.uint32, "short": np.int16, "uchar": np.uint8, "long": np.int64, "ulong": np.uint64}

EXTREMA = HEAD + "".join(
    f"""kernel void of_{name}(device const {name}* a, device const {name}* b, device {name}* least, device {name}* most,
    uint i [[thread_position_in_grid]]) {{
    least[i] = min(a[i], b[i]);
    most[i] = max(a[i], b[i]);
}}
"""
    for name in TYPES
)


@pytest.fixture(scope="module")
def extrema() -> mnb.Program:
    return mnb.compile(EXTREMA, engine="cpu")


@pytest.mark.parametrize("name", TYPES)
def test_the_answers_of_extrema_stay(extrema: mnb.Program, name: str, rng: np.random.Generator) -> None:
    limits = np.iinfo(TYPES[name])
    a = rng.integers(limits.min, limits.max, 1000, TYPES[name], endpoint=True)
    b = rng.integers(limits.min, limits.max, 1000, TYPES[name], endpoint=True)
    a[:4], b[:4] = [limits.min, limits.max, limits.min, 7], [limits.max, limits.min, limits.min, 7]
    least, most = extrema[f"of_{name}"](a, b)
    np.testing.assert_array_equal(least, np.minimum(a, b))
    np.testing.assert_array_equal(most, np.maximum(a, b))


@pytest.mark.parametrize("name", ["int", "uint", "long"])
def test_no_extremum_is_left(extrema: mnb.Program, name: str) -> None:
    def functions(code: bytes) -> int:
        """The calls of OpenCL's s_max, u_max, s_min and u_min."""
        return sum(words[0] & 0xFFFF == 12 and words[4] in range(156, 160) for words in instructions(code))

    code = module_of(extrema[f"of_{name}"].unit)
    assert functions(code) >= 2
    assert functions(applied("plain_extrema", code)) == 0
