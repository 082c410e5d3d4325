"""Which of two kernels is faster: a difference is reported, noise is not, and how the result is worded."""

from __future__ import annotations

import json
import math
import time
from functools import partial
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from measuring.example_timing import CHAIN

import metalnb as mnb
from metalnb.timing import compare as module
from metalnb.timing import sampling
from metalnb.timing.compare import median_interval
from metalnb.timing.measure import name_of
from metalnb.timing.views.strip_plots import StripScale

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void other(device float* y, uint i [[thread_position_in_grid]]) { y[i] = 0; }
""" + CHAIN


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOTAL", 1e-9)
    monkeypatch.setattr(sampling, "BATCH", 0.002)


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(SOURCE)


def comparison(first: Any, second: Any, names: tuple[str, str] = ("a", "b")) -> mnb.Comparison:
    return mnb.Comparison(names, "cpu", "a chip", "device", (tuple(first), tuple(second)))


# ---- The statistics --------------------------------------------------------------------------------------------------


def test_median_interval_matches_the_table() -> None:
    """For n = 15 the 4th and 12th values enclose the median with 96.5 %; for n = 6 the extremes do with 96.9 %."""
    assert median_interval(range(1, 16)) == (4, 12)
    assert median_interval(range(1, 7)) == (1, 6)
    assert median_interval(range(1, 6)) == (-math.inf, math.inf)  # even the extremes reach only 93.75 %
    assert median_interval(range(1, 42)) == (14, 28)
    assert median_interval(range(1, 16), 0.5) == (6, 10)


@pytest.mark.parametrize("n", [15, 24, 41])
def test_median_interval_has_its_stated_confidence(n: int, rng: np.random.Generator) -> None:
    trials = 4000
    inside = 0
    for values in np.exp(rng.normal(0, 0.5, (trials, n))):  # skewed, as times are; the median is 1
        low, high = median_interval(values.tolist())
        inside += low <= 1 <= high
    assert inside / trials > 0.95 - 4 * math.sqrt(0.95 * 0.05 / trials)


def test_equal_kernels_have_no_winner(rng: np.random.Generator) -> None:
    """With 5 % noise and a drift that affects both, none of 2,000 comparisons is wrong."""
    called = 0
    for _ in range(2000):
        drift = 1 + 0.5 * rng.random(15)
        first, second = (1e-3 * drift * np.exp(rng.normal(0, 0.05, 15)) for _ in range(2))
        called += comparison(first, second).place is not None
    assert called <= 20  # 1 %: the interval alone would report 5 %


def test_clear_difference_always_has_a_winner(rng: np.random.Generator) -> None:
    for _ in range(500):
        first = 1e-3 * np.exp(rng.normal(0, 0.1, 15))
        second = 2e-3 * np.exp(rng.normal(0, 0.1, 15))
        assert comparison(first, second).winner == "a"
        assert comparison(second, first).winner == "b"


def test_significant_but_small_difference_is_not_a_verdict() -> None:
    first, second = [1.0] * 20, [1.02] * 20
    found = comparison(first, second)
    assert found.interval == pytest.approx((1.02, 1.02))
    assert found.winner is None
    assert comparison(first, [1.05] * 20).winner == "a"
    assert comparison([1.05] * 20, first).winner == "b"


class Scripted:
    """A job on its own clock: each run takes the same time, except when something else has the processor."""

    clock = "wall"
    now = 0.0

    def __init__(self, seconds: float, stalls: Any = ()) -> None:
        self.seconds = seconds
        self.stalls = list(stalls)

    def run(self, count: int) -> float:
        Scripted.now += self.seconds * count + (self.stalls.pop(0) if self.stalls else 0.0)
        return self.seconds

    def restore(self) -> None:
        pass


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "BATCH", 0.010)
    monkeypatch.setattr(sampling, "time", SimpleNamespace(perf_counter=lambda: Scripted.now))


@pytest.mark.usefixtures("scripted")
def test_a_run_that_was_held_up_does_not_fill_a_batch() -> None:
    calm, _ = sampling.count_for(Scripted(20e-6))
    assert 250 <= calm <= 1000
    for stalls in ([0, 0.03], [0, 0, 0.03], [0, 0.03, 0.03], [0, 0.15]):
        held_up, lasted = sampling.count_for(Scripted(20e-6, stalls))
        assert 250 <= held_up <= 1000
        assert lasted == pytest.approx(20e-6 * held_up)
    assert sampling.count_for(Scripted(0.5)) == (1, pytest.approx(0.5))


@pytest.mark.usefixtures("scripted")
def test_equal_kernels_run_equally_often() -> None:
    always = [0.0] + [0.03] * 3  # delayed each time
    for pair in ((Scripted(20e-6, always), Scripted(20e-6)), (Scripted(20e-6), Scripted(30e-6))):
        first, second = module._counts(pair)
        assert first == second
    slow, fast = module._counts((Scripted(0.01), Scripted(20e-6)))
    assert slow <= 10
    assert fast > 100


def several(*seconds: Any, **more: Any) -> mnb.Comparison:
    names = ("a", "b", "c", "d")[: len(seconds)]
    return mnb.Comparison(names, "cpu", "a chip", "device", tuple(map(tuple, seconds)), **more)


def test_winner_of_several_is_faster_than_all_others(rng: np.random.Generator) -> None:
    def noisy(seconds: float) -> Any:
        return seconds * np.exp(rng.normal(0, 0.02, 15))

    found = several(noisy(3e-3), noisy(1e-3), noisy(2e-3))
    assert (found.best, found.place, found.winner) == (1, 1, "b")
    assert found.lead(0).ratio == pytest.approx(3, rel=0.05)
    assert found.lead(0).low < 3.1
    assert found.tied == (1,)
    near = several(noisy(3e-3), noisy(1e-3), noisy(1.01e-3))
    assert near.winner is None
    assert near.tied == (1, 2)


def test_intervals_widen_with_the_number_of_kernels() -> None:
    ratios = [float(n) for n in range(1, 16)]
    assert several([1.0] * 15, ratios).lead(1)[1:] == (4, 12)
    assert several([1.0] * 15, ratios, ratios, ratios).lead(2)[1:] == (3, 13)


def test_equal_kernels_have_no_fastest(rng: np.random.Generator) -> None:
    """One of many is the best by chance, so all intervals must hold simultaneously."""
    called = 0
    for _ in range(500):
        called += several(*(np.exp(rng.normal(0, 0.05, 15)) for _ in range(4))).place is not None
    assert called <= 5  # 1 %


def test_the_best_has_the_least_time_of_its_rounds_and_not_of_all() -> None:
    """The machine was slow for a while: the other's median time is less, though it lost 14 of 15 rounds."""
    first, second = [1.0] * 7 + [10.0] * 8, [2.0] * 7 + [9.0] + [10.5] * 7
    assert several(first, second).best == 0
    assert several(second, first).best == 1


@pytest.mark.parametrize("count", [2, 3, 5])
def test_each_runs_first_as_often_as_another(count: int) -> None:
    orders = [module._order(turn, count) for turn in range(4 * count)]
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(count))}
    for place in (0, -1):
        assert {[order[place] for order in orders].count(i) for i in range(count)} == {4}


# ---- Measuring -------------------------------------------------------------------------------------------------------


def test_kernel_with_more_work_loses(program: mnb.Program) -> None:
    """Eight times the work, since a test may run on a busy machine; benchmarks/timing.py detects twice the work."""
    y = np.ones(1 << 14, np.float32)
    once, more = program.chain.prepare(y, 400), program.chain.prepare(y, 3200)
    found = mnb.compare(once, more, names=("once", "more"))
    assert found.winner == "once"
    assert 1 < found.interval[0] < found.ratio < found.interval[1]
    assert mnb.compare(more, once).place == 1


def test_kernels_of_one_name_are_told_apart(program: mnb.Program) -> None:
    y = np.ones(1 << 14, np.float32)
    twin = mnb.compile(SOURCE + "// the same\n").chain.prepare(y, 400)
    same = mnb.compare(program.chain.prepare(y, 400), twin)
    assert same.names == ("chain (first)", "chain (second)")
    assert len(same.first) == len(same.second) == 15


def test_kernels_alternate_and_arrays_are_unchanged(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.zeros(64, np.float32)
    seen = []
    run = sampling.DispatchJob.run

    def watched(job: sampling.DispatchJob, count: int) -> float:
        seen.append((job.dispatch.kernel.signature.name, y[0]))
        return run(job, count)

    monkeypatch.setattr(sampling.DispatchJob, "run", watched)
    mnb.compare(program.chain.prepare(y, 3), program.other.prepare(y))
    assert [name for name, _ in seen[-6:]] == ["chain", "other", "other", "chain", "chain", "other"]
    assert {value for _, value in seen} == {0}
    assert not y.any()


def test_both_are_given_the_same_arguments(program: mnb.Program) -> None:
    y = np.ones(256, np.float32)
    found = mnb.compare(program.chain, mnb.compile(SOURCE + "// again\n").chain, y, rounds=10, threadgroup=32)
    assert found.clock == mnb.measure(program.chain, y, 10, cold=False).clock
    assert mnb.compare(sum, max, [1, 2]).names == ("sum", "max")


def test_a_kernel_and_a_function_are_both_timed_by_the_wall_clock(program: mnb.Program) -> None:
    """A function has no other clock; the text says so where the kernel has one."""
    y = np.ones(8, np.float32)
    slow = partial(time.sleep, 0.002)
    for found, fast in ((mnb.compare(program.chain.prepare(y, 1), slow), 0),
                        (mnb.compare(slow, program.chain.prepare(y, 1)), 1)):  # fmt: skip
        assert (found.clock, found.winner, found.names[1 - fast]) == ("wall", "chain", "sleep")
        assert found.unclocked == ("sleep" if program.engine.caps.clock == "device" else "")
        assert ("wall clock, since sleep has no other" in repr(found)) == bool(found.unclocked)
        assert mnb.Comparison.from_json(found.to_json()) == found
    assert y.tolist() == [1] * 8
    assert mnb.compare(len, max, [1, 2]).unclocked == ""


@pytest.mark.long  # It measures for seconds; other tests cover the statistics without a clock
def test_several_are_compared_by_list_and_by_name(program: mnb.Program) -> None:
    y = np.ones(1 << 12, np.float32)
    calls = [program.chain.prepare(y, 10), program.chain.prepare(y, 4000), program.chain.prepare(y, 20)]
    found = mnb.compare(calls)
    assert found.names == ("chain (1)", "chain (2)", "chain (3)")
    assert 1 not in found.tied
    named = mnb.compare({"short": calls[0], "long": calls[1], "none": lambda: None})
    assert named.names == ("short", "long", "none")
    assert named.clock == "wall"
    if program.engine.caps.clock == "device":
        assert named.unclocked == "none"
        assert named.device_seconds[2] is None
        assert 0 < named.device_seconds[0] < np.median(named.seconds[0]), "launching is not in it"
        assert "device clock" in repr(named)
    assert mnb.Comparison.from_json(json.loads(json.dumps(named.to_json()))) == named
    assert (y == 1).all()


def test_names_may_be_numbers() -> None:
    found = mnb.compare({16: lambda: None, 32: lambda: None, "16": lambda: None})
    assert found.names == ("16 (1)", "32", "16 (2)")
    assert "32" in repr(found)
    assert "32" in found._repr_html_()


def test_numbered_names_differ_from_given_ones() -> None:
    found = mnb.compare([lambda: None] * 3, names=["f", "f", "f (2)"])
    assert found.names == ("f (1)", "f (3)", "f (2)")


@pytest.mark.parametrize("given", [([],), ([len],), ({"a": len},), (len,)])
def test_fewer_than_two_are_refused(given: Any) -> None:
    with pytest.raises(mnb.ArgumentError, match=r"takes at least two kernels; got [01]\."):
        mnb.compare(*given)
    with pytest.raises(mnb.ArgumentError, match="got 2 kernels but 1 name"):
        mnb.compare([len, max], [1], names=["a"])


def test_kernels_of_two_engines_are_told_apart(second_engine: str) -> None:
    able = ["cpu", second_engine]
    kernels = [mnb.compile(SOURCE, engine=name).chain for name in able]
    found = mnb.compare(*kernels, np.ones(256, np.float32), rounds=10)
    assert found.names == tuple(f"chain on {name}" for name in able)
    assert found.engine == " and ".join(able)
    assert found.engine in repr(found)


def test_a_lambda_is_named_by_its_source() -> None:
    x = np.ones(8)
    found = mnb.compare(lambda: x + x, lambda: np.sort(
        x))  # fmt: skip
    assert found.names == ("x + x", "np.sort( x)")
    assert name_of(eval("lambda: 1 + 1")) == "<lambda>"  # noqa: S307  (its source is not available)


# ---- How it reads ----------------------------------------------------------------------------------------------------


def test_comparison_is_equal_after_json() -> None:
    found = comparison([1.0, 2.0], [3.0, 4.0])
    assert mnb.Comparison.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_ratio_has_only_significant_digits() -> None:
    text = repr(comparison([40.4e-3] * 15, [1e-6] * 15))
    assert "is 40,000 × as fast as" in text
    assert "(40,000 to 40,000)" in text
    assert "0.000" not in text


def test_text_and_card_have_the_same_figures() -> None:
    found = comparison([2e-3] * 15, [1e-3] * 15, ("<slow>", "fast"))
    root = ET.fromstring(found._repr_html_())  # noqa: S314  (made here)
    words = " ".join("".join(root.itertext()).split())
    for phrase in ("fast is 2.00 × as fast as <slow> (2.00 to 2.00)", "2.00 ms", "1.00 ms",
                   "the interval holds with 95 %, 15 alternating rounds, device clock"):  # fmt: skip
        assert phrase in repr(found)
        assert phrase in words
    assert "no difference beyond noise" in repr(comparison([1e-3] * 15, [1e-3] * 15))


def test_the_card_of_several_has_a_row_for_each_the_fastest_first() -> None:
    seconds = [3e-3] * 15, [1e-3] * 15, [1.01e-3] * 14 + [9e-3], [2e-3] * 15
    found = several(*seconds, device_seconds=(None, 9e-4, 8e-4, None))
    root = ET.fromstring(found._repr_html_())  # noqa: S314  (made here)
    rows = [[" ".join("".join(cell.itertext()).split()) for cell in row] for row in root.findall(".//tbody/tr")]
    assert rows == [
        ["b", "1.00 ms", "900 µs", "1.00 ms to 1.00 ms", ""],
        ["c", "1.01 ms", "800 µs", "1.01 ms to 1.01 ms", "no difference beyond noise"],
        ["d", "2.00 ms", "–", "2.00 ms to 2.00 ms", "2.00 × as long (2.00 to 2.00)"],
        ["a", "3.00 ms", "–", "3.00 ms to 3.00 ms", "3.00 × as long (3.00 to 3.00)"],
    ]  # fmt: skip
    assert [len(svg.findall("circle")) for svg in root.iter("svg")] == [15] * 4
    assert "b and c: no difference beyond noise; slower: d, a" in repr(found)
    assert "all intervals hold together with 95 %" in repr(found)
    assert several([3e-3] * 15, [1e-3] * 15, [2e-3] * 15).winner == "b"
    text = repr(several([3e-3] * 15, [1e-3] * 15, [2e-3] * 15))
    assert "b is the fastest: 2.00 × as fast as c (2.00 to 2.00)" in text


def test_times_far_apart_have_a_logarithmic_axis() -> None:
    near, far = StripScale.of([[1.0, 2.0], [3.0]]), StripScale.of([[1.0], [100.0]])
    assert (near.is_logarithmic, near.position(2.0)) == (False, pytest.approx(0.5))
    assert (far.is_logarithmic, far.position(10.0)) == (True, pytest.approx(0.5))
    assert far.position(1e6) == 1
