"""A measurement: its figures, what it counts, what it leaves unchanged, and how it reads."""

from __future__ import annotations

import functools
import json
import re
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from measuring.example_timing import CHAIN, TIMING
from metal_module import metal_module
from opened_engines import open_as

import metalnb as mnb
from metalnb.engine import engine_choice as engines
from metalnb.engine.metal.metalcompute_path import open_engine
from metalnb.profiling.cost_findings import findings
from metalnb.profiling.time_bounds import describe_bottleneck
from metalnb.timing import sampling
from metalnb.timing.bottleneck import bottleneck
from metalnb.timing.records import Traffic
from metalnb.timing.traffic import copy_notes
from metalnb.widgets.quick_timing import quick

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) {
    y[i] = a * x[i] + y[i];
}
kernel void copy(device const float* x, device float* y, device const float* unused, constant float2& two,
                 uint i [[thread_position_in_grid]]) { y[i] = x[i] + two.x; }
kernel void spread(device float* y, threadgroup float* tile, uint2 p [[thread_position_in_grid]],
                   uint2 size [[threads_per_grid]], uint lane [[thread_index_in_simdgroup]]) {
    tile[0] = 0;
    y[p.y * size.x + p.x] = simd_sum(1.0f) + lane;
}
static void into(device float* y, uint i) { y[i] = 1; }
kernel void helped(device float* y, uint i [[thread_position_in_grid]]) { into(y, i); }
""" + CHAIN


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a few milliseconds; the figures do not matter here."""
    monkeypatch.setattr(sampling, "TOTAL", 0.005)
    monkeypatch.setattr(sampling, "BATCH", 0.001)


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(SOURCE)


def arrays(n: int = 4096) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float32), np.ones(n, np.float32)




def test_figures_are_computed_from_the_times() -> None:
    assert (TIMING.median, TIMING.best) == (3e-3, 1e-3)
    assert (TIMING.p20, TIMING.p80) == pytest.approx((1.8e-3, 4.2e-3))
    assert TIMING.spread == pytest.approx(0.8)
    assert TIMING.bandwidth == pytest.approx(8e9)
    assert TIMING.share == pytest.approx(0.8)
    assert TIMING.throughput == pytest.approx(1e9)
    assert TIMING.intensity == pytest.approx(0.125)
    bare = replace(TIMING, bytes=None, flops=None)
    assert (bare.bandwidth, bare.share, bare.throughput, bare.intensity) == (None,) * 4


def test_quantiles_match_numpy(rng: np.random.Generator) -> None:
    for n in (1, 2, 5, 8):
        timing = replace(TIMING, seconds=tuple(rng.random(n).tolist()))
        parts = (timing.best, timing.p20, timing.median, timing.p80)
        assert parts == pytest.approx(np.quantile(timing.seconds, (0, 0.2, 0.5, 0.8)).tolist())
        assert {type(part) for part in parts} == {float}  # JSON has no NumPy scalars


def test_timing_is_equal_after_json() -> None:
    assert mnb.Timing.from_json(json.loads(json.dumps(TIMING.to_json()))) == TIMING
    with pytest.raises((KeyError, TypeError)):
        mnb.Timing.from_json({"kernel": "k"})




def test_a_kernel_is_measured(program: mnb.Program) -> None:
    x, y = arrays()
    timing = mnb.measure(program.saxpy, x, y, a=2.5, threadgroup=64, flops=2 * x.size)
    assert (timing.kernel, timing.engine) == ("saxpy", program.engine.name)
    assert (timing.grid, timing.threadgroup) == ((4096,), (64,))
    assert timing.arguments == {"x": "float32 (4096,)", "y": "float32 (4096,)", "a": "2.5"}
    assert len(timing.seconds) >= 5
    assert 0 < timing.best <= timing.p20 <= timing.median <= timing.p80
    assert timing.empty > 0
    assert timing.cold > 0
    assert timing.bytes == 12 * x.size
    assert timing.flops == 2 * x.size
    limits = mnb.limits()
    assert (timing.limit, timing.ceiling, timing.peak) == (limits.update, "update", limits.flops)


def test_a_hundred_times_the_work_takes_longer(program: mnb.Program) -> None:
    """By how much depends on the machine's load; benchmarks/timing.py compares times with the device's."""
    y = np.ones(1 << 14, np.float32)
    once, hundred = (mnb.measure(program.chain, y, rounds, cold=False).best for rounds in (200, 20_000))
    assert hundred > 5 * once


def test_arrays_are_left_as_they_were(program: mnb.Program) -> None:
    x, y = arrays()
    before = y.copy()
    mnb.measure(program.saxpy, x, y, a=2.0)
    np.testing.assert_array_equal(y, before)
    mnb.measure(program.saxpy, y, y, a=2.0, cold=False)  # one array for both
    np.testing.assert_array_equal(y, before)


def test_each_batch_starts_from_the_same_values(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = arrays(64)
    ready = program.saxpy.prepare(x, y, 1.0)
    seen = []
    run = sampling.DispatchJob.run

    def watched(job: sampling.DispatchJob, count: int) -> float:
        seen.append(y.copy())
        return run(job, count)

    monkeypatch.setattr(sampling.DispatchJob, "run", watched)
    mnb.measure(ready)
    assert len(seen) > 8
    assert all((s == 1).all() for s in seen)


def test_arrays_that_a_struct_points_to_are_left_as_they_were() -> None:
    kernel = mnb.compile("""struct Counts { device float* y; uint n; };
    kernel void count(constant Counts& c, uint i [[thread_position_in_grid]]) { if (i < c.n) c.y[i] += 1; }""",
        engine="cpu").count  # fmt: skip
    y = mnb.array(np.arange(64, dtype=np.float32), device="cpu")
    call = kernel.prepare({"y": y, "n": 64}, grid=64)
    mnb.measure(call, cold=True)
    mnb.compare(call, call)
    mnb.profile(call)
    quick(call)
    np.testing.assert_array_equal(np.asarray(y), np.arange(64))


def test_arrays_are_restored_after_an_interrupt(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = arrays(64)
    run = sampling.DispatchJob.run

    def broken(job: sampling.DispatchJob, count: int) -> float:
        run(job, count)
        assert job.dispatch.arguments[1][1] != 1
        raise KeyboardInterrupt

    monkeypatch.setattr(sampling.DispatchJob, "run", broken)
    with pytest.raises(KeyboardInterrupt):
        mnb.measure(program.saxpy, x, y, 1.0)
    assert (y == 1).all()


def test_outputs_may_be_left_out(program: mnb.Program) -> None:
    timing = mnb.measure(program.copy, x=arrays()[0], unused=arrays()[0], two=(1, 2), cold=False)
    assert timing.bytes == 2 * 4 * 4096
    assert timing.arguments["two"] == "(1, 2)"
    assert "'unused' counted as no bytes: the kernel does not use it" in timing.warnings


def test_an_array_of_structs_is_named_by_its_struct() -> None:
    struct = "struct P { float a; int b; };"
    text = struct + "kernel void k(device P* p, uint i [[thread_position_in_grid]]) { p[i].b = i; }"
    kernel = mnb.compile(text).k
    timing = mnb.measure(kernel, np.zeros((2, 3), kernel.program.dtype("P")), cold=False)
    assert timing.arguments == {"p": "P (2, 3)"}


def test_assumed_traffic_is_reported(program: mnb.Program) -> None:
    timing = mnb.measure(program.helped, arrays()[1], cold=False)
    assert timing.bytes == 4 * 4096
    assert "'y' counted as written only: pass bytes= (--bytes in a magic) if the kernel reads it too" in timing.warnings
    given = mnb.measure(program.helped, arrays()[1], cold=False, bytes=100)
    assert given.bytes == 100
    assert not [w for w in given.warnings if "counted" in w]


def test_threadgroups_that_go_across_rows_are_timed(program: mnb.Program) -> None:
    timing = mnb.measure(
        program.spread, np.zeros((33, 40), np.float32), threadgroup=(8, 8), threadgroup_memory={"tile": 64}, cold=False
    )
    assert (timing.grid, timing.threadgroup) == ((40, 33), (8, 8))
    assert timing.arguments["tile"] == "64 bytes"
    assert timing.median > 0


def test_a_callable_is_timed_by_the_wall_clock() -> None:
    calls = []

    def work(n: int) -> None:
        calls.append(n)

    timing = mnb.measure(work, 3, cold=False)
    assert (timing.kernel, timing.clock, timing.bytes, timing.arguments) == ("work", "wall", None, {"0": "3"})
    assert set(calls) == {3}
    assert len(calls) > 5
    given = mnb.measure(work, n=3, cold=False, bytes=1e6)
    assert (given.bytes, given.ceiling) == (1_000_000, "copy")
    assert "half of its bytes are assumed to be read and half written" in given.warnings


def test_dispatch_too_short_for_its_clock_has_finite_rates(
    program: mnb.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An Apple CPU's clock counts in steps of 41 ns."""
    known = mnb.limits()
    for module in ("timing.measure", "widgets.quick_timing"):
        monkeypatch.setattr(f"metalnb.{module}.limits", lambda engine: known)
    monkeypatch.setattr("metalnb.timing.measure.remeasure", lambda _: None)  # by this clock they would be wrong
    monkeypatch.setattr(type(program.engine), "timed", lambda *given: [0.0] * given[-1])
    call = program.chain.prepare(np.ones(1, np.float32), 1)
    timing = mnb.measure(call, flops=1, cold=False)
    assert (timing.median, timing.spread, timing.throughput) == pytest.approx((1e-9, 0, 1e9))
    assert "1.00 ns" in repr(timing)
    assert "1.00 ns" in timing._repr_html_()
    ax = timing.plot()
    assert ax.get_xlabel().startswith("ns ")
    plt.close(ax.figure)
    found = mnb.compare(call, call)
    assert found.ratio == 1
    assert "no difference" in found._repr_html_()
    assert "1.00 ns" in mnb.dashboard(program.chain, np.ones(1, np.float32), 1).text()


def test_argument_of_a_callable_is_named_in_a_line() -> None:
    class Lines:
        def __repr__(self) -> str:
            return "one\n  two"

    assert mnb.measure(lambda _: None, Lines(), cold=False).arguments == {"0": "one two"}


def test_callable_may_report_its_traffic() -> None:
    class Op:
        __name__ = "op"

        def __call__(self, n: int) -> None: ...

        def __metal_traffic__(self, n: int) -> Any:
            return {0: "nothing", 1: SimpleNamespace(bytes=8, flops=2)}.get(n, Traffic(8 * n, 4 * n, flops=2.0 * n))

    timing = mnb.measure(Op(), 100, cold=False)
    assert (timing.kernel, timing.bytes, timing.flops, timing.ceiling) == ("op", 1200, 200, "triad")
    one = mnb.measure(Op(), 1, cold=False)
    assert (one.bytes, one.flops, one.ceiling) == (8, 2, "copy")
    with pytest.raises(mnb.ArgumentError, match=r"op: __metal_traffic__ returns a Traffic, or .* got str"):
        mnb.measure(Op(), 0)


def test_arrays_of_the_engine_are_timed_to_the_end_of_their_dispatches(program: mnb.Program) -> None:
    x, y = (mnb.array(a) for a in arrays(1 << 16))
    timing = mnb.measure(program.saxpy, x, y, a=2.0)
    assert timing.bytes == 12 * x.size
    assert np.asarray(y).tolist() == [1] * y.size
    slow = mnb.array(np.ones(1 << 14, np.float32))
    job = sampling.CallJob(lambda: program.chain(slow, 20000), program.engine)  # started, and not waited for
    job.run(1)
    assert slow.block.ticket.elapsed() is not None  # done when the batch is done
    traffic = mnb.measure(functools.partial(mnb.add, x), y, cold=False)
    assert (traffic.kernel, traffic.bytes, traffic.clock) == ("add", 12 * x.size, "wall")


def test_cold_times_follow_a_flush(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(sampling, "_flusher", lambda engine: lambda: done.append("flush"))
    monkeypatch.setattr(sampling.DispatchJob, "run", lambda job, count: done.append(f"run {count}") or len(done))
    monkeypatch.setattr(sampling.DispatchJob, "restore", lambda job: done.append("restore"))
    x, y = arrays(8)
    assert sampling.cold(sampling.DispatchJob(program.saxpy.prepare(x, y, 1.0))) == 9  # the median of 3, 6, 9, 12, 15
    assert done == ["restore", "flush", "run 1"] * 5 + ["restore"]


def test_a_flush_touches_more_than_the_last_cache_holds(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    alloc = type(program.engine).alloc
    monkeypatch.setattr(type(program.engine), "alloc", lambda e, nbytes: made.append(alloc(e, nbytes)) or made[-1])
    for last, least in ((None, 1 << 27), (1 << 26, 1 << 28)):
        monkeypatch.setattr("metalnb.timing.machine.last_cache", lambda engine, last=last: last)
        sampling._flusher(program.engine)()
        flushed = np.frombuffer(made[-1], np.uint32)
        assert flushed.nbytes == least
        assert (flushed == 1).all()  # every word was read and written


REFUSED = {
    # request -> (the error, its message)
    "no kernel": (lambda p, x, y: mnb.measure("saxpy", x, y), mnb.ArgumentError, "takes a kernel, or a callable"),
    "too few": (lambda p, x, y: mnb.measure(p.saxpy, x, y), mnb.ArgumentError, "'a' [[buffer(2)]] is constant float&"),
    "empty grid": (lambda p, x, y: mnb.measure(p.saxpy, x, y, 1, grid=0), mnb.LaunchError, "(0, 1, 1) is empty"),
    "bound": (lambda p, x, y: mnb.measure(p.saxpy.prepare(x, y, 1), x), mnb.ArgumentError, "saxpy is already bound"),
    "negative": (lambda p, x, y: mnb.measure(p.saxpy, x, y, 1, bytes=-1), mnb.ArgumentError, "0 or more; got -1"),
    "a text": (lambda p, x, y: mnb.measure(p.saxpy, x, y, 1, flops="2"), mnb.ArgumentError, "0 or more; got '2'"),
    "nan": (lambda p, x, y: mnb.measure(p.saxpy, x, y, 1, flops=float("nan")), mnb.ArgumentError, "got nan"),
}


@pytest.mark.parametrize(("call", "error", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_is_refused(program: mnb.Program, call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=re.escape(said)):
        call(program, *arrays(8))


def test_a_callable_that_fails_fails_with_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError):
        mnb.measure(lambda: 1 / 0)




@pytest.fixture
def cpu() -> Any:
    found = engines.engines()
    if not found["cpu"].available:
        pytest.skip(found["cpu"].reason)
    return engines.named("cpu")


def test_the_device_clock_gives_each_run_its_time(cpu: Any) -> None:
    y = np.zeros(1 << 14, np.float32)
    ready = mnb.compile(SOURCE, engine="cpu").chain.prepare(y, 1)
    times = cpu.timed(ready.kernel.binary, ready.arguments, ready.grid, ready.threadgroup, 20)
    assert len(times) == 20
    assert min(times) > 0
    assert y[0] == pytest.approx(1 - 0.99**20, rel=1e-5)  # each ran, in order


def test_device_memory_is_restored_in_place_and_copies_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.REGISTRY, "toy", "toy_engine")
    engine: Any = engines.named("toy")

    def timed(binary: Any, arguments: Any, grid: Any, threadgroup: Any, count: int) -> list[float]:
        for _ in range(count):
            engine.launch(binary, arguments, grid, threadgroup).wait()
        return [1e-3] * count

    monkeypatch.setattr(engine, "caps", replace(engine.caps, clock="device"))
    monkeypatch.setattr(engine, "timed", timed, raising=False)
    limits = mnb.limits
    monkeypatch.setattr("metalnb.timing.measure.limits", lambda engine: limits(engine="cpu"))
    monkeypatch.setattr(sampling, "empty_dispatch", lambda _engine: 1e-6)
    text = """kernel void scale(device const float* x, device float* y, constant float& a,
                                uint i [[thread_position_in_grid]]) { y[i] = a * x[i]; }"""
    scale = mnb.compile(text, engine="toy").scale
    x = np.arange(8, dtype=np.float32)
    there, out = mnb.asarray(x, device="toy"), mnb.asarray(x + 5, device="toy")
    timing = mnb.measure(scale, there[2:], out[:6], 2.0, cold=False)
    assert np.array_equal(out.read(), x + 5)
    assert not any("copies" in said for said in timing.warnings)
    job = sampling.DispatchJob(scale.prepare(there[2:], out[1:7], 2.0))
    job.run(1)
    held = out.block.memory.handle[:32].view(np.float32)  # the device's own
    assert np.array_equal(held[1:7], 2 * x[2:])
    job.restore()
    assert np.array_equal(held, x + 5)
    timing = mnb.measure(scale, x, x + 5, 2.0, cold=False)
    assert timing.warnings[-1].startswith(
        "not counted: the call copies NumPy's arrays, 64 B to the device and 32 B back"
    )


def test_an_engine_without_a_clock_works_on_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_engine(module=metal_module())
    open_as(monkeypatch, {"metal:metalcompute": opened})
    limits = mnb.limits
    monkeypatch.setattr("metalnb.timing.measure.limits", lambda engine: limits(engine="cpu"))
    saxpy = mnb.compile(SOURCE, engine="metal:metalcompute").saxpy
    x, y = arrays()
    job = sampling.DispatchJob(saxpy.prepare(x, y, 2.0))
    assert job.clock == "wall"
    (said,) = copy_notes(job.called)  # as the call would; the timed runs use copies made before
    assert said.startswith("not counted: the call copies NumPy's arrays, ")
    assert copy_notes(job.dispatch) == ()
    places, results = opened._staging.bind("saxpy", [(p.writable, a) for p, a in zip(
        saxpy.signature.params, job.dispatch.arguments, strict=True)])  # fmt: skip
    assert not results  # nothing is copied back: the arguments are the device's own buffers
    assert len({id(p.memory) for p in places}) == 3
    np.testing.assert_array_equal(job.dispatch.arguments[0], x)
    job.run(2)
    np.testing.assert_array_equal(job.dispatch.arguments[1], 1 + 4 * x)
    job.restore()
    np.testing.assert_array_equal(job.dispatch.arguments[1], y)
    timing = mnb.measure(saxpy, x, y, 2.0, cold=False)
    assert (timing.clock, timing.engine) == ("wall", "metal:metalcompute")
    assert said in timing.warnings
    assert (y == 1).all()




def test_a_busy_machine_and_unsteady_times_warn(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    from metalnb.timing.measure import _warnings

    found = replace(mnb.limits(), others=0.0, spread=0.0)
    calm = replace(TIMING, seconds=(3e-3,) * 5)
    assert _warnings(calm, found, 0.05) == ()
    busy = "the limits were measured while the machine was busy: mnb.limits(again=True)"
    assert _warnings(calm, replace(found, others=0.9), 0.05) == (busy,)
    assert _warnings(calm, found, 0.5) == ("other programs used 50 % of the processors meanwhile",)
    assert _warnings(TIMING, found, 0.0) == ("the times spread over 80 % of the median",)
    assert _warnings(TIMING, found, 0.5)[0].endswith("median; other programs used 50 % of the processors meanwhile")
    (said,) = _warnings(replace(calm, limit=1e9), found, 0.0)
    assert said.startswith(f"faster than the limit of {found.date[:10]}")
    (said,) = _warnings(replace(calm, limit=1e9, cache=1 << 26), found, 0.0)
    assert said == "it moves 24.0 MB, and the last-level cache holds 67.1 MB; the limit is that of memory"
    (said,) = _warnings(replace(calm, clock="wall", empty=1.0), found, 0.0)
    assert "3.00 ms is the cost of launching" in said


def test_kernel_without_declared_work_is_counted(program: mnb.Program) -> None:
    spread = mnb.compile("""kernel void spread(device const float* x, device float* out,
        uint i [[thread_position_in_grid]]) { out[i] = x[i * 64 % 65536] * 2.0f; }""").spread
    x, out = np.zeros(1 << 16, np.float32), np.zeros(1 << 12, np.float32)
    timing = mnb.measure(spread, x, out, cold=False, counted=True)
    assert (timing.flops, timing.bytes) == (4096, 1024 * 32 + 4 * 4096)  # every 64th element of x: a sector each
    assert timing.counted[0].startswith("line 2: 32 lanes read 32 lines of 128 bytes (32 sectors of 32) of x and use 4")
    assert f"on a GPU: {timing.counted[0]}" in repr(timing)
    assert timing == mnb.Timing.from_json(json.loads(json.dumps(timing.to_json())))
    assert mnb.measure(spread, x, out, cold=False, counted=True, flops=1.0).flops == 1.0
    known = replace(TIMING, flops=1e6, peak=1e12, limit=1e12, counted=timing.counted)
    assert "what a GPU would wait for: line 2" in bottleneck(known).sentence
    nothing = replace(known, counted=(), most_needed="")
    assert "divergent branches, latency" in bottleneck(nothing).sentence


WELL = """kernel void well(device const float* x, device float* out, constant float& a,
    uint i [[thread_position_in_grid]]) {
    out[i] = a * x[i];
}"""


def test_no_advice_without_counts() -> None:
    """The advice once blamed divergent branches and uncoalesced accesses in a kernel known to have neither."""
    well = mnb.compile(WELL).well
    x, out = np.ones(1 << 13, np.float32), np.zeros(1 << 13, np.float32)
    call = {"grid": x.size, "threadgroup": 256}
    timed = functools.partial(mnb.measure, well, x, out, cold=False, bytes=1, flops=1, **call)

    def slow(timing: mnb.Timing, empty: float = 0.0) -> str:
        found = bottleneck(replace(timing, seconds=(1.0,), empty=empty, limit=1e9, peak=1e9))
        assert found.bound == "neither"
        return found.sentence

    guess = "divergent branches, latency"
    assert guess in slow(timed(a=2.0))  # nothing was counted
    profile = mnb.profile(well, x, out, 2.0, **call)
    assert findings(profile) == ()
    longest = "memory on an M2 and an NVIDIA H100 SXM (line 3)"
    longest += "; 32 threadgroups are fewer than the 132 processors of an NVIDIA H100 SXM"
    assert describe_bottleneck(profile) == longest
    timing = timed(a=2.0)
    assert (timing.counted, timing.most_needed) == ((), longest)
    assert timing == mnb.Timing.from_json(json.loads(json.dumps(timing.to_json())))
    said = f"counted, and nothing stands out; what a GPU would need longest, by a model: {longest}"
    assert slow(timing).endswith(said)
    assert "an empty dispatch alone takes 50 % of this time" in slow(timing, empty=0.5)
    assert "dispatch" not in slow(replace(timing, grid=()), empty=0.5)  # a function: no dispatch need be in it
    assert guess in slow(timed(a=3.0))  # another scalar: possibly another dispatch
    assert mnb.measure(well, x, out, 3.0, cold=False, counted=True, **call).most_needed == longest
    assert quick(well.prepare(x, out, 3.0, **call), 0.001).most_needed == longest


def test_bottleneck_depends_on_the_gpu() -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    both = mnb.profile(mnb.compile(WELL).well, x, out, 2.0, grid=64, threadgroup=64)
    longest = "memory on an M2 (line 3), loads and stores on an NVIDIA H100 SXM (line 3)"
    few = "; 1 threadgroup is fewer than the 10 processors of an M2 and the 132 processors of an NVIDIA H100 SXM"
    assert describe_bottleneck(both) == longest + few
    assert describe_bottleneck(replace(both, buffers=(), lines=())) == f"nothing{few}"


@pytest.mark.parametrize("module", ["sampling", "compare"])
def test_slow_measurements_report_progress(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    mnb.limits()  # measured now, if at all: that has a line of its own
    messages: list[str] = []
    monkeypatch.setattr("metalnb.timing.progress._writer", lambda _: messages.append)
    monkeypatch.setattr(f"metalnb.timing.{module}.PATIENCE", 0.0)

    def slow() -> None:
        time.sleep(0.02)

    if module == "sampling":
        mnb.measure(slow, cold=False)
    else:
        mnb.compare(slow, slow)
    parts = [int(text.split()[-2]) for text in messages[:-1]]
    assert messages[0].startswith("measuring" if module == "sampling" else "comparing")
    assert parts == sorted(parts)
    assert (parts[0], len(parts) > 4) == (0, True)
    assert messages[-1] == "", "the line is gone"
