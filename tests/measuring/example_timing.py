"""A kernel whose time grows with a number, and a timing with figures that are easy to check by hand."""

import metalnb as mnb

TIMING = mnb.Timing(
    "k", "cpu", "a chip", "device", (2e-3, 1e-3, 4e-3, 3e-3, 5e-3), 7, 5e-6, 9e-3, 24_000_000, 3e6, 10e9, "triad", 2e9,
    1 << 20, (1000, 2), (32, 2), {"x": "float32 (3,)"}, ("<b>",),
)  # fmt: skip

CHAIN = """kernel void chain(device float* y, constant uint& rounds, uint i [[thread_position_in_grid]]) {
    float v = y[i];
    for (uint k = 0; k < rounds; ++k) v = fma(v, 0.99f, 0.01f);
    y[i] = v;
}
"""
