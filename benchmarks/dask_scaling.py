"""A stencil over an array on disk, by one and by two Dask workers; and what Dask itself costs.

Run: python benchmarks/dask_scaling.py [--size N] [--block N] [--folder PATH]

The array is a square of N float32 altogether (default 2^31, 8.6 GB), in Zarr without compression. The workers are
processes with one thread and one core each, kernels included. Dask's own cost is that of the same graph with a function
that returns one element of each block, on blocks of zeros.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from pathlib import Path

import dask.array as da
import distributed
import numpy as np
import zarr
from report import Row, show

import metalnb as mnb

STENCIL = """
#include <metal_stdlib>
using namespace metal;

kernel void five(device const float* x, device float* y, constant uint2& size, uint2 p [[thread_position_in_grid]]) {
    if (p.x == 0 || p.y == 0 || p.x + 1 >= size.x || p.y + 1 >= size.y) return;
    uint k = p.y * size.x + p.x;
    y[k] = (x[k] + x[k - 1] + x[k + 1] + x[k - size.x] + x[k + size.x]) / 5;
}
"""


def stored_at(path: Path, side: int, block: int) -> zarr.Array:
    """Make an array on disk."""
    size, chunk = (side, side), (block, block)
    return zarr.create_array(path, shape=size, chunks=chunk, dtype="f4", compressors=None, overwrite=True)


def shape(block: np.ndarray) -> tuple[int, int]:
    """Return a block's size as the kernel takes it."""
    return block.shape[1], block.shape[0]


def made(folder: Path, side: int, block: int) -> None:
    """Write the array: each element is the sum of its row's and its column's number, modulo 1024 each."""
    stored = stored_at(folder, side, block)
    for y in range(0, side, block):
        rows = np.arange(y, min(y + block, side), dtype=np.float32)[:, None] % 1024
        stored[y : y + block] = rows + np.arange(side, dtype=np.float32)[None] % 1024


def stencil(source: Path, target: Path, side: int, block: int) -> None:
    """Read, compute, write."""
    x = da.from_zarr(str(source))
    y = mnb.dask.map_overlap(mnb.compile(STENCIL).five, x, size=shape, depth=1, boundary="nearest")
    stored = stored_at(target, side, block)
    da.store(y, stored, lock=False)


def pin(dask_worker: distributed.Worker) -> None:
    """Keep a worker on one core, before its engine starts threads."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {int(dask_worker.name) % (os.cpu_count() or 1)})


def checked(source: Path, target: Path, block: int) -> None:
    """Hold a few blocks to NumPy in float64."""
    x, y = zarr.open(str(source), mode="r"), zarr.open(str(target), mode="r")
    for at in (block - 2, x.shape[0] // 2):
        p = np.asarray(x[at - 1 : at + 5, at - 1 : at + 5], np.float64)
        want = (p[1:-1, 1:-1] + p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) / 5
        np.testing.assert_allclose(y[at : at + 4, at : at + 4], want, rtol=1e-6)


def main() -> int:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=2**31, help="elements (default 2^31)")
    parser.add_argument("--block", type=int, default=4096, help="side of a block (default 4096)")
    parser.add_argument("--folder", help="where the arrays are written (default a temporary folder)")
    options = parser.parse_args()
    side, block = math.isqrt(options.size), options.block
    taken = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        source, target = Path(name, "x.zarr"), Path(name, "y.zarr")
        made(source, side, block)
        for workers in (1, 2):
            with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, \
                    distributed.Client(cluster) as client:  # fmt: skip
                client.run(pin)
                start = time.perf_counter()
                stencil(source, target, side, block)
                taken[workers] = time.perf_counter() - start
                checked(source, target, block)
                empty = da.zeros((side, side), chunks=block, dtype="f4").map_blocks(lambda b: b[:1, :1], chunks=(1, 1))
                start = time.perf_counter()
                empty.sum().compute()
                taken[workers, "dask"] = time.perf_counter() - start
    gb, blocks = 8 * side * side / 1e9, math.ceil(side / block) ** 2
    rows = [
        Row(f"{workers} worker{'s' * (workers > 1)}", f"{taken[workers]:.1f} s", "", None,
            f"{gb / taken[workers]:.2f} GB/s; Dask alone {1e3 * taken[workers, 'dask'] / blocks:.1f} ms a block")
        for workers in (1, 2)
    ]  # fmt: skip
    rows.append(Row("from 1 to 2 workers", f"{taken[1] / taken[2]:.2f} x", "", None, f"{blocks} blocks of {block}²"))
    return show(f"a stencil of {side}² floats on disk", rows)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
