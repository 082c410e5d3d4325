"""Counted loops that are cut into strips: they count what they count without, and end within a strip when stopped."""

import time

import numpy as np
import pytest

import metalnb as mnb
from metalnb.engine.cpu.robust import stops
from metalnb.engine.cpu.tickets import WatchedTicket

HEAD = """#include <metal_stdlib>
using namespace metal;
kernel void f(device const int* from, device const int* to, device uint* out, uint i [[thread_position_in_grid]]) {
    const int a = from[i], b = to[i];
    uint n = 0;
"""
LOOPS = {
    "up": "for (int k = a; k < b; ++k) n += k ^ 3;",
    "up to the end": "for (int k = a; k <= b; ++k) n += k ^ 3;",
    "in steps": "for (int k = a; k < b; k += 7) n += k ^ 3;",
    "down": "for (int k = b; k > a; --k) n += k ^ 3;",
    "down in steps": "for (int k = b; k >= a; k -= 3) n += k ^ 3;",
    "until equal": "if (a < b) for (int k = a; k != b; ++k) n += k ^ 3;",
    "unsigned": "for (uint k = uint(a + 1000); k < uint(b + 1000); ++k) n += k ^ 3;",
    "behind the body": "int k = a; do { n += k ^ 3; ++k; } while (k < b);",
    "an end that is read each time": "for (int k = a; k < to[i]; ++k) n += k ^ 3;",
    "an end that moves": "for (int k = a; k < to[i]; ++k) { n += k ^ 3; if (k == a + 300) out[i] = n; }",
    "two, one in the other": "for (int k = a; k < b; k += 97) for (int j = k; j < b; ++j) n += j ^ k;",
    "with a way out": "for (int k = a; k < b; ++k) { n += k ^ 3; if (n % 1013 == 7) break; }",
    "at the end of one with two ways out": """uint q = 1; while (true) { ++q;
        if (q & 1) { if (n % 7 == 3) break; } else if (q > 6) break;
        for (int k = a; k < b; ++k) n += k ^ 3; }""",
    "with what it skips": "for (int k = a; k < b; ++k) { if (k % 5 == 2) continue; n += k ^ 3; }",
    "near the largest": "for (uint k = 0x7fffffffu - uint(b - a); k < 0x7fffffffu; ++k) n += k ^ 3;",
    "of 64 bits": "for (long k = long(a) << 33; k < (long(a) << 33) + b; ++k) n += uint(k >> 33) + uint(k);",
    "of 16 bits": "for (short k = short(a); k < short(b); ++k) n += k ^ 3;",
    "two values": "uint m = 1; for (int k = a; k < b; ++k) { const uint t = n; n = m; m = t * 3 + k; } n += m;",
}  # fmt: skip
COUNTS = [0, 1, 2, 255, 256, 257, 511, 512, 513, 1000, 5, 700, -1, -300, 256 * 7, 256 * 7 - 1]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_in_strips_counts_as_without(loop: str) -> None:
    starts = np.resize(np.array([0, 3, -7, 100], np.int32), 96)
    ends = starts + np.resize(np.array(COUNTS, np.int32), 96)
    results = []
    for checked in (True, False):
        kernel = mnb.compile(HEAD + LOOPS[loop] + "\nout[i] = n;\n}", engine="cpu", checked=checked).f
        out = np.zeros(96, np.uint32)
        ticket = kernel.prepare(starts, ends, out, threadgroup=32).launch()
        assert ticket is not None
        ticket.wait()
        assert isinstance(ticket, WatchedTicket) == checked, "its turns are known to nobody before it runs"
        results.append(out)
    assert np.array_equal(*results)


@pytest.mark.parametrize("loop", ["up", "until equal", "behind the body", "two, one in the other"])
def test_these_are_cut_into_strips_and_end(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[object] = []
    whole = stops.cut
    monkeypatch.setattr(stops, "cut", lambda *given: (cut.append(given), whole(*given)))
    text = HEAD.replace("n = 0;", f"n = {len(loop)};") + LOOPS[loop] + "\nout[i] = n;\n}"
    kernel = mnb.compile(text, engine="cpu").f
    starts, out = np.zeros(4096, np.int32), np.zeros(4096, np.uint32)
    dispatch = kernel.prepare(starts, starts + 10, out)
    dispatch.run()
    assert cut
    started = time.monotonic()
    with pytest.raises(mnb.KernelFault, match=r"stopped after 0\.1 s"):
        kernel(starts, np.full(4096, 1 << 30, np.int32), out, timeout=0.1)
    assert time.monotonic() - started < 10
