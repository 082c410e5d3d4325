"""`animate` without a browser: what a simulation computes, and how it is played, drawn into, saved and refused."""

import io
import itertools
import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import metalnb as mnb
from metalnb.widgets.animate import Animation, frames
from metalnb.widgets.animate.film import Filmstrip

SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void heat(device const float* a, device float* b, constant float& alpha,
                 uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    uint up = i.y > 0 ? i.y - 1 : i.y, down = i.y + 1 < n.y ? i.y + 1 : i.y;
    uint left = i.x > 0 ? i.x - 1 : i.x, right = i.x + 1 < n.x ? i.x + 1 : i.x;
    float here = a[i.y * n.x + i.x];
    float around = a[up * n.x + i.x] + a[down * n.x + i.x] + a[i.y * n.x + left] + a[i.y * n.x + right];
    b[i.y * n.x + i.x] = here + alpha * (around - 4 * here);
}

kernel void waves(device const float* u, device const float* v, device float* u2, device float* v2,
                  uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    uint at = i.y * n.x + i.x, next = i.y * n.x + (i.x + 1) % n.x;
    u2[at] = u[at] + v[next];
    v2[at] = v[at] - 0.5f * u[at];
}

kernel void fall(device float2* p, device float2* v, uint i [[thread_position_in_grid]]) {
    v[i].y -= 0.25f;
    p[i] += v[i];
}

kernel void grow(device float* x, uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    x[i.y * n.x + i.x] *= 1e30f;
}

kernel void life(device const uchar* now, device uchar* next,
                 uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    next[i.y * n.x + i.x] = now[i.y * n.x + (i.x + 1) % n.x];
}

kernel void beyond(device const float* a, device float* b, constant uint& far,
                   uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    b[i.y * n.x + i.x] = a[i.y * n.x + i.x + far];
}
"""


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(SOURCE)


@pytest.fixture
def start() -> Any:
    array = np.zeros((24, 32), np.float32)
    array[8:16, 4:20] = 1
    return array


def stepped(live: Animation, frames: int = 1) -> Animation:
    for _ in range(frames):
        live.step()
    assert live.wait(300)
    assert live.error == ""
    return live


def send_event(live: Any, did: str, **how: Any) -> None:
    """Send the event that the page sends when a user acts on it."""
    live._events._on_message(live._events, {"event": did, **how}, [])
    live.wait(300)


# --- the state -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("swap", [None, ("a", "b")])
@pytest.mark.parametrize("steps", [1, 5])
def test_frames_are_the_kernel_on_its_own_results(program: mnb.Program, start: Any, swap: Any, steps: int) -> None:
    before = start.copy()
    live = stepped(mnb.animate(program.heat, start, alpha=0.2, swap=swap, steps=steps), 3)
    expected = start
    for _ in range(3 * steps):
        expected = program.heat(expected, alpha=0.2)
    np.testing.assert_array_equal(live.array("a"), expected)
    np.testing.assert_array_equal(start, before)
    assert (live.steps, live.frames) == (3 * steps, 3)
    live.reset()
    assert live.wait(300)
    np.testing.assert_array_equal(live.array("a"), before)
    assert (live.steps, live.frames) == (0, 0)
    assert stepped(live).frames == 1


def test_metalnb_arrays_can_be_the_state(program: mnb.Program, start: Any) -> None:
    live = stepped(mnb.animate(program.heat, mnb.array(start), alpha=0.2), 2)
    expected = program.heat(program.heat(start, alpha=0.2), alpha=0.2)
    np.testing.assert_array_equal(live.array("a"), expected)


def test_several_pairs_change_places(program: mnb.Program, rng: np.random.Generator) -> None:
    u, v = u1, v1 = rng.random((2, 6, 8)).astype(np.float32)
    live = stepped(mnb.animate(program.waves, u, v, swap=[("u", "u2"), ("v", "v2")], picture="v"), 3)
    for _ in range(3):
        u1, v1 = program.waves(u1, v1)
    np.testing.assert_array_equal(live.array("u"), u1)
    np.testing.assert_array_equal(live.array("v"), v1)


def test_arrays_that_are_updated_in_place_need_no_swap(program: mnb.Program) -> None:
    p, v = np.zeros((4, 2), np.float32), np.ones((4, 2), np.float32)
    seen = []

    def picture(state: Any) -> Any:
        seen.append(state.p.copy())
        return np.histogram2d(state.p[:, 1], state.p[:, 0], bins=16, range=[(-8, 8), (-8, 8)])[0]

    live = stepped(mnb.animate(program.fall, p, v, grid=4, picture=picture), 2)
    np.testing.assert_array_equal(live.array("p"), [[2, 1.25]] * 4)
    np.testing.assert_array_equal(seen[-1], live.array("p"))
    with Image.open(io.BytesIO(live.png)) as picture_:
        assert picture_.size == (16, 16)
    assert not p.any()


def test_slider_takes_effect_at_the_next_step(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2)
    _ = live.widget
    live._player.controls["alpha"].value = 0.125
    stepped(live)
    np.testing.assert_array_equal(live.array("a"), program.heat(start, alpha=0.125))
    assert live.settings == {"alpha": 0.125}
    assert "alpha=0.125" in live._events.call


# --- playing ---------------------------------------------------------------------------------------------------------


def comes_to(live: Animation, frames: int) -> None:
    """Wait until some frames exist, and check that no more follow in the time that many would take."""
    end = time.monotonic() + 300
    while live.frames < frames and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.3)
    assert live.frames == frames


def test_animation_keeps_to_its_frame_rate_and_pauses(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2, rate=20)
    began = time.monotonic()
    live.play()
    try:
        while live.frames < 20:
            time.sleep(0.01)
        assert live.playing
        assert live.rate > 0
        assert live.seconds_a_step > 0
    finally:
        live.pause()
    assert live.frames <= 20 * (time.monotonic() - began) + 2, "a frame that is late is made up for, and no more"
    assert live.wait(300)
    comes_to(live, live.frames)


def test_new_rate_holds_for_the_next_frame(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2, rate=0.001)
    _ = live.widget
    live.play()
    try:
        end = time.monotonic() + 300
        while live.frames < 1 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.3)
        before = live.frames
        assert before <= 2, "the next is due in a thousand seconds"
        (rates,) = (c for c in live._player.box.children[0].children if getattr(c, "description", "") == "frames/s")
        rates.value = 60
        while live.frames <= before and time.monotonic() < end:
            time.sleep(0.01)
        assert live.frames > before
    finally:
        live.pause()


def test_call_to_copy_follows_the_sliders_between_frames(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2)
    _ = live.widget
    assert "alpha=0.2, " in live._events.call
    live._player.controls["alpha"].value = 0.1
    assert "alpha=0.1, " in live._events.call
    assert "alpha = 0.1" in live._events.alt


def test_no_frame_is_made_before_the_page_has_shown_the_earlier_ones(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2, rate=60)
    _ = live.widget
    live._events._on_message(live._events, {"event": "shown", "index": None}, [])
    live.play()
    try:
        comes_to(live, 2)
        live._events._on_message(live._events, {"event": "shown", "index": live._events.frame}, [])
        comes_to(live, 4)
    finally:
        live.pause()


def test_cell_run_again_stops_its_earlier_animation(
    program: mnb.Program, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = iter([("the cell", "a run"), ("the cell", "another")])
    monkeypatch.setattr("metalnb.widgets.live_widget._place", lambda: next(places))
    first, second = (mnb.animate(program.heat, start, alpha=0.2) for _ in range(2))
    first._ipython_display_()
    first.play()
    second._ipython_display_()
    assert not first.playing
    assert first.wait(300)


def test_fault_is_shown_and_ends_the_animation(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.beyond, start, far=0, swap=("a", "b"), ranges={"far": (0, 1 << 30)})
    _ = live.widget
    live.play()
    live._player.controls["far"].value = 1 << 30
    assert live.wait(300)
    assert not live.playing
    assert "KernelFault" in live.error
    assert "KernelFault" in live._player._note.value
    assert "KernelFault" in live.html()
    live._player.controls["far"].value = 0
    live.reset()
    assert stepped(live).frames == 1


def test_fault_before_the_animation_is_shown_is_on_its_page(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.beyond, start, far=0, swap=("a", "b"), ranges={"far": (0, 1 << 30)})
    live._on_turn(live._knobs[0], 1 << 30)
    live.step()
    assert live.wait(300)
    assert "KernelFault" in live.error
    _ = live.widget
    assert "KernelFault" in live._player._note.value


def test_the_colors_of_one_frame_are_those_of_the_next(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start, alpha=0.25, steps=500, colors="gray")

    def brightest() -> int:
        with Image.open(io.BytesIO(live.png)) as picture:
            return int(np.asarray(picture.convert("L")).max())

    assert brightest() == 255
    stepped(live)
    assert brightest() == round(255 * float(live.array("a").max())) < 200, "what cools gets darker"


def test_numbers_that_are_not_finite_are_pointed_out(program: mnb.Program) -> None:
    live = mnb.animate(program.grow, np.ones((8, 8), np.float32))
    _ = live.widget
    stepped(live)
    assert "no longer finite" not in live._player._note.value
    stepped(live)
    assert "no longer finite" in live._player._note.value


def test_playing_for_long_does_not_take_memory(program: mnb.Program, start: Any) -> None:
    """A thousand frames; the benchmark's ten minutes are eighteen thousand."""
    live = mnb.animate(program.heat, start, alpha=0.2)
    _ = live.widget
    stepped(live, 100)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        stepped(live, 1000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000, "a hundred bytes a frame"
    assert len(live._frames.strip) <= 6


def test_process_exits_while_an_animation_plays() -> None:
    script = f"""
import atexit
atexit.register(lambda: print(live.playing))  # runs after those that are registered later
import numpy as np, metalnb as mnb
live = mnb.animate(mnb.compile({SOURCE!r}).heat, np.ones((64, 64), np.float32), alpha=0.2, play=True)
while live.frames < 3:
    pass
print(live.playing)
"""
    done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\nFalse\n"), done.stderr


# --- drawing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["upper", "lower"])
def test_a_line_is_drawn_into_the_state(program: mnb.Program, start: Any, origin: str) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2, brush=3.0, origin=origin)
    live._frames.brush.radius = 1
    live.draw((2.5 / 32, 20.5 / 24), (28.5 / 32, 20.5 / 24))
    assert live.wait(300)
    expected = start.copy()
    row = 20 if origin == "upper" else 3
    expected[row, 1:30] = 3
    expected[[row - 1, row + 1], 2:29] = 3
    np.testing.assert_array_equal(live.array("a"), expected)
    live.draw((2.5 / 32, 20.5 / 24), (28.5 / 32, 20.5 / 24), rub=True)
    assert live.wait(300)
    np.testing.assert_array_equal(live.array("a"), np.where(expected == 3, 0, expected))


def test_strokes_are_separate_and_clipped_at_the_edge(program: mnb.Program) -> None:
    live = mnb.animate(program.life, np.zeros((32, 32), np.uint8), swap=("now", "next"), brush=9.6)
    _ = live.widget
    live._frames.brush.radius = 0.5
    send_event(live, "draw", points=[[-0.5, 0.1], [0.1, 0.1], None, [0.9, 0.9], [1.5, 0.9]], rub=False)
    array = live.array("now")
    rows, columns = np.nonzero(array)
    assert set(rows.tolist()) == {3, 28}
    assert not array[:, 10:20].any()
    assert set(array[rows, columns].tolist()) == {10}


def test_a_brush_draws_finite_numbers_into_an_array_with_nan_and_infinity(program: mnb.Program, start: Any) -> None:
    for far in (np.inf, np.nan):
        array = np.where(start == 0, np.float32(far), start)
        array[0, 0] = -2
        live = mnb.animate(program.heat, array, alpha=0.2)
        _ = live.widget
        brush = live._frames.brush
        assert (brush.low, brush.high, brush.value, brush.erasing_value) == (-2, 1, 1, -2)
    wall = mnb.animate(program.heat, start, alpha=0.2, brush=np.inf)
    wall.draw((0.5, 0.5))
    assert wall.wait(300)
    assert (wall._frames.brush.high, wall.array("a").max()) == (1, np.inf)


def test_of_a_very_long_stroke_the_latest_points_are_drawn(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start * 0, alpha=0.2, brush=3.0)
    live._frames.brush.radius = 0.5
    early, late = (0.5 / 32, 2.5 / 24), (0.5 / 32, 20.5 / 24)
    live._frames.stroke([early] * 10 + [None] + [late] * (frames._POINTS - 1), rub=False)
    assert len(live._frames._strokes) == frames._POINTS
    live._frames.make(advance=False)
    assert np.argwhere(live.array("a")).tolist() == [[20, 0]]
    assert not live._frames._strokes


def test_a_drawing_while_it_plays_is_in_the_next_frame(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start * 0, alpha=0.2, rate=60)
    live.play()
    try:
        live.draw((0.5, 0.5))
        end = time.monotonic() + 300
        while live.array("a").max() == 0 and time.monotonic() < end:
            time.sleep(0.01)
        assert live.array("a").max() > 0
    finally:
        live.pause()


# --- files and pages -------------------------------------------------------------------------------------------------


def film_of(path: Path) -> tuple[list[Any], Image.Image]:
    film = Image.open(path)
    frames = []
    for n in range(film.n_frames):
        film.seek(n)
        frames.append(np.asarray(film.convert("RGB")))
    return frames, film


def test_gif_holds_the_following_frames(program: mnb.Program, start: Any, tmp_path: Path) -> None:
    live = stepped(mnb.animate(program.heat, start, alpha=0.2, steps=4, rate=10, limits=(0, 1), colors="gray"), 2)
    before = live.array("a")
    frames, film = film_of(live.save(tmp_path / "heat.gif", 5))
    with film:
        assert film.info["duration"] == 100
        assert film.info["loop"] == 0
        assert film.size == (256, 192), "eight times as large"
    np.testing.assert_array_equal(live.array("a"), before)
    state = before
    for frame in frames:
        np.testing.assert_allclose(frame[4::8, 4::8, 0], 255 * state, atol=0.51)
        for _ in range(4):
            state = program.heat(state, alpha=0.2)
    assert len(frames) == 5


def test_frames_to_save_follow_the_sliders_and_leave_the_colors(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2)
    before = live.png
    live._on_turn(live._knobs[0], 2.0)
    with live._frames.upcoming(3) as pixels:
        states = [live.array("a") for _ in pixels]
    np.testing.assert_array_equal(states[1], program.heat(start, alpha=2.0))
    assert states[1].max() > start.max()
    live.draw((-9.0, -9.0))
    assert live.wait(300)
    assert live.png == before, "a later frame's greatest number is not seen yet"


def test_a_reset_shows_although_a_pause_follows(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2, rate=0.01)
    first = live.png
    live.play()
    try:
        end = time.monotonic() + 300
        while live.frames < 1 and time.monotonic() < end:
            time.sleep(0.01)
        live.reset()
    finally:
        live.pause()
    assert live.wait(300)
    assert (live.steps, live.png == first) == (0, True)


def test_function_of_the_picture_cannot_change_the_callers_arrays(program: mnb.Program, start: Any) -> None:
    before = start.copy()

    def picture(state: Any) -> Any:
        state.u += 1
        return state.u

    with pytest.raises(ValueError, match="read-only"):
        mnb.animate(program.waves, start, start, swap=("v", "v2"), picture=picture)
    np.testing.assert_array_equal(start, before)


def test_colors_are_saved_too(program: mnb.Program, start: Any, tmp_path: Path) -> None:
    def picture(state: Any) -> Any:
        return np.stack([state.a, 1 - state.a, 0 * state.a], -1)

    live = mnb.animate(program.heat, start, alpha=0.2, picture=picture)
    frames, film = film_of(live.save(tmp_path / "heat.gif", 2))
    film.close()
    assert frames[0][0, 0].tolist() == [0, 255, 0]


FFMPEG = """\
#!{python}
import pathlib, sys
data = sys.stdin.buffer.read()
pathlib.Path(sys.argv[-1]).write_bytes(data)
pathlib.Path(sys.argv[-1] + ".txt").write_text(" ".join(sys.argv[1:]))
sys.exit({code} and "no such codec" or 0)
"""


@pytest.mark.parametrize("code", [0, 1])
def test_ffmpeg_is_given_the_frames_of_an_mp4(
    program: mnb.Program, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    stand_in = tmp_path / "ffmpeg"
    stand_in.write_text(FFMPEG.format(python=sys.executable, code=code))
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    live = mnb.animate(program.heat, start, alpha=0.2, limits=(0, 1), colors="gray")
    if code:
        with pytest.raises(mnb.ArgumentError, match=r"ffmpeg could not write .*: no such codec"):
            live.save(tmp_path / "heat.mp4", 3)
        return
    path = live.save(tmp_path / "heat.mp4", 3, rate=25)
    frames = np.frombuffer(path.read_bytes(), np.uint8).reshape(3, 192, 256, 3)
    np.testing.assert_array_equal(frames[0, 4::8, 4::8, 1], 255 * start)
    said = (tmp_path / "heat.mp4.txt").read_text()
    assert "-s 256x192 -r 25 -i -" in said
    assert "yuv420p" in said


def test_missing_ffmpeg_names_the_fix(
    program: mnb.Program, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mnb.ArgumentError, match=r"needs the program ffmpeg.*Save a \.gif"):
        mnb.animate(program.heat, start, alpha=0.2).save(tmp_path / "heat.mp4")


def test_record_button_saves_the_following_frames(
    program: mnb.Program, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2, rate=2)
    _ = live.widget
    sent = []
    monkeypatch.setattr(live._events, "send", lambda content, buffers: sent.append((content, buffers)))
    send_event(live, "record")
    assert live._recorder.wait(300)
    ((content, (data,)),) = sent
    assert content == {"save": "heat.gif"}
    with Image.open(io.BytesIO(data)) as film:
        assert film.n_frames == 6


def test_a_recording_that_fails_is_reported_to_the_page(
    program: mnb.Program, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the report, the button would wait for it, and ignore further clicks."""
    live = mnb.animate(program.heat, start, alpha=0.2, rate=2)
    _ = live.widget
    sent = []
    monkeypatch.setattr(live._events, "send", lambda content, buffers: sent.append((content, buffers)))
    monkeypatch.setattr("metalnb.widgets.animate.animation.gif", None)
    live.play()
    live._events._on_message(live._events, {"event": "record"}, [])
    assert live._recorder.wait(300)
    assert sent == [({"failed": "heat.gif"}, [])]
    assert live.error == "TypeError: 'NoneType' object is not callable"
    assert not live.playing
    assert "object is not callable" in live._player._note.value


def test_a_page_without_widgets_has_a_strip_of_frames(program: mnb.Program, start: Any) -> None:
    live = mnb.animate(program.heat, start, alpha=0.2, rate=5, steps=2)
    bundle = live._repr_mimebundle_()
    assert bundle["text/plain"] == "animate heat: grid 32 × 24, step 0, 2 a frame; alpha = 0.2"
    html = bundle["text/html"]
    steps = [n * 2 * live._frames._first.spacing for n in range(6)]
    for n in steps:
        assert f'alt="step {n:,}"' in html
        assert f"<td>step {n:,}</td>" in html
    assert html.count("data:image/png;base64,") == 6
    assert "<script" not in html
    live._frames._strip.spacing = 1
    stepped(live)
    stepped(live)
    assert live.html().count("data:image/png;base64,") == 2, "what was played, once it was"


def test_a_strip_has_its_pictures_evenly_apart_however_long_it_gets() -> None:
    strip = Filmstrip()
    for frame in range(1000):
        strip.add(frame, 10 * frame, lambda: b"")
    steps = [n for n, _ in strip.pictures]
    assert len(steps) <= 6
    assert steps[0] == 0
    assert len({b - a for a, b in itertools.pairwise(steps)}) == 1
    assert steps[-1] >= 5000


# --- what is refused, before anything runs ---------------------------------------------------------------------------

X, XY = np.ones((4, 4), np.float32), np.ones((4, 2), np.float32)
REFUSED = {
    "no kernel": (lambda p: mnb.animate(np.sin, 1), "animate: takes a kernel .*; got ufunc"),
    "an unknown array": (lambda p: mnb.animate(p.heat, X, alpha=0, swap=("a", "c")), r"of a, b; got \('a', 'c'\)"),
    "one name": (lambda p: mnb.animate(p.heat, X, alpha=0, swap="a"), "got 'a'"),
    "two that differ": (
        lambda p: mnb.animate(p.heat, X, np.ones(16, np.float32), alpha=0, grid=(4, 4), swap=("a", "b")),
        r"one dtype and shape; got a float32 \(4, 4\) and b float32 \(16,\)"),
    "the wrong way round": (lambda p: mnb.animate(p.heat, X, alpha=0, swap=("b", "a")), "does not write 'a'"),
    "an array twice": (
        lambda p: mnb.animate(p.waves, X, X, swap=[("u", "u2"), ("u", "v2")]), "names an array twice"),
    "no steps": (lambda p: mnb.animate(p.heat, X, alpha=0, steps=0), "at least 1; got 0"),
    "no rate": (lambda p: mnb.animate(p.heat, X, alpha=0, rate=0), "at most 60; got 0"),
    "steps in words": (lambda p: mnb.animate(p.heat, X, alpha=0, steps="two"), "at least 1; got 'two'"),
    "half a step": (lambda p: mnb.animate(p.heat, X, alpha=0, steps=1.5), "at least 1; got 1.5"),
    "endless steps": (lambda p: mnb.animate(p.heat, X, alpha=0, steps=np.inf), "at least 1; got inf"),
    "a rate in words": (lambda p: mnb.animate(p.heat, X, alpha=0, rate="30"), "at most 60; got '30'"),
    "a number to swap": (lambda p: mnb.animate(p.heat, X, alpha=0, swap=5), "of a, b; got 5"),
    "numbers to swap": (lambda p: mnb.animate(p.heat, X, alpha=0, swap=(0, 1)), r"of a, b; got \(0, 1\)"),
    "a brush in words": (lambda p: mnb.animate(p.heat, X, alpha=0, brush="red"), "brush is a number; got 'red'"),
    "a brush of colors": (lambda p: mnb.animate(p.heat, X, alpha=0, brush=(1, 2)), r"brush is a number; got \(1, 2\)"),
    "no picture": (lambda p: mnb.animate(p.fall, XY, XY.copy(), grid=4, picture="q"), "the kernel has: p, v"),
    "no shape of a picture": (
        lambda p: mnb.animate(p.fall, XY.ravel(), XY.ravel() + 0, grid=4, draw=False), r"shape \(H, W\)"),
    "nothing to draw into": (
        lambda p: mnb.animate(p.fall, XY.ravel(), XY.ravel() + 0, grid=4, picture=lambda s: X, draw="p"), "draw=False"),
    "nothing that goes on": (lambda p: mnb.animate(p.waves, X, X), r"same step\..*swap=\(\"read\", \"written\"\)"),
    "unknown colors": (lambda p: mnb.animate(p.heat, X, alpha=0, colors="mgma"), "'mgma'"),
    "no numbers": (lambda p: mnb.animate(p.heat, X, alpha=0, picture=lambda s: s.a * 1j), "real numbers; got complex"),
    "half a frame": (lambda p: mnb.animate(p.heat, X, alpha=0).save("x.gif", 1.5), "at least one frame.*got 1.5"),
    "a film that stands": (lambda p: mnb.animate(p.heat, X, alpha=0).save("x.gif", rate=-1), "above 0; got -1"),
    "another file": (lambda p: mnb.animate(p.heat, X, alpha=0).save("x.avi"), r"as \.gif or \.mp4; got 90 as 'x.avi'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_animations_are_refused(program: mnb.Program, case: str) -> None:
    attempt, message = REFUSED[case]
    with pytest.raises(mnb.MetalnbError, match=message):
        attempt(program)
