"""A machine's limits: measured once, kept, and compared with the right kernels."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import metalnb as mnb
from metalnb import cache
from metalnb.timing import limits as limits_module
from metalnb.timing import machine, sampling
from metalnb.timing.limit_probes import ARITHMETIC, PROBES
from metalnb.timing.records import Traffic

LIMITS = mnb.Limits(
    "cpu", "a <chip>", "a machine", "2026-01-02T03:04:05+00:00", {"driver": "1"}, 50e9, 30e9, 40e9, 45e9, 60e9, 500e9,
    1 << 25, (68e9, 2.6e12),
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> cache.Store:
    """Measure on small arrays, and keep the results separate."""
    store = cache.Store(tmp_path)
    monkeypatch.setattr(limits_module, "_span", lambda _: 1 << 20)
    monkeypatch.setattr(limits_module, "_RUNS", 2)
    monkeypatch.setattr(limits_module, "_CROWDED", 1.0)  # whatever machine runs the tests
    monkeypatch.setattr(limits_module, "_WIDE_SPREAD", 1.0)
    monkeypatch.setattr(limits_module, "_recent", {})
    monkeypatch.setattr(limits_module, "cache", SimpleNamespace(store=lambda: store, digest=cache.digest))
    return store


def test_every_limit_is_measured_and_kept(small: cache.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = mnb.limits()
    assert isinstance(limits, mnb.Limits)
    assert limits.date[:2] == "20"
    assert limits.machine == machine.machine_name()
    assert limits.versions
    for name in ("read", "write", "copy", "triad", "update"):
        assert 1e8 < getattr(limits, name) < 1e13, name
    assert 1e9 < limits.flops < 1e14
    assert 0 <= limits.others <= 1
    measured = limits_module._measure
    monkeypatch.setattr(limits_module, "_measure", lambda _: pytest.fail("measured again"))
    assert mnb.limits() == limits
    monkeypatch.setattr(limits_module, "_measure", lambda engine: replace(measured(engine), date="later"))
    assert mnb.limits(again=True).date == "later"
    assert mnb.limits().date == "later"


def test_two_threads_do_not_measure_at_a_time(small: cache.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement would halve the other's rates, and the lower rates would be kept."""
    calls: list[int] = []
    other = threading.Thread(target=mnb.limits)

    def measure(_: Any) -> mnb.Limits:
        calls.append(1)
        if len(calls) == 1:
            other.start()
            other.join(0.2)
        return LIMITS

    monkeypatch.setattr(limits_module, "_measure", measure)
    assert mnb.limits() == LIMITS
    other.join(300)
    assert len(calls) == 1


@pytest.mark.parametrize(("state", "changed"), [("busy", {"others": 0.31}), ("unsteady", {"spread": 0.31})])
def test_limits_of_a_busy_machine_are_used_for_five_minutes_and_not_kept(
    state: str, changed: dict[str, float], small: cache.Store, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(limits_module, "_CROWDED", 0.30)
    monkeypatch.setattr(limits_module, "_WIDE_SPREAD", 0.30)
    bad, calls = replace(LIMITS, **changed), []
    monkeypatch.setattr(limits_module, "_measure", lambda _: calls.append(1) or bad)
    assert (bad.state, LIMITS.state, replace(LIMITS, others=0.2).state) == (state, "quiet", "shared")
    assert mnb.limits() == mnb.limits() == bad
    assert len(calls) == 1
    assert small.usage() == {}
    now = limits_module.time.monotonic()
    monkeypatch.setattr(limits_module.time, "monotonic", lambda: now + 301)
    monkeypatch.setattr(limits_module, "_measure", lambda _: LIMITS)
    assert mnb.limits() == mnb.limits() == LIMITS
    assert small.usage()["limits"].entries == 1
    assert f", {state}" in repr(bad)
    assert f", {state}" in bad._repr_html_()
    assert "(not kept)" in repr(bad)


def test_kernel_above_the_limits_triggers_one_remeasurement(
    small: cache.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = mnb.use(None)
    slow = replace(LIMITS, read=1.0, write=1.0, copy=1.0, triad=1.0, update=1.0, cache=1)
    small.put(limits_module._key(engine), "limits", json.dumps(slow.to_json()).encode())
    monkeypatch.setattr(limits_module, "_measure", lambda _: replace(LIMITS, date="anew", cache=1))
    x = np.ones(1 << 16, np.float32)
    kernel = mnb.compile(PROBES[4].source)["probe"]
    timing = mnb.measure(kernel, x, x.copy(), cold=False)
    assert timing.limit in {30e9, 40e9, 45e9, 50e9, 60e9}
    assert mnb.limits().date == "anew"
    monkeypatch.setattr(limits_module, "_measure", lambda _: pytest.fail("once in five minutes"))
    small.put(limits_module._key(engine), "limits", json.dumps(slow.to_json()).encode())
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
    monkeypatch.setattr(limits_module, "free_memory", lambda: free)
    assert limits_module._span(last) == expected << 20


def test_flushed_array_fits_in_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    engine = mnb.use(None)
    alloc = engine.alloc
    monkeypatch.setattr(engine, "alloc", lambda n: sizes.append(n) or alloc(n))
    monkeypatch.setattr(machine, "last_cache", lambda _: 480 << 20)
    sampling._flusher(engine)
    monkeypatch.setattr(sampling, "free_memory", lambda: 64 << 20)
    sampling._flusher(engine)
    assert sizes == [256 << 20, 16 << 20]


def test_no_round_begins_after_the_time_limit(small: cache.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine, one round runs, with unknown spread, and none begins after the time is over."""
    runs: list[str] = []
    monkeypatch.setattr(limits_module, "_SECONDS", 1e-9)
    monkeypatch.setattr(limits_module, "_RUNS", 7)
    run = limits_module.DispatchJob.run
    monkeypatch.setattr(limits_module.DispatchJob, "run", lambda job, n: runs.append("") or run(job, n))
    assert mnb.limits().spread == 1.0
    jobs = sum(len(p.threadgroups) for p in (*PROBES, *ARITHMETIC))
    assert len(runs) == jobs


def test_damaged_or_outdated_limits_are_measured_again(
    small: cache.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = mnb.use(None)
    monkeypatch.setattr(limits_module, "_measure", lambda _: LIMITS)
    for text in (b"no JSON", b"{}", json.dumps({**LIMITS.to_json(), "surprise": 1}).encode()):
        small.put(limits_module._key(engine), "limits", text)
        assert mnb.limits() == LIMITS
    caps = SimpleNamespace(device=engine.caps.device, versions={**engine.caps.versions, "driver": "another"})
    other = SimpleNamespace(name=engine.name, caps=caps)
    assert limits_module._key(other) != limits_module._key(engine)


def test_limits_are_equal_after_json() -> None:
    assert mnb.Limits.from_json(json.loads(json.dumps(LIMITS.to_json()))) == LIMITS
    none = replace(LIMITS, nominal=None)
    assert mnb.Limits.from_json(json.loads(json.dumps(none.to_json()))) == none


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: p.name)
def test_memory_probe_moves_the_stated_bytes(probe: Any) -> None:
    kernel = mnb.compile(probe.source)["probe"]
    n = 4096
    arrays = {"a": np.full(n, 7, np.float32), "b": np.full(n, 2, np.float32), "c": np.full(n, 3, np.float32)}
    named = [p.name for p in kernel.signature.buffers]
    kernel(*(arrays[name] for name in named), grid=n // probe.elements)
    expected = {"read": 7, "write": 1, "copy": 2, "triad": 11, "update": -6}[probe.limit]
    assert (arrays["a"] == expected).all()  # so every element was computed exactly once
    moved = {"read": 1, "write": 1, "copy": 2, "triad": 3, "update": 2}[probe.limit]
    assert probe.amount * n / probe.elements == moved * arrays["a"].nbytes


@pytest.mark.parametrize("probe", ARITHMETIC, ids=lambda p: p.name)
def test_arithmetic_probe_runs_the_stated_operations(probe: Any) -> None:
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
    assert LIMITS.ceiling(traffic) == (name, getattr(LIMITS, name))


def test_limits_state_known_figures_of_apple_gpus() -> None:
    known = replace(LIMITS, device="Apple M2 Max")
    line = "30 or 38 cores, up to 96 SIMD-groups per core, 400 GB/s, threadgroup memory 32 KiB"
    assert f"the GPU: {line}" in str(known)
    assert line in known._repr_html_()
    unknown = "32 or 40 cores, unknown number of SIMD-groups per core, 460 or 614 GB/s, threadgroup memory unknown"
    assert unknown in str(replace(LIMITS, device="Apple M5 Max"))
    assert replace(LIMITS, device="Xeon").chip is None
    assert "the GPU" not in str(replace(LIMITS, device="Xeon"))


def test_text_and_card_have_the_same_figures() -> None:
    root = ET.fromstring(LIMITS._repr_html_())  # noqa: S314  (made here)
    words = " ".join("".join(root.itertext()).split())
    for phrase in ("50.0 GB/s", "30.0 GB/s", "40.0 GB/s", "45.0 GB/s", "60.0 GB/s", "500 GFLOP/s", "68.0 GB/s",
                   "2.60 TFLOP/s", "2026-01-02 03:04", "a machine", "a <chip>"):  # fmt: skip
        assert phrase in words
        assert phrase in repr(LIMITS)


def test_busy_machine_is_reported() -> None:
    busy = replace(LIMITS, others=0.48)
    said = "other programs used 48 % of the processors meanwhile: measure again with mnb.limits(again=True)"
    assert said in repr(busy)
    assert said in busy._repr_html_()
    assert "meanwhile" not in repr(LIMITS) + LIMITS._repr_html_()


def test_unknown_engine_is_refused() -> None:
    with pytest.raises(mnb.EngineUnavailable, match="unknown engine 'abacus'"):
        mnb.limits(engine="abacus")
