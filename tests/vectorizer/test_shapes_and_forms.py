"""Shapes (how values change from lane to lane), forms (how threads map to lanes), and properties of the code."""

import re

import numpy as np
import pytest
from vectorizer.vector_kernels import HEAD, ROW, engine_is_here, kernel

import metalnb as mnb
from metalnb.engine.cpu import toolchain
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.vectorizer.lane_count import max_lanes
from metalnb.engine.vectorizer.simd_forms import form_for
from metalnb.engine.vectorizer.vector_code.vector_target import vector_target
from metalnb.engine.vectorizer.vectorize import uses_simdgroup, vectorize

__all__ = ["engine_is_here"]


@pytest.mark.parametrize(("body", "gathers"), [
    ("o[i] = x[i];", 0),
    ("o[i] = x[i + 1] + x[i - 1];", 0),  # under a guard: the index may wrap
    ("o[i] = x[2 * i + 1];", 0),
    ("o[i] = x[i & 63];", 0),
    ("o[i] = x[i / 32] + x[i % 4096];", 0),
    ("o[i] = x[int(i) - 7];", 0),
    ("o[i] = x[as_type<uint>(x[0]) + i];", 0),
    ("o[i] = t < 64 ? x[i] : x[i + 1];", 0),
    ("o[i] = x[i & 15];", 0),
    ("o[i] = x[i * i];", 1),
    ("o[i] = x[8 * i];", 1),
    ("o[as_type<uint>(x[i])] = 1;", 1),
    ("for (uint k = 0; k < i; ++k) o[i] += x[k];", 0),
    ("uint k = 0; while (x[k] > i) ++k; o[k] = 1;", 1),  # lanes leave the loop in different iterations
    ("float own[8]; for (int k = 0; k < 8; ++k) own[k] = x[k + i]; o[i] = own[int(x[i]) & 7];", 1),
])  # fmt: skip
def test_only_scattered_addresses_are_gathered(body: str, gathers: int) -> None:
    module = read_module(vector_build.thread_text(kernel(body).unit))
    assert len(vectorize(module, ROW, vector_build.machine()).gathers) == gathers


@pytest.mark.parametrize(("loop", "chosen"), [
    ("for (uint k = 0; k < n; ++k) a = fma(x[k], x[i], a);", False),
    ("for (uint j = 0; j < n; ++j) for (uint k = 0; k < n; ++k) a = fma(x[k], x[i], a);", False),
    ("for (uint k = 0; k < uint(x[i]); ++k) a = fma(x[k], x[i], a);", True),
])  # fmt: skip
def test_uniform_loop_results_need_no_select_per_iteration(loop: str, chosen: bool) -> None:
    """The loop's condition once selected it, so a product's sums were spilled and reloaded in each iteration."""
    unit = kernel(f"float a = 0; uint n = uint(x[0]); {loop} o[i] = a;").unit
    text = vectorize(read_module(vector_build.thread_text(unit)), ROW, vector_build.machine()).text
    assert bool(re.search(r"= select \S+ \S+.*?, <32 x float> %\S+, <32 x float> %", text)) == chosen


@pytest.mark.parametrize(("index", "pinned"), [("(l ^ 5) * 3 & 31", False), ("(l ^ as_type<uint>(x[0])) & 31", True)])
def test_values_of_the_lane_alone_stay_constants_across_a_barrier(index: str, pinned: bool) -> None:
    """Such values were once pinned, so matrix products shuffled by an index register, at a sixth of the speed."""
    step = "o[i] += simd_shuffle(x[i + k], from); threadgroup_barrier(mem_flags::mem_device);"
    unit = kernel(f"uint from = {index}; for (uint k = 0; k < 9; ++k) {{ {step} }}").unit
    made = vectorize(read_module(vector_build.thread_text(unit)), ROW, vector_build.machine())
    assert ('asm ""' in made.text) == pinned


STREAMED = "__builtin_nontemporal_store(x[i], o + i);"


def test_non_temporal_stores_cover_whole_lines() -> None:
    made = vectorize(read_module(vector_build.thread_text(kernel(STREAMED).unit)), ROW, vector_build.machine())
    assert len(re.findall(r"store <32 x float> .* align 64, !nontemporal", made.text)) == 1


@pytest.mark.parametrize("start", [0, 1, 16])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 200])
def test_non_temporal_stores_are_correct_at_any_offset(start: int, count: int) -> None:
    """From any element of a cache line, with any remainder; the last threads do not store at all."""
    x, whole = np.arange(256, dtype=np.float32), np.full(316, 42, np.float32)
    whole = whole[-whole.ctypes.data % 64 // 4 :][:300]
    program = kernel(f"if (i < {count}) {STREAMED}")
    program(x, whole[start:], grid=256, threadgroup=64)
    expected = np.full(300, 42, np.float32)
    expected[start : start + count] = x[:count]
    assert np.array_equal(whole, expected)


@pytest.mark.parametrize(("body", "math", "used"), [
    ("o[i] = rsqrt(x[i]);", "fast", "rsqrt14.ps.512"),
    ("o[i] = x[i + 1] / sqrt(x[i]);", "fast", "rsqrt14.ps.512"),
    ("o[i] = x[i + 1] / sqrt(x[i]);", "precise", ""),
    ("o[i] = uint(x[i]) / uint(x[i + 1]);", "precise", "rcp14.pd.512"),
    ("o[i] = uint(x[i]) / uint(x[0]);", "fast", ""),  # one scalar division
])  # fmt: skip
@pytest.mark.parametrize("march", ["x86-64-v4", "x86-64-v3"])
def test_a_processors_estimates_are_used_where_they_are_good(body: str, math: str, used: str, march: str) -> None:
    flags = (*toolchain.flags_for("x86_64-linux-gnu"), f"-march={march}")
    unit = kernel(body, math=math).unit
    made = vector_build.vectorize_form(read_module(vector_build.thread_text(unit, flags=flags)), ROW, flags)
    assert set(re.findall(r"@llvm\.x86\.avx512\.(\S+?)\(", made.text)) == {used if march == "x86-64-v4" else ""} - {""}
    assert vector_build.compile_vectorized(made, unit, flags)


@pytest.mark.parametrize(("grid", "threadgroup", "simd", "width", "flat", "full"), [
    ((1024, 1, 1), (256, 1, 1), True, 32, False, True),
    ((1000, 1, 1), (256, 1, 1), True, 32, False, False),
    ((77, 1, 1), (77, 1, 1), True, 32, False, False),
    ((64, 64, 1), (16, 16, 1), False, 16, False, True),
    ((64, 64, 1), (16, 16, 1), True, 32, True, True),
    ((60, 60, 1), (16, 16, 1), True, 32, True, False),
    ((512, 256, 1), (32, 8, 1), True, 32, False, True),
    ((500, 256, 1), (32, 8, 1), True, 32, True, False),
    ((8, 8, 8), (4, 4, 4), False, 32, True, True),
    ((48, 48, 1), (24, 4, 1), False, 8, False, True),
    ((1, 1, 1), (1, 1, 1), False, 8, False, False),
])  # fmt: skip
def test_threadgroup_rows_choose_the_form(
    grid: tuple, threadgroup: tuple, simd: bool, width: int, flat: bool, full: bool,
) -> None:  # fmt: skip
    form = form_for(grid, threadgroup, simd=simd)
    assert (form.width, form.flat, form.full) == (width, flat, full)


@pytest.mark.parametrize(("threadgroup", "width", "flat", "full"), [
    ((256, 1, 1), 16, False, False),
    ((16, 16, 1), 16, False, False),
    ((24, 4, 1), 8, False, True),
    ((8, 1, 1), 8, False, True),
    ((4, 4, 4), 16, True, True),
    ((3, 4, 4), 16, True, False),
    ((2, 2, 4), 16, True, True),
])  # fmt: skip
def test_a_kernel_of_many_values_takes_fewer_lanes(threadgroup: tuple, width: int, flat: bool, full: bool) -> None:
    form = form_for((1000, 40, 40), threadgroup, simd=False, max_lanes=16)
    assert (form.width, form.flat, form.full) == (width, flat, full)
    assert form_for((1000, 40, 40), threadgroup, simd=True, max_lanes=16).width == 32


_TARGETS = {
    "AVX-512": vector_target("#define __AVX512BW__ 1"), "AVX2": vector_target("#define __AVX2__ 1"),
    "NEON": vector_target("#define __aarch64__ 1"), "SSE": vector_target(""),
}  # fmt: skip


@pytest.mark.parametrize(("values", "lanes"), [
    (2, {"AVX-512": 32, "AVX2": 32, "NEON": 32, "SSE": 16}),
    (8, {"AVX-512": 32, "AVX2": 16, "NEON": 16, "SSE": 8}),
    (40, {"AVX-512": 16, "AVX2": 8, "NEON": 8, "SSE": 8}),
])  # fmt: skip
def test_values_that_are_live_at_once_decide_on_the_lanes(values: int, lanes: dict) -> None:
    """Each value is used in a second loop, which clang unrolls like the first, so all are live between the loops."""
    uses = f"""
        float v[{values}]; float sum = 0;
        _Pragma("unroll") for (uint k = 0; k < {values}; ++k) sum = max(sum * 3, v[k] = x[i * {values} + k]);
        _Pragma("unroll") for (uint k = 0; k < {values}; ++k) sum = sum * v[k] + 1;
        o[i] = sum;"""
    made = kernel(uses)
    form = form_for((1024, 1, 1), (256, 1, 1), simd=False)
    module = read_module(vector_build.thread_text(made.unit))
    live = vectorize(module, form, vector_build.machine()).live_bits
    assert 32 * values <= live <= 32 * (values + 3)  # the sum too
    assert {name: max_lanes(live, target, uses_simdgroup=False) for name, target in _TARGETS.items()} == lanes
    x = np.random.default_rng(4).random((77, values), np.float32)
    out = np.zeros(77, np.float32)
    made(x, out, grid=77, threadgroup=48)
    sums = np.zeros(77)
    for v in x.T.astype(np.float64):
        sums = np.maximum(sums * 3, v)
    for v in x.T.astype(np.float64):
        sums = sums * v + 1
    np.testing.assert_allclose(out, sums, rtol=1e-4)


def test_one_threadgroup_begins_at_0_as_those_of_whole_simdgroups_do() -> None:
    """Short and long arrays then share a form."""
    several = form_for((1521, 1, 1), (1024, 1, 1), simd=False)
    assert form_for((31, 1, 1), (31, 1, 1), simd=False) == several
    assert form_for((33, 1, 1), (64, 1, 1), simd=False) == several
    assert form_for((62, 1, 1), (31, 1, 1), simd=False) != several


@pytest.mark.parametrize("threadgroup", [(32, 4), (16, 16), (7, 5), (64, 2), (3, 40), (10, 1), (1, 33), (24, 3)])
@pytest.mark.parametrize("grid", [(64, 16), (50, 33), (1, 1)])
@pytest.mark.parametrize("simd", [True, False])
def test_every_thread_position_is_correct(grid: tuple, threadgroup: tuple, simd: bool) -> None:
    program = mnb.compile(f"""{HEAD}
        kernel void f(device uint* o, uint2 p [[thread_position_in_grid]], uint2 n [[threads_per_grid]],
                      uint2 t [[thread_position_in_threadgroup]], uint i [[thread_index_in_threadgroup]],
                      uint l [[thread_index_in_simdgroup]], uint2 s [[threads_per_threadgroup]]) {{
            o[p.y * n.x + p.x] = t.x + 100 * t.y + (i == t.y * s.x + t.x ? 0 : 7777777)
                + 100000 * ({"simd_sum(1u) + 100 * (l != i % 32)" if simd else "1"});
        }}""", engine="cpu")  # fmt: skip
    out = np.zeros((grid[1], grid[0]), np.uint32)
    program.f(out, grid=grid, threadgroup=threadgroup)
    y, x = np.indices(out.shape)
    expected = x % threadgroup[0] + 100 * (y % threadgroup[1])
    active = 1
    if simd:
        across = np.minimum(threadgroup[0], grid[0] - x // threadgroup[0] * threadgroup[0])
        down = np.minimum(threadgroup[1], grid[1] - y // threadgroup[1] * threadgroup[1])
        index = y % threadgroup[1] * across + x % threadgroup[0]
        active = np.minimum(32, across * down - index // 32 * 32)
    assert np.array_equal(out, expected + 100000 * active)


def test_only_kernels_that_name_their_simdgroup_need_32_lanes() -> None:
    for body, asks in (("o[i] = x[t];", False), ("o[i] = x[l];", True), ("o[i] = simd_max(x[i]);", True)):
        assert uses_simdgroup(read_module(vector_build.thread_text(kernel(body).unit))) == asks
