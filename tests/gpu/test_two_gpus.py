"""Two GPUs: each with its own arrays and kernels in one process, and each with its own Dask worker process."""

from __future__ import annotations

import concurrent.futures
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb import engine as engines

GPUS = ("cuda", "cuda:1")
FIVE = """#include <metal_stdlib>
using namespace metal;
kernel void five(device const float* x, device float* y, constant uint2& size, uint2 p [[thread_position_in_grid]]) {
    if (p.x == 0 || p.y == 0 || p.x + 1 >= size.x || p.y + 1 >= size.y) return;
    uint k = p.y * size.x + p.x;
    y[k] = (x[k] + x[k - 1] + x[k + 1] + x[k - size.x] + x[k + size.x]) / 5;
}"""


@pytest.fixture(autouse=True)
def both() -> None:
    try:
        for name in GPUS:
            engines.named(name)
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def lies_on(x: mnb.Array) -> int:
    """Return the index of the GPU with an array's memory, as reported by the driver."""
    here: Any = engines.named("cuda")
    with here._gpu:
        return here._gpu.device_of(x.__cuda_array_interface__["data"][0])


def test_gpu_results_stay_on_the_gpu(rng: np.random.Generator) -> None:
    x = rng.random(100_001, np.float32)
    for index, name in enumerate(GPUS):
        mine = mnb.asarray(x, device=name)
        found = {"exp": mnb.exp(mine), "sum": mnb.sum(mine), "sort": mnb.sort(mine), "cumsum": mnb.cumsum(mine)}
        assert [lies_on(y) for y in (mine, *found.values())] == [index] * 5
        wide = x.astype(np.float64)
        np.testing.assert_allclose(np.asarray(found["exp"]), np.exp(wide), rtol=1e-6)
        np.testing.assert_allclose(float(found["sum"]), wide.sum(), rtol=1e-6)
        np.testing.assert_array_equal(np.asarray(found["sort"]), np.sort(x))
        np.testing.assert_allclose(np.asarray(found["cumsum"]), np.cumsum(wide), rtol=1e-5)


def test_two_threads_use_a_gpu_each(rng: np.random.Generator) -> None:
    """Two threads switch GPUs concurrently: neither sees the other's current device."""
    x = rng.random((300, 200), np.float32)
    kernels = {name: mnb.compile(FIVE, engine=name).five for name in GPUS}

    def work(name: str) -> float:
        here, worst = mnb.asarray(x, device=name), 0.0
        for _ in range(50):
            y = mnb.zeros(x.shape, device=name)
            kernels[name](here, y, (200, 300), grid=(200, 300))
            worst = max(worst, float(np.abs(np.asarray(y)[1:-1, 1:-1] - five(x)).max()))
            assert lies_on(mnb.add(y, here)) == GPUS.index(name)
        return worst

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert max(pool.map(work, GPUS * 4)) < 1e-6


def test_memory_of_the_other_gpu_is_refused_or_shared_by_name() -> None:
    torch: Any = pytest.importorskip("torch")
    other = torch.arange(1000, dtype=torch.float32, device="cuda:1")
    mine = mnb.asarray(other, device="cuda:1")
    mnb.add(mine, mine, out=mine)
    assert float(other[999]) == 2 * 999
    with pytest.raises(ValueError, match="on GPU 1, engine 'cuda' on 0: pass device='cuda:1'"):
        mnb.asarray(other, device="cuda")


def five(x: np.ndarray) -> np.ndarray:
    p = x.astype(np.float64)
    return (p[1:-1, 1:-1] + p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) / 5


def shape(block: np.ndarray) -> tuple[int, int]:
    return block.shape[1], block.shape[0]


def gpu_of_a_worker() -> tuple[str, int, str]:
    """Return a worker's device, the number of GPUs it sees, and its GPU's identity."""
    from cuda.bindings import driver

    engines.named("cuda")
    _, device = driver.cuDeviceGet(0)
    uuid = bytes(driver.cuDeviceGetUuid(device)[1].bytes).hex()
    return os.environ["CUDA_VISIBLE_DEVICES"], driver.cuDeviceGetCount()[1], uuid


@pytest.mark.timeout(300)
def test_one_gpu_a_worker(tmp_path: Path, rng: np.random.Generator) -> None:
    """CUDA_VISIBLE_DEVICES gives each worker its GPU, as in dask-cuda; they share a stencil over an array on disk."""
    distributed = pytest.importorskip("distributed", reason="needs Dask and zarr: pip install -e .[test-dask]")
    zarr = pytest.importorskip("zarr", reason="needs Dask and zarr: pip install -e .[test-dask]")
    import dask.array as da

    x = rng.random((800, 1000), np.float32)
    stored = zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=x.shape, chunks=(100, 100), dtype="f4")
    stored[:] = x
    workers = {
        i: {"cls": distributed.Nanny, "options": {
            "nthreads": 1, "env": {"CUDA_VISIBLE_DEVICES": str(i), "METALNB_ENGINE": "cuda"}}}
        for i in range(2)
    }  # fmt: skip
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False}}
    with distributed.SpecCluster(workers=workers, scheduler=scheduler) as cluster, \
            distributed.Client(cluster) as client:  # fmt: skip
        client.wait_for_workers(2)
        seen = client.run(gpu_of_a_worker)
        assert sorted((told, count) for told, count, _ in seen.values()) == [("0", 1), ("1", 1)]
        assert len({uuid for *_, uuid in seen.values()}) == 2
        kernel = mnb.compile(FIVE, engine="cuda").five
        blocks = da.from_zarr(str(tmp_path / "x.zarr"))
        result = mnb.dask.map_overlap(kernel, blocks, size=shape, depth=1, boundary="nearest").persist()
        distributed.wait(result)
        shares = {worker: len(keys) for worker, keys in client.has_what().items()}
        assert min(shares.values()) > 0, shares
        np.testing.assert_allclose(np.asarray(result.compute())[1:-1, 1:-1], five(x), rtol=1e-6)
