"""The pictures of matrices: each element's owner, and a threadgroup's tiles of a product's factors."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest

import metalnb as mnb
from metalnb import drawing
from metalnb.drawing.canvas import COLORS

pytest.importorskip("matplotlib")
image = pytest.importorskip("PIL.Image")


def where(picture: drawing.Picture, number: int) -> tuple[float, float, int]:
    """Return a color's center, down and across as fractions of the picture, and how many pixels have it."""
    drawn = np.asarray(image.open(io.BytesIO(picture.png)).convert("RGBA"))
    found = np.argwhere((drawn == [*bytes.fromhex(COLORS[number][1:]), 255]).all(-1))
    down, across = found.mean(0) / drawn.shape[:2] if len(found) else (0.0, 0.0)
    return float(down), float(across), len(found)


def test_plane_shows_which_thread_owns_each_element() -> None:
    picture = drawing.plane([[0, 1], [-1, 0]], word="bank")
    assert repr(picture) == "row 0: banks 0 1\nrow 1: banks – 0"
    assert where(picture, 1)[2] > 100
    assert where(picture, 2)[2] == 0
    assert where(drawing.plane([[0], [0], [1]]), 1)[0] > where(drawing.plane([[1], [0], [0]]), 1)[0]
    assert where(drawing.plane([[0, 0, 1]]), 1)[1] > where(drawing.plane([[1, 0, 0]]), 1)[1]


def test_tiles_show_a_threadgroups_data_at_a_step() -> None:
    picture = drawing.tiles(8, (4, 2, 2), at=(1, 3), step=2)
    assert repr(picture).splitlines() == [
        "makes rows 4 to 7, columns 6 to 7 of C",
        "step 3 of 4 holds rows 4 to 7, columns 4 to 5 of A and rows 4 to 5, columns 6 to 7 of B",
    ]


def test_tiles_of_a_product_are_drawn_beside_each_other() -> None:
    """A's tile is to the left of C's, and B's above it; the next step moves A's to the right and B's down."""
    now, later = (drawing.tiles(12, (4, 4, 4), at=(1, 2), step=step) for step in (0, 2))
    (of_a, of_b, of_c), (next_a, next_b, next_c) = ([where(p, n) for n in (4, 0, 3)] for p in (now, later))
    assert of_a[0] == pytest.approx(of_c[0], abs=0.01)
    assert of_b[1] == pytest.approx(of_c[1], abs=0.01)
    assert next_a[1] > of_a[1]
    assert next_b[0] > of_b[0]
    assert next_c == of_c
    assert min(of_a[2], of_b[2], of_c[2]) > 100


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: drawing.plane([0, 1]), r"plane: owners .* shape \(R, C\); got int64, shape \(2,\)\."),
        (lambda: drawing.plane([[0.5]]), "plane: owners are whole numbers"),
        (lambda: drawing.plane(np.zeros((1, 65), int)), "plane: draws 1 to 64 elements; got 65"),
        (lambda: drawing.tiles(64, (4, 4, 4)), "tiles: draws matrices of 1 to 32 rows; got 64"),
        (lambda: drawing.tiles(8, (4, 4, 4), at=(2, 0)), r"tiles: tile .* at \(2, 0\), step 0, is outside"),
        (lambda: drawing.tiles(8, (4, 4, 4), step=-1), "step -1, is outside matrices of 8"),
        (lambda: drawing.tiles(8, (0, 4, 4)), "is outside matrices of 8"),
    ],
)
def test_invalid_drawings_are_refused(draw: Callable[[], object], said: str) -> None:
    with pytest.raises(mnb.ArgumentError, match=said):
        draw()
