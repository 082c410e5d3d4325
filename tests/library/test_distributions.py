"""Distributions beyond uniform and normal: means and variances, seeds, bounds, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import metalnb as mnb

N = 200_000
# A call, and the mean and variance of its distribution.
CALLS = {
    "exponential": ((2.0,), 2.0, 4.0),
    "standard_exponential": ((), 1.0, 1.0),
    "laplace": ((1.0, 2.0), 1.0, 8.0),
    "gamma": ((3.0, 2.0), 6.0, 12.0),
    "standard_gamma": ((0.5,), 0.5, 0.5),
    "beta": ((2.0, 3.0), 0.4, 0.04),
    "poisson": ((4.0,), 4.0, 4.0),
    "binomial": ((10, 0.3), 3.0, 2.1),
    "random_sample": ((), 0.5, 1 / 12),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_distributions_have_their_means_and_variances(name: str) -> None:
    args, mean, variance = CALLS[name]
    x = getattr(mnb.random.default_rng(5), name)(*args, size=N).read().astype(np.float64)
    assert x.shape == (N,)
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / N)  # five standard deviations of the mean
    assert abs(x.var() / variance - 1) < 0.05


@pytest.mark.parametrize("name", CALLS)
def test_a_seed_repeats_the_numbers_and_each_call_draws_new_ones(name: str) -> None:
    args = CALLS[name][0]
    one, other = mnb.random.default_rng(1), mnb.random.default_rng(1)
    first = getattr(one, name)(*args, size=(3, 50)).numpy()
    assert np.array_equal(first, getattr(other, name)(*args, size=(3, 50)).read())
    assert not np.array_equal(first, getattr(one, name)(*args, size=(3, 50)).read())
    mnb.random.seed(3)
    again = getattr(mnb.random, name)(*args, size=4).numpy()
    mnb.random.seed(3)
    assert np.array_equal(again, getattr(mnb.random, name)(*args, size=4).read())
    assert getattr(mnb.random, name)(*args).shape == ()


def test_distributions_have_their_quantiles() -> None:
    """Quantiles show what means and variances do not."""
    rng = mnb.random.default_rng(2)
    x = np.sort(rng.exponential(size=N).numpy())
    for q in (0.1, 0.5, 0.9, 0.999):
        assert abs(x[int(q * N)] + np.log1p(-q)) < 6 * np.sqrt(q / (1 - q) / N)
    y = rng.laplace(size=N).numpy()
    assert abs(np.mean(y > 0) - 0.5) < 0.005
    assert np.isfinite(y).all()
    assert abs(np.mean(np.abs(y) > np.log(2)) - 0.5) < 0.005


def test_dtypes_and_parameters_that_are_arrays() -> None:
    rng = mnb.random.default_rng(1)
    assert rng.exponential(size=3, dtype="float16").dtype == mnb.float16
    assert rng.poisson(3.0, size=3).dtype == mnb.int64
    assert rng.poisson(3.0, size=3, dtype="uint8").dtype == mnb.uint8
    assert rng.binomial(1, 0.5, 3, "bool").dtype == mnb.bool
    assert rng.poisson(3.0, 0, "int8").shape == (0,)
    assert rng.beta(2.0, 2.0, 3, "bfloat16").dtype == mnb.bfloat16
    means = rng.poisson(mnb.asarray([1.0, 100.0]), size=(2000, 2)).read().mean(0)
    assert (np.abs(means - [1, 100]) < 6 * np.sqrt(np.array([1, 100]) / 2000)).all()  # six standard deviations


def test_integers_by_an_older_name() -> None:
    x = mnb.random.random_integers(3, size=500)
    assert set(x.tolist()) == {1, 2, 3}
    assert set(mnb.random.random_integers(-1, 0, 500).tolist()) == {-1, 0}
    assert mnb.random.ranf is mnb.random.sample


def test_choice_of_any_sequence() -> None:
    rng = mnb.random.default_rng(4)
    words = rng.choice(["a", "b", "c"], 300)
    assert isinstance(words, np.ndarray)
    assert set(words.tolist()) == {"a", "b", "c"}
    assert rng.choice(["a", "b", "c"], 3, replace=False).tolist() != ["a"] * 3
    assert set(rng.choice([1.5, 2.5], 100).tolist()) == {1.5, 2.5}
    assert rng.choice([1.5, 2.5], 100).dtype == mnb.float32
    assert set(rng.choice(np.array([1.5, 2.5]), 100, p=[0, 1]).tolist()) == {2.5}
    assert set(rng.choice(range(2, 4), 100).tolist()) == {2, 3}


@pytest.mark.parametrize(
    ("call", "error", "why"),
    [
        (lambda r: r.exponential(-1.0), ValueError, "scale must be 0 or more; got -1.0"),
        (lambda r: r.laplace(0.0, -1.0), ValueError, "scale must be 0 or more"),
        (lambda r: r.exponential(dtype="int32"), TypeError, "dtype must be float32"),
        (lambda r: r.gamma(2.0, dtype="bool"), TypeError, "gamma: dtype must be float32, .*; got bool"),
        (lambda r: r.beta(2.0, 2.0, 3, "int32"), TypeError, "beta: dtype must be float32"),
        (lambda r: r.poisson(1000, 3, "int8"), ValueError, "poisson: int8 holds numbers up to 127; got .* wider dtype"),
        (lambda r: r.poisson(9, 99, "bool"), ValueError, "poisson: bool holds numbers up to 1; got"),
        (lambda r: r.poisson(1e5, 3, "float16"), ValueError, "poisson: float16 holds numbers up to 65504.0; got"),
        (lambda r: r.binomial(1000, 0.5, dtype="uint8"), ValueError, "binomial: uint8 holds numbers up to 255; got"),
        (lambda r: r.gamma(-1.0), ValueError, "shape < 0"),
        (lambda r: r.poisson(-1.0), ValueError, "lam < 0"),
        (lambda r: r.binomial(3, 2.0), ValueError, "p"),
        (lambda r: r.beta(float("nan"), 1.0), ValueError, "parameters must be finite"),
    ],
)  # fmt: skip
def test_invalid_drawings_are_refused(call: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        call(mnb.random.default_rng(1))
