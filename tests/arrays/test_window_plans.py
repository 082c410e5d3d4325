"""Convolutions and pooling as GPUs compute them, run on CPU engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import laid

import metalnb as mnb
from metalnb.library_kernels.launching import convolution_launch
from metalnb.library_kernels.neural import pooling

MANY = 132  # processors of an H100
REFERENCE = mnb.conv2d.row.reference


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects the kernels that multiply with windows, as they are compiled."""
    seen: list[str] = []
    own = convolution_launch.compile_plan

    def compiled(plan: Any, engine: Any) -> Any:
        seen.extend(step.kernel for step in plan.steps)
        return own(plan, engine)

    convolution_launch._windows.cache_clear()
    monkeypatch.setattr(convolution_launch, "compile_plan", compiled)
    return seen


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Return small integers, whose sums are exact."""
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    return rng.integers(-2, 3, shape).astype(dtype)


def check(x: Any, w: Any, bias: Any = None, layout: str = "plain", **options: Any) -> None:
    op = mnb.conv2d if w.ndim == 4 else mnb.conv1d
    more = () if bias is None else (laid(bias),)
    got = op(laid(x, layout), laid(w, layout), *more, **options).read()
    expected = REFERENCE(*(a if a is None else a.astype(np.float64) for a in (x, w, bias)), **options)
    assert np.array_equal(got, expected.astype(x.dtype)), options


def summed(x: Any, w: Any) -> Any:
    """Return the convolution of images (C, H, W), padded by one zero, with 3 x 3 weights, summed term by term."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    out = np.zeros((len(w), *x.shape[1:]))
    for o, row, column in np.ndindex(out.shape):
        channels = slice(o, o + 1) if w.shape[1] == 1 else slice(None)
        with np.errstate(invalid="ignore"):
            out[o, row, column] = (padded[channels, row : row + 3, column : column + 3] * w[o]).sum()
    return out


OPTIONS: list[dict[str, Any]] = [
    {}, {"padding": 1}, {"padding": (2, 0), "stride": (2, 3)}, {"dilation": (1, 2), "padding": "same"},
    {"groups": 2, "padding": 1, "stride": 2},
]  # fmt: skip


@pytest.mark.long(unless=lambda dtype: dtype == "bfloat16")  # The windows are read alike for each dtype
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_convolutions_are_products_of_windows(
    gpu: Any, products: list[str], dtype: str, rng: np.random.Generator
) -> None:
    gpu(MANY)
    channels = 8 if dtype == "float32" else 32
    for options in OPTIONS:
        groups = options.get("groups", 1)
        x = numbers(rng, (2, channels * groups, 9, 11), dtype)
        check(x, numbers(rng, (17 * groups, channels, 3, 2), dtype), numbers(rng, (17 * groups,), dtype), **options)
    assert products
    assert all("tiles" in name or "add_parts" in name for name in products)


# Bfloat16 takes the path of float16; one processor does not split K.
@pytest.mark.long(unless=lambda processors, dtype: (processors, dtype) == (MANY, "float16"))
@pytest.mark.parametrize(("processors", "dtype"), [(MANY, "float16"), (1, "float16"), (MANY, "bfloat16")])
def test_convolutions_of_halves_copy_windows_of_images_with_their_channels_last(
    gpu: Any, products: list[str], processors: int, dtype: str, rng: np.random.Generator
) -> None:
    """Several strips of an element's channels, whole and partial tiles, parts of K that begin within an element."""
    gpu(processors, copies=True)
    for options in OPTIONS:
        groups = options.get("groups", 1)
        x = numbers(rng, (2, 64 * groups, 9, 20), dtype)
        check(x, numbers(rng, (17 * groups, 64, 3, 3), dtype), numbers(rng, (17 * groups,), dtype), **options)
    check(numbers(rng, (1, 32, 13, 12), dtype), numbers(rng, (70, 32, 3, 3), dtype), None, "stepped", padding=1)
    check(numbers(rng, (2, 32, 300), dtype), numbers(rng, (20, 32, 5), dtype), stride=2, padding=3)
    assert products
    assert all("matrix_pipes" in name or "add_parts" in name for name in products)
    assert processors != MANY or any("add_parts" in name for name in products)
    check(numbers(rng, (1, 8, 9, 8), dtype), numbers(rng, (20, 8, 3, 3), dtype))  # not full strips


def test_convolutions_of_views_and_of_one_axis_match_the_reference(
    gpu: Any, products: list[str], rng: np.random.Generator
) -> None:
    gpu(MANY)
    x, w = numbers(rng, (2, 16, 9, 8), "float32"), numbers(rng, (70, 16, 3, 3), "float32")
    for layout in ("transposed", "reversed", "stepped"):
        check(x, w, None, layout, padding=1)
    whole = mnb.asarray(np.append(x[:1], x, 0))
    got = mnb.conv2d(whole[1:], mnb.asarray(w), padding=1).read()
    assert np.array_equal(got, REFERENCE(x, w, padding=1).astype(np.float32))
    check(x[0], w)
    check(numbers(rng, (2, 16, 300), "float32"), numbers(rng, (20, 16, 5), "float32"), stride=2, padding=3)
    assert sum("tiles" in name for name in products) == 4  # one plan for all layouts, a later start, no batch, one axis


@pytest.mark.long(unless=lambda dtype: dtype == "float16")  # The windows are read alike for each dtype
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_depthwise_convolutions_match_the_reference_for_every_plan(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, dtype: str, rng: np.random.Generator
) -> None:
    """One, two and four positions of a column per thread, with remaining rows; overlapping and disjoint windows."""
    gpu(MANY)
    convolution_launch._depthwise.cache_clear()
    started: list[Any] = []
    own = convolution_launch.plan_depthwise
    monkeypatch.setattr(convolution_launch, "plan_depthwise", lambda *a: started.append(own(*a)) or started[-1])
    for (height, width), (down, across), each, options in (
        ((13, 17), (3, 3), 1, {"padding": 1}), ((9, 40), (3, 2), 2, {"padding": (2, 0), "stride": 2}),
        ((15, 11), (5, 5), 1, {"padding": "same", "dilation": (2, 1)}), ((3, 9), (3, 3), 3, {"stride": (1, 4)}),
        ((12, 12), (2, 2), 1, {"stride": 3}), ((4, 33), (1, 7), 1, {"padding": (0, 3)}), ((2, 2), (2, 1), 1, {}),
        ((9, 8), (7, 7), 1, {"padding": 3}),
    ):  # fmt: skip
        x, w = numbers(rng, (2, 3, height, width), dtype), numbers(rng, (3 * each, 1, down, across), dtype)
        for layout in ("plain", "reversed"):
            check(x, w, numbers(rng, (3 * each,), dtype), layout, groups=3, **options)
        check(x[1], w, groups=3, **options)
    check(numbers(rng, (2, 3, 40), dtype), numbers(rng, (3, 1, 5), dtype), groups=3, stride=2, padding=2)
    assert None not in started
    assert {plan.template_arguments[2] for plan in started} == {1, 2, 4}
    x, w = numbers(rng, (2, 3, 6, 7), dtype), numbers(rng, (3, 1, 3, 3), dtype)
    whole = mnb.asarray(np.append(x[:1], x, 0))
    got = mnb.conv2d(whole[1:], mnb.asarray(w), groups=3).read()
    assert np.array_equal(got, REFERENCE(x.astype(float), w.astype(float), groups=3).astype(x.dtype))
    check(numbers(rng, (1, 2, 12, 12), dtype), numbers(rng, (2, 1, 10, 10), dtype), groups=2)  # the window is too large
    assert started[-1] is None


def test_a_channels_padding_is_zero(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zero times an infinite weight is NaN, as beside an infinite element; a NaN stays in its channel."""
    gpu(MANY)
    monkeypatch.setattr(convolution_launch, "convolve", None)  # only the kernel for single channels
    x, w = np.ones((1, 2, 5, 6), np.float32), np.ones((2, 1, 3, 3), np.float32)
    x[0, 1, 0, 0], x[0, 0, 4, 5], w[1, 0, 2, 2] = np.nan, np.inf, -np.inf
    expected = summed(x[0], w)
    assert np.isnan(expected[1, -1]).all()
    assert np.isnan(expected[1, :, -1]).all()
    assert np.isfinite(expected[0]).sum() == 26
    got = mnb.conv2d(laid(x), laid(w), padding=1, groups=2).read()
    assert np.array_equal(got[0], expected, equal_nan=True)


def test_infinities_and_padding_stay_apart(gpu: Any, products: list[str], rng: np.random.Generator) -> None:
    gpu(MANY)
    x, w = numbers(rng, (1, 8, 6, 6), "float32"), np.ones((16, 8, 3, 3), np.float32)
    x[0, 3, 0, 0], x[0, 2, 5, 5] = np.inf, np.nan
    expected = summed(x[0], w)
    assert np.isinf(expected[0]).sum() == np.isnan(expected[0]).sum() == 4  # in two corners
    assert np.array_equal(mnb.conv2d(laid(x), laid(w), padding=1).read()[0], expected, equal_nan=True)
    assert products


def test_convolutions_that_tiles_do_not_suit(gpu: Any, products: list[str], rng: np.random.Generator) -> None:
    """Channels that do not fill a strip, few outputs, and windows of one element."""
    gpu(MANY)
    for channels, outputs, size in ((7, 20, 3), (8, 15, 3), (8, 20, 1)):
        check(numbers(rng, (2, channels, 9, 9), "float32"), numbers(rng, (outputs, channels, size, size), "float32"))
    assert products == []


POOLINGS: list[tuple[Any, dict[str, Any]]] = [
    (2, {}), (3, {"stride": 2, "padding": 1}), ((1, 8), {"stride": (3, 1), "ceil_mode": True}), (9, {}),
]  # fmt: skip


@pytest.mark.long(unless=lambda dtype: dtype == "float32")  # The windows are read alike for each dtype
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_pooling_matches_the_reference_for_small_and_large_windows(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, dtype: str, rng: np.random.Generator
) -> None:
    """Windows whose loads are issued together, and windows too large for that; views with any start."""
    gpu(MANY)
    x = numbers(rng, (3, 2, 13, 17), dtype)
    x[0, 0, 5, 6], x[1, 1, 0, 0] = np.nan, np.inf
    taken: list[str] = []
    for name in ("_windows_launch", "_program"):
        own = getattr(pooling, name)
        monkeypatch.setattr(pooling, name, lambda *a, name=name, own=own, **o: taken.append(name) or own(*a, **o))
    whole = mnb.asarray(np.append(x[:1], x, 0))
    for size, options in POOLINGS:
        for op in (mnb.max_pool2d, mnb.avg_pool2d):
            with np.errstate(invalid="ignore"):
                expected = op.row.reference(x.astype(np.float64), size, **options)
            for given in (laid(x), laid(x, "reversed"), whole[1:]):
                got = op(given, size, **options).read()
                if op is mnb.max_pool2d:
                    np.testing.assert_array_equal(got, expected)
                else:  # sums of small integers are exact, and a mean is rounded twice: to float32 and to the dtype
                    np.testing.assert_allclose(got, expected, rtol=1.01 * np.finfo(dtype).eps, atol=0)
        assert set(taken) == {"_program" if size == 9 else "_windows_launch"}
        taken.clear()
    expected = mnb.max_pool2d.row.reference(x[:, :, :, :16].astype(np.float64), 3, dilation=2)
    assert np.array_equal(mnb.max_pool2d(laid(x[:, :, :, :16]), 3, dilation=2).read(), expected, equal_nan=True)
    expected = mnb.max_pool1d.row.reference(x[0].astype(np.float64), 3)
    assert np.array_equal(mnb.max_pool1d(laid(x[0]), 3).read(), expected, equal_nan=True)
    counted = mnb.avg_pool2d(laid(x[2:]), 3, padding=1, count_include_pad=False).read()
    reference = mnb.avg_pool2d.row.reference(x[2:].astype(np.float64), 3, padding=1, count_include_pad=False)
    np.testing.assert_allclose(counted, reference, rtol=1.01 * np.finfo(dtype).eps, atol=0)
