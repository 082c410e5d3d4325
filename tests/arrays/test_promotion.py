"""Dtypes: promotion, properties, and the conversion of Python numbers."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import metalnb as mnb

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "bfloat16")
ALL = ("bool", *SIGNED, *UNSIGNED, *FLOATS)


def promoted(one: str, other: str) -> str | None:
    """Promote by the array API's table within a kind, and by NumPy's between integers; floats win over other kinds."""
    if one == other:
        return one
    floats = [d for d in (one, other) if d in FLOATS]
    if floats:
        return floats[0] if len(floats) == 1 else "float32"
    found = str(np.promote_types(one, other))
    return None if found.startswith("float") else found


@pytest.mark.parametrize(("one", "other"), [(a, b) for a in ALL for b in ALL])
def test_two_dtypes_promote_as_the_standard_says(one: str, other: str) -> None:
    expected = promoted(one, other)
    pair = (getattr(mnb, one), getattr(mnb, other))
    if expected is None:
        with pytest.raises(TypeError, match=f"no integer dtype contains both {one} and {other}"):
            mnb.result_type(*pair)
    else:
        assert mnb.result_type(*pair) == getattr(mnb, expected)


@pytest.mark.parametrize("dtype", ALL)
def test_pythons_numbers_are_weak(dtype: str) -> None:
    x = mnb.ones(3, dtype=dtype)
    own = x.dtype
    for scalar, kinds in ((True, ALL), (2, (*SIGNED, *UNSIGNED, *FLOATS)), (2.5, FLOATS)):
        expected = own if dtype in kinds else np.dtype("float32" if isinstance(scalar, float) else "int64")
        assert mnb.result_type(x, scalar) == expected
        if dtype in kinds and dtype != "bool":
            assert (x * scalar).dtype == expected
            assert (scalar * x).dtype == expected


def test_operators_promote_and_refuse_values_that_no_dtype_holds() -> None:
    small, wide = mnb.ones(2, dtype="int8"), mnb.ones(2, dtype="uint8")
    assert (small + wide).dtype == np.int16
    assert (small + mnb.ones(2, dtype="float16")).dtype == np.float16
    assert (small / small).dtype == np.float32
    assert (small < wide).dtype == np.bool_
    with pytest.raises(TypeError, match="add: no integer dtype contains both int8 and uint64"):
        _ = small + mnb.ones(2, dtype="uint64")
    with pytest.raises(OverflowError):
        _ = small + 300


def test_result_type_takes_arrays_dtypes_and_numbers() -> None:
    assert mnb.result_type(mnb.ones(2), mnb.int8, 1, 2.5, True) == np.float32
    assert mnb.result_type("int8", "uint8", "int32") == np.int32
    for bad in ((), (1,), (1.0, True)):
        with pytest.raises(ValueError, match="result_type: needs at least one array or dtype"):
            mnb.result_type(*bad)


@pytest.mark.parametrize("dtype", FLOATS)
def test_finfo_has_each_float_dtypes_limits(dtype: str) -> None:
    info, expected = mnb.finfo(getattr(mnb, dtype)), ml_dtypes.finfo(getattr(mnb, dtype))
    for name in ("eps", "max", "min", "smallest_normal"):
        value = getattr(info, name)
        assert type(value) is float
        assert value == float(getattr(expected, name))
    assert info.bits == expected.bits
    assert info.dtype == getattr(mnb, dtype)
    assert mnb.finfo(mnb.ones(1, dtype=dtype)) == info


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_iinfo_has_each_integer_dtypes_limits(dtype: str) -> None:
    info, expected = mnb.iinfo(dtype), np.iinfo(dtype)
    assert (info.bits, info.min, info.max, info.dtype) == (expected.bits, expected.min, expected.max, np.dtype(dtype))
    assert type(info.max) is int


def test_limits_are_refused_for_other_kinds() -> None:
    with pytest.raises(TypeError, match=r"finfo: takes a floating dtype; got int8\. Use mnb.iinfo"):
        mnb.finfo(mnb.int8)
    with pytest.raises(TypeError, match="iinfo: takes an integer dtype; got bool"):
        mnb.iinfo(mnb.bool)


KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",), "signed integer": SIGNED, "unsigned integer": UNSIGNED, "integral": SIGNED + UNSIGNED,
    "real floating": FLOATS, "complex floating": (), "numeric": SIGNED + UNSIGNED + FLOATS,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_isdtype_knows_the_dtypes_of_each_kind(kind: str) -> None:
    for dtype in ALL:
        assert mnb.isdtype(getattr(mnb, dtype), kind) is (dtype in KINDS[kind])
    assert mnb.isdtype(mnb.int8, (kind, mnb.int8))


def test_isdtype_refuses_an_unknown_kind() -> None:
    with pytest.raises(ValueError, match=r"isdtype: kind is a dtype or one of 'bool'.*got 'float'"):
        mnb.isdtype(mnb.int8, "float")
    assert mnb.isdtype(mnb.int8, mnb.int8)
    assert not mnb.isdtype(mnb.int8, mnb.uint8)


def test_can_cast_loses_nothing() -> None:
    for one, other in itertools.product(ALL, ALL):
        a, b = getattr(mnb, one), getattr(mnb, other)
        assert mnb.can_cast(a, b) is bool(np.can_cast(a, b)), (one, other)
    assert mnb.can_cast(mnb.ones(1), mnb.float32)
    assert not mnb.can_cast(mnb.float32, mnb.float16)
    assert mnb.can_cast(mnb.bfloat16, mnb.float32)


@pytest.mark.parametrize(
    ("given", "want"), [(int, "int64"), (float, "float32"), (bool, "bool"), ("f2", "float16"), (np.int8, "int8")]
)
def test_dtypes_may_be_named_as_in_python_and_numpy(given: Any, want: str) -> None:
    assert mnb.zeros(1, dtype=given).dtype == np.dtype(want)
    assert getattr(mnb, want) == np.dtype(want)


# ---- Results that NumPy's functions narrow.
def test_copyto_narrows_only_on_request() -> None:
    whole, small = mnb.zeros(3, dtype="int32"), mnb.zeros(3, dtype="uint8")
    for dst, src in ((whole, mnb.ones(3)), (whole, 2.5), (small, np.array([300, -1, 5])), (small, [1, 2, 3]),
                     (mnb.zeros(3, dtype="bool"), 1)):  # fmt: skip
        with pytest.raises(TypeError, match=r"np\.copyto: .* is not cast to \w+ by casting='same_kind'"):
            np.copyto(dst, src)
    with pytest.raises(TypeError, match="according to the rule 'same_kind'"):
        np.copyto(np.zeros(3, np.int32), mnb.ones(3))
    with pytest.raises(OverflowError, match="300"):
        np.copyto(small, 300)
    assert not whole.any()
    np.copyto(whole, mnb.asarray([1.5, 2.5, -3.5]), casting="unsafe")
    assert whole.tolist() == [1, 2, -3]
    with pytest.raises(TypeError, match="casting='safe'"):
        np.copyto(mnb.zeros(1, dtype="float16"), mnb.ones(1), casting="safe")
    np.copyto(mnb.zeros(1, dtype="bfloat16"), mnb.ones(1))
    np.copyto(small, 5)
    assert small.tolist() == [5, 5, 5]


def test_the_dtype_of_a_ufunc_is_the_results() -> None:
    x = mnb.asarray([1], dtype="int32")
    for call, dtype in (
        (lambda d: np.add(x, 1, dtype=d), "int64"), (lambda d: np.add(x, 1.5, dtype=d), "float32"),
        (lambda d: np.add(mnb.asarray([0.75]), 1.5, dtype=d), "float16"), (lambda d: np.sin(x, dtype=d), "float32"),
        (lambda d: np.less(x, 2, dtype=d), "bool"), (lambda d: np.add(x, np.array([2.0]), dtype=d), "float32"),
        (lambda d: np.subtract.outer(x, x, dtype=d), "int64"),
    ):  # fmt: skip
        assert call(dtype).dtype == dtype
    for narrowed in (lambda: np.add(x, mnb.asarray([0.75]), dtype=np.int32), lambda: np.add(x, 1.5, dtype=np.int32)):
        with pytest.raises(TypeError, match=r"np\.add: .* is not narrowed to dtype=int32 silently"):
            narrowed()
    with pytest.raises(TypeError, match=r"np\.divide: the result has dtype float32; dtype=int32 was requested"):
        np.divide(x, x, dtype=np.int32)
    with pytest.raises(TypeError, match=r"np\.add: Metal has no float64"):
        np.add(x, x, dtype=np.float64)
