"""Indexing and assignment compared with NumPy: views, integers, masks, their combinations, and refusals."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import metalnb as mnb

SHAPE = (4, 5, 6)
HOST = np.arange(120, dtype=np.int32).reshape(SHAPE)

BASIC: list[Any] = [
    0, -1, np.int64(2), slice(1, 3), slice(None, None, -1), slice(3, None, -2), ..., None, (), (1, 2), (0, -1, 3),
    (..., 2), (slice(None), 1), (None, 1, ..., None), (slice(0, 0),), (1, ..., slice(None, None, 2)),
]  # fmt: skip
MASK = HOST % 7 == 0
MASK_OF_LINE = (np.arange(4000) > 0) & (np.arange(4000) < 3001)
ADVANCED: list[Any] = [
    [0, 2], np.array([3, -1, 0]), np.array([[0, 1], [2, 3]]), ([0, 2], [1, 4]), ([0, 2], slice(None), [1, 4]),
    (slice(None), [1, 4]), (..., [5, 0]), (1, [0, 2]), ([0, 1], 2, [3, 4]), (0, slice(None), [1, 2]), (None, [1, 2]),
    ([[0], [2]], [1, 4]), (slice(None, None, -1), [2, 2]), MASK, MASK[:, 0, 0], (slice(None), MASK[0, :, 0]),
    (MASK[:, 0, 0], [1]), MASK[:, :, 0], (..., MASK[0, 0]), np.zeros(4, bool), np.array([], np.int64), [], np.array(2),
    (np.array([1, 2], np.uint8), np.array([0, -1], np.int16)), (MASK[:, 0, 0], MASK[0, :, 0][:5].nonzero()[0][:1]),
]  # fmt: skip


def shown(key: Any) -> str:
    return str(key).replace("\n", "")[:60]


def on_engine(key: Any) -> Any:
    """Return the same key with the engine's arrays in it."""
    if isinstance(key, tuple):
        return tuple(map(on_engine, key))
    return mnb.array(key) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("key", BASIC, ids=shown)
def test_a_basic_index_is_a_view(key: Any) -> None:
    host = HOST.copy()
    x = mnb.array(host)
    part, expected = x[key], host[key]
    assert part.block is x.block
    assert part.shape == np.shape(expected)
    assert part.strides == getattr(expected, "strides", ())
    x[key] = -7
    host[key] = -7
    assert np.array_equal(x.read(), host)
    assert np.array_equal(part.read(), np.full(part.shape, -7))


@pytest.mark.long(every=3)  # 3 divides neither count: kinds of index recur, and both layouts are among them
@pytest.mark.parametrize("key", ADVANCED, ids=shown)
@pytest.mark.parametrize("layout", ["plain", "turned"])
def test_indexing_by_arrays_matches_numpy(key: Any, layout: str) -> None:
    host = HOST.copy()
    x = mnb.array(host) if layout == "plain" else mnb.array(np.ascontiguousarray(host.T)).transpose()
    for form in (key, on_engine(key)):
        got, expected = x[form], host[key]
        assert got.shape == expected.shape
        assert np.array_equal(got.read(), expected)
    x[key] = -7
    host[key] = -7
    assert np.array_equal(x.read(), host)
    values = np.arange(host[key].size, dtype=np.int32).reshape(host[key].shape)
    x[on_engine(key)] = mnb.array(values)
    host[key] = values
    assert np.array_equal(x.read(), host)


def test_a_value_is_broadcast_and_converted() -> None:
    x, host = mnb.zeros((3, 4)), np.zeros((3, 4), np.float32)
    cases: list[tuple[Any, Any]] = [
        ((slice(None), 1), [1, 2, 3]), (0, True), ((slice(1), slice(2)), np.array([[5, 6]], np.int8)),
        ([0, 2], np.float32(9)), ([True, False, True], [[4], [3]]), (..., np.ones((1, 1, 4), np.float32)),
    ]  # fmt: skip
    for key, value in cases:
        x[key] = value
        host[key] = value
        assert np.array_equal(x.read(), host)
    x[1] = mnb.asarray(2)
    assert x[1].tolist() == [2.0] * 4
    y = mnb.zeros(3, dtype="int8")
    y[1] = 2.9  # clipped, as in NumPy
    assert y.tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    ("to", "of"), [(slice(1, None), slice(-1)), (slice(-1), slice(1, None)), (slice(None), slice(None, None, -1))]
)
def test_parts_that_overlap_are_read_before_they_are_written(to: slice, of: slice) -> None:
    host = np.arange(5000, dtype=np.float32)
    for x in (mnb.array(host), mnb.asarray(host.copy())):
        expected = host.copy()
        expected[to] = expected[of].copy()
        x[to] = x[of]
        assert np.array_equal(x.read(), expected)


@pytest.mark.usefixtures("shared_memory")
def test_arrays_over_numpys_memory_may_overlap() -> None:
    host = np.arange(5000, dtype=np.float32)
    memory = host.copy()
    one, other = mnb.asarray(memory[1:]), mnb.asarray(memory[:-1])
    one[...] = other
    assert np.array_equal(memory[1:], host[:-1])


@given(
    hnp.array_shapes(max_dims=3, max_side=6).flatmap(
        lambda s: st.tuples(st.just(s), hnp.basic_indices(s, allow_newaxis=True))
    )
)
def test_any_basic_index_selects_what_numpy_selects(case: tuple[Any, Any]) -> None:
    shape, key = case
    host = np.arange(np.prod(shape)).reshape(shape)
    assert np.array_equal(mnb.array(host)[key].read(), host[key])


@given(st.data(), hnp.array_shapes(max_dims=3, max_side=5))
def test_any_index_by_integers_selects_what_numpy_selects(data: Any, shape: tuple[int, ...]) -> None:
    host = np.arange(np.prod(shape)).reshape(shape)
    key = data.draw(hnp.integer_array_indices(shape))
    x = mnb.array(host)
    assert np.array_equal(x[key].read(), host[key])
    with contextlib.suppress(ValueError):
        x[key] = 5
        host[key] = 5
    assert np.array_equal(x.read(), host)


@given(hnp.array_shapes(max_dims=3, max_side=6).flatmap(lambda s: hnp.arrays(np.bool_, s)))
def test_any_mask_selects_and_assigns_as_in_numpy(mask: np.ndarray[Any, Any]) -> None:
    host = np.arange(mask.size, dtype=np.float32).reshape(mask.shape)
    x = mnb.array(host)
    assert np.array_equal(x[mnb.array(mask)].read(), host[mask])
    x[mask] = 0.5
    host[mask] = 0.5
    assert np.array_equal(x.read(), host)


@pytest.mark.parametrize(
    ("key", "error", "why"),
    [
        (4, IndexError, "index 4 is out of bounds for axis 0 with size 4"),
        ((0, -6), IndexError, "index -6 is out of bounds for axis 1 with size 5"),
        ((0, 0, 0, 0), IndexError, "too many indices|4 indices for an array of 3 axes"),
        ([0, 4], IndexError, r"index 4 \(at \(1,\) of the indices\) is out of bounds for axis 0 with 4 elements"),
        (([0], [-6]), IndexError, "index -6 .* axis 1 with 5 elements"),
        ([0.5], IndexError, "indices must be integers.*float"),
        (MASK[:3], IndexError, r"the array's first axes, \(4, 5, 6\); got \(3, 5, 6\)"),
        (([0, 1], [0, 1, 2]), IndexError, r"shapes \(2,\) and \(3,\) do not broadcast"),
        ("name", IndexError, "indices must be integers|only integers"),
    ],
    ids=shown,
)
def test_a_bad_index_is_refused_before_anything_is_touched(key: Any, error: type[Exception], why: str) -> None:
    x = mnb.array(HOST)
    with pytest.raises(error, match=why):
        x[key]
    with pytest.raises(error, match=why):
        x[key] = 1
    assert np.array_equal(x.read(), HOST)


def test_a_bad_value_is_refused() -> None:
    x = mnb.zeros((2, 3))
    with pytest.raises(ValueError, match=r"shape \(2,\) does not broadcast to \(2, 3\)"):
        x[...] = [1, 2]
    with pytest.raises(ValueError, match="elements share memory"):
        mnb.broadcast_to(mnb.ones(3), (2, 3))[...] = 1
    with pytest.raises(TypeError, match="float64"):
        x[0] = np.ones(3)
    with pytest.raises(OverflowError):
        mnb.zeros(2, dtype="int8")[0] = 300
    assert not x.any()


@pytest.mark.parametrize("key", [
    0, slice(0, 1), ..., [0], MASK[0, 0, :3], np.array([True, False, False]), (slice(None), None),
], ids=shown)  # fmt: skip
def test_elements_that_share_memory_are_not_written(key: Any) -> None:
    base = mnb.zeros(1)
    with pytest.raises(ValueError, match=r"x is broadcast, shape \(3,\): elements share memory\. Use x\.copy"):
        mnb.broadcast_to(base, (3,))[key] = 7.0
    mnb.broadcast_to(base, (3,)).copy()[key] = 7.0
    assert base.tolist() == [0]


@pytest.mark.parametrize("key", [0, slice(0, 1), [0], ([0],), np.array([True, False])], ids=shown)
@pytest.mark.parametrize("value", [300, -1, [300], (300,), range(300, 301), [[300]]], ids=str)
def test_python_numbers_that_the_dtype_does_not_hold_are_refused(key: Any, value: Any) -> None:
    x = mnb.zeros(2, dtype="uint8")
    with pytest.raises(OverflowError, match="out of bounds for uint8"):
        x[key] = value
    assert not x.any()
    x[key] = [200]
    assert x.tolist() == [200, 0]


def test_a_float64_scalar_is_a_python_number() -> None:
    x = mnb.zeros(3)
    for key in (0, [1], np.array([False, False, True])):
        x[key] = np.float64(2.5)
    assert x.tolist() == [2.5, 2.5, 2.5]


@pytest.mark.parametrize(
    ("key", "of"),
    [
        (MASK_OF_LINE, lambda x: x[: MASK_OF_LINE.sum()]), (MASK_OF_LINE, lambda x: x[-int(MASK_OF_LINE.sum()) :]),
        (np.arange(1, 3001), lambda x: x[:3000]), (np.arange(3000), lambda x: x[1:3001][::-1]),
        (np.array([[1, 0]]), lambda x: x[1:2]),
    ],
)  # fmt: skip
def test_a_value_that_overlaps_is_read_before_elements_at_an_index_are_written(key: Any, of: Any) -> None:
    host = np.arange(4000, dtype=np.float32)
    expected = host.copy()
    expected[key] = of(host)
    shared = host.copy()
    for x, value in ((mnb.array(host), None), (mnb.asarray(host.copy()), None), (mnb.asarray(shared), of(shared))):
        x[on_engine(key)] = of(x) if value is None else value
        assert np.array_equal(x.read(), expected)


def test_a_row_that_overlaps_is_read_before_rows_are_written() -> None:
    host = np.arange(64 * 3000, dtype=np.float32)
    expected, x = host.copy(), mnb.array(host)
    expected.reshape(64, 3000)[[0, 1, 5]] = host[1:3001]
    mnb.put(x.reshape((64, 3000)), [0, 1, 5], x[1:3001].reshape((1, 3000)), axis=0)
    assert np.array_equal(x.read(), expected)
    bits = np.arange(4000) % 3 > 0
    x, expected = mnb.array(bits), bits.copy()
    x[1:][x[:-1]] = x[: int(bits[:-1].sum())]
    expected[1:][bits[:-1]] = bits[: int(bits[:-1].sum())]
    assert np.array_equal(x.read(), expected)
