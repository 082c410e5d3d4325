"""sort and argsort beyond the tests of every op: where the method changes, ties, and special values."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb
from metalnb.library_kernels.launching import radix_sort
from metalnb.library_kernels.sorting import sort

pytestmark = pytest.mark.usefixtures("threads")

# Rows and their length on both sides of every change of method: in a SIMD-group's lanes, a SIMD-group per row, tiles.
SHAPES = (
    (1, 1), (33, 1), (5, 2), (11, 31), (3, 32), (3, 33), (2, 255), (2, 256), (2, 257), (2, 1024), (1, 2048), (1, 2049),
    (2, 4097), (15, 2049), (16, 2049), (1, 65537),
)  # fmt: skip


def few(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return values with many ties, so that an unstable sort fails."""
    return rng.integers(-3, 4, shape).astype(dtype)


# 7 divides no count: each dtype and most of the shapes remain, for cores or for lanes.
@pytest.mark.long(every=7)
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_of_every_length_are_sorted_stably(shape: tuple[int, int], dtype: str, rng: np.random.Generator) -> None:
    x = few(rng, shape, dtype)
    order = np.argsort(x, axis=-1, kind="stable")
    given = mnb.asarray(x)
    assert np.array_equal(mnb.argsort(given).read(), order)
    assert np.array_equal(mnb.sort(given).read(), np.take_along_axis(x, order, -1))
    falling = mnb.argsort(given, descending=True).read()
    assert np.array_equal(falling, np.argsort(-x.astype(np.int64).view(np.int64), axis=-1, kind="stable")
                          if dtype != "uint64" else sort._argsort_reference(x, descending=True))  # fmt: skip


@pytest.mark.long(every=5)  # Both dtypes, for cores and for lanes
@pytest.mark.parametrize(("dtype", "bits"), [("float32", "u4"), ("float16", "u2")])
@pytest.mark.parametrize("n", [32, 500, 5000])
def test_every_bit_of_a_float_survives_and_zeros_and_nans_keep_their_order(
    dtype: str, bits: str, n: int, rng: np.random.Generator
) -> None:
    x = np.frombuffer(rng.bytes(n * np.dtype(dtype).itemsize), dtype).copy()
    x[::4] = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf], dtype)[rng.integers(0, 6, len(x[::4]))]
    with np.errstate(invalid="ignore"):  # these include signaling NaN
        order = np.argsort(x.astype(np.float64), kind="stable")  # NumPy's float16 sort misplaces small numbers
    got = mnb.sort(mnb.asarray(x)).read()
    assert np.array_equal(got.view(bits), x[order].view(bits))
    assert np.array_equal(mnb.argsort(mnb.asarray(x)).read(), order)


@pytest.mark.long(every=3)  # int16, int64 and float32 remain: each number of digits, and a float
@pytest.mark.parametrize("dtype", ["int16", "uint32", "int64", "float32"])
def test_an_array_of_many_tiles_is_sorted_right(dtype: str, rng: np.random.Generator) -> None:
    """Hundreds of tiles with different digits: positions are right however many threadgroups run at once."""
    n = 1_300_003
    x = np.frombuffer(rng.bytes(n * np.dtype(dtype).itemsize), dtype).copy()
    if dtype == "float32":
        x[np.isnan(x)] = 1
    assert np.array_equal(mnb.sort(mnb.asarray(x)).read(), np.sort(x))
    assert np.array_equal(mnb.argsort(mnb.asarray(x)).read(), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("order", ["sorted", "reversed", "constant", "alternating"])
def test_orders_that_trouble_other_sorts(order: str) -> None:
    n = np.arange(40_000, dtype=np.int32)
    x = {"sorted": n, "reversed": n[::-1].copy(), "constant": 0 * n, "alternating": n % 2}[order]
    assert np.array_equal(mnb.argsort(mnb.asarray(x)).read(), np.argsort(x, kind="stable"))


def test_sorting_leaves_its_input_unchanged(rng: np.random.Generator) -> None:
    x = rng.random((3, 5000), np.float32)
    given = mnb.asarray(x.copy())
    mnb.sort(given).read()
    mnb.argsort(given).read()
    assert np.array_equal(given.read(), x)


def test_the_method_sorts_in_place(rng: np.random.Generator) -> None:
    x = rng.random((40, 50), np.float32)
    given = mnb.asarray(x.copy())
    given.sort(axis=0)
    assert np.array_equal(given.read(), np.sort(x, 0))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0)])
def test_empty_arrays_are_sorted_to_empty_arrays(shape: tuple[int, ...]) -> None:
    x = mnb.zeros(shape)
    assert mnb.sort(x).shape == shape
    assert mnb.argsort(x).shape == shape
    assert mnb.argsort(x).dtype == np.int64


def test_a_wrong_axis_is_named() -> None:
    with pytest.raises(IndexError, match=r"sort: axis 2 is out of bounds: the array has axes -2 to 1"):
        mnb.sort(mnb.zeros((3, 4)), axis=2)
    with pytest.raises(IndexError, match=r"argsort: axis -1 is out of bounds: the array has no axes"):
        mnb.argsort(mnb.asarray(1.0))
    with pytest.raises(TypeError, match="sort: axis must be an integer"):
        mnb.sort(mnb.zeros(3), axis=0.5)


def test_numpys_functions_sort_with_numpys_arguments(rng: np.random.Generator) -> None:
    x = rng.random((4, 5), np.float32)
    given = mnb.asarray(x)
    assert np.array_equal(np.sort(given, 0).read(), np.sort(x, 0))
    assert np.array_equal(np.sort(given, axis=0, kind="stable").read(), np.sort(x, 0))
    assert np.array_equal(np.sort(given, axis=None).read(), np.sort(x, None))
    assert np.array_equal(np.argsort(given, None).read(), np.argsort(x, None))
    assert np.array_equal(np.argsort(given, 0).read(), np.argsort(x, 0))


def test_too_long_an_axis_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(radix_sort, "KEY_LIMIT", 100)
    with pytest.raises(ValueError, match=r"an axis of 100 is too long; at most 99 elements"):
        mnb.sort(mnb.zeros(100))


def test_a_cell_may_include_the_kernels_and_use_their_parts(rng: np.random.Generator) -> None:
    cell = """
    #include <metalnb/sort.metal>
    #include <metalnb/gather.metal>
    #include <metalnb/search.metal>
    #include <metalnb/random.metal>

    kernel void twins(device const uint* x, device uint* count, uint lane [[thread_index_in_simdgroup]]) {
        count[lane] = popcount(peers_of(x[lane], true, 8));
    }
    """
    constants = {"KIND": 0, "DESCENDING": False, "INDEXED": False, "ALONE": True}
    x = rng.integers(0, 5, 32).astype(np.uint32)
    program = mnb.compile(cell, constants=constants)
    assert np.array_equal(program.twins(x, grid=32), np.bincount(x)[x])
    ordered = np.zeros_like(x)
    program.sort_short_32(x, ordered, 32, 1, grid=32)
    assert np.array_equal(ordered, np.sort(x))
