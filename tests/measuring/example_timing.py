"""A timing with figures that are easy to check by hand."""

import metalnb as mnb

TIMING = mnb.Timing(
    "k", "cpu", "a chip", "device", (2e-3, 1e-3, 4e-3, 3e-3, 5e-3), 7, 5e-6, 9e-3, 24_000_000, 3e6, 10e9, "triad", 2e9,
    1 << 20, (1000, 2), (32, 2), {"x": "float32 (3,)"}, ("<b>",),
)  # fmt: skip
