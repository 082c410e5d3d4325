"""Creating arrays: constants, ranges and matrices, compared with NumPy in float64; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metalnb as mnb

DTYPES = ("bool", "int8", "int64", "uint16", "uint64", "float16", "float32", "bfloat16")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), 3, (2, 3), (0, 4), (257, 1025)])
def test_filled_arrays_match_numpy_in_every_dtype(dtype: str, shape: Any) -> None:
    own = getattr(mnb, dtype)
    for made, value in (
        (mnb.zeros(shape, dtype=dtype), 0),
        (mnb.ones(shape, dtype=own), 1),
        (mnb.full(shape, True, dtype=dtype), 1),
    ):
        expected = np.full(shape, value, own)
        assert made.dtype == own
        assert made.shape == expected.shape
        assert np.array_equal(made.read(), expected)
        for like, number in ((mnb.zeros_like(made), 0), (mnb.ones_like(made), 1), (mnb.full_like(made, 1), 1)):
            assert np.array_equal(like.read(), np.full(shape, number, own))
    assert mnb.empty_like(made).shape == expected.shape


def test_dtypes_left_out_are_the_standards() -> None:
    for made, dtype in (
        (mnb.zeros(2), "float32"), (mnb.empty(2), "float32"), (mnb.full(2, 1), "int64"), (mnb.full(2, 1.0), "float32"),
        (mnb.full(2, False), "bool"), (mnb.arange(3), "int64"), (mnb.arange(3.0), "float32"), (mnb.eye(2), "float32"),
        (mnb.linspace(0, 1, 3), "float32"), (mnb.asarray(1), "int64"), (mnb.asarray(True), "bool"),
        (mnb.asarray([1, 2.5]), "float32"), (mnb.asarray([]), "float32"),
        (mnb.full_like(mnb.ones(2, dtype="int8"), 3), "int8"),
        (mnb.zeros_like(mnb.ones(2), dtype="int16"), "int16"),
    ):  # fmt: skip
        assert made.dtype == np.dtype(dtype)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(-50, 50).filter(bool))
def test_counting_by_integers_is_exact(start: int, stop: int, step: int) -> None:
    for dtype in (None, "int32", "float32"):
        got, expected = mnb.arange(start, stop, step, dtype=dtype), np.arange(start, stop, step, dtype=dtype or "int64")
        assert got.dtype == expected.dtype
        assert np.array_equal(got.read(), expected)


@pytest.mark.parametrize("args", [
    (0, np.uint8(10), 3), (np.uint8(5), np.uint8(3)), (np.int8(-100), np.int8(100)), (0, np.uint64(10), np.uint8(3)),
    (np.uint8(5), np.uint8(1), -1), (np.uint8(200),), (np.int16(30000), np.int16(-30000), np.int16(-7000)),
    (np.uint8(3), np.uint8(5), 0.5), (np.uint8(5), np.uint8(3), 0.5), (np.uint8(250), 300, np.uint8(20)),
])  # fmt: skip
def test_counting_by_numpys_integers_does_not_wrap(args: Any) -> None:
    exact = [v.item() if isinstance(v, np.generic) else v for v in args]
    assert mnb.arange(*args).tolist() == np.arange(*exact).tolist()


def test_ends_of_a_geometric_sequence_may_be_any_numbers() -> None:
    for start, stop in ((np.int8(10), np.int8(100)), (1e-30, 1e-20), (np.int8(-100), np.int8(-1))):
        expected = np.geomspace(float(start), float(stop), 3) / float(start)
        np.testing.assert_allclose(mnb.geomspace(start, stop, 3).read() / float(start), expected, rtol=1e-5)


def test_counting_reaches_the_ends_of_the_dtypes() -> None:
    for dtype in ("int8", "uint8", "int64", "uint64"):
        held = np.iinfo(dtype)
        got = mnb.arange(int(held.min), int(held.min) + 5, dtype=dtype).tolist()
        assert got == [int(held.min) + i for i in range(5)]
        assert mnb.arange(int(held.max), int(held.max) - 5, -1, dtype=dtype).tolist()[-1] == int(held.max) - 4
        with pytest.raises(OverflowError, match=f"arange: {dtype} holds"):
            mnb.arange(int(held.max), int(held.max) + 3, dtype=dtype)


def ulps(got: Any, want: np.ndarray[Any, Any]) -> float:
    """Return the largest error, in float32 ulp at the size of the exact result."""
    host = got.read().astype(np.float64)
    return float(np.max(np.abs(host - want) / np.spacing(np.abs(want).astype(np.float32)), initial=0))


finite = st.floats(-(2.0**60), 2.0**60, allow_subnormal=False, width=32).filter(lambda v: v == 0 or abs(v) > 1e-20)


@given(finite, finite, st.integers(0, 2000), st.booleans())
def test_a_linspace_is_rounded_once(start: float, stop: float, num: int, endpoint: bool) -> None:
    got = mnb.linspace(start, stop, num, endpoint=endpoint)
    expected = np.linspace(start, stop, num, endpoint=endpoint)
    assert got.shape == expected.shape
    # Where the steps cancel, ulp are measured at the size of the numbers added.
    size = np.maximum(np.abs(expected), 2.0**-40 * max(abs(start), abs(stop)))
    assert np.all(np.abs(got.read() - expected) <= 0.51 * np.spacing(size.astype(np.float32)) + 1e-44)
    if num and endpoint and num > 1:
        assert float(got[-1]) == np.float32(stop)


@pytest.mark.long  # 45 million elements in float64, needed only after a change to these two ops
def test_long_ranges_stay_exact() -> None:
    """Beyond 2^24 a float32 can no longer count by ones."""
    assert ulps(mnb.arange(2**25, dtype="float32"), np.arange(2**25).astype(np.float64)) <= 0.5
    n = 20_000_001
    assert ulps(mnb.linspace(0.1, 7.3, n), np.linspace(0.1, 7.3, n)) <= 0.51


@pytest.mark.parametrize("args", [(0.0, 1.0, 0.1), (1.0, 0.0, -0.07), (5.5,), (-2, 2, 0.5), (3.0, 1.0), (0, -1)])
def test_arange_with_float_steps(args: tuple[float, ...]) -> None:
    got, expected = mnb.arange(*args), np.arange(*args)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.read(), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("args", [(-3e38, 3e38, 5), (3e38, -3e38, 4), (-3.4e38, 3.4e38, 2), (-3.4e38, 3.4e38, 1001)])
def test_a_range_may_exceed_the_largest_float(args: tuple[float, float, int]) -> None:
    start, stop, num = args
    for endpoint in (True, False):
        expected = np.linspace(start, stop, num, endpoint=endpoint)
        assert ulps(mnb.linspace(start, stop, num, endpoint=endpoint), expected) <= 0.51
    step = 2.0 ** round(np.log2(abs(stop - start) / num)) * np.sign(stop - start)  # exact: arange's short form
    for first in (start, float(np.float32(start))):
        expected = np.arange(first, stop, step)
        assert np.allclose(mnb.arange(first, stop, step).read(), expected, rtol=1e-7, atol=1e31)
    assert mnb.arange(0.0, 1.0, 1e39).tolist() == [0]
    assert mnb.linspace(0, 1e39, 3).tolist() == [0, np.inf, np.inf]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_rounded_from_the_exact_number(dtype: str) -> None:
    got = mnb.linspace(-3, 3, 1001, dtype=dtype).astype("float32").read()
    expected = np.linspace(-3, 3, 1001).astype(np.float32).astype(getattr(mnb, dtype)).astype(np.float32)
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eye_tril_and_triu_match_numpy(dtype: str) -> None:
    own = getattr(mnb, dtype)
    for args, k in (((3,), 0), ((2, 4), 1), ((4, 2), -1), ((3, 3), 5), ((0, 2), 0), ((65, 33), -7)):
        assert np.array_equal(mnb.eye(*args, k=k, dtype=dtype).read(), np.eye(*args, k=k, dtype=own))
    host = np.ones((2, 5, 4), own)
    for k in (-9, -1, 0, 2, 9):
        assert np.array_equal(mnb.tril(mnb.array(host), k=k).read(), np.tril(host, k))
        assert np.array_equal(mnb.triu(mnb.array(host).mT, k=k).read(), np.triu(host.swapaxes(1, 2), k))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sizes", [(), (3,), (3, 2), (3, 2, 4)])
def test_meshgrid_matches_numpy(indexing: str, sizes: tuple[int, ...]) -> None:
    hosts = [np.arange(n) * 10 for n in sizes]
    got = mnb.meshgrid(*map(mnb.array, hosts), indexing=indexing)
    expected = np.meshgrid(*hosts, indexing=indexing)  # type: ignore[call-overload]
    assert len(got) == len(expected)
    for one, right in zip(got, expected, strict=True):
        assert np.array_equal(one.read(), right)


@pytest.mark.parametrize(
    ("call", "error", "why"),
    [
        (lambda: mnb.zeros((2, -1)), ValueError, r"zeros: the lengths of a shape must be 0 or more.*got \(2, -1\)"),
        (lambda: mnb.zeros("ab"), TypeError, "zeros: a shape must consist of integers; got 'ab'"),
        (lambda: mnb.zeros(b"ab"), TypeError, "zeros: a shape must consist of integers; got b'ab'"),
        (lambda: mnb.zeros({3, 2}), TypeError, "zeros: a shape must consist of integers; got {2, 3}"),
        (lambda: mnb.ones(6).reshape({2: 0, 3: 0}), TypeError, "reshape: a shape must consist of integers; got {2: 0"),
        (lambda: mnb.ones((2, 3)).sum(axis={0, 1}), TypeError, "sum: axis must be an integer; got {0, 1}"),
        (lambda: mnb.ones(2.5), TypeError, "ones: a shape must consist of integers; got 2.5"),
        (lambda: mnb.ones(2, dtype="float64"), TypeError, "ones: Metal has no float64"),
        (lambda: mnb.full(2, [1, 2]), TypeError, "full: fill_value must be a number"),
        (lambda: mnb.full(2, 300, dtype="uint8"), OverflowError, "300 out of bounds for uint8"),
        (lambda: mnb.arange(0, 5, 0), ValueError, "arange: all numbers must be finite and step must not be 0"),
        (lambda: mnb.arange(0, float("inf")), ValueError, "arange: all numbers must be finite"),
        (lambda: mnb.arange(2, dtype=bool), TypeError, "arange: takes integer and floating dtypes; got bool"),
        (lambda: mnb.linspace(0, 1, -1), ValueError, "linspace: num must be 0 or more; got -1"),
        (lambda: mnb.linspace(0, 1, 3, dtype="int32"), TypeError, "linspace: takes floating dtypes; got int32"),
        (lambda: mnb.tril(mnb.ones(3)), ValueError, r"tril: x must have at least 2 axes; got shape \(3,\)"),
        (lambda: mnb.meshgrid(mnb.ones(2), indexing="no"), ValueError, "meshgrid: indexing must be 'xy' or 'ij'"),
        (lambda: mnb.meshgrid(mnb.ones((2, 2))), ValueError, r"arrays must be one-dimensional .*of shape \(2, 2\)\.$"),
        (lambda: mnb.meshgrid(mnb.arange(2), mnb.ones(3)), ValueError, r"got float32 of shape \(3,\) after int64\.$"),
        (lambda: mnb.zeros(2, device="abacus"), mnb.EngineUnavailable, "unknown engine 'abacus'"),
    ],
)
def test_invalid_creations_are_refused(call: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        call()
