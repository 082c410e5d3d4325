"""Time CUDA versions of the tutorials' kernels on a GPU, with CuPy and the GPU's events.

The notebooks run on the engine at hand, often a CPU. Where they state what a GPU does, the figure comes from this
script, with the device and the date. It needs CuPy and an NVIDIA GPU, and exits with a message without them.
"""

from __future__ import annotations

import datetime as dt
import statistics
from collections.abc import Callable
from typing import Any

WORDS = r"""
#define KERNEL extern "C" __global__ void
#define X threadIdx.x
#define Y threadIdx.y
#define GX blockIdx.x
#define GY blockIdx.y
#define PLACE size_t i = (size_t)GX * blockDim.x + X
typedef unsigned uint;
typedef size_t ulong;
"""

MEMORY = WORDS + r"""
KERNEL nothing() {}
KERNEL copy(const float* x, float* y) { PLACE; y[i] = x[i]; }
KERNEL copy4(const float4* x, float4* y) { PLACE; y[i] = x[i]; }

struct Particle { float fields[8]; };
KERNEL from_structs(const Particle* p, float* out) { PLACE; out[i] = p[i].fields[6]; }
KERNEL from_arrays(const float* p, float* out) { PLACE; out[i] = p[i]; }

#define MEET(v) for (int q = 16; q; q /= 2) v += __shfl_xor_sync(~0u, v, q); if (!(X & 31)) atomicAdd(total, (uint)v);

KERNEL every(const float* x, uint* total, uint each, uint stride) {
    const float* mine = x + (ulong)GX * each + X * stride;
    float a = 0, b = 0;
    for (uint k = 0; k < each; k += 64 * stride) { a += mine[k]; b += mine[k + 32 * stride]; }
    a += b;
    MEET(a)
}

KERNEL crowd(const float* x, uint* total) { PLACE; atomicAdd(total, (uint)x[i]); }
KERNEL by_simd(const float* x, uint* total) { PLACE; float v = x[i]; MEET(v) }

// Both sum a threadgroup by a tree; they differ in the order of the gaps and in which threads add.
#define TREE(name, first, more, next, adds) KERNEL name(const float* x, uint* total) { \
    __shared__ float part[256]; \
    PLACE; \
    part[X] = x[i]; \
    __syncthreads(); \
    _Pragma("unroll 1") \
    for (uint gap = first; more; next) { if (adds) part[X] += part[X + gap]; __syncthreads(); } \
    if (!X) atomicAdd(total, (uint)part[0]); }
TREE(interleaved, 1, gap < 256, gap *= 2, X % (2 * gap) == 0)
TREE(sequential, 128, gap, gap /= 2, X < gap)

KERNEL apart(const float* x, uint* total, uint n) {
    PLACE;
    uint each = n / (gridDim.x * blockDim.x);
    float v = 0;
    for (uint k = 0; k < each; ++k) v += x[i * each + k];
    MEET(v)
}
KERNEL together(const float* x, uint* total, uint n) {
    uint each = n / gridDim.x;
    const float* mine = x + (ulong)GX * each + X;
    float a = 0, b = 0, c = 0, d = 0;
    for (uint k = 0; k < each; k += 128) { a += mine[k]; b += mine[k + 32]; c += mine[k + 64]; d += mine[k + 96]; }
    a += b + c + d;
    MEET(a)
}
KERNEL strided(const float* x, uint* total, uint n) {
    PLACE;
    float v = 0;
    for (uint k = i; k < n; k += gridDim.x * blockDim.x) v += x[k];
    MEET(v)
}

#define TRANSPOSE(name, tile, pitch) KERNEL name(const float* a, float* out, uint n) { \
    __shared__ float t[tile][pitch]; \
    for (int r = 0; r < tile; r += 8) t[Y + r][X] = a[(ulong)(GY * tile + Y + r) * n + GX * tile + X]; \
    __syncthreads(); \
    for (int r = 0; r < tile; r += 8) out[(ulong)(GX * tile + Y + r) * n + GY * tile + X] = t[X][Y + r]; }
TRANSPOSE(tile_8_8, 8, 8)
TRANSPOSE(tile_8_9, 8, 9)
TRANSPOSE(tile_32_32, 32, 32)
TRANSPOSE(tile_32_33, 32, 33)
KERNEL no_tile(const float* a, float* out, uint n) {
    uint x = GX * 32 + X, y = GY * 8 + Y;
    out[(ulong)x * n + y] = a[(ulong)y * n + x];
}
"""

PRODUCTS = WORDS + r"""
#define HEAD(name) KERNEL name(const float* a, const float* b, float* c, uint n)
#define DEFINITION for (uint k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column]; c[row * n + column] = sum;
HEAD(down) { uint row = GX * 32 + X, column = GY * 8 + Y; float sum = 0; DEFINITION }
HEAD(across) { uint row = GY * 8 + Y, column = GX * 32 + X; float sum = 0; DEFINITION }

#define TILED(name, pitch, turned) HEAD(name) { \
    __shared__ float ta[32][pitch], tb[32][pitch]; \
    uint row = GY * 32 + Y, column = GX * 32 + X; \
    float sum = 0; \
    for (uint first = 0; first < n; first += 32) { \
        ta[Y][X] = a[row * n + first + X]; \
        (turned ? tb[X][Y] : tb[Y][X]) = b[(first + Y) * n + column]; \
        __syncthreads(); \
        for (uint k = 0; k < 32; ++k) sum += ta[Y][k] * (turned ? tb[X][k] : tb[k][X]); \
        __syncthreads(); \
    } \
    c[row * n + column] = sum; }
TILED(tiled, 32, 0)
TILED(tiled_padded, 33, 0)
TILED(turned, 32, 1)
TILED(turned_padded, 33, 1)

#define BLOCK(name, R, W, S) HEAD(name) { \
    __shared__ float ta[S * R][32], tb[32][W * 32]; \
    a += GY * S * R * n; b += GX * W * 32; c += GY * S * R * n + GX * W * 32; \
    uint mine = Y * R; \
    float sum[R][W] = {}; \
    for (uint first = 0; first < n; first += 32) { \
        for (uint r = 0; r < R; ++r) ta[mine + r][X] = a[(mine + r) * n + first + X]; \
        for (uint r = Y; r < 32; r += S) for (uint w = 0; w < W; ++w) \
            tb[r][w * 32 + X] = b[(first + r) * n + w * 32 + X]; \
        __syncthreads(); \
        for (uint k = 0; k < 32; ++k) { \
            float y[W]; \
            for (uint w = 0; w < W; ++w) y[w] = tb[k][w * 32 + X]; \
            for (uint r = 0; r < R; ++r) for (uint w = 0; w < W; ++w) sum[r][w] += ta[mine + r][k] * y[w]; \
        } \
        __syncthreads(); \
    } \
    for (uint r = 0; r < R; ++r) for (uint w = 0; w < W; ++w) c[(mine + r) * n + w * 32 + X] = sum[r][w]; }
BLOCK(block_4_1, 4, 1, 8)
BLOCK(block_4_2, 4, 2, 8)
BLOCK(block_4_4, 4, 4, 8)
BLOCK(block_8_4, 8, 4, 8)

HEAD(by_panels) {
    uint row = (GX * 8 + Y) * 8;
    a += row * n; b += GY * 32 * n; c += row * n + GY * 32;
    float sum[8] = {};
    for (uint k = 0; k < n; ++k, b += 32) for (uint r = 0; r < 8; ++r) sum[r] += a[r * n + k] * b[X];
    for (uint r = 0; r < 8; ++r) c[r * n + X] = sum[r];
}
"""


def timed(cupy: Any, call: Callable[[], object], runs: int = 25) -> float:
    """Return the median time (s) of a call between two GPU events; the first five calls do not count."""
    seconds = []
    for _ in range(runs):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        call()
        end.record()
        end.synchronize()
        seconds.append(cupy.cuda.get_elapsed_time(start, end) / 1e3)
    return statistics.median(seconds[5:])


def memory(cupy: Any) -> None:
    """Print the rates of the transpose and of the kernels in notebooks 02 and 03."""
    import numpy as np

    module, n = cupy.RawModule(code=MEMORY), 1 << 28
    x, y = cupy.ones(n, "f4"), cupy.zeros(n, "f4")

    def run(name: str, grid: Any, group: Any, *args: Any, moved: float = 0, variant: object = "") -> None:
        kernel = module.get_function(name)
        took = timed(cupy, lambda: kernel(grid if isinstance(grid, tuple) else (grid,), group, args))
        rate = f" {moved / took / 1e12:8.3f} TB/s" if moved else ""
        print(f"{name:14} {variant!s:10} {took * 1e6:10.1f} µs{rate}")

    run("nothing", 1, (1,))
    run("copy", n // 256, (256,), x, y, moved=8 * n)
    run("copy4", n // 1024, (256,), x, y, moved=8 * n)
    for stride in (1, 2, 4, 8, 16, 32):
        run("every", 1 << 15, (32,), x, y, np.uint32(n >> 15), np.uint32(stride), moved=4 * n / stride, variant=stride)
    for name in ("from_structs", "from_arrays"):
        run(name, (1 << 23) // 256, (256,), x, y)
    for name in ("crowd", "interleaved", "sequential", "by_simd"):
        run(name, n // 256, (256,), x, y, moved=4 * n)
    for threads in (1 << 13, 1 << 16, 1 << 18, 1 << 20):
        for name in ("apart", "strided", "together"):
            run(name, threads // 32, (32,), x, y, np.uint32(n), moved=4 * n, variant=threads)
    side = 1 << 14
    for name, tile in (("no_tile", 0), ("tile_8_8", 8), ("tile_8_9", 8), ("tile_32_32", 32), ("tile_32_33", 32)):
        grid = (side // tile, side // tile) if tile else (side // 32, side // 8)
        run(name, grid, (tile or 32, 8), x, y, np.uint32(side), moved=8 * n)


def products(cupy: Any, n: int) -> None:
    """Print the rates of notebook 04's matrix products for n × n matrices."""
    import numpy as np

    module = cupy.RawModule(code=PRODUCTS)
    # Products of small integers are exact in float32 in any order; random ones show a transposed or missing index.
    a, b = (cupy.random.RandomState(seed).randint(0, 4, (n, n)).astype("f4") for seed in (1, 2))
    c, expected = cupy.empty((n, n), "f4"), a @ b
    blocks = {"block_4_1": (4, 1), "block_4_2": (4, 2), "block_4_4": (4, 4), "block_8_4": (8, 4)}
    launches = {
        "down": ((n // 32, n // 8), 8), "across": ((n // 32, n // 8), 8),
        **dict.fromkeys(("tiled", "tiled_padded", "turned", "turned_padded"), ((n // 32, n // 32), 32)),
        **{name: ((n // w // 32, n // r // 8), 8) for name, (r, w) in blocks.items()},
        "by_panels": ((n // 64, n // 32), 8),
    }  # fmt: skip
    for name, (grid, rows) in launches.items():
        kernel = module.get_function(name)
        args = (grid, (32, rows), (a, b, c, np.uint32(n)))
        c.fill(np.nan)  # nothing of the previous kernel's result remains
        took = timed(cupy, lambda kernel=kernel, args=args: kernel(*args))  # type: ignore[misc]
        assert bool((c == expected).all()), name
        print(f"{n} {name:14} {2 * n**3 / took / 1e12:7.2f} TFLOP/s")
    took = timed(cupy, lambda: a @ b)
    print(f"{n} {'cuBLAS':14} {2 * n**3 / took / 1e12:7.2f} TFLOP/s")


def main() -> None:
    """Print the table, or a message if CuPy or the GPU is missing."""
    try:
        import cupy

        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except Exception as error:  # noqa: BLE001  (no CuPy, no driver or no device: the message is the same)
        print(f"cuda_twins needs CuPy and an NVIDIA GPU ({error})")
        return
    print(f"{name}, {dt.datetime.now(tz=dt.UTC).date()}")
    memory(cupy)
    for n in (1024, 4096):
        products(cupy, n)


if __name__ == "__main__":
    main()
