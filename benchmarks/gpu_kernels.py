"""Compare the kernels that people write Metal for, on the engine cuda, with PyTorch on the same GPU, in one run.

Attention, convolution, selection and products. Run: python benchmarks/gpu_kernels.py [--list] [WORD …]

A row is timed if its name contains one of the words; without words, all are. Times are medians by the GPU's clock, of
batches that alternate in one stream; "x torch" is PyTorch's time over ours: above 1, ours is faster. PyTorch uses no
TF32. "differs" is the largest difference between the two results, as a fraction of the largest number. It only shows
that both compute the same thing; the tests check accuracy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gpu import Clock, microseconds_per_call

import metalnb as mnb

Call = Callable[[], Any]
_ONE_ELEMENT = "one element"  # the last row, which has no `Case`


class Quantized(NamedTuple):
    """The shape of weights of a few bits."""

    rows: int
    terms: int
    bits: int


class Case(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
    shapes : tuple
        Shapes of the arguments a, b, c: normal numbers of `dtype`, or for "places" integers below the length of a. For
        a shape in `Quantized`, ours is what `mnb.quantize` returns, and theirs the same weights unpacked.
    ours, theirs : str
        Expressions of these arguments; theirs may also use F, PyTorch's ``torch.nn.functional``.
    flops, moved : float
        Operations of one call, and bytes that it must move.
    dtype : str
    """

    name: str
    shapes: tuple[Any, ...]
    ours: str
    theirs: str
    flops: float = 0
    moved: float = 0
    dtype: str = "float32"


def attention(name: str, dtype: str, heads: tuple[int, int, int], lengths: tuple[int, int], width: int,
              options: str = "") -> Case:  # fmt: skip
    """Return an attention case. `heads` is (batch, query heads, key/value heads); `lengths` is (queries, keys)."""
    batch, query_heads, key_heads = heads
    size = 4 if dtype == "float32" else 2
    options += ", enable_gqa=True" * (query_heads != key_heads)
    work = 4 * batch * query_heads * lengths[0] * lengths[1] * width / (2 if "causal" in options else 1)
    moved = 2 * size * batch * width * (query_heads * lengths[0] + key_heads * lengths[1])
    shapes = ((batch, query_heads, lengths[0], width), *2 * ((batch, key_heads, lengths[1], width),))
    return Case(f"attention {name}", shapes, f"mnb.scaled_dot_product_attention(a, b, c{options})",
                f"F.scaled_dot_product_attention(a, b, c{options})", work, moved, dtype)  # fmt: skip


def _attentions() -> list[Case]:
    cases = []
    for short, dtype in (("f32", "float32"), ("f16", "float16"), ("bf16", "bfloat16")):
        cases.append(attention(f"{short} 4x16x1024x64", dtype, (4, 16, 16), (1024, 1024), 64))
        cases.append(attention(f"{short} 1x32x4096x128", dtype, (1, 32, 32), (4096, 4096), 128))
    return [
        *cases,
        attention("f16 causal 1x32x4096x128", "float16", (1, 32, 32), (4096, 4096), 128, ", is_causal=True"),
        attention("f16 grouped 1x32/8x2048x128", "float16", (1, 32, 8), (2048, 2048), 128),
        attention("f16 wide 1x8x2048x256", "float16", (1, 8, 8), (2048, 2048), 256),
        attention("f16 decode 1x32 of 32768x128", "float16", (1, 32, 32), (1, 32768), 128),
        attention("f16 decode 8x32/8 of 8192x128", "float16", (8, 32, 8), (1, 8192), 128),
        attention("f32 decode 4x16 of 4096x64", "float32", (4, 16, 16), (1, 4096), 64),
    ]


def _products() -> list[Case]:
    cases = []
    for short, dtype in (("f32", "float32"), ("f16", "float16")):
        size = 4 if dtype == "float32" else 2
        sizes = [(f"product {short} {k}", (k, k), (k, k), k**3) for k in (2048, 4096, 8192)]
        sizes.append((f"batched {short} 64x512", (64, 512, 512), (64, 512, 512), 64 * 512**3))
        cases += [
            Case(name, (one, other), "mnb.matmul(a, b)", "torch.matmul(a, b)", 2 * terms, 0, dtype)
            for name, one, other, terms in sizes
        ]
        cases += [
            Case(f"matrix-vector {short} {axis} 8192", ((8192, 8192), (8192,)), f"mnb.matmul({text}, b)",
                 f"torch.matmul({text}, b)", 2 * 8192**2, size * 8192**2, dtype)
            for axis, text in (("rows", "a"), ("columns", "a.T"))
        ]  # fmt: skip
    return cases


def _quantized() -> list[Case]:
    cases = []
    for bits in (4, 8):
        for vectors, rows, terms in (
            (1, 4096, 4096), (1, 14336, 4096), (1, 8192, 8192), (1, 16384, 16384), (2, 8192, 8192), (8, 8192, 8192),
        ):  # fmt: skip
            moved = rows * terms * (bits + 1) / 8  # a scale and a minimum of 16 bits for 32 elements
            cases.append(Case(f"quantized {bits} bits {vectors} x {rows}x{terms}", ((vectors, terms),
                              Quantized(rows, terms, bits)), "mnb.quantized_matmul(a, *b)", "torch.matmul(a, b.T)", 0,
                              moved, "float16"))  # fmt: skip
    return cases


def _convolutions() -> list[Case]:
    cases = []
    for short, dtype in (("f32", "float32"), ("f16", "float16")):
        for images, channels, side, filters in ((32, 64, 56, 64), (32, 256, 28, 256)):
            work = 2 * images * filters * side * side * channels * 9
            cases.append(Case(f"conv2d 3x3 {short} {channels}x{side}", ((images, channels, side, side),
                              (filters, channels, 3, 3)), "mnb.conv2d(a, b, padding=1)", "F.conv2d(a, b, padding=1)",
                              work, 0, dtype))  # fmt: skip
    image = (32, 64, 112, 112)
    moved = 4 * np.prod(image)
    return [
        *cases,
        Case("conv2d depthwise f32", (image, (64, 1, 3, 3)), "mnb.conv2d(a, b, padding=1, groups=64)",
             "F.conv2d(a, b, padding=1, groups=64)", 0, 2 * moved),
        Case("max_pool2d 2", (image,), "mnb.max_pool2d(a, 2)", "F.max_pool2d(a, 2)", 0, 1.25 * moved),
        Case("max_pool2d 3 by 2", (image,), "mnb.max_pool2d(a, 3, stride=2, padding=1)",
             "F.max_pool2d(a, 3, stride=2, padding=1)", 0, 1.25 * moved),
    ]  # fmt: skip


def _streams() -> list[Case]:
    n, rows = 1 << 24, (4096, 4096)
    chain = "a * b + {0}.tanh(a) * {0}.exp(-b * b)"
    return [
        Case("topk 10 of rows", (rows,), "mnb.topk(a, 10).values", "torch.topk(a, 10).values", 0, 4 * n),
        Case("topk 10 of 2^24", ((n,),), "mnb.topk(a, 10).values", "torch.topk(a, 10).values", 0, 4 * n),
        Case("topk 500 of rows", (rows,), "mnb.topk(a, 500).values", "torch.topk(a, 500).values", 0, 4 * n),
        Case("sort rows of 4096", (rows,), "mnb.sort(a)", "torch.sort(a).values", 0, 8 * n),
        Case("argsort rows of 4096", (rows,), "mnb.argsort(a)", "torch.argsort(a)", 0, 12 * n),
        Case("sort rows of 512", ((32768, 512),), "mnb.sort(a)", "torch.sort(a).values", 0, 8 * n),
        Case("var of rows", (rows,), "mnb.var(a, axis=1)", "torch.var(a, 1, correction=0)", 0, 4 * n),
        Case("var of all", ((n,),), "mnb.var(a)", "torch.var(a, correction=0)", 0, 4 * n),
        Case("take, random", ((n,), "places"), "mnb.take(a, b)", "torch.take(a, b)", 0, 16 * n),
        Case("cumsum 2^28", ((1 << 28,),), "mnb.cumulative_sum(a)", "torch.cumsum(a, 0)", 0, 8 * 2**28),
        Case("sum 2^24 axis 0", (rows,), "mnb.sum(a, axis=0)", "torch.sum(a, 0)", 0, 4 * n),
        Case("softmax of rows", (rows,), "mnb.softmax(a)", "torch.softmax(a, -1)", 0, 8 * n),
        Case("fused chain", ((n,), (n,)), f"mnb.fuse(lambda a, b: {chain.format('mnb')})",
             f"torch.compile(lambda a, b: {chain.format('torch')})", 0, 12 * n),
    ]  # fmt: skip


def arguments(case: Case, rng: Any, torch: Any, device: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments for both libraries; PyTorch's are on a device."""
    ours: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    for name, shape in zip("abc", case.shapes, strict=False):
        if shape == "places":
            host = rng.integers(0, case.shapes[0][0], case.shapes[0][0])
            ours[name], theirs[name] = mnb.asarray(host), torch.tensor(host, device=device)
            continue
        if isinstance(shape, Quantized):
            weights = mnb.asarray(rng.standard_normal(shape[:2], np.float32).astype(case.dtype))
            ours[name] = mnb.quantize(weights, shape.bits)
            theirs[name] = torch.tensor(np.asarray(mnb.dequantize(*ours[name])), device=device)
            continue
        whole = rng.standard_normal(shape, np.float32)
        host_dtype = "float32" if case.dtype == "bfloat16" else case.dtype  # torch does not accept NumPy's bfloat16
        ours[name] = mnb.asarray(whole.astype(host_dtype)).astype(case.dtype)
        theirs[name] = torch.tensor(whole, device=device).to(getattr(torch, case.dtype))
    return ours, theirs


def calls(case: Case, rng: Any, torch: Any, device: str = "cuda") -> dict[str, Call]:
    """Return both calls, ready to be timed."""
    ours, theirs = arguments(case, rng, torch, device)
    call_of = {}
    for name, text, scope in (
        ("metalnb", case.ours, {"mnb": mnb, **ours}),
        ("torch", case.theirs, {"torch": torch, "F": torch.nn.functional, **theirs}),
    ):
        if text.startswith(("mnb.fuse", "torch.compile")):
            fused = eval(text, scope)  # noqa: S307  (a string in this file)
            call_of[name] = lambda fused=fused, scope=scope: fused(scope["a"], scope["b"])
        else:
            call_of[name] = eval(f"lambda: {text}", scope)  # noqa: S307  (a string in this file)
    return call_of


def difference(timed_calls: dict[str, Call], torch: Any) -> float:
    """Return the largest difference between the two results, as a fraction of the largest number."""
    ours = torch.tensor(np.asarray(timed_calls["metalnb"]().astype("float32"))).double()
    theirs = timed_calls["torch"]().double().cpu()
    return float((ours - theirs).abs().max() / theirs.abs().max())


def line(case: Case, clock: Clock, rng: Any) -> str:
    """Time a row; return its line."""
    with clock.torch.no_grad():
        timed_calls = calls(case, rng, clock.torch)
        error = difference(timed_calls, clock.torch)
        times = clock.compared(timed_calls)
    t = times["metalnb"]
    rate = f"{case.flops / t / 1e12:8.1f} TFLOP/s" if case.flops else f"{case.moved / t / 1e9:8.0f} GB/s   "
    return f"{case.name:<32}{t * 1e3:10.4f}{times['torch'] * 1e3:10.4f}{times['torch'] / t:9.3f} {rate}{error:12.1e}"


def one_element(torch: Any) -> str:
    """Time back-to-back additions of one element by the processor's clock."""
    tiny, one = mnb.asarray(np.zeros(1, np.float32)), torch.zeros(1, device="cuda")
    ours = microseconds_per_call(lambda: mnb.add(tiny, tiny), mnb.synchronize)
    theirs = microseconds_per_call(lambda: torch.add(one, one), torch.cuda.synchronize)
    return f"{_ONE_ELEMENT:<32}{ours * 1e-3:10.4f}{theirs * 1e-3:10.4f}{theirs / ours:9.3f}"


def main() -> None:
    """Run all rows, or the chosen ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--list", action="store_true", help="name the rows")
    options = parser.parse_args()
    cases = [*_attentions(), *_streams(), *_convolutions(), *_products(), *_quantized()]
    if options.list:
        print("\n".join([*(case.name for case in cases), _ONE_ELEMENT]))
        return
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    engine = mnb.use("cuda")
    print(f"{engine.caps.device}, {engine.caps.versions}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}")
    print(f"{'':<32}{'ms':>10}{'torch ms':>10}{'x torch':>9}{'rate':>17}{'differs':>12}", flush=True)
    clock, rng = Clock(), np.random.default_rng(0)
    for case in cases:
        if options.words and not any(word in case.name for word in options.words):
            continue
        try:
            print(line(case, clock, rng), flush=True)
        except Exception as error:  # noqa: BLE001  (the others must still be shown)
            print(f"{case.name:<32} {type(error).__name__}: {str(error)[:300]}", flush=True)
        torch.cuda.empty_cache()
    if not options.words or any(word in _ONE_ELEMENT for word in options.words):
        print(one_element(torch))


if __name__ == "__main__":
    main()
