"""Common to every elementwise op: dtypes, scalars, out, in place, errors; and edge cases outside any tolerance."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.library_kernels import op_table
from metalnb.library_kernels.elementwise.elementwise_op import Elementwise
from metalnb.library_kernels.planning import device
from metalnb.library_kernels.planning.device import device_of
from metalnb.library_kernels.planning.elementwise_plan import Strip, plan_elementwise

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def op(name: str) -> Any:
    return op_table.op(name)


def of(*values: Any, dtype: str = "float32") -> Any:
    return mnb.asarray(np.array(values, mnb.asarray([0], dtype=dtype).dtype))


# --- dtypes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "one", "other", "result"), [
    ("add", "int8", "int16", "int16"), ("add", "uint8", "int8", "int16"), ("add", "int32", "float16", "float16"),
    ("add", "float16", "bfloat16", "float32"), ("add", "bool", "int8", "int8"), ("add", "bool", "bool", "bool"),
    ("divide", "int64", "int64", "float32"), ("divide", "int8", "float16", "float16"),
    ("less", "int8", "float32", "bool"), ("logical_and", "float32", "int8", "bool"),
    ("atan2", "int32", "int32", "float32"), ("pow", "uint8", "uint16", "uint16"),
    ("bitwise_and", "bool", "uint8", "uint8"), ("maximum", "bfloat16", "int64", "bfloat16"),
])  # fmt: skip
def test_operands_are_promoted_to_the_expected_dtype(name: str, one: str, other: str, result: str) -> None:
    assert op(name)(of(1, dtype=one), of(1, dtype=other)).dtype.name == result


@pytest.mark.parametrize(("dtype", "scalar", "result"), [
    ("int8", 1, "int8"), ("int8", 1.5, "float32"), ("float16", 1, "float16"), ("float16", 1.5, "float16"),
    ("bool", 1, "int64"), ("bool", True, "bool"), ("bool", 0.5, "float32"), ("bfloat16", 0.5, "bfloat16"),
    ("uint64", 2, "uint64"), ("float32", np.float64(0.5), "float32"), ("float16", np.float32(0.5), "float32"),
])  # fmt: skip
def test_scalars_of_python_are_weak(dtype: str, scalar: Any, result: str) -> None:
    x = of(1, 0, dtype=dtype)
    for got, expected in ((op("add")(x, scalar), [1 + scalar, scalar]), (op("add")(scalar, x), [1 + scalar, scalar])):
        assert got.dtype.name == result
        assert got.tolist() == expected if result != "bool" else [True, True]


def test_integers_and_bool_become_float32_for_float_ops() -> None:
    for dtype in ("bool", *INTEGERS):
        assert op("exp")(of(1, 0, dtype=dtype)).dtype == np.float32
        assert op("exp")(of(1, 0, dtype=dtype)).tolist() == [pytest.approx(np.e), 1]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: op("add")(of(1, dtype="uint64"), of(1, dtype="int8")), r"add: no integer dtype contains both"),
    (lambda: op("subtract")(of(True, dtype="bool"), of(True, dtype="bool")), r"subtract: takes int8, .* got bool"),
    (lambda: op("negative")(of(True, dtype="bool")), r"negative: takes .* got bool"),
    (lambda: op("bitwise_and")(of(1.0), of(2.0)), r"bitwise_and: takes bool, .* got float32"),
    (lambda: op("where")(of(1), of(1), of(2)), r"where: condition must be bool; got float32. Pass condition != 0."),
    (lambda: op("add")(of(1), "one"), r"add: takes arrays and numbers; got str"),
    (lambda: op("add")(of(1), 1j), r"add: takes arrays and numbers; got complex"),
    (lambda: op("add")(of(1), np.ones(1)), r"float64"),
    (lambda: op("add")(of(1)), r"add: takes \(x1, x2, /, \*, out=None\); got 1 operand"),
    (lambda: op("exp")(of(1), of(2)), r"exp: takes \(x, /, \*, out=None\); got"),
    (lambda: op("leaky_relu")(of(1), steep=2), r"leaky_relu: takes .*steep=2"),
    (lambda: op("leaky_relu")(of(1), 1, slope=2), r"leaky_relu: takes"),
    (lambda: op("leaky_relu")(of(1), slope="a"), r"leaky_relu: slope must be numbers"),
    (lambda: op("add")(of(1), of(1), out=np.ones(1, np.float32)), r"add: out must be a metalnb array"),
    (lambda: op("add")(of(1.5), 1, out=of(1, dtype="int32")), r"add: a result of float32 does not fit into out of"),
])  # fmt: skip
def test_unsupported_types_and_signatures_are_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: op("add")(of(1, 2), of(1, 2, 3)), ValueError, r"add: shapes \(2,\) and \(3,\) do not broadcast"),
    (lambda: op("add")(of(1, 2), 1, out=of(1, 2, 3)), ValueError, r"add: out must have .* \(2,\); got \(3,\)"),
    (lambda: op("add")(of(1, dtype="int8"), 300), OverflowError, r"add: int8 cannot hold 300. Pass mnb.asarray\(300\)"),
    (lambda: op("pow")(of(2, dtype="int32"), -1), ValueError, r"pow: an integer to a negative power .* power -1"),
    (lambda: op("pow")(of(2, dtype="int32"), of(3, -2, dtype="int8")), ValueError, r"pow: .* got the power -2"),
    (lambda: op("gelu")(of(1), approximate="erf"), ValueError, r"gelu: approximate must be .*; got 'erf'"),
])  # fmt: skip
def test_invalid_shapes_and_values_are_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_negative_powers_of_floats_are_accepted() -> None:
    assert op("pow")(of(2.0), -1).tolist() == [0.5]
    assert op("pow")(of(2.0), of(-2, dtype="int8")).tolist() == [0.25]
    assert op("pow")(2.0, of(-2, dtype="int8")).tolist() == [0.25]


# --- out, in place, overlap ------------------------------------------------------------------------------------------


def test_out_may_be_any_view(rng: np.random.Generator) -> None:
    x, y = (rng.random((33, 34), np.float32) for _ in range(2))
    for key in (np.s_[:, :], np.s_[::-1, ::-1], np.s_[::2, 1::3], np.s_[5:, :7]):
        into = mnb.asarray(np.zeros((33, 34), np.float32))
        part = into[key]
        expected = np.zeros((33, 34), np.float32)
        expected[key] = x[key] + y[key]
        arguments = mnb.asarray(x)[key], mnb.asarray(y)[key]
        assert op("add")(*arguments, out=part) is part
        np.testing.assert_array_equal(into.numpy(), expected)
        turned = mnb.asarray(np.zeros((34, 33), np.float32))
        op("sqrt")(mnb.asarray(x), out=turned.T)
        np.testing.assert_array_equal(turned.numpy(), np.sqrt(x).T)


def test_out_of_a_wider_dtype_is_converted() -> None:
    assert op("add")(of(1, dtype="int8"), 1, out=of(0, dtype="float32")).tolist() == [2]
    assert op("less")(of(1), of(2), out=of(0, dtype="int16")).tolist() == [1]
    assert op("add")(of(1.0), 0.5, out=of(0, dtype="float16")).tolist() == [1.5]


def test_an_out_that_repeats_its_elements_is_refused() -> None:
    one = of(1.0)
    with pytest.raises(ValueError, match="add: out repeats its elements"):
        op("add")(of(1, 2), 1, out=one.viewed(np.broadcast_to(one.host, (2,))))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_overlapping_views_are_as_if_copied(dtype: str) -> None:
    n = 100_000
    pairs = ((np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[:], np.s_[::-1]), (np.s_[::2], np.s_[: n // 2]))
    for to, source in pairs:
        host = np.arange(n).astype(dtype)
        x = mnb.asarray(host, copy=True)
        host[to] += host[source].copy()
        x[to] += x[source]
        np.testing.assert_array_equal(x.numpy(), host)


@pytest.mark.usefixtures("shared_memory")
def test_memory_that_is_shared_with_numpy_may_overlap() -> None:
    host = np.arange(1000, dtype=np.float32)
    expected = host.copy()
    expected[1:] += expected[:-1].copy()
    op("add")(mnb.asarray(host[1:]), mnb.asarray(host[:-1]), out=mnb.asarray(host[1:]))
    np.testing.assert_array_equal(host, expected)


def test_operators_in_place_write_into_the_same_memory() -> None:
    x = of(1, 2, 3)
    kept = x
    for _ in range(3):
        x += 1
        x *= of(2, 2, 2)
    assert x is kept
    assert x.tolist() == [22, 30, 38]
    y = of(1, 2, dtype="int32")
    with pytest.raises(TypeError, match="float32 does not fit into out of int32"):
        y += 0.5


def test_second_call_reuses_the_binding() -> None:
    add = op("add")
    x, y = of(1, 2, 3), of(4, 5, 6)
    add(x, y, out=x)
    add(x, y)
    plans = len(add._plans)
    assert add(x, y).tolist() == add(x, y, out=x).tolist() == [9, 12, 15]
    assert len(add._plans) == plans


# --- edges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    "negative", "sqrt", "cbrt", "expm1", "log1p", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf",
    "floor", "ceil", "trunc", "round", "reciprocal", "degrees", "positive", "softsign", "silu", "mish", "gelu",
])  # fmt: skip
def test_zeros_keep_their_signs(name: str) -> None:
    values = np.array([0.0, -0.0, -0.25, np.inf, -np.inf], np.float32)
    with np.errstate(all="ignore"):
        expected = op(name).row.reference(values.astype(np.float64))
    got = op(name)(mnb.asarray(values)).read()
    shown = ~np.isnan(expected)
    assert np.signbit(got[shown]).tolist() == np.signbit(expected[shown]).tolist()


def test_zeros_keep_their_signs_in_pairs() -> None:
    pairs = np.meshgrid([0.0, -0.0, 1, -1, 6], [0.0, -0.0, 3, -3, np.inf, -np.inf])
    x, y = (a.ravel().astype(np.float32) for a in pairs)
    for name in ("copysign", "remainder", "fmod", "atan2", "floor_divide", "multiply", "nextafter"):
        reference = op(name).row.reference
        with np.errstate(all="ignore"):
            expected = reference(x, y)
        got = op(name)(mnb.asarray(x), mnb.asarray(y)).read()
        np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=name)
        shown = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[shown], np.signbit(expected)[shown], err_msg=name)


@pytest.mark.long(unless=lambda dtype: dtype in {"int8", "uint64"})  # Every dtype has the same guard
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint32", "uint64"])
def test_division_of_integers_by_zero_does_not_end_the_process(dtype: str) -> None:
    """In a separate process: a trap would end this one."""
    code = f"dtype = {dtype!r}" + """
import numpy as np, metalnb as mnb
from metalnb.library_kernels import op_table
info = np.iinfo(dtype)
x = np.array([1, info.min, info.max, 0, info.min], dtype)
y = np.array([0, 0, 0, 0, -1 if info.min else 1], dtype)
for name in ("floor_divide", "remainder", "fmod"):
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    assert op_table.op(name)(mnb.asarray(x), mnb.asarray(y)).tolist() == want.tolist(), (name, dtype)
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "alive\n", done.stderr


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Write short results past the caches, as long ones are; return whether the engine does so."""
    serial = mnb.use(None).caps.serial
    monkeypatch.setattr(device, "FAR" if serial else "NEVER", 8)
    return serial


@pytest.mark.long(every=4)  # 4 does not divide the counts: each length and each start remains
@pytest.mark.parametrize("start", [0, 1, 7, 15, 16])
@pytest.mark.parametrize("n", [5, 17, 40, 1027, 70003])
def test_results_written_past_the_caches(short: bool, start: int, n: int, rng: np.random.Generator) -> None:
    """From any position in a cache line, with any remainder; with NaN, infinities and the memory around the result."""
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    x[::5], x[3::7], y[::11] = np.nan, np.inf, 0
    whole = np.full(n + 40, 42, np.float32)
    if short:
        strips = [Strip((1,), 0)] * 2
        assert plan_elementwise((n,), strips, device_of(mnb.use(None).caps), 8).kinds == "UV"
        lent = whole[start : start + n]  # NumPy's memory, with any alignment
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "fma", "abs", "relu", "relu6"):
        arguments = (x, y, y[::-1])[: len(op(name).formula.operands)]
        with np.errstate(all="ignore"):
            expected = op(name).row.reference(*(v.astype(np.float64) for v in arguments)).astype(np.float32)
        a, *rest = (mnb.asarray(v, copy=True) for v in arguments)
        assert np.array_equal(op(name)(a, *rest).numpy(), expected, equal_nan=True), name
        out = mnb.asarray(lent, copy=False) if short else mnb.empty(n)
        op(name)(a, *rest, out=out).wait()
        assert np.array_equal(out.numpy(), expected, equal_nan=True), name
        if len(arguments) == 2:
            with np.errstate(all="ignore"):
                expected = op(name).row.reference(x, np.float32(3))
            op(name)(a, 3, out=a).wait()
            assert np.array_equal(a.numpy(), expected, equal_nan=True), name
    assert (whole[:start] == 42).all()
    assert (whole[start + n :] == 42).all()


@pytest.mark.usefixtures("short")
@pytest.mark.long(unless=lambda dtype: dtype in {"int8", "int64"})  # The extremes; float32 is above
@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float32", "int64"])
def test_any_dtype_is_written_past_the_caches(dtype: str, rng: np.random.Generator) -> None:
    """A cache line holds 64 to 8 elements."""
    x, y = (v.astype(np.float32) for v in rng.integers(-100, 100, (2, 70_003)))
    a, b = (mnb.asarray(v).astype(dtype) for v in (x, y))
    assert np.array_equal(mnb.where(a < b, a, b).astype("float32").numpy(), np.minimum(x, y))
    assert np.array_equal((a - 3).copy().astype("int16").numpy(), (x - 3).astype(np.int16))


@pytest.mark.usefixtures("shared_memory")
@pytest.mark.long  # Seconds, and gigabytes; the tests above take the same path for smaller arrays
def test_arrays_of_more_than_two_to_the_31_bytes_are_computed_whole() -> None:
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 6 * 2**30:
        pytest.skip("needs 6 GiB of free memory")
    n = 2**31 + 1025
    host = np.zeros(n, np.int8)
    host[[0, 1, 2**31 - 1, 2**31, -1]] = [1, -2, 3, -4, 5]
    x = mnb.asarray(host)
    op("bitwise_invert")(x, out=x).wait()
    assert host[[0, 1, 2, 2**31 - 1, 2**31, 2**31 + 1, -1]].tolist() == [-2, 1, -1, -4, 3, -1, -6]
    assert (host[7::4099] == -1).all()
    far = x[2**31 - 8 :]
    op("add")(far, 1, out=far).wait()
    assert host[-1] == -5
    assert host[2**31] == 4
    assert host[2**31 - 9] == -1


# --- an op as an object ----------------------------------------------------------------------------------------------


def test_an_op_describes_itself() -> None:
    add = op("add")
    assert add.__name__ == add.__qualname__ == "add"
    head = "x1 + x2; of bool: or.\n\nParameters\n----------\nx1, x2 : Array or number\n    Of any dtype."
    assert add.__doc__.startswith(head)
    assert "Python array API standard 2024.12, ``add``" in add.__doc__
    assert repr(add) == "<metalnb.add(x1, x2, /, *, out=None): x1 + x2; of bool: or.>"
    assert "x + y" in add.source
    assert "sum_of(x, y)" in add.source
    assert "gelu_of(x)" in op("gelu").source


def test_the_source_of_every_op_is_a_cell_that_compiles() -> None:
    for name in ("exp", "where", "softplus"):
        for cell in op(name).source.split("// ")[1:2]:
            assert mnb.compile("// " + cell, math="precise").kernels


def test_op_names_and_aliases_are_unique() -> None:
    names = [n for o in op_table.ops().values() for n in (o.name, *o.row.aliases)]
    assert len(names) == len(set(names))
    assert op("arcsin") is op("asin")
    assert isinstance(op("power"), Elementwise)


# ---- Methods of NumPy's ufuncs.
def test_the_outer_of_a_ufunc_takes_numbers_and_lists() -> None:
    x, host = mnb.asarray([1.0, 2.0]), np.array([1.0, 2.0], np.float32)
    for one, other in ((2, x), (x, 2), (x, x), ([1.0, 2.0, 3.0], x), (x, [3.0])):
        plain = [host if p is x else p for p in (one, other)]
        got, expected = np.subtract.outer(one, other), np.subtract.outer(*plain)
        assert isinstance(got, mnb.Array)
        assert got.shape == expected.shape
        assert np.array_equal(got.read(), expected)


def test_divmod_of_python_is_numpys() -> None:
    x, host = mnb.asarray([5.0, -5.0]), np.array([5, -5], np.float32)
    for one, other in ((x, 3), (7, x), (x, x), (x, np.float32(2))):
        expected = divmod(*(host if v is x else v for v in (one, other)))  # type: ignore[operator]
        assert all(np.array_equal(a.read(), b) for a, b in zip(divmod(one, other), expected, strict=True))


def test_divmod_writes_both_outputs() -> None:
    x, rest = mnb.asarray([5.0, -5.0]), mnb.zeros(2)
    quotient, remainder = np.divmod(x, 3, out=(x, rest))  # x is read before it is written
    assert quotient is x
    assert remainder is rest
    assert x.tolist() == [1, -2]
    assert rest.tolist() == [2, 1]
    assert np.divmod(rest, 2, out=(None, x))[1] is x
    with pytest.raises(TypeError, match=r"np\.divmod: where=… is for ufuncs of one result"):
        np.divmod(x, 2, where=mnb.asarray([True, False]))


# ---- Errors that a docstring states.
def test_only_ops_that_round_state_an_error() -> None:
    for op in (op for op in op_table.ops().values() if isinstance(op, Elementwise)):
        exact = op.formula.result == "bool" or "f" not in op.kinds
        assert not (exact and op.row.tolerance), op.name
        assert ("units in the last place" in op.__doc__) == (op.row.tolerance.get("float32", 0) > 0.5), op.name


def test_sine_and_cosine_of_mixed_magnitudes_match_numpy(rng: np.random.Generator) -> None:
    bits = rng.integers(0, 0x7F800000, 5000).astype(np.uint32)
    x = np.concatenate([bits, bits | 0x80000000]).astype(np.uint32).view(np.float32)
    x[::7] = rng.uniform(-7e4, 7e4, x[::7].size)  # on either side of 2^16
    for name in ("sin", "cos"):
        expected = getattr(np, name)(x.astype(np.longdouble)).astype(np.float64)
        got = getattr(mnb, name)(mnb.asarray(x)).numpy()
        assert np.all(np.abs(got - expected) <= 4 * np.spacing(np.abs(expected).astype(np.float32))), name
    beyond = np.array([np.inf, 1.0, -np.inf, np.nan, -0.0], np.float32)
    assert np.array_equal(np.isnan(mnb.sin(mnb.asarray(beyond)).numpy()), [True, False, True, True, False])
    assert np.array_equal(np.isnan(mnb.cos(mnb.asarray(beyond)).numpy()), [True, False, True, True, False])
    assert np.signbit(mnb.sin(mnb.asarray(beyond)).numpy()[4])


@pytest.mark.parametrize("shape", [(389, 17), (64, 5, 33), (7, 6, 5, 40), (131, 1, 70), (2, 5000), (300, 1025)])
def test_rows_that_a_threadgroup_takes_together(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    wide = rng.standard_normal((*shape[:-1], shape[-1] + 5)).astype(np.float32)
    x, given = wide[..., 2:-3], mnb.asarray(wide)[..., 2:-3]
    chained = mnb.fuse(lambda a, b: (a * b + a, a - b))
    for d in range(len(shape)):  # an operand that is constant along one axis, or along all but one
        for other in (x.take([0], d), x[tuple(slice(None) if e == d else slice(0, 1) for e in range(len(shape)))]):
            y = mnb.asarray(np.ascontiguousarray(other))
            assert np.array_equal((given + y).numpy(), x + other)
            assert np.array_equal((y - given).numpy(), other - x)
            for got, expected in zip(chained(given, y), (x * other + x, x - other), strict=True):
                assert np.allclose(got.numpy(), expected, rtol=1e-6, atol=1e-6)
    assert np.array_equal(given.copy().numpy(), x)
    assert np.array_equal((-given[-1:, ..., 3:]).numpy(), -x[-1:, ..., 3:])
    room = mnb.zeros(wide.shape)
    room[..., 1:-4] = given
    mnb.negative(given, out=room[..., 1:-4])
    assert np.array_equal(room.numpy()[..., 1:-4], -x)
    assert not room.numpy()[..., -4:].any()
    assert not room.numpy()[..., 0].any()


@pytest.mark.parametrize(("base", "power"), [
    (np.array([2, 4], np.float32), -1),
    (np.float32(2), np.array([-1, -2], np.int32)),
    (2.0, np.array([-1], np.int8)),
])  # fmt: skip
def test_a_float_has_negative_powers_whatever_holds_it(base: Any, power: Any) -> None:
    """A NumPy array, a NumPy scalar or a Python float beside an array of metalnb."""
    on_device = [mnb.asarray(v) if isinstance(v, np.ndarray) and v.dtype.kind == "i" else v for v in (base, power)]
    assert np.array_equal(np.asarray(mnb.pow(*on_device)), np.power(base, power, dtype=np.float32))


def test_hypot_is_accurate_at_every_magnitude(rng: np.random.Generator) -> None:
    """From the smallest denormal numbers, whose squares are 0, to the largest number, whose square is infinite."""
    x = rng.integers(0, 0x7F800000, 20_000, np.uint32).view(np.float32)
    y = np.where(np.arange(x.size) % 3, x * rng.random(x.size, np.float32), x[::-1])
    x[:4], y[:4] = [1.285e-42, 3e-42, 1e-42, 1e-45], [1.377e-42, 4e-42, 0, 1e-45]
    with np.errstate(over="ignore"):
        expected = np.hypot(x.astype(np.float64), y.astype(np.float64))
        x, y, expected = (v[expected < np.finfo(np.float32).max] for v in (x, y, expected))
    got = op("hypot")(mnb.asarray(x), mnb.asarray(y)).numpy()
    assert np.all(np.abs(got - expected) <= 1.5 * np.spacing(expected.astype(np.float32)))
