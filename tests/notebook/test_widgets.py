"""The widgets without a browser: what they measure, refuse and survive, and what they show where no widget can run."""

import base64
import gc
import io
import json
import math
import re
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import ipywidgets
import numpy as np
import pytest
from PIL import Image

import metalnb as mnb
from metalnb.widgets import html_parts, svg_plots
from metalnb.widgets.background_work import Latest
from metalnb.widgets.bound_call import bound_call
from metalnb.widgets.call_text import call_text
from metalnb.widgets.dashboard import Dashboard
from metalnb.widgets.dashboard.problem_sizes import Sizes
from metalnb.widgets.knobs import apply_settings, free_knobs, knobs
from metalnb.widgets.live_widget import Live
from metalnb.widgets.painter import Painter, png
from metalnb.widgets.png_plots import plots_png
from metalnb.widgets.threadgroup_choices import all_groups, some_groups

VIEW = "application/vnd.jupyter.widget-view+json"

SOURCE = """
#include <metal_stdlib>
using namespace metal;

struct Params { float scale; float3 tint; uint count; bool on; };
struct Wide { float a[32]; };

kernel void saxpy(device const float* x, device float* y, constant float& a,
                  uint i [[thread_position_in_grid]]) { y[i] = a * x[i] + y[i]; }

kernel void halved(device const half* x, device half* y, constant half& a,
                   uint i [[thread_position_in_grid]]) { y[i] = a * x[i]; }

kernel void many(device float* out, constant Params& p, constant float2& c, constant uint& n, constant int& k,
                 uint i [[thread_position_in_grid]]) { out[i] = p.scale * c.x + p.tint.z + n + k + p.count + p.on; }

kernel void plane(device const float* image, device float* out, constant float& gain,
                  uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    out[i.y * n.x + i.x] = gain * image[i.y * n.x + i.x];
}

kernel void hungry(device const float* x, device float* y, threadgroup Wide* s, uint i [[thread_position_in_grid]],
                   uint l [[thread_position_in_threadgroup]]) { s[l].a[0] = x[i]; y[i] = s[l].a[0]; }

kernel void records(device Params* image, constant float& t, uint2 p [[thread_position_in_grid]],
                    uint2 n [[threads_per_grid]]) { image[p.y * n.x + p.x].scale = t; }

kernel void colors(device float4* image, constant float& t, uint2 p [[thread_position_in_grid]],
                    uint2 n [[threads_per_grid]]) { image[p.y * n.x + p.x] = float4(float2(p) / float2(n), t, 1); }
"""


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(SOURCE)


@pytest.fixture(scope="module")
def board(program: mnb.Program) -> Dashboard:
    x, y = np.full((2, 1 << 14), 1, np.float32)
    made = mnb.dashboard(program.saxpy, x, y, a=2.0)
    _ = made.widget
    return made


def visible(html: str) -> str:
    """Return what a page without styles and SVG shows, with one space between the texts."""
    bare = re.sub("<style.*?</style>|<svg.*?</svg>", "", html)
    root = ET.fromstring(f"<div>{bare}</div>")  # noqa: S314  (metalnb's own)
    return " ".join(" ".join(root.itertext()).split())


# --- a call, taken apart ---------------------------------------------------------------------------------------------


def test_every_scalar_is_a_knob(program: mnb.Program) -> None:
    params = {"scale": 0.5, "tint": (1, 2, 3), "count": 5, "on": True}
    call = bound_call("test", program.many, (), {"p": params, "c": (0.1, -4), "n": 64, "k": -3, "grid": 64})
    found = {k.label: (k.value, k.low, k.high) for k in knobs(call)}
    assert found == {
        "p.scale": (0.5, -6, 6), "p.tint.x": (1, -6, 6), "p.tint.y": (2, -6, 6), "p.tint.z": (3, -6, 6),
        "p.count": (5, 1, 10), "p.on": (True, 0, 1), "c.x": (0.1, -8, 8), "c.y": (-4, -8, 8), "n": (64, 1, 128),
        "k": (-3, -6, 10),
    }  # fmt: skip
    assert "n" not in {k.label for k in free_knobs(call)}, "as long as the grid: a length, not a free number"


def test_only_written_arrays_are_copied(program: mnb.Program) -> None:
    x, y = np.ones((2, 64), np.float32)
    (own_x, own_y, _) = (p.value for p in bound_call("test", program.saxpy, (x, y, 2.0), {}).parts)
    assert np.shares_memory(own_x, x), "what is only read need not be copied"
    assert not np.shares_memory(own_y, y)


def test_arrays_that_only_the_widget_has_keep_their_memory(program: mnb.Program) -> None:
    explorer = mnb.explore(program.plane, mnb.array(np.ones((64, 64), np.float32)), gain=1.0)
    others = [mnb.array(np.full((64, 64), 7, np.float32)) for _ in range(4)]
    explorer._frame({})
    assert explorer._values[explorer._picture_index].max() == 1
    del others


def test_arrays_that_a_struct_points_to_are_copied() -> None:
    program = mnb.compile("""struct Counts { device float* y; uint n; };
    kernel void count(constant Counts& c, device float* out, constant float& by, uint2 i [[thread_position_in_grid]]) {
        uint at = i.y * 8 + i.x;
        c.y[at] += by;
        out[at] = c.y[at];
    }
    kernel void grow(constant Counts& c, device float* out, uint2 i [[thread_position_in_grid]]) {
        c.y[i.y * 8 + i.x] += 1;
        out[i.y * 8 + i.x] += c.y[i.y * 8 + i.x];
    }""", engine="cpu")  # fmt: skip
    y = mnb.zeros(64, dtype="float32", device="cpu")
    counts = {"y": y, "n": 64}
    call = bound_call("test", program.count, (counts,), {"by": 1.0, "grid": (8, 8)})
    assert [k.label for k in knobs(call)] == ["c.n", "by"], "an address has no slider"
    assert call_text(call, [p.value for p in call.parts]) == "out = count(c=c, by=1.0, grid=(8, 8))"
    explorer = mnb.explore(program.count, counts, by=1.0, grid=(8, 8))
    for _ in range(2):
        explorer._frame({})
        assert explorer._values[explorer._picture_index].max() == 1, "each picture starts from the same arrays"
    board = mnb.dashboard(program.count, counts, by=1.0, grid=(8, 8))
    assert board.run() is not None
    tuner = mnb.tune(program.count, counts, by=1.0, grid=(8, 8), threadgroup=[(8, 4), (4, 4)], run=False).run()
    assert tuner.failures == []
    live = mnb.animate(program.grow, counts, np.zeros((8, 8), np.float32), swap=())
    for expected in (1, 3, 6):
        live.step()
        assert live.wait(300)
        assert live.array("out").max() == expected
    live.reset()
    live.step()
    assert live.wait(300)
    assert live.array("out").max() == 1
    assert np.asarray(y).max() == 0


def test_changed_parameter_affects_only_its_argument(program: mnb.Program) -> None:
    params = {"scale": 0.5, "tint": (1, 2, 3), "count": 5, "on": True}
    call = bound_call("test", program.many, (), {"p": params, "c": (2, -4), "n": 64, "k": -3, "grid": 64})
    at = {k.label: k for k in knobs(call)}
    arguments = [p.value for p in call.parts]

    def out(**settings: Any) -> float:
        values = apply_settings(call.parts, {at[k.replace("_", ".")]: v for k, v in settings.items()}, arguments)
        (first, *_) = np.unique(call.dispatch(values).run() or values[0])
        return float(first)

    assert out() == 0.5 * 2 + 3 + 64 - 3 + 5 + 1
    assert out(p_scale=2.0, c_x=1.5, p_tint_z=7.0, k=4, p_on=False) == 2 * 1.5 + 7 + 64 + 4 + 5
    assert out() == 0.5 * 2 + 3 + 64 - 3 + 5 + 1


def test_the_caller_may_define_calls_of_other_sizes(program: mnb.Program) -> None:
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)

    def size(factor: Any) -> dict[str, Any]:
        n = int(256 * factor) + 1
        return {"x": np.ones(n, np.float32), "y": np.zeros(n, np.float32), "a": 1.0, "grid": n}

    sizes = Sizes(bound_call("test", program.saxpy, (x, y, 1.0), {}), size)
    half = sizes.factors[sizes.factors.index(1) - 1]
    assert sizes.grid(half) == (129, 1, 1)
    assert [v.shape for v in sizes.values(half)] == [(129,), (129,), ()]
    assert sizes.grid(sizes.factors[sizes.factors.index(1)]) == (256, 1, 1)


def test_sizes_end_where_the_caller_has_no_larger_arrays(program: mnb.Program) -> None:
    x = np.ones(1 << 13, np.float32)

    def sizes(factor: Fraction) -> dict[str, Any]:
        n = int(factor * 4096)
        return {"x": x[:n], "y": x[:n].copy(), "a": 2.0, "grid": n}

    board = mnb.dashboard(program.saxpy, **sizes(Fraction(1)), sizes=sizes)
    assert board._sizes.factors[-2:] == [1, 2]
    with pytest.raises(mnb.ArgumentError, match="float64"):
        mnb.dashboard(program.saxpy, x, a=2.0, sizes=lambda _: {"x": x.astype(float), "a": 2.0})


def test_changing_a_size_resizes_arrays_of_the_grids_length(program: mnb.Program) -> None:
    image = np.arange(256 * 512, dtype=np.float32).reshape(256, 512)
    sizes = Sizes(bound_call("test", program.plane, (image,), {"gain": 2.0}))
    assert sizes.factors[0] == Fraction(1, 8)
    assert sizes.factors[-1] == 8
    half = Fraction(1, 2)
    assert sizes.grid(half) == (256, 128, 1)
    small, out, gain = sizes.values(half)
    np.testing.assert_array_equal(small, image[:128, :256])
    assert out.shape == (128, 256)
    assert gain == 2.0
    assert small.base.nbytes >= image.nbytes, "a kernel that has the old length still reads its own memory"
    (large, *_) = sizes.values(Fraction(2))
    np.testing.assert_array_equal(large, np.tile(image, (2, 2)))
    np.testing.assert_array_equal(np.tile(image, (2, 2)) * 2, run_at(sizes, Fraction(2)))


def run_at(sizes: Sizes, factor: Fraction) -> Any:
    values = sizes.values(factor)
    sizes.call.dispatch(values, grid=sizes.grid(factor)).run()
    return values[1]


def test_a_row_of_threads_on_an_image_and_a_length_follow_the_grid(program: mnb.Program) -> None:
    narrow = np.arange(48 * 256, dtype=np.float32).reshape(48, 256)
    sizes = Sizes(bound_call("test", program.plane, (narrow,), {"gain": 1.0}))
    np.testing.assert_array_equal(sizes.values(Fraction(1, 4))[0], narrow[:12, :64])
    params = {"scale": 0, "tint": (0, 0, 0), "count": 1000, "on": False}
    out = np.zeros((10, 100), np.float32)
    sizes = Sizes(bound_call("test", program.many, (out, params, (0, 0), 1002, 0), {}))
    assert [k.label for k in sizes.tied] == ["p.count", "n"]
    made, p, _, n, _ = sizes.values(Fraction(1, 4))
    assert (made.shape, int(p["count"]), int(n)) == ((250,), 250, 252)


def test_scalar_that_follows_the_grid_is_shown_as_it_is(program: mnb.Program) -> None:
    params = {"scale": 1.0, "tint": (1, 2, 3), "count": 0, "on": True}
    board = mnb.dashboard(program.many, p=params, c=(0, 1), n=4097, k=0, grid=4096)
    _ = board.widget
    board.controls["grid"].value = Fraction(1, 2)
    assert board.wait(300)
    assert "n=2049, " in board._events.call
    assert board.settings["n"] == 2049
    assert "n = 2049, " in board.labels[-1]
    board.controls["n"].value = 5
    assert board.wait(300)
    assert "n=5, " in board._events.call
    assert "n = 5, " in board.labels[-1]


def test_nothing_grows_when_an_array_would_stay(program: mnb.Program) -> None:
    x, y = np.zeros(1 << 12, np.float32), np.zeros(1 << 12, np.float32)
    assert Sizes(bound_call("t", program.saxpy, (x, y, 1.0), {})).factors[-1] == 8
    short = Sizes(bound_call("t", program.saxpy, (x, y, 1.0), {"grid": 100}))
    assert short.factors == [Fraction(1)]


def test_threadgroups_to_try_fit_the_kernel_and_the_grid(program: mnb.Program) -> None:
    signature = program.plane.signature
    flat, two = some_groups(signature, (1000, 1, 1)), all_groups(signature, (100, 10, 1))
    assert flat == [(32,), (64,), (128,), (256,), (512,)]
    assert all(32 <= x * y <= 1024 and x <= 100 and y <= 10 for x, y in two)
    assert (32, 8) in two
    assert some_groups(signature, (7, 1, 1)) == [(7,)]
    assert some_groups(signature, (3, 3, 3)) == [(3, 3, 3)]


# --- the dashboard ---------------------------------------------------------------------------------------------------


def test_the_dashboard_measures_again_when_a_slider_moves(program: mnb.Program) -> None:
    x, y = np.full((2, 1 << 14), 1, np.float32)
    board = mnb.dashboard(program.saxpy, x, y, a=2.0)
    _ = board.widget
    assert [t.grid for t in board.timings] == [(1 << 14,)]
    board.controls["grid"].value = Fraction(1, 2)
    board.controls["grid"].value = Fraction(1, 4)
    board.controls["a"].value = 3.0
    board.controls["threadgroup"].value = (64,)
    assert board.wait(300)
    last = board.timings[-1]
    assert (last.grid, last.threadgroup, board.error) == ((1 << 12,), (64,), "")
    assert board.settings == {"grid": (1 << 12,), "threadgroup": (64,), "a": 3.0}
    assert len(board.timings) == 2, "of what sliders ask for while they are drawn, only the last is measured"
    assert last.bytes == 3 * 4 << 12
    assert "grid 4,096, threadgroup 64, a = 3" in board._view.value
    assert board.run() is board.timings[-1]
    assert len(board.timings) == 3
    assert (x == 1).all()
    assert (y == 1).all(), "the user's arrays are never changed"


def test_a_setting_that_fails_is_shown_and_the_next_one_works(program: mnb.Program) -> None:
    board = mnb.dashboard(program.hungry, np.ones(4096, np.float32), threadgroup=64)
    _ = board.widget
    board.controls["threadgroup"].value = (1024,)
    assert board.wait(300)
    assert "131,072 bytes of threadgroup memory" in board.error
    assert "131,072 bytes of threadgroup memory" in board._view.value
    assert "131,072 bytes of threadgroup memory" in board.text()
    assert board.run() is None
    board.controls["threadgroup"].value = (32,)
    assert board.wait(300)
    assert board.error == ""
    assert "131,072" not in board._view.value
    assert board.timings[-1].threadgroup == (32,)


def test_size_whose_arguments_cannot_be_made_is_shown_and_the_next_one_works(program: mnb.Program) -> None:
    x, fails = np.ones(4096, np.float32), False

    def sizes(factor: Fraction) -> dict[str, Any]:
        if fails:
            raise OSError("no data")
        return {"x": x[: int(factor * x.size)], "a": 2.0}

    board = mnb.dashboard(program.saxpy, x, a=2.0, sizes=sizes)
    _ = board.widget
    fails = True
    board.controls["grid"].value = Fraction(1, 2)
    assert board.wait(300)
    assert board.error == "OSError: no data"
    assert "no data" in board._view.value
    fails = False
    board.controls["grid"].value = Fraction(1, 4)
    assert board.wait(300)
    assert (board.error, board.timings[-1].grid) == ("", (1024,))
    assert "grid=1024" in board._events.call


def test_ranges_set_the_sliders_values(program: mnb.Program) -> None:
    x = np.ones(64, np.float32)
    board = mnb.dashboard(program.saxpy, x, a=2.0, ranges={"a": (-5, 1)})
    _ = board.widget
    slider = board.controls["a"]
    assert (slider.min, slider.max, slider.value) == (-5, 2, 2)
    bare = mnb.dashboard(program.saxpy, x, a=2.0, ranges={"a": None})
    _ = bare.widget
    assert "a" not in bare.controls


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("sign", [-1, 1])
def test_sliders_end_at_the_largest_numbers(program: mnb.Program, dtype: Any, sign: int) -> None:
    largest = float(np.finfo(dtype).max)
    value = sign * float(str(dtype(0.75 * largest)))
    kernel = program.halved if dtype == np.float16 else program.saxpy
    (knob,) = free_knobs(bound_call("test", kernel, (np.ones(64, dtype),), {"a": value}))
    assert (knob.low, knob.high) == ((0, largest) if sign > 0 else (-largest, 0))


# --- pictures --------------------------------------------------------------------------------------------------------


def read_png(data: bytes) -> tuple[str, Any, Any]:
    """Return a PNG's mode, pixels and palette."""
    picture = Image.open(io.BytesIO(data), formats=["PNG"])
    palette = np.array(picture.getpalette() or [], np.uint8).reshape(-1, 3)
    pixels = np.asarray(picture)
    return picture.mode, pixels.reshape(*pixels.shape[:2], -1), palette


def test_a_png_contains_the_painted_pixels(rng: np.random.Generator) -> None:
    plane, palette = rng.integers(0, 256, (3, 5), np.uint8), rng.integers(0, 256, (256, 3), np.uint8)
    mode, pixels, found = read_png(png(plane, palette))
    assert mode == "P"
    np.testing.assert_array_equal(pixels[..., 0], plane)
    np.testing.assert_array_equal(found, palette)
    for channels, kind in ((3, "RGB"), (4, "RGBA")):
        image = rng.integers(0, 256, (4, 2, channels), np.uint8)
        mode, pixels, _ = read_png(png(image))
        assert mode == kind
        np.testing.assert_array_equal(pixels, image)


def test_a_plane_is_colored_between_its_limits() -> None:
    plane = np.array([[0, 1, 2], [np.nan, np.inf, -5]], np.float32)

    def shown(**options: Any) -> list[list[int]]:
        painter = Painter("t", (2, 3), "gray", options.get("limits"), options.get("origin", "upper"))
        _, pixels, palette = read_png(painter.paint(plane))
        return palette[pixels[..., 0]][..., 0].tolist()  # type: ignore[no-any-return]

    assert shown(limits=(0, 2)) == [[0, 128, 255], [0, 255, 0]]
    assert shown() == [[182, 219, 255], [0, 255, 0]]
    assert shown(limits=(0, 2), origin="lower") == [[0, 255, 0], [0, 128, 255]]
    flat = read_png(Painter("t", (2, 2), "gray", None, "upper").paint(np.full((2, 2), 7, np.int32)))[1]
    assert (flat == 0).all()
    for dtype in (np.int32, np.uint64, np.float64):
        large = np.array([[0, 1, 2]]).astype(dtype) + dtype(10**9)
        shades = read_png(Painter("t", (1, 3), "gray", None, "upper").paint(large))[1]
        assert shades[..., 0].tolist() == [[0, 128, 255]]
    nearly_flat = read_png(Painter("t", (1, 3), "gray", None, "upper").paint(np.array([[7, np.inf, -np.inf]])))[1]
    assert nearly_flat[..., 0].tolist() == [[0, 255, 0]]


def test_explore_paints_the_values_of_the_sliders(program: mnb.Program) -> None:
    image = np.linspace(0, 1, 64 * 48, dtype=np.float32).reshape(48, 64)
    explorer = mnb.explore(program.plane, image, gain=1.0, limits=(0, 1), colors="gray")
    _ = explorer.widget
    first = explorer.png
    explorer.controls["gain"].value = 0.5
    assert explorer.wait(300)
    _, pixels, palette = read_png(explorer.png)
    shown = palette[pixels[..., 0]][..., 0]
    np.testing.assert_allclose(shown, 0.5 * image * 255, atol=0.6)
    assert explorer._image.value == explorer.png != first
    assert explorer.settings == {"gain": 0.5}
    assert explorer.frames == 2
    assert explorer.rate > 0
    assert "gain = 0.5" in visible(explorer.html())


def test_explore_shows_colors_unchanged(program: mnb.Program) -> None:
    explorer = mnb.explore(program.colors, t=0.25, grid=(32, 16))
    mode, pixels, _ = read_png(explorer.png)
    assert mode == "RGBA"
    y, x = np.mgrid[:16, :32]
    expected = np.stack([x / 32, y / 16, np.full((16, 32), 0.25), np.ones((16, 32))], -1) * 255
    np.testing.assert_allclose(pixels, expected, atol=0.51)


# --- what is refused, before anything runs ---------------------------------------------------------------------------

X = np.ones(16, np.float32)
REFUSED = {
    "no kernel": (lambda p: mnb.dashboard(np.sin, 1), "dashboard: takes a kernel .*; got ufunc"),
    "a bad call": (lambda p: mnb.dashboard(p.saxpy, X.astype(float), a=1.0), r"Pass x.astype\(np.float32\)"),
    "an empty grid": (lambda p: mnb.dashboard(p.saxpy, X[:0], a=1.0), "grid .* is empty"),
    "an unknown range": (lambda p: mnb.dashboard(p.saxpy, X, a=1.0, ranges={"b": (0, 1)}), "it has: a"),
    "no range": (lambda p: mnb.dashboard(p.saxpy, X, a=1.0, ranges={"a": (1, 0)}), r"\(low, high\)"),
    "no range at all": (lambda p: mnb.explore(p.plane, X.reshape(4, 4), gain=1, ranges={"gain": "ab"}), "got 'ab'"),
    "no scalar": (lambda p: mnb.explore(p.hungry, X), "no scalar for a slider"),
    "every slider taken": (
        lambda p: mnb.explore(p.plane, X.reshape(4, 4), gain=1.0, ranges={"gain": None}), "no scalar for a slider"),
    "no picture": (lambda p: mnb.explore(p.saxpy, X, a=1.0), r"shape \(H, W\).*got shape \(16,\)"),
    "no numbers": (lambda p: mnb.explore(p.records, t=1.0, grid=(4, 4)), r"real numbers; got .*'tint'"),
    "an unknown buffer": (lambda p: mnb.explore(p.plane, X.reshape(4, 4), gain=1.0, picture="image"), "it writes: out"),
    "unknown colors": (lambda p: mnb.explore(p.plane, X.reshape(4, 4), gain=1.0, colors="mgma"), "'mgma'"),
    "unknown origin": (lambda p: mnb.explore(p.plane, X.reshape(4, 4), gain=1.0, origin="left"), "'upper' or 'lower'"),
    "a range without end": (
        lambda p: mnb.dashboard(p.saxpy, X, a=1.0, ranges={"a": (0, np.inf)}), r"\(low, high\).*got \(0, inf\)"),
    "a range beyond the type": (
        lambda p: mnb.dashboard(p.halved, X.astype(np.float16), a=1.0, ranges={"a": (0, 1e6)}), r"\(low, high\)"),
    "limits without end": (
        lambda p: mnb.explore(p.plane, X.reshape(4, 4), gain=1.0, limits=(0, np.inf)), r"got \(0, inf\)"),
    "bad limits": (lambda p: mnb.explore(p.plane, X.reshape(4, 4), gain=1.0, limits=(1, 1)), r"got \(1, 1\)"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_values_that_are_no_picture_are_refused(program: mnb.Program, case: str) -> None:
    attempt, message = REFUSED[case]
    with pytest.raises(mnb.MetalnbError, match=message):
        attempt(program)


# --- what is shown ---------------------------------------------------------------------------------------------------


def shown_things(program: mnb.Program, board: Dashboard) -> Iterator[tuple[Live, list[str]]]:
    timing = board.timings[-1]
    yield board, ["saxpy", "grid 16,384", "a = 2", "median of", "GB/s", "1 run, from", timing.clock]
    tuner = mnb.tune(program.saxpy, X, X.copy(), a=1.0, threadgroup=[8, 16, 2048], run=False).run()
    refused = "2048 threads; Metal allows 1024"
    yield tuner, ["saxpy", "3 of 3 configurations tried, 1 refused", refused, "unchanged kernel"]
    yield mnb.explore(program.plane, X.reshape(4, 4), gain=1.5), ["plane", "gain = 1.5"]


def test_a_sparkline_draws_values_that_are_not_finite() -> None:
    assert html_parts.sparkline([math.nan, 2.0, 1.0, 0.0, math.inf]) == " █▅▁█"
    assert html_parts.sparkline([math.nan]) == " "
    assert html_parts.sparkline([math.inf, -math.inf, 0.0]) == "█▁▁"


def test_the_charts_of_a_first_run_show_its_times(program: mnb.Program) -> None:
    fresh = mnb.dashboard(program.saxpy, X, X.copy(), a=2.0)
    plots = ET.fromstring(f"<p>{html_parts.history(fresh.timings, fresh.labels)}</p>")  # noqa: S314  (made here)
    assert len(plots.findall(".//path[@class='metalnb-dot']")) == min(60, len(fresh.timings[0].seconds)) > 1
    assert "1 run, from" in visible(fresh.html())
    assert fresh.plots()
    assert fresh.run()
    html = visible(fresh.html())
    assert "medians of the runs" in html
    assert "2 runs, from" in html


@pytest.mark.usefixtures("no_other_engine")
def test_each_widget_has_a_picture_of_itself_without_scripts(program: mnb.Program, board: Dashboard) -> None:
    for live, texts in shown_things(program, board):
        bundle = live._repr_mimebundle_()
        assert bundle[VIEW]["model_id"] == live.widget.model_id
        assert not re.search(r"<script|\son\w+=|javascript:", bundle["text/html"])
        html, text = visible(bundle["text/html"]), bundle["text/plain"]
        for part in texts:
            assert part in html
        assert live.text() == repr(live) == text
        assert texts[0] in text


def test_nbconvert_shows_the_picture_where_no_widget_runs(program: mnb.Program, board: Dashboard) -> None:
    nbconvert = pytest.importorskip("nbconvert")
    import nbformat

    bundles = [live._repr_mimebundle_() for live, _ in shown_things(program, board)]
    outputs = [nbformat.v4.new_output("display_data", data=bundle) for bundle in bundles]
    cells = [nbformat.v4.new_code_cell("", outputs=[output]) for output in outputs]
    page, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    assert page.count('class="metalnb"') == 3
    assert page.count('class="metalnb-plot"') == 2
    assert "data:image/png;base64," in page
    assert "model_id" not in page


def test_a_dashboard_knows_the_operations_that_a_profile_counted(program: mnb.Program) -> None:
    x, y = np.ones(1000, np.float32), np.ones(1000, np.float32)
    call = {"grid": 1000, "threadgroup": 50}
    mnb.profile(program.saxpy, x, y, 3.0, **call)
    assert mnb.dashboard(program.saxpy, x, y, a=3.0, **call).timings[-1].flops == 2000
    assert mnb.dashboard(program.saxpy, x, y, a=4.0, **call).timings[-1].flops is None  # a may be a loop's length


def test_text_of_the_author_is_never_markup() -> None:
    assert "<b>" not in svg_plots.line([1.0, 2.0], ["<b>", "<i>"])


def test_plots_survive_equal_and_single_values() -> None:
    for values in ([1e-6], [2e-6, 2e-6, 2e-6], [1e-6, 1e-3], [0.0, 0.0]):
        for svg in (svg_plots.histogram(values, values[0]), svg_plots.line(values), svg_plots.spark(values)):
            assert ET.fromstring(svg).tag == "svg"  # noqa: S314  (metalnb's own)
            assert "nan" not in svg
    low, high, counts = svg_plots.bins([1.0] * 98 + [2.0, 50.0])
    assert (low, high, sum(counts)) == (1.0, 50.0, 100)


def test_widgets_are_made_only_when_they_are_shown(program: mnb.Program) -> None:
    assert mnb.dashboard(program.saxpy, X, a=1.0)._box is None


# --- the thread ------------------------------------------------------------------------------------------------------


def test_only_the_latest_request_is_executed() -> None:
    done, go = [], threading.Event()

    def work(wanted: int) -> None:
        go.wait(300)
        done.append(wanted)

    latest = Latest(work)
    latest.ask(0)
    end = time.monotonic() + 300
    while latest._requests and time.monotonic() < end:
        pass
    for n in range(1, 50):
        latest.ask(n)
    go.set()
    assert latest.wait(300)
    assert done == [0, 49]
    assert threading.active_count() == sum(t.is_alive() for t in threading.enumerate())
    latest.ask(50)
    assert latest.wait(300)
    assert done == [0, 49, 50]


def test_pending_work_does_not_block_process_exit() -> None:
    done: list[int] = []
    latest = Latest(done.append, 3000.0)
    latest.ask(1)
    latest._drop()
    assert latest.wait(300)
    assert done == []


def test_ipywidgets_knows_every_control(board: Dashboard) -> None:
    kinds = {name: type(control) for name, control in board.controls.items()}
    assert kinds == {
        "grid": ipywidgets.SelectionSlider, "threadgroup": ipywidgets.SelectionSlider, "a": ipywidgets.FloatSlider,
    }  # fmt: skip
    assert json.dumps(board.widget.get_state(), default=str)


# --- ends ------------------------------------------------------------------------------------------------------------


def test_cell_run_again_closes_its_earlier_widget(
    program: mnb.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = 0

    class Shell:
        def get_parent(self) -> dict[str, Any]:
            return {"header": {"msg_id": f"run {run}"}, "metadata": {"cellId": "c0"}}

    monkeypatch.setattr("IPython.core.getipython.get_ipython", Shell)
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: None)
    first, beside, second = mnb.monitor(), mnb.monitor(), mnb.monitor()
    first._ipython_display_()
    beside._ipython_display_()
    assert (first.on, beside.on) == (True, True), "one run of a cell may show several"
    run = 1
    first._ipython_display_()
    assert (first.on, beside.on) == (True, False)
    run = 2
    second._ipython_display_()
    assert (first.on, second.on) == (False, True)
    second.stop()


def test_widget_of_a_cell_is_freed_when_nothing_else_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Small(Live):
        def text(self) -> str:
            return ""

        def html(self) -> str:
            return ""

        def _create_box(self) -> Any:
            return SimpleNamespace(_repr_mimebundle_=dict)

    monkeypatch.setattr("metalnb.widgets.live_widget._place", lambda: ("c1", "a run"))
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: None)
    shown = Small()
    shown._ipython_display_()
    alive = weakref.ref(shown)
    del shown
    gc.collect()
    assert alive() is None


def test_process_exits_cleanly_while_widgets_run() -> None:
    """Threads cut off inside the device's runtime used to crash the process."""
    script = """
import atexit
atexit.register(lambda: print(tuner.running))  # runs after those that are registered later
import numpy as np, metalnb as mnb
f = mnb.compile("kernel void f(device float* y, uint i [[thread_position_in_grid]]) { y[i] += 1; }").f
y = np.zeros(1 << 22, np.float32)
board = mnb.dashboard(f, y)
_ = board.widget
board.controls["threadgroup"].value = (32,)
seen = mnb.monitor()
tuner = mnb.tune(f, y)
while not tuner.done:
    pass
print(tuner.running)
"""
    done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\nFalse\n"), done.stderr


def test_no_card_dresses_another() -> None:
    """On a notebook's page every card's style holds for all of them: a class has one meaning."""
    from metalnb.display import card_buttons, frame
    from metalnb.timing.views import html_cards
    from metalnb.validation import report_view
    from metalnb.widgets import html_parts

    package = Path(mnb.__file__).parent
    styles = {
        "frame": frame._CSS, "buttons": card_buttons.BUTTONS_CSS, "timings": html_cards._CSS,
        "widgets": html_parts._CSS,
        "checks": report_view._CSS.removesuffix(card_buttons.BUTTONS_CSS),
        "profile": package.joinpath("profiling", "profile.css").read_text("utf-8"),
        "stepper": package.joinpath("stepping", "stepper.css").read_text("utf-8"),
    }  # fmt: skip
    dressed = [(of, name) for of, style in styles.items() for name in re.findall(r"\.((?:metalnb|m[pt])[\w-]*)", style)]
    owners: dict[str, set[str]] = {}
    for of, name in dressed:
        owners.setdefault(name, set()).add(of)
    assert owners.pop("metalnb") == styles.keys()
    assert len(owners) > 100
    assert [f"{name}: {sorted(of)}" for name, of in owners.items() if len(of) > 1] == []


# --- user actions -----------------------------------------------------------------------------------------------------

WINDOW = """
kernel void rings(device float* image, constant float2& center, constant float& height, constant float3& tint,
                  uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    float2 p = center + (float2(at) + 0.5 - 0.5 * float2(size)) / size.y * height;
    image[at.y * size.x + at.x] = p.y + tint.x;
}
"""


def send_event(live: Any, did: str, **how: Any) -> None:
    """Send what the page sends after a user's action."""
    live._events._on_message(live._events, {"event": did, **how}, [])
    live.wait(300)


@pytest.mark.parametrize("origin", ["upper", "lower"])
def test_a_point_under_the_wheel_stays_where_it_is(origin: str) -> None:
    kernel = mnb.compile(WINDOW).rings
    launch = {"center": (1.0, 2.0), "height": 4.0, "tint": (0, 0, 0), "grid": (40, 20), "origin": origin}
    explorer = mnb.explore(kernel, **launch, window=("center.x", "center.y", "height"), limits=(0, 1))
    _ = explorer.widget
    assert set(explorer.controls) == {"tint.x", "tint.y", "tint.z"}
    down = 1 if origin == "upper" else -1

    def under(x: float, y: float) -> tuple[float, float]:
        now = explorer.settings
        return now["center.x"] + x * now["height"], now["center.y"] + down * y * now["height"]

    before = under(0.5, -0.25)
    send_event(explorer, "move", dx=0, dy=0, by=2, x=0.5, y=-0.25)
    assert explorer.settings["height"] == 2
    assert under(0.5, -0.25) == pytest.approx(before)
    send_event(explorer, "move", dx=0.1, dy=0.2, by=1, x=0, y=0)
    assert under(0.6, -0.05) == pytest.approx(before), "a drag takes the point with it"
    top = explorer._values[0][0 if origin == "upper" else -1, 0] - down * 0.05
    assert top == pytest.approx(under(0, -0.5)[1], abs=1e-6), "the kernel got it"
    send_event(explorer, "reset")
    assert explorer.settings == {"center.x": 1, "center.y": 2, "height": 4, "tint.x": 0, "tint.y": 0, "tint.z": 0}
    with pytest.raises(mnb.ArgumentError, match=r"window must name three float scalars.*got \('a', 'b', 'c'\).*height"):
        mnb.explore(kernel, **launch, window=("a", "b", "c"))


def test_arrow_keys_move_a_hundredth_of_the_range_or_a_thousandth(program: mnb.Program) -> None:
    explorer = mnb.explore(program.plane, np.ones((8, 8), np.float32), gain=1.0, ranges={"gain": (0, 4)})
    _ = explorer.widget
    send_event(explorer, "key", index=0, by=1, fine=False)
    assert explorer.settings["gain"] == pytest.approx(1.04)
    send_event(explorer, "key", index=0, by=-1, fine=True)
    assert explorer.settings["gain"] == pytest.approx(1.036)
    for _ in range(30):
        send_event(explorer, "key", index=0, by=-1, fine=False)
    assert explorer.settings["gain"] == 0, "and no further"
    many = mnb.dashboard(program.many, p={"scale": 1, "tint": (0, 0, 0), "count": 1, "on": True}, c=(0, 0), n=3, k=7,
                         grid=64)  # fmt: skip
    _ = many.widget
    place = [k for k in many.controls if k not in {"grid", "threadgroup", "p.on"}].index("n")
    send_event(many, "key", index=place, by=1, fine=True)
    assert many.settings["n"] == 4, "a whole number moves by one at least"


def test_a_call_is_written_as_python(program: mnb.Program) -> None:
    x = np.ones(64, np.float32)
    board = mnb.dashboard(program.saxpy, x, x, a=0.1, threadgroup=32)
    _ = board.widget
    assert board._events.call == "saxpy(x=x, y=y, a=0.1, grid=64, threadgroup=32)"
    params = {"scale": 0.5, "tint": (1, 2, 3), "count": 5, "on": True}
    call = bound_call("test", program.many, (), {"p": params, "c": (0.1, -4), "n": 64, "k": -3, "grid": 64})
    text = call_text(call, [p.value for p in call.parts])
    out = eval(text.removeprefix("out = "), {"many": program.many})  # noqa: S307  (the text is a call)
    np.testing.assert_array_equal(out, program.many(p=params, c=(0.1, -4), n=64, k=-3, grid=64))
    assert text.startswith("out = many(p={'scale': 0.5, ")
    assert "c=(0.1, -4.0), n=64, k=-3, grid=64)" in text


def test_a_call_as_python_has_all_options_of_the_call(program: mnb.Program) -> None:
    x = np.ones((8, 8), np.float32)
    call = bound_call("test", program.plane, (x,), {"gain": -np.inf, "shapes": {"out": (4, 16)}, "timeout": 5})
    text = call_text(call, [p.value for p in call.parts])
    assert text == "out = plane(image=image, gain=float('-inf'), grid=(8, 8), shapes={'out': (4, 16)}, timeout=5)"
    assert call.dispatch().timeout == 5


def test_parameters_may_have_pythons_keywords_as_names() -> None:
    kernel = mnb.compile("""kernel void shrink(device const float* in, device float* is, constant float& lambda,
        uint i [[thread_position_in_grid]]) { is[i] += lambda * in[i]; }""").shrink
    x, y = np.ones((2, 64), np.float32)
    call = bound_call("test", kernel, (x, y, 2.0), {})
    text = call_text(call, [p.value for p in call.parts])
    assert text == "shrink(**{'in': in_}, **{'is': is_}, **{'lambda': 2.0}, grid=64)"
    given = {"shrink": kernel, "in_": x, "is_": y, "np": np}
    eval(text, given)  # noqa: S307  (the text is a call)
    eval(kernel.card.call, given)  # noqa: S307
    assert (y == 1 + 2 + 1).all()
    assert kernel.card.call == "shrink(in_, is_, **{'lambda': 1.0})"


def test_parameters_may_be_named_like_the_options_of_a_call() -> None:
    kernel = mnb.compile("""kernel void life(device const float* x, device float* grid, constant float& by,
        uint i [[thread_position_in_grid]]) { grid[i] = by * x[i]; }""").life
    x = np.ones(64, np.float32)
    call = bound_call("test", kernel, (x, x.copy(), 2.0), {"grid": 32})
    assert call_text(call, [p.value for p in call.parts]) == "life(x, grid, by=2.0, grid=32)"


def test_plot_of_equal_times_is_at_these_times(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Any] = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, *_, **__: figures.append(figure))
    plots_png([("equal", [3e-6] * 30, "bars"), ("others", [1e-6, 2e-6, 3e-6] * 10, "bars")])
    low, high = figures[0].axes[0].get_xlim()
    assert 2e-6 < low < 3e-6 < high < 4e-6


def test_where_svg_is_stripped_the_plots_are_a_png(program: mnb.Program, board: Dashboard) -> None:
    """A page that strips SVG also strips styles, and so shows what a style hides."""
    html = board._repr_mimebundle_()["text/html"]
    assert '<style scoped="">.metalnb-png.metalnb-png{display:none!important}</style>' in html
    hidden = r'<img class="metalnb-png" alt="dashboard: .*?base64,(.*?)"/>'
    match = re.search(hidden, html, re.DOTALL)
    assert match
    with Image.open(io.BytesIO(base64.b64decode(match[1]))) as picture:
        assert picture.width > 2 * picture.height
        assert np.ptp(np.asarray(picture.convert("RGBA"))[..., 3]) == 255, "drawn on nothing"
    with mnb.monitor() as monitor:
        assert monitor.plots() == b""
        for _ in range(3):
            program.saxpy(X, X.copy(), a=1.0)
    assert 'class="metalnb-png"' in monitor._repr_mimebundle_()["text/html"]


def test_picture_is_redrawn_when_the_pointer_is_released(
    program: mnb.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Handle:
        taken: ClassVar[list[Any]] = []

        def update(self, bundle: Any, **_: Any) -> None:
            self.taken.append(bundle["text/plain"])

    monkeypatch.setattr(Live, "_IDLE_SECONDS", 0.05)
    explorer = mnb.explore(program.plane, np.ones((8, 8), np.float32), gain=1.0)
    _ = explorer.widget
    explorer._handles.append(Handle())
    send_event(explorer, "on")
    explorer.controls["gain"].value = 0.5
    assert explorer.wait(300)
    assert explorer._picture_worker.wait(0)
    assert Handle.taken == [], "the page redraws the widget for it"
    send_event(explorer, "off")
    assert explorer._picture_worker.wait(300)
    (text,) = Handle.taken
    assert "gain = 0.5" in text
    send_event(explorer, "on")
    send_event(explorer, "off")
    assert explorer._picture_worker.wait(300)
    assert len(Handle.taken) == 1, "nothing is new"
