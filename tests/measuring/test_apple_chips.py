"""Figures of Apple's chips: nominal rates, and what the tables say about each."""

from __future__ import annotations

import dataclasses

import pytest

from metalnb.profiling import apple_chips
from metalnb.profiling.device_table import DEVICES


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("Apple M1", (68.25e9, 2.617e12)),  # 8 cores x 128 lanes x 2 operations x 1.278 GHz
        ("Apple M2 Pro", (200e9, 6.800e12)),
        ("Apple M4 Max", (546e9, 16.159e12)),
        ("Apple M3 Ultra (80 cores)", (819e9, 28.262e12)),
        ("Apple M99", None),
        ("AMD EPYC", None),
    ],
)
def test_nominal_rates_of_each_apple_chip_are_known(device: str, expected: tuple[float, float] | None) -> None:
    assert apple_chips.nominal(device) == (expected and pytest.approx(expected, rel=1e-3))


def test_every_chip_of_the_table_is_found_by_its_name() -> None:
    """A profile names the same chip without its maker."""
    for name, chip in apple_chips.CHIPS.items():
        assert apple_chips.apple_chip(f"{name} (double)") is chip
        figures = DEVICES[name.removeprefix("Apple ")]
        rates = figures.bandwidth.value, figures.processors.value * figures.lanes.value * 2 * figures.clock.value
        assert apple_chips.nominal(f"{name} GPU") == rates == (chip.bandwidth, chip.flops)


def test_each_figure_of_a_chip_has_a_source() -> None:
    """An assumed clock is that of a chip of the same generation whose clock is known."""
    assert {field.name for field in dataclasses.fields(apple_chips.AppleChip)} == set(apple_chips.SOURCES)
    assert all(name in apple_chips.CHIPS and field in apple_chips.SOURCES for name, field in apple_chips.OTHER_SOURCES)
    for name, chip in apple_chips.CHIPS.items():
        generation = name.split()[1]
        assert (chip.simd_groups is not None) == (generation in {"M1", "M2"})
        if chip.clock_of:
            known = apple_chips.CHIPS[f"Apple {chip.clock_of}"]
            assert (known.clock, known.clock_of) == (chip.clock, "")
            assert chip.clock_of.split()[0] == generation
            assert DEVICES[name.removeprefix("Apple ")].clock.source == f"estimated: as of the {chip.clock_of}"
