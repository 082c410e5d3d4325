"""Threads and processes compile and call concurrently, on an empty and a full cache, and every result is right."""

# ruff: noqa: E501  (MSL)

import contextlib
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from clang import cindex
from held_kernel import Held
from interrupts import run_together

import metalnb as mnb
from metalnb.msl.libclang.deep_stack import on_a_deep_stack
from metalnb.program import compiled as programs

TIMES = 100
TEXTS = 12  # some of them different; the rest are found on disk

CELL = """// {salt}
kernel void affine(device const int* x, device int* y, constant int& b, uint i [[thread_position_in_grid]]) {{ y[i] = {a} * x[i] + b; }}
"""
SPIN = """
kernel void spin(device uint* y, constant uint& rounds, uint i [[thread_position_in_grid]]) {
    uint state = i + 1;
    for (uint n = 0; n < rounds; ++n) state = state * 1664525u + 1013904223u;
    y[i] = state;
}"""


def test_two_threads_compile_and_call_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept in memory, so both threads compete in every stage of building a program."""
    x = np.arange(100, dtype=np.int32)
    monkeypatch.setenv("METALNB_CACHE", str(tmp_path / "cache"))
    for a in (n % TEXTS for n in range(TIMES)):
        programs._programs.clear()
        source = CELL.format(salt=tmp_path, a=a)
        results = {}

        def use(b: int, source: str = source, results: dict[int, np.ndarray] = results) -> None:
            results[b] = mnb.compile(source).affine(x, b=b)

        run_together([lambda: use(1), lambda: use(2)])
        for b, y in results.items():
            np.testing.assert_array_equal(y, a * x + b)
        assert set(results) == {1, 2}


def test_kinds_of_cursors_are_named_before_threads_share_them() -> None:
    """A kind of libclang's binding fills its table of names when asked; a second thread would find it half full."""
    on_a_deep_stack(int, seconds=60)
    for kinds in cindex.BaseEnumeration.__subclasses__():
        assert set(kinds._name_map or ()) == {kind for kind in kinds._kinds if kind is not None}


def test_one_kernel_is_called_from_many_threads_at_once() -> None:
    kernel = mnb.compile(CELL.format(salt="shared", a=3)).affine

    def use(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(TIMES):
            x = rng.integers(-1000, 1000, rng.integers(1, 3000), np.int32)
            b = int(rng.integers(-1000, 1000))
            np.testing.assert_array_equal(kernel(x, b=b), 3 * x + b)

    run_together([lambda s=seed: use(s) for seed in range(6)])


def test_dispatches_with_rows_of_simdgroups_from_many_threads_are_right() -> None:
    kernel = mnb.compile("""
#include <metal_stdlib>
using namespace metal;
kernel void sums(device const int* x, device int* y, uint2 at [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    y[at.y * n.x + at.x] = simd_sum(x[at.y * n.x + at.x]);
}""").sums

    def use(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(TIMES // 4):
            x = rng.integers(0, 100, (8 * int(rng.integers(1, 5)), 4 * int(rng.integers(1, 9))), np.int32)
            y = kernel(x, threadgroup=(4, 8))  # each SIMD-group is an entire threadgroup: a block of 8 by 4
            blocks = x.reshape(x.shape[0] // 8, 8, x.shape[1] // 4, 4).sum((1, 3))
            np.testing.assert_array_equal(y, np.kron(blocks, np.ones((8, 4), np.int32)))

    run_together([lambda s=seed: use(s) for seed in range(4)])


PROCESS = """
import sys
import numpy as np
import metalnb as mnb
from metalnb.msl.libclang.deep_stack import on_a_deep_stack
from metalnb.program import compiled as programs
cell = sys.stdin.read()
x = np.arange(100, dtype=np.int32)
for a in (n % {texts} for n in range({times})):
    programs._programs.clear()
    y = mnb.compile(cell.replace("AAA", str(a))).affine(x, b=a)
    assert (y == a * x + a).all(), a
print("right")
"""


@pytest.mark.long  # Two threads do the same above; a separate cache compiles the headers again
def test_two_processes_with_an_empty_cache_compile_and_call_at_once(empty_cache: dict[str, str]) -> None:
    cell = CELL.format(salt="processes", a="AAA")
    command = [sys.executable, "-c", PROCESS.format(times=TIMES, texts=TEXTS)]

    def process() -> None:
        done = subprocess.run(command, input=cell, capture_output=True, text=True, check=False, env=empty_cache)
        assert (done.stdout, done.stderr) == ("right\n", "")

    run_together([process, process])
    assert not [p for p in Path(empty_cache["METALNB_CACHE"]).rglob("*") if p.name.startswith((".", "metalnb-"))]


def test_python_continues_while_a_kernel_runs() -> None:
    y = np.zeros(1, np.float32)
    held = Held(y)
    worker = threading.Thread(target=held.dispatch.run, daemon=True)
    worker.start()
    while not held.runs and worker.is_alive():
        time.sleep(0.001)
    assert y[0] == 0
    held.let_go()
    worker.join(60)
    assert not worker.is_alive()
    assert y[0] == 2


def test_a_thread_that_compiles_leaves_the_warnings_of_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads share the warning filters: setting and restoring them in one thread disturbs the others."""
    filters, touched = warnings.filters, []
    monkeypatch.setattr(warnings, "catch_warnings", lambda **_: touched.append(1) or contextlib.nullcontext())
    source = CELL.format(salt=time.time_ns(), a=5)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: mnb.compile(source).affine(np.arange(3, dtype=np.int32), b=1)).result()[2] == 11
    assert not touched
    assert warnings.filters is filters


def test_a_ticket_is_given_before_the_kernel_ends() -> None:
    held = Held(np.zeros(1, np.float32))
    ticket = held.dispatch.launch()
    assert ticket
    assert ticket.elapsed() is None
    held.let_go()
    ticket.wait()
    assert ticket.elapsed() > 0


def test_memory_of_a_dispatch_lives_as_long_as_its_ticket() -> None:
    kernel = mnb.compile(SPIN).spin
    tickets = []
    outputs = []
    for _ in range(8):
        ready = kernel.prepare(rounds=20_000, grid=1000)
        outputs.append(ready.outputs[0])
        tickets.append(ready.launch())
        del ready
    for ticket in tickets:
        ticket.wait()
    assert all(np.array_equal(o, outputs[0]) for o in outputs)
    assert len(np.unique(outputs[0])) > 900
