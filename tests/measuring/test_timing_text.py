"""How a timing is shown: the bottleneck, bars, figures in text and on the card, the plot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from measuring.example_timing import TIMING

from metalnb.plurals import quantity
from metalnb.timing.bottleneck import bottleneck
from metalnb.timing.units import percent, rate, seconds


@pytest.mark.parametrize(
    ("changes", "bound", "said"),
    [
        ({}, "memory", "bound by memory: 80 % of what triad reaches"),
        ({"flops": 5e6}, "arithmetic", "bound by arithmetic: 83 % of what chains of fma reach"),
        ({"bytes": 3_000_000}, "neither", "10 % of the memory limit (triad) and 50 % of the arithmetic limit"),
        ({"empty": 0.1}, "dispatch", "an empty dispatch costs 100 ms, the kernel itself takes 3.00 ms"),
        ({"limit": 1e9, "cache": 1 << 30}, "caches", "runs from the caches: 800 % of what memory can give (triad)"),
        ({"limit": 5e9, "cache": 1 << 23}, "caches", "runs partly from the caches: 160 % of what memory"),
        ({"limit": 7.5e9, "cache": 1 << 23}, "memory", "bound by memory: 107 %"),
        ({"limit": 1e9}, "unknown", "800 % of what triad reaches: it cannot have moved all the bytes counted"),
        ({"limit": 1e8, "cache": 1 << 30}, "unknown", "parts of the arrays are not accessed; pass bytes="),
        ({"empty": 0.1, "grid": ()}, "memory", "bound by memory"),  # a function: no dispatch need be in it
        ({"flops": None, "bytes": 3_000_000}, "unknown", "pass flops= (--flops in a magic) to learn"),
        ({"bytes": None}, "unknown", "50 % of the arithmetic limit; pass bytes= (--bytes in a magic) to"),
        ({"bytes": None, "flops": None}, "unknown", ""),
    ],
)
def test_bottleneck_is_named_with_its_reason(changes: dict[str, Any], bound: str, said: str) -> None:
    found = bottleneck(replace(TIMING, **changes))
    assert found.bound == bound
    assert said in found.sentence


def test_text_and_card_have_the_same_figures() -> None:
    text, html = repr(TIMING), TIMING._repr_html_()
    root = ET.fromstring(html)  # noqa: S314  (made here)
    words = " ".join("".join(root.itertext()).split())
    shared = ["3.00 ms", "5 batches of 7, device clock", "8.00 GB/s, 80 % of the 10.0 GB/s that triad reaches",
              "1.00 GFLOP/s, 50 % of 2.00 GFLOP/s", "an empty dispatch: 5.00 µs", "9.00 ms", "1,000 × 2",
              "x float32 (3,)", "<b>", "bound by memory"]  # fmt: skip
    for phrase in shared:
        assert phrase in text
        assert phrase in words
    (full,) = [d for d in root.iter("div") if d.get("style") == "width:80.0%"]
    assert full is not None
    assert "█" * 24 + "░" * 6 in text


def test_a_bar_ends_at_the_limit() -> None:
    beyond = replace(TIMING, limit=1e9)
    assert "width:100.0%" in beyond._repr_html_()
    assert "800 % of the 1.00 GB/s" in repr(beyond)
    assert "metalnb-bar" not in replace(TIMING, bytes=None)._repr_html_().split("</style>")[1]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (seconds(1.5), "1.50 s"), (seconds(4.714e-3), "4.71 ms"), (seconds(0.99999e-3), "1.00 ms"),
        (seconds(123.4e-6), "123 µs"), (seconds(12.34e-9), "12.3 ns"), (seconds(9.996e-6), "10.0 µs"),
        (seconds(4000), "4,000 s"), (rate(42.06e9, "B/s"), "42.1 GB/s"), (rate(1.234e12, "FLOP/s"), "1.23 TFLOP/s"),
        (rate(12, "B/s"), "12.0 B/s"), (rate(0, "B/s"), "0 B/s"), (percent(0.934), "93 %"), (percent(0.0512), "5.1 %"),
        (percent(0), "0 %"), (percent(0.0996), "10 %"),
        (percent(0.9949), "99 %"), (percent(0.995), "99.5 %"), (percent(0.9999), "99.9 %"), (percent(1), "100 %"),
    ],
)  # fmt: skip
def test_numbers_are_written_in_three_digits(said: str, expected: str) -> None:
    assert said == expected


def test_plot_draws_each_time() -> None:
    ax = TIMING.plot()
    assert ax.get_title() == "k"
    assert ax.get_xlabel() == "ms per dispatch, device clock"
    assert sum(p.get_height() for p in ax.patches[:5]) == 5
    assert TIMING.plot(ax) is ax
    from matplotlib import pyplot as plt

    plt.close(ax.figure)


def test_one_time_is_one_run() -> None:
    assert "median of 1 run, device" in repr(replace(TIMING, seconds=(1e-3,), batch=1))
    assert "median of 1 batch of 7, device" in repr(replace(TIMING, seconds=(1e-3,)))


def test_a_quantity_is_singular_for_one_only() -> None:
    assert [quantity(n, "step") for n in (0, 1, 2000)] == ["0 steps", "1 step", "2,000 steps"]
    assert [quantity(n, "more axis", "more axes") for n in (1, 2)] == ["1 more axis", "2 more axes"]
