"""Compare a few well-known ops with NumPy's and PyTorch's, all three writing into existing memory.

Run: python benchmarks/library_table.py [--runs N] [--size N] [OP …]

Each library has its own arrays, so no library finds another's input in the cache. A function that accepts ``out=`` gets
one; our ops without ``out=`` reuse the pool's memory of earlier results. Times are medians of alternating
runs. A ratio is the peer's time over ours, so above 1 means that ours is faster.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import itertools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from report import interleaved, machine, median

import metalnb as mnb

Call = Callable[[], Any]


class ComparedOp(NamedTuple):
    """A row: an op in three libraries, with None where a library lacks the function."""

    name: str
    metalnb: Call
    numpy: Call | None
    torch: Call | None  # not called without PyTorch
    times: int = 1  # calls per timed run


class Arrays(NamedTuple):
    """Equal arrays of the three libraries, each in its own memory; PyTorch's is None without PyTorch."""

    metalnb: mnb.Array
    numpy: np.ndarray
    torch: Any


@functools.cache
def pytorch() -> Any:
    """Return PyTorch, or None if it is not installed."""
    return importlib.import_module("torch") if importlib.util.find_spec("torch") else None


def arrays(host: np.ndarray) -> Arrays:
    """Copy an array for each library."""
    torch = pytorch()
    return Arrays(mnb.asarray(host, copy=True), host.copy(), torch and torch.from_numpy(host.copy()))


def with_out(op: str, operands: Sequence[Arrays], out: Arrays) -> ComparedOp:
    """Return the row of an op that has the same name and an ``out=`` in each library that has it."""
    libraries = {"metalnb": mnb, "numpy": np, "torch": pytorch()}
    calls = {
        library: functools.partial(
            getattr(module, op), *(getattr(operand, library) for operand in operands), out=getattr(out, library)
        )
        for library, module in libraries.items() if hasattr(module, op)
    }  # fmt: skip
    return ComparedOp(op, calls["metalnb"], calls.get("numpy"), calls.get("torch"))


def vector_ops(n: int) -> Iterator[ComparedOp]:
    """Yield elementwise ops, reductions, a scan, a chain and a sort of `n` floats, and additions of 1,000."""
    torch, rng = pytorch(), np.random.default_rng(1)
    x, y = (arrays(rng.uniform(-2, 2, n).astype(np.float32)) for _ in range(2))
    out = arrays(np.empty(n, np.float32))
    yield with_out("add", (x, y), out)
    for op in ("exp", "sin", "erf"):
        yield with_out(op, (x,), out)
    yield ComparedOp("gelu", lambda: mnb.gelu(x.metalnb, out=out.metalnb), None,
                     lambda: torch.nn.functional.gelu(x.torch))  # fmt: skip
    yield with_out("maximum", (x, y), out)
    yield ComparedOp("sum", lambda: mnb.sum(x.metalnb), lambda: np.sum(x.numpy), lambda: torch.sum(x.torch))
    yield ComparedOp("max", lambda: mnb.max(x.metalnb), lambda: np.max(x.numpy), lambda: torch.amax(x.torch))
    yield ComparedOp("argmax", lambda: mnb.argmax(x.metalnb), lambda: np.argmax(x.numpy), lambda: torch.argmax(x.torch))
    yield ComparedOp("cumsum", lambda: mnb.cumulative_sum(x.metalnb), lambda: np.cumsum(x.numpy, out=out.numpy),
                     lambda: torch.cumsum(x.torch, 0, out=out.torch))  # fmt: skip
    yield from chains(x, y, out)
    sorted_out = torch and (torch.empty(n), torch.empty(n, dtype=torch.int64))
    yield ComparedOp("sort", lambda: mnb.sort(x.metalnb), lambda: np.sort(x.numpy),
                     lambda: torch.sort(x.torch, out=sorted_out))  # fmt: skip
    short, other, short_out = (arrays(whole.numpy[:1000]) for whole in (x, y, out))
    add = with_out("add", (short, other), short_out)
    yield add._replace(name="add of 1,000", metalnb=lambda: add.metalnb().wait(), times=1000)


def chains(x: Arrays, y: Arrays, out: Arrays) -> Iterator[ComparedOp]:
    """Yield a chain of four elementwise ops: each library's calls, and our fused function against those."""

    def chain(module: Any, library: str) -> Call:
        a, b, result = (getattr(operand, library) for operand in (x, y, out))

        def run() -> None:
            module.multiply(a, b, out=result)
            module.add(result, a, out=result)
            module.multiply(result, b, out=result)
            module.subtract(result, a, out=result)

        return run

    torch = pytorch()
    numpy_chain = chain(np, "numpy")
    torch_chain = torch and chain(torch, "torch")
    yield ComparedOp("(a*b+a)*b-a", chain(mnb, "metalnb"), numpy_chain, torch_chain)
    fused = mnb.fuse(lambda a, b: (a * b + a) * b - a)
    yield ComparedOp("the same, fused", lambda: fused(x.metalnb, y.metalnb), numpy_chain, torch_chain)


def square_ops(side: int) -> Iterator[ComparedOp]:
    """Yield ops on the rows and columns of a square matrix."""
    torch = pytorch()
    x = arrays(np.random.default_rng(1).uniform(-2, 2, (side, side)).astype(np.float32))
    out, sums = arrays(np.empty((side, side), np.float32)), arrays(np.empty(side, np.float32))
    for axis in (0, 1):
        yield ComparedOp(
            f"sum axis {axis}", lambda axis=axis: mnb.sum(x.metalnb, axis=axis),
            lambda axis=axis: np.sum(x.numpy, axis=axis, out=sums.numpy),
            lambda axis=axis: torch.sum(x.torch, axis, out=sums.torch),
        )  # fmt: skip

    def numpy_softmax() -> None:
        np.subtract(x.numpy, x.numpy.max(-1, keepdims=True), out=out.numpy)
        np.exp(out.numpy, out=out.numpy)
        np.divide(out.numpy, out.numpy.sum(-1, keepdims=True), out=out.numpy)

    yield ComparedOp("softmax", lambda: mnb.softmax(x.metalnb), numpy_softmax,
                     lambda: torch.softmax(x.torch, -1, out=out.torch))  # fmt: skip
    yield ComparedOp("layer_norm", lambda: mnb.layer_norm(x.metalnb), None,
                     lambda: torch.nn.functional.layer_norm(x.torch, (side,)))  # fmt: skip
    yield ComparedOp("transpose copy", lambda: out.metalnb.__setitem__(..., x.metalnb.T),
                     lambda: np.copyto(out.numpy, x.numpy.T), lambda: out.torch.copy_(x.torch.T))  # fmt: skip


def matrix_products(side: int) -> Iterator[ComparedOp]:
    """Yield products of two square matrices, in single and in half precision."""
    torch, rng = pytorch(), np.random.default_rng(1)
    a, b = (arrays(rng.random((side, side), np.float32)) for _ in range(2))
    out = arrays(np.empty((side, side), np.float32))
    yield ComparedOp(f"matmul {side}", lambda: mnb.matmul(a.metalnb, b.metalnb),
                     lambda: np.matmul(a.numpy, b.numpy, out=out.numpy),
                     lambda: torch.matmul(a.torch, b.torch, out=out.torch))  # fmt: skip
    half_a, half_b = (operand.metalnb.astype(mnb.float16) for operand in (a, b))
    torch_a, torch_b, torch_out = (torch and operand.torch.half() for operand in (a, b, out))
    yield ComparedOp("half matmul", lambda: mnb.matmul(half_a, half_b), None,
                     lambda: torch.matmul(torch_a, torch_b, out=torch_out))  # fmt: skip


def layers() -> Iterator[ComparedOp]:
    """Yield neural networks' functions. NumPy lacks them, and PyTorch's take no ``out=`` either."""
    torch, rng = pytorch(), np.random.default_rng(2)

    def normal(*shape: int) -> Arrays:
        return arrays(rng.standard_normal(shape, np.float32))

    def layer(name: str, op: str, inputs: list[Arrays], *rest: Any, **options: Any) -> ComparedOp:
        ours, theirs = [operand.metalnb for operand in inputs], [operand.torch for operand in inputs]
        function, torch_function = getattr(mnb, op), torch and getattr(torch.nn.functional, op)
        return ComparedOp(name, lambda: function(*ours, *rest, **options), None,
                          lambda: torch_function(*theirs, *rest, **options))  # fmt: skip

    images, deep, photo = normal(8, 64, 56, 56), normal(8, 256, 14, 14), normal(1, 3, 224, 224)
    yield layer("conv2d 3x3, 64 channels of 56x56", "conv2d", [images, normal(64, 64, 3, 3)], padding=1)
    yield layer("conv2d 3x3, 256 channels of 14x14", "conv2d", [deep, normal(256, 256, 3, 3)], padding=1)
    yield layer("conv2d 7x7, stride 2, of 3x224x224", "conv2d", [photo, normal(64, 3, 7, 7)], stride=2, padding=3)
    yield layer("conv2d 3x3, 64 groups", "conv2d", [images, normal(64, 1, 3, 3)], padding=1, groups=64)
    yield layer("conv1d 5, 64 channels of 2048", "conv1d", [normal(16, 64, 2048), normal(64, 64, 5)], padding=2)
    yield layer("avg_pool2d 3, stride 2", "avg_pool2d", [images], 3, 2, 1)
    yield layer("max_pool2d 2", "max_pool2d", [images], 2)
    yield layer("group_norm 8", "group_norm", [images], 8)
    yield layer("glu", "glu", [images], 1)
    yield layer("linear 512x1024, 1024", "linear", [normal(512, 1024), normal(1024, 1024), normal(1024)])


def repeated(call: Call, times: int) -> Call:
    """Return a function that makes `times` calls and then waits for them."""
    def run() -> None:
        for _ in range(times):
            result = call()
        mnb.synchronize()
        del result

    return run


def main() -> int:
    """Print the table."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in library.py, before PyTorch is loaded
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", metavar="OP", help="time only rows whose names contain one of these words")
    parser.add_argument("--runs", type=int, default=9, help="timed runs of each (default 9)")
    parser.add_argument("--size", type=int, default=1 << 24, help="elements (default 2^24)")
    options = parser.parse_args()
    print(f"{options.size:,} elements, medians of {options.runs} alternating runs\n{machine()}\n")
    print("| | metalnb, ms | NumPy | PyTorch |\n|---|--:|--:|--:|")
    subjects = (vector_ops(options.size), square_ops(math.isqrt(options.size)), matrix_products(2048), layers())
    for op in itertools.chain.from_iterable(subjects):
        if options.ops and not any(word in op.name for word in options.ops):
            continue
        peers = (op.numpy, op.torch if pytorch() else None)
        calls = [repeated(call, op.times) for call in (op.metalnb, *peers) if call]
        ours, *others = (median(t) / op.times for t in interleaved(options.runs, *calls))
        ratios = [f"{others.pop(0) / ours:.2f}" if call else "–" for call in peers]
        digits = 4 if op.times > 1 else 2
        print(f"| {op.name} | {1e3 * ours:.{digits}f} | {' | '.join(ratios)} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
