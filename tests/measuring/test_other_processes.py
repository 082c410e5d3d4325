"""The load of other processes, from the ticks of the processors."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from metalnb.timing import other_processes
from metalnb.timing.other_processes import OtherProcesses


@pytest.mark.skipif(not psutil.LINUX, reason="reads the ticks as Linux writes them")
def test_load_of_other_processes_is_read_from_cpu_ticks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    stat = tmp_path / "stat"
    assert OtherProcesses().share() == 0  # no such file
    tick = os.sysconf("SC_CLK_TCK")
    own = [0.0]
    monkeypatch.setattr(other_processes.time, "process_time", lambda: own[0])
    stat.write_text("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 1\n")
    load = OtherProcesses()
    own[0] = 1.0  # ten seconds: 2 user, 1 system, 5 idle, 1 waiting for a disk, 1 stolen; a guest's count as user
    stat.write_text(f"cpu  {2 * tick} 0 {tick} {5 * tick} {tick} 0 0 {tick} {tick} 0\n")
    assert load.share() == pytest.approx(0.3)
    stat.write_text("nonsense\n")
    assert load.share() == 0
