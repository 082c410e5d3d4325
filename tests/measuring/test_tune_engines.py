"""The tuner on several engines: which it tries, in which order, what it abandons, and how it shows them."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from opened_engines import SecondEngine, open_only

import metalnb as mnb
from metalnb.errors import ArgumentError, EngineUnavailable
from metalnb.widgets.tune import hopeless_trials
from metalnb.widgets.tune import sweep as module
from metalnb.widgets.tune.hopeless_trials import is_hopeless_engine, time_if_hopeless
from metalnb.widgets.tune.trials import Trial

SOURCE = """
kernel void plane(device float* y, uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    y[i.y * n.x + i.x] += 1;
}
kernel void line(device const float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i]; }
"""
X = np.ones(4096, np.float32)


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(SOURCE, engine="cpu")


@pytest.fixture
def forgotten(program: mnb.Program, second_engine: str) -> Any:
    yield
    for kernel in (*program.values(), *program.on(second_engine).values()):
        kernel.keep_threadgroup((1, 1, 1), None)


def timed(seconds: float, **more: Any) -> Trial:
    one = mnb.Timing("k", "cpu", "d", "wall", (seconds,), 1, 0.0)
    return Trial((256,), timing=one, **more)


def lasting(monkeypatch: pytest.MonkeyPatch, seconds: dict[tuple[str, int], float]) -> None:
    """Set how long a configuration takes, by its engine and its threadgroup's x."""
    usual = module.quick

    def quick(dispatch: Any, *args: Any, **options: Any) -> Any:
        timing = usual(dispatch, *args, **options)
        took = seconds.get((dispatch.kernel.engine.name, dispatch.threadgroup[0]), 1e-3)
        return dataclasses.replace(timing, seconds=(took,) * 8)

    monkeypatch.setattr(module, "quick", quick)


@pytest.fixture
def tuner(program: mnb.Program, second_engine: str, monkeypatch: pytest.MonkeyPatch, forgotten: None) -> Any:
    """Return a finished sweep on two engines, of which the second is fastest with 512 threads."""
    lasting(monkeypatch, {(second_engine, 512): 1e-4})
    return mnb.tune(program.line, X, X.copy(), threadgroup=[64, 512, 256], run=False).run()


def test_kernels_own_engine_is_tried_first(tuner: Any, second_engine: str) -> None:
    assert [(t.engine, t.threadgroup) for t in tuner.trials] == [
        (engine, (n,)) for engine in ("cpu", second_engine) for n in (64, 512, 256)
    ]
    ordered = [tuner.trials[i] for i in tuner._order]
    assert [t.engine for t in ordered] == ["cpu"] * 3 + [second_engine] * 3
    assert [t.threadgroup[0] for t in ordered] == [64, 512, 256, 256, 512, 64], "the usual one first on another engine"
    assert not tuner.failures


def test_engines_are_compared_by_the_same_clock(tuner: Any, second_engine: str) -> None:
    assert {t.timing.engine for t in tuner.trials} == {"cpu", second_engine}
    assert {t.timing.clock for t in tuner.trials} == {"wall"}, "the second engine has no other"
    assert ", by the wall clock" in tuner.text()


def test_best_configuration_names_its_engine(tuner: Any, second_engine: str) -> None:
    assert (tuner.best.engine, tuner.best.threadgroup) == (second_engine, (512,))
    assert f"best: threadgroup 512 on {second_engine}; " in tuner.text()
    assert " in 256 on cpu" in tuner.text()
    assert re.findall(r"<tr><th>(.*?)</th>", tuner.html()) == ["threadgroup", "cpu", second_engine]


def test_applied_configuration_has_the_best_engine(tuner: Any, program: mnb.Program, second_engine: str) -> None:
    applied = tuner.apply()
    assert (applied.engine.name, applied.tuned) == (second_engine, {1: (512, 1, 1)})
    assert program.line.tuned == {}


def test_in_two_dimensions_each_engine_has_its_own_map(program: mnb.Program, second_engine: str) -> None:
    y = np.zeros((64, 64), np.float32)
    tuner = mnb.tune(program.plane, y, threadgroup=[(8, 8), (16, 8), (8, 4)], run=False).run()
    html = tuner.html()
    assert re.findall(r'metalnb-soft">(on \w+)</div>', html) == ["on cpu", "on cuda"]
    assert re.findall(r"<tr><th>(.*?)</th>", html) == ["y \\ x", "4", "8"] * 2
    assert not y.any(), "the user's arrays are never changed"


def test_one_engine_alone_is_not_named(program: mnb.Program, second_engine: str) -> None:
    for tuner in (
        mnb.tune(program.line, X, X.copy(), threadgroup=[64, 128], engines=["cpu"], run=False).run(),
        mnb.tune(program.line, mnb.asarray(X, device="cpu"), mnb.zeros(4096, dtype=mnb.float32, device="cpu"),
                 threadgroup=[64, 128], run=False).run(),
    ):  # fmt: skip
        assert [t.engine for t in tuner.trials] == ["", ""]
        for shown in (tuner.text(), tuner.html()):
            assert "cpu" not in shown
            assert second_engine not in shown


def test_engines_to_try_can_be_chosen(program: mnb.Program, second_engine: str) -> None:
    tuner = mnb.tune(program.line, X, X.copy(), threadgroup=[64], engines=[second_engine], run=False).run()
    assert [t.engine for t in tuner.trials] == [second_engine]
    assert tuner.baseline.engine == "cpu", "the unchanged kernel"
    with pytest.raises(ArgumentError, match=r"engines is a list of names.*got 'cpu'"):
        mnb.tune(program.line, X, X.copy(), engines="cpu")
    with pytest.raises(EngineUnavailable, match="unknown engine 'gpu'"):
        mnb.tune(program.line, X, X.copy(), engines=["gpu"])
    mine = mnb.asarray(X, device="cpu")
    with pytest.raises(ArgumentError, match="the arrays are in the memory of 'cpu'"):
        mnb.tune(program.line, mine, mnb.zeros(4096, dtype=mnb.float32, device="cpu"), engines=["cuda", "cpu"])


def test_struct_with_pointers_is_tried_on_its_engine_only(second_engine: str) -> None:
    kernel = mnb.compile("""struct Counts { device float* y; };
    kernel void count(constant Counts& c, device float* out, uint i [[thread_position_in_grid]]) {
        out[i] = c.y[i];
    }""", engine="cpu").count  # fmt: skip
    counts = {"y": mnb.zeros(64, dtype="float32", device="cpu")}
    tuner = mnb.tune(kernel, counts, grid=64, run=False)
    assert {trial.engine for trial in tuner.trials} == {""}


def test_compile_failure_on_an_engine_is_a_row(
    program: mnb.Program, second_engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any) -> Any:
        raise EngineUnavailable("cuda: no such thing here")

    monkeypatch.setattr(SecondEngine, "compile", refuses)
    fresh = mnb.compile(SOURCE.replace("2 * x", "3 * x"), engine="cpu")
    tuner = mnb.tune(fresh.line, X, X.copy(), threadgroup=[64], run=False).run()
    assert [(t.engine, bool(t.timing)) for t in tuner.trials] == [("cpu", True), (second_engine, False)]
    assert "64 on cuda" in tuner.text()
    assert "refused: cuda: no such thing here" in tuner.text()


def test_an_engine_that_is_far_slower_is_given_up_after_three_configurations(
    program: mnb.Program, second_engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, int]] = []

    def hopeless(best: Any, dispatch: Any, *_: Any, **__: Any) -> Any:
        ran.append((dispatch.kernel.engine.name, dispatch.threadgroup[0]))
        if dispatch.kernel.engine.name == "cpu":
            return None
        return dataclasses.replace(best.timing, engine="cuda", seconds=(0.1,))

    monkeypatch.setattr(module, "time_if_hopeless", hopeless)
    tuner = mnb.tune(program.line, X, X.copy(), threadgroup=[32, 64, 128, 256, 512], run=False).run()
    there = {t.threadgroup[0]: t for t in tuner.trials if t.engine == second_engine}
    assert {n for engine, n in ran if engine == second_engine} == {256, 128, 512}
    assert [n for n, t in there.items() if t.once] == [128, 256, 512]
    assert [n for n, t in there.items() if t.left_out] == [32, 64]
    assert tuner.done == 10
    assert ", 3 given up after one run, 2 left out" in tuner.text()
    assert "64 on cuda: skipped, since other configurations on cuda take ten times the best" in tuner.html()
    assert tuner.best.engine == "cpu"


def test_an_engine_is_abandoned_after_three_hopeless_runs_or_one_long_run() -> None:
    short = [timed(0.1, engine="cuda", once=True)] * 2
    assert not is_hopeless_engine(short, "cuda")
    assert is_hopeless_engine([*short, timed(0.1, engine="cuda", once=True)], "cuda")
    assert is_hopeless_engine([timed(2.0, engine="cuda", once=True)], "cuda")
    assert not is_hopeless_engine([timed(2.0, engine="cuda", once=True), timed(0.01, engine="cuda")], "cuda")
    assert not is_hopeless_engine([timed(2.0, engine="cpu", once=True)], "cuda")


def test_a_long_first_run_counts_by_the_clock_of_the_others(
    program: mnb.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of it may be copies to a device, and the kernel itself may be the fastest."""
    took = 1e-4

    class Job:
        clock = "device"

        def __init__(self, _dispatch: Any, *, wall: bool) -> None:
            assert not wall

        def run(self, count: int) -> float:
            return took * count

    monkeypatch.setattr(hopeless_trials, "DispatchJob", Job)
    dispatch = program.line.prepare(X, X.copy(), threadgroup=64)

    def asked(first: float) -> Any:
        return time_if_hopeless(timed(1e-4), dispatch, first, lambda step: step(), wall=False)

    assert asked(0.5) is None
    assert asked(0.01) is None, "so short that measuring it costs nothing"
    took = 0.05
    found = asked(0.5)
    assert (found.clock, found.seconds, found.threadgroup) == ("device", (0.05,), (64,))
    found = asked(3.0)
    assert (found.clock, found.seconds) == ("wall", (3.0,)), "what runs for seconds is run once"
    assert time_if_hopeless(None, dispatch, 3.0, lambda step: step(), wall=False) is None


def test_an_engine_that_does_not_answer_is_not_tried(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    open_only(monkeypatch, "cpu")
    assert {t.engine for t in mnb.tune(program.line, X, X.copy(), threadgroup=[64], run=False).trials} == {""}
