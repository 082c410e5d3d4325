"""Rooflines: what bounds a kernel, in a sentence and in the picture."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib import pyplot as plt

import metalnb as mnb

LIMITS = mnb.Limits(
    "cpu", "a chip", "a machine", "2026-01-02T03:04:05+00:00", {}, 50e9, 30e9, 40e9, 45e9, 60e9, 500e9, 1 << 25,
)  # fmt: skip
STREAM = mnb.Timing(
    "stream", "cpu", "a chip", "device", (1e-3,) * 5, 7, 5e-6, None, 36_000_000, 6e6, 40e9, "copy", 500e9,
)  # fmt: skip
CHAIN = replace(STREAM, kernel="chain", flops=450e6, bytes=18_000_000)
SLOW = replace(STREAM, kernel="<slow>", seconds=(10e-3,) * 5)
BARE = replace(STREAM, kernel="bare", flops=None)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> mnb.Roofline:
    monkeypatch.setattr("metalnb.timing.roofline.limits", lambda engine: LIMITS)
    return mnb.roofline(STREAM, CHAIN, SLOW, BARE)


def test_sentence_names_the_bound_of_each_kernel(found: mnb.Roofline) -> None:
    stream, chain, slow, bare = found.sentences
    assert stream == "1 stream: bound by memory: 90 % of what copy reaches"
    assert chain == "2 chain: bound by arithmetic: 90 % of what chains of fma reach"
    neither = "bound by neither: 9.0 % of the memory limit (copy) and 0.1 % of the arithmetic limit"
    assert slow.startswith(f"3 <slow>: {neither}")
    assert slow.endswith("At 0.167 FLOP/B memory is its roof, and it has 9.0 % of that")
    assert bare == "4 bare: bound by memory: 90 % of what copy reaches (not drawn: its operations are not known)"


@pytest.mark.parametrize(
    ("changed", "why"),
    [({"flops": 0}, "it has no floating-point operations"),
     ({"bytes": None}, "its bytes are not known"), ({"flops": None}, "its operations are not known"),
     ({"bytes": None, "flops": None}, "its bytes and operations are not known"),
     ({"limit": None}, "the engine's limits are not known"), ({"peak": None}, "the engine's limits are not known")],
)  # fmt: skip
def test_undrawn_parts_say_why(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, int | None], why: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("metalnb.timing.roofline.limits", lambda engine: LIMITS)
    (said,) = mnb.roofline(replace(CHAIN, **changed)).sentences
    assert said.endswith(f" (not drawn: {why})")
    if len(changed) == 2:
        assert "pass bytes= (--bytes in a magic) and pass flops= (--flops in a magic) (not drawn" in said


def test_roofs_and_points_are_at_their_coordinates(found: mnb.Roofline) -> None:
    (ax,) = found.figure().axes
    roof, *points = ax.lines
    x, y = roof.get_data()
    assert y == pytest.approx([min(40e9 * v, 500e9) for v in x])
    assert [float(p.get_xdata()[0]) for p in points] == pytest.approx([6 / 36, 450 / 18, 6 / 36])
    assert [float(p.get_ydata()[0]) for p in points] == pytest.approx([6e9, 450e9, 0.6e9])
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert left < 6 / 36
    assert right > 25
    assert low < 0.6e9
    assert high > 500e9


def test_numbers_of_dots_that_overlap_do_not() -> None:
    """The second and third numbers are drawn beside the first, whose dot theirs overlap."""
    again = replace(STREAM, seconds=(1.05e-3,) * 5)
    (ax,) = mnb.Roofline((STREAM, again, STREAM, CHAIN), LIMITS).figure().axes
    assert [(text.get_text(), text.xyann[0] > 0) for text in ax.texts] == [
        ("1", False), ("2", True), ("3", True), ("4", False),
    ]  # fmt: skip
    assert ax.texts[1].xyann < ax.texts[2].xyann


def test_nominal_roofs_are_dashed() -> None:
    known = mnb.Roofline((STREAM,), replace(LIMITS, nominal=(68e9, 2.6e12)))
    (ax,) = known.figure().axes
    dashed = ax.lines[1]
    assert dashed.get_linestyle() == "--"
    assert max(dashed.get_ydata()) <= 2.6e12
    assert "nominal 68.0 GB/s" in dashed.get_label()


def test_there_are_roofs_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metalnb.timing.roofline.limits", lambda engine: LIMITS)
    empty = mnb.roofline()
    assert empty.sentences == ()
    assert len(empty.figure().axes[0].lines) == 1


def test_a_notebook_shows_the_picture_over_its_sentences(found: mnb.Roofline) -> None:
    shown = found._repr_mimebundle_()
    assert shown["image/png"][:4] == b"\x89PNG"
    assert all(s in shown["text/plain"] for s in found.sentences)
    svg = re.search(r"<svg.*</svg>", shown["text/html"], re.DOTALL)
    assert svg
    assert "currentColor" in svg[0]  # so that it suits a light and a dark page
    assert svg.start() < shown["text/html"].index("bound by memory")
    ET.fromstring(svg[0])  # noqa: S314  (made here)
    assert "&lt;slow&gt;" in shown["text/html"]


def test_name_may_be_the_source_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source may be long, and matplotlib reads text between dollar signs as mathematics."""
    monkeypatch.setattr("metalnb.timing.roofline.limits", lambda engine: LIMITS)
    for name in (r"find('$\\nothing{$', x)", " + ".join(["x"] * 200)):
        timing = replace(STREAM, kernel=name)
        found = mnb.roofline(timing)
        assert "<svg" in found._repr_html_()
        legend = [text.get_text() for text in found.figure().axes[0].get_legend().get_texts()]
        assert legend[1].startswith(f"1 {name[:20]}")
        title = timing.plot()
        title.figure.canvas.draw()
        plt.close(title.figure)


def test_two_pictures_on_a_page_do_not_share_names(found: mnb.Roofline) -> None:
    """An SVG's clip paths have names for the entire page: another picture's would clip this one."""
    one = found._repr_mimebundle_()["text/html"]
    other = mnb.Roofline((STREAM,), LIMITS)._repr_mimebundle_()["text/html"]
    names = [dict.fromkeys(re.findall(r'<clipPath id="([^"]+)"', html)) for html in (one, other)]
    shapes = [dict(re.findall(r'<clipPath id="([^"]+)">(.*?)</clipPath>', html, re.DOTALL)) for html in (one, other)]
    assert found._repr_mimebundle_()["text/html"] == one  # and rerunning a notebook does not change it
    assert all(shapes[0][n] == shapes[1][n] for n in names[0].keys() & names[1].keys())


def test_bad_input_is_refused() -> None:
    with pytest.raises(mnb.ArgumentError, match="roofline: takes timings of measure and prepared calls; got int"):
        mnb.roofline(STREAM, 1)
    with pytest.raises(mnb.ArgumentError, match="for each of the 0 prepared calls; got 2"):
        mnb.roofline(STREAM, flops=np.array([1.0, 2.0]))
    with pytest.raises(mnb.ArgumentError, match=r"one device has one roof; got timings of cpu \(a chip\), metal"):
        mnb.roofline(STREAM, replace(STREAM, engine="metal"))


def test_a_prepared_call_is_measured_and_its_point_named() -> None:
    program = mnb.compile(
        "kernel void twice(device const float* x, device float* y, uint i [[thread_position_in_grid]])"
        "{ y[i] = 2 * x[i]; }"
    )
    x = np.ones(4096, np.float32)
    call = program.twice.prepare(x, np.zeros_like(x))
    for found in (mnb.roofline(call, flops=[4096.0]), mnb.roofline(call)):  # given, and counted
        assert [(t.kernel, t.flops) for t in found.timings] == [("twice", 4096.0)]
        drawn = found._repr_mimebundle_()["text/html"]
        assert re.search(r'<g id="metalnb-dot-1"><title>1 twice: [^<]+</title>', drawn)
    with pytest.raises(mnb.ArgumentError, match="for each of the 1 prepared calls; got 2"):
        mnb.roofline(call, flops=[1.0, 2.0])
