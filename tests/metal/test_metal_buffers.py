"""The memory of a dispatch: what is bound, shared, copied and waited for."""

import dataclasses
import threading
from pathlib import Path

import metal_double
import numpy as np
import pytest
from metal.beyond_metalcompute import BEYOND
from metal.doubled_engines import ADD, PAGE, Calls, doubled, metal, pages, sum_of_scalars
from metal_double import CONSTANTS
from metal_double.commands import MTLComputeCommandEncoder
from metal_double.device import MTLDevice
from metal_double.pipelines import MTLComputePipelineState

import metalnb as mnb
from metalnb.display import nbytes
from metalnb.engine import engine_choice as engines
from metalnb.engine import metal as metal_package
from metalnb.engine.metal.metal_engine import MetalEngine
from metalnb.timing.traffic import copy_notes

pytestmark = pytest.mark.usefixtures("engine")


def test_a_pointer_in_a_struct_leads_to_the_engines_memory() -> None:
    kernel = metal(BEYOND["argument buffer"][0]).f
    words = r"f: argument 'args' \[\[buffer\(0\)\]\] is constant Args&: field 'x' is pointer"
    with pytest.raises(mnb.ArgumentError, match=f"{words}: it takes an array that lives on engine 'metal' or 'cp"):
        kernel({"x": np.zeros(3, np.float32), "a": 1}, grid=3)
    with pytest.raises(mnb.ArgumentError, match=f"{words}: this array is in NumPy's memory"):
        kernel({"x": mnb.asarray(np.zeros(3, np.float32), device="metal"), "a": 1}, grid=3)
    with pytest.raises(mnb.ArgumentError, match="is an array on engine 'cpu', but the kernel is compiled for 'met"):
        kernel({"x": mnb.zeros(3, dtype="float32", device="cpu"), "a": 1}, grid=3)
    x = mnb.zeros((4, 3), dtype="float32", device="metal")
    kernel({"x": x[2], "a": 5}, grid=3)  # from the middle of its memory
    assert np.asarray(x).tolist() == [[0] * 3, [0] * 3, [5] * 3, [0] * 3]


def test_reading_an_array_behind_a_struct_pointer_waits() -> None:
    kernel = metal(BEYOND["argument buffer"][0]).f
    x = mnb.zeros(1 << 16, dtype="float32", device="metal")
    for _ in range(20):
        kernel({"x": x, "a": 1}, grid=1 << 16)
    assert set(np.asarray(x).tolist()) == {20.0}
    (held,) = kernel.prepare({"x": x, "a": 1}, grid=3).residents
    assert held is x


def test_small_values_go_with_the_command_and_arrays_as_buffers(calls: Calls) -> None:
    add = metal(ADD).add
    x, y = (mnb.ones(2000, dtype="float32", device="metal") for _ in range(2))
    values = calls.of(MTLComputeCommandEncoder, "setBytes_length_atIndex_")
    buffers = calls.of(MTLComputeCommandEncoder, "setBuffer_offset_atIndex_")
    add(x, y, 2.5)
    assert [(length, index) for _, length, index in values] == [(4, 2)]
    assert [(offset, index) for _, offset, index in buffers] == [(0, 0), (0, 1)]
    assert np.asarray(y)[7] == 3.5


@pytest.mark.parametrize("nbytes", [4096, 4100])
def test_four_kilobytes_at_most_go_with_the_command(calls: Calls, nbytes: int) -> None:
    source = f"struct S {{ float v[{nbytes // 4}]; }};\n"
    source += "kernel void f(device float* y, constant S& s, uint i [[thread_position_in_grid]]) { y[i] = s.v[i]; }"
    v = np.arange(nbytes // 4, dtype=np.float32)
    y = mnb.zeros(nbytes // 4, dtype="float32", device="metal")
    values = calls.of(MTLComputeCommandEncoder, "setBytes_length_atIndex_")
    metal(source).f(y, {"v": v})
    assert np.array_equal(np.asarray(y), v)
    assert [length for _, length, _ in values] == ([4096] if nbytes == 4096 else [])


def test_an_array_that_is_written_as_well_is_one_buffer() -> None:
    source = """kernel void f(device const float* x, device float* y) {
        y[0] = 5; threadgroup_barrier(mem_flags::mem_device); y[1] = x[0]; }"""
    x = np.zeros(8, np.float32)
    metal(source).f(x, x, grid=1)
    assert x[:2].tolist() == [5, 5]


def test_the_engines_own_memory_is_bound_where_it_is(engine: MetalEngine, calls: Calls) -> None:
    buffers = calls.of(MTLComputeCommandEncoder, "setBuffer_offset_atIndex_")
    memory, other = engine.alloc(400), engine.alloc(400)
    x, y = np.frombuffer(memory, np.float32), np.frombuffer(other, np.float32)
    x[:] = np.arange(100)
    metal(ADD).add(x[10:30], y[50:70], 0)
    assert [(b, o) for b, o, _ in buffers] == [(memory.buffer, 40), (other.buffer, 200)]
    assert np.array_equal(y[50:70], x[10:30])


@pytest.mark.parametrize(("kind", "space", "start", "multiple"), [
    ("float4", "device const", 4, 16), ("uchar", "constant", 1, 4), ("uchar", "device const", 1, 0),
    ("float", "constant", 4, 0), ("half", "constant", 2, 4), ("float2", "device const", 8, 0),
])  # fmt: skip
def test_an_offset_is_refused_before_metal_would(kind: str, space: str, start: int, multiple: int) -> None:
    source = f"kernel void f({space} {kind}* x, device uchar* y, uint i [[thread_position_in_grid]]) "
    kernel = metal(source + f"{{ y[i] = uchar(x[0]{'.x' if kind[-1].isdigit() else ''}); }}").f
    memory = np.frombuffer(engines.named("metal").alloc(256), np.uint8)
    x = memory[start : start + 64].view(kernel._binder.slots[0].dtype)
    x = x.reshape(-1, *kernel._binder.slots[0].value_shape)
    y = np.zeros(1, np.uint8)
    if multiple:
        message = rf"'x' .* starts {start} bytes into its buffer, and Metal takes multiples of {multiple}\. Pass a copy"
        with pytest.raises(mnb.LaunchError, match=message):
            kernel(x, y, grid=1)
    else:
        kernel(x, y, grid=1)


def test_constant_memory_of_an_intel_mac_starts_at_multiples_of_32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MTLDevice, "supportsFamily_", lambda *_: False)
    opened = metal_package.open_engine(module=metal_double)
    monkeypatch.setitem(doubled(), "metal", opened)
    kernel = metal("kernel void f(constant float* x, device float* y) { y[0] = x[0]; } // intel").f
    memory = np.frombuffer(opened.alloc(256), np.float32)
    with pytest.raises(mnb.LaunchError, match="takes multiples of 32"):
        kernel(memory[1:], np.zeros(1, np.float32), grid=1)


def test_threadgroup_memory_is_rounded_and_bounded() -> None:
    source = """kernel void f(device float* x, threadgroup float* b [[threadgroup(2)]],
        uint i [[thread_position_in_threadgroup]]) {
        threadgroup float a[4200]; a[i] = b[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup);
        x[i] = a[i ^ 1] + b[i ^ 1]; }"""
    f = metal(source).f
    x = np.arange(62, dtype=np.float32)
    f(x, threadgroup=62)  # 248 bytes are 256
    np.testing.assert_array_equal(x, 2 * (np.arange(62) ^ 1))
    with pytest.raises(mnb.LaunchError, match="f: needs 33,184 bytes of threadgroup memory"):
        f(x, threadgroup=62, threadgroup_memory={"b": 16384})
    with pytest.raises(mnb.LaunchError, match=r"33,184 bytes of threadgroup memory \(16,800 declared, 16,384 passed"):
        f.engine.launch(f.binary, [x, 16384], (62, 1, 1), (62, 1, 1))


def test_thirty_one_buffers_fit_and_the_next_is_refused(engine: MetalEngine) -> None:
    out = metal(sum_of_scalars(31)).f(*range(30), shapes={"out": 3}, grid=3)
    assert out.tolist() == [sum(range(30))] * 3
    unit = metal(ADD).add.unit
    beyond = tuple(dataclasses.replace(p, index=31) for p in unit.signature.params)
    with pytest.raises(mnb.CompileError, match=r"buffer\(31\)\]\]; Metal has \[\[buffer\(0\)\]\] to \[\[buffer\(30"):
        engine.compile(dataclasses.replace(unit, signature=dataclasses.replace(unit.signature, params=beyond)))


def test_a_kernel_of_many_registers_has_smaller_threadgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MTLComputePipelineState, "most", 96)
    add = metal(ADD + "// many registers").add
    x, y = np.ones(500, np.float32), np.zeros(500, np.float32)
    ready = add.prepare(x, y, 1)
    assert ready.threadgroup == (96, 1, 1)
    ready.run()
    assert (y == 2).all()
    assert add.prepare(x, y, 1, groups=2).grid == (192, 1, 1)
    with pytest.raises(mnb.LaunchError, match=r"\(128,\) is 128 threads; this kernel allows 96 \(this device"):
        add(x, y, 1, threadgroup=128)
    with pytest.raises(mnb.LaunchError, match="a threadgroup of 256 threads; this kernel allows 96 on this device"):
        add.engine.launch(add.binary, [x, y, b"\0\0\0\0"], (500, 1, 1), (256, 1, 1))


def test_whole_pages_of_numpys_are_not_copied(calls: Calls, engine: MetalEngine) -> None:
    buffers = calls.of(MTLComputeCommandEncoder, "setBuffer_offset_atIndex_")
    x, y = pages(), pages(2)[: PAGE // 4]
    x[:] = 1
    metal(ADD).add(x, y, 2)
    assert [b.memory.ctypes.data for b, _, _ in buffers] == [x.ctypes.data, y.ctypes.data]
    assert (y == 3).all()
    short = pages(2)[: PAGE // 4 + 4]  # does not end at a page's end or start at its start
    for z in (short[:-8], short[4:]):
        metal(ADD).add(x[: z.size], z, 2)
        assert buffers[-1][0].memory.ctypes.data != z.ctypes.data
        assert (z == 3).all()


def test_the_same_pages_are_one_buffer_while_a_dispatch_works_on_them(calls: Calls) -> None:
    buffers = calls.of(MTLComputeCommandEncoder, "setBuffer_offset_atIndex_")
    add = metal(ADD).add
    x, y, z = pages(), pages(), pages()
    first = add.prepare(x, y, 1).launch()
    second = add.prepare(y, z, 1).launch()
    assert buffers[1][0] is buffers[2][0]  # Metal sees that the second dispatch reads what the first writes
    second.wait()
    first.wait()
    assert (z == 2).all()


def test_pages_that_overlap_in_part_wait_for_each_other() -> None:
    add = metal(ADD).add
    whole = pages(3)
    n = PAGE // 4
    for _ in range(5):
        one = add.prepare(whole[:n], whole[n : 2 * n], 1).launch()
        two = add.prepare(whole[n : 3 * n], whole[n : 3 * n], 1, grid=2 * n).launch()
        assert one.results == []  # it was waited for: Metal sees two buffers
        three = add.prepare(whole[n + 8 : n + 16].copy(), whole[:8], 0).launch()
        for ticket in (one, two, three):
            ticket.wait()
    assert whole[n + 100] == 2
    assert whole[2 * n] == 5


def test_buffer_that_turns_out_to_be_a_copy_is_not_used(engine: MetalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine._device, "copies", True)
    x, y = pages(), pages()
    metal(ADD).add(x, y, 2)
    assert (y == 2).all()


def test_pages_of_one_dispatch_may_overlap() -> None:
    whole = pages(3)
    n = PAGE // 4
    whole[: 2 * n] = 1
    metal("kernel void last(device const float* x, device float* y) { y[0] = x[0] + 1; }").last(
        whole[: 2 * n], whole[n:], grid=1
    )
    assert whole[n] == 2


def test_pages_live_as_long_as_the_dispatch(engine: MetalEngine) -> None:
    held = threading.Event()
    engine._commands._queue.run(held.wait)  # the GPU is busy
    ticket = metal(ADD).add.prepare(pages(), pages(), 2).launch()
    command = ticket._batch.command
    assert command.status() == CONSTANTS["MTLCommandBufferStatusCommitted"]
    threading.Timer(0.05, held.set).start()
    del ticket  # waits for it
    assert command.status() == CONSTANTS["MTLCommandBufferStatusCompleted"]


def test_a_result_that_is_still_to_be_copied_is_waited_for() -> None:
    add = metal(ADD).add
    a, b, c = (np.zeros(1 << 16, np.float32)[1:] for _ in range(3))
    first = add.prepare(a, b, 1).launch()
    add(b, c, 1)
    first.wait()
    assert (c == 2).all()
    small, out = np.zeros(8, np.float32), mnb.zeros(8, dtype="float32", device="metal")
    first = add.prepare(a[:8], small, 1).launch()
    add(small, out, 1)  # goes with the command
    assert np.asarray(out).tolist() == [2] * 8
    first.wait()


@pytest.mark.parametrize("kind", [np.ndarray, np.memmap, np.recarray])
def test_every_kind_of_numpy_array_is_filled_when_the_call_returns(kind: type[np.ndarray], tmp_path: Path) -> None:
    """An engine's array beside it does not make the call return early."""
    x = mnb.ones(1 << 16, dtype="float32", device="metal")
    made = np.memmap(tmp_path / "y", np.float32, "w+", shape=x.shape)[1:]  # not complete pages: it is copied back
    y = made if kind is np.memmap else np.zeros(x.size - 1, np.float32).view(kind)
    metal(ADD).add(x, y, 1)
    assert (np.asarray(y) == 2).all()


def test_copies_of_a_call_are_reported() -> None:
    """The measurement states the copies, because the GPU's clock does not count them."""
    add = metal(ADD).add
    x, within = pages(), pages(2)[1:][: PAGE // 4]
    there = f"{nbytes(PAGE)} to the device"
    said = "not counted: the call copies NumPy's arrays, {}; arrays of metalnb, mnb.array(x), stay on the device"
    assert copy_notes(add.prepare(x, pages(), 1)) == ()
    assert copy_notes(add.prepare(within, x, 1)) == (said.format(there),)
    assert copy_notes(add.prepare(x, within, 1)) == (said.format(f"{there} and {nbytes(PAGE)} back"),)
    held = mnb.array(within, device="metal")
    assert copy_notes(add.prepare(held, held, 1)) == ()
    assert copy_notes(add.prepare(mnb.asarray(within, device="metal"), held, 1)) == (said.format(there),)


def test_memory_beyond_metals_limit_raises_memory_error(engine: MetalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError, match="at most 17,179,869,184"):
        engine.alloc((1 << 34) + 1)
    monkeypatch.setattr(MTLDevice, "newBufferWithLength_options_", lambda *_: None)
    with pytest.raises(MemoryError, match="Metal has no 64 bytes"):
        engine.alloc(64)


def test_allocation_of_zero_bytes_is_valid(engine: MetalEngine) -> None:
    memory = engine.alloc(0)
    assert (memory.nbytes, memory.buffer.length()) == (0, 1)
