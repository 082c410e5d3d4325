"""Run random kernels on an engine against the host: ``python tests/fuzz/run.py --count 1000 --first 0``.

Each worker is a separate process, so that a crash is a finding too. Every finding is printed with its seed, which
generates the same program again; ``--shrink SEED`` prints the smallest kernel that still shows it. Compiled code is
kept in a folder that is removed after the run, unless METALNB_CACHE names one.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import functools
import itertools
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from fuzz.metal_text import cell, metal  # noqa: E402
from fuzz.programs import generate  # noqa: E402
from fuzz.reducing.judge import Judge  # noqa: E402
from fuzz.shrink import shrink, size  # noqa: E402
from fuzz.tree import Program  # noqa: E402
from fuzz.trial import batch, batched  # noqa: E402

BATCH = 20
LIMIT = 120.0  # seconds per program; one that takes longer hangs
_ANEW = 25  # batches until a process is restarted, because loaded libraries stay in memory
_DONE = ".\n"  # ends a batch's output


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=300, help="how many programs")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so long")
    parser.add_argument("--findings", type=Path, help="write seeds, what was seen, and the kernels to this file")
    parser.add_argument("--shrink", type=int, metavar="SEED", help="reduce the program of a seed that fails")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        _work(given.engine)
    elif given.shrink is not None:
        _reduce(given.shrink, given.engine, given.jobs)
    else:
        with _cache():
            sys.exit(_campaign(given))


@contextlib.contextmanager
def _cache() -> Iterator[None]:
    """Give all workers one cache folder; compile the headers once before the workers start."""
    with tempfile.TemporaryDirectory(prefix="metalnb-fuzz-") as folder:
        os.environ.setdefault("METALNB_CACHE", folder)
        yield


def _campaign(given: argparse.Namespace) -> int:
    """Run programs in batches; print each finding and the totals. Return 1 if there was a finding."""
    start, sums, seen = time.monotonic(), collections.Counter[str](), 0
    end, first = given.first + given.count, given.first
    batches = [*batched(range(first, end), BATCH)]
    children = queue.SimpleQueue[Child]()

    def judge(seeds: Sequence[int]) -> list[tuple[int, str, str]]:
        if time.monotonic() - start > given.seconds:
            return []
        child = children.get()
        try:
            return child.judged(seeds)
        finally:
            children.put(child)

    with contextlib.ExitStack() as undone:
        for _ in range(given.jobs):
            children.put(child := Child(given.engine))
            undone.callback(child.close)
        write = undone.enter_context(_written(given.findings))
        pool = undone.enter_context(concurrent.futures.ThreadPoolExecutor(given.jobs))
        done = itertools.chain([judge(batches[0])], pool.map(judge, batches[1:])) if batches else iter(())
        for found in done:
            for seed, kind, told in found:
                sums[kind] += 1
                seen += 1
                if kind == "same":
                    continue
                print(f"seed {seed}: {kind}: {told}", flush=True)
                write(f"// seed {seed}: {kind}: {told}\n{cell([metal(generate(seed), f'k{seed}')])}\n")
            if found and seen % 400 == 0:
                print(f"# {seen} programs, {dict(sums)}, {time.monotonic() - start:.0f} s", flush=True)
    print(
        f"{seen} kernels from seed {first} on engine {given.engine}: {sums['different']} differences, "
        f"{sums['refused']} refusals, {sums['died']} deaths, {time.monotonic() - start:.0f} s"
    )
    return int(set(sums) != {"same"})


@contextlib.contextmanager
def _written(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes to a file immediately; without a file, one that discards."""
    if path is None:
        yield lambda _: None
        return
    with path.open("w", encoding="utf-8", buffering=1) as file:
        yield file.write


def judged(seeds: Sequence[int], engine: str) -> list[tuple[int, str, str]]:
    """Run programs in a separate process; return (seed, kind, what was seen) for each."""
    with contextlib.closing(Child(engine)) as child:
        return child.judged(seeds)


class Child:
    """A process that runs programs: started on first use, and restarted after a crash and at intervals."""

    def __init__(self, engine: str) -> None:
        self.command = [sys.executable, str(HERE / "run.py"), "--engine", engine, "--worker"]
        self.process: subprocess.Popen[str] | None = None
        self.batches = 0

    def judged(self, seeds: Sequence[int]) -> list[tuple[int, str, str]]:
        """Return (seed, kind, what was seen) for each program; missing ones are run again separately."""
        found, end = self._asked(seeds, LIMIT if len(seeds) == 1 else 5 * LIMIT)
        missing = [s for s in seeds if s not in found]
        if len(missing) == 1 == len(seeds):
            found[missing[0]] = (missing[0], "died", end)
        else:
            for seed in missing:
                found[seed] = self.judged([seed])[0]
        return [found[s] for s in seeds]

    def _asked(self, seeds: Sequence[int], limit: float) -> tuple[dict[int, tuple[int, str, str]], str]:
        """Return the process's output for each program, and how the process ended if it did."""
        process = self.process = self.process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        found, late = {}, threading.Timer(limit, process.kill)
        late.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(" ".join(map(str, seeds)) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                if line == _DONE:
                    break
                seed, kind, told = line.rstrip("\n").split("\t", 2)
                found[int(seed)] = (int(seed), kind, told.replace("\\n", "\n"))
            else:
                status = process.wait()
                self.printed.seek(0)
                said = self.printed.read().decode(errors="replace")[-300:]
                self.close()
                return found, f"the process ended with status {status}, {limit:.0f} s allowed: {said}"
        finally:
            late.cancel()
        self.batches += 1
        if self.batches % _ANEW == 0:
            self.close()
        return found, ""

    def _started(self) -> subprocess.Popen[str]:
        self.printed = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        return subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.printed, text=True
        )

    def close(self) -> None:
        """End the process."""
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(BrokenPipeError):
                process.communicate()
            self.printed.close()


def _work(engine: str) -> None:
    """Run the programs whose seeds each input line names; print each outcome as soon as it is known."""
    for line in sys.stdin:
        for outcome in batch([generate(int(seed)) for seed in line.split()], engine):
            print(outcome.seed, outcome.kind, outcome.told.replace("\n", "\\n"), sep="\t", flush=True)
        print(_DONE, end="", flush=True)


def _reduce(seed: int, engine: str, jobs: int) -> None:
    """Print ever smaller programs that fail as the seed's program does; try several at a time."""
    judges = [Judge(functools.partial(_kind, engine), LIMIT) for _ in range(jobs)]
    program = generate(seed)
    wanted = judges[0].ask(program)
    if wanted == "same":
        sys.exit(f"seed {seed} shows no fault")
    pool = concurrent.futures.ThreadPoolExecutor(jobs)

    def first_failing(tried: Sequence[Program]) -> Program | None:
        for some in batched(tried, jobs):
            kinds = [*pool.map(Judge.ask, judges, some)]  # all of them: each judge answers one at a time
            found = next((p for p, kind in zip(some, kinds, strict=True) if kind == wanted), None)
            if found is not None:
                return found
        return None

    smallest = program
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # the smallest program so far is worth showing
        for smallest in shrink(program, first_failing):
            print(f"# {size(smallest)} statements", flush=True)
    print(f"seed {seed}: {wanted}: {size(program)} statements -> {size(smallest)}, math={smallest.math!r}")
    print(cell([metal(smallest, f"k{seed}")]), flush=True)
    for judge in judges:
        judge.close()


def _kind(engine: str, program: Program) -> str:
    """Return a program's outcome."""
    try:
        return next(batch([program], engine)).kind
    except AssertionError:  # the host's compiler rejected it
        return "invalid"


if __name__ == "__main__":
    main()
