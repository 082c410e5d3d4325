"""Products: every kernel at every edge, every dtype, layout and batch, compared with NumPy in float64 or exactly."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from library.linear_algebra.matrix_products import CODE_PATHS, assert_product, random_factor
from oracle import LAYOUTS, laid

import metalnb as mnb
from metalnb.arrays.array import Array
from metalnb.library_kernels.launching import product_launch
from metalnb.library_kernels.op import ALL
from metalnb.library_kernels.planning.product_matrices import Strided
from metalnb.library_kernels.planning.product_plan import plan_product, plan_widened


def kernels_of(a: Array, b: Array) -> list[str]:
    """Name the kernels that a product runs."""
    laid_out = [Strided(x.shape, tuple(s // x.itemsize for s in x.strides), 0) for x in (a, b)]
    return [step.kernel.rsplit("_float", 1)[0] for step in plan_product(*laid_out, (), "float32").steps]


# One float and one integer dtype; test_library covers more, and the long tests cover all.
@pytest.mark.long(unless=lambda dtype: dtype in {"float32", "uint8"})
@pytest.mark.parametrize("dtype", ALL)
def test_every_code_path_for_every_dtype(dtype: str, rng: np.random.Generator) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    for name, shape1, layout1, shape2, layout2, kernels in CODE_PATHS:
        a, b = random_factor(rng, shape1, dtype), random_factor(rng, shape2, dtype)
        x, y = laid(a, layout1), laid(b, layout2)
        if dtype == "float32":
            assert kernels_of(x, y) == kernels, name
        assert_product(mnb.matmul(x, y), a, b)


def test_products_with_lengths_near_the_blocks_match_numpy(rng: np.random.Generator) -> None:
    """Lengths near the blocks': 12 rows, 4 rows, 32 and 256 columns, steps of 32 along K."""
    rows = (1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 15, 23, 24, 25, 191, 192, 193)
    columns = (1, 2, 31, 32, 33, 64, 95, 127, 128, 129, 255, 256, 257, 300)
    depths = (1, 2, 31, 32, 33, 63, 64, 65, 95, 96)
    a = random_factor(rng, (max(rows), max(depths)), "float32")
    b = random_factor(rng, (max(depths), max(columns)), "float32")
    wide = [laid(a, "plain"), laid(a, "transposed"), laid(b, "plain"), laid(b, "transposed")]
    for m, n in itertools.product(rows, columns):
        for k in rng.choice(depths, 1):
            for across, down in ((0, 2), (1, 3), (0, 3)):
                x = wide[across].viewed(wide[across].host[:m, :k])
                y = wide[down].viewed(wide[down].host[:k, :n])
                assert_product(mnb.matmul(x, y), a[:m, :k], b[:k, :n])


def test_more_blocks_of_rows_than_one(rng: np.random.Generator) -> None:
    """Rows are split into blocks of 16 panels of 12."""
    for m in (192 * 2, 192 * 2 + 1, 192 * 3 - 13):
        a, b = random_factor(rng, (m, 20), "int32"), random_factor(rng, (20, 40), "int32")
        assert_product(mnb.matmul(mnb.asarray(a.copy()), mnb.asarray(b.copy())), a, b)


BATCHES = [
    ((4, 3, 5), (4, 5, 6)),
    ((4, 3, 5), (5, 6)),
    ((3, 5), (4, 5, 6)),
    ((2, 1, 3, 5), (4, 5, 6)),
    ((2, 1, 3, 1, 4, 5), (3, 1, 2, 5, 6)),
    ((3, 1, 90), (3, 90, 1)),
    ((40, 1, 9), (40, 9, 1)),
    ((2, 3, 90), (2, 90, 40)),
    ((2, 50, 300), (2, 300, 600)),
    ((3, 2, 9000), (3, 9000, 3)),
    ((1, 2, 5), (3, 5, 1)),
]


@pytest.mark.parametrize("shapes", BATCHES, ids=str)
def test_batches_of_products_match_numpy(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], rng: np.random.Generator
) -> None:
    for dtype in ("float32", "int16"):
        a, b = (random_factor(rng, shape, dtype) for shape in shapes)
        for one, other in (("plain", "plain"), ("transposed", "reversed"), ("stepped", "transposed")):
            assert_product(mnb.matmul(laid(a, one), laid(b, other)), a, b)


def test_products_of_broadcast_views_match_numpy(rng: np.random.Generator) -> None:
    """Strides of 0, in the batch and in the matrices themselves."""
    a, b = random_factor(rng, (1, 70), "float32"), random_factor(rng, (70, 1), "float32")
    for x, y in (
        (np.broadcast_to(a, (40, 70)), np.broadcast_to(b, (70, 33))),
        (np.broadcast_to(a, (3, 5, 70)), np.broadcast_to(b, (70, 300))),
        (np.broadcast_to(a, (4, 13, 70)), np.broadcast_to(b, (4, 70, 2))),
        (np.broadcast_to(a[:, :1], (9, 70)), np.broadcast_to(b[:1], (70, 90))),
    ):
        assert_product(mnb.matmul(laid(x), laid(y)), x, y)


def test_products_of_views_with_offsets_match_numpy(rng: np.random.Generator) -> None:
    a, b = random_factor(rng, (60, 80), "float16"), random_factor(rng, (80, 90), "float16")
    x, y = mnb.asarray(a, copy=True), mnb.asarray(b, copy=True)
    for rows, along, columns in (
        (slice(3, 50), slice(5, 75), slice(7, 60)),
        (slice(50, 2, -3), slice(70, None, -1), slice(None, None, 4)),
        (slice(8, 9), slice(0, 80), slice(80, 3, -7)),
    ):
        assert_product(
            mnb.matmul(x.viewed(x.host[rows, along]), y.viewed(y.host[along, columns])),
            a[rows, along],
            b[along, columns],
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_not_a_number_and_infinity(layout: str) -> None:
    """NaN and infinity spread within their row and column, by IEEE 754; a panel's idle lanes spread nothing."""
    for m, n, k in ((13, 33, 70), (3, 300, 70), (13, 5, 70), (1, 70, 90)):
        a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        a[0, 3], b[5, n - 1], b[3, 1] = np.nan, np.inf, 0
        a[m - 1, 5 if m > 1 else 6] = 0
        with np.errstate(all="ignore"):
            expected = a @ b
        for one in (layout, "plain"):
            got = mnb.matmul(laid(a, one), laid(b, layout)).read()
            assert np.array_equal(got, expected, equal_nan=True)
        assert np.isnan(expected[0]).all()


def test_nothing_to_add_gives_zeros() -> None:
    for shape1, shape2 in (((3, 0), (0, 4)), ((0,), (0,)), ((2, 3, 0), (0, 5)), ((0, 4), (4, 0)), ((0, 2, 3), (3, 4))):
        for dtype in ("float32", "int8", "bool"):
            a, b = np.ones(shape1, dtype), np.ones(shape2, dtype)
            used = mnb.full(np.matmul(a, b).shape, 7, dtype=dtype)  # the pool may give this memory again
            del used
            got = mnb.matmul(mnb.asarray(a), mnb.asarray(b))
            assert np.array_equal(got.read(), np.matmul(a, b))
            assert got.shape == np.matmul(a, b).shape


def test_half_is_rounded_once(rng: np.random.Generator) -> None:
    """Sums above 2048, where half represents only even integers, are right to the last place."""
    ones = np.ones((1, 4097), np.float16)
    for repeats in ((1, 1), (40, 40), (2, 300)):
        a, b = np.repeat(ones, repeats[0], 0), np.repeat(ones.T, repeats[1], 1)
        got = mnb.matmul(mnb.asarray(a), mnb.asarray(b)).read()
        assert (got == np.float16(4097)).all()
    many = random_factor(rng, (30000,), "float16")
    got = mnb.matmul(mnb.asarray(many), mnb.asarray(many)).item()
    assert got == np.float16(np.sum(many.astype(np.float64) ** 2))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_large_products_of_16_bit_floats_are_floats_rounded_once(dtype: str, rng: np.random.Generator) -> None:
    """Beyond 2^24 multiplications a CPU converts them to float first: also batches, views and repeated products."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    one, other = (mnb.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((2, 250, 270), (260, 270)))
    x, y = one.astype(dtype), other.astype(dtype).T
    long, deep = (mnb.asarray(rng.standard_normal(s, np.float32)).astype(dtype) for s in ((40, 9003), (9003, 49)))
    for a, b in ((x, y), (x[1, ::2], y), (mnb.broadcast_to(x[0], (2, 250, 270)), y), (long, deep)):
        result = mnb.matmul(a, b)
        expected = mnb.matmul(a.astype("float32"), b.astype("float32"))
        assert result.dtype == getattr(mnb, dtype)
        wide = np.asarray(expected.read(), np.float64)
        ulp = 2.0 ** (-11 if dtype == "float16" else -8) * np.maximum(np.abs(wide), 16)
        assert (np.abs(result.astype("float32").read() - wide) <= 1.01 * ulp).all()


def test_16_bit_floats_are_converted_to_float_while_packing() -> None:
    """Sums are rounded when stored or, if K is split, when the parts are added."""
    for shape, made in (((300, 300, 300), ["matmul_panels_float_half"]),
                        ((40, 9003, 49), ["matmul_panels_float", "add_parts_half"])):  # fmt: skip
        m, k, n = shape
        for strides, pack in (((n, 1), "pack_half_rows"), ((1, k), "pack_half")):
            plan = plan_widened(Strided((m, k), (k, 1), 0), Strided((k, n), strides, 0), (), "float16")
            assert [step.kernel for step in plan.steps] == [pack, *made]


def test_product_of_bools_is_any() -> None:
    """65,536 pairs are true, and one SIMD-group counts them all: a 16-bit count would wrap to 0."""
    ones = mnb.ones((256, 65536), dtype="bool")
    assert mnb.matmul(ones, ones[:2].T).read().all()
    assert not mnb.matmul(ones, mnb.zeros((2, 65536), dtype="bool").T).read().any()


GUARD = """
import ctypes, mmap, sys
import numpy as np
sys.path.insert(0, {tests!r})
from library.linear_algebra.matrix_products import CODE_PATHS
import metalnb as mnb
from metalnb.arrays.array import view_of
from metalnb.arrays.memory_pool import borrow

libc, page = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE

def fenced(host, layout):
    back = host.T if layout == "transposed" else host
    size = -(-back.nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(address + size), page, 0) == 0  # no access
    bytes = np.frombuffer(memory, np.uint8, back.nbytes, size - back.nbytes)
    data = bytes.view(back.dtype).reshape(back.shape)
    data[...] = back
    x = view_of(borrow(data), data)
    return x.viewed(x.host.T) if layout == "transposed" else x

for name, shape1, layout1, shape2, layout2, _ in CODE_PATHS:
    for dtype in ("float32", "uint8"):
        a, b = np.ones(shape1, dtype), np.ones(shape2, dtype)
        got = mnb.matmul(fenced(a, layout1), fenced(b, layout2)).wait()
        assert (got.read() == np.array(shape1[1]).astype(dtype)).all(), name
    print(name, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.usefixtures("shared_memory")
def test_nothing_beyond_an_array_is_read(tmp_path: Path) -> None:
    """The memory after each factor's last element is protected: a read beyond it ends the process."""
    script = tmp_path / "fenced.py"
    script.write_text(GUARD.format(tests=str(Path(__file__).parents[2])))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"after {done.stdout.splitlines()[-1:]}: {done.stderr[-500:]}"


def test_product_reads_rows_beyond_two_gibibytes() -> None:
    """The last row of a matrix of more than 2^31 bytes, whose memory is never written and so never allocated."""
    k, n = 2**15 + 1, 2**16
    b = np.zeros((k, n), np.uint8)
    b[-1] = np.arange(n) % 251
    a = np.zeros((1, k), np.uint8)
    a[0, -1] = 3
    assert np.array_equal(mnb.matmul(mnb.asarray(a), mnb.asarray(b)).read()[0], b[-1] * np.uint8(3))


def test_products_promote_dtypes(rng: np.random.Generator) -> None:
    a, b = random_factor(rng, (3, 4), "int8"), random_factor(rng, (4, 5), "int32")
    assert np.array_equal(mnb.matmul(mnb.asarray(a.copy()), mnb.asarray(b.copy())).read(), a.astype(np.int32) @ b)
    mixed = mnb.matmul(mnb.asarray(a.copy()), mnb.asarray(random_factor(rng, (4, 2), "float16")))
    assert mixed.dtype == np.float16
    with pytest.raises(TypeError, match="matmul: no integer dtype contains both uint64 and int8"):
        mnb.matmul(mnb.ones((2, 3), dtype="uint64"), mnb.ones((3, 2), dtype="int8"))


def test_operators_and_numpys_functions_return_our_product(rng: np.random.Generator) -> None:
    a, b = random_factor(rng, (5, 5), "float32"), random_factor(rng, (5, 5), "float32")
    x, y = mnb.asarray(a, copy=True), mnb.asarray(b, copy=True)
    for got in (x @ y, x @ b, a @ y, np.matmul(x, y), x.dot(y), np.dot(x, y)):
        assert isinstance(got, Array)
        assert_product(got, a, b)
    x @= y
    assert_product(x, a, b)


@pytest.mark.parametrize(("shape", "dtype", "why"), [
    ((3, 3), "float32", "x @ y, of float32, does not fit into x, of int32. Use x = x @ y"),
    ((3, 3), "int64", None), ((3, 2), "int32", r"x @ y has shape \(3, 2\), x has \(3, 3\)"),
    ((3,), "int32", r"x @ y has shape \(3,\), x has \(3, 3\)"),
])  # fmt: skip
def test_a_product_in_place_fits_the_array(shape: tuple[int, ...], dtype: str, why: str | None) -> None:
    host = np.arange(9, dtype=np.int32).reshape(3, 3)
    x, y = mnb.array(host), mnb.full(shape, 1.5).astype(dtype)
    if why is None:
        x @= y
        host = host @ y.read()
    else:
        with pytest.raises((TypeError, ValueError), match=why):
            x @= y
    assert x.dtype == np.int32
    assert np.array_equal(x.read(), host)


@pytest.mark.parametrize("one", [(), (3,), (2, 3), (2, 4, 3)])
@pytest.mark.parametrize("other", [(), (3,), (3, 2), (5, 3), (2, 3, 4), (2, 5, 3)])
def test_dot_and_inner_match_numpy(one: tuple[int, ...], other: tuple[int, ...], rng: np.random.Generator) -> None:
    a, b = random_factor(rng, one, "int32"), random_factor(rng, other, "int32")
    x, y = mnb.array(a), mnb.array(b)
    for function, method in ((np.dot, x.dot), (np.inner, None)):
        try:
            expected = function(a, b)
        except ValueError:
            with pytest.raises(ValueError, match="must match"):
                function(x, y)
            continue
        for got in (function(x, y), method(y) if method else function(x, b)):
            assert isinstance(got, Array)
            assert got.shape == np.shape(expected)
            assert np.array_equal(got.read(), expected)


def test_dot_takes_numbers_words_and_out() -> None:
    x = mnb.asarray([[1, 2], [3, 4]])
    assert np.dot(x, 2).tolist() == np.dot(2, x).tolist() == x.dot(2).tolist() == [[2, 4], [6, 8]]
    assert np.dot(a=x, b=x).tolist() == [[7, 10], [15, 22]]
    out = mnb.zeros((2, 2), dtype="int64")
    assert np.dot(x, x, out=out) is out
    assert out.tolist() == [[7, 10], [15, 22]]


def test_products_keep_no_memory(rng: np.random.Generator) -> None:
    a = mnb.asarray(random_factor(rng, (100, 700), "float32"))
    b = mnb.asarray(random_factor(rng, (300, 700), "float32")).T
    mnb.matmul(a, b).wait()
    before = mnb.memory_info()
    for _ in range(20):
        mnb.matmul(a, b).wait()
    after = mnb.memory_info()
    assert (after.used, after.cached) == (before.used, before.cached)


def test_plans_of_large_batches_are_not_kept() -> None:
    product_launch._cached_plan.cache_clear()
    a = mnb.ones((2000, 2, 3))
    assert (mnb.matmul(a, mnb.ones((2000, 3, 2))).read() == 3).all()
    assert product_launch._cached_plan.cache_info().currsize == 0


def test_dot_products_match_numpy_along_every_axis(rng: np.random.Generator) -> None:
    """Vectors along memory and across it: many and few, long and short, broadcast."""
    for shape1, shape2, axis in (
        ((300,), (300,), -1), ((70000,), (70000,), 0), ((50, 3), (50, 3), -1), ((50, 100), (50, 100), -1),
        ((100, 50), (100, 50), 0), ((2, 1, 100), (5, 100), -1), ((40, 9, 3), (9, 1), -2), ((7, 9000), (7, 9000), 1),
        ((261, 70), (261, 70), -1), ((2, 150, 65), (150, 65), -1),
    ):  # fmt: skip
        for dtype in ("float32", "uint16", "int64"):
            a, b = random_factor(rng, shape1, dtype), random_factor(rng, shape2, dtype)
            for one, other in (("plain", "plain"), ("stepped", "reversed"), ("transposed", "plain")):
                got = mnb.vecdot(laid(a, one), laid(b, other), axis=axis)
                rows, columns = (np.moveaxis(x, axis, -1) for x in (a, b))
                assert_product(
                    Array(got.block, got.dtype, (*got.shape, 1, 1), None, got.offset),
                    rows[..., None, :],
                    columns[..., None],
                )


@pytest.mark.parametrize("axes", [0, 1, 2, ((0, 2), (1, 0)), ((-1,), (-2,)), ([], []), (1, 1)], ids=str)
def test_tensordot_matches_numpy(axes: Any, rng: np.random.Generator) -> None:
    given = {1: ((3, 4, 5), (5, 6)), 2: ((2, 4, 5), (4, 5, 3)), 0: ((2, 3), (4,))}
    shape1, shape2 = given[axes] if isinstance(axes, int) else ((3, 4, 5), (5, 4, 3) if axes == (1, 1) else (5, 3, 2))
    if axes == ((-1,), (-2,)):
        shape2 = (3, 5, 2)
    a, b = random_factor(rng, shape1, "int32"), random_factor(rng, shape2, "int32")
    got = mnb.tensordot(laid(a, "transposed"), laid(b, "stepped"), axes=axes)
    assert np.array_equal(got.read(), np.tensordot(a, b, axes))
    assert np.array_equal(np.tensordot(laid(a), laid(b), axes).read(), np.tensordot(a, b, axes))


def test_outer_matches_numpy(rng: np.random.Generator) -> None:
    a, b = random_factor(rng, (33,), "int8"), random_factor(rng, (70,), "int8")
    assert np.array_equal(mnb.outer(laid(a, "reversed"), laid(b, "stepped")).read(), np.multiply.outer(a, b))


ERRORS = [
    (
        lambda: mnb.matmul(mnb.ones((2, 3)), mnb.ones((4, 5))),
        ValueError,
        (
            "matmul: the last axis of the first array, 3, must match the last axis but one of the second, 4 "
            "(shapes (2, 3) and (4, 5))."
        ),
    ),
    (
        lambda: mnb.matmul(mnb.ones(3), mnb.ones(4)),
        ValueError,
        (
            "matmul: the last axis of the first array, 3, must match the last axis of the second, 4 "
            "(shapes (3,) and (4,))."
        ),
    ),
    (
        lambda: mnb.matmul(mnb.ones((2, 3, 3)), mnb.ones((4, 3, 3))),
        ValueError,
        "matmul: shapes (2,) and (4,) do not broadcast. Lengths must be equal, or 1.",
    ),
    (
        lambda: mnb.matmul(mnb.ones(()), mnb.ones(3)),
        ValueError,
        "matmul: the first array has no axis; it needs one. Pass x1 * x2 for a scalar.",
    ),
    (lambda: mnb.matmul(mnb.ones(3), 2), TypeError, "matmul: takes an array; got int. Pass mnb.asarray(…)."),
    (
        lambda: mnb.vecdot(mnb.ones((2, 3)), mnb.ones((2, 4))),
        ValueError,
        "vecdot: axis -1 of the first array, 3, must match that of the second, 4 (shapes (2, 3) and (2, 4)).",
    ),
    (
        lambda: mnb.vecdot(mnb.ones((2, 3)), mnb.ones(3), axis=0),
        ValueError,
        "vecdot: axis 0 differs between arrays of 2 and 1 axes. Count it from the end.",
    ),
    (
        lambda: mnb.vecdot(mnb.ones(()), mnb.ones(3)),
        IndexError,
        "vecdot: axis -1 is out of bounds: the array has no axes.",
    ),
    (
        lambda: mnb.outer(mnb.ones((2, 2)), mnb.ones(3)),
        ValueError,
        "outer: x1 and x2 must be one-dimensional; got shapes (2, 2) and (3,). Pass x.reshape(-1).",
    ),
    (
        lambda: mnb.tensordot(mnb.ones((2, 3)), mnb.ones((4, 5)), axes=1),
        ValueError,
        "tensordot: axis 1 of the first array, 3, must match axis 0 of the second, 4 (shapes (2, 3) and (4, 5)).",
    ),
    (
        lambda: mnb.tensordot(mnb.ones((2, 3)), mnb.ones(3), axes=2),
        ValueError,
        "tensordot: axes must be 0 to 1 for these arrays; got 2.",
    ),
    (
        lambda: mnb.tensordot(mnb.ones((2, 3)), mnb.ones((3, 2)), axes=((0, 1), (0,))),
        ValueError,
        "tensordot: axes must name as many axes of x1 as of x2; got (0, 1) and (0,).",
    ),
    (
        lambda: mnb.tensordot(mnb.ones((2, 3)), mnb.ones((3, 2)), axes=(0, 1, 2)),
        ValueError,
        "tensordot: axes must be an integer or a pair of axes; got (0, 1, 2).",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:60] for e in ERRORS])
def test_a_wrong_call_raises_its_exact_message(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text
