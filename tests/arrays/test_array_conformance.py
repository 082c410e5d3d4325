"""Regressions found by the array API standard's test suite, and by users of other libraries."""

from __future__ import annotations

import ctypes
import inspect
import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import metalnb as mnb

KEYS = (
    (True,), (False,), (np.True_,), (True, True), (slice(1, None), True), (..., False), (0, True), (True, 0),
    (None, True), (True, [0, 1]), ([1, 0], True, slice(2)), (True, ...), (..., True, 0),
)  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_zero_dimensional_mask_keeps_all_or_nothing(key: Any) -> None:
    host = np.arange(12, dtype=np.int32).reshape(3, 4)
    for own in (key, tuple(mnb.asarray(k) if isinstance(k, (bool, np.bool_)) else k for k in key)):
        assert np.array_equal(mnb.asarray(host)[own].read(), host[key])
        ours, theirs = mnb.asarray(host, copy=True), host.copy()
        ours[own] = 7
        theirs[key] = 7
        assert np.array_equal(ours.read(), theirs)


def test_zero_dimensional_mask_selects_from_a_zero_dimensional_array() -> None:
    x = mnb.asarray(3)
    assert x[mnb.asarray(True)].tolist() == [3]
    assert x[x > 5].shape == (0,)
    x[x > 2] = 1
    assert int(x) == 1
    with pytest.raises(IndexError, match="1 index for an array of 0 axes"):
        _ = x[True, 0]


def test_an_empty_array_is_taken_without_a_copy() -> None:
    for take in (mnb.from_dlpack, mnb.asarray):
        for lent in (np.zeros((0, 3), np.float32), mnb.zeros((0, 3))):
            assert take(lent, copy=False).shape == (0, 3)
    with pytest.raises(ValueError, match="copy=False, but the dtype float64 must be converted"):
        mnb.asarray(np.zeros(0), dtype="float32", copy=False)
    with pytest.raises(ValueError, match="copy=False, but a list"):
        mnb.asarray([], dtype="float32", copy=False)


@pytest.mark.parametrize("k", [2**31, 2**40, -(2**31) - 1, -(2**63), 3, -3, 2])
def test_diagonals_may_lie_anywhere(k: int) -> None:
    near = max(min(k, 9), -9)
    host = np.arange(12).reshape(3, 4)
    assert mnb.eye(3, 4, k=k).tolist() == np.eye(3, 4, near).tolist()
    assert mnb.diagonal(mnb.asarray(host), k).tolist() == host.diagonal(near).tolist()
    for name in ("tril", "triu"):
        assert getattr(mnb, name)(mnb.asarray(host), k=k).tolist() == getattr(np, name)(host, near).tolist()


def test_broadcast_arrays_gives_a_list_and_takes_lists() -> None:
    x = mnb.ones((2, 1))
    result = mnb.broadcast_arrays(x, [1, 2, 3], 4.0)
    assert type(result) is list
    assert [(a.shape, str(a.dtype)) for a in result] == [((2, 3), d) for d in ("float32", "int64", "float32")]
    assert mnb.broadcast_arrays() == []
    assert [a.shape for a in np.broadcast_arrays(x, [1, 2, 3])] == [(2, 3)] * 2


def test_real_numbers_have_the_parts_of_complex_ones() -> None:
    x = mnb.asarray([1.5, -2.0])
    for whole in (x.real, mnb.real(x), mnb.conj(x), x.conj(), np.real(x), np.conj(x)):
        assert whole.tolist() == [1.5, -2.0]
    for none in (x.imag, mnb.imag(x), np.imag(x)):
        assert none.tolist() == [0, 0]
    assert mnb.imag(mnb.asarray([3])).dtype == mnb.int64


# ---- Memory that is lent ---------------------------------------------------------------------------------------------


def test_dlpack_is_asked_as_the_standard_says() -> None:
    x = mnb.ones(3)
    names = {"stream", "max_version", "dl_device", "copy"}
    assert names == inspect.signature(x.__dlpack__).parameters.keys()
    assert "versioned" in str(x.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=True))
    assert "versioned" not in str(x.__dlpack__())
    with pytest.raises(BufferError, match="no streams; got stream=1"):
        x.__dlpack__(stream=1)


class Lent:
    """An array as PyTorch and JAX export bfloat16: a capsule whose dtype NumPy does not know."""

    def __init__(self, bits: Any, code: int = 4) -> None:
        self.bits, self.code = bits, code

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.bits.__dlpack__(**options)
        for name, place in ((b"dltensor", 20), (b"dltensor_versioned", 52)):
            find = ctypes.pythonapi.PyCapsule_GetPointer
            find.argtypes, find.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
            if f'"{name.decode()}"' in str(capsule):
                ctypes.c_uint8.from_address(find(capsule, name) + place).value = self.code
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.bits.__dlpack_device__()


@pytest.mark.usefixtures("shared_memory")
def test_bfloat16_goes_through_dlpack() -> None:
    bits = np.array([1.0, -2.5, np.nan], ml_dtypes.bfloat16).view(np.uint16)
    for take in (mnb.from_dlpack, mnb.asarray):
        x = take(Lent(bits))
        assert x.dtype == mnb.bfloat16
        assert np.array_equal(x.view("uint16").read(), bits)
    x[0] = 4.0
    assert bits[0] == np.array(4, ml_dtypes.bfloat16).view(np.uint16)  # the same memory
    back = mnb.from_dlpack(x)
    assert back.dtype == mnb.bfloat16
    assert back.block.host.ctypes.data == x.block.host.ctypes.data
    with pytest.raises(BufferError, match="NumPy cannot import it"):
        mnb.from_dlpack(Lent(bits, code=6))


def test_jax_lends_and_takes_bfloat16() -> None:
    jnp = pytest.importorskip("jax.numpy")
    assert mnb.from_dlpack(jnp.asarray([1.5, 2], jnp.bfloat16)).tolist() == [1.5, 2]
    assert jnp.from_dlpack(mnb.asarray([1.5, 2], dtype="bfloat16")).tolist() == [1.5, 2]


@pytest.mark.usefixtures("shared_memory")
def test_the_array_interface_holds_the_memory() -> None:
    x = mnb.arange(12, dtype="float32").reshape(3, 4)
    for part in (x, x.T, x[::-1, 1::2], x[1], x[:0]):
        lent = SimpleNamespace(__array_interface__=part.__array_interface__)
        seen = np.asarray(lent)
        del lent
        viewers = part.block.viewers  # dispatches are waited for while a view exists
        same = np.array_equal(seen, part.read())
        shared = np.shares_memory(seen, x.read())
        del seen
        assert same
        assert not part.size or (shared and viewers == 1)
        assert x.block.viewers == 0
    assert not hasattr(mnb.ones(2, dtype="bfloat16"), "__array_interface__")
    assert np.asarray(mnb.ones(2, dtype="bfloat16")).dtype == ml_dtypes.bfloat16


@pytest.mark.usefixtures("shared_memory")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 688: Python 3.12's buffer protocol")
def test_an_array_is_a_buffer() -> None:
    x = mnb.arange(6, dtype="float32").reshape(2, 3)
    with memoryview(x) as seen:  # type: ignore[arg-type]
        assert (seen.format, seen.shape, seen.readonly) == ("f", (2, 3), False)
        seen[1, 2] = 9.0
        assert x.block.viewers > 0
    assert x[1, 2] == 9
    assert x.block.viewers == 0


# ---- Numbers ---------------------------------------------------------------------------------------------------------


def test_round_takes_decimals_and_refuses_negative_ones_of_integers() -> None:
    x = mnb.asarray([2.567, -0.35, 1234.5])
    assert round(x).tolist() == x.round().tolist() == [3, 0, 1234]
    host = x.read()
    for n in (2, -2):
        for got in (round(x, n), x.round(n), np.round(x, n), np.around(x, decimals=n)):
            assert np.allclose(got.read(), np.round(host, n), rtol=2**-23)
    assert round(mnb.asarray([5]), 2).tolist() == [5]
    with pytest.raises(TypeError, match="int64 has no decimals to the left"):
        round(mnb.asarray([15]), -1)


def test_signs_of_zeros_are_zeros() -> None:
    signs = mnb.sign(mnb.asarray([-0.0, 0.0]))
    assert not np.signbit(signs.read()).any()


def test_floor_divide_of_infinities_matches_python() -> None:
    """An infinite dividend gives NaN, an infinite divisor of the opposite sign -1: the standard allows both."""
    x = np.array([np.inf, -np.inf, 5, -5, 5, -5, 0, -0.0], np.float32)
    y = np.array([2, 2, np.inf, np.inf, -np.inf, -np.inf, np.inf, np.inf], np.float32)
    with np.errstate(invalid="ignore"):
        assert (mnb.asarray(x) // mnb.asarray(y)).tolist()[2:] == (x // y).tolist()[2:] == [0, -1, -1, 0, 0, 0]
        assert np.isnan((mnb.asarray(x) // mnb.asarray(y)).read()[:2]).all()


@pytest.mark.parametrize("name", ["rsqrt", "hard_sigmoid", "hardswish", "sigmoid"])
def test_result_does_not_depend_on_an_elements_position(name: str, rng: np.random.Generator) -> None:
    """The result is the same in a vector, after the last vector, alone, and in strided memory."""
    op = getattr(mnb, name)
    values = (rng.random(64) * 10 - 3.5 * (name != "rsqrt")).astype(np.float32)
    for value in values:
        row = np.full(1027, value)
        answers = {*op(mnb.asarray(row)).tolist(), *op(mnb.asarray(row)[::3]).tolist(), float(op(mnb.asarray(value)))}
        assert len(answers) == 1, value


@pytest.mark.parametrize("name", ["hard_sigmoid", "hardswish"])
def test_hard_activations_do_not_cancel(name: str) -> None:
    x = np.nextafter(np.float32(-3), np.float32(0)) + np.arange(40, dtype=np.float32) * np.float32(2**-22)
    exact = (x.astype(np.float64) + 3) / 6 * (x.astype(np.float64) if name == "hardswish" else 1)
    assert np.max(np.abs(getattr(mnb, name)(mnb.asarray(x)).read() / exact - 1)) < 2 * 2**-23


# ---- NumPy's options -------------------------------------------------------------------------------------------------


def test_a_ufunc_takes_where() -> None:
    host = np.arange(6, dtype=np.float32)
    x, mask = mnb.asarray(host), host > 2
    for chosen in (mask, mnb.asarray(mask)):
        out, expected = mnb.full(6, 9.0), np.full(6, 9, np.float32)
        assert np.add(x, 1, out=out, where=chosen) is out
        assert out.tolist() == np.add(host, 1, out=expected, where=mask).tolist()
        assert np.add(x, 1, where=chosen).tolist() == [0, 0, 0, 4, 5, 6]
        assert np.less(x, 4, where=chosen).dtype == mnb.bool
        plain = np.full(6, 9, np.float32)
        assert np.multiply(x, 2, out=plain, where=chosen).tolist() == [9, 9, 9, 6, 8, 10]
    np.copyto(x, -1.0, where=mask)
    assert x.tolist() == [0, 1, 2, -1, -1, -1]
    with pytest.raises(TypeError, match=r"np\.add\.reduce: where=… is for ufuncs of one result"):
        np.add.reduce(x, where=mask)


def test_another_librarys_type_decides_what_to_do_with_ours() -> None:
    class Quantity:
        def __array_ufunc__(self, ufunc: np.ufunc, *_given: Any, **_options: Any) -> str:
            return ufunc.__name__

        def __array_function__(self, function: Any, *_given: Any) -> str:
            return str(function.__name__)

    x, metre = mnb.ones(3), Quantity()
    assert np.add(x, metre) == np.add(metre, x) == "add"
    assert np.add(x, x, out=(metre,)) == "add"
    assert np.concatenate([x, metre]) == "concatenate"


def test_numpys_numbers_compare_from_both_sides() -> None:
    x, two = mnb.arange(4, dtype="float32"), np.float64(2)
    assert (two < x).tolist() == (x > two).tolist() == [False, False, False, True]
    assert (two == x).tolist() == (x == two).tolist() == [False, False, True, False]
    assert (np.int64(2) >= x).tolist() == [True, True, True, False]
    with pytest.raises(TypeError, match="Metal has no float64"):
        np.less(np.full(4, two), x)


def test_only_unsupported_options_of_a_ufunc_are_named() -> None:
    x = mnb.ones(3)
    with pytest.raises(TypeError, match=r"^np\.add\.reduce: initial= is not supported for metalnb's arrays\."):
        np.add.reduce(x, keepdims=True, initial=3)
    with pytest.raises(TypeError, match=r"^np\.add: casting=, order= are not supported for metalnb's arrays\."):
        np.add(x, x, casting="unsafe", order="F", dtype="float32")
    assert np.add.reduce(x, keepdims=True, axis=0).tolist() == [3]


def test_an_out_that_does_not_fit_is_named() -> None:
    x = mnb.ones(3)
    with pytest.raises(TypeError, match=r"^np\.add: argument 'out' has dtype float32 and shape \(2,\); the result has"):
        np.add(x, x, out=mnb.ones(2))
    with pytest.raises(TypeError, match=r"^np\.divmod: argument 'out\[1\]' has dtype int32 and shape \(3,\);"):
        np.divmod(x, 2, out=(mnb.ones(3), mnb.ones(3, dtype="int32")))
    with pytest.raises(TypeError, match=r"^np\.sum: argument 'out' has dtype float32 and shape \(3,\)"):
        np.sum(x, out=mnb.ones(3))


def test_a_function_without_an_op_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^np\.unwrap: metalnb has no op for it\. Pass x\.numpy\(\) for NumPy's own"):
        np.unwrap(mnb.ones(3))
    with pytest.raises(TypeError, match=r"^np\.spacing: metalnb has no op for it\."):
        np.spacing(mnb.ones(3))


def test_like_functions_take_another_shape() -> None:
    x = mnb.ones((2, 3), dtype="int16")
    for name in ("empty_like", "zeros_like", "ones_like"):
        for made in (getattr(mnb, name)(x, shape=(4,)), getattr(np, name)(x, shape=(4,))):
            assert (made.shape, made.dtype) == ((4,), mnb.int16)
    assert mnb.full_like(x, 3, shape=2, dtype="float32").tolist() == [3, 3]
