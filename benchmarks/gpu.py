"""Compare the library on the engine cuda with PyTorch and CuPy on the same GPU, in one run.

Run: python benchmarks/gpu.py [--sizes 24 28] [OP …]

Times are medians by the GPU's clock, of batches in one stream that alternate with the peers' batches. "x torch" is
PyTorch's time over ours: above 1, ours is faster. "of copy" is the rate, counting each input and output once, relative
to the driver's copy from one array to another.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import metalnb as mnb

BATCH = 0.03  # s
ROUNDS = 5


class Clock:
    """The GPU's clock, by PyTorch's events: everything timed here is in the default stream."""

    def __init__(self) -> None:
        import torch

        self.torch = torch

    def once(self, call: Callable[[], Any], count: int) -> float:
        """Return the seconds per call, from a batch."""
        event = self.torch.cuda.Event
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return float(1e-3 * start.elapsed_time(end) / count)

    def compared(self, calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
        """Time calls alternately."""
        counts = {}
        for name, call in calls.items():
            self.once(call, 2)
            counts[name] = max(1, min(500, int(BATCH / max(self.once(call, 3), 1e-7))))
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                times[name].append(self.once(call, counts[name]))
        return {name: statistics.median(found) for name, found in times.items()}


def cases(log: int) -> dict[str, tuple[Callable[..., dict[str, Callable[[], Any]]], float, float]]:
    """Return each op's calls, the bytes that it must move, and its operations."""
    n = 1 << log
    side = 1 << (log // 2)
    square = side * side
    k = 2048 if log < 28 else 8192

    def vectors(f: str, g: str, count: int, c: str = "") -> Callable[..., dict[str, Callable[[], Any]]]:
        def make_calls(torch: Any, cupy: Any, rng: Any) -> dict[str, Callable[[], Any]]:
            arrays = [rng.random(n, np.float32) for _ in range(count)]
            return _calls(torch, cupy, arrays, f, g, c or g)

        return make_calls

    def planes(f: str, g: str, c: str = "") -> Callable[..., dict[str, Callable[[], Any]]]:
        def make_calls(torch: Any, cupy: Any, rng: Any) -> dict[str, Callable[[], Any]]:
            return _calls(torch, cupy, [rng.random((side, side), np.float32)], f, g, c)

        return make_calls

    def product(dtype: Any) -> Callable[..., dict[str, Callable[[], Any]]]:
        def make_calls(torch: Any, cupy: Any, rng: Any) -> dict[str, Callable[[], Any]]:
            arrays = [rng.random((k, k), np.float32).astype(dtype) for _ in range(2)]
            return _calls(torch, cupy, arrays, "mnb.matmul(a, b)", "torch.matmul(a, b)", "cupy.matmul(a, b)")

        return make_calls

    return {
        "add": (vectors("mnb.add(a, b)", "torch.add(a, b)", 2, "cupy.add(a, b)"), 12 * n, 0),
        "add out=": (
            vectors("mnb.add(a, b, out=o)", "torch.add(a, b, out=o)", 2, "cupy.add(a, b, out=o)"), 12 * n, 0,
        ),
        "exp": (vectors("mnb.exp(a)", "torch.exp(a)", 1, "cupy.exp(a)"), 8 * n, 0),
        "exp out=": (vectors("mnb.exp(a, out=o)", "torch.exp(a, out=o)", 1, "cupy.exp(a, out=o)"), 8 * n, 0),
        "gelu": (vectors("mnb.gelu(a)", "torch.nn.functional.gelu(a)", 1, "-"), 8 * n, 0),
        "sum": (vectors("mnb.sum(a)", "torch.sum(a)", 1, "cupy.sum(a)"), 4 * n, 0),
        "argmax": (vectors("mnb.argmax(a)", "torch.argmax(a)", 1, "cupy.argmax(a)"), 4 * n, 0),
        "sum axis 0": (planes("mnb.sum(a, axis=0)", "torch.sum(a, 0)", "cupy.sum(a, 0)"), 4 * square, 0),
        "sum axis 1": (planes("mnb.sum(a, axis=1)", "torch.sum(a, 1)", "cupy.sum(a, 1)"), 4 * square, 0),
        "softmax": (planes("mnb.softmax(a)", "torch.softmax(a, -1)", "-"), 8 * square, 0),
        "layer_norm": (planes("mnb.layer_norm(a)", "torch.layer_norm(a, a.shape[-1:])", "-"), 8 * square, 0),
        "cumsum": (vectors("mnb.cumulative_sum(a)", "torch.cumsum(a, 0)", 1, "cupy.cumsum(a)"), 8 * n, 0),
        "transpose": (planes("a.T.copy()", "a.T.contiguous()", "cupy.ascontiguousarray(a.T)"), 8 * square, 0),
        "sort": (vectors("mnb.sort(a)", "torch.sort(a)", 1, "cupy.sort(a)"), 8 * n, 0),
        f"matmul {k}": (product(np.float32), 12 * k * k, 2 * k**3),
        f"half matmul {k}": (product(np.float16), 6 * k * k, 2 * k**3),
    }


def _calls(
    torch: Any, cupy: Any, arrays: list[Any], ours: str, theirs: str, third: str
) -> dict[str, Callable[[], Any]]:
    names = ("a", "b", "c")[: len(arrays)]
    scopes = [
        ("metalnb", ours, {"mnb": mnb, **{k: mnb.asarray(v) for k, v in zip(names, arrays, strict=True)}}),
        ("torch", theirs, {"torch": torch, **{k: torch.tensor(v).cuda() for k, v in zip(names, arrays, strict=True)}}),
    ]
    if cupy is not None and third != "-":
        scopes.append(
            ("cupy", third, {"cupy": cupy, **{k: cupy.asarray(v) for k, v in zip(names, arrays, strict=True)}})
        )
    if "out=o" in ours:
        for name, _, scope in scopes:
            scope["o"] = scope["mnb" if name == "metalnb" else name].empty_like(scope["a"])
    return {name: eval(f"lambda: {text}", scope) for name, text, scope in scopes}  # noqa: S307  (strings in this file)


def microseconds_per_call(call: Callable[[], Any], end: Callable[[], Any]) -> float:
    """Return the time of one call (µs) in a long run, by the processor's clock: the least of several rounds."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(1000):
            call()
        end()
        times.append((time.perf_counter() - begun) * 1e3)
    return min(times)


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", metavar="OP")
    parser.add_argument("--sizes", type=int, nargs="*", default=[24, 28], help="powers of two")
    options = parser.parse_args()
    import torch

    cupy = importlib.import_module("cupy") if importlib.util.find_spec("cupy") else None
    torch.backends.cuda.matmul.allow_tf32 = False
    engine = mnb.use("cuda")
    clock = Clock()
    print(f"{engine.caps.device}, {engine.caps.versions}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}")
    tiny, other = mnb.asarray(np.zeros(1, np.float32)), torch.zeros(1, device="cuda")
    ours = microseconds_per_call(lambda: mnb.add(tiny, tiny), mnb.synchronize)
    theirs = microseconds_per_call(lambda: torch.add(other, other), torch.cuda.synchronize)
    print(f"adding one element, calls back to back: {ours:.1f} µs, PyTorch's {theirs:.1f} µs")
    rng = np.random.default_rng(0)
    for log in options.sizes:
        x = torch.zeros(1 << log, device="cuda")
        y = torch.empty_like(x)
        copy = 8 * (1 << log) / clock.compared({"copy": lambda y=y, x=x: y.copy_(x)})["copy"]
        print(f"2^{log}: copy {copy / 1e9:.0f} GB/s")
        print(f"{'op':<18}{'ms':>9}{'GB/s':>8}{'TFLOP/s':>9}{'of copy':>9}{'x torch':>9}{'x cupy':>9}")
        for name, (make, moved, flops) in cases(log).items():
            if options.ops and name.split()[0] not in options.ops and name not in options.ops:
                continue
            try:
                found = clock.compared(make(torch, cupy, rng))
            except Exception as error:  # noqa: BLE001  (the others must still be shown)
                print(f"{name:<18} {type(error).__name__}: {error}")
                continue
            t = found["metalnb"]
            rate = f"{flops / t / 1e12:9.1f}" if flops else " " * 9
            others = "".join(f"{found[p] / t:9.2f}" if not math.isnan(found.get(p, math.nan)) else " " * 9
                             for p in ("torch", "cupy"))  # fmt: skip
            print(f"{name:<18}{t * 1e3:9.3f}{moved / t / 1e9:8.0f}{rate}{moved / t / copy:9.2f}{others}", flush=True)


if __name__ == "__main__":
    main()
