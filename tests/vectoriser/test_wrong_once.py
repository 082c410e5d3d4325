"""Kernels that were once wrong in vector registers, each reduced from a random kernel.

Complete kernels are covered by the tests of the language and of the ops on the engine `cpu`, and by tests/fuzz.
"""

from collections.abc import Callable

import numpy as np
import pytest
from vectoriser.vector_kernels import HEAD, engine_is_here

import metalnb as mnb

__all__ = ["engine_is_here"]

LONGS = np.random.default_rng(1).integers(-5, 5, 64)
LONGS[1] = 3
ARGUMENTS = """device uint* out, device const long* b, device const float* f, device const uchar* c,
    uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]"""

# Kernels as reduced by tests/fuzz: what was wrong, the body, and what thread i writes.
WRONG_ONCE: dict[str, tuple[str, Callable[[int], int]]] = {
    "lanes that leave an inner loop one by one for the outer loop's next iteration": ("""
        half v1 = half(0);
        uint z14 = 0;
        while (((2l > b[1u & 63]) || (1l < b[lid & 63])) && z14++ < 7u) {
            for (uint k4 = 0; k4 < (lid % 16u); k4 += 3) {
                if ((((b[1u & 63] <= 1l) ? half(1) : v1) != half(1))) v1 = half(1024);
                if ((half(1) >= v1)) return;
            }
        }
        out[i] = 1u;""", lambda _: 1),
    "a value that is uniform after the inner loop and varying after the outer": ("""
        ushort v11 = ushort(127);
        for (ushort k16 = 0; k16 < ushort(lid); k16 += 2)
            for (uint k17 = 0; k17 <= 1u; k17++) if (1.0f <= f[1u & 63]) v11 = ushort(1);
        out[i] = v11;""", lambda lane: 1 if lane else 127),
    "a component that nobody set, in a word with others": ("""
        uchar3 v15 = (uchar3(uchar(1), uchar(1), c[i & 63]) - uchar3(uchar(31), uchar(127), uchar(127)));
        v15.x = uchar(1);
        out[i] = v15.x * 7u + v15.y * 5u + v15.z;""", lambda lane: 7 + (1 - 127) % 256 * 5 + (lane - 127) % 256),
    "the low bits of a number that falls from lane to lane": ("""
        ushort2 v6 = ushort2(ushort(40229), ushort(32767));
        v6.y = ushort(~ushort(0));
        ushort v9 = v6.y;
        v9 ^= ushort(uint(v6.y) + uint(ushort(i)));
        out[i] = v9;""", lambda lane: 0xFFFF ^ (0xFFFF + lane) & 0xFFFF),
    "an array of a thread's own, by its lane": ("""
        ushort w24[8];
        for (uint j = 0; j < 8; ++j) w24[j] = ushort(uint(ushort(1)) + j);
        out[i] = w24[lid & 7];""", lambda lane: 1 + lane % 8),
    "an alignment for which the type has too few bits": ("""
        ushort v2 = ushort(uint(ushort(lid)) << 15);
        ushort v4 = ushort(simd_max(v2));
        v4 = ushort(uint(v4) - uint(v2));
        out[i] = v4;""", lambda lane: 0 if lane % 2 else 32768),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_ONCE)
@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("threads", [64, 7])
def test_former_miscompilations(name: str, math: str, threads: int) -> None:
    body, want = WRONG_ONCE[name]
    text = f"{HEAD}kernel void k({ARGUMENTS}) {{ {body} }}"
    out = np.zeros(threads, np.uint32)
    given = (LONGS, np.full(64, 2, np.float32), np.arange(64, dtype=np.uint8))
    mnb.compile(text, engine="cpu", math=math).k(out, *given, grid=threads, threadgroup=threads)
    assert out.tolist() == [want(i) for i in range(threads)]


def test_a_block_without_active_lanes_sets_no_scalar() -> None:
    """It did when the block was too short to be skipped: the last predecessor's value was used."""
    add = mnb.compile(f"""{HEAD}
        kernel void f(device const float* x, constant uint& n, device atomic_uint* cells,
                      uint size [[threads_per_threadgroup]]) {{
            float v = x[1];
            atomic_fetch_add_explicit(&cells[n & 1],
                uint((((half(v) != half(6.0e-8f)) && (x[size & 63] >= 1.0f)) ? 1u : n)), memory_order_relaxed);
        }}""", engine="cpu").f  # fmt: skip
    for second, edge, each in ((0, 2, 1), (0, 0, 3), (6.0e-8, 2, 3)):
        x, cells = np.full(64, edge, np.float32), np.zeros(2, np.uint32)
        x[1] = second
        add(x, np.uint32(3), cells, grid=100, threadgroup=64)
        assert cells.tolist() == [0, 100 * each]
