"""The notebooks' pictures: they describe in words what they draw, and refuse what cannot be drawn."""

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

HALVES = [[(t, t + gap) for t in range(gap)] for gap in (4, 2, 1)]
NEIGHBORS = [[(t, t + gap) for t in range(0, 8, 2 * gap)] for gap in (1, 2, 4)]


def pixels(picture: drawing.Picture) -> np.ndarray:
    assert picture._repr_mimebundle_()["image/png"] == picture.png
    return np.asarray(image.open(io.BytesIO(picture.png)).convert("RGBA"))


def boxes(picture: drawing.Picture, rows: int, columns: int) -> list[list[int]]:
    """Return, for each row of a tree, the columns whose box has a color of the palette."""
    drawn = pixels(picture)[..., :3]
    height, width = drawn.shape[:2]
    pitch = height / (1.6 * (rows - 1) + 1)  # boxes are 1.6 apart; 2.6 columns on the left are for names
    found = []
    for row in range(rows):
        middle = drawn[int(pitch * (1.6 * row + 0.25))]  # above the number in the box
        places = [int(width * (2.6 + column) / (columns + 2.2)) for column in range(columns)]
        found.append([c for c, x in enumerate(places) if "#" + bytes(middle[x].tolist()).hex() in COLORS])
    return found


def shades(picture: drawing.Picture) -> int:
    """Return how many colors of the palette the picture has."""
    drawn = {tuple(map(int, color)) for color in np.unique(pixels(picture)[..., :3].reshape(-1, 3), axis=0)}
    return sum(tuple(bytes.fromhex(name[1:])) in drawn for name in COLORS)


def test_tree_shows_active_threads_of_each_round() -> None:
    neighbors, halves = drawing.tree(8, NEIGHBORS), drawing.tree(8, HALVES)
    assert repr(neighbors).splitlines() == [
        "round 1: threads 0 2 4 6 work, in 2 of 2 SIMD-groups",
        "round 2: threads 0 4 work, in 2 of 2 SIMD-groups",
        "round 3: threads 0 work, in 1 of 2 SIMD-groups",
    ]
    assert repr(halves).splitlines() == [
        "round 1: threads 0 1 2 3 work, in 1 of 2 SIMD-groups",
        "round 2: threads 0 1 work, in 1 of 2 SIMD-groups",
        "round 3: threads 0 work, in 1 of 2 SIMD-groups",
    ]
    assert boxes(neighbors, 4, 8) == [[*range(8)], [0, 2, 4, 6], [0, 4], [0]]
    assert boxes(halves, 4, 8) == [[*range(8)], [0, 1, 2, 3], [0, 1], [0]]
    assert shades(neighbors) == 2
    assert shades(drawing.tree(8, HALVES, simd=2)) == 4


def test_reads_show_who_reads_what_in_each_step() -> None:
    thread, step = np.mgrid[:4, :2]
    apart, together = drawing.reads(2 * thread + step), drawing.reads(4 * step + thread)
    assert repr(apart) == "step 1: threads 0 to 3 read elements 0 2 4 6\nstep 2: threads 0 to 3 read elements 1 3 5 7"
    assert repr(together).endswith("read elements 4 5 6 7")
    assert shades(apart) == shades(together) == 4
    assert pixels(drawing.reads([[0], [1]], size=20)).shape[1] > pixels(drawing.reads([[0], [1]])).shape[1]


def test_reads_call_readers_and_steps_as_the_kernel_does() -> None:
    picture = drawing.reads([[0, 2], [1, 3]], word="lane", loop="k")
    assert repr(picture) == "k = 0: lanes 0 to 1 read elements 0 1\nk = 1: lanes 0 to 1 read elements 2 3"
    assert picture.png != drawing.reads([[0, 2], [1, 3]]).png  # the rows have this name, too


def test_elements_are_colored_by_their_reader() -> None:
    drawn = pixels(drawing.reads([[1], [0]]))[..., :3]
    first, second = (np.array(list(bytes.fromhex(name[1:]))) for name in COLORS[:2])
    across = [np.nonzero((drawn == color).all(-1))[1].mean() for color in (first, second)]
    assert across[0] > across[1]  # thread 0 reads element 1, on the right


def test_ladder_shows_each_rate_against_the_limit() -> None:
    picture = drawing.ladder({"one thread": 5e9, "all": 30e9}, 40e9)
    assert repr(picture) == "one thread  5.00 GB/s, 12 % of the limit\nall         30.0 GB/s, 75 % of the limit"
    assert shades(picture) == 2  # the newest stands out
    assert repr(drawing.ladder({"a": 1e9}, 2e9, unit="FLOP/s")) == "a  1.00 GFLOP/s, 50 % of the limit"


def test_names_are_drawn_verbatim_even_with_dollar_signs() -> None:
    for name in ("$x_{$", "$x$"):
        picture = drawing.ladder({name: 1e9, "b": 2e9}, 4e9)
        assert repr(picture).startswith(name)
        drawing.timeline({name: [name, ""], "b": ["", name]})
        drawing.curves({name: {1: 2.0, 2: 3.0}}, across=name, unit="B/s", marks={name: 1.5})


def test_the_best_of_a_ladder_can_stand_out_instead_of_the_newest() -> None:
    def marked(rates: dict[str, float], *, best: bool) -> float:
        drawn = pixels(drawing.ladder(rates, 40e9, best=best))[..., :3]
        expected = np.array(list(bytes.fromhex(COLORS[3][1:])))
        return float(np.nonzero((drawn == expected).all(-1))[0].mean() / len(drawn))

    rates = {"fast": 30e9, "slow": 5e9}
    assert marked(rates, best=True) < 0.4 < marked(rates, best=False)


def test_a_picture_is_transparent_so_that_it_suits_any_page() -> None:
    for picture in (drawing.tree(8, HALVES), drawing.reads([[0, 2]]), drawing.ladder({"a": 1e9}, 2e9)):
        corner = pixels(picture)[0, 0]
        assert corner[3] == 0


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: drawing.tree(4, [[(0, 4)]]), r"tree: element 4 is outside the array of 4\."),
        (lambda: drawing.tree(4, [[(-1, 2)]]), r"tree: element -1 is outside"),
        (lambda: drawing.tree(65, []), r"tree: draws 1 to 64 elements; got 65\."),
        (lambda: drawing.reads([[0], [9]], size=8), r"reads: element 9 is outside the array of 8\."),
        (lambda: drawing.reads([0, 1]), r"reads: elements .* shape \(threads, steps\); got int64, shape \(2,\)\."),
        (lambda: drawing.reads([[0.5]]), "reads: elements must be whole numbers"),
        (lambda: drawing.ladder({}, 1e9), "ladder: needs rates above 0"),
        (lambda: drawing.ladder({"a": 0.0}, 1e9), "ladder: needs rates above 0"),
        (lambda: drawing.ladder({"a": 1e9, "b": float("nan")}, 1e9), "ladder: needs rates above 0"),
        (lambda: drawing.ladder({"a": 1e9}, float("inf")), "ladder: needs rates above 0"),
        (lambda: drawing.tree(4, [[(0, 1)]], simd=0), "tree: a SIMD-group has at least 1 thread; got simd=0"),
    ],
)
def test_invalid_drawings_are_refused(draw: Callable[[], object], said: str) -> None:
    with pytest.raises(mnb.ArgumentError, match=said):
        draw()


def test_long_names_of_rows_are_not_cut() -> None:
    for draw in (
        lambda name: drawing.reads([[0, 2]], loop=name), lambda name: drawing.timeline({name: ["a"], "b": ["c"]}),
    ):  # fmt: skip
        short, long = (pixels(draw(name)) for name in ("k", "the iteration of the outer loop"))
        assert long.shape[1] > short.shape[1]
        assert not long[:, :5, 3].any(), "a margin is left"


def test_timeline_shows_steps_of_each_row() -> None:
    rows = {"SIMD-group 0": ["writes", "", "reads"], "SIMD-group 1": ["", "writes", "reads"]}
    free, held = drawing.timeline(rows), drawing.timeline(rows, barriers=[2])
    assert repr(free) == "SIMD-group 0: writes, -, reads\nSIMD-group 1: -, writes, reads"
    assert repr(held).splitlines()[0] == "SIMD-group 0: writes, -, barrier, reads"
    assert shades(free) == shades(held) == 2
    differ = np.nonzero((pixels(free) != pixels(held)).any(-1))[1]
    assert 0.68 < differ.min() / pixels(held).shape[1] < differ.max() / pixels(held).shape[1] < 0.79  # 2.8 of 3.8


@pytest.mark.parametrize(("rows", "barriers", "message"), [
    ({}, [], "an entry for every moment; got rows of length []"),
    ({"a": []}, [], "an entry for every moment; got rows of length [0]"),
    ({"a": ["x"], "b": ["x", "y"]}, [], "an entry for every moment; got rows of length [1, 2]"),
    ({"a": ["x", "y"]}, [2], "between two of the 2 moments; got 2"),
    ({"a": ["x", "y"]}, [0], "between two of the 2 moments; got 0"),
])  # fmt: skip
def test_invalid_timelines_are_refused(rows: dict[str, list[str]], barriers: list[int], message: str) -> None:
    with pytest.raises(mnb.ArgumentError, match=message.replace("[", r"\[").replace("]", r"\]")):
        drawing.timeline(rows, barriers=barriers)
