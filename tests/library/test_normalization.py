"""softmax, log_softmax, layer_norm and rms_norm: long rows, columns, views, large numbers, wrong weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import metalnb as mnb

Host = np.ndarray[Any, Any]


def soft(x: Host, axis: int) -> Host:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize(("shape", "axis"), [
    ((300_001,), 0), ((3, 100_000), 1), ((70_001, 3), 0), ((300, 65), 0), ((5, 300, 33), 1), ((100, 1), 0),
    ((100, 1), 1),
])  # fmt: skip
def test_softmax_of_any_row(shape: tuple[int, ...], axis: int, rng: np.random.Generator) -> None:
    host = (3 * rng.standard_normal(shape)).astype(np.float32)
    x = mnb.asarray(host)
    expected = soft(host, axis)
    got = mnb.softmax(x, axis=axis).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    np.testing.assert_allclose(got.sum(axis, dtype=np.float64), 1, rtol=1e-5)
    np.testing.assert_allclose(mnb.log_softmax(x, axis=axis).numpy(), np.log(expected), rtol=1e-5, atol=1e-5)


def test_softmax_of_views_matches_numpy(rng: np.random.Generator) -> None:
    host = rng.standard_normal((70, 300)).astype(np.float32)
    base = mnb.asarray(host, copy=True)
    views = (
        lambda a: a.T, lambda a: a[::-1, ::-1], lambda a: a[3:60, 5:200], lambda a: np.broadcast_to(a[:1], (9, 300)),
    )  # fmt: skip
    for view in views:
        x = base.viewed(view(base.host))
        for axis in (0, 1):
            np.testing.assert_allclose(mnb.softmax(x, axis=axis).numpy(), soft(view(host), axis), rtol=1e-5)


def test_softmax_of_large_numbers_infinities_and_nan_matches_the_definition() -> None:
    rows = np.array([[1e30, 1e30, 0], [-1e30, 0, 1], [-np.inf, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0]], np.float32)
    got = mnb.softmax(mnb.asarray(rows)).numpy()
    assert got[0].tolist() == [0.5, 0.5, 0]
    np.testing.assert_allclose(got[1], [0, 1 / (1 + math.e), math.e / (1 + math.e)], rtol=1e-6)
    assert got[2].tolist() == [0, 0.5, 0.5]
    assert np.isnan(got[3]).all()
    assert np.isnan(got[4, 0])  # ∞ - ∞
    half = -np.float32(math.log(2))
    assert mnb.log_softmax(mnb.asarray(rows[:1])).tolist() == [[half, half, -np.float32(1e30)]]


@pytest.mark.parametrize("shape", [(1, 100_003), (1000, 4), (7, 5, 513)], ids=str)
def test_norms_of_any_row(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    host = rng.standard_normal(shape).astype(np.float32) + 3
    weight, bias = (rng.random(shape[-1], np.float32) for _ in range(2))
    wide = host.astype(np.float64)
    centered = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    x = mnb.asarray(host)
    got = mnb.layer_norm(x, mnb.asarray(weight), mnb.asarray(bias)).numpy()
    np.testing.assert_allclose(got, centered * weight + bias, rtol=1e-4, atol=2e-5)
    scaled = wide / np.sqrt(np.square(wide).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(mnb.rms_norm(x, mnb.asarray(weight)).numpy(), scaled * weight, rtol=1e-5)
    np.testing.assert_allclose(mnb.rms_norm(x).numpy(), scaled, rtol=1e-5)


def test_weights_may_be_views_and_of_another_dtype(rng: np.random.Generator) -> None:
    host = rng.standard_normal((3, 40)).astype(np.float32)
    table = mnb.asarray(rng.random((40, 5), np.float32))
    plain = mnb.layer_norm(mnb.asarray(host)).numpy()
    weight = table[:, 2]
    np.testing.assert_allclose(mnb.layer_norm(mnb.asarray(host), weight).numpy(), plain * weight.numpy(), rtol=1e-5)
    half = mnb.asarray(np.full(40, 0.5, np.float16))
    np.testing.assert_allclose(mnb.layer_norm(mnb.asarray(host), half).numpy(), plain * 0.5, rtol=1e-5)


def test_a_row_of_equal_elements_becomes_zero() -> None:
    got = mnb.layer_norm(mnb.asarray(np.full((2, 100), 7, np.float32))).numpy()
    assert np.abs(got).max() < 1e-3


def test_bad_calls_name_the_op_and_the_values() -> None:
    x = mnb.asarray(np.zeros((2, 3), np.float32))
    message = r"^layer_norm: weight must have the shape of x's last axis, \(3,\); got \(2,\)"
    with pytest.raises(ValueError, match=message):
        mnb.layer_norm(x, mnb.asarray(np.zeros(2, np.float32)))
    with pytest.raises(IndexError, match=r"^softmax: axis 2 is out of bounds"):
        mnb.softmax(x, axis=2)
    with pytest.raises(TypeError, match=r"^softmax: takes numbers; got bool"):
        mnb.softmax(mnb.asarray(np.zeros(3, np.bool_)))
    with pytest.raises(ValueError, match=r"^rms_norm: x must have at least one axis"):
        mnb.rms_norm(mnb.asarray(1.0))
