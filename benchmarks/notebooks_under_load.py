"""Check that the notebooks run on a busy machine: each with `stress-ng` running, with its time and memory.

Run: python benchmarks/notebooks_under_load.py [--load N] [NOTEBOOK …]

The notebooks are executed into a temporary folder. A notebook's memory is the peak of its entire process tree, with the
engine's compiler: each process's private memory, and its share of shared memory.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from report import Row, show

ROOT = Path(__file__).resolve().parent.parent
BUSY = [sys.executable, "-c", "while True: pass"]
SECONDS, MEMORY = 60, 1e9  # limits for each notebook
LOOK = 0.25  # seconds between two looks at the memory


@contextlib.contextmanager
def load(count: int) -> Iterator[str]:
    """Keep cores busy with `stress-ng`, or with Python loops where it is missing; yield the load's description."""
    stress = shutil.which("stress-ng")
    commands = [[stress, "--cpu", str(count), "--quiet"]] if stress and count else [BUSY] * count
    started = [subprocess.Popen(command) for command in commands]
    try:
        yield f"stress-ng --cpu {count}" if stress and count else f"{count} loops of Python"
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def memory(process: psutil.Process) -> float:
    """Return the memory (B) of a process and its children, counting shared memory once."""
    total = 0
    for member in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # the process may have ended
            info = member.memory_full_info()
            total += getattr(info, "pss", info.uss)
    return total


def watched(notebook: Path, into: str) -> tuple[float, float, int, str]:
    """Execute a notebook; return its time (s), peak memory (B), exit status and last line of output."""
    command = [sys.executable, str(ROOT / "notebooks" / "run.py"), "--into", into, str(notebook)]
    start, most = time.perf_counter(), 0.0
    with tempfile.TemporaryFile("w+") as output:
        process = psutil.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
        while process.poll() is None:
            most = max(most, memory(process))
            time.sleep(LOOK)
        output.seek(0)
        last = output.read().strip().splitlines()[-1:]
    return time.perf_counter() - start, most, process.returncode, "".join(last)


def main() -> int:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="by default all")
    parser.add_argument("--load", type=int, default=2, help="cores kept busy beside them (default 2; 0 for none)")
    options = parser.parse_args()
    rows = []
    with load(options.load) as beside, tempfile.TemporaryDirectory() as into:
        for notebook in options.notebooks or sorted(ROOT.glob("notebooks/[0-9]*.ipynb")):
            seconds, most, status, last = watched(notebook, into)
            failed = f"; failed: {last}" if status else ""
            note = f"{most / 1e6:,.0f} MB at its peak, of at most {MEMORY / 1e6:,.0f}{failed}"
            met = status == 0 and seconds < SECONDS and most < MEMORY
            rows.append(Row(notebook.stem, f"{seconds:.1f} s", f"< {SECONDS} s", met, note))
    return show(f"metalnb notebooks, beside {beside}", rows)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
