"""Two-dimensional arrays in a trace: the part drawn, and an element's position in it."""

import base64
import json
import re
from typing import Any

import numpy as np
import pytest
from checking.traced_build import TRACED

import metalnb as mnb

pytestmark = TRACED

COPY = """
kernel void copy(device const float* x, device float* y, uint2 i [[thread_position_in_grid]],
                 uint2 n [[threads_per_grid]]) { y[i.y * n.x + i.x] = x[i.y * n.x + i.x]; }"""


def images(seen: Any) -> dict[str, Any]:
    return {m.name: m.image for m in seen.memory if m.image}


def paged(seen: Any) -> dict[str, Any]:
    """Return the page's data for each array."""
    (data,) = re.findall(r'metalnbStepper\("[^"]*",(\{.*\})\);</script>', seen._repr_html_(), re.DOTALL)
    return {m["name"]: m for m in json.loads(data)["memory"]}


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def test_a_small_array_is_drawn_whole_with_its_previous_values() -> None:
    x = numbers((40, 48))
    stepper = mnb.trace(mnb.compile(COPY).copy, x, np.zeros_like(x), threadgroup=(8, 4))
    found = images(stepper)
    assert {name: (i.shape, i.first, i.steps, i.per) for name, i in found.items()} == dict.fromkeys(
        "xy", ((40, 48), (0, 0), (1, 1), 1)
    )
    np.testing.assert_array_equal(found["x"].values[..., 0], x)
    assert not found["y"].values.any(), "the run is made on copies"
    page = paged(stepper)["x"]["image"]
    sent = np.frombuffer(base64.b64decode(page["values"]), "<f4").reshape(page["size"])
    np.testing.assert_array_equal(sent[..., 0], x)
    writes = np.array(paged(stepper)["y"]["writes"]).reshape(-1, 4)
    assert sorted(writes[:, 2]) == [r * 48 + c for r in range(4) for c in range(8)]


def test_of_a_large_array_the_part_around_the_threadgroup_is_drawn() -> None:
    x = numbers((300, 1000))
    stepper = mnb.trace(mnb.compile(COPY).copy, x, np.zeros_like(x), threadgroup=(16, 16), thread=(990, 150))
    image = images(stepper)["x"]
    assert (image.values.shape, image.steps) == ((32, 32, 1), (1, 1))
    row, column = image.first
    assert row <= 144 - 2
    assert row + 32 >= 160 + 2
    assert column == 1000 - 32
    np.testing.assert_array_equal(image.values[..., 0], x[row : row + 32, column : column + 32])


def test_wide_pictures_are_thinned() -> None:
    rows = mnb.compile("""
    kernel void sums(device const float* x, device float* y, constant uint& n, uint i [[thread_position_in_grid]]) {
        float sum = 0;
        for (uint k = 0; k < n; ++k) sum += x[i * n + k];
        y[i] = sum;
    }""").sums
    x = numbers((4, 1000))
    stepper = mnb.trace(rows, x, np.zeros(4, np.float32), 1000, threadgroup=4)
    image = images(stepper)["x"]
    assert (image.first, image.steps, image.values.shape) == ((0, 0), (1, 8), (4, 125, 1))
    np.testing.assert_array_equal(image.values[..., 0], x[:, ::8])
    assert "y" not in images(stepper), "one dimension is no image"


@pytest.mark.parametrize(("kind", "shape", "dtype", "per"), [
    ("float", (20, 30, 3), np.float32, 3), ("uchar", (20, 30, 4), np.uint8, 4),
    ("uchar4", (20, 30, 4), np.uint8, 1), ("float4", (20, 30, 4), np.float32, 1), ("int", (2, 20, 30), np.int32, 1),
])  # fmt: skip
def test_colors_are_one_pixel(kind: str, shape: tuple[int, ...], dtype: Any, per: int) -> None:
    text = f"kernel void k(device {kind}* x, uint i [[thread_position_in_grid]]) {{ x[i] = x[i + 5]; }}"
    x = numbers(shape, dtype)
    stepper = mnb.trace(mnb.compile(text).k, x, grid=8, threadgroup=8)
    image = images(stepper)["x"]
    rows, parts = (shape[0] * shape[1], 1) if kind == "int" else (20, shape[2])
    assert (image.shape, image.per, image.values.shape) == ((rows, 30), per, (rows, 30, parts))
    np.testing.assert_array_equal(image.values, x.reshape(rows, 30, parts))


@pytest.mark.parametrize(("kind", "at"), [("uchar", "3 * (150 * 300 + 200 + i)"), ("uchar4", "150 * 300 + 200 + i")])
def test_the_part_of_a_large_image_in_colors_is_the_one_that_is_touched(kind: str, at: str) -> None:
    x = numbers((200, 300, 4 if kind == "uchar4" else 3), np.uint8)
    text = f"kernel void k(device {kind}* x, uint i [[thread_position_in_grid]]) {{ x[{at}] = 0; }}"
    image = images(mnb.trace(mnb.compile(text).k, x, grid=8, threadgroup=8))["x"]
    (row, column), (rows, columns, _) = image.first, image.values.shape
    assert row < 150 < row + rows
    assert column < 200
    assert column + columns > 207
    np.testing.assert_array_equal(image.values, x[row : row + rows, column : column + columns])


def test_a_few_numbers_are_shown_as_numbers_in_the_rows_of_their_array() -> None:
    x = numbers((4, 6))
    stepper = mnb.trace(mnb.compile(COPY).copy, x, np.zeros_like(x), threadgroup=(6, 4))
    page = paged(stepper)
    assert [(page[n]["columns"], "image" in page[n]) for n in "xy"] == [(6, False)] * 2, "what is only read, too"


def test_an_array_that_is_not_touched_or_has_one_dimension_is_not_an_image() -> None:
    text = """kernel void k(device const float* x, device const float* never, device float* line, device float* column,
                            uint i [[thread_position_in_grid]]) { line[i] = x[i]; column[i] = 1; }"""
    x = numbers((30, 30))
    call = (x, x, np.zeros(900, np.float32), np.zeros((900, 1), np.float32))
    assert [*images(mnb.trace(mnb.compile(text).k, *call, grid=64, threadgroup=64))] == ["x"]


def test_an_array_of_the_engines_own_is_drawn_too(shared_memory: None) -> None:
    x = mnb.asarray(numbers((30, 30)))
    y = mnb.zeros((30, 30), dtype=mnb.float32)
    found = images(mnb.trace(mnb.compile(COPY).copy, x, y, threadgroup=(8, 4)))
    np.testing.assert_array_equal(found["x"].values[..., 0], numbers((30, 30)))
