"""The tuner: what it tries, what it rejects, and what later calls and processes remember."""

import dataclasses
import math
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb import cache
from metalnb import engine as engines
from metalnb.call import tuned_threadgroups as tuned
from metalnb.widgets.bound_call import bound_call
from metalnb.widgets.tune import hopeless_trials
from metalnb.widgets.tune.overrun_check import GuardedArguments, differs
from metalnb.widgets.tune.sweep import Sweep
from metalnb.widgets.tune.sweep_view import sweep_html

pytestmark = pytest.mark.usefixtures("no_other_engine")

SOURCE = """
#include <metal_stdlib>
using namespace metal;

constant uint WORK [[function_constant(0)]];
constant bool TWICE [[function_constant(1)]];

// Slow in small threadgroups: each of them does the same work once.
kernel void grouped(device const float* x, device float* y, uint i [[thread_position_in_grid]],
                    uint l [[thread_position_in_threadgroup]]) {
    float sum = 0;
    if (l == 0) { for (uint k = 0; k < 5000; ++k) { sum += fract(float(k) * x[i]); } }
    y[i] = x[i] + (sum < 0 ? 1 : 0);
}

// Counts on threadgroups of 64.
kernel void partial(device const float* x, device float* out, uint i [[thread_position_in_grid]],
                    uint l [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]],
                    uint n [[threads_per_threadgroup]]) {
    threadgroup float s[1024];
    s[l] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (l == 0) { float sum = 0; for (uint k = 0; k < n; ++k) sum += s[k]; out[g] = sum; }
}

kernel void working(device float* y, uint i [[thread_position_in_grid]]) {
    float sum = y[i];
    for (uint k = 0; k < WORK; ++k) sum = fract(sum * 1.7f + 0.3f);
    y[i] = TWICE ? y[i] + 2 : y[i] + 1 + (sum < 0 ? 1 : 0);
}

kernel void plane(device float* y, uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    y[i.y * n.x + i.x] += 1;
}
"""


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(SOURCE, constants={"WORK": 1, "TWICE": False})


@pytest.fixture
def forgotten(program: mnb.Program) -> Any:
    """Discard the default threadgroups that a test applies."""
    yield
    for kernel in program.values():
        kernel.keep_threadgroup((1, 1, 1), None)


def swept(kernel: Any, *args: Any, **options: Any) -> Any:
    return mnb.tune(kernel, *args, **{"engines": [kernel.engine.name], **options}, run=False).run()


X = np.linspace(0, 1, 1 << 12, dtype=np.float32)


def test_best_configuration_does_the_least_work(program: mnb.Program, forgotten: None) -> None:
    y = np.zeros_like(X)
    tuner = swept(program.grouped, X, y, threadgroup=[1, 4, 1024, 2048, (32, 64)])
    assert tuner.best.threadgroup == (1024,)
    assert (tuner.done, len(tuner.trials), tuner.running) == (5, 5, False)
    assert [t.threadgroup for t in tuner.failures] == [(2048,), (32, 64)]
    assert all("2048 threads; Metal allows 1024" in t.error for t in tuner.failures)
    assert tuner.trials[0].seconds > tuner.best.seconds
    assert tuner.gain > 1  # 1024 threads per threadgroup do a quarter of the work that 256, the default, do
    assert (y == 0).all(), "the user's arrays are never changed"
    assert "best: threadgroup 1,024" in tuner.text()
    assert tuner.html().count("metalnb-best") == 1 + 1  # one cell, and its style


def test_arrays_of_a_device_are_copied_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.REGISTRY, "toy", "toy_engine")
    text = """kernel void scale(device const float* x, device float* y, constant float& a,
                                uint i [[thread_position_in_grid]]) { y[i] = a * x[i]; }"""
    scale = mnb.compile(text, engine="toy").scale
    x = mnb.asarray(np.arange(8, dtype=np.float32), device="toy")
    y = mnb.asarray(np.full(8, 3, np.float32), device="toy")
    scale(x, y, 2.0)  # the device's contents now differ from the host's view
    call = bound_call("t", scale, (x, y[2:], 5.0), {"grid": 6})
    assert np.array_equal(call.parts[1].value, 2 * np.arange(2, 8))
    call.dispatch().run()
    assert np.array_equal(call.parts[1].value, 5 * np.arange(6))
    assert np.array_equal(y.read(), 2 * np.arange(8))


def test_incompatible_threadgroup_is_never_best(program: mnb.Program) -> None:
    tuner = swept(program.partial, X, np.zeros(64, np.float32), grid=4096, threadgroup=[32, 128])
    shared = program.partial.engine.caps.offsets  # otherwise the engine copies an array without the bytes after it
    differs = "writes different results to 'out'"
    checked = program.partial.engine.name == "cpu"
    past = "partial, cell" if checked else "writes past the end of 'out'" if shared else differs
    assert [t.error.split(":23:" if checked and n == 0 else " (")[0] for n, t in enumerate(tuner.trials)] == [
        past, differs,
    ]  # fmt: skip
    assert tuner.best is tuner.baseline
    assert "no configuration is faster" in tuner.text()
    arguments = {"grid": 4096, "threadgroup": 64}
    recipe = program.recipe
    plain = mnb.compile(recipe.source, constants=recipe.constants, engine=recipe.engine, checked=False)
    call = bound_call("t", plain.partial, (X, np.zeros(64, np.float32)), arguments)
    guarded = GuardedArguments(call)
    call.dispatch(guarded.values).run()
    assert guarded.find_overrun() == ""
    np.testing.assert_allclose(guarded.results()["out"], X.astype(float).reshape(64, 64).sum(1), rtol=1e-5)
    expected = guarded.results()
    for group, beyond, other in ((32, "out" if shared else "", "out"), (128, "", "out"), (64, "", "")):
        guarded.reset()
        call.dispatch(guarded.values, threadgroup=group).run()
        assert (guarded.find_overrun(), guarded.find_difference(expected)) == (beyond, other)
        assert guarded.find_overrun() == "", "reported once"


def test_constants_are_swept_and_only_the_same_results_count(program: mnb.Program, forgotten: None) -> None:
    y = np.zeros(256, np.float32)
    options = {"threadgroup": [64], "constants": {"WORK": [1, 20000], "TWICE": [False, True]}}
    tuner = swept(program.working, y, **options)
    assert [(t.constants, bool(t.error)) for t in tuner.trials] == [
        ({"WORK": 1, "TWICE": False}, False), ({"WORK": 1, "TWICE": True}, True),
        ({"WORK": 20000, "TWICE": False}, False), ({"WORK": 20000, "TWICE": True}, True),
    ]  # fmt: skip
    assert "different results to 'y'" in tuner.failures[0].error
    taken = swept(program.working, y, check=False, **options)
    assert taken.failures == []
    slow = mnb.compile(SOURCE, constants={"WORK": 20000, "TWICE": False}).working
    found = swept(slow, y, threadgroup=[64], constants={"WORK": [1]})
    assert found.best.constants == {"WORK": 1}
    applied = found.apply()
    assert applied.program.constants == {"WORK": 1, "TWICE": False}
    assert applied is program.working
    assert applied.tuned == {1: (64, 1, 1)}
    assert slow.tuned == {}


def test_applied_threadgroup_is_the_default_for_grids_of_its_rank(
    program: mnb.Program, forgotten: None
) -> None:
    kernel = program.plane
    image = np.zeros((40, 50), np.float32)
    assert kernel.prepare(image).threadgroup == (32, 8, 1)
    tuner = swept(kernel, image, threadgroup=[(16, 4)])
    tuner.trials = [t for t in tuner.trials if t.threadgroup == (16, 4)]
    tuner.baseline = tuner.trials[0]  # which one is fastest does not matter here
    assert tuner.apply() is kernel
    assert kernel.prepare(image).threadgroup == (16, 4, 1)
    assert kernel.prepare(image, threadgroup=(8, 8)).threadgroup == (8, 8, 1)
    assert kernel.prepare(image[:3, :].copy()).threadgroup == (16, 3, 1), "never larger than the grid"
    assert kernel.prepare(image, grid=2000).threadgroup == (256, 1, 1), "another number of dimensions"
    kernel(image)
    assert (image == 1).all()
    kernel.keep_threadgroup((1, 1, 1), None)
    assert kernel.prepare(image).threadgroup == (32, 8, 1)


def test_applied_configuration_is_found_by_content_in_another_process(empty_cache: dict[str, str]) -> None:
    script = """
import sys, numpy as np, metalnb as mnb
text = "kernel void f(device float* y, uint i [[thread_position_in_grid]]) { y[i] += %s; }"
one, other = mnb.compile(text % 1, name=sys.argv[1]).f, mnb.compile(text % 2).f
y = np.zeros(4096, np.float32)
if sys.argv[2:]:
    one.keep_threadgroup((4096, 1, 1), (128, 1, 1))
print(one.prepare(y).threadgroup[0], other.prepare(y).threadgroup[0])
"""

    def run(*args: str) -> str:
        command = [sys.executable, "-c", script, *args]
        return subprocess.run(command, env=empty_cache, text=True, capture_output=True, check=True).stdout

    assert run("first", "sweep").split() == ["128", "256"]
    assert run("elsewhere").split() == ["128", "256"]


@pytest.mark.parametrize("damage", [b"", b"[1]", b"{}", b'{"1": [0, 1, 1]}', b'{"1": [64, 64, 1]}', b'{"1": [8]}'])
def test_damaged_record_is_ignored(program: mnb.Program, damage: bytes) -> None:
    cache.store().put("ab" * 20, "tuned", damage)
    assert tuned.recall("ab" * 20) == {}


def test_sweep_in_a_thread_pauses_and_resumes(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, told = threading.Event(), threading.Event()
    tried = Sweep._try

    def held(sweep: Sweep, *given: Any) -> Any:
        if sweep.done >= 2:  # the baseline is tried before any other
            reached.set()
            assert told.wait(300)
        return tried(sweep, *given)

    monkeypatch.setattr(Sweep, "_try", held)
    tuner = mnb.tune(program.grouped, X, X.copy(), threadgroup=[64, 128, 256] * 10)
    assert reached.wait(300)
    assert tuner.running
    tuner.stop()
    told.set()
    tuner.wait(300)
    assert not tuner.running
    stopped = tuner.done
    assert 2 <= stopped < 30
    assert [t.timing is None for t in tuner.trials] == [False] * stopped + [True] * (30 - stopped)
    assert f"{stopped} of 30 configurations" in tuner.text()
    tuner.trials[stopped + 1 :] = []
    tuner.start().wait(300)
    assert tuner.done == len(tuner.trials) == stopped + 1


def test_error_that_ends_a_sweep_is_shown(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_call: Any) -> None:
        raise MemoryError("no room for copies")

    monkeypatch.setattr("metalnb.widgets.tune.sweep.GuardedArguments", none)
    tuner = mnb.tune(program.plane, np.zeros((4, 4), np.float32), threadgroup=[(4, 4)]).wait(300)
    assert (tuner.error, tuner.done, tuner.running) == ("MemoryError: no room for copies", 0, False)
    for shown in (tuner.text(), tuner.html()):
        assert "MemoryError: no room for copies" in shown
    with pytest.raises(MemoryError):
        tuner.run()
    monkeypatch.undo()
    assert tuner.start().wait(300).best is not None
    assert tuner.error == ""


def test_the_widget_follows_the_sweep(program: mnb.Program, forgotten: None) -> None:
    tuner = mnb.tune(program.plane, np.zeros((64, 64), np.float32), threadgroup=[(8, 8), (64, 64)], run=False)
    _ = tuner.widget
    shown = tuner._controls
    assert (shown.progress.value, shown.progress.max, shown.apply.disabled) == (0, 2, True)
    tuner.run()
    assert (shown.progress.value, shown.progress.bar_style, shown.toggle.disabled) == (2, "success", True)
    assert "4096 threads; Metal allows 1024" in shown._view.value
    shown.apply.click()
    assert "by default" in shown._note.value
    assert set(program.plane.tuned) == {2}


def test_tuner_without_results_cannot_be_applied(program: mnb.Program) -> None:
    idle = mnb.tune(program.plane, np.zeros((4, 4), np.float32), threadgroup=[4], run=False)
    with pytest.raises(mnb.LaunchError, match=r"no configuration has run yet. Call run\(\)"):
        idle.apply()
    assert idle.best is None
    assert "0 of 1" in idle.text()


REFUSED: dict[str, tuple[Callable[[mnb.Program], Any], str]] = {
    "no kernel": (lambda p: mnb.tune(abs, 1), "tune: takes a kernel .* got builtin_function_or_method"),
    "no kernel, and a function": (lambda p: mnb.tune(abs, 1, grid=lambda WORK: WORK), "tune: takes a kernel"),
    "an unknown constant": (lambda p: mnb.tune(p.working, X, constants={"WRK": [1]}), "no .* 'WRK'; it has: WORK"),
    "a value that does not fit": (lambda p: mnb.tune(p.working, X, constants={"WORK": [-1]}), "WORK"),
    "no list of values": (lambda p: mnb.tune(p.working, X, constants={"WORK": 3}), "list of values to try; got 3"),
    "no values": (lambda p: mnb.tune(p.working, X, constants={"WORK": []}), r"list of values to try; got \[\]"),
    "no threadgroups": (lambda p: mnb.tune(p.working, X, threadgroup=[]), r"list of threadgroups to try; got \[\]"),
    "one threadgroup": (lambda p: mnb.tune(p.working, X, threadgroup=64), "list of threadgroups to try; got 64"),
    "no threadgroup": (lambda p: mnb.tune(p.working, X, threadgroup=["a"]), r"whole numbers of threads.*got \('a',\)"),
    "zero threads": (lambda p: mnb.tune(p.working, X, threadgroup=[(8, 0)]), r"got \(8, 0\)"),
    "far too many": (lambda p: mnb.tune(p.working, X, constants={"WORK": range(5000)}, threadgroup=[1]), "5,000 conf"),
    "far too many for memory": (
        lambda p: mnb.tune(p.working, X, constants={"WORK": range(10**9)}, threadgroup=range(1, 10**9)),
        "tune: 999,999,999,000,000,000 configurations are too many; the limit is 4,096",
    ),
    "far too many for a function": (
        lambda p: mnb.tune(p.working, X, constants={"WORK": range(5000)}, threadgroup=lambda WORK: 1 + WORK % 2),
        "5,000 configurations",
    ),
    "a bad call": (lambda p: mnb.tune(p.working, X.astype(int)), "device float"),
    "an empty grid": (lambda p: mnb.tune(p.working, X[:0]), "is empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_sweeps_are_refused_before_anything_runs(program: mnb.Program, case: str) -> None:
    attempt, message = REFUSED[case]
    with pytest.raises(mnb.MetalnbError, match=message):
        attempt(program)


@pytest.mark.parametrize(
    ("found", "expected", "result"),
    [
        (np.float32([1, 2]), np.float32([1, 2.0005]), False),
        (np.float32([1, 2]), np.float32([1, 2.01]), True),
        (np.float32([1e-6, 2]), np.float32([0, 2]), False),
        (np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), False),
        (np.float32([np.nan, 1]), np.float32([1, 1]), True),
        (np.int32([1, 2]), np.int32([1, 3]), True),
        (np.float16([1]), np.float16([1.01]), False),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), np.ones(2, [("a", "f4"), ("b", "i4")]), True),
    ],
)
def test_results_differ_by_more_than_their_order_explains(found: Any, expected: Any, result: bool) -> None:
    assert differs(found, expected) is result


def test_the_heat_map_has_a_row_for_each_y_and_names_what_failed(program: mnb.Program) -> None:
    tuner = swept(program.plane, np.zeros((64, 64), np.float32), threadgroup=[(8, 8), (16, 8), (8, 4), (64, 64)])
    html = tuner.html()
    rows = re.findall(r"<tr><th>(.*?)</th>", html)
    assert rows == ["y \\ x", "4", "8", "64"]
    assert html.count(">refused</td>") == 1
    assert html.count("µs</td>") + html.count("ns</td>") + html.count("ms</td>") == 3


def test_default_configuration_has_no_gain_over_itself(program: mnb.Program, forgotten: None) -> None:
    """It is measured once, wherever it is listed; a trial that is slower, or faster only by noise, does not win."""
    tuner = swept(program.plane, np.ones((64, 64), np.float32), threadgroup=[(8, 8), (32, 8), (16, 8)])
    place = next(i for i, t in enumerate(tuner.trials) if t.threadgroup == tuner.baseline.threadgroup)
    assert tuner.trials[place].timing is tuner.baseline.timing
    in_full = swept(program.plane, np.ones((64, 64), np.float32), threadgroup=[(*tuner.baseline.threadgroup, 1)])
    assert in_full.trials[0].timing is in_full.baseline.timing

    def lasting(trial: Any, seconds: float) -> Any:
        return dataclasses.replace(trial, timing=dataclasses.replace(trial.timing, seconds=(seconds,) * 8))

    tuner.baseline, tuner.ratios = lasting(tuner.baseline, 1e-6), ()
    for others, best in ((2e-6, tuner.baseline), (0.99e-6, tuner.baseline), (0.5e-6, tuner.trials[1 - (place == 1)])):
        tuner.trials[:] = [lasting(t, others if i != place else 3e-6) for i, t in enumerate(tuner.trials)]
        assert tuner.best is not None
        assert tuner.best.threadgroup == best.threadgroup
    assert tuner.gain == pytest.approx(2)
    tuner.trials[:] = [lasting(t, 2e-6) for t in tuner.trials]
    assert tuner.gain == 1
    assert "the unchanged kernel; no configuration is faster" in tuner.text()


@pytest.mark.parametrize(("others", "faster"), [(0.99e-6, True), (2e-6, False)])
def test_speedups_within_noise_are_labeled_as_noise(
    program: mnb.Program, forgotten: None, others: float, faster: bool,
) -> None:  # fmt: skip
    tuner = swept(program.plane, np.ones((64, 64), np.float32), threadgroup=[(8, 8), (32, 8), (16, 8)])

    def lasting(trial: Any, seconds: float) -> Any:
        return dataclasses.replace(trial, timing=dataclasses.replace(trial.timing, seconds=(seconds,) * 8))

    as_it_is = tuner.baseline.threadgroup
    tuner.baseline = lasting(tuner.baseline, 1e-6)
    tuner.trials[:] = [lasting(t, others if t.threadgroup != as_it_is else 3e-6) for t in tuner.trials]
    shown = f"{tuner.text()}\n"
    assert ("no configuration is faster beyond noise" in shown) == faster
    assert shown.count("  within noise\n") == 2 * faster
    assert sweep_html(tuner).count(", which is within noise") == 2 * faster


ROWS = """
constant uint EACH [[function_constant(0)]];

kernel void sums(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    float sum = 0;
    for (uint k = 0; k < EACH; ++k) sum += x[i * EACH + k];
    out[i] = sum;
}
kernel void add_one(device const float* x, device float* y, uint i [[thread_position_in_grid]],
                    uint n [[threads_per_grid]]) {
    for (uint k = 0; k < EACH; ++k) y[i + k * n] = EACH == 3 ? 0 : x[i + k * n] + 1;
}
"""


def test_a_launch_may_depend_on_the_constants() -> None:
    program = mnb.compile(ROWS, constants={"EACH": 1})
    n = X.size
    launch = {"grid": lambda EACH: n // EACH, "shapes": lambda EACH: {"out": n // EACH}}
    tuner = swept(program.sums, X, threadgroup=[(64,)], constants={"EACH": [1, 4, 16]}, **launch)
    assert not tuner.failures
    assert [t.timing.grid for t in tuner.trials] == [(n,), (n // 4,), (n // 16,)]
    numpy = swept(program.sums, X, threadgroup=[(64,)], constants={"EACH": list(np.array([1, 4]))}, **launch)
    assert "64, EACH = 4 " in numpy.text()


def test_a_threadgroup_may_depend_on_the_constants() -> None:
    kernel = mnb.compile(ROWS, constants={"EACH": 2}).sums
    options = {"grid": 64, "threadgroup": lambda EACH: (32 * EACH,), "constants": {"EACH": [1, 2]}, "check": False}
    assert [t.threadgroup for t in swept(kernel, X, **options).trials] == [(32,), (64,)]
    with pytest.raises(mnb.ArgumentError, match="parameter 'TILE', which is not a constant; the constants are: EACH"):
        mnb.tune(kernel, X, grid=lambda TILE: TILE)
    with pytest.raises(mnb.ArgumentError, match=r"must have named parameters; got <built-in function max>\. Pass a l"):
        mnb.tune(kernel, X, grid=max)


def test_a_launch_function_may_take_all_constants() -> None:
    kernel = mnb.compile(ROWS, constants={"EACH": 2}).sums
    options = {"grid": 64, "threadgroup": lambda **c: (32 * c["EACH"],), "constants": {"EACH": [1, 2]}, "check": False}
    assert [t.threadgroup for t in swept(kernel, X, **options).trials] == [(32,), (64,)]


def test_a_call_sized_in_threadgroups_keeps_their_number(forgotten: None) -> None:
    rows = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void rows(device const float* x, device float* y, uint g [[threadgroup_position_in_grid]],
                     uint l [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
        for (uint k = l; k < 500; k += n) y[g * 500 + k] = 2 * x[g * 500 + k];
    }""").rows
    x = np.arange(1500, dtype=np.float32)
    tuner = swept(rows, x, np.zeros_like(x), groups=3, threadgroup=[32, 64, 1024])
    assert tuner.failures == []
    assert {t.threadgroup for t in tuner.trials} >= {(32,), (64,), (1024,)}
    assert "3 threadgroups · " in str(tuner.text())
    for one in (1, (1,)):
        assert "groups" not in str(swept(rows, x, np.zeros_like(x), groups=one, threadgroup=[64]).text())
    # Also by default, although the call's own grid is too small for threadgroups of 1024.
    assert (1024,) in {t.threadgroup for t in mnb.tune(rows, x, np.zeros_like(x), groups=3, run=False).trials}


def test_reference_replaces_the_baseline_as_judge() -> None:
    kernel = mnb.compile(ROWS, constants={"EACH": 3}).add_one  # writes zeros
    y = np.zeros_like(X)
    options = {"threadgroup": [(64,)], "constants": {"EACH": [1, 2]}, "grid": lambda EACH: X.size // EACH}
    right = swept(kernel, X, y, **options, reference=X + 1)
    assert not right.failures
    assert right.best in right.trials, "the unchanged kernel is wrong"
    assert "the unchanged kernel failed: writes different results to 'y'" in right.text()
    wrong = swept(kernel, X, y, **options, reference={"y": X + 2}).failures
    assert [t.error for t in wrong] == ["writes different results to 'y' (check=False accepts them)"] * 2
    with pytest.raises(mnb.ArgumentError, match="for each of the arrays it writes: y"):
        mnb.tune(kernel, X, y, **options, reference={"x": X})


def test_the_gain_is_a_median_with_an_interval(program: mnb.Program) -> None:
    tuner = swept(program.grouped, X, threadgroup=[(4,), (512,)])
    assert tuner.best.threadgroup != (4,)
    tuner.baseline = next(trial for trial in tuner.trials if trial.threadgroup == (4,))
    tuner.ratios = (1.5, 1.1, 1.9, 1.0, 1.3, 1.8, 1.2, 1.4, 9.0)
    assert tuner.gain == 1.4
    assert tuner.interval == (1.1, 1.9)  # of nine, the second and the eighth: 1 - 2 (1 + 9) / 2^9 is 96 %


# Each configuration runs for 0.1 s on all cores; other tests decide the same from given times.
@pytest.mark.long
@pytest.mark.parametrize(("sure", "clock"), [(0.0, "wall"), (math.inf, "device")])
def test_far_slower_configuration_is_abandoned_after_one_run(
    sure: float, clock: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Here threadgroups of other sizes do ten thousand times the work, 0.1 s per run."""
    monkeypatch.setattr(hopeless_trials, "_SURE", sure)
    kernel = mnb.compile("""
    kernel void uneven(device const float* x, device float* y, uint i [[thread_position_in_grid]],
                       uint n [[threads_per_threadgroup]]) {
        float v = x[i];
        for (uint k = 0; k < (n == 256 ? 40u : 4000000u); ++k) v = v * 0.99f + 0.01f;
        y[i] = v;
    }""").uneven
    tuner = mnb.tune(kernel, np.ones(1 << 13, np.float32), check=False, run=False)
    assert tuner.trials[tuner._order[0]].threadgroup == (256,), "the usual ones first"
    assert sorted(tuner._order) == list(range(len(tuner.trials)))
    tuner.run()
    tried = {t.threadgroup[0]: t for t in tuner.trials}
    assert not tuner.failures
    assert not tried.pop(256).once
    for trial in tried.values():
        assert trial.once
        assert len(trial.timing.seconds) == 1
        assert trial.timing.clock == clock
    assert f"{len(tried)} given up after one run" in tuner.text()
    assert "given up after one run" in tuner.html()
    assert tuner.best is tuner.baseline


def test_sweep_stops_between_two_dispatches(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A measurement in progress when the sweep is stopped is discarded and repeated."""
    from metalnb.widgets.tune import sweep as module

    tuner = mnb.tune(program.grouped, X, threadgroup=[(64,), (512,)], run=False)
    usual = module.quick

    def stopped_meanwhile(*args: Any, **options: Any) -> Any:
        if args[0].threadgroup[0] == 512:
            tuner.stop()
        return usual(*args, **options)

    monkeypatch.setattr(module, "quick", stopped_meanwhile)
    tuner.run()
    assert tuner.done == 1
    monkeypatch.setattr(module, "quick", usual)
    tuner.run()
    assert tuner.done == 2
    assert not tuner.failures


def test_many_columns_are_transposed(program: mnb.Program) -> None:
    tuner = mnb.tune(program.grouped, X, threadgroup=[(32 * k,) for k in range(1, 15)], run=False)
    head = re.search(r"<thead>.*?</thead>", tuner.html(), re.DOTALL)
    assert head
    assert head[0].count("<th>") == 2
    assert tuner.html().count("<tr>") == 15


def test_a_configuration_that_is_refused_is_a_row_and_the_sweep_goes_on() -> None:
    """A launch option's function may raise or return no threadgroup; the compiler or the launch may refuse it."""
    kernel = mnb.compile(ROWS, constants={"EACH": 1}).sums

    def grid(EACH: int) -> int:
        if EACH == 3:
            raise ValueError("3 does not divide 4096")
        return X.size // EACH

    threadgroup = {1: 64, 2: 0, 3: 64, 4: 2048, 8: 128}
    options = {"constants": {"EACH": [*threadgroup]}, "shapes": lambda EACH: {"out": X.size // EACH}, "grid": grid}
    tuner = swept(kernel, X, threadgroup=lambda EACH: threadgroup[EACH], **options)
    assert tuner.done == 5
    assert [t.constants["EACH"] for t in tuner.trials if t.timing] == [1, 8]
    said = {t.constants["EACH"]: t.error for t in tuner.failures}
    assert said[2].startswith("sums: threadgroup is 1 to 3 whole numbers")
    assert said[3] == "ValueError: 3 does not divide 4096"
    assert "2048 threads; Metal allows 1024" in said[4]
    for trial in tuner.failures:
        name = f"EACH = {trial.constants['EACH']}"
        assert re.search(rf"^  .*{name} +refused: {re.escape(trial.error)}$", tuner.text(), re.MULTILINE)
        assert f"<td>refused: {trial.error}</td></tr>" in tuner.html()
    assert tuner.html().count(">refused</td>") == 3


def test_sizes_that_an_array_of_the_kernel_has_no_room_for_are_refused_and_the_others_run() -> None:
    """The default threadgroup is one of the sizes refused."""
    kernel = mnb.compile("""#include <metal_stdlib>
using namespace metal;
kernel void tiles(device const float* x, device float* y, uint i [[thread_position_in_grid]],
                  uint l [[thread_position_in_threadgroup]]) {
    threadgroup float w[64];
    w[l] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = w[l];
}""").tiles  # fmt: skip
    tuner = swept(kernel, X, threadgroup=[32, 64, 128, 256])
    assert [bool(trial.timing) for trial in tuner.trials] == [True, True, False, False]
    assert "at most 64 threads" in tuner.failures[0].error


def test_a_click_on_the_map_applies_that_configuration(program: mnb.Program, forgotten: None) -> None:
    tuner = mnb.tune(program.plane, np.zeros((64, 64), np.float32), threadgroup=[(8, 8), (4, 4), (64, 64)], run=False)
    _ = tuner.widget
    shown = tuner._controls
    assert 'data-metalnb-at="' not in shown._view.value, "nothing ran"
    tuner.run()
    assert re.findall(r'data-metalnb-at="(\d+)"', shown._view.value) == ["1", "0"]
    assert 'title="4 × 4: ' in shown._view.value
    shown.events._on_message(None, {"event": "click", "index": 1}, [])
    assert tuner.applied is program.plane
    assert program.plane.tuned == {2: (4, 4, 1)}
    assert "plane now uses threadgroup 4 × 4 by default" in shown._note.value
    shown.events._on_message(None, {"event": "click", "index": 2}, [])
    assert "this configuration was refused" in shown._note.value
    assert program.plane.tuned == {2: (4, 4, 1)}
    assert 'data-metalnb-at="' not in tuner.html(), "a saved picture cannot be clicked"
