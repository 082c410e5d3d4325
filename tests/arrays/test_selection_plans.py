"""Selecting the first few of each row and sorting rows as on GPUs, run on CPU engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import laid

import metalnb as mnb
from metalnb.library_kernels.planning.device import device_of
from metalnb.library_kernels.sorting import selection_launch

MANY = 132  # processors of an H100
REFERENCE = mnb.topk.row.reference


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Return numbers with many equal ones; floats include NaN, infinities and both zeros."""
    x = rng.integers(-99, 99, shape).astype(np.float64)
    if "float" in dtype:
        special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0])
        x = np.where(rng.random(shape) < 0.1, rng.choice(special, shape), x)
    with np.errstate(invalid="ignore"):
        return x.astype(dtype)


def check(x: Any, k: int, axis: int = -1, layout: str = "plain", **options: Any) -> None:
    values, indices = mnb.topk(laid(x, layout), k, axis=axis, **options)
    expected, places = REFERENCE(x, k, axis, **options)
    assert indices.dtype == np.int64
    assert np.array_equal(indices.read(), places)
    assert np.array_equal(values.read(), expected, equal_nan="float" in x.dtype.name)


@pytest.fixture
def selections(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Return a list that collects the rows, keys, k and parts of each selection."""
    seen: list[tuple[int, ...]] = []
    own = selection_launch._select
    monkeypatch.setattr(selection_launch, "_select", lambda *given: (seen.append(given[2]), own(*given))[1])
    return seen


@pytest.mark.long(every=3)  # One source for all dtypes; a float and an integer remain
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "int64", "bool"])
def test_largest_and_smallest_elements_of_rows_match_numpy(
    gpu: Any, selections: list[Any], dtype: str, rng: np.random.Generator
) -> None:
    gpu(MANY)
    for shape, ks in (((5, 33), (1, 16)), ((3, 255), (1, 7)), ((2, 3, 1031), (10, 500)), ((8001,), (1, 1000))):
        x = drawn(rng, shape, dtype)
        for k in ks:
            check(x, k)
            check(x, k, largest=False)
    assert len(selections) == 16


def test_a_long_row_is_selected_from_by_parts(gpu: Any, selections: list[Any], rng: np.random.Generator) -> None:
    """Equal keys keep their order, even across parts."""
    gpu(MANY)
    x = drawn(rng, (2, 100_003), "float32")
    for k in (1, 10, 400):
        check(x, k)
        check(x, k, largest=False)
    assert selections[:2] == [(2, 100_003, 1, 24), (2, 24, 1, 1)]
    assert selections[-2:] == [(2, 100_003, 400, 15), (2, 6000, 400, 1)]
    selections.clear()
    check(drawn(rng, (3_000_000,), "int32"), 100)
    assert selections == [(1, 3_000_000, 100, 528), (1, 52_800, 100, 12), (1, 1200, 100, 1)]


def test_selection_of_views_along_any_axis_matches_numpy(gpu: Any, rng: np.random.Generator) -> None:
    gpu(MANY)
    x = drawn(rng, (40, 70), "float32")
    for layout in ("plain", "transposed", "reversed", "stepped"):
        check(x, 7, 0, layout)
        check(x, 7, 1, layout)
    whole = mnb.asarray(x.reshape(-1))
    values, indices = mnb.topk(whole[5:], 9)
    expected, places = REFERENCE(x.reshape(-1)[5:], 9)
    assert np.array_equal(indices.read(), places)
    assert np.array_equal(values.read(), expected, equal_nan=True)


def test_rows_that_are_better_sorted_are_not_selected(
    gpu: Any, selections: list[Any], rng: np.random.Generator
) -> None:
    gpu(MANY)
    for shape, k in (((4, 100), 51), ((4, 20), 1), ((2, 3000), 1025), ((3, 50), 0), ((0, 50), 3)):
        check(drawn(rng, shape, "int32"), k)
    assert selections == []


@pytest.mark.long(unless=lambda dtype: dtype == "float32")  # One source for all dtypes; float32 has NaN and two zeros
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
def test_rows_are_sorted_in_threadgroup_memory(gpu: Any, dtype: str, rng: np.random.Generator) -> None:
    """Rows that fill the registers, and shorter rows; equal keys keep their order."""
    gpu(MANY)
    assert device_of(mnb.zeros(1).engine.caps).tile_threadgroups
    for shape in ((3, 33), (2, 256), (2, 257), (1025,), (2, 2, 1500), (2, 2048), (4096,), (3, 4000)):
        x = drawn(rng, shape, dtype)
        for descending in (False, True):
            order = mnb.argsort.row.reference(x, descending=descending)
            for layout in ("plain", "reversed") if len(shape) == 2 else ("plain",):
                assert np.array_equal(mnb.argsort(laid(x, layout), descending=descending).read(), order)
                got = mnb.sort(laid(x, layout), descending=descending).read()
                assert np.array_equal(got, np.take_along_axis(x, order, -1), equal_nan="float" in dtype)
    part = mnb.asarray(np.append(x[0, :5], x[0]))[5:]
    assert np.array_equal(mnb.argsort(part).read(), mnb.argsort.row.reference(x[0]))


def test_a_cpu_selects_a_few_of_many(selections: list[Any], rng: np.random.Generator) -> None:
    mnb.use("cpu")
    try:
        for shape, k in (((3, 5000), 10), ((20_000,), 400), ((2000,), 3), ((3, 5000), 300)):
            check(drawn(rng, shape, "float32"), k)
    finally:
        mnb.use(None)
    assert selections == [(3, 5000, 10, 1), (1, 20_000, 400, 3), (1, 1200, 400, 1), (1, 2000, 3, 1)]


@pytest.mark.long(every=3)  # One source for all dtypes; a float and an integer remain
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "int64", "bool"])
def test_a_cpu_keeps_the_first_32_of_a_row(selections: list[Any], dtype: str, rng: np.random.Generator) -> None:
    """Rows in random, ascending and descending order, whose last SIMD-group is complete or not; a long one by parts."""
    mnb.use("cpu")
    try:
        for shape, k in (((4, 33), 1), ((4, 64), 31), ((3, 100), 32), ((2, 257), 32), ((2, 3, 1031), 7)):
            x = drawn(rng, shape, dtype)
            for rows in (x, np.sort(x), np.flip(np.sort(x), -1), np.zeros_like(x)):
                check(rows, k)
                check(rows, k, largest=False)
        selections.clear()
        check(drawn(rng, (30_001,), dtype), 32)
        assert selections == [(1, 30_001, 32, 4), (1, 128, 32, 1)]
    finally:
        mnb.use(None)
