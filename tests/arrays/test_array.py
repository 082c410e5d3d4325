"""The array: its text form, its memory, and sharing with NumPy and other libraries."""

from __future__ import annotations

import copy
import functools
import gc
import operator
import pickle
import re
import subprocess
import sys
from collections import Counter, deque
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from interrupts import run_together

import metalnb as mnb
from metalnb import engine as engines
from metalnb.arrays import stream
from metalnb.timing import sampling

SAXPY = """
kernel void saxpy(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) {
    y[i] = a * x[i] + y[i];
}
kernel void scaled(device const float* x, device float* out, constant float& a, uint i [[thread_position_in_grid]]) {
    out[i] = a * x[i];
}
kernel void slowly(device float* x, constant uint& n, uint i [[thread_position_in_grid]]) {
    float v = x[i];
    for (uint k = 0; k < n; ++k) v = v * 0.999999f + 1e-6f;
    x[i] = v;
}
"""


@pytest.fixture(scope="module")
def program() -> Any:
    return mnb.compile(SAXPY)


def array_and_host(*shape: int, dtype: str = "float32") -> tuple[mnb.Array, np.ndarray[Any, Any]]:
    """Return an array and NumPy's with the same elements, each with its own memory."""
    host = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    return mnb.array(host), host


# ---- Text form.


@pytest.mark.parametrize(
    "host",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(3), np.array([True, False]), np.zeros((0, 3), np.int8),
        np.float32(2.5), np.arange(5000, dtype=np.float32), np.array([np.nan, np.inf, -0.0], np.float16),
    ],
    ids=["matrix", "int64", "bool", "empty", "no axes", "long", "special"],
)  # fmt: skip
def test_repr_matches_numpy(host: Any) -> None:
    x = mnb.array(host)
    assert repr(x) == repr(np.asarray(host))
    assert str(x) == str(np.asarray(host))


def test_attributes_match_numpy() -> None:
    x, host = array_and_host(2, 3, 4)
    for name in ("shape", "strides", "dtype", "ndim", "size", "itemsize", "nbytes"):
        assert getattr(x, name) == getattr(host, name), name
    view, seen = x[:, ::-1, 1], host[:, ::-1, 1]
    assert (view.shape, view.strides) == (seen.shape, seen.strides)
    assert x.device == x.engine.name == mnb.__array_namespace_info__().default_device()
    assert x[0].T.shape == (4, 3)
    assert x.mT.shape == (2, 4, 3)
    with pytest.raises(ValueError, match="T: needs 2 axes"):
        _ = x.T


def test_one_element_converts_to_a_python_number() -> None:
    one = mnb.asarray(3)
    assert (int(one), float(one), bool(one), operator.index(one), complex(one)) == (3, 3.0, True, 3, 3 + 0j)
    assert [10, 20, 30, 40][one] == 40
    assert f"{mnb.asarray(2.5):.2f}" == "2.50"
    assert mnb.asarray([[7]]).item() == 7
    with pytest.raises(TypeError, match=r"bool\(\): needs an array of one element; got shape \(2,\)"):
        bool(mnb.ones(2))
    with pytest.raises(TypeError):
        operator.index(mnb.asarray(1.0))
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_array_is_a_sequence_of_its_rows() -> None:
    x, host = array_and_host(3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == host.tolist()
    assert 5 in x
    assert 6 not in x
    for bad in (len, iter):
        with pytest.raises(TypeError, match="0-d"):
            bad(mnb.asarray(1.0))


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), lambda x: x.copy()],  # noqa: S301
)
@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16"])
def test_copy_has_its_own_memory(again: Any, dtype: str) -> None:
    x = mnb.ones((3, 4), dtype=dtype)
    y = again(x[:, ::2])
    x.fill(0)
    assert (y.shape, y.dtype) == ((3, 2), x.dtype)
    assert y.astype("float32").tolist() == [[1.0, 1.0]] * 3


def test_methods_return_numpys_results() -> None:
    x, host = array_and_host(3, 4)
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("sum", (0,), {}), ("mean", (), {"axis": 1, "keepdims": True}), ("std", (), {"ddof": 1}), ("argmax", (1,), {}),
        ("cumsum", (1,), {}), ("reshape", (2, -1), {}), ("reshape", ((6, 2),), {}), ("transpose", (), {}),
        ("transpose", (1, 0), {}), ("flatten", (), {}), ("ravel", (), {}), ("repeat", (2,), {"axis": 0}),
        ("swapaxes", (0, 1), {}), ("diagonal", (1,), {}), ("trace", (), {}), ("clip", (2, 7), {}),
        ("take", ([1, 1],), {}),
        ("astype", ("int8",), {}), ("view", ("int32",), {}), ("argsort", (), {}), ("any", (), {}),
        ("dot", (host.T,), {}),
    ]  # fmt: skip
    for name, args, options in calls:
        got, expected = getattr(x, name)(*args, **options), getattr(host, name)(*args, **options)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6, err_msg=name)
        assert got.shape == expected.shape, name
    y = mnb.array(host[::-1, ::-1])
    y.sort(axis=0)
    assert y.tolist() == np.sort(host[::-1, ::-1], axis=0).tolist()
    assert x[None].squeeze().shape == (3, 4)
    assert x.tobytes() == host.tobytes()


def test_membership_matches_numpy() -> None:
    x = mnb.asarray([1, 2], dtype="uint8")
    for value in (1, 2.0, True, np.int64(2)):
        assert value in x
    for value in (3, 300, -1, 1.5, "a", None):
        assert value not in x


def test_bytes_of_an_array_are_its_elements() -> None:
    for host in (np.arange(3, dtype=np.uint16), np.asarray(5), np.arange(6, dtype=np.int8).reshape(2, 3).T):
        assert bytes(mnb.array(host)) == host.tobytes()


def test_nonzero_bytes_viewed_as_bool_are_true() -> None:
    for dtype in ("uint8", "int8"):
        x = mnb.asarray([2, 0, 1], dtype=dtype)
        seen = x.view("bool")
        assert seen.tolist() == [True, False, True]
        assert seen.sum() == 2
        assert (~seen).tolist() == [False, True, False]
        assert x.tolist() == [2, 0, 1]
    assert mnb.asarray([256, 1], dtype="uint16").view(bool).tolist() == [False, True, True, False]
    odd = np.array([2, 0, 3], np.uint8).view(bool)
    for copied in (mnb.array(odd), mnb.array(odd[::-1])[::-1]):
        assert copied.view("uint8").tolist() == [1, 0, 1]
    truth = mnb.asarray([True, False])
    truth.view(bool)[0] = False  # the same dtype: a view as any other
    assert truth.tolist() == [False, False]


# ---- Shared memory.


def test_view_of_bytes_between_elements_is_refused() -> None:
    x = mnb.zeros((4, 9), dtype="uint8")
    rule = "view: each element of float32 must start at a multiple of 4 bytes"
    for part in (x[0, 1:], x[:, :8], x[0, 2:6]):
        with pytest.raises(ValueError, match=rule):
            part.view("float32")
        assert part.copy().view("float32").sum() == 0
    assert x[::4, :8].view("float32").shape == (1, 2)
    assert x[0, 1:1].view("float32").shape == (0,)


@pytest.mark.usefixtures("shared_memory")
def test_numpy_and_the_array_see_the_same_memory() -> None:
    host = np.arange(6, dtype=np.float32)
    x = mnb.asarray(host)
    host[0] = 10
    x[1] = 20
    assert x.tolist() == host.tolist() == [10, 20, 2, 3, 4, 5]
    y = mnb.arange(4)
    seen = y[1::2].numpy()
    seen[:] = 9
    assert y.tolist() == [0, 9, 2, 9]
    del y
    gc.collect()
    assert seen.tolist() == [9, 9]  # NumPy's view keeps the memory alive


@pytest.mark.parametrize("make", [bytearray, memoryview, lambda b: __import__("array").array("B", b)])
def test_asarray_takes_any_buffer(make: Any) -> None:
    data = bytearray(b"\x01\x02\x03")
    x = mnb.asarray(make(data))
    assert x.dtype == np.uint8
    assert x.tolist() == [1, 2, 3]


@pytest.mark.usefixtures("shared_memory")
def test_asarray_copies_only_where_needed_or_refuses() -> None:
    host = np.arange(6, dtype=np.float32)
    assert np.shares_memory(mnb.asarray(host, copy=False).numpy(), host)
    assert not np.shares_memory(mnb.array(host).numpy(), host)
    locked = host.copy()
    locked.flags.writeable = False
    for bad, why in ((host[::2], "not C-contiguous"), (locked, "read-only"), ([1.0], "no memory to share")):
        with pytest.raises(ValueError, match=why):
            mnb.asarray(bad, copy=False)
    with pytest.raises(ValueError, match="must be converted"):
        mnb.asarray(host, dtype=mnb.int32, copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        mnb.asarray(mnb.asarray(host), dtype=mnb.int32, copy=False)


def test_float64_is_never_narrowed_in_silence() -> None:
    for wide in (np.ones(2), [np.ones(2), np.ones(2)], np.ones((), np.float64), memoryview(np.ones(2))):
        with pytest.raises(TypeError, match=r"Metal has no float64\. Pass x\.astype"):
            mnb.asarray(wide)
    assert mnb.asarray(np.ones(2), dtype="float32").dtype == np.float32
    assert mnb.asarray([1.5, 2]).dtype == np.float32  # Python numbers have no fixed size
    assert mnb.asarray(np.float64(1.5)).dtype == np.float32
    with pytest.raises(TypeError, match="float64"):
        mnb.ones(2) + np.ones(2)
    with pytest.raises(TypeError, match="float64"):
        mnb.zeros(2, dtype=float).astype(np.float64)


def test_integers_never_become_floats_in_silence() -> None:
    for mixed in ([2**63, 1], [np.uint64(1), np.int64(1)], [[mnb.ones(2, dtype="uint64")], [np.zeros(2, np.int64)]]):
        with pytest.raises(TypeError, match="no integer dtype contains int64 and uint64"):
            mnb.asarray(mixed)
        assert mnb.asarray(mixed, dtype="float32").dtype == np.float32
    assert mnb.asarray([2**63, 1], dtype="uint64").tolist() == [2**63, 1]
    assert mnb.asarray([2**63, -1, 0.5]).dtype == mnb.asarray([[], []]).dtype == np.float32


def test_non_arrays_are_refused() -> None:
    masked = np.ma.masked_array([1, 2], mask=[True, False])
    for bad, why in (
        ("text", "needs numbers; got str"), (object(), "needs numbers; got object"), (1j, "needs numbers; got complex"),
        (np.zeros(2, "M8[s]"), "arrays cannot have the dtype datetime64"), (masked, "filled"),
        (np.zeros(2, ">f4"), "arrays cannot have"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=why):
            mnb.asarray(bad)
    with pytest.raises(TypeError, match="no dtype 'float33'; there are: bool, int8"):
        mnb.zeros(2, dtype="float33")


def test_nested_sequences_of_arrays_are_accepted() -> None:
    x = mnb.asarray([mnb.arange(2), [5, mnb.asarray(7)]])
    assert x.dtype == np.int64
    assert x.tolist() == [[0, 1], [5, 7]]


@pytest.mark.usefixtures("shared_memory")
def test_dlpack_imports_and_exports() -> None:
    x = mnb.arange(6, dtype="float32").reshape(2, 3)
    host = np.from_dlpack(x.T)
    assert host.tolist() == x.T.tolist()
    assert np.shares_memory(host, x.numpy())
    back = mnb.from_dlpack(np.ascontiguousarray(host))
    assert back.tolist() == host.tolist()
    copied = mnb.from_dlpack(x, copy=True)
    x.fill(0)
    assert copied.sum() == 15
    assert mnb.from_dlpack(x) is not x


@pytest.mark.usefixtures("shared_memory")
def test_pytorch_shares_an_arrays_memory_both_ways() -> None:
    torch = pytest.importorskip("torch")
    x = mnb.arange(4, dtype="float32")
    t = torch.from_dlpack(x)
    t += 1
    assert (x * 1).tolist() == [1, 2, 3, 4]
    y = mnb.from_dlpack(t)
    y *= 2
    assert t.tolist() == [2, 4, 6, 8]
    assert mnb.add(mnb.ones(4), t).tolist() == [3, 5, 7, 9]


def test_dtype_unknown_to_numpy_is_a_buffer_error() -> None:
    torch = pytest.importorskip("torch")
    t = torch.tensor([1.0, -2.5], dtype=torch.bfloat16)
    for take in (mnb.from_dlpack, mnb.asarray):
        with pytest.raises(BufferError, match=f"{take.__name__}: NumPy cannot import it"):
            take(t.to(torch.float8_e5m2))
        assert take(t).tolist() == [1, -2.5]
    assert mnb.asarray(t.view(torch.int16)).view("bfloat16").tolist() == [1, -2.5]


def test_a_range_is_read_as_a_list() -> None:
    assert mnb.asarray(range(3), dtype="uint8").tolist() == [0, 1, 2]
    with pytest.raises(OverflowError, match="out of bounds for uint8"):
        mnb.asarray(range(300), dtype="uint8")


def test_bfloat16_keeps_its_dtype_to_and_from_numpy() -> None:
    host = np.array([1.0, 2.5, -3.0], ml_dtypes.bfloat16)
    x = mnb.array(host)
    assert x.dtype == mnb.bfloat16
    seen = (x + x).numpy()
    assert seen.dtype == ml_dtypes.bfloat16
    assert seen.tolist() == [2.0, 5.0, -6.0]


@pytest.mark.usefixtures("shared_memory")
def test_dispatches_wait_only_while_numpy_views_the_memory(program: Any) -> None:
    """Dispatches are waited for only while NumPy has a view of the memory."""
    x = mnb.ones(8)
    view = x.numpy()
    assert x.block.viewers == 1
    part = view[2:]
    del view
    assert x.block.viewers == 1
    del part
    gc.collect()
    assert x.block.viewers == 0
    program.slowly(x, n=2)
    assert x.block.ticket is not None


@pytest.mark.usefixtures("shared_memory")
def test_numpy_never_sees_memory_too_early(program: Any) -> None:
    for _ in range(20):
        x = mnb.zeros(256)
        view = x.numpy()
        program.slowly(x, n=20_000)
        assert view[0] > 0.01
        y = mnb.zeros(256)
        program.slowly(y, n=20_000)
        assert y.numpy()[-1] > 0.01  # and a later read waits


def test_threads_see_results_of_work_started_earlier(program: Any) -> None:
    """Many threads dispatch on one array and read it; none reads before its own dispatch is done."""
    x = mnb.zeros(4096)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(50):
            y = x + 1.0
            program.slowly(y, n=200)
            z = y * 2.0
            seen = z.read()
            if not (seen > 2.0 - 1e-3).all() or seen.min() != seen.max():
                wrong.append(seen)

    run_together([work] * 4)
    assert not wrong


# ---- The pool.


def test_synchronize_waits_for_all_before_it_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []

    class Pending:
        def __init__(self, name: str) -> None:
            self.name = name

        def wait(self) -> None:
            waited.append(self.name)
            if self.name != "right":
                raise mnb.KernelFault(self.name)

    pending = deque(map(Pending, ("bad", "right", "worse")))
    monkeypatch.setitem(stream._in_flight, engines.current().name, pending)
    with pytest.raises(mnb.KernelFault, match="bad"):
        mnb.synchronize()
    assert waited == ["bad", "right", "worse"]
    mnb.synchronize()


def test_memory_is_counted_and_released() -> None:
    mnb.clear_cache()
    gc.collect()
    before = mnb.memory_info()
    x = mnb.ones(1_000_000)
    during = mnb.memory_info()
    assert during.used - before.used == 1 << 22, "the least block that holds it"
    assert during.peak >= during.used
    assert during.engine == x.device
    del x
    gc.collect()
    after = mnb.memory_info()
    assert (after.used, after.cached, after.peak) == (before.used, before.cached + (1 << 22), during.peak)
    mnb.clear_cache()
    assert mnb.memory_info().cached == 0


def test_failed_allocation_is_reported_and_not_counted() -> None:
    used = mnb.memory_info().used
    with pytest.raises(MemoryError):
        mnb.empty(1 << 60, dtype="int8")
    assert mnb.memory_info().used == used


def test_iterations_do_not_grow_memory() -> None:
    """In a separate process, since other tests hold memory in this one."""
    code = """
import metalnb as mnb, os
page = os.sysconf("SC_PAGE_SIZE")
resident = lambda: int(open("/proc/self/statm").read().split()[1]) * page
x, y = mnb.ones(10_000), mnb.ones(10_000)
def run(n):
    global x
    for _ in range(n):
        x = x * 0.5 + y
    x.wait()
run(2000)
before = resident()
run(20_000)
print(resident() - before, float(x[0]))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    grown, value = out.stdout.split()
    assert float(value) == 2.0
    assert int(grown) < 2**20


# ---- The user's own kernels.


def test_kernel_returns_arrays_for_array_inputs(program: Any) -> None:
    x, y = mnb.arange(5, dtype="float32"), mnb.ones(5)
    assert program.saxpy(x, y, a=2.0) is None
    assert y.tolist() == [1, 3, 5, 7, 9]
    out = program.scaled(x, a=3.0)
    assert isinstance(out, mnb.Array)
    assert (out + y).tolist() == [1, 6, 11, 16, 21]
    assert program.scaled(y[1:], a=mnb.asarray(2.0)).tolist() == [6, 10, 14, 18]
    assert isinstance(program.scaled(np.ones(3, np.float32), a=1.0), np.ndarray)


def test_kernel_takes_arrays_and_numpy_arrays_together(program: Any) -> None:
    host = np.ones(5, np.float32)
    program.saxpy(mnb.arange(5, dtype="float32"), host, a=2.0)
    assert host.tolist() == [1, 3, 5, 7, 9]  # waited for, since NumPy may read at any moment


def test_a_kernel_refuses_arrays_that_do_not_fit(program: Any) -> None:
    with pytest.raises(mnb.ArgumentError, match=r"got int64, shape \(5,\). Pass x.astype"):
        program.scaled(mnb.arange(5), a=1.0)
    with pytest.raises(mnb.ArgumentError, match=r"not C-contiguous, shape \(2,\).*Pass x.copy\(\)"):
        program.scaled(mnb.ones(4)[::2], a=1.0)


def test_a_kernel_is_timed_on_arrays(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "TOTAL", 0.005)
    x = mnb.zeros(64)
    program.slowly(x, n=50_000)
    timing = mnb.measure(program.saxpy, mnb.ones(64), x, a=1.0)
    assert timing.median > 0
    assert float(x[0]) == pytest.approx(float(x[63]))
    assert 0.01 < float(x[0]) < 0.1  # unchanged: measuring restores what it wrote


# ---- In place.


def test_in_place_operators_keep_the_memory() -> None:
    x = mnb.arange(4, dtype="float32")
    view = x[1:]
    view += 10
    x *= 2
    assert x.tolist() == [0, 22, 24, 26]
    whole, short = mnb.arange(3), mnb.ones(3)
    with pytest.raises(TypeError, match="add: a result of float32 does not fit into out of int64"):
        whole += 0.5
    with pytest.raises((ValueError, TypeError), match=r"\(2, 3\)"):
        short += mnb.ones((2, 3))


@pytest.mark.parametrize(("error", "reason"), [
    (MemoryError("a buffer has at most 8 bytes"), ": a buffer has at most 8 bytes"), (MemoryError(), ""),
    (ValueError("`arr.size` is too big"), ""),
])  # fmt: skip
def test_an_output_without_memory_is_refused(monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str) -> None:
    """An engine's limit is reported, NumPy's is not: it names its own variables."""
    scaled, x = mnb.compile(SAXPY).scaled, mnb.ones(3)

    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(type(x), "__metal_zeros__", fail)
    expected = f"no memory for an output of shape (3,) (12 bytes){reason}. Pass a smaller shape."
    with pytest.raises(mnb.ArgumentError, match=f"; {re.escape(expected)}$"):
        scaled(x, a=2)


def test_an_output_of_too_many_axes_is_refused() -> None:
    with pytest.raises(mnb.ArgumentError, match=r"is device float\*; no memory for an output of shape \(1, 1, "):
        mnb.compile(SAXPY).scaled(mnb.ones(3), a=2, grid=1, shapes={"out": (1,) * 65})


def test_an_output_left_out_is_allocated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With arrays as arguments the output is an array too, and NumPy allocates nothing."""
    scaled = mnb.compile(SAXPY).scaled
    x = mnb.ones(1000)
    scaled(x, a=2)
    made: list[Any] = []
    zeros = np.zeros
    monkeypatch.setattr(np, "zeros", lambda *args, **options: made.append(args) or zeros(*args, **options))
    assert isinstance(scaled(x, a=2), mnb.Array)
    assert not made
    assert scaled(np.ones(1000, np.float32), a=2)[0] == 2
    assert len(made) == 1


@pytest.mark.parametrize("host", [
    np.arange(5000, dtype=np.float32), np.arange(24).reshape(4, 6).T, np.array([2, 0, 1], np.uint8).view(np.bool_),
    np.float64(2.5), np.zeros((0, 3), np.int8), np.arange(8, dtype=ml_dtypes.bfloat16)[::2],
])  # fmt: skip
def test_inputs_are_copied_once_and_not_read_back(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.REGISTRY, "toy", "toy_engine")
    engine: Any = engines.named("toy")
    calls: Counter[str] = Counter()

    def counting(name: str, own: Any) -> Any:
        def call(*given: Any) -> None:
            calls[name] += 1
            own(*given)

        return call

    for name in ("copy_in", "copy_out"):
        monkeypatch.setattr(engine, name, counting(name, getattr(engine, name)))
    for _ in range(2):  # the second array gets the first one's block
        x = mnb.asarray(host, device="toy")
        assert calls == {"copy_in": 1}
        assert np.array_equal(x.read(), mnb.asarray(host, device="cpu").read())
        assert calls == {"copy_in": 1, "copy_out": 1}
        assert np.array_equal(x.read(), mnb.asarray(host, device="cpu").read())
        assert calls["copy_out"] == 1
        calls.clear()
        del x


def test_results_of_a_dispatch_started_during_a_read_are_read_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may start a dispatch while the results of the last one are copied to the host."""
    monkeypatch.setitem(engines.REGISTRY, "toy", "toy_engine")
    engine: Any = engines.named("toy")
    copy_out = engine.copy_out
    source = "kernel void scale(device const float* x, device float* y, constant float& a) { y[0] = a * x[0]; }"
    kernel = mnb.compile(source, engine="toy").scale
    x, y = mnb.asarray([1.0, 2.0], device="toy"), mnb.asarray([0.0, 0.0], device="toy")
    starts = [lambda: kernel(x, y, 3.0)]

    def copy_and_start(*given: Any) -> None:
        copy_out(*given)
        if starts:
            starts.pop()()

    kernel(x, y, 2.0)
    monkeypatch.setattr(engine, "copy_out", copy_and_start)
    assert y.tolist() == [2, 4]
    assert y.tolist() == [3, 6]


def test_dlpack_of_an_array_stays_on_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.REGISTRY, "toy", "toy_engine")
    x = mnb.asarray([1.0, 2.0], device="toy")
    again = mnb.from_dlpack(x, copy=False)
    assert (again.device, again.tolist(), again.block) == ("toy", [1, 2], x.block)
    assert mnb.from_dlpack(x, device="cpu").device == "cpu"
    assert np.from_dlpack(x).tolist() == [1, 2]
    with pytest.raises(BufferError, match="memory of engine 'toy' is not the host's"):
        np.from_dlpack(x, copy=False)


@pytest.mark.parametrize(("shape", "strides"), [((2, 3), None), ((2, 3), (12, 4)), ((1, 3), (40, 4)), ((0, 3), (0, 4))])
def test_strides_of_axes_of_one_element_do_not_matter(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(engines.REGISTRY, "toy", "toy_engine")
    engine: Any = engines.named("toy")
    monkeypatch.setattr(type(engine), "adopt", lambda self, _address, nbytes, *_: self.alloc(nbytes), raising=False)
    lent = {"shape": shape, "typestr": "<f4", "data": (4096, False), "strides": strides, "version": 3}
    x = mnb.asarray(SimpleNamespace(__cuda_array_interface__=lent), device="toy")
    assert (x.shape, x.contiguous, x.tolist()) == (shape, True, np.zeros(shape).tolist())
    lent |= {"shape": (2, 3), "strides": (4, 8)}
    with pytest.raises(ValueError, match=r"of shape \(2, 3\) and strides \(4, 8\), are not contiguous"):
        mnb.asarray(SimpleNamespace(__cuda_array_interface__=lent), device="toy")


ESCAPING = """#include <metal_stdlib>
using namespace metal;
kernel void escaping(device float* x, device const uint* at, uint i [[thread_position_in_grid]]) { x[at[i]] += 1; }
kernel void copying(device const float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = x[i]; }"""
DERIVED = {
    "operator": lambda x, _: (x + 1).read(),
    "reduction": lambda x, _: float(mnb.sum(x)),
    "chain": lambda x, _: functools.reduce(lambda y, _: y * x, range(200), x).tolist(),
    "itself": lambda x, _: (x + 1, x.read()),
    "view": lambda x, _: (x[1:] * 2)[::-1].numpy(),
    "kernel": lambda x, program: program.copying(x).read(),
    "numpy": lambda x, program: program.copying(x, np.zeros(x.size, np.float32)),
    "known": lambda x, program: [program.copying(x, np.zeros(x.size, np.float32)) for _ in range(2)],
    "viewed": lambda x, program: program.copying(x, mnb.asarray(np.zeros(x.size, np.float32), device="cpu")),
}


@pytest.mark.parametrize("how", DERIVED)
@pytest.mark.parametrize("size", [8, 1 << 16])
def test_a_fault_is_raised_where_a_dependent_result_is_read(how: str, size: int) -> None:
    """An op or a kernel that uses the array before it is read does not hide the fault of the dispatch before it."""
    program = mnb.compile(ESCAPING, engine="cpu")
    x, other = (mnb.zeros(size, device="cpu") for _ in range(2))
    if how == "known":
        program.copying(x, np.zeros(size, np.float32))
    program.escaping(x, mnb.full(4, size, dtype="uint32", device="cpu"), grid=4)
    assert not (other + 1 - 1).any()
    with pytest.raises(mnb.KernelFault, match=r"escaping, .* updates x\[|escaping, .* reads x\["):
        DERIVED[how](x, program)
    x[...] = 3
    assert (x + other).tolist() == [3] * size, "it is raised once"
    mnb.synchronize("cpu")


def test_a_fault_is_not_lost_with_an_array_that_used_it() -> None:
    """The memory of an array that was deleted is reused: a wait for its last dispatch must not count as seeing it."""
    program = mnb.compile(ESCAPING, engine="cpu")
    x, at = mnb.zeros(100, device="cpu"), mnb.full(4, 100, dtype="uint32", device="cpu")
    program.escaping(x, at, grid=4)
    y = x + 1
    del at
    mnb.full(4, 1, dtype="uint32", device="cpu").read()
    with pytest.raises(mnb.KernelFault, match="escaping"):
        y.read()
