"""Images and signals."""

from __future__ import annotations

import numpy as np

from .case import Array, Bench, Check, Table, padded

table = Table()


@table.case({"n": 2}, {"n": 8}, {"n": 64}, {"n": 512}, {"n": 2048})
def fft(bench: Bench, n: int) -> list[Check]:
    rows = 3
    x = bench.normal(rows, n, 2)
    x[0] = 0
    x[0, n // 2, 1] = 1
    numbers = x.astype(np.float64).view(np.complex128)[..., 0]
    checks = []
    for inverse, oracle in ((False, np.fft.fft(numbers)), (True, np.fft.ifft(numbers) * n)):
        out = np.zeros_like(x)
        threads = max(n // 2, 1)
        bench.load(N=n, inverse=inverse).fft(x, out, grid=rows * threads, threadgroup=threads)
        norm = np.sqrt((np.abs(numbers) ** 2).sum(-1))[:, None, None]  # each output's error is spread over all inputs
        expected = np.ascontiguousarray(oracle)[..., None].view(np.float64)
        checks.append(Check(out, expected, roundings=8 * max(np.log2(n), 1), scale=norm))
    return checks


@table.case({"width": 1, "height": 1}, {"width": 33, "height": 17})
def mandelbrot(bench: Bench, width: int, height: int) -> list[Check]:
    iterations = 50
    # Steps of a power of two and few digits keep float exact for the first squarings, which decide whether a point
    # escapes.
    view = {"center": (-0.5, 0.25), "scale": 0.0625, "iterations": iterations}
    image, escape = bench.load().mandelbrot(view=view, grid=(width, height), threadgroup=(8, 8))
    y, x = np.mgrid[:height, :width]
    c = (-0.5 + 0.0625 * (x - 0.5 * width)) + 1j * (0.25 + 0.0625 * (y - 0.5 * height))
    z, count = np.zeros_like(c), np.zeros(c.shape, int)
    close = np.zeros(c.shape, bool)
    for _ in range(iterations):
        inside = np.abs(z) <= 2
        close |= inside & (np.abs(np.abs(z) - 2) < 1e-3)  # rounding may decide here
        count += inside
        z = np.where(inside, z * z + c, z)
    palette = np.array([[0, 7, 100, 255], [32, 107, 203, 255], [237, 255, 255, 255], [255, 170, 0, 255]])
    expected = np.where((count == iterations)[..., None], [0, 0, 0, 255], palette[count % 4])
    sure = ~close
    assert sure.mean() > 0.9
    return [Check(escape[sure], count[sure]), Check(image[sure], expected[sure])]


@table.case({"width": 1, "height": 1}, {"width": 50, "height": 37}, metal=False)  # lambdas need MSL 3.2
def sobel(bench: Bench, width: int, height: int) -> list[Check]:
    source = bench.rng.integers(0, 256, (height, width, 4)).astype(np.uint8)
    target = np.zeros_like(source)
    grid = (padded(width, 16), padded(height, 8))
    bench.load().sobel(source, target, (width, height), grid=grid, threadgroup=(16, 8))
    luma = np.pad((source[..., :3] / 255.0) @ [0.2126, 0.7152, 0.0722], 1, mode="edge").astype(np.float16).astype(float)
    p = {(dx, dy): luma[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width] for dx in (-1, 0, 1) for dy in (-1, 0, 1)}
    gx = p[1, -1] + 2 * p[1, 0] + p[1, 1] - p[-1, -1] - 2 * p[-1, 0] - p[-1, 1]
    gy = p[-1, 1] + 2 * p[0, 1] + p[1, 1] - p[-1, -1] - 2 * p[0, -1] - p[1, -1]
    edge = 255 * np.clip(np.hypot(gx, gy), 0, 1)
    # The luminance is rounded to half; two roundings may differ by one step in 255.
    off = np.abs(target[..., :3].astype(float) - edge[..., None])
    return [Check((off <= 1.5).all(), np.array(True)), Check(target[..., 3], source[..., 3])]


def _cubic(t: Array) -> Array:
    """Return Keys' weights of the four neighbors at distance t from the second."""
    a = -0.75
    far = lambda x: ((a * x - 5 * a) * x + 8 * a) * x - 4 * a  # noqa: E731
    near = lambda x: ((a + 2) * x - (a + 3)) * x * x + 1  # noqa: E731
    return np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)], -1)


def _resampling(old: int, new: int) -> Array:
    """Return the matrix that resamples an axis."""
    at = old / new * (np.arange(new) + 0.5) - 0.5
    whole = np.floor(at).astype(int)
    matrix = np.zeros((new, old))
    for tap, weight in enumerate(_cubic(at - whole).T):
        np.add.at(matrix, (np.arange(new), np.clip(whole + tap - 1, 0, old - 1)), weight)
    return matrix


@table.case(
    {"kind": "float", "old": (1, 1), "new": (3, 3)},
    {"kind": "float", "old": (9, 11), "new": (20, 15)},
    {"kind": "uchar", "old": (16, 5), "new": (8, 40)},
)
def bicubic(bench: Bench, kind: str, old: tuple[int, int], new: tuple[int, int]) -> Check:
    channels = 3
    image = bench.rng.integers(0, 256, (*old, channels)).astype(np.uint8 if kind == "uchar" else np.float32)
    layout = np.array([[*old, channels, 0], [old[1] * channels, channels, 1, 0]], np.int64)
    scale = np.array(old) / np.array(new)
    got = bench.load()[f"upsample_bicubic_{kind}"](
        image,
        input_layout=layout,
        scale=scale.astype(np.float32),
        grid=(channels, new[1], new[0]),
    )
    rows, columns = _resampling(old[0], new[0]), _resampling(old[1], new[1])
    expected = np.einsum("yh,xw,hwc->yxc", rows, columns, image.astype(np.float64))
    if kind == "uchar":
        off = np.abs(got - np.clip(expected, 0, 255))
        return Check((off <= 0.5 + 1e-3).all(), np.array(True))
    # The position t has the rounding of a coordinate of up to 20, times the slope of the weights.
    return Check(got, expected, roundings=64, scale=np.full(expected.shape, 255 * 4))
