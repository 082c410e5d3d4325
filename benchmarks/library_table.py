"""Compare a few well-known ops with NumPy's and PyTorch's, all three writing into existing memory.

Run: python benchmarks/library_table.py [--runs N] [--size N] [COLUMN …]

Each library has its own arrays, so that none finds in the cache what another has just read. Each is passed ``out=`` if
it accepts it; our ops without ``out=`` reuse the pool's memory of earlier results. Times are medians of alternating
runs. A ratio is the peer's time over ours, so above 1 means that ours is faster.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from report import interleaved, machine, median

import metalnb as mnb

Call = Callable[[], Any]


class Column(NamedTuple):
    """An op in three libraries, with None where a library lacks the function."""

    name: str
    mine: Call
    numpy: Call | None
    torch: Call | None
    times: int = 1  # calls per timed run


def columns(n: int) -> Iterator[Column]:  # noqa: PLR0915  (a table is long)
    """Return the columns: elementwise ops, reductions and scans of ``n`` floats, products of 2,048² matrices."""
    torch: Any = None
    if importlib.util.find_spec("torch"):
        import torch
    rng = np.random.default_rng(1)
    side = math.isqrt(n)
    x, y = (rng.uniform(-2, 2, n).astype(np.float32) for _ in range(2))
    a, b, o = mnb.asarray(x, copy=True), mnb.asarray(y, copy=True), mnb.empty(n)
    z = np.empty_like(x)
    t, u, w = (torch and torch.from_numpy(v.copy()) for v in (x, y, np.empty_like(x)))
    f = torch and torch.nn.functional
    square, turned = x[: side * side].reshape(side, side), np.empty((side, side), np.float32)
    sq, at, ot = mnb.asarray(square, copy=True), mnb.asarray(square, copy=True).T, mnb.empty((side, side))
    tsq, tw = (torch and torch.from_numpy(v.copy()) for v in (square, np.empty_like(square)))
    line, tline = np.empty(side, np.float32), torch and torch.empty(side)

    def column(name: str, mine: Call, numpy: Call | None, other: Call | None, times: int = 1) -> Column:
        return Column(name, mine, numpy, other if torch else None, times)

    yield column("add", lambda: mnb.add(a, b, out=o), lambda: np.add(x, y, out=z), lambda: torch.add(t, u, out=w))
    for name in ("exp", "sin"):
        ours, theirs, thirds = getattr(mnb, name), getattr(np, name), torch and getattr(torch, name)
        yield column(name, lambda f=ours: f(a, out=o), lambda f=theirs: f(x, out=z), lambda f=thirds: f(t, out=w))
    yield column("erf", lambda: mnb.erf(a, out=o), None, lambda: torch.erf(t, out=w))
    yield column("gelu", lambda: mnb.gelu(a, out=o), None, lambda: f.gelu(t))
    yield column("maximum", lambda: mnb.maximum(a, b, out=o), lambda: np.maximum(x, y, out=z),
               lambda: torch.maximum(t, u, out=w))  # fmt: skip
    yield column("sum", lambda: mnb.sum(a), lambda: np.sum(x), lambda: torch.sum(t))
    yield column("max", lambda: mnb.max(a), lambda: np.max(x), lambda: torch.amax(t))
    yield column("argmax", lambda: mnb.argmax(a), lambda: np.argmax(x), lambda: torch.argmax(t))
    for axis in (0, 1):
        yield column(f"sum axis {axis}", lambda d=axis: mnb.sum(sq, axis=d),
                   lambda d=axis: np.sum(square, axis=d, out=line),
                   lambda d=axis: torch.sum(tsq, d, out=tline))  # fmt: skip

    def softmax() -> None:
        np.subtract(square, square.max(-1, keepdims=True), out=turned)
        np.exp(turned, out=turned)
        np.divide(turned, turned.sum(-1, keepdims=True), out=turned)

    yield column("softmax", lambda: mnb.softmax(sq), softmax, lambda: torch.softmax(tsq, -1, out=tw))
    yield column("layer_norm", lambda: mnb.layer_norm(sq), None, lambda: f.layer_norm(tsq, (side,)))
    yield column("cumsum", lambda: mnb.cumulative_sum(a), lambda: np.cumsum(x, out=z),
                 lambda: torch.cumsum(t, 0, out=w))  # fmt: skip
    yield column("transpose copy", lambda: ot.__setitem__(..., at), lambda: np.copyto(turned, square.T),
               lambda: tw.copy_(tsq.T))  # fmt: skip

    def chain() -> None:
        mnb.multiply(a, b, out=o)
        for op, other in ((mnb.add, a), (mnb.multiply, b), (mnb.subtract, a)):
            op(o, other, out=o)

    def numpys() -> None:
        np.multiply(x, y, out=z)
        for op, other in ((np.add, x), (np.multiply, y), (np.subtract, x)):
            op(z, other, out=z)

    def torchs() -> None:
        torch.mul(t, u, out=w)
        for op, other in ((torch.add, t), (torch.mul, u), (torch.sub, t)):
            op(w, other, out=w)

    fused = mnb.fuse(lambda p, q: (p * q + p) * q - p)
    yield column("(a*b+a)*b-a", chain, numpys, torchs)
    yield column("the same, fused", lambda: fused(a, b), numpys, torchs)
    k = 2048
    l, r = (rng.random((k, k), np.float32) for _ in range(2))  # noqa: E741
    p, q, lr = mnb.asarray(l, copy=True), mnb.asarray(r, copy=True), np.empty((k, k), np.float32)
    tl, tr, tlr = (torch and torch.from_numpy(v.copy()) for v in (l, r, np.empty_like(l)))
    yield column("matmul 2048", lambda: mnb.matmul(p, q), lambda: np.matmul(l, r, out=lr),
               lambda: torch.matmul(tl, tr, out=tlr))  # fmt: skip
    hp, hq = p.astype(mnb.float16), q.astype(mnb.float16)
    hl, hr, hlr = (torch and v.half() for v in (tl, tr, tlr))
    yield column("half matmul", lambda: mnb.matmul(hp, hq), None, lambda: torch.matmul(hl, hr, out=hlr))
    into, places = (torch.empty(n), torch.empty(n, dtype=torch.int64)) if torch else (None, None)
    yield column("sort", lambda: mnb.sort(a), lambda: np.sort(x), lambda: torch.sort(t, out=(into, places)))
    count = 1000
    sa, sb, so = mnb.asarray(x[:count], copy=True), mnb.asarray(y[:count], copy=True), mnb.empty(count)
    sx, sy, sz = x[:count].copy(), y[:count].copy(), z[:count].copy()
    st, su, sw = (torch and torch.from_numpy(v.copy()) for v in (sx, sy, sz))
    yield column("add of 1,000", lambda: mnb.add(sa, sb, out=so).wait(), lambda: np.add(sx, sy, out=sz),
               lambda: torch.add(st, su, out=sw), 1000)  # fmt: skip


def layers() -> Iterator[Column]:
    """Return the columns of neural networks' functions. NumPy lacks them, and PyTorch's take no ``out=`` either."""
    torch: Any = None
    if importlib.util.find_spec("torch"):
        import torch
    rng = np.random.default_rng(2)
    f = torch and torch.nn.functional

    def pair(*shape: int) -> tuple[Any, Any]:
        host = rng.standard_normal(shape, np.float32)
        return mnb.asarray(host, copy=True), torch and torch.from_numpy(host.copy())

    def column(name: str, op: str, pairs: list[tuple[Any, Any]], *rest: Any, **options: Any) -> Column:
        mine, theirs = ([g[side] for g in pairs] for side in (0, 1))
        ours, other = getattr(mnb, op), torch and getattr(f, op)
        return Column(name, lambda: ours(*mine, *rest, **options), None,
                      (lambda: other(*theirs, *rest, **options)) if torch else None)  # fmt: skip

    images, deep, photo = pair(8, 64, 56, 56), pair(8, 256, 14, 14), pair(1, 3, 224, 224)
    yield column("conv2d 3x3, 64 channels of 56x56", "conv2d", [images, pair(64, 64, 3, 3)], padding=1)
    yield column("conv2d 3x3, 256 channels of 14x14", "conv2d", [deep, pair(256, 256, 3, 3)], padding=1)
    yield column("conv2d 7x7, stride 2, of 3x224x224", "conv2d", [photo, pair(64, 3, 7, 7)], stride=2, padding=3)
    yield column("conv2d 3x3, 64 groups", "conv2d", [images, pair(64, 1, 3, 3)], padding=1, groups=64)
    yield column("conv1d 5, 64 channels of 2048", "conv1d", [pair(16, 64, 2048), pair(64, 64, 5)], padding=2)
    yield column("avg_pool2d 3, stride 2", "avg_pool2d", [images], 3, 2, 1)
    yield column("max_pool2d 2", "max_pool2d", [images], 2)
    yield column("group_norm 8", "group_norm", [images], 8)
    yield column("glu", "glu", [images], 1)
    yield column("linear 512x1024, 1024", "linear", [pair(512, 1024), pair(1024, 1024), pair(1024)])


def repeated(call: Call, times: int) -> Call:
    """Return a function that calls it `times` times and waits."""
    def run() -> None:
        for _ in range(times):
            result = call()
        mnb.synchronize()
        del result

    return run


def main() -> int:
    """Run all."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in library.py, before PyTorch is loaded
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("columns", nargs="*", help="only those whose names contain one of these")
    parser.add_argument("--runs", type=int, default=9, help="timed runs of each (default 9)")
    parser.add_argument("--size", type=int, default=1 << 24, help="elements (default 2^24)")
    options = parser.parse_args()
    print(f"{options.size:,} elements, medians of {options.runs} alternating runs\n{machine()}\n")
    print("| | metalnb, ms | NumPy | PyTorch |\n|---|--:|--:|--:|")
    for column in itertools.chain(columns(options.size), layers()):
        if options.columns and not any(part in column.name for part in options.columns):
            continue
        calls = [repeated(call, column.times) for call in (column.mine, column.numpy, column.torch) if call]
        mine, *others = (median(t) / column.times for t in interleaved(options.runs, *calls))
        ratios = [f"{others.pop(0) / mine:.2f}" if call else "–" for call in (column.numpy, column.torch)]
        digits = 4 if column.times > 1 else 2
        print(f"| {column.name} | {1e3 * mine:.{digits}f} | {' | '.join(ratios)} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
