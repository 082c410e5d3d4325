"""The Python array API standard 2024.12: every name is there, with the standard's signature and semantics.

The signatures come from ``array_api_strict``, the standard's strict reference implementation.
"""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import array_api

import metalnb as mnb

pytestmark = pytest.mark.filterwarnings("ignore:Array module metalnb does not have:hypothesis.errors.HypothesisWarning")
strict = pytest.importorskip("array_api_strict")

# MSL has no complex dtype; the others are newer than 2024.12.
ABSENT = {"broadcast_shapes", "isin", "complex64", "complex128", "float64"}
NAMES = sorted(n for n in strict.__all__ if not n.startswith("_") and n not in ABSENT | {
    "Device", "ArrayAPIStrictFlags", "fft", "linalg", "get_array_api_strict_flags", "reset_array_api_strict_flags",
    "set_array_api_strict_flags"})  # fmt: skip
FUNCTIONS = [n for n in NAMES if inspect.isroutine(getattr(strict, n)) and not isinstance(getattr(strict, n), type)]
STRICT = type(strict.ones(1))
METHODS = sorted(n for n in vars(STRICT) if n.startswith("__") and callable(getattr(STRICT, n)) and n != "__new__")
xps = array_api.make_strategies_namespace(mnb, api_version="2024.12")


@pytest.mark.parametrize("name", NAMES)
def test_the_standards_names_exist(name: str) -> None:
    assert hasattr(mnb, name)
    assert name in dir(mnb)


def parameters(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_called_as_the_standard_says(name: str) -> None:
    """Each parameter may be passed by position or by name, or omitted, exactly where the standard allows it."""
    ours, theirs = parameters(getattr(mnb, name)), parameters(getattr(strict, name))
    if any(p.kind is p.VAR_POSITIONAL for p in theirs):
        assert any(p.kind is p.VAR_POSITIONAL for p in ours)
        return
    by_name = {p.name: p for p in ours}
    positions = [p for p in ours if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    for i, p in enumerate(theirs):
        if p.kind is p.POSITIONAL_ONLY:
            assert i < len(positions), f"{name}: {p.name} goes by position"
            mine = positions[i]
        else:
            assert p.name in by_name, f"{name}: {p.name} goes by name"
            mine = by_name[p.name]
            assert mine.kind is not mine.POSITIONAL_ONLY
            if p.kind is p.POSITIONAL_OR_KEYWORD:
                assert mine in positions, f"{name}: {p.name} goes by position too"
        if p.default is not p.empty:
            assert mine.default is not mine.empty, f"{name}: {p.name} may be left out"
            silent = p.default is None or "Undef" in type(p.default).__name__
            assert silent or mine.default == p.default, (name, p.name, mine.default)
    required = [p for p in ours if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    assert len(required) <= len([p for p in theirs if p.default is p.empty]), f"{name} asks for more than the standard"


@pytest.mark.parametrize("name", METHODS)
def test_the_standards_methods_exist(name: str) -> None:
    assert getattr(mnb.Array, name) is not getattr(object, name, None)


def test_namespace_has_the_standards_version_and_info() -> None:
    x = mnb.ones(1)
    assert x.__array_namespace__() is mnb
    assert x.__array_namespace__(api_version="2024.12") is mnb
    with pytest.raises(ValueError, match=r"2024\.12; got api_version='1999.01'"):
        x.__array_namespace__(api_version="1999.01")
    info = mnb.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes() == {"real floating": mnb.float32, "integral": mnb.int64, "indexing": mnb.int64}
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}
    assert set(info.dtypes()) == {"bool", "float32", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))}
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {"bool", "uint8", "uint16", "uint32", "uint64"}
    assert set(info.dtypes(device=info.default_device(), kind="real floating")) == {"float32"}
    with pytest.raises(mnb.EngineUnavailable):
        info.dtypes(device="abacus")


def test_constants_are_those_of_the_standard() -> None:
    assert (mnb.pi, mnb.e, mnb.inf) == (math.pi, math.e, math.inf)
    assert math.isnan(mnb.nan)
    assert mnb.newaxis is None


def test_importing_stays_light_and_pythons_own_names_stay_pythons() -> None:
    code = """
import sys, metalnb
assert "metalnb.library_kernels.op_table" not in sys.modules
from metalnb import engine, errors
assert "metalnb.library_kernels.op_table" not in sys.modules
assert not hasattr(metalnb, "no_such_thing") and not hasattr(metalnb, "_repr_html_")
for name in {*dir(metalnb)} - {"dask"}:  # an extra
    getattr(metalnb, name)
assert metalnb.sum is metalnb.library_kernels.op_table.op("sum")
assert sorted(dir(metalnb)) == dir(metalnb) and metalnb.asarray([True]).dtype == metalnb.bool
try:
    metalnb.no_such_thing
except AttributeError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert out.stdout.strip() == "module 'metalnb' has no attribute 'no_such_thing'", out.stderr


# ---- Semantics, by examples that Hypothesis' array API strategies draw from this namespace.

floats = xps.arrays(dtype=xps.floating_dtypes(sizes=32), shape=xps.array_shapes(max_dims=3, max_side=5),
                    elements={"allow_subnormal": False})  # fmt: skip
numbers = xps.arrays(dtype=xps.real_dtypes(), shape=xps.array_shapes(min_dims=0, max_dims=3, max_side=5))
scalars = xps.boolean_dtypes() | xps.real_dtypes()


@given(scalars, xps.array_shapes(min_dims=0, max_dims=3, max_side=4))
def test_filled_arrays_have_the_requested_value(dtype: Any, shape: tuple[int, ...]) -> None:
    for made, value in ((mnb.zeros(shape, dtype=dtype), 0), (mnb.ones(shape, dtype=dtype), 1)):
        assert made.shape == shape
        assert made.dtype == dtype
        assert bool(mnb.all(made == value))


@given(numbers)
def test_arrays_equal_themselves_through_every_way_out_and_in(x: Any) -> None:
    host = np.asarray(x)
    for back in (mnb.asarray(host), mnb.from_dlpack(x), mnb.asarray(x, copy=True), mnb.reshape(x, x.shape), +x):
        assert back.dtype == x.dtype
        assert np.array_equal(back.read(), host, equal_nan=host.dtype.kind == "f")


@given(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=4))
def test_operators_broadcast_any_two_compatible_shapes(shapes: Any) -> None:
    one, other = (mnb.ones(s) for s in shapes.input_shapes)
    assert (one + other).shape == shapes.result_shape
    assert (np.asarray(one + other) == 2).all()
    assert [b.shape for b in mnb.broadcast_arrays(one, other)] == [shapes.result_shape] * 2


@given(floats)
def test_division_by_zero_and_infinity_matches_numpy(x: Any) -> None:
    host = np.asarray(x)
    with np.errstate(all="ignore"):
        assert np.array_equal((x / 0.0).read(), host / np.float32(0), equal_nan=True)
        assert np.array_equal((x * float("inf")).read(), host * np.float32("inf"), equal_nan=True)


@given(st.data(), numbers.filter(lambda a: a.ndim))
def test_stack_undoes_unstack_and_concat_appends(data: Any, x: Any) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    parts = mnb.unstack(x, axis=axis)
    assert isinstance(parts, tuple)
    joined = mnb.stack(parts, axis=axis) if parts else x
    assert np.array_equal(joined.read(), x.read(), equal_nan=x.dtype.kind == "f")
    twice, host = mnb.concat([x, x], axis=axis).read(), x.read()
    assert np.array_equal(twice, np.concatenate([host, host], axis=axis), equal_nan=x.dtype.kind == "f")


@given(st.data(), xps.array_shapes(max_dims=3, max_side=5))
def test_every_index_of_the_standard_selects_what_numpy_selects(data: Any, shape: tuple[int, ...]) -> None:
    key = data.draw(xps.indices(shape, allow_newaxis=True))
    host = np.arange(math.prod(shape)).reshape(shape)
    assert np.array_equal(mnb.asarray(host)[key].read(), host[key])


def test_set_and_sorting_functions_match_known_results() -> None:
    x = mnb.asarray([3, 1, 2, 1, 3])
    assert mnb.unique_values(x).tolist() == [1, 2, 3]
    values, counts = mnb.unique_counts(x)
    assert counts.tolist() == [2, 1, 2]
    assert mnb.sort(x, descending=True).tolist() == [3, 3, 2, 1, 1]
    assert mnb.argsort(x).tolist() == [1, 3, 2, 0, 4]
    assert mnb.searchsorted(values, x).tolist() == [2, 0, 1, 0, 2]
    assert [a.tolist() for a in mnb.nonzero(x > 2)] == [[0, 4]]


def test_to_device_keeps_the_device_and_refuses_unknown_ones() -> None:
    x = mnb.ones(2, device=mnb.__array_namespace_info__().default_device())
    assert x.to_device(x.device) is x
    with pytest.raises(mnb.EngineUnavailable, match="unknown engine 'abacus'"):
        x.to_device("abacus")
    with pytest.raises(mnb.ArgumentError, match="stream must be None"):
        x.to_device(x.device, stream=1)
