"""Ops composed of others, beyond their samples: refusals, arrays that are only created, NumPy's ways to call them."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np
import pytest

import metalnb as mnb


def same(got: Any, want: Any) -> None:
    for one, right in zip(*((v if isinstance(v, (tuple, list)) else (v,)) for v in (got, want)), strict=True):
        assert isinstance(one, mnb.Array)
        assert np.array_equal(one.read(), right, equal_nan=True)


@pytest.mark.long(every=5)  # 5 divides no count: each n, m and k remains
@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("m", [None, 3, 7])
@pytest.mark.parametrize("k", [-2, 0, 1, 9])
def test_indices_of_triangles_match_numpy(n: int, m: int | None, k: int) -> None:
    same(mnb.tril_indices(n, k, m), np.tril_indices(n, k, m))
    same(mnb.triu_indices(n, k, m), np.triu_indices(n, k, m))
    same(mnb.tri(n, m, k), np.tri(n, m, k))


def test_indices_of_grids_match_numpy() -> None:
    same(mnb.diag_indices(3, 3), np.diag_indices(3, 3))
    for shape in ((2, 3), (4,), (0, 2), ()):
        same(mnb.indices(shape), np.indices(shape))
    assert mnb.indices((2, 2), dtype="int16").dtype == mnb.int16


def test_numbers_spaced_by_powers() -> None:
    for options in ({}, {"num": 7}, {"num": 9, "endpoint": False}, {"base": 2.0, "num": 11}, {"num": 1}, {"num": 0}):
        got, expected = mnb.logspace(-3, 5, **options).read(), np.logspace(-3, 5, **options)
        assert np.allclose(got, expected, rtol=60 * 2**-24, atol=0)
    for ends in ((1, 1e6), (-2, -300), (1e3, 1e-3), (1e-30, 1e30), (-1e38, -1e-38)):
        for options in ({}, {"num": 7}, {"num": 9, "endpoint": False}):
            got = mnb.geomspace(*ends, **options).read()
            assert np.allclose(got, np.geomspace(*ends, **options), rtol=60 * 2**-24, atol=0)


@pytest.mark.long  # Ten seconds of ops with their own tests; NumPy's protocol is tested with arrays
def test_numpy_functions_dispatch_to_our_ops() -> None:
    x, host = mnb.asarray([3.0, 1.0, math.nan, 2.0]), np.array([3, 1, math.nan, 2], np.float32)
    for name in ("nansum", "nanmax", "nanmin", "nancumsum", "nanargmax", "argwhere", "flatnonzero", "isnan"):
        same(getattr(np, name)(x), getattr(np, name)(host))
    assert float(np.nanmean(x)) == float(np.nanmedian(x)) == 2
    assert float(np.percentile(mnb.asarray([1.0, 2, 3]), 50)) == float(np.median(mnb.asarray([1.0, 2, 3]))) == 2
    same(np.histogram(x, bins=[0.0, 2, 4]), np.histogram(host, bins=[0.0, 2, 4]))
    same(np.pad(x, 1), np.pad(host, 1))
    same(np.split(x, 2), np.split(host, 2))
    same(np.dstack([x, x]), np.dstack([host, host]))
    same(np.einsum("i,j->ij", x[:2], x[:2]), np.einsum("i,j->ij", host[:2], host[:2]))
    same(np.partition(x[:2], 1), np.partition(host[:2], 1))
    same(np.isin(x, [3.0]), np.isin(host, [3.0]))
    same(np.nan_to_num(x), np.nan_to_num(host))
    same(np.gcd(mnb.asarray([12]), 18), np.array([6]))


def test_numpys_parameters_that_an_op_lacks_are_not_mistaken_for_others() -> None:
    x, host = mnb.asarray([math.nan, 2.0]), np.array([math.nan, 2.0], np.float32)
    for args, options in (((), {}), ((True, 7.0), {}), ((), {"nan": 7.0, "copy": True})):
        same(np.nan_to_num(x, *args, **options), np.nan_to_num(host, *args, **options))
    for args, options in (((False,), {}), ((), {"copy": False}), ((), {"copy": False, "nan": 7.0})):
        with pytest.raises(TypeError, match=r"np.nan_to_num: metalnb.nan_to_num has no 'copy' \(got False\)"):
            np.nan_to_num(x, *args, **options)
    same(np.vander(x, N=3), np.vander(host, N=3))


def test_einsum_of_no_axes_and_of_views_matches_numpy() -> None:
    x = mnb.arange(12, dtype="float32").reshape(3, 4)
    assert mnb.einsum(",i->i", mnb.asarray(2.0), x[0]).tolist() == [0, 2, 4, 6]
    copied = mnb.einsum("ij->ji", x)
    copied.fill(0)
    assert float(x.sum()) == 66
    a, b = mnb.ones((2, 3), dtype="int32"), mnb.ones((3, 2), dtype="float16")
    assert mnb.einsum("ij,jk", a, b).dtype == mnb.float16


def test_replacements_of_infinity_depend_on_the_dtype() -> None:
    x = mnb.asarray([math.nan, math.inf, -math.inf])
    most = np.finfo(np.float32).max
    assert mnb.nan_to_num(x).tolist() == [0, most, -most]
    assert mnb.nan_to_num(x.astype("float16")).tolist() == [0, 65504, -65504]
    assert mnb.isin(x, [math.nan, math.inf]).tolist() == [False, True, False]
    assert [mnb.isin(2, mnb.asarray([1, 2])).tolist(), mnb.isin(mnb.asarray([1, 300], dtype="int16"), []).tolist()] == [
        True, [False, False],
    ]  # fmt: skip


@pytest.mark.parametrize("values", [
    [-2.0, math.inf], [-math.inf, 2.0], [-math.inf, math.inf], [math.inf, math.inf], [3e38, -3e38], [3e38, 3e38],
    [math.inf, -1.0, math.nan], [-3e38, math.nan, 3e38, 3.2e38, -3.2e38], [1.0, 3.0, math.inf],
])  # fmt: skip
def test_medians_of_the_largest_numbers_and_infinities_match_numpy(values: list[float]) -> None:
    x, host = mnb.asarray(values), np.array(values)
    with np.errstate(invalid="ignore"):
        for name in ("median", "nanmedian"):
            assert np.array_equal(getattr(mnb, name)(x).read(), np.float32(getattr(np, name)(host)), equal_nan=True)


@pytest.mark.parametrize(("xp", "fp"), [
    ([0, 1], [-3e38, 3e38]), ([-3e38, 3e38], [0, 1]), ([-3e38, 3e38], [3e38, -3e38]), ([0, 1], [0, math.inf]),
    ([0, 1], [math.inf, math.inf]), ([0, 1], [-math.inf, 5]), ([-math.inf, 0], [1, 2]), ([0, math.inf], [1, 2]),
])  # fmt: skip
def test_interpolation_between_large_numbers_and_infinities_matches_numpy(xp: list[float], fp: list[float]) -> None:
    x = np.array([0.5, 0, 1, -5, 1e38, -2e38, 0.25], np.float32)
    with np.errstate(all="ignore"):
        expected = np.interp(x, xp, fp)
    assert np.allclose(mnb.interp(mnb.asarray(x), xp, fp).read(), expected, rtol=1e-6, equal_nan=True)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1.0])
def test_the_weights_of_an_average_are_counted_whatever_the_mean(value: float) -> None:
    host = np.array([[value, 1, 2], [3, 4, 5]], np.float32)
    for axis in (None, 0, 1):
        same(mnb.average(mnb.asarray(host), axis, returned=True)[1], np.average(host, axis, returned=True)[1])


@pytest.mark.parametrize(("value", "dtype"), [
    (10**9, "int32"), (-(10**9), "int32"), (2**24 + 1, "int32"), (3.4028234e38, "float32"), (1.0, "float32"),
])  # fmt: skip
def test_equal_numbers_are_counted_whatever_their_size(value: float, dtype: str) -> None:
    x = mnb.asarray(np.full(5, value, dtype))
    for options in ({}, {"bins": 3}, {"bins": 1}, {"bins": 7, "range": (value, value)}):
        for weights in (None, mnb.ones(5)):
            counts, edges = (v.read() for v in mnb.histogram(x, weights=weights, **options))
            assert counts.sum() == 5
            assert (edges[1:] > edges[:-1]).all()
            assert np.isfinite(edges).all()
    density = mnb.histogram(x, density=True)
    assert np.isclose((density[0].read() * np.diff(density[1].read().astype(np.float64))).sum(), 1)


@pytest.mark.parametrize("dtype", ["uint64", "uint8", "int8", "bool", "float32"])
@pytest.mark.parametrize("values", [
    [1, 2], (1.5, 2), [True], [], 2, range(3), [300, 1], [-1, 1], [[1, 2], [3, 4]], [1, 0.5], True,
])  # fmt: skip
def test_python_numbers_are_searched_for_in_arrays_of_any_dtype(values: Any, dtype: str) -> None:
    x = mnb.asarray(np.array([0, 1, 2], dtype))
    same(mnb.isin(x, values), np.isin(x.read(), values))
    same(mnb.isin(x, values, invert=True), np.isin(x.read(), values, invert=True))
    if dtype != "uint64" or np.min(values, initial=0) >= 0:  # uint64 and int64 have no common integer dtype
        same(mnb.isin(values, x), np.isin(values, x.read()))


def test_integers_that_no_dtype_holds_are_in_no_array() -> None:
    assert mnb.isin(mnb.asarray([1, 2]), [2**70, 1]).tolist() == [True, False]
    assert mnb.isin(mnb.asarray(np.array([2**64 - 1], "uint64")), [2**64 - 1, -1]).tolist() == [True]


REFUSED = (
    (lambda x: mnb.quantile(x, 1.5), ValueError, "q must be between 0 and 1; got 1.5"),
    (lambda x: mnb.percentile(x, -1), ValueError, "q must be between 0 and 100; got -1.0"),
    (lambda x: mnb.quantile(x, 0.5, method="best"), ValueError, "method must be one of linear, "),
    (lambda x: mnb.nanmax(x[:0]), ValueError, "no elements to choose from"),
    (lambda x: mnb.nanargmax(mnb.asarray([math.nan])), ValueError, "are NaN somewhere"),
    (lambda x: mnb.bincount(mnb.asarray([1, -2])), ValueError, "numbers must be 0 or more; got -2"),
    (mnb.bincount, ValueError, "one-dimensional array of integers; got float32"),
    (lambda x: mnb.bincount(mnb.asarray([1]), mnb.ones(2)), ValueError, r"weights must have x's shape \(1,\)"),
    (lambda x: mnb.histogram(x, 0), ValueError, "bins must be 1 or more"),
    (lambda x: mnb.histogram(x, [2, 1]), ValueError, "that do not decrease"),
    (lambda x: mnb.histogram(x / 0), ValueError, "must be finite"),
    (lambda x: mnb.histogram(mnb.asarray([2**30, 2**30 + 99])), ValueError, "too few float32 numbers for 10 bins"),
    (lambda x: mnb.histogram(x, "auto"), TypeError, "bins='auto' is unsupported"),
    (lambda x: mnb.digitize(x, [1, 3, 2]), ValueError, "increases or decreases"),
    (lambda x: mnb.interp(x, [1, 2], [1]), ValueError, "two rows of one length"),
    (lambda x: mnb.average(x, weights=mnb.ones(3)), ValueError, "fit neither x's"),
    (lambda x: mnb.cov(x, mnb.ones((2, 5))), ValueError, "must have equally many observations; got 4 and 5"),
    (lambda x: mnb.einsum("ij,jk", x, x), ValueError, "'j' must have one length; got 4 and 3"),
    (lambda x: mnb.einsum("ij", x, x), ValueError, "names 1 operand; got 2"),
    (lambda x: mnb.einsum("i", x), ValueError, "names 1 axis; the operand has 2"),
    (lambda x: mnb.einsum("ij->k", x), ValueError, "must name axes of the operands"),
    (lambda x: mnb.einsum("i1", x), ValueError, "a character in 'i1' that is not a letter"),
    (lambda x: mnb.einsum(x, [0, 1]), TypeError, "first argument must be the subscripts"),
    (lambda x: mnb.pad(x, -1), ValueError, "widths must be 0 or more"),
    (lambda x: mnb.pad(x, 1, "blur"), ValueError, "mode must be one of .*; got 'blur'"),
    (lambda x: mnb.pad(x, ((1, 2, 3),)), ValueError, r"pad_width must be a number, .* of 2 axes"),
    (lambda x: mnb.pad(x[:0], 1, "edge"), ValueError, "axis 0 is empty"),
    (lambda x: mnb.split(x, 2), ValueError, r"3 elements, which cannot form 2 equal parts. Use mnb.array_split"),
    (lambda x: mnb.rot90(x, axes=(1, 1)), ValueError, "axes must be two different axes"),
    (lambda x: mnb.diag(mnb.ones((2, 2, 2))), ValueError, "x must have 1 or 2 axes"),
    (lambda x: mnb.tril_indices(-1), ValueError, "lengths must be 0 or more"),
    (lambda x: mnb.geomspace(-1, 1), ValueError, "have the same sign"),
    (lambda x: mnb.logspace(0, 1, dtype="int32"), TypeError, "takes floating dtypes"),
    (lambda x: mnb.geomspace(1, 9, dtype="int32"), TypeError, "geomspace: takes floating dtypes"),
    (lambda x: mnb.topk(x, 5), ValueError, "between 0 and 4"),
    (lambda x: mnb.partition(x, 4), ValueError, "kth=4 is out of bounds for 4 elements"),
    *((functools.partial(partition, kth=kth), TypeError, rf"kth must be an integer or .*; got {re.escape(repr(kth))}\.")
      for partition in (np.partition, np.argpartition) for kth in (1.5, 1.0, True, [0, 1.0], [[1]], [], None)),
)


@pytest.mark.parametrize(("call", "error", "why"), REFUSED, ids=[r[2][:40] for r in REFUSED])
def test_invalid_calls_are_refused(call: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        call(mnb.ones((3, 4)))


def test_axis_may_be_given_by_position() -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = mnb.asarray(host)
    for name in ("sum", "mean", "max", "amax", "argmax", "std", "median", "nansum", "cumsum", "any", "flip", "softmax"):
        by_position, by_name = getattr(mnb, name)(x, 1), getattr(mnb, name)(x, axis=1)
        assert np.array_equal(by_position, by_name), name
        if hasattr(np, name):
            assert np.allclose(by_position, getattr(np, name)(host, 1)), name
    assert mnb.concat([x, x], 1).tolist() == np.concatenate([host, host], 1).tolist()
    assert mnb.stack([x, x], 2).tolist() == np.stack([host, host], 2).tolist()
    assert mnb.roll(x, 1, 0).tolist() == np.roll(host, 1, 0).tolist()
    assert mnb.repeat(x, 2, 1).tolist() == np.repeat(host, 2, 1).tolist()


def test_diagonal_and_dtype_may_be_given_by_position() -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert mnb.triu(mnb.asarray(host), 1).tolist() == np.triu(host, 1).tolist()
    assert mnb.eye(2, 3, 1).tolist() == np.eye(2, 3, 1).tolist()
    for x in (mnb.zeros(3, mnb.int32), mnb.ones(3, np.int32), mnb.full(3, 7, "int32"), mnb.empty((2,), mnb.int32)):
        assert x.dtype == np.int32


def test_numpys_other_names_are_defined() -> None:
    assert mnb.identity(3).tolist() == np.identity(3).tolist()
    assert mnb.rint(mnb.asarray([0.5, 1.5])).tolist() == [0, 2]
    assert mnb.squeeze(mnb.ones((1, 2, 1, 3))).shape == (2, 3)


def test_dot_and_inner_of_arrays_and_numbers_match_numpy() -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = mnb.asarray(host)
    assert float(mnb.dot(x[0], x[1])) == float(np.dot(host[0], host[1])) == float(x[0].dot(x[1]))
    assert np.dot(x, x.T).tolist() == np.dot(host, host.T).tolist()
    assert mnb.dot(x, 2).tolist() == mnb.inner(2, x).tolist() == (2 * host).tolist()
    assert np.inner(x, x).tolist() == np.inner(host, host).tolist()


@pytest.mark.parametrize(("name", "message"), [
    ("gradient", r"'gradient'. NumPy's takes the array's memory: np.gradient\("),
    ("cat", r"no attribute 'cat'. Use mnb.concat$"),
    ("float64", r"no attribute 'float64'. Use mnb.float32: Metal has no float64$"),
    ("gradiend", r"no attribute 'gradiend'$"),
])  # fmt: skip
def test_missing_name_suggests_another(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(mnb, name)


def test_pytorchs_dim_and_weight_layout_are_refused_with_the_fix() -> None:
    x = mnb.ones((2, 3))
    with pytest.raises(TypeError, match=r"sum: dim=1 is axis=1 here"):
        mnb.sum(x, dim=1)
    with pytest.raises(ValueError, match=r"linear: weight must be .* got weight \(3, 4\), x \(2, 3\). .*weight.T"):
        mnb.linear(x, mnb.zeros((3, 4)))
