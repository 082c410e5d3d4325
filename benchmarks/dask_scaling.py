"""Run a stencil over an array on disk with one and two Dask workers, killing one; measure Dask's overhead.

Run: python benchmarks/dask_scaling.py [--size N] [--block N] [--folder PATH] [--workers N …] [--no-death] [--gpus]

The array has N float32 elements, a power of two (default 2^31, 8.6 GB, and as much for the result), in Zarr without
compression. The workers are processes with one thread and one core each, for kernels too; with --gpus each has one
NVIDIA GPU instead and may use all cores. Every element of each result is compared with NumPy's in float64, computed
from the array's formula and not from the file. It also times the same graph with a function that returns its block
unchanged, a plain copy from disk to disk, and the same graph on blocks of 4 x 4 elements, where only Dask's overhead
remains.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np
import zarr
from report import Row, show

import metalnb as mnb
from metalnb import engine as engines

STENCIL = """
#include <metal_stdlib>
using namespace metal;

kernel void five(device const float* x, device float* y, constant uint2& size, uint2 p [[thread_position_in_grid]]) {
    if (p.x == 0 || p.y == 0 || p.x + 1 >= size.x || p.y + 1 >= size.y) return;
    uint k = p.y * size.x + p.x;
    y[k] = (x[k] + x[k - 1] + x[k + 1] + x[k - size.x] + x[k + size.x]) / 5;
}
"""
TOLERANCE = 5e-7  # four roundings in a sum of positive numbers and one in its quotient, each of 6e-8


@dataclass(frozen=True)
class Field:
    """The array: each element is the product of its row's and its column's number, so no two blocks are equal."""

    rows: np.ndarray
    columns: np.ndarray
    block: int

    @property
    def shape(self) -> tuple[int, int]:
        """Elements along each axis."""
        return self.rows.size, self.columns.size

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return -(-self.rows.size // self.block) * -(-self.columns.size // self.block)

    def tile(self, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the elements of some rows and columns."""
        return self.rows[y, None] * self.columns[x]

    def tiles(self) -> Iterator[tuple[slice, slice]]:
        """Yield the blocks."""
        for y in range(0, self.rows.size, self.block):
            for x in range(0, self.columns.size, self.block):
                yield slice(y, y + self.block), slice(x, x + self.block)

    def stored(self, path: Path) -> zarr.Array:
        """Create an array of this size on disk."""
        chunk = (self.block, self.block)
        return zarr.create_array(path, shape=self.shape, chunks=chunk, dtype="f4", compressors=None, overwrite=True)

    def write(self, path: Path) -> None:
        """Write the array."""
        array = self.stored(path)
        for y, x in self.tiles():
            array[y, x] = self.tile(np.arange(self.rows.size)[y], np.arange(self.columns.size)[x])

    def worst(self, path: Path) -> float:
        """Return the largest relative error of the result, over all elements, against NumPy in float64."""
        found, worst = zarr.open_array(path, mode="r"), 0.0
        for y, x in self.tiles():
            got = found[y, x]
            at_y = np.clip(np.arange(y.start - 1, y.start + got.shape[0] + 1), 0, self.rows.size - 1)
            at_x = np.clip(np.arange(x.start - 1, x.start + got.shape[1] + 1), 0, self.columns.size - 1)
            p = self.tile(at_y, at_x).astype(np.float64)
            want = (p[1:-1, 1:-1] + p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) / 5
            worst = max(worst, float(np.max(np.abs(got - want) / want)))
        return worst


def size_of(block: np.ndarray) -> tuple[int, int]:
    """Return a block's size as the kernel's argument."""
    return block.shape[1], block.shape[0]


def as_it_is(block: np.ndarray) -> np.ndarray:
    """Return a block unchanged: the stencil's graph without the stencil."""
    return block


def five(x: da.Array) -> da.Array:
    """Return the stencil as a lazy array."""
    return mnb.dask.map_overlap(mnb.compile(STENCIL).five, x, size=size_of, depth=1, boundary="nearest")


def same(x: da.Array) -> da.Array:
    """Return the same graph without the stencil as a lazy array."""
    return da.map_overlap(as_it_is, x, depth=1, boundary="nearest", dtype=x.dtype, meta=x._meta)  # noqa: SLF001


def seconds(work: Callable[[], object]) -> float:
    """Time one computation."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def first_call(kernel: Any) -> float:
    """Run the kernel once on a fresh worker: its engine starts, and the kernel comes from the cache."""
    x = np.ones((8, 8), np.float32)
    return seconds(lambda: kernel(x, size=size_of(x)))


def peak() -> float:
    """Return this process's peak memory, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def pin(dask_worker: distributed.Worker) -> None:
    """Pin a worker to one core before its engine starts threads."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {int(dask_worker.name) % (os.cpu_count() or 1)})


@contextmanager
def cluster(workers: int) -> Iterator[distributed.Client]:
    """Start workers, each with its own core or GPU."""
    nannies = {i: {"cls": distributed.Nanny, "options": {"nthreads": 1, **_of_its_own(i)}} for i in range(workers)}
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False}}
    with distributed.SpecCluster(workers=nannies, scheduler=scheduler) as nodes, distributed.Client(nodes) as client:
        client.wait_for_workers(workers)
        if not _on_gpus():
            client.run(pin)
        yield client


def _on_gpus() -> bool:
    return engines.current().name == "cuda"


def _of_its_own(worker: int) -> dict[str, Any]:
    """Return a worker's memory limit and its only visible GPU, as with dask-cuda."""
    if not _on_gpus():
        return {"memory_limit": "3GiB"}
    return {"memory_limit": "12GiB", "env": {"CUDA_VISIBLE_DEVICES": str(worker), "METALNB_ENGINE": "cuda"}}


class Killer(threading.Thread):
    """Kills a worker once half of the result's blocks are on disk."""

    def __init__(self, client: distributed.Client, target: Path, blocks: int) -> None:
        super().__init__(daemon=True)
        self.pids: dict[str, int] = client.run(os.getpid)
        self.target, self.half = target, blocks // 2
        self.killed_at = 0
        self.over = False

    def run(self) -> None:
        """Wait, then kill the worker."""
        while not self.over:
            there = sum(p.is_file() for p in self.target.glob("c/*/*"))
            if there >= self.half:
                os.kill(next(iter(self.pids.values())), signal.SIGKILL)
                self.killed_at = there
                return
            time.sleep(0.1)


def run(field: Field, source: Path, target: Path, workers: int) -> dict[str, float]:
    """Time everything with `count` workers; check the stencil's result against NumPy's."""
    def stored(function: Callable[[da.Array], da.Array]) -> Callable[[], object]:
        into = field.stored(target)
        return lambda: da.store(function(da.from_zarr(str(source))), into, lock=False)

    figures: dict[str, float] = {}
    with cluster(workers) as client:
        figures["first"] = max(client.run(first_call, mnb.compile(STENCIL).five).values())
        figures["copy"] = seconds(stored(lambda x: x))
        figures["same"] = seconds(stored(same))
        figures["stencil"] = seconds(stored(five))
        figures["peak"] = max(client.run(peak).values())
        figures["worst"] = field.worst(target)
        grid = [-(-n // field.block) * 4 for n in field.shape]
        small = da.zeros(grid, chunks=4, dtype="f4")
        figures["dask"] = seconds(lambda: da.store(same(small), Nowhere(), lock=False))
    return figures


class Nowhere:
    """A sink that discards its blocks."""

    shape: tuple[int, ...] = ()

    def __setitem__(self, at: Any, block: Any) -> None:
        """Discard a block."""


def with_a_death(field: Field, source: Path, target: Path) -> tuple[float, float, int]:
    """Kill one of two workers halfway; return the time, the largest error, and the number of blocks written by then."""
    into = field.stored(target)
    with cluster(2) as client:
        client.run(first_call, mnb.compile(STENCIL).five)
        killer = Killer(client, target, field.blocks)
        killer.start()
        took = seconds(lambda: da.store(five(da.from_zarr(str(source))), into, lock=False))
        killer.over = True
        killer.join()
        assert killer.killed_at, "all blocks were written before the worker could be killed"
        assert set(client.run(os.getpid).values()) != set(killer.pids.values()), "no worker died"
    return took, field.worst(target), killer.killed_at


def main() -> int:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=2**31, help="elements, a power of two (default 2^31)")
    parser.add_argument("--block", type=int, default=4096, help="side of a block (default 4096)")
    parser.add_argument("--folder", help="folder for the arrays (default: a temporary one)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="worker counts, one run each")
    parser.add_argument("--no-death", action="store_true", help="skip the run in which a worker is killed")
    parser.add_argument("--gpus", action="store_true", help="one GPU per worker, on the engine 'cuda'")
    options = parser.parse_args()
    if options.gpus:
        mnb.use("cuda")
    if options.size & (options.size - 1):
        parser.error("--size is not a power of two")
    bits = options.size.bit_length() - 1
    rng = np.random.default_rng(17)
    rows, columns = (rng.uniform(0.5, 2, 1 << b).astype(np.float32) for b in (bits // 2, bits - bits // 2))
    field = Field(rows, columns, options.block)
    dask.config.set({"distributed.comm.timeouts.connect": "60s"})
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        source, target = Path(name, "x.zarr"), Path(name, "y.zarr")
        field.write(source)
        figures = {}
        for workers in options.workers:
            figures[workers] = run(field, source, target, workers)
        died = None if options.no_death else with_a_death(field, source, target)
    n, blocks = options.size, field.blocks
    table = []
    for workers, t in figures.items():
        table += [
            Row(f"{workers} worker{'s' * (workers > 1)}: stencil", f"{t['stencil']:.1f} s", "", t["worst"] < TOLERANCE,
                f"{n / t['stencil'] / 1e6:.0f} M elements/s, {8 * n / t['stencil'] / 1e9:.2f} GB/s;"
                f" largest relative error {t['worst']:.1e}"),
            Row("  the same graph, blocks unchanged", f"{t['same']:.1f} s", "", None,
                f"the kernel and its launches: {t['stencil'] - t['same']:.1f} s"),
            Row("  copy from disk to disk, no overlap", f"{t['copy']:.1f} s", "", None,
                f"cutting and joining the edges: {t['same'] - t['copy']:.1f} s"),
            Row("  Dask alone", f"{t['dask']:.1f} s", "", None,
                f"{1e3 * t['dask'] / blocks:.1f} ms a block; a worker's first call of the kernel {t['first']:.2f} s,"
                f" its peak {t['peak']:.1f} GB"),
        ]  # fmt: skip
    first, *others = figures.items()
    for workers, t in others:
        ratio = {what: first[1][what] / t[what] for what in ("stencil", "copy", "dask")}
        table.append(Row(f"from {first[0]} to {workers} workers", f"{ratio['stencil']:.2f} x", "", None,
                         f"copying {ratio['copy']:.2f} x, Dask {ratio['dask']:.2f} x"))  # fmt: skip
    if died is not None:
        death, worst, there = died
        table.append(Row("2 workers, one killed", f"{death:.1f} s", "", worst < TOLERANCE,
                         f"at {there} of {blocks} blocks; largest relative error {worst:.1e}"))  # fmt: skip
    return show(f"a stencil of {field.shape[0]:,} x {field.shape[1]:,} floats on disk, in {blocks} blocks", table)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
