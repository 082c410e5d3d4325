"""Compare every op of the library with NumPy, PyTorch's CPU build and numexpr, where these are installed.

Run: python benchmarks/library.py [--runs N] [--size N] [--quick] [OP …]

Each line has the medians of one series in which the op, a plain copy by the same engine, and the peers alternate. GB/s
counts each input read once and each output written once; "limit" is that rate as a fraction of the copy's. A peer that
accepts an output is timed twice: writing into existing memory (``out=``), as our ops write into memory from the pool,
and as most people call it, which pays for fresh pages each time. The aims compare with the former.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import math
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from library_lines import lines
from peers import numexpr_peer, numpy_peer, torch_peer
from report import Row, interleaved, machine, median, show

import metalnb as mnb
from metalnb.library_kernels import op_table
from metalnb.library_kernels.op import Op
from metalnb.library_kernels.samples.op_sample import Sample
from metalnb.library_kernels.samples.samples_by_op import bench_of

Call = Callable[..., Any]

COPY = """
kernel void copy(device const float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = x[i]; }
"""
LONGEST = 1.0  # s: slower ops are run less often
PLAIN = ("elementwise", "activation")
ROWS = {"softmax", "log_softmax", "layer_norm", "rms_norm"}  # activations that are not elementwise
SORTS = {"sort", "argsort"}


@dataclass(frozen=True)
class Measured:
    """An op's medians, in seconds; NaN for a peer that is missing."""

    op: Op
    bytes: int
    mine: float
    copy: float  # B/s
    numpy: float  # each peer's time, with ``out=`` where it takes that
    torch: float
    numexpr: float
    fresh: tuple[float, float]  # NumPy's and PyTorch's times with new arrays as results

    @property
    def rate(self) -> float:
        """The rate, in B/s."""
        return self.bytes / self.mine

    @property
    def plain(self) -> bool:
        """Whether it is an elementwise op or an elementwise activation."""
        return self.op.row.family in PLAIN and self.op.name not in ROWS

    @property
    def bound(self) -> bool:
        """Whether memory bandwidth limits the op, because it computes little."""
        return self.plain and self.op.row.flops <= 2


def mapped(value: Any, f: Callable[[np.ndarray], Any]) -> Any:
    """Convert the arrays in an argument."""
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(v, f) for v in value)
    return f(value) if isinstance(value, np.ndarray) else value


def peers(op: Op, sample: Sample) -> Iterator[tuple[Call | None, Call | None]]:
    """Return each peer's call, with ``out=`` and without; None if it has none for this sample."""
    for found, given in ((numpy_peer(op), np.asarray), (torch_peer(op), _torch), (numexpr_peer(op), np.copy)):
        if found is None:  # its package may be missing, too
            yield None, None
            continue
        args = [mapped(a, given) for a in sample.args]
        options = {k: mapped(v, given) for k, v in sample.options.items()}
        call: Call = functools.partial(found, *args, **options)
        try:
            result = call()
        except Exception:  # noqa: BLE001  (a peer without such a form is left out)
            yield None, None
            continue
        yield _written(call, result), call


def _written(call: Call, result: Any) -> Call | None:
    """Return the call that writes into existing memory; None if the peer does not accept ``out=``."""
    if not hasattr(result, "shape") or result.shape == ():
        return None  # a number takes no memory worth timing
    into = functools.partial(call, out=result)
    try:
        same = into()
    except Exception:  # noqa: BLE001  (each library refuses an option in its own way)
        return None
    return into if same is result else None


def _torch(a: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(a.copy())  # own copies: the peer after NumPy would find it in the cache


def measured(op: Op, sample: Sample, runs: int, copy: Callable[[], float], copied: int) -> Measured:
    """Measure an op and its peers alternately."""
    args = [mapped(a, lambda v: mnb.asarray(v, copy=True)) for a in sample.args]
    options = {k: mapped(v, lambda v: mnb.asarray(v, copy=True)) for k, v in sample.options.items()}

    def mine() -> Any:
        result = op(*args, **options)
        mnb.synchronize()
        return result

    result = mine()
    results = result if isinstance(result, (tuple, list)) else (result,)
    moved = sum(a.nbytes for a in (*_arrays(args), *_arrays(list(options.values())), *_arrays(list(results))))
    (numpy, numpy_fresh), (torch, torch_fresh), (numexpr, numexpr_fresh) = peers(op, sample)
    peer_calls = (numpy or numpy_fresh, torch or torch_fresh, numexpr or numexpr_fresh, numpy_fresh, torch_fresh)
    calls = [mine, copy, *dict.fromkeys(f for f in peer_calls if f)]
    once = sum(t[0] for t in interleaved(1, *calls))
    lasted = interleaved(max(3, min(runs, int(LONGEST * runs / once))), *calls, warmup=0)
    time_of = dict(zip(calls, map(median, lasted), strict=True))
    of_numpy, of_torch, of_numexpr, *fresh = (time_of[f] if f else math.nan for f in peer_calls)
    rate = copied / time_of[copy]
    return Measured(op, moved, time_of[mine], rate, of_numpy, of_torch, of_numexpr, (fresh[0], fresh[1]))


def _arrays(values: list[Any]) -> list[Any]:
    flat = [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]
    return [v for v in flat if hasattr(v, "nbytes")]


def every(names: list[str], runs: int, n: int) -> Iterator[Measured]:
    """Measure every op of the table that has a benchmark, or only the named ones."""
    rng = np.random.default_rng()
    x, y = (mnb.asarray(np.zeros(n, np.float32), copy=True).numpy() for _ in range(2))
    ready = mnb.compile(COPY).copy.prepare(x, y, grid=n, threadgroup=1024)
    for op in op_table.ops().values():
        bench = bench_of(op)
        if bench is not None and (not names or op.name in names):
            yield measured(op, bench(rng, n), runs, ready.run, 2 * x.nbytes)


def line(m: Measured) -> str:
    """Write an op's line."""
    def ratio(seconds: float) -> str:
        return "" if math.isnan(seconds) else f"{seconds / m.mine:.2f}"

    return (f"{m.op.name:<20} {m.mine * 1e3:>9.2f} {m.rate / 1e9:>7.1f} {m.rate / m.copy:>6.2f}"
            f" {ratio(m.numpy):>8} {ratio(m.torch):>8} {ratio(m.numexpr):>9}"
            f" {ratio(m.fresh[0]):>8} {ratio(m.fresh[1]):>8}")  # fmt: skip


def mean(ratios: list[float]) -> float:
    """Return the geometric mean of those that are not NaN."""
    logarithms = [math.log(r) for r in ratios if not math.isnan(r)]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def summary(all_of: list[Measured]) -> list[Row]:
    """Compare the measurements with the aims."""
    plain = [m for m in all_of if m.plain]
    slow = {m.op.name: m.numpy / m.mine for m in all_of if m.numpy < m.mine and m.op.name not in SORTS}
    bound = {m.op.name: m.rate / m.copy for m in plain if m.bound}
    low = {name: share for name, share in bound.items() if share < 0.9}
    rows = [Row("ops below NumPy, except sorts", f"{len(slow)}", "0", not slow, _listed(slow))]
    for peer, aim in (("numpy", 2.5), ("torch", 1.0), ("numexpr", None)):
        value = mean([getattr(m, peer) / m.mine for m in plain])
        count = sum(not math.isnan(getattr(m, peer)) for m in plain)
        if count:
            met = None if aim is None else value >= aim
            note = f"{count} elementwise ops and activations"
            requirement = "" if aim is None else f">= {aim} x"
            rows.append(Row(f"geometric mean over {peer}", f"{value:.2f} x", requirement, met, note))
    behind = {m.op.name: m.torch / m.mine for m in all_of if m.torch < 0.95 * m.mine}
    if any(not math.isnan(m.torch) for m in all_of):
        rows.append(Row("ops below 0.95 of PyTorch", f"{len(behind)}", "0", not behind, _listed(behind)))
    if bound:
        rows.append(Row("memory-bound ops below 0.9 of the copy", f"{len(low)} of {len(bound)}", "0", not low,
                        f"mean {mean(list(bound.values())):.2f}; {_listed(low)}"))  # fmt: skip
    return rows


def _listed(some: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in sorted(some.items(), key=lambda pair: pair[1]))


def threads() -> str:
    """Return how many threads each peer uses by default."""
    thread_counts = ["NumPy 1 (its products: OpenBLAS)"]
    for module, ask in (("torch", "get_num_threads"), ("numexpr", "get_num_threads")):
        if importlib.util.find_spec(module):
            thread_counts.append(f"{module} {getattr(importlib.import_module(module), ask)()}")
    return "threads: " + ", ".join(thread_counts) + ", passive when idle"


def main() -> int:
    """Run all."""
    # PyTorch's threads would otherwise spin for a while after its run, on a core that the next run needs.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", metavar="OP", help="only these ops, without the other lines")
    parser.add_argument("--runs", type=int, default=7, help="timed runs of each (default 7)")
    parser.add_argument("--size", type=int, default=1 << 24, help="elements (default 2^24)")
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs: only to check that it works")
    options = parser.parse_args()
    unknown = sorted(set(options.ops) - set(op_table.ops()))
    if unknown:
        parser.error(f"no op {unknown[0]!r}")
    runs, n = (3, 1 << 18) if options.quick else (options.runs, options.size)
    warnings.simplefilter("ignore")  # peers warn of overflow and division by zero
    print(f"metalnb library: {n:,} elements, medians of {runs} alternating runs\n{machine()}\n{threads()}\n")
    print(f"{'with out= where logarithms is one':>71} {'a new array':>20}")
    print(f"{'op':<20} {'ms':>9} {'GB/s':>7} {'limit':>6} {'x NumPy':>8} {'x torch':>8} {'x numexpr':>9}"
          f" {'x NumPy':>8} {'x torch':>8}")  # fmt: skip
    measurements = []
    for m in every(options.ops, runs, n):
        measurements.append(m)
        print(line(m), flush=True)
    if options.ops:
        return 0
    return show("aims", [*summary(measurements), *lines(runs, quick=options.quick)])


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
