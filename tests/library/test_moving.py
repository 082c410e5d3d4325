"""Moving data: views and copies, conversions, broadcasting, and refusals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import metalnb as mnb
from metalnb.library_kernels.planning.reshape_plan import reshape_strides

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32")


@pytest.mark.long(every=5)  # A bool, an unsigned integer and a float, each converted from all others
@pytest.mark.parametrize("to", [*DTYPES, "bfloat16"])
def test_any_dtype_becomes_any_other(to: str) -> None:
    numbers = np.array([0, 1, 2, 3, 100, 0, 7, 127])
    for given_ in DTYPES:
        host = numbers.astype(given_)
        got = mnb.array(host).astype(to)
        assert got.dtype == getattr(mnb, to)
        assert np.array_equal(got.read().astype(np.float64), host.astype(getattr(mnb, to)).astype(np.float64)), given_


def test_special_numbers_are_converted_as_ieee_754_says() -> None:
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-8, 65520, 70000, 1.0009766, 3.3895e38], np.float32)
    with np.errstate(over="ignore"):
        for to in ("float16", "bfloat16"):
            expected = special.astype(getattr(mnb, to)).astype(np.float32)
            got = mnb.array(special).astype(to).astype("float32").read()
            assert np.array_equal(got, expected, equal_nan=True), to
            assert np.array_equal(np.signbit(got[1:]), np.signbit(expected[1:]))
    assert mnb.array(special[:4]).astype("bool").tolist() == [True, True, True, False]
    assert mnb.array(np.array([-1.9, 1.9], np.float32)).astype("int32").tolist() == [-1, 1]


def test_conversion_to_the_same_dtype_may_return_the_array() -> None:
    x = mnb.ones(3)
    assert x.astype("float32", copy=False) is x
    assert x.astype("float32") is not x


def test_views_share_memory_and_copies_do_not() -> None:
    x = mnb.zeros((2, 3, 4))
    views: list[Any] = [
        mnb.reshape(x, (6, 4)), x.reshape(-1), mnb.permute_dims(x, (2, 0, 1)), mnb.squeeze(x[:1], 0), mnb.flip(x),
        mnb.expand_dims(x, axis=1), mnb.moveaxis(x, 0, -1), mnb.swapaxes(x, 0, 2), mnb.matrix_transpose(x), x.mT,
        mnb.broadcast_to(x, (5, 2, 3, 4)), mnb.diagonal(x), *mnb.unstack(x), *mnb.broadcast_arrays(x, x[0]), x[:, ::2],
        x[:, ::2].reshape(2, 2, 2, 2), x.ravel(),
    ]  # fmt: skip
    copies: list[Any] = [
        mnb.reshape(x, (6, 4), copy=True), x.flatten(), x.mT.reshape(-1), mnb.concat([x]), mnb.stack([x]),
        mnb.roll(x, 0),
        mnb.repeat(x, 1), mnb.tile(x, 1), mnb.tril(x), x.copy(), x[[0, 1]],
    ]  # fmt: skip
    x.fill(1)
    for i, view in enumerate(views):
        assert bool((view == 1).all()), i
    for i, copied in enumerate(copies):
        assert not copied.any(), i


@pytest.mark.parametrize(("shift", "axis"), [
    (np.int64(2), None), ((1, 2), None), ((1, 2), 0), (np.array([1, -1]), 1), (1, (0, 1)), (np.uint8(1), np.int32(-1)),
    ((1,), (0, 1)), (np.array(2), 1), ((1, 2), (0, 0)), ((), ()), (-7, None),
])  # fmt: skip
def test_shifts_of_any_integer_type_are_broadcast_to_axes(shift: Any, axis: Any) -> None:
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(mnb.roll(mnb.asarray(host), shift, axis).read(), np.roll(host, shift, axis))


@given(st.data(), hnp.array_shapes(max_dims=4, max_side=4, min_side=0))
def test_a_reshape_is_a_view_exactly_when_numpys_is(data: Any, shape: tuple[int, ...]) -> None:
    host = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    host = host.transpose(data.draw(st.permutations(range(host.ndim))))
    host = host[tuple(slice(None, None, data.draw(st.sampled_from([1, -1, 2]))) for _ in host.shape)]
    factors = [n for n in host.shape if n != 1]
    data.draw(st.randoms()).shuffle(factors)
    cut = data.draw(st.integers(0, len(factors)))
    to = (int(np.prod(factors[:cut], dtype=int)), *factors[cut:], 1)
    strides = reshape_strides(host.shape, host.strides, to, host.itemsize)
    try:
        expected = np.reshape(host, to, copy=False)
    except ValueError:
        assert strides is None
    else:
        assert strides is not None
        assert host.size == 0 or all(s == w for s, w, n in zip(strides, expected.strides, to, strict=True) if n > 1)


@given(st.data(), hnp.array_shapes(max_dims=4, max_side=5))
def test_copies_of_any_layout(data: Any, shape: tuple[int, ...]) -> None:
    host = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    key = tuple(slice(None, None, data.draw(st.sampled_from([1, -1, 2, -3]))) for _ in shape)
    x = mnb.array(host).transpose(order)[key]
    assert np.array_equal(x.copy().read(), host.transpose(order)[key])
    wide = (2, *x.shape)
    assert np.array_equal(mnb.broadcast_to(x, wide).copy().read(), np.broadcast_to(x.read(), wide))


@pytest.mark.parametrize(
    "shape", [(1, 1), (31, 33), (64, 64), (65, 130), (257, 1025), (1000, 3), (3, 1000), (2, 129, 67)]
)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
def test_copies_of_transposed_views_match_numpy(shape: tuple[int, ...], dtype: str) -> None:
    host = (np.arange(np.prod(shape)) % 2000).reshape(shape).astype(dtype)
    x = mnb.array(host)
    for order in itertools.permutations(range(len(shape))):
        assert np.array_equal(x.transpose(order).copy().read(), host.transpose(order))
        assert np.array_equal(x.transpose(order)[1:, ::-1].copy().read(), host.transpose(order)[1:, ::-1])
        out = mnb.empty(x.transpose(order).shape, dtype=dtype)
        out.transpose(np.argsort(order))[...] = x
        assert np.array_equal(out.read(), host.transpose(order))


def test_joining_promotes_dtypes() -> None:
    got = mnb.concat([mnb.ones(2, dtype="int8"), mnb.ones(1, dtype="float16"), mnb.zeros(1, dtype="bool")])
    assert got.dtype == np.float16
    assert got.tolist() == [1, 1, 1, 0]
    assert mnb.concat([mnb.ones((2, 2)), mnb.zeros(1)], axis=None).tolist() == [1, 1, 1, 1, 0]
    assert mnb.stack([mnb.ones(2, dtype="int8"), mnb.ones(2, dtype="uint8")]).dtype == np.int16


def test_repeats_may_differ_by_element() -> None:
    x = mnb.arange(6).reshape(3, 2)
    assert mnb.repeat(x, [0, 2, 1], axis=0).tolist() == [[2, 3], [2, 3], [4, 5]]
    assert mnb.repeat(x, mnb.asarray([1, 3]), axis=1).tolist() == np.repeat(x.read(), [1, 3], axis=1).tolist()
    assert mnb.repeat(x, mnb.asarray(2)).size == 12
    assert mnb.repeat(x, np.array([True, False, True]), axis=0).tolist() == [[0, 1], [4, 5]]


def test_diff_prepends_and_appends() -> None:
    x = mnb.asarray([1, 4, 9, 16])
    assert mnb.diff(x, prepend=mnb.asarray([0])).tolist() == [1, 3, 5, 7]
    for host in (np.array([[1, 4], [9, 16]], np.int32), np.array([[1, 4], [9, 16]], np.float32)):
        for options in ({"prepend": 0}, {"append": 2, "axis": 0}, {"prepend": 0.5, "append": 3, "n": 2}):
            got, expected = (np.diff(v, **options) for v in (mnb.asarray(host), host))
            assert np.array_equal(got.read(), expected)
    assert mnb.diff(x, append=mnb.asarray([25]), n=2).tolist() == [2, 2, 2]


def test_many_axes_are_accepted_if_they_merge() -> None:
    host = np.arange(2**9).reshape((2,) * 9)
    x = mnb.array(host)
    assert np.array_equal((x + x.copy()).read(), host * 2)
    with pytest.raises(ValueError, match="9 axes that cannot be merged"):
        x.transpose().copy()


@pytest.mark.parametrize(
    ("call", "error", "why"),
    [
        (
            lambda x: mnb.reshape(x, (4, 2)),
            ValueError,
            r"reshape: 6 elements of shape \(2, 3\) cannot have shape \(4, 2\)",
        ),
        (lambda x: mnb.reshape(x, (-1, -1)), ValueError, "reshape: .* at most one -1; got"),
        (lambda x: mnb.reshape(x, 2.5), TypeError, "reshape: a shape must consist of integers; got 2.5"),
        (lambda x: mnb.reshape(x.T, -1, copy=False), ValueError, "reshape: .* cannot be viewed as"),
        (lambda x: mnb.permute_dims(x, (0, 2)), ValueError, "permute_dims: axis 2 is out of bounds"),
        (lambda x: mnb.permute_dims(x, (0, 0)), ValueError, "permute_dims: an axis appears twice"),
        (lambda x: mnb.permute_dims(x, (0,)), ValueError, "axes must name each of the array's 2 axes once"),
        (lambda x: mnb.squeeze(x, 0), ValueError, r"squeeze: axis 0 must have length 1; got 2"),
        (
            lambda x: mnb.expand_dims(x, axis=4),
            IndexError,
            "expand_dims: axis 4 is out of bounds: the array has axes -3 to 2",
        ),
        (
            lambda x: mnb.broadcast_to(x, (2, 4)),
            ValueError,
            r"broadcast_to: shape \(2, 3\) does not broadcast to \(2, 4\)",
        ),
        (lambda x: mnb.broadcast_arrays(x, x.T), ValueError, r"broadcast_arrays: shapes \(2, 3\) and \(3, 2\)"),
        (
            lambda x: mnb.concat([x, x.T]),
            ValueError,
            r"concat: shapes \(2, 3\) and \(3, 2\) must be equal except on axis 0",
        ),
        (lambda x: mnb.concat([]), ValueError, "concat: needs at least one array"),
        (lambda x: mnb.concat(x[0, 0]), TypeError, "concat: takes a sequence of arrays"),
        (
            lambda x: mnb.concat([x.astype("int64"), x.astype("uint64")]),
            TypeError,
            "concat: no integer dtype contains both",
        ),
        (lambda x: mnb.stack([x, x.T]), ValueError, "stack: the shapes must be equal"),
        (lambda x: mnb.roll(x, (1, 2, 3), axis=(0, 1)), ValueError, "roll: shift and axis must have the same length"),
        (lambda x: mnb.roll(x, 1.5), TypeError, "roll: shift must be an integer, or a tuple of integers; got 1.5"),
        (lambda x: mnb.repeat(x, -1), ValueError, "repeat: repeats must be 0 or more; got -1"),
        (lambda x: mnb.repeat(x, [1, 2], axis=1), ValueError, "must be one integer or 3 non-negative integers"),
        (lambda x: mnb.repeat(x, [1, -2, 3], axis=1), ValueError, "repeat: repeats must be 0 or more; got -2"),
        (lambda x: mnb.repeat(x[:, :1], [[2]], axis=1), ValueError, r"got int64 of shape \(1, 1\)"),
        (lambda x: mnb.tile(x, (1, -1)), ValueError, "tile: repetitions must be 0 or more"),
        (lambda x: mnb.flip(x, axis=2), IndexError, "flip: axis 2 is out of bounds"),
        (lambda x: mnb.flip([1, 2]), TypeError, "flip: takes an array; got list. Pass mnb.asarray"),
        (lambda x: mnb.diagonal(x[0]), ValueError, "diagonal: x must have at least 2 axes"),
        (lambda x: mnb.unstack(x[0, 0]), ValueError, "unstack: x must have at least one axis"),
        (lambda x: mnb.diff(x, n=-1), ValueError, "diff: n must be 0 or more"),
        (lambda x: mnb.moveaxis(x, (0, 1), 0), ValueError, "source and destination must have the same number"),
        (lambda x: mnb.astype(x, "complex64"), TypeError, "astype: arrays cannot have the dtype complex64"),
        (lambda x: mnb.astype(x, np.float64), TypeError, "astype: Metal has no float64"),
    ],
)
def test_invalid_calls_are_refused(call: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        call(mnb.ones((2, 3)))


def test_tiling_once_keeps_the_requested_axes() -> None:
    host = np.arange(6).reshape(2, 3)
    for x, times in itertools.product((host, host.T, np.asarray(5)), (1, (), (1, 1), (1, 1, 1), (2, 1, 1), 0)):
        got = mnb.tile(mnb.array(x), times)
        assert got.shape == np.tile(x, times).shape
        assert np.array_equal(got.read(), np.tile(x, times))
    x = mnb.array(host)
    assert not np.shares_memory(mnb.tile(x, 1).numpy(), x.numpy())
    for times in (np.array(2), mnb.asarray(2), mnb.asarray([2, 1])):
        assert mnb.tile(x, times).tolist() == np.tile(x.read(), np.asarray(times)).tolist()


def test_an_array_without_axes_is_turned_into_itself() -> None:
    assert mnb.flip(mnb.asarray(5)).item() == 5


# ---- NumPy's functions.
@pytest.mark.parametrize(("call", "word"), [
    (lambda x: np.unique(x, axis=0), "axis"), (lambda x: np.unique(x, False, False, False, 0), "axis"),
    (lambda x: np.take(x, [0, 5], mode="clip"), "mode"), (lambda x: np.put(x, [9], 1, mode="wrap"), "mode"),
    (lambda x: np.meshgrid(x[0], x[1], sparse=True), "sparse"), (lambda x: np.reshape(x, (3, 2), order="F"), "order"),
    (lambda x: np.ravel(x, order="F"), "order"), (lambda x: np.copy(x, order="F"), "order"),
    (lambda x: np.broadcast_arrays(x, x, subok=True), "subok"), (lambda x: np.vstack([x, x], dtype="f4"), "dtype"),
    (lambda x: np.sum(x, initial=3), "initial"),
])  # fmt: skip
def test_unsupported_numpy_keyword_is_named(call: Any, word: str) -> None:
    with pytest.raises(TypeError, match=rf"^np\.\w+: .*'{word}'"):
        call(mnb.arange(6).reshape(2, 3))


@pytest.mark.parametrize("call", [
    lambda x: np.vstack([x, [1, 2, 3]]), lambda x: np.hstack([x, [[1], [2]]]), lambda x: np.vstack([[1, 2, 3], x]),
    lambda x: np.atleast_1d(x, 3.0), lambda x: np.atleast_2d([1, 2], x), lambda x: np.hstack([x[0], 1]),
    lambda x: np.round([1.5, 2.5], out=x[0, :2]), lambda x: np.around([1.5, 2.5], out=x[0, :2]),
])  # fmt: skip
def test_numpy_functions_refuse_lists_and_numbers(call: Any) -> None:
    with pytest.raises(TypeError, match=r"^np\.\w+: takes an array; got (list|int|float)\. Pass mnb\.asarray"):
        call(mnb.arange(6).reshape(2, 3))


def test_copyto_takes_where() -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    mask = host % 2 == 0
    for where in (mask, mask[0], mask.tolist(), True, False):
        for source in (host, 7, [7, 8, 9]):
            expected = np.full((2, 3), -1.0)
            np.copyto(expected, source, where=where)  # type: ignore[arg-type]
            sources = [source, mnb.asarray(source, dtype="float32")]
            chosen = [where, mnb.asarray(where)]
            for dst in (np.full((2, 3), -1.0), mnb.full((2, 3), -1.0)):
                for src, selected in itertools.product(sources, chosen):
                    dst[...] = -1
                    np.copyto(dst, src, where=selected)  # type: ignore[arg-type]
                    assert dst.tolist() == expected.tolist(), (src, selected)


@pytest.mark.parametrize("call", [
    lambda x: np.unique(x, axis=None), lambda x: np.unique(x, return_counts=True)[1],
    lambda x: np.unique(x, False, True)[1], lambda x: np.tile(reps=(2, 1), A=x), lambda x: np.take(x, indices=[1, 0]),
    lambda x: np.take(x, [1, 0], 1, mode="raise"), lambda x: np.meshgrid(x[0], x[1], sparse=False, indexing="ij")[0],
    lambda x: np.reshape(x, (3, 2), order="C"), lambda x: np.ravel(x, order="C"), lambda x: np.copy(x, order="K"),
    lambda x: np.sort(x, kind="stable", order=None), lambda x: np.moveaxis(x, source=0, destination=1),
    lambda x: np.repeat(x, repeats=2, axis=0), lambda x: np.searchsorted(x[0], v=1), lambda x: np.clip(x, 1, a_max=3),
    lambda x: np.vstack(tup=[x, x]), lambda x: np.squeeze(x[None], axis=None), lambda x: np.var(x, ddof=1),
    lambda x: np.concatenate([x, x], 1, casting="same_kind"), lambda x: np.full_like(x, fill_value=2, subok=True),
])  # fmt: skip
def test_numpy_keyword_arguments_are_accepted(call: Any) -> None:
    host = np.arange(6).reshape(2, 3) % 4
    got, expected = call(mnb.array(host)), call(host)
    assert isinstance(got, mnb.Array)
    assert np.allclose(got.read(), expected)
    assert got.shape == expected.shape
