"""The layers of a transformer and of a convolutional network."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Bench, Check, Table

table = Table()


def _softmax(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


def _softmax_case(bench: Bench, dtype: Any, name: str, rows: int, columns: int, threads: int) -> Check:
    x = (4 * bench.normal(rows, columns)).astype(dtype)
    x[0, columns // 2] = 30  # one element has nearly all the weight
    x[-1, : columns // 2] = -np.inf  # a masked row
    out = np.zeros_like(x)
    bench.load()[name](x, out, columns, grid=rows * threads, threadgroup=threads)
    # exp's argument has a rounding error of up to 60 of its units, and fast::exp adds a few more.
    return Check(out, _softmax(x.astype(np.float64)), roundings=100 if dtype == np.float32 else 4)


@table.case(
    {"rows": 1, "columns": 1, "threads": 32},
    {"rows": 5, "columns": 127, "threads": 64},
    {"rows": 3, "columns": 5000, "threads": 1024},
)
def softmax(bench: Bench, rows: int, columns: int, threads: int) -> list[Check]:
    return [
        _softmax_case(bench, np.float32, "softmax_float32", rows, columns, threads),
        _softmax_case(bench, np.float16, "softmax_float16", rows, columns, threads),
    ]


@table.case({"rows": 4, "columns": 300, "threads": 128}, name="softmax", needs="ml_dtypes", metal=False)
def softmax_bfloat(bench: Bench, rows: int, columns: int, threads: int) -> Check:
    import ml_dtypes

    return _softmax_case(bench, ml_dtypes.bfloat16, "softmax_bfloat16", rows, columns, threads)


@table.case(
    {"rows": 1, "columns": 1, "threads": 32, "affine": False},
    {"rows": 6, "columns": 97, "threads": 64, "affine": True},
    {"rows": 2, "columns": 4096, "threads": 512, "affine": True},
)
def layer_norm(bench: Bench, rows: int, columns: int, threads: int, affine: bool) -> Check:
    x = bench.normal(rows, columns) + 100
    x[-1] = 0.001 * bench.normal(columns)  # where eps matters
    y = np.full_like(x, np.nan)
    weight, bias = bench.normal(columns), bench.normal(columns)
    named = {"weight": weight, "bias": bias} if affine else {}
    bench.load(affine=affine).layer_norm(
        x,
        y,
        **named,
        args={"columns": columns, "eps": 1e-5},
        grid=rows * threads,
        threadgroup=threads,
        threadgroup_memory={"scratch": 32 * 4},
    )
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    if affine:
        expected = expected * weight + bias
    # The mean, about 100, has an error of a few of its roundings, divided by a deviation of 1 (0.003 in a row of one).
    depth = 8 + columns / threads
    scale = np.abs(expected) + 100 / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * 3
    return Check(y, expected, roundings=depth, scale=scale)


@table.case(
    {"kind": "f32", "rows": 1, "columns": 4, "threads": 32},
    {"kind": "f32", "rows": 5, "columns": 2052, "threads": 256},
    {"kind": "f16", "rows": 3, "columns": 128, "threads": 64},
)
def rms_norm(bench: Bench, kind: str, rows: int, columns: int, threads: int) -> Check:
    dtype = np.float32 if kind == "f32" else np.float16
    x, weight = bench.normal(rows, columns, dtype=dtype), bench.normal(columns, dtype=dtype)
    y = np.zeros((rows, columns), dtype)
    bench.load()[f"rms_norm_{kind}_4"](
        x.reshape(-1, 4),
        weight.reshape(-1, 4),
        y.reshape(-1, 4),
        {"ne00_4": columns // 4, "eps": 1e-6},
        grid=rows * threads,
        threadgroup=threads,
        threadgroup_memory={"shmem": 32 * 4},
    )
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * weight
    return Check(y, expected, roundings=12 + columns / threads)  # all terms are positive


@table.case(
    {"name": "rope_traditional_float"}, {"name": "rope_float"}, {"name": "rope_inverse_float"}, {"name": "rope_half"}
)
def rope(bench: Bench, name: str) -> Check:
    positions, heads, pairs = 5, 3, 33
    dtype = np.float16 if "half" in name else np.float32
    x = bench.normal(positions, heads, 2 * pairs, dtype=dtype)
    offset, base, scale = 17, np.log2(10000.0), 0.5
    out = np.zeros_like(x)
    bench.load()[name](x, out, offset, base, scale, grid=(pairs, heads, positions), threadgroup=(11, 3, 2))
    angle = scale * (np.arange(positions) + offset)[:, None, None] * 10000.0 ** (-np.arange(pairs) / pairs)
    c, s = np.cos(angle), np.sin(angle) * (-1 if "inverse" in name else 1)
    wide = x.astype(np.float64)
    first, second = (
        (wide[..., 0::2], wide[..., 1::2]) if "traditional" in name else (wide[..., :pairs], wide[..., pairs:])
    )
    turned = first * c - second * s, first * s + second * c
    expected = np.stack(turned, -1).reshape(x.shape) if "traditional" in name else np.concatenate(turned, -1)
    # The angle, up to 10.5, has an error of a few of its roundings.
    length = np.hypot(first, second)
    scale_of = (
        np.stack([length] * 2, -1).reshape(x.shape) if "traditional" in name else np.concatenate([length] * 2, -1)
    )
    return Check(out, expected, roundings=64 if dtype == np.float32 else 3, scale=scale_of)


@table.case(
    {"dim": 64, "queries": 5, "keys": 77, "causal": False},
    {"dim": 80, "queries": 33, "keys": 33, "causal": True},
    {"dim": 32, "queries": 1, "keys": 200, "causal": True},
)
def attention(bench: Bench, dim: int, queries: int, keys: int, causal: bool) -> Check:
    heads, groups = 4, 2
    q = bench.normal(heads, queries, dim)
    k, v = (bench.normal(heads // groups, keys, dim, dtype=np.float16) for _ in "kv")
    out = np.full_like(q, np.nan)
    args = {"queries": queries, "keys": keys, "scale": dim**-0.5, "gqa_factor": groups}
    grid = (128 * -(-queries // 4), heads)
    bench.load(HEAD_DIM=dim, CAUSAL=causal).attention(q, k, v, out, args, grid=grid, threadgroup=128)
    k, v = (np.repeat(t.astype(np.float64), groups, 0) for t in (k, v))
    scores = q.astype(np.float64) @ k.transpose(0, 2, 1) * dim**-0.5
    if causal:
        scores[:, ~np.tri(queries, keys, keys - queries, dtype=bool)] = -np.inf
    weights = _softmax(scores)
    # Scores of up to about 8 have at most dim roundings; each changes a weight by as much.
    return Check(out, weights @ v, roundings=dim + keys / 4, scale=weights @ np.abs(v) * 4)


def _convolution(image: Any, weights: Any, padding: Any, stride: Any, dilation: Any) -> Any:
    """Return images (N, C, H, W) convolved with weights (K, C, R, S), tap by tap."""
    image = np.pad(image, ((0, 0), (0, 0), *((p, p) for p in padding)))
    r, s = weights.shape[2:]
    oh, ow = (
        (size - d * (k - 1) - 1) // t + 1
        for size, k, t, d in zip(image.shape[2:], (r, s), stride, dilation, strict=True)
    )
    out = np.zeros((image.shape[0], weights.shape[0], oh, ow))
    for y in range(r):
        for x in range(s):
            rows = slice(y * dilation[0], y * dilation[0] + stride[0] * (oh - 1) + 1, stride[0])
            columns = slice(x * dilation[1], x * dilation[1] + stride[1] * (ow - 1) + 1, stride[1])
            out += np.einsum("nchw,kc->nkhw", image[:, :, rows, columns], weights[:, :, y, x])
    return out


@table.case(
    {"shape": (1, 1, 1, 1), "taps": (1, 1), "padding": (0, 0), "stride": (1, 1), "dilation": (1, 1)},
    {"shape": (2, 3, 9, 11), "taps": (3, 2), "padding": (1, 2), "stride": (2, 1), "dilation": (1, 3)},
)
def im2col(bench: Bench, shape: Any, taps: Any, padding: Any, stride: Any, dilation: Any) -> list[Check]:
    program = bench.load()
    n, c, *size = shape
    image, weights = bench.normal(*shape), bench.normal(4, c, *taps)
    expected = _convolution(image.astype(np.float64), weights.astype(np.float64), padding, stride, dilation)
    magnitude = _convolution(np.abs(image), np.abs(weights), padding, stride, dilation)
    out_size = expected.shape[2:]
    params = {
        "channels": c,
        "size": size,
        "kernel_size": taps,
        "padding": padding,
        "stride": stride,
        "dilation": dilation,
        "out_size": out_size,
    }
    rows, places = c * taps[0] * taps[1], out_size[0] * out_size[1]
    columns = np.full((n, rows, places), np.nan, np.float32)
    program.im2col(image, columns, params, grid=(places, rows, n))
    out = weights.reshape(4, rows) @ columns

    # Folding is the transpose of unfolding: <unfold(x), y> = <x, fold(y)>.
    y = bench.normal(rows, places)
    folded = np.zeros((c, *size), np.float32)
    program.col2im(y, folded, params, grid=(size[1], size[0], c))
    left, right = (columns[0].astype(np.float64) * y).sum(), (image[0].astype(np.float64) * folded).sum()
    total = (np.abs(columns[0]).astype(np.float64) * np.abs(y)).sum() + 1
    return [
        Check(out.reshape(expected.shape), expected, roundings=rows + 2, scale=magnitude + 1e-6),
        Check(np.float32(right), np.asarray(left), roundings=2 * taps[0] * taps[1] + 2, scale=total),
    ]


@table.case({"channels": 1, "size": (3, 3)}, {"channels": 5, "size": (12, 17)})
def winograd(bench: Bench, channels: int, size: tuple[int, int]) -> Check:
    program = bench.load()
    image, weights = bench.normal(channels, *size), bench.normal(4, channels, 3, 3)
    filters = np.zeros((4 * channels, 4, 4), np.float32)
    program.winograd_filters(weights, filters, grid=4 * channels)
    out = np.full((4, size[0] - 2, size[1] - 2), np.nan, np.float32)
    tiles = (-(-out.shape[2] // 2), -(-out.shape[1] // 2))
    program.winograd(image, filters, out, (channels, *size), grid=tiles)
    plain = (1, 1)
    expected = _convolution(image[None].astype(np.float64), weights.astype(np.float64), (0, 0), plain, plain)[0]
    # The transforms add up to 4 x 4 elements of the image and 9 of the filter; the sum of magnitudes bounds the
    # roundings.
    bound = 16 * np.abs(image).max() * np.abs(weights).sum((1, 2, 3))[:, None, None]
    return Check(out, expected, roundings=12 + channels, scale=np.broadcast_to(bound, expected.shape))
