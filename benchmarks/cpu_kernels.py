"""Compare the kernels that people write Metal for, on the engine cpu, with PyTorch on the same processor, in one run.

Attention, convolution, selection and products, as in gpu_kernels.py, at sizes for a processor. Run:
python benchmarks/cpu_kernels.py [--runs N] [--list] [WORD …]

A row is timed if its name contains one of the words; without words, all are. Times are wall-clock medians of runs that
alternate in random order; both libraries use all cores and reuse their own freed memory. "x torch" is PyTorch's time
over ours: above 1, ours is faster. "differs" is the largest difference between the two results, as a fraction of the
largest number. It only shows that both compute the same thing; the tests check accuracy.
"""

from __future__ import annotations

import argparse
import functools
from typing import Any

import numpy as np
from gpu_kernels import Call, Case, Quantized, attention, calls, difference
from report import interleaved, machine, median

import metalnb as mnb

_LEAST = 0.01  # s: shorter calls are repeated within a run


def attentions() -> list[Case]:
    """Return the rows of attention."""
    causal = ", is_causal=True"
    return [
        attention("f32 1x8x512x64", "float32", (1, 8, 8), (512, 512), 64),
        attention("f32 1x8x1024x128", "float32", (1, 8, 8), (1024, 1024), 128),
        attention("f32 causal 1x8x1024x64", "float32", (1, 8, 8), (1024, 1024), 64, causal),
        attention("f32 grouped 1x8/2x512x64", "float32", (1, 8, 2), (512, 512), 64),
        attention("f32 decode 1x32 of 4096x128", "float32", (1, 32, 32), (1, 4096), 128),
        attention("f16 1x8x512x64", "float16", (1, 8, 8), (512, 512), 64),
    ]


def products() -> list[Case]:
    """Return the rows of products of matrices and vectors."""
    rows = []
    for short, dtype in (("f32", "float32"), ("f16", "float16")):
        rows += [
            Case(f"product {short} {k}", ((k, k), (k, k)), "mnb.matmul(a, b)", "torch.matmul(a, b)", 2 * k**3, 0, dtype)
            for k in (512, 1024)
        ]
        batch = 16, 256, 256
        rows.append(Case(f"batched {short} 16x256", (batch, batch), "mnb.matmul(a, b)", "torch.matmul(a, b)",
                         2 * 16 * 256**3, 0, dtype))  # fmt: skip
        size = 4 if dtype == "float32" else 2
        rows += [
            Case(f"matrix-vector {short} {axis} 4096", ((4096, 4096), (4096,)), f"mnb.matmul({text}, b)",
                 f"torch.matmul({text}, b)", 0, size * 4096**2, dtype)
            for axis, text in (("rows", "a"), ("columns", "a.T"))
        ]  # fmt: skip
    return [
        *rows,
        *(
            Case(f"quantized {bits} bits 1 x 4096x4096", ((1, 4096), Quantized(4096, 4096, bits)),
                 "mnb.quantized_matmul(a, *b)", "torch.matmul(a, b.T)", 0, 4096**2 * (bits + 1) / 8, "float16")
            for bits in (4, 8)
        ),
    ]  # fmt: skip


def convolutions() -> list[Case]:
    """Return the rows of convolution and pooling."""
    image = 4, 32, 112, 112
    return [
        *(
            Case(f"conv2d 3x3 f32 {channels}x{side}", ((4, channels, side, side), (channels, channels, 3, 3)),
                 "mnb.conv2d(a, b, padding=1)", "F.conv2d(a, b, padding=1)", 8 * channels**2 * side**2 * 9)
            for channels, side in ((64, 56), (128, 28))
        ),
        Case("conv2d 3x3 f16 64x56", ((4, 64, 56, 56), (64, 64, 3, 3)), "mnb.conv2d(a, b, padding=1)",
             "F.conv2d(a, b, padding=1)", 8 * 64**2 * 56**2 * 9, 0, "float16"),
        Case("conv2d depthwise f32", (image, (32, 1, 3, 3)), "mnb.conv2d(a, b, padding=1, groups=32)",
             "F.conv2d(a, b, padding=1, groups=32)", 0, 8 * np.prod(image)),
        Case("conv1d f32", ((8, 64, 2048), (64, 64, 5)), "mnb.conv1d(a, b, padding=2)", "F.conv1d(a, b, padding=2)",
             2 * 8 * 64 * 64 * 2048 * 5),
        Case("max_pool2d 2", (image,), "mnb.max_pool2d(a, 2)", "F.max_pool2d(a, 2)", 0, 5 * np.prod(image)),
        Case("max_pool2d 3 by 2", (image,), "mnb.max_pool2d(a, 3, stride=2, padding=1)",
             "F.max_pool2d(a, 3, stride=2, padding=1)", 0, 5 * np.prod(image)),
    ]  # fmt: skip


def streams() -> list[Case]:
    """Return the rows of selection, sorting, reductions and scans."""
    n, rows = 1 << 22, (1024, 4096)
    chain = "a * b + {0}.tanh(a) * {0}.exp(-b * b)"
    return [
        Case("topk 10 of rows", (rows,), "mnb.topk(a, 10).values", "torch.topk(a, 10).values", 0, 4 * n),
        Case("topk 10 of 2^22", ((n,),), "mnb.topk(a, 10).values", "torch.topk(a, 10).values", 0, 4 * n),
        Case("sort rows of 4096", (rows,), "mnb.sort(a)", "torch.sort(a).values", 0, 8 * n),
        Case("argsort rows of 4096", (rows,), "mnb.argsort(a)", "torch.argsort(a, stable=True)", 0, 12 * n),
        Case("var of rows", (rows,), "mnb.var(a, axis=1)", "torch.var(a, 1, correction=0)", 0, 4 * n),
        Case("take, random", ((n,), "places"), "mnb.take(a, b)", "torch.take(a, b)", 0, 16 * n),
        Case("cumsum 2^22", ((n,),), "mnb.cumulative_sum(a)", "torch.cumsum(a, 0)", 0, 8 * n),
        Case("sum 2^22 axis 0", (rows,), "mnb.sum(a, axis=0)", "torch.sum(a, 0)", 0, 4 * n),
        Case("softmax of rows", (rows,), "mnb.softmax(a)", "torch.softmax(a, -1)", 0, 8 * n),
        Case("fused chain", ((n,), (n,)), f"mnb.fuse(lambda a, b: {chain.format('mnb')})",
             f"torch.compile(lambda a, b: {chain.format('torch')})", 0, 12 * n),
        Case("one element", ((1,),), "mnb.add(a, a)", "torch.add(a, a)"),
    ]  # fmt: skip


def repeated(call: Call, count: int) -> None:
    """Call a function `count` times, and wait for the last dispatch."""
    for _ in range(count):
        call()
    mnb.synchronize()


def line(case: Case, runs: int, rng: Any, torch: Any) -> str:
    """Time a row; return its line."""
    with torch.no_grad():
        timed_calls = calls(case, rng, torch, "cpu")
        error = difference(timed_calls, torch)
        ((once,),) = interleaved(1, functools.partial(repeated, timed_calls["metalnb"], 1))
        count = max(1, min(1000, int(_LEAST / once)))
        both = [functools.partial(repeated, timed_calls[name], count) for name in ("metalnb", "torch")]
        times = [median(found) / count for found in interleaved(runs, *both)]
    work, unit = (case.flops, "GFLOP/s") if case.flops else (case.moved, "GB/s   ")
    rate = f"{work / times[0] / 1e9:8.1f} {unit}"
    return f"{case.name:<32}{times[0] * 1e3:10.4f}{times[1] * 1e3:10.4f}{times[1] / times[0]:9.3f} {rate}{error:12.1e}"


def main() -> None:
    """Run all rows, or the chosen ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--list", action="store_true", help="name the rows")
    options = parser.parse_args()
    cases = [*attentions(), *streams(), *convolutions(), *products()]
    if options.list:
        print("\n".join(case.name for case in cases))
        return
    import torch

    mnb.use("cpu")
    print(f"{machine()}, torch {torch.__version__}, medians of {options.runs} alternating runs")
    print(f"{'':<32}{'ms':>10}{'torch ms':>10}{'x torch':>9}{'rate':>17}{'differs':>12}", flush=True)
    rng = np.random.default_rng(0)
    for case in cases:
        if options.words and not any(word in case.name for word in options.words):
            continue
        try:
            print(line(case, options.runs, rng, torch), flush=True)
        except Exception as error:  # noqa: BLE001  (the others must still be shown)
            print(f"{case.name:<32} {type(error).__name__}: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main()
