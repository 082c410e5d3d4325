"""The library's remaining targets: reductions, rows, sorts, matrices, small calls, memory. Part of ``library.py``."""

from __future__ import annotations

import functools
import gc
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
from report import Row, interleaved, median

import metalnb as mnb
from metalnb.timing.limit_probes import PROBES

__all__ = ["lines"]


def lines(runs: int, *, quick: bool) -> list[Row]:
    """Measure all lines."""
    side, n = (512, 1 << 18) if quick else (4096, 1 << 24)
    rng = np.random.default_rng()
    x, square = rng.random(n, np.float32), rng.random((side, side), np.float32)
    return [
        *_full(runs, x), *_axes(runs, square), *_rows(runs, square), *_sorted(runs, x), *_product(runs, side // 2),
        *_small(200 if quick else 2000), *_memory(2_000 if quick else 100_000),
    ]  # fmt: skip


def _times(runs: int, *calls: Callable[[], Any], before: Callable[[], Any] | None = None) -> list[float]:
    return [median(t) for t in interleaved(runs, *calls, before=before)]


def _and_wait(f: Callable[[], Any]) -> Callable[[], Any]:
    def call() -> None:
        result = f()
        mnb.synchronize()
        del result

    return call


def _ratio(name: str, runs: int, mine: Callable[[], Any], peer: Callable[[], Any], aim: float, who: str) -> Row:
    ours, other = _times(runs, _and_wait(mine), peer)
    note = f"{ours * 1e3:.2f} ms against {other * 1e3:.2f}"
    return Row(name, f"{other / ours:.2f} x {who}", f">= {aim} x", other / ours >= aim, note)


def _reading(a: Any) -> Callable[[], Any]:
    """Return a call that only reads an array. No reduction of that array can be faster."""
    probe = next(p for p in PROBES if p.limit == "read")
    kernel = mnb.compile(probe.source)["probe"]
    # Pass the array, not a NumPy view of its memory: with a view alive, every op on the array would wait twice.
    ready = kernel.prepare(mnb.zeros(1), a.reshape((-1,)), grid=a.size // probe.elements, threadgroup=1024)
    return _and_wait(ready.run)


def _full(runs: int, x: np.ndarray) -> list[Row]:
    """Compare reductions of entire arrays with plain reading in the same rounds, since `limits` reports maxima.

    These are medians. All of the calls read one array, so other memory is written before each, to flush the cache.
    """
    a, washed = mnb.asarray(x, copy=True), np.zeros(x.size, np.float32)
    reading, wash = _reading(a), functools.partial(np.negative, washed, out=washed)
    rows = []
    for name in ("sum", "max", "argmax"):
        calls = [_and_wait(lambda f=name: getattr(mnb, f)(a)), reading, lambda f=name: getattr(np, f)(x)]
        ours, read, other = _times(runs, *calls, before=wash)
        rate = [x.nbytes / t / 1e9 for t in (ours, read, other)]
        note = f"{rate[0]:.1f} of {rate[1]:.1f} GB/s (the limit: {mnb.limits().read / 1e9:.1f}); NumPy {rate[2]:.1f}"
        rows.append(Row(f"{name} of {x.size:,}", f"{read / ours:.2f} of reading", ">= 0.85", read / ours >= 0.85, note))
    return rows


def _axes(runs: int, x: np.ndarray) -> list[Row]:
    """Compare reductions along an axis with NumPy's, and show the greatest ratio that plain reading would allow."""
    a = mnb.asarray(x, copy=True)
    reading, rows = _reading(a), []
    for name, axis in ((name, axis) for name in ("sum", "max") for axis in (0, 1)):
        mine = _and_wait(lambda f=name, d=axis: getattr(mnb, f)(a, axis=d))
        ours, read, other = _times(runs, mine, reading, lambda f=name, d=axis: getattr(np, f)(x, axis=d))
        note = f"{ours * 1e3:.2f} ms against {other * 1e3:.2f}; {other / read:.2f} x if it only read"
        title = f"{name} of {len(x)}² over axis {axis}"
        rows.append(Row(title, f"{other / ours:.2f} x NumPy", ">= 1.5 x", other / ours >= 1.5, note))
    return rows


def _rows(runs: int, x: np.ndarray) -> list[Row]:
    from peers import numpy_peer

    from metalnb.library_kernels import op_table

    a, flat = mnb.asarray(x, copy=True), mnb.asarray(x.ravel(), copy=True)
    softmax = numpy_peer(op_table.op("softmax"))
    assert softmax is not None
    return [
        _ratio(f"softmax of {len(x)} rows", runs, lambda: mnb.softmax(a), lambda: softmax(x), 4, "NumPy"),
        _ratio(f"cumulative_sum of {x.size:,}", runs, lambda: mnb.cumulative_sum(flat), lambda: np.cumsum(x.ravel()),
               1.5, "NumPy"),
    ]  # fmt: skip


def _sorted(runs: int, x: np.ndarray) -> list[Row]:
    a, short_runs = mnb.asarray(x, copy=True), max(3, runs // 3)
    ours, other = _times(short_runs, _and_wait(lambda: mnb.sort(a)), lambda: np.sort(x))
    rows = [Row(f"sort of {x.size:,}", f"{other / ours:.2f} x NumPy", "", None, f"{ours * 1e3:.0f} ms")]
    if importlib.util.find_spec("torch"):
        import torch

        t = torch.from_numpy(x)
        rows.append(_ratio("  against PyTorch", short_runs, lambda: mnb.sort(a), lambda: torch.sort(t), 2, "PyTorch"))
    return rows


def _product(runs: int, side: int) -> list[Row]:
    x, y = (np.random.default_rng().random((side, side), np.float32) for _ in range(2))
    a, b = mnb.asarray(x, copy=True), mnb.asarray(y, copy=True)
    ours, other = _times(max(3, runs // 2), _and_wait(lambda: mnb.matmul(a, b)), lambda: x @ y)
    speed = [2 * side**3 / t / 1e9 for t in (ours, other)]
    note = f"{speed[0]:.0f} GFLOP/s against {speed[1]:.0f}"
    return [Row(f"matmul {side}²", f"{other / ours:.2f} x NumPy", ">= 0.6 x", other / ours >= 0.6, note)]


def _small(calls: int) -> list[Row]:
    a, b = (mnb.asarray(np.ones(1000, np.float32), copy=True) for _ in range(2))
    (a + b).wait()
    samples = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(calls // 20):
            (a + b).wait()
        samples.append((time.perf_counter() - start) / (calls // 20) * 1e6)
    microseconds = median(samples)
    return [Row("a + b on 1,000 elements, and wait", f"{microseconds:.1f} us", "<= 30 us", microseconds <= 30)]


def _memory(iterations: int) -> list[Row]:
    x, y = (mnb.asarray(np.ones(10_000, np.float32), copy=True) for _ in range(2))
    for _ in range(1000):
        x = x * 0.5 + y
    mnb.synchronize()
    before = _resident()
    start = time.perf_counter()
    for _ in range(iterations):
        x = x * 0.5 + y
    mnb.synchronize()
    seconds = time.perf_counter() - start
    grown = (_resident() - before) / 2**20
    note = f"{seconds / iterations * 1e6:.1f} us each"
    return [Row(f"memory after {iterations:,} x = x * 0.5 + y", f"{grown:+.1f} MiB", "<= 8 MiB", grown <= 8, note)]


def _resident() -> int:
    """Return the resident memory of this process (B)."""
    gc.collect()
    return psutil.Process().memory_info().rss
