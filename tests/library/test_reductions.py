"""Reductions at the sizes and layouts where the method changes; NaN, ties and empty arrays; the accuracy of sums."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.library_kernels.planning.device import CORES
from metalnb.library_kernels.planning.reduction_plan import axes_of_view, plan_reduction

Host = np.ndarray[Any, Any]

SHAPES = [
    (31,), (257,), (100_003,), (2**20 + 17,), (100_003, 3), (3, 100_003), (40, 50, 60), (2, 3, 4, 5, 6), (300, 2049),
]  # fmt: skip
VIEWS = {
    "plain": lambda a: a,
    "transposed": lambda a: a.T,
    "backward": lambda a: a[::-1],
    "stepped": lambda a: a[..., 1::2],
    "mirrored": lambda a: a[..., ::-1],
    "repeated": lambda a: np.broadcast_to(a, (5, *a.shape)),
    "spread": lambda a: np.broadcast_to(a[..., None], (*a.shape, 5)),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_over_all_axes_are_exact(shape: tuple[int, ...], view: str, rng: np.random.Generator) -> None:
    host = rng.integers(-3, 4, shape).astype(np.float32)  # sums of small integers are exact in any order
    base = mnb.asarray(host, copy=True)
    x, same = base.viewed(VIEWS[view](base.host)), VIEWS[view](host)
    several = [axes for n in range(same.ndim + 1) for axes in itertools.combinations(range(same.ndim), n)]
    for axes in several if same.ndim < 4 else several[::5]:
        expected = same.sum(axes, dtype=np.float64)
        got = mnb.sum(x, axis=axes).numpy()
        assert got.shape == expected.shape, axes
        assert np.array_equal(got, expected), axes


@pytest.mark.long(every=4)  # 4 divides neither count: each op and each shape is among them
@pytest.mark.parametrize(("name", "dtype"), [
    ("sum", "int8"), ("max", "float32"), ("min", "int32"), ("any", "float32"), ("count_nonzero", "uint8"),
    ("argmax", "float32"), ("argmin", "int16"),
])  # fmt: skip
@pytest.mark.parametrize("shape", [(2**20 + 17,), (5, 70_001), (70_001, 3), (3000, 65), (40_000, 1, 33)], ids=str)
def test_long_reductions_take_several_dispatches(
    name: str, dtype: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    host = rng.integers(-100, 100, shape).astype(dtype)
    for axis in (None, *range(host.ndim)):
        got = getattr(mnb, name)(mnb.asarray(host), axis=axis).numpy()
        assert np.array_equal(got, getattr(np, name)(host, axis=axis)), axis


def test_plan_splits_long_axes_and_covers_every_element() -> None:
    """Tests only the plan: the stretches of each dispatch add up to the elements that it reduces."""
    for shape in [(2**24,), (4096, 4096), (4096, 3), (70_000, 64)]:
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        for axis in range(len(shape)):
            steps = plan_reduction(axes_of_view(shape, strides, (axis,)), 0, 4, 1, CORES, has_center=False)
            assert steps is not None
            assert steps[-1].outputs == math.prod(shape) // shape[axis]
            for step in steps:
                count, stretch, rest, parts = np.frombuffer(step.record, np.uint32)[8:12].tolist()
                assert step.kernel == "each" or (parts - 1) * stretch + rest == count
                assert 0 < rest <= stretch


@pytest.mark.parametrize("n", [1, 31, 33, 257, 5000, 70_000])
def test_nan_wins_at_any_position(n: int, rng: np.random.Generator) -> None:
    for at in {0, n // 2, n - 1}:
        for nan in (np.float32(np.nan), -np.float32(np.nan)):
            host = rng.standard_normal(n).astype(np.float32)
            host[rng.integers(0, n)] = np.inf
            host[at] = nan
            x = mnb.asarray(host)
            assert math.isnan(mnb.max(x))
            assert math.isnan(mnb.min(x))
            assert int(mnb.argmax(x)) == int(mnb.argmin(x)) == at
            columns = mnb.asarray(np.repeat(host[:, None], 40, axis=1))
            assert np.isnan(mnb.max(columns, axis=0).numpy()).all()
            assert (mnb.argmin(columns, axis=0).numpy() == at).all()


def test_first_of_equal_elements_wins() -> None:
    for n in (7, 128, 129, 5000, 100_000):
        x = mnb.asarray(np.zeros(n, np.float32))
        assert int(mnb.argmax(x)) == int(mnb.argmin(x)) == 0
        late = np.zeros(n, np.float32)
        late[n // 2 :] = 1
        assert int(mnb.argmax(mnb.asarray(late))) == n // 2
        assert int(mnb.argmin(mnb.asarray(-late))) == n // 2
    zeros = mnb.asarray(np.array([0.0, -0.0, 0.0], np.float32))
    assert int(mnb.argmax(zeros)) == int(mnb.argmin(zeros)) == 0


@pytest.mark.parametrize("n", [33, 300, 5000, 300_000])
def test_first_of_equal_elements_wins_in_any_segment(n: int, rng: np.random.Generator) -> None:
    host = rng.integers(0, 3, (3, n)).astype(np.float32)
    host[2] = -np.inf
    host[1, rng.integers(0, n, 5)] = 7
    x = mnb.asarray(host)
    for op, reference in ((mnb.argmax, np.argmax), (mnb.argmin, np.argmin)):
        assert op(x, axis=1).tolist() == reference(host, axis=1).tolist()
        assert int(op(x)) == reference(host)


def test_float_sums_are_as_exact_as_numpys_pairwise() -> None:
    rng = np.random.default_rng(7)  # averages are compared, so all use one seed
    ours, pairwise = [], []
    for n in (1000, 10_007, 2**20 + 3):
        for make in (rng.random, rng.standard_normal, lambda k, t: np.exp(rng.standard_normal(k, t) * 2)):
            for _ in range(12):
                host = make(n, np.float32)  # type: ignore[operator]
                exact = math.fsum(host.tolist())
                size = math.fsum(np.abs(host).tolist()) * 2**-24
                ours.append(abs(float(mnb.sum(mnb.asarray(host))) - exact) / size)
                pairwise.append(abs(float(host.sum()) - exact) / size)
    assert np.mean(ours) <= np.mean(pairwise)
    assert np.max(ours) <= max(2.0, np.max(pairwise))


def test_empty_reductions_return_the_identity() -> None:
    none = mnb.asarray(np.zeros((0, 3), np.float32))
    assert mnb.sum(none).numpy() == 0
    assert mnb.sum(none, axis=0).numpy().tolist() == [0, 0, 0]
    assert mnb.sum(none, axis=1).shape == (0,)
    assert mnb.sum(none, axis=0, keepdims=True).shape == (1, 3)
    assert mnb.prod(none, axis=0).numpy().tolist() == [1, 1, 1]
    assert bool(mnb.all(none)) is True
    assert bool(mnb.any(none)) is False
    assert int(mnb.count_nonzero(none)) == 0
    for name in ("mean", "var", "std"):
        assert np.isnan(getattr(mnb, name)(none, axis=0).numpy()).all(), name
    assert float(mnb.logsumexp(none)) == -math.inf
    assert float(mnb.vector_norm(none)) == 0
    assert mnb.max(none, axis=1).shape == mnb.argmax(none, axis=1).shape == (0,)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ValueError, match=rf"^{name}: there are no elements .* shape \(0, 3\)"):
            getattr(mnb, name)(none)


@pytest.mark.long(every=2)  # A bool, an unsigned integer and a 16-bit float
@pytest.mark.parametrize(("dtype", "total"), [
    ("bool", "int64"), ("int8", "int64"), ("uint8", "uint64"), ("int64", "int64"), ("float16", "float16"),
    ("float32", "float32"),
])  # fmt: skip
def test_dtypes_of_sums_maxima_and_means_follow_the_standard(dtype: str, total: str) -> None:
    x = mnb.asarray(np.ones(5, dtype))
    assert mnb.sum(x).dtype == mnb.prod(x).dtype == total
    assert mnb.max(x).dtype == dtype
    assert mnb.mean(x).dtype == ("float16" if dtype == "float16" else "float32")


def test_the_dtype_of_a_sum_can_be_chosen() -> None:
    x = mnb.asarray(np.array([100, 100, 100], np.int8))
    assert mnb.sum(x, dtype="int8").numpy() == np.int8(44)
    assert mnb.sum(x, dtype=mnb.float32).dtype == np.float32
    assert mnb.sum(mnb.asarray([1.7, 1.7]), dtype="int32").numpy() == 2


def test_large_sums_keep_small_terms() -> None:
    tenths = mnb.asarray(np.full(2**22, 0.1, np.float32))
    assert float(mnb.sum(tenths)) == pytest.approx(2**22 * float(np.float32(0.1)), rel=3e-7)
    half = mnb.asarray(np.ones(60_000, np.float16))
    assert float(mnb.sum(half)) == 60_000  # a float16 sum would stop at 2048
    assert float(mnb.mean(mnb.asarray(np.full(100_000, 60_000, np.float16)))) == 60_000
    assert int(mnb.sum(mnb.asarray(np.full(2**20, -128, np.int8)))) == -(2**27)


def test_variance_of_values_far_from_zero(rng: np.random.Generator) -> None:
    host = (rng.standard_normal((200, 999)) + 1e4).astype(np.float32)
    expected = host.astype(np.float64).var(1, ddof=1)
    got = mnb.var(mnb.asarray(host), axis=1, correction=1).numpy()
    np.testing.assert_allclose(got, expected, rtol=1000 * 2.0**-24)  # one rounding per element
    assert math.isnan(mnb.var(mnb.asarray([1.0]), correction=1))


def test_logsumexp_does_not_overflow() -> None:
    assert float(mnb.logsumexp(mnb.asarray([1000.0, 1000.0]))) == pytest.approx(1000 + math.log(2))
    assert float(mnb.logsumexp(mnb.asarray([-math.inf, -math.inf]))) == -math.inf
    assert float(mnb.logsumexp(mnb.asarray([math.inf, 1.0]))) == math.inf
    assert math.isnan(mnb.logsumexp(mnb.asarray([math.nan, 1.0])))


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, math.inf, -math.inf])
def test_vector_norms_match_numpy(order: float, rng: np.random.Generator) -> None:
    host = rng.standard_normal((17, 65)).astype(np.float32)
    expected = np.linalg.vector_norm(host.astype(np.float64), axis=0, ord=order)
    np.testing.assert_allclose(mnb.vector_norm(mnb.asarray(host), axis=0, ord=order).numpy(), expected, rtol=3e-6)


@pytest.mark.parametrize("order", ["fro", "nuc", "2"])
def test_vectors_have_no_norm_of_matrices(order: Any) -> None:
    with pytest.raises(ValueError, match="vector"):
        np.linalg.vector_norm(np.ones(3), ord=order)
    why = f"^vector_norm: the order of a vector's norm must be a real number, inf or -inf; got ord='{order}'"
    with pytest.raises(ValueError, match=why):
        mnb.vector_norm(mnb.ones(3), ord=order)


def test_bad_calls_name_the_op_and_the_values() -> None:
    x = mnb.asarray(np.zeros((2, 3), np.float32))
    with pytest.raises(IndexError, match=r"^sum: axis 2 is out of bounds: the array has axes -2 to 1"):
        mnb.sum(x, axis=2)
    with pytest.raises(ValueError, match=r"^max: an axis appears twice: \(0, -2\)"):
        mnb.max(x, axis=(0, -2))
    with pytest.raises(TypeError, match=r"^mean: takes an array; got list"):
        mnb.mean([1, 2])
    with pytest.raises(TypeError, match="float64"):
        mnb.sum(x, dtype="float64")
    with pytest.raises(TypeError, match="dtype must be numeric; got bool"):
        mnb.sum(x, dtype="bool")
    with pytest.raises(TypeError, match=r"^argmax: axis must be an integer; got \(0, 1\)"):
        mnb.argmax(x, axis=(0, 1))


def test_user_defined_reductions_match_numpy(rng: np.random.Generator) -> None:
    host = rng.standard_normal((300, 70)).astype(np.float32)
    x = mnb.asarray(host)
    root_mean_square = mnb.reduction("a + b", init=0, map="x * x", finish="sqrt(a / n)", name="root_mean_square")
    expected = np.sqrt(np.square(host.astype(np.float64)).mean(0, keepdims=True))
    for op in (root_mean_square, pickle.loads(pickle.dumps(root_mean_square))):  # noqa: S301
        np.testing.assert_allclose(op(x, axis=0, keepdims=True).numpy(), expected, rtol=1e-6)
    assert float(mnb.reduction("max(a, b)", init=-math.inf)(x)) == host.max()
    numbers = rng.integers(-(2**62), 2**62, 100_003)
    assert int(mnb.reduction("a ^ b", init=0)(mnb.asarray(numbers))) == np.bitwise_xor.reduce(numbers)
    assert int(mnb.reduction("a + b", init=0, map="x > 0", dtype="int32")(x)) == (host > 0).sum()
    assert mnb.reduction("min(a, b)", init=7)(mnb.asarray(np.zeros((0, 2), np.int16)), axis=0).tolist() == [7, 7]
    assert "a + b" in root_mean_square.source


@pytest.mark.long(every=3)  # int8, uint8 and float32 remain: each kind of limit that an infinity becomes
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64", "float16", "float32"])
def test_infinities_start_a_maximum_and_a_minimum_of_any_dtype(dtype: str) -> None:
    host = np.array([-5, -2, -9] if "u" not in dtype else [5, 2, 9]).astype(dtype)
    for combine, init, expected in (("max(a, b)", -math.inf, host.max()), ("min(a, b)", math.inf, host.min())):
        for wanted in (None, dtype):
            assert mnb.reduction(combine, init=init, dtype=wanted)(mnb.asarray(host)).item() == expected
    least = mnb.reduction("min(a, b)", init=math.inf, dtype=dtype)(mnb.asarray(host[:0])).item()
    assert least == (math.inf if "f" in dtype else np.iinfo(dtype).max)
    if "u" not in dtype:
        assert mnb.reduction("max(a, b)", init=-1)(mnb.asarray(host)).item() == -1


@pytest.mark.parametrize(("init", "dtype", "fits"), [
    (1.5, "int32", "a whole number from -2147483648 to 2147483647, or -inf or inf for these two; got 1.5"),
    (2**31, "int32", "got 2147483648"), (1e10, "int32", "got 10000000000.0"), (math.nan, "int32", "got nan"),
    (2**70, "int64", "got 1180591620717411303424"), (-1, "uint64", "from 0 to 18446744073709551615"),
    (2**2000, "uint8", "from 0 to 255"), (2, "bool", "from 0 to 1"), (1e39, "float32", "a number within its range"),
    (2**2000, "float32", "a number within its range"), (70000, "float16", "a number within its range"),
])  # fmt: skip
def test_an_init_that_the_dtype_does_not_hold_is_refused(init: Any, dtype: str, fits: str) -> None:
    with pytest.raises(mnb.ArgumentError, match=f"^total: init must be, for {dtype}, .*{fits}"):
        mnb.reduction("a + b", init=init, dtype=dtype, name="total")


def test_an_init_is_checked_for_the_array_that_is_given() -> None:
    with pytest.raises(mnb.ArgumentError, match=r"init must be, for int64, .*; got 1\.5"):
        mnb.reduction("a + b", init=1.5)(mnb.asarray([1, 2]))
    every_bit = mnb.reduction("a & b", init=2**64 - 1)
    assert every_bit(mnb.asarray([7, 6], dtype="uint64")).item() == 6


@pytest.mark.long(every=3)  # 3 divides neither count: each shape and both votes are among them
@pytest.mark.parametrize("shape", [(2,), (33,), (70_001,), (300, 77)])
@pytest.mark.parametrize(("combine", "init", "want"), [("a && b", 1, np.all), ("a || b", 0, np.any)])
def test_user_defined_reduction_with_votes(
    shape: tuple[int, ...], combine: str, init: int, want: Any, rng: np.random.Generator
) -> None:
    vote = mnb.reduction(combine, init=init, dtype="bool")
    for share in (0, 0.01, 0.99, 1):
        for host in (rng.random(shape) < share, (rng.random(shape) < share).astype(np.float32) / 2):
            got = vote(mnb.asarray(host), axis=0)
            assert got.dtype == np.bool_
            assert np.array_equal(got.read(), want(host, axis=0))
    total = mnb.reduction("a + b", init=0, dtype="bool")(mnb.ones(5))
    assert total.view("uint8").item() == 1


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_the_spread_of_all_64_bits_is_finite(dtype: str, rng: np.random.Generator) -> None:
    info = np.iinfo(dtype)
    for host in (rng.integers(info.min, info.max, 10_000, dtype=dtype), rng.integers(0, 5, 10_000).astype(dtype)):
        np.testing.assert_allclose(mnb.var(mnb.asarray(host)).item(), host.astype(np.float64).var(), rtol=1e-6)
        np.testing.assert_allclose(mnb.std(mnb.asarray(host)).item(), host.astype(np.float64).std(), rtol=1e-6)


def test_an_invalid_reduction_is_refused_at_its_definition() -> None:
    with pytest.raises(mnb.CompileError, match="c") as caught:
        mnb.reduction("a + c", init=0, name="total")
    assert caught.value.diagnostics[0].file == "total combine"
    assert caught.value.diagnostics[0].column == 5
    with pytest.raises(mnb.ArgumentError, match="init must be a number; got 'zero'"):
        mnb.reduction("a + b", init="zero")  # type: ignore[arg-type]
    with pytest.raises(mnb.ArgumentError, match="name must be an identifier"):
        mnb.reduction("a + b", init=0, name="two words")
