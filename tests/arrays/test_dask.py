"""Kernels over Dask arrays: blocks, stencils, trees, and workers that die."""

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metalnb as mnb

MISSING = "needs Dask and zarr: pip install -e .[test-dask]"
da = pytest.importorskip("dask.array", reason=MISSING)

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SCALE = HEAD + """
kernel void scale(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) {
    y[i] = a * x[i];
}"""
FIVE = HEAD + """
kernel void five(device const float* x, device float* y, constant uint2& size, uint2 p [[thread_position_in_grid]]) {
    if (p.x == 0 || p.y == 0 || p.x + 1 >= size.x || p.y + 1 >= size.y) return;
    uint k = p.y * size.x + p.x;
    y[k] = (x[k] + x[k - 1] + x[k + 1] + x[k - size.x] + x[k + size.x]) / 5;
}"""
FLOOR = HEAD + """
kernel void whole(device const float* x, device int* y, uint i [[thread_position_in_grid]]) { y[i] = int(floor(x[i])); }
kernel void both(device const float* x, device float* y, device float* z, uint i [[thread_position_in_grid]]) {
    y[i] = x[i];
    z[i] = -x[i];
}"""


def width_and_height(block: np.ndarray) -> tuple[int, int]:
    return block.shape[1], block.shape[0]


def five(x: np.ndarray, mode: str = "edge") -> np.ndarray:
    p = np.pad(x.astype(np.float64), 1, mode=mode)
    return (p[1:-1, 1:-1] + p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) / 5


@pytest.mark.parametrize("ours", [False, True], ids=["numpy", "metalnb"])
def test_map_blocks_calls_the_kernel_for_each_block(ours: bool, rng: np.random.Generator) -> None:
    x = rng.random((101, 67), np.float32)
    blocks = da.from_array(mnb.asarray(x) if ours else x, chunks=(40, 30), asarray=False)
    result = mnb.dask.map_blocks(mnb.compile(SCALE).scale, blocks, a=2.0)
    assert result.dtype == np.float32
    assert type(result._meta) is (mnb.Array if ours else np.ndarray)
    found = result.compute(scheduler="sync")
    assert type(found) is type(result._meta)
    np.testing.assert_array_equal(np.asarray(found), 2 * x)


def test_the_output_has_the_kernels_dtype() -> None:
    x = da.linspace(-2, 2, 33, chunks=10, dtype=np.float32)
    result = mnb.dask.map_blocks(mnb.compile(FLOOR).whole, x)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result.compute(), np.floor(np.linspace(-2, 2, 33, dtype=np.float32)))


# One array type suffices for "periodic": which blocks are neighbors does not depend on their type.
@pytest.mark.parametrize(("boundary", "mode", "ours"), [
    ("nearest", "edge", False), ("reflect", "symmetric", False), ("periodic", "wrap", False),
    ("nearest", "edge", True), ("reflect", "symmetric", True),
])  # fmt: skip
def test_stencil_reads_its_neighbors(boundary: str, mode: str, ours: bool, rng: np.random.Generator) -> None:
    x = rng.random((101, 67), np.float32)
    blocks = da.from_array(mnb.asarray(x) if ours else x, chunks=(40, 30), asarray=False)
    result = mnb.dask.map_overlap(mnb.compile(FIVE).five, blocks, size=width_and_height, depth=1, boundary=boundary)
    np.testing.assert_allclose(np.asarray(result.compute(scheduler="sync")), five(x, mode), rtol=1e-6)


def test_without_overlap_the_edges_are_wrong(rng: np.random.Generator) -> None:
    """Show why overlap matters: without it, a stencil lacks its neighbors at each block's edges."""
    x = rng.random((20, 20), np.float32) + 1
    result = mnb.dask.map_blocks(mnb.compile(FIVE).five, da.from_array(x, chunks=10), size=width_and_height).compute()
    assert (result[9:11] == 0).all()


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction_by_a_tree_of_blocks(
    axis: int | tuple[int, ...] | None, keepdims: bool, rng: np.random.Generator
) -> None:
    x = rng.random((101, 67), np.float32)
    result = mnb.dask.reduce(mnb.sum, da.from_array(x, chunks=(10, 9)), axis, keepdims=keepdims)
    expected = x.astype(np.float64).sum(axis, keepdims=keepdims)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.compute(), expected, rtol=1e-5)


@pytest.mark.parametrize("ours", [False, True], ids=["numpy", "metalnb"])
@pytest.mark.parametrize("name", ["sum", "max"])
def test_reduction_passes_over_blocks_without_elements(name: str, ours: bool) -> None:
    x = np.arange(-12, 0, dtype=np.float32).reshape(6, 2)
    blocks = da.from_array(mnb.asarray(x) if ours else x, chunks=((0, 4, 0, 2), (2, 0)), asarray=False)
    for axis in (None, 0, 1):
        found = mnb.dask.reduce(getattr(mnb, name), blocks, axis, split_every=2).compute(scheduler="sync")
        np.testing.assert_array_equal(np.asarray(found), getattr(np, name)(x, axis))


def test_a_reduction_has_the_requested_dtype() -> None:
    result = mnb.dask.reduce(mnb.sum, da.from_array(np.full((5, 3), 200, np.uint8), chunks=2), 0, dtype=np.float32)
    found = result.compute(scheduler="sync")
    assert (result.dtype, found.dtype) == (np.float32, np.float32)
    np.testing.assert_array_equal(found, [1000, 1000, 1000])


METHODS = {
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(axis=0),
    "std": lambda x: x.std(axis=1),
    "argmax": lambda x: x.argmax(axis=1),
    "cumsum": lambda x: x.cumsum(axis=0),
    "product": lambda x: x @ x.T,
    "mask": lambda x: x[x > 0.5].sum(),
    "slices": lambda x: x[10:50, ::3],
}


@pytest.mark.parametrize("name", METHODS)
def test_dask_methods_run_on_metalnb_blocks(name: str, rng: np.random.Generator) -> None:
    x = rng.random((100, 60), np.float32)
    found = METHODS[name](da.from_array(mnb.asarray(x), chunks=(40, 30), asarray=False)).compute(scheduler="sync")
    assert isinstance(found, mnb.Array)
    np.testing.assert_allclose(np.asarray(found), METHODS[name](x.astype(np.float64)), rtol=1e-4)


def test_an_array_and_a_dask_array_are_operands_of_one_operation() -> None:
    x, blocks = mnb.arange(6, dtype="float32"), da.arange(6, chunks=4, dtype=np.float32)
    for result in (x + blocks, blocks + x, np.add(x, blocks), np.add(blocks, x), np.where(x >= 0, blocks + blocks, x)):
        assert isinstance(result, da.Array)
        np.testing.assert_array_equal(np.asarray(result.compute(scheduler="sync")), 2 * np.arange(6))
    assert np.concatenate([x, blocks]).shape == (12,)


def test_a_reduction_of_the_users_own_matches_numpy(rng: np.random.Generator) -> None:
    squares = mnb.reduction("a + b", init=0, map="x * x", name="squares")
    x = rng.integers(-9, 9, 1001).astype(np.float32)
    blocks = da.from_array(x, chunks=10)
    assert float(mnb.dask.reduce(squares, blocks, combine=mnb.sum).compute()) == (x * x).sum()
    assert float(mnb.dask.reduce(squares, blocks).compute()) != (x * x).sum(), "squares of squares"


VECTORS = HEAD + """
kernel void spread(device const float* x, device float4* y, uint i [[thread_position_in_grid]]) { y[i] = x[i]; }
kernel void ends(device const float4* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = x[i].w; }
kernel void same(device const float4* x, device float4* y, uint i [[thread_position_in_grid]]) { y[i] = x[i]; }
kernel void square(device const float4* x, device float2x2* y, uint i [[thread_position_in_grid]]) {
    y[i] = float2x2(x[i].xy, x[i].zw);
}
struct Pair { float a; uint b; };
kernel void pair(device const float* x, device Pair* y, uint i [[thread_position_in_grid]]) { y[i].a = x[i]; }"""


@pytest.mark.parametrize("ours", [False, True], ids=["numpy", "metalnb"])
@pytest.mark.parametrize(("name", "shape", "chunks"), [
    ("spread", (6,), 4), ("spread", (2, 3), 2), ("ends", (6, 4), (4, 4)), ("ends", (6, 4), (3, 2)), ("ends", (24,), 8),
    ("same", (6, 4), (4, 4)), ("same", (2, 24), (1, 8)), ("square", (2, 6, 4), (1, 4, 4)), ("pair", (6,), 4),
])  # fmt: skip
def test_blocks_of_vectors_and_records(name: str, shape: tuple[int, ...], chunks: object, ours: bool) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    kernel = mnb.compile(VECTORS)[name]
    expected = kernel(mnb.asarray(x) if ours else x)
    result = mnb.dask.map_blocks(kernel, da.from_array(mnb.asarray(x) if ours else x, chunks=chunks, asarray=False))
    found = result.compute(scheduler="sync")
    assert result.shape == found.shape == expected.shape
    assert type(result._meta) is type(found) is type(expected)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    if result.shape != shape:
        with pytest.raises(mnb.ArgumentError, match="needs an output of the shape of its first array"):
            mnb.dask.map_overlap(kernel, da.from_array(x, chunks=chunks))


def test_every_option_of_a_call_is_accepted() -> None:
    x, scale = da.arange(6, chunks=3, dtype=np.float32), mnb.compile(SCALE).scale
    for options in ({"groups": 3, "threadgroup": 1}, {"groups": len, "threadgroup": 1, "timeout": 5}):
        assert mnb.dask.map_blocks(scale, x, a=1.0, **options).compute().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_scalar_may_be_a_dask_array() -> None:
    x = da.arange(6, chunks=3, dtype=np.float32)
    assert mnb.dask.map_blocks(mnb.compile(SCALE).scale, x, a=x.max()).compute().tolist() == [0, 5, 10, 15, 20, 25]


def test_a_mask_is_not_ignored() -> None:
    masked = da.ma.masked_less(da.arange(6, chunks=3, dtype=np.float32), 2)
    with pytest.raises(mnb.ArgumentError, match=r"got a masked array of float32, shape \(3,\). Pass x.filled"):
        mnb.dask.map_blocks(mnb.compile(SCALE).scale, masked, a=1.0).compute(scheduler="sync")


def test_invalid_map_blocks_calls_are_refused() -> None:
    x, both, scale = da.zeros(4, dtype=np.float32), mnb.compile(FLOOR).both, mnb.compile(SCALE).scale
    with pytest.raises(mnb.ArgumentError, match=r"a block has one output; left out: y, z"):
        mnb.dask.map_blocks(both, x)
    with pytest.raises(mnb.ArgumentError, match=r"none of the arguments is a Dask array"):
        mnb.dask.map_blocks(scale, np.zeros(4, np.float32), a=1)
    with pytest.raises(mnb.ArgumentError, match=r"no parameter 'b'; there are: x, y, a"):
        mnb.dask.map_blocks(scale, x, b=1)
    with pytest.raises(mnb.ArgumentError, match=r"'x' is passed twice"):
        mnb.dask.map_blocks(scale, x, x=x)


@pytest.mark.parametrize("name", ["map_blocks", "map_overlap"])
def test_two_calls_of_a_kernel_have_different_results(name: str) -> None:
    """Dask treats tasks with the same name as one task, so the name must depend on the arguments."""
    scale, x = mnb.compile(SCALE).scale, da.arange(6, chunks=3, dtype=np.float32)
    call = getattr(mnb.dask, name)
    twice, thrice, again = call(scale, x, a=2.0), call(scale, x, a=3.0), call(scale, x, a=2.0)
    assert twice.name == again.name != thrice.name
    np.testing.assert_array_equal((twice + thrice).compute(), 5 * np.arange(6))


def test_block_call_can_be_pickled() -> None:
    from metalnb.dask.block_call import BlockCall

    call = pickle.loads(pickle.dumps(BlockCall(mnb.compile(SCALE).scale, ("x",), {"a": 3.0}, {})))  # noqa: S301
    assert call(np.ones(3, np.float32)).tolist() == [3, 3, 3]


def test_without_dask_the_message_names_the_package_to_install() -> None:
    code = "import sys; sys.modules['dask'] = None; import metalnb as mnb; mnb.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'mnb.dask needs Dask: pip install "metalnb[dask]"' in done.stderr


# Long because a cluster takes 15 s to start; the tests above run the same blocks in threads.
@pytest.mark.long
@pytest.mark.timeout(300)
def test_result_is_correct_when_a_worker_dies(tmp_path: Path) -> None:
    """Kill one of two worker processes when half of the blocks are done; the array is on disk."""
    distributed = pytest.importorskip("distributed", reason=MISSING)
    zarr = pytest.importorskip("zarr", reason=MISSING)
    x = np.random.default_rng(1).random((400, 500), np.float32)
    stored = zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=x.shape, chunks=(50, 50), dtype="f4")
    stored[:] = x
    longer = "float s = 0; for (uint q = 0; q < 3000; ++q) s += x[k] * float(q); if (s < 0) return;"
    slow = FIVE.replace("y[k] =", f"{longer}\n    y[k] =")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, \
            distributed.Client(cluster) as client:  # fmt: skip
        blocks = da.from_zarr(str(tmp_path / "x.zarr"))
        kernel = mnb.compile(slow).five
        result = mnb.dask.map_overlap(kernel, blocks, size=width_and_height, depth=1, boundary="nearest")
        pids = client.run(os.getpid)
        persisted = client.persist(result)
        futures = distributed.futures_of(persisted)
        finished = distributed.as_completed(futures)
        for _ in range(len(futures) // 2):
            next(finished)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        np.testing.assert_allclose(client.compute(persisted).result(timeout=240), five(x), rtol=1e-6)
        assert set(client.run(os.getpid).values()) != set(pids.values()), "no worker died"
