"""Memory accesses and shuffles under a mask, for instruction sets that can mask all, some or none of them."""

import ctypes
import mmap
import sys

import numpy as np
import pytest
from vectorizer.vector_kernels import HEAD, engine_is_here, instruction_set

import metalnb as mnb

__all__ = ["engine_is_here", "instruction_set"]

pytestmark = pytest.mark.usefixtures("instruction_set")

_N = 1000
_DTYPES = {"uchar": np.uint8, "half": np.float16, "uint": np.uint32, "long": np.int64}


def _compiled(body: str, kind: str, extra: str = "") -> mnb.Kernel:
    text = f"""{HEAD}kernel void f(device const {kind}* x, device const uint* at, device {kind}* o,
        uint i [[thread_position_in_grid]]{extra}) {{ {body} }}"""
    return mnb.compile(text, engine="cpu", checked=False)["f"]


def _inputs(dtype: type, dice: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, an index for each thread, and the active threads: the others' indices are outside any memory."""
    x = dice.integers(1, 100, 4 * _N).astype(dtype)
    active = dice.random(_N) < 0.7
    active[:64] = True
    at = np.where(active, dice.permutation(_N), 0xF0000000 + np.arange(_N)).astype(np.uint32)
    return x, at, active


@pytest.mark.parametrize("kind", _DTYPES)
def test_only_active_lanes_access_memory(kind: str) -> None:
    x, at, active = _inputs(_DTYPES[kind], np.random.default_rng(31))
    far = "at[i] < 0xF0000000"
    before = np.full(4 * _N, 7, x.dtype)
    index = at.astype(np.int64)

    def ran(body: str) -> np.ndarray:
        out = before.copy()
        _compiled(body, kind)(x, at, out, grid=_N, threadgroup=96)
        return out

    gathered = ran(f"if ({far}) o[i] = x[at[i]];")
    assert np.array_equal(gathered[:_N][active], x[index[active]])
    assert (gathered[:_N][~active] == 7).all() and (gathered[_N:] == 7).all()  # noqa: PT018
    scattered, expected = ran(f"if ({far}) o[at[i]] = x[i];"), before.copy()
    expected[index[active]] = x[:_N][active]
    assert np.array_equal(scattered, expected)
    beside, expected = ran(f"if ({far}) o[i] = x[i + 1];"), before.copy()
    expected[:_N][active] = x[1 : _N + 1][active]
    assert np.array_equal(beside, expected)
    apart, expected = ran(f"if ({far}) {{ o[3 * i] = x[2 * i]; o[3 * i + 1] = x[2 * i + 1]; }}"), before.copy()
    expected[0 : 3 * _N : 3][active] = x[0 : 2 * _N : 2][active]
    expected[1 : 3 * _N : 3][active] = x[1 : 2 * _N : 2][active]
    assert np.array_equal(apart, expected)
    own, expected = ran(f"{kind} v[4] = {{}}; for (int k = 0; k < 4; ++k) if ({far} || k == 2) v[k] = x[4 * i + k];"
                    "o[i] = v[at[i] & 3];"), before.copy()  # fmt: skip
    rows = np.where(active[:, None] | (np.arange(4) == 2), x.reshape(_N, 4), 0)
    expected[:_N] = rows[np.arange(_N), index & 3]
    assert np.array_equal(own, expected)


@pytest.mark.parametrize("kind", ["half2", "half3", "half4", "uchar2", "uchar4", "float2", "float4", "ulong2"])
def test_components_are_gathered_and_scattered_in_words(kind: str) -> None:
    element, count = kind[:-1], int(kind[-1])
    dtype = {**_DTYPES, "float": np.float32, "ulong": np.uint64}[element]
    dice = np.random.default_rng(35)
    x = dice.integers(1, 100, (_N, 4 if kind == "half3" else count)).astype(dtype)
    one = f"{kind}(1)"  # clang copies vectors as integers unless they are computed with
    for at in (_inputs(np.uint32, dice)[1], dice.permutation(_N).astype(np.uint32)):
        read, written, expected = (np.full_like(x, 7) for _ in range(3))
        _compiled(f"if (at[i] < 0xF0000000) o[i] = x[at[i]] + {one};", kind)(x, at, read, grid=_N, threadgroup=96)
        _compiled(f"if (at[i] < 0xF0000000) o[at[i]] = x[i] + {one};", kind)(x, at, written, grid=_N, threadgroup=96)
        active = at < _N
        expected[active] = x[at[active]] + 1
        assert np.array_equal(read[:, :count], expected[:, :count])
        expected[:] = 7
        expected[at[active]] = x[active] + 1
        assert np.array_equal(written[:, :count], expected[:, :count])


@pytest.mark.parametrize("kind", ["uint", "float"])
def test_shuffle_from_an_inactive_lane_returns_the_callers_value(kind: str) -> None:
    dice = np.random.default_rng(33)
    x = dice.integers(1, 1000, 960).astype({"uint": np.uint32, "float": np.float32}[kind])
    lane = dice.integers(0, 64, 960).astype(np.uint32)
    out = np.zeros_like(x)
    kernel = _compiled("if (uint(x[i]) % 3) o[i] = simd_shuffle(x[i], ushort(at[i]));", kind)
    kernel(x, lane, out, grid=960, threadgroup=96)
    active = (x.astype(np.int64) % 3 != 0).reshape(-1, 32)
    there = (np.arange(960) // 32).reshape(-1, 32), (lane & 31).reshape(-1, 32)
    takes_part = active[there] & (lane < 32).reshape(-1, 32)
    own = x.reshape(-1, 32)
    expected = np.where(active, np.where(takes_part, own[there], own), 0)
    assert np.array_equal(out, expected.ravel())


def test_scattering_and_shuffling_between_barriers_match_numpy() -> None:
    x, at, active = _inputs(np.uint32, np.random.default_rng(32))
    body = """
        uint own = x[i];
        for (uint k = 0; k < n / 192; ++k) {
            if (at[i] < 0xF0000000) o[at[i]] = own + k;
            own = simd_shuffle(own, (l * 5 + 3) % 32);
            threadgroup_barrier(mem_flags::mem_device);
        }
        o[n + i] = own;"""
    kernel = _compiled(body, "uint", ", uint l [[thread_index_in_simdgroup]], uint n [[threads_per_grid]]")
    grid = 960
    at, active = np.where(at < grid, at, 0xF0000000).astype(np.uint32), active & (at < grid)
    out = np.full(2 * grid, 7, np.uint32)
    kernel(x, at, out, grid=grid, threadgroup=96)
    expected, own = out.copy(), x[:grid].reshape(-1, 32)
    expected[:grid] = 7
    for k in range(5):
        expected[at[:grid][active[:grid]]] = own.ravel()[active[:grid]] + k
        own = own[:, (np.arange(32) * 5 + 3) % 32]
    expected[grid:] = own.ravel()
    assert np.array_equal(out, expected)


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
@pytest.mark.parametrize("n", [64, 50])
@pytest.mark.parametrize("kind", ["half2", "float2", "uchar2"])
def test_nothing_after_the_last_active_lanes_elements_is_read(kind: str, n: int) -> None:
    """Each lane reads two of four elements; the page after the last ones is not mapped."""
    dtype = {"half2": np.float16, "float2": np.float32, "uchar2": np.uint8}[kind]
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    whole = np.frombuffer(memory, np.uint8)
    page = whole.ctypes.data + mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    count = 4 * n - 2
    x = whole[mmap.PAGESIZE - count * dtype().itemsize : mmap.PAGESIZE].view(dtype)
    x[:] = np.arange(count) % 50
    out = np.zeros((n, 2), dtype)
    text = f"""{HEAD}kernel void f(device const {kind}* x, device {kind}* o, uint i [[thread_position_in_grid]]) {{
        o[i] = x[2 * i]; }}"""
    mnb.compile(text, engine="cpu", checked=False)["f"](x, out, grid=n, threadgroup=64)
    expected = np.append(x, [0, 0]).reshape(n, 4)[:, :2]
    assert np.array_equal(out, expected)
    assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), 3) == 0
