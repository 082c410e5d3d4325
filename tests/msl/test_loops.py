"""Loops that a compiler may misinterpret."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

_MOVES = {"up": "for (int j = 7; j > 0; j--) v[j] = v[j - 1];", "down": "for (int j = 0; j < 7; j++) v[j] = v[j + 1];"}


@pytest.mark.parametrize("way", _MOVES)
@pytest.mark.parametrize("n", [1, 33, 64])
def test_an_array_moves_within_itself(way: str, n: int) -> None:
    kernel = mnb.compile(f"""
    kernel void move(device const int* x, device int* y, uint i [[thread_position_in_grid]]) {{
        int v[8];
        for (int j = 0; j < 8; j++) v[j] = x[i] + j;
        {_MOVES[way]}
        for (int j = 0; j < 8; j++) y[8 * i + j] = v[j];
    }}""").move
    x = np.arange(n, dtype=np.int32) * 10
    expected = x[:, None] + np.array([0, 0, 1, 2, 3, 4, 5, 6] if way == "up" else [1, 2, 3, 4, 5, 6, 7, 7])
    out = np.zeros((n, 8), np.int32)
    kernel(x, out, grid=n, threadgroup=min(n, 64))
    np.testing.assert_array_equal(out, expected)
