"""Fused functions compared with the same ops called separately: values, dtypes, layouts, caching, and refusals."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb import engine as engines
from metalnb.library_kernels.planning import device

EDGES = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e38, 1e-40, 0.5], np.float32)


def polynomial(a: Any, b: Any) -> Any:
    return (a * b + a) * b - a


def choices(a: Any, b: Any) -> Any:
    m = (a > b) & ~mnb.isnan(a) | (b == 0)
    return mnb.where(m, -a, abs(b) + 1) / 3


def functions(a: Any, b: Any) -> Any:
    return np.exp(-abs(a)) + mnb.gelu(b) + mnb.clip(a, -1, 0.25) * mnb.leaky_relu(b, 0.2) - np.maximum(a, 2)


def constants(a: Any, b: Any) -> Any:
    return 2 - a + (1e-3 / (b + float("inf"))) + np.float32(0.1) + (a**2 % 3) // 2


def questions(a: Any, b: Any) -> Any:
    return mnb.logical_and(a, b) ^ (a <= b)


FUNCTIONS = (polynomial, choices, functions, constants, questions)


@pytest.fixture
def pair() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    grid = np.meshgrid(EDGES, EDGES)
    return grid[0].copy(), grid[1].copy()


@pytest.mark.long(every=3)  # 3 divides neither count: each function and each layout is among them
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("layout", ["plain", "transposed", "broadcast", "strided"])
def test_fused_result_equals_separate_ops(function: Callable[..., Any], layout: str, pair: Any) -> None:
    a, b = (mnb.asarray(p, copy=True) for p in pair)
    if layout == "transposed":
        a = a.mT
    elif layout == "broadcast":
        a, b = a[0], b[:, :1]
    elif layout == "strided":
        a, b = a[::-1, 1::3], b[1:, ::3][: a.shape[0] - 1, :3].mT.mT
        a = a[1:]
    got, expected = mnb.fuse(function)(a, b), function(a, b)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert np.array_equal(got.read(), expected.read(), equal_nan=True)


def test_results_written_past_the_caches(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "FAR" if mnb.use(None).caps.serial else "NEVER", 1 << 10)
    x, y = rng.standard_normal((2, 5003)).astype(np.float32)
    a, b = (mnb.asarray(v, copy=True) for v in (x, y))
    chain = mnb.fuse(lambda p, q, c: (p * q + p) * q - p / c)
    with np.errstate(all="ignore"):
        expected = (x * y + x) * y - x / np.float32(3)
    assert np.array_equal(chain(a, b, 3.0).numpy(), expected)
    assert np.array_equal(chain(a, a, 3.0).numpy(), (x * x + x) * x - x / np.float32(3))
    clamped = mnb.fuse(lambda p, q: mnb.maximum(mnb.relu(p) - 0.5, q) * mnb.abs(p))
    assert np.array_equal(clamped(a, b).numpy(), np.maximum(np.maximum(x, 0) - np.float32(0.5), y) * abs(x))
    assert np.array_equal(mnb.fuse(lambda p, q: mnb.where(p > q, p, q) * p)(a, b).numpy(), np.where(x > y, x, y) * x)
    one, two = mnb.fuse(lambda p, q: (p + q, p - q))(a, b)
    assert np.array_equal(one.numpy(), x + y)
    assert np.array_equal(two.numpy(), x - y)
    half = a.astype(mnb.float16)
    assert np.array_equal(mnb.fuse(lambda p, q: p * q)(half, b).numpy(), half.numpy().astype(np.float32) * y)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_rounded_once(dtype: str, rng: np.random.Generator) -> None:
    a, b = (mnb.asarray(rng.standard_normal(1000).astype(np.float32)).astype(dtype) for _ in range(2))
    got = mnb.fuse(polynomial)(a, b)
    exact = polynomial(*(x.astype("float32") for x in (a, b))).astype(dtype)
    assert got.dtype == a.dtype
    assert np.array_equal(got.read(), exact.read())
    assert mnb.fuse(polynomial)(a, b.astype("float32")).dtype == mnb.float32


def test_numbers_change_without_a_new_kernel() -> None:
    traced = []

    @mnb.fuse
    def blend(a: Any, b: Any, share: float = 0.5, *, turned: bool = False) -> Any:
        traced.append(turned)
        return b * share - a if turned else a * share + b * (1 - share)

    a, b = mnb.asarray([1.0, 2.0]), mnb.asarray([3.0, 4.0])
    assert blend(a, b).tolist() == [2, 3]
    assert blend(a, b, 0.25).tolist() == [2.5, 3.5]
    assert blend(a, b, share=1.0).tolist() == [1, 2]
    assert blend(a, b, 2.0, turned=True).tolist() == [5, 6]
    assert traced == [False, True]
    assert blend(a, b, share=1).tolist() == [1, 2]
    assert traced == [False, True, False], "an integer promotes otherwise"
    assert "in_share" in blend.source


def test_bools_in_fused_functions_are_masks() -> None:
    m, x = mnb.asarray([True, False]), mnb.asarray([1.0, 2.0])
    assert mnb.fuse(lambda m, x: mnb.where(m, x, 0))(m, x).tolist() == [1, 0]
    assert mnb.fuse(lambda m, x: m * x + m)(m, x).tolist() == [2, 0]
    got = mnb.fuse(lambda m, n: m & ~n)(m, ~m)
    assert (got.dtype, got.tolist()) == (mnb.bool, [True, False])
    one = mnb.fuse(lambda m: mnb.where(m, 1.0, 0.5))(m)
    assert (one.dtype, one.tolist()) == (mnb.float32, [1, 0.5])


def test_an_argument_that_is_not_used_does_not_count() -> None:
    assert mnb.fuse(lambda a, b: a + 1)(mnb.ones(2), mnb.ones(3)).tolist() == [2, 2]
    assert mnb.fuse(lambda a: a)(mnb.ones(2)).tolist() == [1, 1]


def test_a_fused_function_is_a_part_of_another() -> None:
    inner = mnb.fuse(polynomial)

    @mnb.fuse
    def outer(a: Any, b: Any) -> Any:
        return inner(a, b) * 2

    a, b = mnb.asarray([1.5]), mnb.asarray([2.0])
    assert outer(a, b).tolist() == [2 * v for v in polynomial(a, b).tolist()]
    assert outer.source.count("kernel void") == 1
    assert "polynomial" in repr(inner)
    assert inner.__wrapped__ is polynomial


def test_arguments_may_differ_in_a_suffix() -> None:
    """No name in the kernels is made of an argument's name and a suffix, which another argument may have."""
    x = mnb.ones(3)
    every = mnb.fuse(lambda x, x_, x_s, xStep: x + x_ * x_s - xStep / 2)
    assert every(x, x * 2, x * 3, x * 4).tolist() == [5.0] * 3
    total = mnb.fuse(lambda x, x_: (x - x_ * 3).sum(axis=-1))
    assert float(total(x, x)) == -6


def shift(a: Any, /, b: Any = 1, *rest: Any, c: Any = 2, **options: Any) -> Any:
    assert not rest
    return a * b - c + sum(value * 10**i for i, value in enumerate(options.values()))


@pytest.mark.parametrize("options", [
    {}, {"c": 5}, {"b": 2.5}, {"d": 1, "e": 2}, {"e": 2, "d": 1}, {"d": 1.5}, {"options": 3, "rest": 4},
])  # fmt: skip
def test_parameters_of_every_kind_are_fused(options: dict[str, Any]) -> None:
    fused, x = mnb.fuse(shift), mnb.asarray(np.array([1, 2], np.int8))
    for given in (options, {**options, "array": x}, options):
        got, expected = fused(x, **given), shift(x, **given)
        assert (got.dtype, got.tolist()) == (expected.dtype, expected.tolist())
    b = options.get("b", 3)
    assert fused(x, b, c=x).tolist() == shift(x, b, c=x).tolist()


def test_several_results_are_a_kernel_each() -> None:
    @mnb.fuse
    def both(a: Any, b: Any) -> Any:
        total = a + b
        return total * 2, mnb.exp(a) > 1, b

    a, b = mnb.asarray([0.0, 1.0]), mnb.asarray([[1.0], [3.0]])
    one, two, three = both(a, b)
    assert one.tolist() == [[2, 4], [6, 8]]
    assert (two.tolist(), two.dtype) == ([False, True], mnb.bool)
    assert three.tolist() == [[1], [3]]
    assert both.source.count("kernel void") == 3
    assert both.source.count("exp_f_(") == 2  # its definition, and its use by one of them


def test_results_of_the_same_arrays_are_one_kernel() -> None:
    @mnb.fuse
    def parts(a: Any, b: Any) -> Any:
        total = a + b
        return total, a > b, (a - b).astype(mnb.int32), mnb.max(total, axis=-1)

    a, b = mnb.asarray([0.0, 1.0, -3.5]), mnb.asarray([[1.0], [3.0]])
    expected = (a + b, a > b, (a - b).astype(mnb.int32), mnb.max(a + b, axis=-1))
    for got, wanted in zip(parts(a, b), expected, strict=True):
        assert got.dtype == wanted.dtype
        assert got.tolist() == wanted.tolist()
    assert parts.source.count("kernel void fused_(") == 1


@pytest.mark.long(every=3)  # test_promotion tests all pairs, without compiling
@pytest.mark.parametrize(
    ("one", "other"),
    [("bool", "int8"), ("int8", "uint16"), ("int64", "int32"), ("uint64", "int8"), ("int32", "float16"),
     ("int16", "float32")],
)  # fmt: skip
def test_fused_dtypes_promote_as_those_of_separate_ops(one: str, other: str) -> None:
    def mixed(a: Any, b: Any) -> Any:
        where: Any = np.where if isinstance(a, np.ndarray) else mnb.where
        return (a * b + a) * 3 - b, where(a > b, a, b), abs(b) // 7 + a

    a = mnb.asarray(np.array([0, 1, 2, 100, 101]).astype(one))
    b = mnb.asarray(np.array([5, 120, 3, 0, 7]).astype(other))
    if one == "uint64" and other in {"int8", "int32"}:
        with pytest.raises(TypeError, match="no integer dtype contains both"):
            mnb.fuse(mixed)(a, b)
        return
    wide = mixed(a.read().astype(np.float64), b.read().astype(np.float64))
    for got, expected, exact in zip(mnb.fuse(mixed)(a, b), mixed(a, b), wide, strict=True):
        assert got.dtype == expected.dtype
        # a fused 16-bit float is rounded once at the end, separate ops round at each step
        halves = str(got.dtype).endswith("float16")
        assert np.array_equal(got.read(), exact.astype(np.float16) if halves else expected.read())


def test_casts_are_those_of_astype(rng: np.random.Generator) -> None:
    def casts(a: Any) -> Any:
        return (
            a.astype("int32") * 2, mnb.astype(a, mnb.float16).astype("float32") - a, a.astype(bool),
            (a > 0).astype("uint8"), a.astype("bfloat16").astype(mnb.float32),
        )  # fmt: skip

    a = mnb.asarray((100 * rng.standard_normal(1000)).astype(np.float32))
    for got, expected in zip(mnb.fuse(casts)(a), casts(a), strict=True):
        assert got.dtype == expected.dtype
        assert np.array_equal(got.read(), expected.read())


def test_integers_given_as_numbers_stay_exact() -> None:
    add = mnb.fuse(lambda a, n: a * n + n)
    a = mnb.asarray(np.array([1, 2**40], np.int64))
    assert add(a, 2**20 + 1).tolist() == [2 * (2**20 + 1), (2**40 + 1) * (2**20 + 1)]
    assert add(mnb.asarray(np.array([3], np.int8)), 5).dtype == mnb.int8
    assert add(a, 0.5).dtype == mnb.float32
    assert add(mnb.ones(2, dtype=mnb.float16), 0.1).dtype == mnb.float16
    assert add(mnb.ones(2, dtype=mnb.float16), np.float32(0.1)).dtype == mnb.float32
    with pytest.raises(OverflowError, match="int64 cannot hold 1180591620717411303424"):
        add(a, 2**70)


SUM, POWER = (lambda x, k: x + k), (lambda x, k: x**k)
NUMBERS = (
    *((SUM, d, k) for d, k in (
        ("uint8", -1), ("uint8", 300), ("uint8", 255), ("int32", 2**40), ("int8", -128), ("uint64", 2**63),
        ("uint64", 2**64), ("uint64", np.uint64(2**63)), ("uint64", -1), ("int64", 2**63), ("int64", np.int8(-3)),
    )),
    (lambda x, k: x < k, "uint8", -1), (lambda x, k: mnb.where(x > 1, k, x), "uint8", 300),
    (lambda x, k: x + (2 * k - 1), "uint8", 0), (lambda x, k: x + (2 * k - 1), "uint8", 128),
    (lambda x, k: x + (k // 2 % 7 + abs(~k & 6 ^ 1)), "uint8", 300), (lambda x, k: x + ((k << 3) | 1), "uint8", 40),
    (lambda x, k: x + k**2, "uint8", 20), (lambda x, k: x + k**2, "uint8", -5),
    *((POWER, d, k) for d, k in (
        ("int32", 3), ("int32", -1), ("uint8", 300), ("float32", -1), ("int32", np.int8(3)), ("int32", np.int8(-3)),
        ("int32", np.array([0, 1, 2], np.int8)), ("int32", np.array([0, 1, -2], np.int8)), ("int8", 2.0),
    )),
    (lambda x, k: x ** (k - 1), "int32", 1), (lambda x, k: x ** (k - 1), "int32", 0), (lambda x, k: k**x, "int32", 3),
)  # fmt: skip


@pytest.mark.parametrize(("function", "dtype", "number"), NUMBERS)
def test_numbers_are_accepted_or_refused_as_by_separate_ops(function: Any, dtype: str, number: Any) -> None:
    x = mnb.asarray(np.array([0, 1, 2], dtype))
    fused = mnb.fuse(function)
    try:
        expected = function(x, mnb.asarray(number) if isinstance(number, np.ndarray) else number)
    except (OverflowError, ValueError) as error:
        for _ in range(2):
            with pytest.raises(type(error), match=r"cannot hold|negative power"):
                fused(x, number)
    else:
        got = fused(x, number)
        assert (got.dtype, got.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.parametrize("constants", [
    ((2,), (2.0,), (True,), (np.int16(2),), (np.float32(2),)), (((1,), "a"), ((True,), "a"), ((1.0,), "a")),
    (frozenset((1,)), frozenset((1.0,)), frozenset((True,))), ((0.0,), (-0.0,)),
])  # fmt: skip
def test_constants_that_are_equal_may_differ_in_type(constants: Any) -> None:
    def scale(x: Any, options: Any) -> Any:
        (factor, *_) = options
        return x * (factor[0] if isinstance(factor, tuple) else factor)

    fused, x = mnb.fuse(scale), mnb.asarray(np.array([1, 2], np.int8))
    for options in (*constants, *constants):
        got, expected = fused(x, options), scale(x, options)
        assert got.dtype == expected.dtype
        assert got.numpy().tobytes() == expected.numpy().tobytes()


def test_a_number_is_checked_at_each_call() -> None:
    x = mnb.asarray(np.array([0, 1, 2], np.uint8))
    fused = mnb.fuse(SUM)
    assert fused(x, 255).tolist() == [255, 0, 1]
    with pytest.raises(OverflowError, match=r"uint8 cannot hold 256 .line .* Pass mnb\.asarray.256. for a wider"):
        fused(x, 256)
    with pytest.raises(OverflowError, match=r"int64 cannot hold .* Pass a float"):
        fused(mnb.ones(2), 2**63)


REDUCTIONS = {"sum": mnb.sum, "max": mnb.max, "min": mnb.min, "mean": mnb.mean}


@pytest.mark.long(unless=lambda how: how == "mean")  # A mean is a sum and one more step; test_library covers the others
@pytest.mark.parametrize("how", REDUCTIONS)
def test_fused_function_may_end_with_a_reduction(how: str, rng: np.random.Generator) -> None:
    def rows(a: Any, b: Any) -> Any:
        return REDUCTIONS[how](mnb.exp(a) * b + 1, axis=-1)

    fused = mnb.fuse(rows)
    bound = 2 * mnb.sum.row.tolerance["float32"] * 2.0**-23 if how in {"sum", "mean"} else 0  # each may have this error
    for shape in ((5,), (3, 33), (2, 3, 100), (4, 1), (1000, 7), (2, 70000), (300000,), (0, 4)):
        a = mnb.asarray(rng.standard_normal(shape).astype(np.float32))
        b = mnb.asarray(rng.random(shape[-1:], dtype=np.float32))
        got, expected = fused(a, b), rows(a, b)
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        assert np.allclose(got.read(), expected.read(), rtol=bound, atol=0), shape
        if a.ndim > 1 and a.shape[0] > 1:
            turned = fused(a.mT.copy().mT, b)  # column-major memory
            assert np.allclose(turned.read(), expected.read(), rtol=bound, atol=0), shape


# A sum of bool, a minimum of uint64 and a mean of bfloat16 remain: each path to a result dtype.
@pytest.mark.long(every=4)
@pytest.mark.parametrize(
    ("how", "dtype"),
    [("sum", "bool"), ("sum", "int8"), ("mean", "uint16"), ("mean", "int64"), ("min", "uint64"), ("max", "bool"),
     ("sum", "float16"), ("max", "bfloat16"), ("mean", "bfloat16")],
)  # fmt: skip
def test_reductions_have_the_dtypes_of_the_ops(how: str, dtype: str) -> None:
    for shape in ((2, 9), (2, 50_000)):
        a = mnb.asarray(np.arange(math.prod(shape)).reshape(shape) % 3 == 1).astype(dtype)
        expected = REDUCTIONS[how](a, axis=-1, keepdims=True)
        got = mnb.fuse(lambda a: REDUCTIONS[how](a, axis=-1, keepdims=True))(a)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert got.tolist() == expected.tolist()


def test_fused_reductions_treat_nan_and_empty_rows_as_the_ops_do() -> None:
    a = mnb.asarray(np.array([[1, np.nan, 2], [-np.inf, 3, np.inf]], np.float32))
    top = mnb.fuse(lambda a: mnb.max(-a, axis=-1))
    assert np.array_equal(top(a).read(), mnb.max(-a, axis=-1).read(), equal_nan=True)
    assert mnb.fuse(lambda a: mnb.sum(a, axis=-1))(mnb.ones((2, 0))).tolist() == [0, 0]
    with pytest.raises(ValueError, match="no elements to choose from"):
        top(mnb.ones((2, 0)))
    with pytest.raises(ValueError, match="max over the last axis of 0-d arrays"):
        top(mnb.asarray(1.0))


def test_fused_function_shows_its_kernels() -> None:
    fused = mnb.fuse(polynomial)
    assert fused._repr_html_() is None
    assert "polynomial" in fused._repr_mimebundle_()["text/plain"]
    fused(mnb.ones(2), mnb.ones(2))
    assert fused.card.signature.name.startswith("fused_")
    shown = fused._repr_mimebundle_()
    assert shown["text/plain"] == f"<metalnb.fuse of polynomial(a, b): 1 kernel on {engines.current().name}>"
    words = re.sub(r"<style.*?</style>|<[^>]*>", "", shown["text/html"].partition("<details>")[0])
    assert words.split() == f"polynomial(a, b) runs as: 1 kernel on {engines.current().name}".split()
    assert "Metal source" in shown["text/html"]
    several = mnb.fuse(lambda a: (a + 1, mnb.sum(a, axis=-1)))
    several(mnb.ones((2, 2)))
    assert f": 2 kernels on {engines.current().name}>" in repr(several)


class Scaling:
    """Scale an array."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self._kernels = "not the fused function's"

    def __call__(self, a: Any) -> Any:
        return decide(a) if self.factor < 0 else a * self.factor


def test_partial_functions_and_callable_objects_are_fused() -> None:
    half = mnb.fuse(functools.partial(polynomial, b=mnb.full(2, 2.0)))
    assert half(mnb.ones(2)).tolist() == polynomial(np.ones(2), np.full(2, 2.0)).tolist()
    assert repr(half).startswith("<metalnb.fuse of polynomial(a")
    scaled = mnb.fuse(Scaling(3))
    assert scaled(mnb.ones(2)).tolist() == [3, 3]
    assert repr(scaled) == f"<metalnb.fuse of Scaling(a): 1 kernel on {engines.current().name}>"
    assert "Scale an array." in scaled._repr_html_()
    with pytest.raises(TypeError, match=r"Scaling: a condition of an array .* \(line \d+ of .*test_fuse.py\)"):
        mnb.fuse(Scaling(-1))(mnb.ones(2))


@pytest.mark.parametrize("function", [max, np.sort, functools.lru_cache(polynomial), int, 5])
def test_callables_not_written_in_python_are_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="fuse: takes a function written in Python, to trace it; got "):
        mnb.fuse(function)


def test_fused_function_reads_numpy_arrays() -> None:
    fused = mnb.fuse(polynomial)
    with pytest.raises(ValueError, match="nothing is compiled before its first call"):
        _ = fused.source
    assert fused(np.ones(2, np.float32), mnb.ones(2)).tolist() == [1, 1]
    assert mnb.compile(str(fused.source)).kernels


def decide(a: Any) -> Any:
    if a > 0:
        return a
    return -a


REFUSED = (
    (decide, (mnb.ones, 2), TypeError, r"decide: a condition of an array .* \(line \d+ of .*test_fuse.py\)"),
    (lambda a: a * float(a), (mnb.ones, 2), TypeError, "the value of an array is not known"),
    (lambda a: mnb.sum(a), (mnb.ones, 2), TypeError, r"sum is fused only over the last axis; got axis=None .line \d+"),  # noqa: PLW0108
    (lambda a: a.max(0), (mnb.ones, 2), TypeError, "max is fused only over the last axis; got axis=0"),
    (lambda a: mnb.max(a, 0), (mnb.ones, 2), TypeError, "max is fused only over the last axis; got axis=0"),
    (lambda a: mnb.sum(a, axis=-1, dtype=mnb.float32), (mnb.ones, 2), TypeError, "sum cannot be fused with dtype="),
    (lambda a: a.sum(axis=-1) + 1, (mnb.ones, 2), TypeError, r"add cannot use the result of sum, .*line \d+"),
    (lambda a: mnb.cumulative_sum(a), (mnb.ones, 2), TypeError, "cumulative_sum: takes an array; got Traced"),  # noqa: PLW0108
    (lambda a: a.cumsum(), (mnb.ones, 2), AttributeError, r"has no \.cumsum .*at the end sum, max, min and mean"),
    (lambda a: a[0], (mnb.ones, 2), TypeError, r"x\[…\] is not elementwise"),
    (lambda a: [a, a], (mnb.ones, 2), TypeError, "array computed from its arguments, or a tuple of them; got list"),
    (lambda a: 3.0, (mnb.ones, 2), TypeError, "got float"),
    (lambda a: mnb.where(a, a, 1), (mnb.arange, 2), TypeError, "where: condition must be bool; got int64"),
    (lambda a: a.astype(mnb.int8) + 300, (mnb.ones, 2), OverflowError, "int8 cannot hold 300"),
    (lambda a: a + 1 > a.astype("complex64"), (mnb.ones, 2), TypeError, "arrays cannot have the dtype complex64"),
    (lambda a: a ** (a + 1), (mnb.arange, 2), TypeError, "pow of integers is fused only if the power is an argument"),
    (lambda a: a + mnb.ones(2), (mnb.ones, 2), TypeError, "Array, which is not an argument of the fused function"),
    (lambda a: a & 1, (mnb.ones, 2), TypeError, "bitwise_and takes bool and integers; got float32"),
    (lambda a: mnb.nextafter(a, 1), (mnb.ones, 2), TypeError, "nextafter cannot be fused: it depends on the dtype"),
)


@pytest.mark.parametrize(("function", "made", "error", "why"), REFUSED, ids=[r[3][:30] for r in REFUSED])
def test_unfusable_functions_are_refused(function: Any, made: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        mnb.fuse(function)(made[0](made[1]))


def test_unsuitable_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="needs an array among its arguments"):
        mnb.fuse(lambda a: a + 1)(2.0)
    with pytest.raises(TypeError, match="must be arrays, numbers or hashable values"):
        mnb.fuse(lambda a, b: a + b[0])(mnb.ones(2), [1, 2])
    with pytest.raises(TypeError, match=r"<lambda>: arguments in \*rest are not fused\. Give each argument a param"):
        mnb.fuse(lambda a, *rest: a + rest[0])(mnb.ones(2), mnb.ones(2))
    for keyword in ("a", "a b"):
        with pytest.raises(TypeError, match=f"'{keyword}' cannot name an argument in ..options. Rename it"):
            mnb.fuse(lambda a, /, **options: a + options.popitem()[1])(mnb.ones(2), **{keyword: 1})
    with pytest.raises(TypeError, match="missing a required argument"):
        mnb.fuse(polynomial)(mnb.ones(2))
