"""The plot of measured figures over a size: it describes in words what it draws, and refuses what cannot be drawn."""

from __future__ import annotations

import io

import numpy as np
import pytest

import metalnb as mnb
from metalnb import drawing
from metalnb.drawing.canvas import COLORS

pytest.importorskip("matplotlib")
image = pytest.importorskip("PIL.Image")


def pixels(picture: drawing.Picture) -> np.ndarray:
    return np.asarray(image.open(io.BytesIO(picture.png)).convert("RGBA"))


def drawn(picture: drawing.Picture) -> int:
    """Return how many colors of the palette the picture has."""
    found = {tuple(map(int, color)) for color in np.unique(pixels(picture)[..., :3].reshape(-1, 3), axis=0)}
    return sum(tuple(bytes.fromhex(name[1:])) in found for name in COLORS)


def test_curves_describe_points_in_order_and_limits() -> None:
    picture = drawing.curves(
        {"copy": {4096: 3e-6, 1: 2e-6}}, across="elements", unit="s", limits={"a launch": 2e-6}, marks={"bend": 64}
    )
    assert repr(picture).splitlines() == ["copy: 2.00 µs at 1, 3.00 µs at 4,096", "a launch: 2.00 µs", "bend: at 64"]


def test_a_limit_may_change_along_the_axis() -> None:
    picture = drawing.curves({"a": {1: 1e9}}, across="rounds", unit="FLOP/s", limits={"the roof": {1: 2e9, 64: 128e9}})
    assert repr(picture).endswith("the roof: 2.00 GFLOP/s at 1, 128 GFLOP/s at 64")


def test_sizes_are_shown_in_bytes() -> None:
    picture = drawing.curves({"walk": {512: 1e9, 4096: 2e9, 3 << 20: 1e9}}, across="array", unit="B/s", sizes=True)
    assert repr(picture) == "walk: 1.00 GB/s at 512 B, 2.00 GB/s at 4 KiB, 1.00 GB/s at 3 MiB"
    part = drawing.curves({"walk": {0.5: 1e9}}, across="array, per thread", unit="B/s", sizes=True)
    assert repr(part) == "walk: 1.00 GB/s at 0.5 B"


def test_each_line_has_its_color_and_the_page_shows_through() -> None:
    two = drawing.curves({"a": {1: 1.0, 2: 2.0}, "b": {1: 2.0, 2: 1.0}}, across="n", unit="s")
    assert drawn(two) == 2
    assert pixels(two)[0, 0, 3] == 0


REFUSED = r"curves: needs points, with numbers above 0; got "


@pytest.mark.parametrize(
    "lines", [{}, {"a": {}}, {"a": {0: 1.0}}, {"a": {1: -1.0}}, {"a": {1: 1.0}, "b": {}}, {"a": {1: 1.0, 2: np.nan}}],
)
def test_invalid_drawings_are_refused(lines: dict[str, dict[float, float]]) -> None:
    with pytest.raises(mnb.ArgumentError, match=REFUSED):
        drawing.curves(lines, across="n", unit="s")


@pytest.mark.parametrize(
    "more", [{"limits": {"a": -1.0}}, {"limits": {"b": {}}}, {"limits": {"b": {0: 1.0}}}, {"marks": {"c": 0}}],
)
def test_invalid_limits_and_marks_are_refused(more: dict[str, dict[str, float]]) -> None:
    with pytest.raises(mnb.ArgumentError, match=REFUSED):
        drawing.curves({"a": {1: 1.0}}, across="n", unit="s", sizes=True, **more)
