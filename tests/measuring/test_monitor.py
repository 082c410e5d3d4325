"""The monitor sees every dispatch, times it by the device's clock, and costs almost nothing."""

import base64
import csv
import gc
import io
import math
import os
import re
import statistics
import subprocess
import sys
import time
import weakref
from collections import deque
from typing import Any

import numpy as np
import pytest
from interrupts import run_together

import metalnb as mnb
from metalnb.engine.observation import Observable, Stopwatch, observe
from metalnb.widgets.monitor.dispatch_log import DispatchKind, DispatchRecord, KernelStats
from metalnb.widgets.monitor.log_view import monitor_html, monitor_text
from metalnb.widgets.monitor.monitor_buttons import csv_link
from metalnb.widgets.monitor.recorder import DispatchRecorder

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device const float* x, device float* y, constant float& a,
                  uint i [[thread_position_in_grid]]) { y[i] = a * x[i] + y[i]; }
kernel void spin(device float* y, uint i [[thread_position_in_grid]]) {
    float sum = y[i];
    for (uint k = 0; k < 4000000; ++k) sum = fract(sum * 1.7f + 0.3f);
    y[i] = sum;
}
"""


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(SOURCE)


X = np.ones(1000, np.float32)


def test_profile_counts_become_rates(program: mnb.Program) -> None:
    y = X.copy()
    with mnb.monitor() as monitor:
        program.saxpy(X, y, 1.0, threadgroup=100)
        program.saxpy(X[:500], y[:500], 1.0)
        assert "FLOP/s" not in repr(monitor) + monitor._repr_mimebundle_()["text/html"]
        mnb.profile(program.saxpy, X, y, 1.0, threadgroup=100)
    assert [r["flops"] for r in monitor.export() if r["kernel"] == "saxpy"] == [2000, None]
    (kind, row), *_ = monitor.rows.items()
    took = row.typical.seconds
    assert monitor.flops(kind) == 2000
    said = next(line for line in repr(monitor).splitlines() if "FLOP/s" in line)
    number, unit = re.search(r"([\d.]+) (\w?)FLOP/s", said).groups()
    assert float(number) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit] == pytest.approx(2000 / took, rel=0.01)
    page = monitor._repr_mimebundle_()["text/html"]
    assert (page.count("arithmetic"), page.count("FLOP/s")) == (1, 1)


def test_monitor_records_dispatches_while_it_runs(program: mnb.Program) -> None:
    y = X.copy()
    program.saxpy(X, y, 1.0)
    with mnb.monitor() as monitor:
        for _ in range(3):
            program.saxpy(X, y, 1.0, threadgroup=100)
        program.saxpy(X[:500], y[:500], 1.0)
        a = mnb.asarray(X)
        np.asarray(mnb.exp(a))
    program.saxpy(X, y, 1.0)
    rows = [r for r in monitor.export() if r["kernel"] == "saxpy"]
    assert [(r["grid"], r["threadgroup"], r["bytes"]) for r in rows] == [
        *[((1000,), (100,), 12_000)] * 3, ((500,), (256,), 6_000),
    ]  # fmt: skip
    for r in rows:
        assert r["seconds"] > 0
        assert r["bandwidth"] == pytest.approx(r["bytes"] / r["seconds"])
        assert r["share"] == pytest.approx(r["bandwidth"] / r["limit"])
        assert r["engine"] == program.saxpy.engine.name
    library_rows = [kind for kind in monitor.rows if kind.kernel.startswith("exp ")]
    assert len(library_rows) == 1, "a library operation, named by what it does"
    assert len(monitor) == monitor.total == len(monitor.export())
    counts = {kind.grid: row.count for kind, row in monitor.rows.items() if kind.kernel == "saxpy"}
    assert counts == {(1000,): 3, (500,): 1}, "the figures of a row are of the same call"


def test_stopped_monitors_leave_no_observer(program: mnb.Program) -> None:
    engine = program.saxpy.engine
    assert engine.observers == ()
    one, two = mnb.monitor(), mnb.monitor()
    assert len(engine.observers) == 2
    one.stop()
    program.saxpy(X, X.copy(), 1.0)
    two.stop()
    one.stop()
    assert engine.observers == ()
    assert (len(one), len(two)) == (0, 1)


@pytest.mark.skipif("METALNB_ENGINE" in os.environ, reason="the device's clock is the cpu engine's")
def test_recorded_seconds_are_the_device_clocks(program: mnb.Program) -> None:
    engine = program.spin.engine
    seen: list[Any] = []
    end = observe(engine, seen.append)
    start = time.perf_counter()
    ticket = program.spin.prepare(X[:64].copy()).launch()
    end()
    assert ticket is not None
    ticket.wait()
    elapsed = time.perf_counter() - start
    took = seen[0].elapsed()
    assert took is not None
    assert 0 < took <= elapsed


def test_without_a_device_clock_the_wait_is_timed() -> None:
    class Ticket:
        def __init__(self) -> None:
            self.elapsed = Stopwatch()

        def wait(self) -> None:
            self.elapsed.stop()

    class Wall(Observable):
        def start(self, *_: Any) -> Ticket:
            return Ticket()

    engine: Any = Wall()
    seen: list[Any] = []
    end = observe(engine, seen.append)
    ticket = engine.launch(None, [X, 5, None], (1, 1, 1), (1, 1, 1))
    end()
    assert seen[0].elapsed() is None
    ticket.wait()
    first = seen[0].elapsed()
    assert first is not None
    assert 0 < first <= time.perf_counter() - seen[0].started
    ticket.wait()
    assert seen[0].elapsed() == first
    assert seen[0].sizes == [4000, 0, 0]


def test_the_kernels_that_measure_are_left_out(program: mnb.Program) -> None:
    with mnb.monitor() as monitor:
        mnb.measure(program.saxpy, X, X.copy(), 1.0, cold=False)  # also measures the cost of an empty dispatch
    monitor.look()
    assert not monitor.rows  # timed kernels run outside the session, which excludes the measuring itself
    assert monitor.total == 0


def test_every_dispatch_is_noted_and_taken_in(program: mnb.Program) -> None:
    """Thousands in a row; benchmarks/timing.py measures the cost."""
    real = program.saxpy.prepare(X, X.copy(), 1.0)

    class Ticket:
        elapsed = staticmethod(lambda: 1e-6)

    class Idle(Observable):
        def start(self, *_: Any) -> Ticket:
            return Ticket()

    engine: Any = Idle()
    monitor = mnb.monitor().stop()
    end = observe(engine, monitor._queue.append)
    for _ in range(6000):
        engine.launch(real.kernel.binary, real.arguments, real.grid, real.threadgroup)
    end()
    assert len(monitor._queue) == 6000
    assert len(monitor) == 6000
    assert not monitor._queue


def test_observation_keeps_no_array_alive(program: mnb.Program) -> None:
    with mnb.monitor() as monitor:
        y = X.copy()
        gone = weakref.ref(y)
        program.saxpy(X, y, 1.0)
        del y
        gc.collect()
        assert gone() is None
    assert len(monitor) == 1


def test_monitor_keeps_the_latest_until_it_is_cleared(program: mnb.Program) -> None:
    y = X.copy()
    monitor = mnb.monitor(keep=5)
    for _ in range(8):
        program.saxpy(X, y, 1.0)
    assert (len(monitor), monitor.total, counted(monitor, "saxpy")) == (5, 8, 8)
    assert monitor.start() is monitor
    monitor.stop()
    program.saxpy(X, y, 1.0)
    assert monitor.total == 8
    monitor.start()
    program.saxpy(X, y, 1.0)
    assert len(monitor.stop()) == 5
    assert monitor.total == 9
    assert "9 dispatches" in monitor.text()
    monitor.clear()
    assert (len(monitor), monitor.total, monitor.export(), monitor.rows) == (0, 0, [], {})
    assert "0 dispatches" in monitor.text()


def test_dispatches_of_many_threads_are_all_seen(program: mnb.Program) -> None:
    def work() -> None:
        y = X.copy()
        for _ in range(200):
            program.saxpy(X, y, 1.0)

    began = time.time()
    with mnb.monitor() as monitor:
        run_together([work] * 4)
    assert counted(monitor, "saxpy") == 800
    started = [s.started for s in monitor.seen]
    assert began - 1 <= min(started) <= max(started) <= time.time() + 1


def test_the_widget_fills_from_its_own_thread(program: mnb.Program) -> None:
    monitor = mnb.monitor()
    _ = monitor.widget
    shown = monitor._controls
    assert "nothing yet" in shown._view.value
    program.saxpy(X, X.copy(), 1.0)
    end = time.monotonic() + 300
    while "saxpy" not in shown._view.value and time.monotonic() < end:
        time.sleep(0.01)
    assert "1 dispatch," in shown._view.value
    shown.toggle.click()
    assert (monitor.on, shown.toggle.description) == (False, "Start")
    shown.toggle.click()
    assert (monitor.on, shown.toggle.description) == (True, "Stop")
    shown.export.click()
    assert "1 dispatch" in shown._link.value
    shown.clear.click()
    assert "nothing yet" in shown._view.value
    monitor.stop()


def test_the_link_holds_the_rows_as_csv(program: mnb.Program) -> None:
    with mnb.monitor() as monitor:
        program.saxpy(X, X.copy(), 1.0)
    (given,) = monitor.export()
    data = csv_link([given]).split("base64,")[1].split('"')[0]
    (row,) = csv.DictReader(io.StringIO(base64.b64decode(data).decode()))
    assert list(row) == list(given)
    assert row["kernel"] == "saxpy"
    assert float(row["seconds"]) == given["seconds"]
    assert row["grid"] == "1000"
    assert csv_link([]) == "nothing recorded yet"


def test_a_dispatch_that_failed_is_counted_as_such(program: mnb.Program) -> None:
    monitor = mnb.monitor().stop()
    binary = program.saxpy.binary
    monitor._queue.append((0.0, binary, (1, 1, 1), (1, 1, 1), [4, 4, 0], lambda: math.nan))
    assert len(monitor) == 0
    assert (monitor.total, monitor.failed) == (1, 1)
    assert "1 failed" in monitor.text()


@pytest.mark.parametrize(("options", "message"), [
    ({"keep": 0}, "at least 1; got 0"), ({"keep": True}, "got True"), ({"keep": 1.5}, "got 1.5"),
    ({"engine": "x"}, "unknown engine 'x'"),
])  # fmt: skip
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(mnb.MetalnbError, match=message):
        mnb.monitor(**options)


def test_a_script_needs_no_widgets() -> None:
    script = """
import sys, numpy as np, metalnb as mnb
f = mnb.compile("kernel void f(device float* y, uint i [[thread_position_in_grid]]) { y[i] += 1; }").f
with mnb.monitor() as seen:
    f(np.zeros(8, np.float32))
print(seen, len(seen), mnb.tune(f, np.zeros(8, np.float32), threadgroup=[8], run=False).run().best.threadgroup)
assert "ipywidgets" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "f " in done.stdout


def test_burst_is_recorded_in_parts_and_completely(program: mnb.Program) -> None:
    monitor = mnb.monitor(keep=20_000).stop()
    launch = (0.0, program.saxpy.binary, (1, 1, 1), (1, 1, 1), [4, 4, 0], lambda: 1e-6)
    monitor._queue.extend([launch] * 15_000)
    monitor.look(1e-4)
    assert 0 < monitor.total < 15_000, "while cells run, the interpreter is theirs"
    assert not monitor.lost
    assert len(monitor) == monitor.total == 15_000
    monitor._queue.extend([launch] * 25_000)
    assert len(monitor) == 20_000
    assert monitor.lost
    assert "more than 35,000 dispatches" in monitor.text()
    assert not monitor.clear().lost


def _recorded(times: list[float], moved: int, limit: float, cache: int | None) -> DispatchRecorder:
    """Return a monitor that has seen one dispatch of a different size, then dispatches with these times."""
    monitor = mnb.monitor().stop()
    grid = (moved // 8,)
    kinds = [DispatchKind("k", (2,), (1,), 16, limit, cache), DispatchKind("k", grid, (1,), moved, limit, cache)]
    seen = [DispatchRecord(0.0, kinds[0], 1.0), *(DispatchRecord(1.0 + i, kinds[1], t) for i, t in enumerate(times))]
    monitor.rows = {
        kinds[0]: KernelStats(1, 1.0, deque(seen[:1])), kinds[1]: KernelStats(len(times), sum(times), deque(seen[1:])),
    }  # fmt: skip
    monitor.total = len(seen)
    return monitor


def counted(seen: DispatchRecorder, kernel: str) -> int:
    return sum(row.count for kind, row in seen.rows.items() if kind.kernel == kernel)


def shown_kernels(monitor: DispatchRecorder, **how: bool) -> list[str]:
    return re.findall(r"<code[^>]*>([^<]*)</code>", monitor_html(monitor, **how).partition("latest")[0])


def test_rows_can_be_shown_while_another_thread_fills_them(program: mnb.Program) -> None:
    class Growing(DispatchRecord):
        """A record that is read while its row grows."""

        @property
        def seconds(self) -> float:  # type: ignore[override]
            tail.append(DispatchRecord(0.0, self.kind, 1.0))
            return 1.0

    class Rows(dict[DispatchKind, KernelStats]):
        """Rows that are shown as soon as they are there."""

        def __setitem__(self, kind: DispatchKind, row: KernelStats) -> None:
            super().__setitem__(kind, row)
            monitor_text(monitor)

        def setdefault(self, kind: DispatchKind, row: KernelStats) -> KernelStats:  # type: ignore[override]
            self[kind] = row
            return row

    kind = DispatchKind("k", (64,), (32,), 0, None)
    monitor = mnb.monitor()
    tail = deque([Growing(0.0, kind, 1.0)])
    monitor.rows = Rows({kind: KernelStats(1, 1.0, tail)})
    assert "k" in monitor_text(monitor)
    assert "k" in monitor_html(monitor)
    tail.clear()
    tail.append(DispatchRecord(0.0, kind, 1.0))
    program.saxpy(X, X.copy(), 1.0)
    monitor.stop()
    assert "saxpy" in monitor_text(monitor)


def test_rows_are_filtered_by_name_and_pinned(program: mnb.Program) -> None:
    kinds = [DispatchKind(name, (64,), (32,), 0, None) for name in ("blur", "saxpy", "sum sum_rows", "sum last")]
    monitor = mnb.monitor().stop()
    monitor.rows = {
        kind: KernelStats(1, seconds, deque([DispatchRecord(0.0, kind, seconds)]))
        for kind, seconds in zip(kinds, (1.0, 2.0, 3.0, 4.0), strict=True)
    }
    assert shown_kernels(monitor) == ["blur", "saxpy", "sum sum_rows", "sum last"]
    _ = monitor.widget
    monitor._controls.filter.value = "sum"
    assert shown_kernels(monitor) == ["sum sum_rows", "sum last"]
    monitor._controls.filter.value = "blurr"
    assert "no kernel has 'blurr' in its name" in monitor_html(monitor)
    monitor._controls.filter.value = ""
    monitor._events._on_message(monitor._events, {"event": "click", "index": 2}, [])
    assert shown_kernels(monitor) == ["★ sum sum_rows", "blur", "saxpy", "sum last"]
    assert 'data-metalnb-at="2"' in monitor._controls._view.value
    assert 'data-metalnb-at="' not in monitor.html(), "a saved notebook has nothing to click on"
    monitor._events._on_message(monitor._events, {"event": "click", "index": 2}, [])
    assert shown_kernels(monitor) == ["blur", "saxpy", "sum sum_rows", "sum last"]
    monitor._events._on_message(monitor._events, {"event": "click", "index": 99}, [])


def test_a_pinned_row_is_shown_however_little_time_it_took(program: mnb.Program) -> None:
    kinds = [DispatchKind(f"k{n}", (64,), (32,), 0, None) for n in range(20)]
    monitor = mnb.monitor().stop()
    monitor.rows = {k: KernelStats(1, 1.0 + n, deque([DispatchRecord(0.0, k, 1.0)])) for n, k in enumerate(kinds)}
    assert "k0" not in shown_kernels(monitor)
    monitor.pin(kinds[0])
    assert shown_kernels(monitor)[:2] == ["★ k0", "k9"]
    assert len(shown_kernels(monitor)) == 12


def test_rows_that_differ_only_in_threadgroup_show_the_threadgroup() -> None:
    tried = [DispatchKind("k", (256, 64), size, 0, None) for size in ((32, 8), (16, 16))]
    alone = DispatchKind("other", (256, 64), (32, 8), 0, None)
    monitor = mnb.monitor().stop()
    monitor.rows = {kind: KernelStats(1, 1.0, deque([DispatchRecord(0.0, kind, 1.0)])) for kind in (*tried, alone)}
    monitor.total = 3
    grids = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", monitor_html(monitor))[1:21:7]]
    assert grids == ["256 × 64 in 32 × 8", "256 × 64 in 16 × 16", "256 × 64"]
    assert [row[23:42] for row in repr(monitor).split("\n")[1:]] == [f"{grid:>19}" for grid in grids]


@pytest.mark.parametrize("times", [[1e-3, 1.1e-3, 4e-3], [4e-3, 1e-3, 1.1e-3], [1.1e-3]])
def test_the_rate_of_a_row_is_that_of_its_median(times: list[float]) -> None:
    monitor = _recorded(times, 1 << 20, 1e9, None)
    row = repr(monitor).split("\n")[2]
    assert f"{statistics.median(times) * 1e3:.2f} ms" in row
    assert f"{(1 << 20) / statistics.median(times) / 1e6:.0f} MB/s" in row
    cells = re.findall(r"<td.*?</td>", monitor_html(monitor))[7:]
    assert f"{statistics.median(times) * 1e3:.2f} ms" in cells[3]
    assert f"{(1 << 20) / statistics.median(times) / 1e6:.0f} MB/s" in cells[4]
    assert cells[1].endswith(">131,072</td>")


@pytest.mark.parametrize(
    ("limit", "cache", "said"),
    [(1e10, 1 << 25, ""), (3e8, 1 << 25, "from the caches"), (3e8, 1 << 19, "partly from the caches"),
     (3e8, 1 << 10, "parts are not touched"), (3e8, None, "parts are not touched"), (0.0, 1 << 25, "")],
)  # fmt: skip
def test_rate_above_the_limit_is_explained(limit: float, cache: int | None, said: str) -> None:
    monitor = _recorded([1e-3] * 3, 1 << 20, limit, cache)
    share = f"{(1 << 20) / 1e-3 / limit:.0%}".replace("%", " %") if limit else ""
    for shown in (re.sub(r"<[^>]*>", "", monitor_html(monitor)), repr(monitor)):
        assert (f"{share} {said}".strip() in shown.replace("%", " %").replace("  ", " ")) or not limit
        assert ("caches" in shown) == ("caches" in said)
        assert ("touched" in shown) == ("touched" in said)
