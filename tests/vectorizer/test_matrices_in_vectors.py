"""SIMD-group matrices in vector registers: products bit for bit as one thread at a time; rows of memory."""

from __future__ import annotations

import numpy as np
import pytest
from vectorizer.vector_kernels import HEAD, engine_is_here, instruction_set
from vectorizer.vector_kernels import ROW as FORM

import metalnb as mnb
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.vectorizer.vectorize import vectorize

__all__ = ["engine_is_here", "instruction_set"]

pytestmark = pytest.mark.usefixtures("instruction_set")

LANES = np.arange(32)
ROW, COLUMN = LANES >> 2 & 4 | LANES >> 1 & 3, LANES >> 1 & 4 | (LANES & 1) << 1  # of a lane's first element
MANY = 24  # products in one run

PRODUCTS = """
kernel void f(device const float* x, device float* o, constant uint& n, constant float& start,
                     uint l [[thread_index_in_simdgroup]]) {
    simdgroup_matrix<A, 8, 8> a;
    simdgroup_matrix<B, 8, 8> b;
    simdgroup_matrix<D, 8, 8> d = make_filled_simdgroup_matrix<D, 8, 8>(D(start));
    for (uint k = 0; k < n; ++k, x += 128, o += 64) {
        for (uint e = 0; e < 2; ++e) {
            a.thread_elements()[e] = A(x[2 * l + e]);
            b.thread_elements()[e] = B(x[64 + 2 * l + e]);
        }
        simdgroup_multiply_accumulate(d, a, b, d);
        for (uint e = 0; e < 2; ++e) o[2 * l + e] = float(d.thread_elements()[e]);
    }
}"""


def numbers(count: int, seed: int) -> np.ndarray:
    """Return floats of many magnitudes, a few of them too large for a half, or NaN."""
    dice = np.random.default_rng(seed)
    x = dice.standard_normal(count) * 2.0 ** dice.integers(-12, 6, count)
    special = dice.random(count) < 0.002
    x[special] = dice.choice([np.inf, -np.inf, np.nan, 1e38, -1e-42, -0.0], special.sum())
    return x.astype(np.float32)


@pytest.mark.parametrize("kinds", [
    ("float", "float", "float"), ("float", "half", "half"), ("half", "half", "half"), ("bfloat", "bfloat", "bfloat"),
    ("float", "bfloat", "float"),
], ids=" ".join)  # fmt: skip
def test_products_are_those_of_one_thread_at_a_time(kinds: tuple[str, str, str]) -> None:
    text = f"{HEAD}#define D {kinds[0]}\n#define A {kinds[1]}\n#define B {kinds[2]}\n{PRODUCTS}"
    x = numbers(128 * MANY, 51)
    found = []
    for math in ("precise", "scalar"):
        out = np.zeros(64 * MANY, np.float32)
        mnb.compile(text, engine="cpu", math=math)["f"](x, out, MANY, 0.25, grid=32)
        found.append(out)
    vectors, threads = found
    assert np.isfinite(threads).mean() > 0.2
    assert np.array_equal(np.isnan(vectors), np.isnan(threads))
    known = ~np.isnan(threads)
    assert np.array_equal(vectors[known].view(np.uint32), threads[known].view(np.uint32))


@pytest.mark.parametrize("start", [2.0**-60, -(2.0**-60), 2.0**-149, 0])
def test_a_product_and_its_sum_are_rounded_once(start: float) -> None:
    text = f"{HEAD}#define D float\n#define A float\n#define B float\n{PRODUCTS}"
    side, half_way = 1 + 2.0**-12, 1 + 2.0**-11 + 2.0**-24  # the square of the first is between two floats
    x, out = np.zeros(128, np.float32), np.zeros(64, np.float32)
    diagonal = np.flatnonzero((np.stack([ROW, ROW], 1) == np.stack([COLUMN, COLUMN + 1], 1)).ravel())
    x[diagonal] = x[64 + diagonal] = side
    mnb.compile(text, engine="cpu")["f"](x, out, 1, start, grid=32)
    expected = np.full(64, start, np.float32)
    expected[diagonal] = half_way + np.sign(start) * 2.0**-24 if start else 1 + 2.0**-11
    assert np.array_equal(out, expected)


def test_a_fused_sum_is_that_of_one_thread_at_a_time() -> None:
    """With varying operands, and with uniform ones."""
    text = f"""{HEAD}kernel void f(device const float* x, device float* o, constant uint& n,
        uint i [[thread_position_in_grid]]) {{
            o[i] = fma(x[i], x[n + i], x[2 * n + i]);
            uint k = i / 32;
            o[n + i] = fma(x[k], x[n + k], x[2 * n + k]);
        }}"""
    n = 2048
    x = numbers(3 * n, 55)
    x[0], x[n], x[2 * n] = 1 + 2.0**-12, 1 + 2.0**-12, 2.0**-60
    found = []
    for math in ("precise", "scalar"):
        out = np.zeros(2 * n, np.float32)
        mnb.compile(text, engine="cpu", math=math)["f"](x, out, n, grid=n, threadgroup=256)
        found.append(out)
    vectors, threads = found
    assert vectors[0] == threads[n] == np.float32(1 + 2.0**-11 + 2.0**-23)
    known = ~np.isnan(threads)
    assert np.array_equal(known, ~np.isnan(vectors))
    assert np.array_equal(vectors[known].view(np.uint32), threads[known].view(np.uint32))


def test_matrix_rows_of_missing_lanes_are_zero() -> None:
    """Metal requires all 32 threads. With fewer, a product is at least the same every time."""
    x = np.random.default_rng(52).integers(-9, 10, (2, 32, 4)).astype(np.float32)
    x[0, 5, 0] = 77
    text = f"""{HEAD}kernel void f(device const float4* x, device float2* o, uint i [[thread_position_in_grid]],
        ushort l [[thread_index_in_simdgroup]]) {{
        simdgroup_float8x8 a, b, d;
        for (uint e = 0; e < 2; ++e) {{
            a.thread_elements()[e] = simd_shuffle(x[i][e], l);
            b.thread_elements()[e] = simd_shuffle(x[i][2 + e], l);
        }}
        if (x[i][0] != 77) {{
            simdgroup_multiply(d, a, b);
            o[i] = float2(d.thread_elements()[0], d.thread_elements()[1]);
        }}
    }}"""
    out = np.full((64, 2), 7, np.float32)
    mnb.compile(text, engine="cpu")["f"](x.reshape(64, 4), out, grid=43)
    active = (np.arange(64) < 43) & (np.arange(64) != 5)
    x[~active.reshape(2, 32)] = 0
    for group in range(2):
        a, b = np.zeros((8, 8)), np.zeros((8, 8))
        for e in range(2):
            a[ROW, COLUMN + e], b[ROW, COLUMN + e] = x[group, :, e], x[group, :, 2 + e]
        product = a @ b
        expected = np.stack([product[ROW, COLUMN], product[ROW, COLUMN + 1]], 1)
        part = active[32 * group : 32 * group + 32]
        assert np.array_equal(out[32 * group : 32 * group + 32], np.where(part[:, None], expected, 7))


def gathers(made: mnb.Kernel) -> int:
    """Return how many of a kernel's accesses are made lane by lane."""
    return len(vectorize(read_module(vector_build.thread_text(made.unit)), FORM, vector_build.machine()).gathers)


@pytest.mark.parametrize("across", [("false", "false"), ("true", "false"), ("false", "true")], ids="-".join)
@pytest.mark.parametrize("kind", ["float", "half", "bfloat"])
def test_matrices_are_loaded_and_stored_by_rows(kind: str, across: tuple[str, str]) -> None:
    dtype, bits = (np.uint32, "uint") if kind == "float" else (np.uint16, "ushort")
    x = np.random.default_rng(53).integers(0, 1000, 400).astype(dtype)
    for pitch in ("n", "8"):
        text = f"""{HEAD}kernel void f(device const {bits}* x, device {bits}* o, constant uint& n) {{
            simdgroup_matrix<{kind}, 8, 8> m;
            simdgroup_load(m, reinterpret_cast<device const {kind}*>(x + 3), n, ulong2(2, 1), {across[0]});
            simdgroup_store(m, reinterpret_cast<device {kind}*>(o + 1), {pitch}, ulong2(4, 3), {across[1]});
        }}"""
        kernel = mnb.compile(text, engine="cpu", checked=False)["f"]
        assert gathers(kernel) == 0
        for n in (8, 11, 23):
            out = np.full(500, 7, dtype)
            kernel(x, out, n, grid=32)
            step = n if pitch == "n" else 8
            expected = np.full(500, 7, dtype)
            for row in range(8):
                for column in range(8):
                    read_at = (1 + column, 2 + row) if across[0] == "true" else (1 + row, 2 + column)
                    written_at = (3 + column, 4 + row) if across[1] == "true" else (3 + row, 4 + column)
                    expected[1 + written_at[0] * step + written_at[1]] = x[3 + read_at[0] * n + read_at[1]]
            assert np.array_equal(out, expected)


TILES = {  # where lanes read, and where they write
    "rows of eight": ("l / 8 * ulong(n) + l % 8", "l"),
    "rows of sixteen, turned": ("(l & 15) + (l >> 4) * ulong(n)", "(l % 16) * 2 + l / 16"),
    "columns": ("l % 4 * ulong(n) + l / 4", "l"),
    "far apart, one number for several lanes": ("l / 8 * 1000", "l"),
    "backwards": ("31 - l + ulong(n)", "(l ^ 31) + ulong(n)"),
    "of all threads": ("t / 8 * ulong(n) + t % 8", "t % 8 + t / 8 * ulong(n)"),
    "of the whole grid": ("i / 8 * ulong(n) + i % 8", "i % 8 + i / 8 * ulong(n)"),
    "a product's fragments": ("(t / 2 & 12) + (t * 4 & 28) / 16 * ulong(n)", "l"),
    "of each second SIMD-group": ("(t / 2 & 76) + t / 16 % 4 * ulong(n)", "l"),
    "two numbers": ("l / 16 * ulong(n) + l / 8 % 2 * ulong(m) + l % 8", "l"),
    "negative": ("400 - long(l / 8) * n + l % 8", "400 - long(l / 8) * 16 + l % 8"),
}


@pytest.mark.long(every=4)  # each tile, each size and each target, in some of their combinations
@pytest.mark.parametrize("kind", ["uchar", "uint", "ulong"])
@pytest.mark.parametrize("name", TILES)
def test_lanes_of_a_tile_read_and_write_whole_rows(name: str, kind: str) -> None:
    dtype = {"uchar": np.uint8, "uint": np.uint32, "ulong": np.uint64}[kind]
    read_at, written_at = TILES[name]
    text = f"""{HEAD}kernel void f(device const {kind}* x, device {kind}* o, constant uint& n, constant uint& m,
        device const uint* part, uint l [[thread_index_in_simdgroup]], uint t [[thread_index_in_threadgroup]],
        uint i [[thread_position_in_grid]]) {{
            {kind} own = x[{read_at}];
            o[{written_at}] = own + 1;
            if (part[i]) o[2000 + i] = x[{read_at}] + 2;
        }}"""
    kernel = mnb.compile(text, engine="cpu", checked=False)["f"]
    assert gathers(kernel) == 0
    x = np.random.default_rng(54).integers(0, 99, 4000).astype(dtype)
    n, m = 21, 80

    def places(text: str, size: int) -> np.ndarray:
        """Return where each thread of two threadgroups reads or writes."""
        i = np.arange(2 * size)
        names = {"i": i, "t": i % size, "l": i % size % 32, "n": n, "m": m, "ulong": np.int64, "long": np.int64}
        return np.asarray(eval(text.replace("/", "//"), {}, names))  # noqa: S307  (the texts above)

    for size in (64, 40):
        for part in (np.ones(2 * size, np.uint32), np.arange(2 * size, dtype=np.uint32) % 3):
            out = np.full(4000, 7, dtype)
            kernel(x, out, n, m, part, grid=2 * size, threadgroup=size)
            expected = np.full(4000, 7, dtype)
            expected[places(written_at, size)] = x[places(read_at, size)] + 1
            expected[2000 : 2000 + 2 * size][part != 0] = x[places(read_at, size)][part != 0] + 2
            assert np.array_equal(out, expected)


def test_lanes_that_may_not_share_a_row_gather() -> None:
    """Rows do not begin at lanes 0, 8, 16 and 24."""
    place = "((n & 31) + (t & 63)) / 8 * 100ul + ((n & 31) + (t & 63)) % 8"
    text = f"""{HEAD}kernel void f(device const uint* x, device uint* o, constant uint& n,
        uint t [[thread_index_in_threadgroup]]) {{ o[t] = x[{place}]; }}"""
    kernel = mnb.compile(text, engine="cpu", checked=False)["f"]
    assert gathers(kernel) == 1
    x, out, t = np.arange(2000, dtype=np.uint32), np.zeros(64, np.uint32), np.arange(64)
    kernel(x, out, 21, grid=64, threadgroup=64)
    assert np.array_equal(out, (21 + t) // 8 * 100 + (21 + t) % 8)
