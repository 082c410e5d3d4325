"""A machine's limits: measured once, kept, and compared with the right kernels."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import psutil
import pytest

import metalnb as mnb
from metalnb import cache
from metalnb.profiling import apple_chips
from metalnb.profiling.device_table import DEVICES
from metalnb.timing import limits as module
from metalnb.timing import machine, other_processes, progress, sampling
from metalnb.timing.limit_probes import ARITHMETIC, PROBES
from metalnb.timing.other_processes import OtherProcesses
from metalnb.timing.records import Traffic

GIVEN = mnb.Limits(
    "cpu", "a <chip>", "a machine", "2026-01-02T03:04:05+00:00", {"driver": "1"}, 50e9, 30e9, 40e9, 45e9, 60e9, 500e9,
    1 << 25, (68e9, 2.6e12),
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> cache.Store:
    """Measure on small arrays, and keep the results separate."""
    store = cache.Store(tmp_path)
    monkeypatch.setattr(module, "_span", lambda _: 1 << 20)
    monkeypatch.setattr(module, "_RUNS", 2)
    monkeypatch.setattr(module, "_CROWDED", 1.0)  # whatever machine runs the tests
    monkeypatch.setattr(module, "_WIDE_SPREAD", 1.0)
    monkeypatch.setattr(module, "_recent", {})
    monkeypatch.setattr(module, "cache", SimpleNamespace(store=lambda: store, digest=cache.digest))
    return store


def test_every_limit_is_measured_and_kept(small: cache.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    found = mnb.limits()
    assert isinstance(found, mnb.Limits)
    assert found.date[:2] == "20"
    assert found.machine == machine.machine_name()
    assert found.versions
    for name in ("read", "write", "copy", "triad", "update"):
        assert 1e8 < getattr(found, name) < 1e13, name
    assert 1e9 < found.flops < 1e14
    assert 0 <= found.others <= 1
    measured = module._measure
    monkeypatch.setattr(module, "_measure", lambda _: pytest.fail("measured again"))
    assert mnb.limits() == found
    monkeypatch.setattr(module, "_measure", lambda engine: replace(measured(engine), date="later"))
    assert mnb.limits(again=True).date == "later"
    assert mnb.limits().date == "later"


@pytest.mark.parametrize(("state", "changed"), [("busy", {"others": 0.31}), ("unsteady", {"spread": 0.31})])
def test_what_was_measured_at_a_bad_time_is_used_for_a_while_and_not_kept(
    state: str, changed: dict[str, float], small: cache.Store, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "_CROWDED", 0.30)
    monkeypatch.setattr(module, "_WIDE_SPREAD", 0.30)
    bad, calls = replace(GIVEN, **changed), []
    monkeypatch.setattr(module, "_measure", lambda _: calls.append(1) or bad)
    assert (bad.state, GIVEN.state, replace(GIVEN, others=0.2).state) == (state, "quiet", "shared")
    assert mnb.limits() == mnb.limits() == bad
    assert len(calls) == 1
    assert small.usage() == {}
    now = module.time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now + 301)
    monkeypatch.setattr(module, "_measure", lambda _: GIVEN)
    assert mnb.limits() == mnb.limits() == GIVEN
    assert small.usage()["limits"].entries == 1
    assert f", {state}" in repr(bad)
    assert f", {state}" in bad._repr_html_()
    assert "(not kept)" in repr(bad)


def test_kernel_above_the_limits_triggers_one_remeasurement(
    small: cache.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = mnb.use(None)
    slow = replace(GIVEN, read=1.0, write=1.0, copy=1.0, triad=1.0, update=1.0, cache=1)
    small.put(module._key(engine), "limits", json.dumps(slow.to_json()).encode())
    monkeypatch.setattr(module, "_measure", lambda _: replace(GIVEN, date="anew", cache=1))
    x = np.ones(1 << 16, np.float32)
    kernel = mnb.compile(PROBES[4].source)["probe"]
    timing = mnb.measure(kernel, x, x.copy(), cold=False)
    assert timing.limit in {30e9, 40e9, 45e9, 50e9, 60e9}
    assert mnb.limits().date == "anew"
    monkeypatch.setattr(module, "_measure", lambda _: pytest.fail("once in five minutes"))
    small.put(module._key(engine), "limits", json.dumps(slow.to_json()).encode())
    assert mnb.measure(kernel, x, x.copy(), cold=False).limit == 1.0


@pytest.mark.parametrize(
    ("last", "free", "expected"),
    [
        (None, 64 << 30, 128),
        (1 << 20, 64 << 30, 64),
        (32 << 20, 64 << 30, 128),
        (480 << 20, 64 << 30, 128),  # a virtual machine that reports its host's cache
        (480 << 20, 1200 << 20, 100),
        (32 << 20, 0, 1),
    ],
)
def test_arrays_fit_in_free_memory(
    last: int | None, free: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "free_memory", lambda: free)
    assert module._span(last) == expected << 20


def test_flushing_is_capped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    engine = mnb.use(None)
    alloc = engine.alloc
    monkeypatch.setattr(engine, "alloc", lambda n: sizes.append(n) or alloc(n))
    monkeypatch.setattr(machine, "last_cache", lambda _: 480 << 20)
    sampling._flusher(engine)
    monkeypatch.setattr(sampling, "free_memory", lambda: 64 << 20)
    sampling._flusher(engine)
    assert sizes == [256 << 20, 16 << 20]


def test_rounds_end_with_the_time(small: cache.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine, one round runs, with unknown spread, and none begins after the time is over."""
    runs: list[str] = []
    monkeypatch.setattr(module, "_SECONDS", 1e-9)
    monkeypatch.setattr(module, "_RUNS", 7)
    run = module.DispatchJob.run
    monkeypatch.setattr(module.DispatchJob, "run", lambda job, n: runs.append("") or run(job, n))
    assert mnb.limits().spread == 1.0
    jobs = sum(len(p.threadgroups) for p in (*PROBES, *ARITHMETIC))
    assert len(runs) == jobs


def test_progress_is_a_line_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(progress.sys, "stdout", stream)
        with progress.progress("counting") as told:
            told(0.25)
            told(0.251)
            told(0.5)
        text = stream.getvalue()
        assert text == ("\rcounting: 25 %\rcounting: 50 %\r" + " " * 14 + "\r" if shown else "")


def test_progress_leaves_a_cell_without_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cell(io.StringIO):
        def set_parent(self) -> None: ...

    shown: list[tuple[str, str | None, int]] = []
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setattr(progress.sys, "stdout", out := Cell())
    for kind in ("display", "update"):
        note = lambda _, data, raw, kind=kind: shown.append((kind, data.get("text/plain"), len(data)))  # noqa: E731
        monkeypatch.setattr(f"IPython.display.DisplayHandle.{kind}", note)
    with progress.progress("counting") as told:
        told(0.25)
        told(0.5)
    assert shown == [("display", "counting: 25 %", 2), ("update", "counting: 50 %", 2), ("update", None, 0)]
    assert out.getvalue() == ""


def test_damaged_or_outdated_limits_are_measured_again(
    small: cache.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = mnb.use(None)
    monkeypatch.setattr(module, "_measure", lambda _: GIVEN)
    for text in (b"no JSON", b"{}", json.dumps({**GIVEN.to_json(), "surprise": 1}).encode()):
        small.put(module._key(engine), "limits", text)
        assert mnb.limits() == GIVEN
    caps = SimpleNamespace(device=engine.caps.device, versions={**engine.caps.versions, "driver": "another"})
    other = SimpleNamespace(name=engine.name, caps=caps)
    assert module._key(other) != module._key(engine)


def test_limits_go_through_json() -> None:
    assert mnb.Limits.from_json(json.loads(json.dumps(GIVEN.to_json()))) == GIVEN
    none = replace(GIVEN, nominal=None)
    assert mnb.Limits.from_json(json.loads(json.dumps(none.to_json()))) == none


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: p.name)
def test_a_probe_moves_what_it_says(probe: Any) -> None:
    kernel = mnb.compile(probe.source)["probe"]
    n = 4096
    given = {"a": np.full(n, 7, np.float32), "b": np.full(n, 2, np.float32), "c": np.full(n, 3, np.float32)}
    named = [p.name for p in kernel.signature.buffers]
    kernel(*(given[name] for name in named), grid=n // probe.elements)
    expected = {"read": 7, "write": 1, "copy": 2, "triad": 11, "update": -6}[probe.limit]
    assert (given["a"] == expected).all()  # so every element was computed exactly once
    moved = {"read": 1, "write": 1, "copy": 2, "triad": 3, "update": 2}[probe.limit]
    assert probe.amount * n / probe.elements == moved * given["a"].nbytes


@pytest.mark.parametrize("probe", ARITHMETIC, ids=lambda p: p.name)
def test_a_chain_computes_what_it_says(probe: Any) -> None:
    chains = int(probe.name.split()[0])
    a = np.zeros(64, np.float32)
    mnb.compile(probe.source)["probe"](a, np.ones(16, np.float32), grid=64)
    np.testing.assert_allclose(a, chains, rtol=1e-4)  # each chain stays at 1
    (rounds,) = re.findall(r"j < (\d+)", probe.source)
    assert probe.amount == 2 * probe.source.count("fma(") * int(rounds)


@pytest.mark.parametrize(
    ("traffic", "name"),
    [
        (Traffic(100, 0), "read"),
        (Traffic(95, 5), "read"),
        (Traffic(0, 100), "write"),
        (Traffic(100, 100), "copy"),
        (Traffic(200, 100), "triad"),
        (Traffic(100, 100, updated=100), "update"),
        (Traffic(200, 100, updated=100), "update"),
        (Traffic(200, 100, updated=20), "triad"),
        (Traffic(1, 100), "write"),
    ],
)
def test_kernel_is_compared_with_the_limit_of_its_own_mix(traffic: Traffic, name: str) -> None:
    assert GIVEN.ceiling(traffic) == (name, getattr(GIVEN, name))


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("Apple M1", (68.25e9, 2.617e12)),  # 8 cores x 128 lanes x 2 operations x 1.278 GHz
        ("Apple M2 Pro", (200e9, 6.800e12)),
        ("Apple M4 Max", (546e9, 16.159e12)),
        ("Apple M3 Ultra (80 cores)", (819e9, 28.262e12)),
        ("Apple M99", None),
        ("AMD EPYC", None),
    ],
)
def test_nominal_rates_of_a_chip(device: str, expected: tuple[float, float] | None) -> None:
    assert apple_chips.nominal(device) == (expected and pytest.approx(expected, rel=1e-3))


def test_every_chip_of_the_table_is_found_by_its_name() -> None:
    """A profile names the same chip without its maker."""
    for name, chip in apple_chips.CHIPS.items():
        assert apple_chips.apple_chip(f"{name} (double)") is chip
        figures = DEVICES[name.removeprefix("Apple ")]
        rates = figures.bandwidth.value, figures.processors.value * figures.lanes.value * 2 * figures.clock.value
        assert apple_chips.nominal(f"{name} GPU") == rates == (chip.bandwidth, chip.flops)


def test_each_figure_of_a_chip_has_a_source() -> None:
    """An assumed clock is that of a chip of the same generation whose clock is known."""
    assert {field.name for field in dataclasses.fields(apple_chips.AppleChip)} == set(apple_chips.SOURCES)
    assert all(name in apple_chips.CHIPS and field in apple_chips.SOURCES for name, field in apple_chips.OTHER_SOURCES)
    for name, chip in apple_chips.CHIPS.items():
        generation = name.split()[1]
        assert (chip.simd_groups is not None) == (generation in {"M1", "M2"})
        if chip.clock_of:
            known = apple_chips.CHIPS[f"Apple {chip.clock_of}"]
            assert (known.clock, known.clock_of) == (chip.clock, "")
            assert chip.clock_of.split()[0] == generation
            assert DEVICES[name.removeprefix("Apple ")].clock.source == f"estimated: as of the {chip.clock_of}"


def test_limits_state_known_figures_of_apple_gpus() -> None:
    known = replace(GIVEN, device="Apple M2 Max")
    line = "30 or 38 cores, up to 96 SIMD-groups per core, 400 GB/s, threadgroup memory 32 KiB"
    assert f"the GPU: {line}" in str(known)
    assert line in known._repr_html_()
    unknown = "32 or 40 cores, unknown number of SIMD-groups per core, 460 or 614 GB/s, threadgroup memory unknown"
    assert unknown in str(replace(GIVEN, device="Apple M5 Max"))
    assert replace(GIVEN, device="Xeon").chip is None
    assert "the GPU" not in str(replace(GIVEN, device="Xeon"))


def test_the_text_and_the_card_say_the_same() -> None:
    root = ET.fromstring(GIVEN._repr_html_())  # noqa: S314  (made here)
    words = " ".join("".join(root.itertext()).split())
    for phrase in ("50.0 GB/s", "30.0 GB/s", "40.0 GB/s", "45.0 GB/s", "60.0 GB/s", "500 GFLOP/s", "68.0 GB/s",
                   "2.60 TFLOP/s", "2026-01-02 03:04", "a machine", "a <chip>"):  # fmt: skip
        assert phrase in words
        assert phrase in repr(GIVEN)


def test_busy_machine_is_reported() -> None:
    busy = replace(GIVEN, others=0.48)
    said = "other programs used 48 % of the processors meanwhile: measure again with mnb.limits(again=True)"
    assert said in repr(busy)
    assert said in busy._repr_html_()
    assert "meanwhile" not in repr(GIVEN) + GIVEN._repr_html_()


@pytest.mark.skipif(not psutil.LINUX, reason="reads the ticks as Linux writes them")
def test_load_of_other_processes_is_read_from_cpu_ticks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    stat = tmp_path / "stat"
    assert OtherProcesses().share() == 0  # no such file
    tick = os.sysconf("SC_CLK_TCK")
    own = [0.0]
    monkeypatch.setattr(other_processes.time, "process_time", lambda: own[0])
    stat.write_text("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 …\n".replace("…", "1"))
    load = OtherProcesses()
    own[0] = 1.0  # ten seconds: 2 user, 1 system, 5 idle, 1 waiting for a disk, 1 stolen; a guest's count as user
    stat.write_text(f"cpu  {2 * tick} 0 {tick} {5 * tick} {tick} 0 0 {tick} {tick} 0\n")
    assert load.share() == pytest.approx(0.3)
    stat.write_text("nonsense\n")
    assert load.share() == 0


def test_unavailable_engine_says_so() -> None:
    with pytest.raises(mnb.EngineUnavailable, match="unknown engine 'abacus'"):
        mnb.limits(engine="abacus")
