"""The library's plans for a GPU, run on CPU engines: kernels that otherwise only a GPU runs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from library.linear_algebra.matrix_products import assert_product, random_factor
from oracle import laid

import metalnb as mnb
from metalnb.library_kernels.launching import gather as gathering
from metalnb.library_kernels.planning.device import device_of
from metalnb.library_kernels.planning.product_matrices import Strided
from metalnb.library_kernels.planning.product_plan import plan_product
from metalnb.library_kernels.planning.reduction_plan import axes_of_view, plan_reduction

FEW, MANY = 1, 132  # processors: one, which any tile keeps busy, and an H100's 132


def kernels(a: mnb.Array, b: mnb.Array, dtype: str) -> list[str]:
    laid_out = [Strided(x.shape, tuple(s // x.itemsize for s in x.strides), 0) for x in (a, b)]
    plan = plan_product(*laid_out, (), dtype, device_of(a.engine.caps), (True, True))
    return [" ".join((s.kernel, *s.load_kinds)) for s in plan.steps]


# Lengths near those of a tile (64 and 128), a SIMD-group (32), and a strip (8 and 32).
SHAPES = [
    (17, 17, 1), (31, 33, 7), (64, 128, 16), (65, 129, 17), (127, 127, 9), (128, 64, 8), (129, 130, 31), (40, 260, 24),
    (72, 136, 40), (130, 33, 65),
]  # fmt: skip


@pytest.mark.parametrize("count", [1, 31, 32, 33, 127, 128, 129, 1023, 1025, 70_001])
def test_fused_functions_of_several_elements_per_thread_match_numpy(
    gpu: Any, count: int, rng: np.random.Generator
) -> None:
    gpu(FEW)

    @mnb.fuse
    def both(x: Any, y: Any, scale: Any) -> Any:
        return x * y + scale, mnb.where(x > y, x, mnb.exp(-y * y))

    a, b = random_factor(rng, (count,), "float32"), random_factor(rng, (count,), "float32")
    one, other = mnb.asarray(a), mnb.asarray(b)
    total, chosen = both(one, other, 0.5)
    assert np.array_equal(total, a * b + np.float32(0.5))
    assert np.array_equal(chosen, mnb.where(one > other, one, mnb.exp(-other * other)))
    single = mnb.fuse(lambda x, y: x - y * y)(one, mnb.asarray(b[:1]))  # one element is repeated
    assert np.array_equal(single, a - b[0] * b[0])


# Both floats have the same plans; few processors use a subset of them.
@pytest.mark.long(unless=lambda dtype, processors: (dtype, processors) == ("float16", MANY))
@pytest.mark.parametrize("processors", [FEW, MANY])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_products_by_tiles_match_numpy_in_every_layout(
    gpu: Any, dtype: str, processors: int, rng: np.random.Generator
) -> None:
    gpu(processors)
    layouts = ("plain", "transposed", "stepped") if dtype == "float32" else ("plain",)
    for m, n, k in SHAPES:
        a, b = random_factor(rng, (m, k), dtype), random_factor(rng, (k, n), dtype)
        for one, other in itertools.product(layouts, repeat=2):
            assert_product(mnb.matmul(laid(a, one), laid(b, other)), a, b)


def test_each_way_to_read_a_factor_is_used(gpu: Any, rng: np.random.Generator) -> None:
    gpu(FEW)
    a, b = random_factor(rng, (256, 48), "float32"), random_factor(rng, (48, 256), "float32")
    along, across, any_ = "WIDE_ALONG", "WIDE_ACROSS", "ANY"
    for one, other, ways in (("plain", "plain", (along, across)), ("transposed", "transposed", (across, along)),
                             ("stepped", "reversed", (any_, any_))):  # fmt: skip
        x, y = laid(a, one), laid(b, other)
        assert kernels(x, y, "float32") == [" ".join(("tiles_float", *ways))]
        assert kernels(x, y, "float16") == [" ".join(("large_matrix_tiles_half", *ways))]
        assert_product(mnb.matmul(x, y), a, b)


# Bfloat16 takes the path of float16; few processors use a subset of its plans.
@pytest.mark.long(unless=lambda dtype, processors: processors == MANY)
@pytest.mark.parametrize(("dtype", "processors"), [("float16", FEW), ("float16", MANY), ("bfloat16", FEW)])
def test_products_by_pipes_match_numpy_with_partial_strips(
    gpu: Any, dtype: str, processors: int, rng: np.random.Generator
) -> None:
    """Factors read eight at a time: complete strips, partial strips, and fewer strips than fit."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    gpu(processors, copies=True)
    layouts = ("plain", "transposed") if (dtype, processors) == ("float16", FEW) else ("plain",)
    for m, n, k in ((24, 32, 8), (64, 128, 16), (72, 136, 40), (136, 128, 72), (72, 136, 600)):
        a, b = random_factor(rng, (m, k), dtype), random_factor(rng, (k, n), dtype)
        for one, other in itertools.product(layouts, repeat=2):
            assert "pipes" in kernels(laid(a, one), laid(b, other), dtype)[0]
            assert_product(mnb.matmul(laid(a, one), laid(b, other)), a, b)
    a, b = random_factor(rng, (3, 40, 80), dtype), random_factor(rng, (3, 80, 24), dtype)
    assert_product(mnb.matmul(laid(a), laid(b)), a, b)


# Bfloat16 and the integers take the paths of float16; only many processors split K.
@pytest.mark.long(unless=lambda dtype, processors: (dtype, processors) in {("float16", MANY), ("float32", FEW)})
@pytest.mark.parametrize("processors", [FEW, MANY])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int64", "bool"])
def test_few_rows_times_a_matrix_match_numpy(gpu: Any, dtype: str, processors: int, rng: np.random.Generator) -> None:
    """Complete and partial strips, parts of K that are not a multiple of the prefetch, remaining rows."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    gpu(processors)
    for m, n, k in ((1, 33, 1), (1, 128, 3), (1, 260, 31), (1, 516, 300), (2, 132, 37), (5, 300, 129), (16, 97, 261)):
        a, b = random_factor(rng, (m, k), dtype), random_factor(rng, (k, n), dtype)
        for layout in ("plain", "stepped", "reversed"):
            assert_product(mnb.matmul(laid(a, layout), laid(b)), a, b)
        if m == 1:
            assert_product(mnb.matmul(laid(b).T, laid(a[0])), b.T, a[0])
    name = "uint32" if dtype == "int32" else dtype
    found = kernels(laid(a), laid(b), name)
    assert found[0].startswith("columns_")
    assert processors == FEW or found[1].startswith("add_parts")
    a, b = random_factor(rng, (3, 1, 40), dtype), random_factor(rng, (3, 40, 64), dtype)
    assert_product(mnb.matmul(laid(a), laid(b)), a, b)


@pytest.mark.long(unless=lambda dtype: dtype == "float16")  # The others only prefetch more or fewer steps
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_matrix_times_few_columns_matches_numpy(gpu: Any, dtype: str, rng: np.random.Generator) -> None:
    """Read along K four at a time, with full and partial steps and idle lanes; views are read an element at a time."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    gpu(MANY)
    for m, n, k in ((5, 1, 64), (9, 1, 132), (7, 2, 516), (40, 1, 1100), (33, 3, 2052), (6, 5, 4100)):
        a, b = random_factor(rng, (m, k), dtype), random_factor(rng, (n, k), dtype)
        assert kernels(laid(a), laid(b).T, dtype)[0].startswith("wide_dots")
        assert_product(mnb.matmul(laid(a), laid(b).T), a, b.T)
        assert_product(mnb.matmul(laid(b), laid(a).T), b, a.T)
        assert_product(mnb.matmul(laid(a)[1:, 3:], laid(b)[:, 3:].T), a[1:, 3:], b[:, 3:].T)
    assert not kernels(laid(a)[:, :-1], laid(b)[:, :-1].T, dtype)[0].startswith("wide")


def test_few_rows_propagate_nan(gpu: Any) -> None:
    gpu(MANY)
    for dtype in ("float32", "float16"):
        a, b = np.ones((1, 300), dtype), np.ones((300, 136), dtype)
        b[299, 135], b[5, 7], b[:, 20] = np.nan, np.inf, 0
        expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
        assert np.array_equal(mnb.matmul(laid(a), laid(b)).read(), expected, equal_nan=True)
        assert np.array_equal(mnb.matmul(laid(b.T.copy()), laid(a[0])).read(), expected[0], equal_nan=True)


# One source for all dtypes; only bfloat16 has its own sums.
@pytest.mark.long(unless=lambda dtype: dtype == "bfloat16")
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "bfloat16", "int64"])
def test_products_of_other_dtypes_match_numpy(gpu: Any, dtype: str, rng: np.random.Generator) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    gpu(FEW)
    for m, n, k in SHAPES[1:5]:
        a, b = random_factor(rng, (m, k), dtype), random_factor(rng, (k, n), dtype)
        assert_product(mnb.matmul(laid(a), laid(b)), a, b)
        assert_product(mnb.matmul(laid(a, "transposed"), laid(b, "stepped")), a, b)


# One source for all dtypes; float16 is rounded once, after adding the parts.
@pytest.mark.long(unless=lambda dtype: dtype == "float16")
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_products_in_parts_and_in_batches_match_numpy(gpu: Any, dtype: str, rng: np.random.Generator) -> None:
    gpu(MANY)
    a, b = random_factor(rng, (50, 1100), dtype), random_factor(rng, (1100, 70), dtype)
    assert len(kernels(laid(a), laid(b), dtype if dtype != "int32" else "uint32")) == 2
    assert_product(mnb.matmul(laid(a), laid(b)), a, b)
    for one, other in (((3, 20, 30), (3, 30, 40)), ((20, 30), (3, 30, 40)), ((2, 1, 20, 520), (2, 520, 24))):
        a, b = random_factor(rng, one, dtype), random_factor(rng, other, dtype)
        assert_product(mnb.matmul(laid(a), laid(b, "transposed")), a, b)


def test_nan_stays_in_its_row_and_column(gpu: Any) -> None:
    gpu(FEW)
    for dtype in ("float32", "float16"):
        a, b = np.ones((130, 70), dtype), np.ones((70, 130), dtype)
        a[1, 3], b[5, 129], b[3, 1] = np.nan, np.inf, 0
        expected = a.astype(np.float32) @ b.astype(np.float32)
        assert np.array_equal(mnb.matmul(laid(a), laid(b)).read(), expected.astype(dtype), equal_nan=True)


@pytest.mark.long  # The split float16 products above are rounded by the same line
def test_half_is_rounded_once(gpu: Any) -> None:
    gpu(FEW)
    a = mnb.ones((40, 4097), dtype="float16")
    assert (mnb.matmul(a, a.T).read() == np.float16(4097)).all()


def test_a_view_that_no_vector_may_be_read_from(gpu: Any, rng: np.random.Generator) -> None:
    gpu(FEW)
    for dtype in ("float32", "float16"):
        whole = random_factor(rng, (100, 101), dtype)
        x = laid(whole)
        for rows, columns in ((slice(1, 65), slice(1, 97)), (slice(64), slice(4, 100)), (slice(3, 90, 2), slice(90))):
            part = whole[rows, columns]
            assert_product(mnb.matmul(x.viewed(x.host[rows, columns]), x.viewed(x.host[rows, columns]).T), part, part.T)


@pytest.mark.long(unless=lambda dtype: dtype == "float32")  # Both are read in the same way
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_variances_read_their_elements_once(gpu: Any, dtype: str, rng: np.random.Generator) -> None:
    """Rows of one chunk and of several, the last with one element; means at 0 and far from it."""
    kind: Any = pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype
    gpu(MANY)
    eps = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    for shape, axes in (((3, 256), -1), ((2, 5, 1025), -1), ((4097,), None), ((3, 2, 2200), (1, 2)), ((2, 12_289), 1),
                        ((300, 5, 77), None)):  # fmt: skip
        for mean in (0, 3, 300_000 if dtype == "float32" else 1000):
            host = (rng.standard_normal(shape) + mean).astype(kind)
            x = mnb.asarray(np.append(host[:1], host, 0))[1:]
            wide = host.astype(np.float64)
            for op, right in ((mnb.var, np.var), (mnb.std, np.std)):
                expected = right(wide, axis=axes, ddof=1)
                got = op(x, axis=axes, correction=1)
                assert got.shape == expected.shape
                bound = (4 * 2.0**-23 + 0.51 * eps) * np.abs(expected)
                assert (np.abs(got.read() - expected) <= bound).all(), (shape, mean)
        assert mnb.var(x, axis=axes, keepdims=True).shape == np.var(wide, axis=axes, keepdims=True).shape


def test_variances_of_rows_with_nan_or_inf_are_nan(gpu: Any) -> None:
    gpu(MANY)
    host = np.full((5, 5000), 1 / 3, np.float32)
    host[1, 4999], host[2, 0], host[3, 7] = np.nan, np.inf, 1e6
    got = mnb.var(laid(host), axis=1).read()
    assert np.isnan(got[1:3]).all()
    assert got[[0, 4]].tolist() == [0, 0]
    np.testing.assert_allclose(got[3], np.var(host[3].astype(np.float64)), rtol=1e-6)
    with np.errstate(invalid="ignore"):
        assert np.isnan(mnb.var(laid(host[:1, :300]), correction=300).read())


@pytest.mark.parametrize(("outer", "count"), [(1, 16_384), (1, 20_481), (3, 6_143), (9, 2_048)])
def test_gpu_thread_gathers_several_elements(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, outer: int, count: int, rng: np.random.Generator
) -> None:
    """Complete and partial blocks, and a block's first out-of-range index in any of its threads."""
    gpu(1)
    used: list[str] = []
    own = gathering.dispatch
    monkeypatch.setattr(gathering, "dispatch", lambda kernel, *a, **o: used.append(kernel.name) or own(kernel, *a, **o))
    for dtype in ("uint8", "float16", "float32", "int64"):
        x = rng.integers(0, 200, (outer, 777)).astype(dtype)
        indices = rng.integers(-777, 777, count)
        given = mnb.asarray(indices)
        assert np.array_equal(mnb.take(mnb.asarray(x), given, axis=1).read(), x[:, indices])
    assert set(used) == {f"take_several_{bits}" for bits in (8, 16, 32, 64)}
    first = int(rng.integers(count))
    indices[first], indices[min(first + 256, count - 1)] = -778, 777
    with pytest.raises(IndexError, match=rf"index {indices[first]} \(at \({first},\)"):
        mnb.take(mnb.asarray(x), mnb.asarray(indices), axis=1)


LENGTHS = (1, 31, 127, 128, 129, 511, 513, 5000, 300_001, 600_000)  # near the lengths of a run and a stretch


@pytest.mark.long(unless=lambda dtype: dtype == "int16")  # One source for all dtypes; int16 sums in a wider one
@pytest.mark.parametrize("dtype", ["float32", "int16", "int64", "float16"])
def test_running_sums_match_numpy_for_every_shape_and_axis(gpu: Any, dtype: str, rng: np.random.Generator) -> None:
    """Rows that can and cannot be read four elements at a time, in one stretch and in many."""
    gpu(MANY)
    for shape in [*((n,) for n in LENGTHS), (3, 4000), (3, 4001), (300, 70), (70_001, 3), (5, 3000, 7), (2000, 150)]:
        x = rng.integers(-9, 9, shape).astype(dtype)
        if dtype == "float16":  # integers, so that sums are exact
            x = np.where(rng.random(shape) < 0.001, x, 0).astype(dtype)
        for axis in range(len(shape)):
            expected = np.cumsum(x.astype(np.float64 if "float" in dtype else np.int64), axis)
            assert np.array_equal(mnb.cumulative_sum(mnb.asarray(x), axis=axis).read(), expected)
            assert np.array_equal(mnb.cumulative_sum(laid(x, "stepped"), axis=axis).read(), expected)
            with_first = mnb.cumulative_sum(mnb.asarray(x), axis=axis, include_initial=True).read()
            assert np.array_equal(np.delete(with_first, 0, axis), expected)
            assert not with_first.take(0, axis).any()


def steps(shape: tuple[int, ...], gone: tuple[int, ...], a: mnb.Array) -> list[str]:
    strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
    plan = plan_reduction(axes_of_view(shape, strides, gone), 0, 4, 1, device_of(a.engine.caps), has_center=False)
    return [f"{s.kernel} {s.outputs}" for s in plan or ()]


def test_plans_of_reductions_for_a_gpu_fill_its_processors(gpu: Any) -> None:
    gpu(MANY)
    a = mnb.zeros(1)
    for shape, gone, found in [
        ((1 << 28,), (0,), ["rows 32768", "rows_shared 1"]),
        ((1 << 24,), (0,), ["rows 8192", "rows_shared 1"]),
        ((4096, 4096), (1,), ["rows_shared 4096"]),
        ((16384, 16384), (1,), ["rows 16384"]),
        ((16384, 16384), (0,), ["down 1048576", "down 16384"]),
        ((4096, 4096), (0,), ["down 262144", "down 4096"]),
        ((60_000,), (0,), ["rows_shared 1"]),
        ((100,), (0,), ["rows 1"]),
        ((20, 5), (0,), ["each 5"]),
    ]:
        assert steps(shape, gone, a) == found, shape


REDUCED = [  # lengths near a lane's 8, a run's 256 and 512, a threadgroup's 1024, and beyond it
    (33,), (255,), (257,), (1024,), (1031,), (8191,), (70_001,), (300, 1500), (2, 9000), (3, 70_001), (65, 40),
    (700, 33), (129, 300), (9000, 3), (3, 500, 40), (70_001, 2),
]  # fmt: skip


# Plans depend only on shapes; test_library reduces the other dtypes.
@pytest.mark.long(unless=lambda dtype: dtype == "int32")
@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8"])
def test_reductions_match_numpy_for_every_shape_and_axis(gpu: Any, dtype: str, rng: np.random.Generator) -> None:
    """Rows and columns are reduced in one stretch or many, by threadgroups or threads, with and without remainders."""
    gpu(MANY)
    for shape in REDUCED:
        x = rng.integers(0, 9, shape).astype(dtype)
        y = mnb.asarray(x)
        for axis in (None, *range(len(shape))):
            assert np.array_equal(mnb.sum(y, axis=axis, dtype="int64" if dtype != "float32" else None).read(),
                                  x.sum(axis, dtype=np.int64)), (shape, axis)  # fmt: skip
            assert np.array_equal(mnb.max(y, axis=axis).read(), x.max(axis))
            if axis is not None or len(shape) == 1:
                assert np.array_equal(mnb.argmax(y, axis=axis or 0).read(), x.argmax(axis or 0)), (shape, axis)


def test_variances_along_every_axis_match_numpy(gpu: Any, rng: np.random.Generator) -> None:
    gpu(MANY)
    for shape in ((70_001,), (300, 1500), (700, 33), (3, 500, 40)):
        x = rng.random(shape, np.float32)
        for axis in range(len(shape)):
            got = mnb.var(mnb.asarray(x), axis=axis).read()
            assert np.allclose(got, x.astype(np.float64).var(axis), rtol=1e-5, atol=0), (shape, axis)


@pytest.mark.long(unless=lambda dtype: dtype == "float32")  # One source for all dtypes; float32 has NaN and two zeros
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "int64"])
def test_sorting_by_tiles_is_stable_and_matches_numpy(gpu: Any, dtype: str, rng: np.random.Generator) -> None:
    """Lengths near a tile's 4096 keys (2048 of eight bytes), with NaN and both zeros, also in rows; stable."""
    gpu(MANY)
    for shape in ((2049,), (4095,), (4097,), (20_011,), (3, 5001)):
        x = rng.integers(-99, 99, shape).astype(dtype)
        if dtype == "float32":
            x.flat[:6] = np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan
        for descending in (False, True):
            order = np.argsort(x[..., ::-1] if descending else x, axis=-1, kind="stable")
            if descending:
                order = shape[-1] - 1 - order[..., ::-1]
            assert np.array_equal(mnb.argsort(mnb.asarray(x), descending=descending).read(), order)
            expected = np.take_along_axis(x, order, -1)
            got = mnb.sort(mnb.asarray(x), descending=descending).read()
            assert np.array_equal(got, expected, equal_nan=dtype == "float32")
            if x.ndim == 1:
                part = mnb.argsort(mnb.asarray(np.append(x[:7], x))[7:], descending=descending)
                assert np.array_equal(part.read(), order)


def test_equal_keys_keep_their_order_and_distinct_keys_are_sorted(gpu: Any, rng: np.random.Generator) -> None:
    gpu(MANY)
    rising = np.arange(9000, dtype=np.uint32)
    for x in (np.full(9000, 7, np.uint32), rng.permutation(rising), rising[::-1]):
        assert np.array_equal(mnb.sort(mnb.asarray(x.copy())).read(), np.sort(x))
