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
_BATCHES_PER_PROCESS = 25  # then it is restarted, because loaded libraries stay in memory
_END_OF_BATCH = ".\n"  # ends a batch's output


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=300, help="how many programs")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so long")
    parser.add_argument("--findings", type=Path, help="write seeds, details and kernels to this file")
    parser.add_argument("--shrink", type=int, metavar="SEED", help="reduce the program of a seed that fails")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.engine)
    elif options.shrink is not None:
        _reduce(options.shrink, options.engine, options.jobs)
    else:
        with _cache():
            sys.exit(_campaign(options))


@contextlib.contextmanager
def _cache() -> Iterator[None]:
    """Give all workers one cache folder; compile the headers once before the workers start."""
    with tempfile.TemporaryDirectory(prefix="metalnb-fuzz-") as folder:
        os.environ.setdefault("METALNB_CACHE", folder)
        yield


def _campaign(options: argparse.Namespace) -> int:
    """Run programs in batches; print each finding and the totals. Return 1 if there was a finding."""
    start, counts, total = time.monotonic(), collections.Counter[str](), 0
    end, first = options.first + options.count, options.first
    batches = [*batched(range(first, end), BATCH)]
    children = queue.SimpleQueue[Child]()

    def run_batch(seeds: Sequence[int]) -> list[tuple[int, str, str]]:
        if time.monotonic() - start > options.seconds:
            return []
        child = children.get()
        try:
            return child.outcomes_of(seeds)
        finally:
            children.put(child)

    with contextlib.ExitStack() as exits:
        for _ in range(options.jobs):
            children.put(child := Child(options.engine))
            exits.callback(child.close)
        write = exits.enter_context(_findings_file(options.findings))
        pool = exits.enter_context(concurrent.futures.ThreadPoolExecutor(options.jobs))
        done = itertools.chain([run_batch(batches[0])], pool.map(run_batch, batches[1:])) if batches else iter(())
        for outcomes in done:
            for seed, kind, detail in outcomes:
                counts[kind] += 1
                total += 1
                if kind == "same":
                    continue
                print(f"seed {seed}: {kind}: {detail}", flush=True)
                write(f"// seed {seed}: {kind}: {detail}\n{cell([metal(generate(seed), f'k{seed}')])}\n")
            if outcomes and total % 400 == 0:
                print(f"# {total} programs, {dict(counts)}, {time.monotonic() - start:.0f} s", flush=True)
    print(
        f"{total} kernels from seed {first} on engine {options.engine}: {counts['different']} differences, "
        f"{counts['refused']} refusals, {counts['died']} deaths, {time.monotonic() - start:.0f} s"
    )
    return int(set(counts) != {"same"})


@contextlib.contextmanager
def _findings_file(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes to a file immediately; without a file, one that discards."""
    if path is None:
        yield lambda _: None
        return
    with path.open("w", encoding="utf-8", buffering=1) as file:
        yield file.write


def outcomes_of(seeds: Sequence[int], engine: str) -> list[tuple[int, str, str]]:
    """Run programs in a separate process; return (seed, kind, detail) for each."""
    with contextlib.closing(Child(engine)) as child:
        return child.outcomes_of(seeds)


class Child:
    """A process that runs programs: started on first use, and restarted after a crash and at intervals."""

    def __init__(self, engine: str) -> None:
        self.command = [sys.executable, str(HERE / "run.py"), "--engine", engine, "--worker"]
        self.process: subprocess.Popen[str] | None = None
        self.batches = 0

    def outcomes_of(self, seeds: Sequence[int]) -> list[tuple[int, str, str]]:
        """Return (seed, kind, detail) for each program; missing ones are run again separately."""
        outcomes, end = self._run(seeds, LIMIT if len(seeds) == 1 else 5 * LIMIT)
        missing = [s for s in seeds if s not in outcomes]
        if len(missing) == 1 == len(seeds):
            outcomes[missing[0]] = (missing[0], "died", end)
        else:
            for seed in missing:
                outcomes[seed] = self.outcomes_of([seed])[0]
        return [outcomes[s] for s in seeds]

    def _run(self, seeds: Sequence[int], limit: float) -> tuple[dict[int, tuple[int, str, str]], str]:
        """Return the process's output for each program, and how the process ended if it did."""
        process = self.process = self.process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        outcomes, timer = {}, threading.Timer(limit, process.kill)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(" ".join(map(str, seeds)) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                if line == _END_OF_BATCH:
                    break
                seed, kind, detail = line.rstrip("\n").split("\t", 2)
                outcomes[int(seed)] = (int(seed), kind, detail.replace("\\n", "\n"))
            else:
                status = process.wait()
                self.error_output.seek(0)
                output = self.error_output.read().decode(errors="replace")[-300:]
                self.close()
                return outcomes, f"the process ended with status {status}, {limit:.0f} s allowed: {output}"
        finally:
            timer.cancel()
        self.batches += 1
        if self.batches % _BATCHES_PER_PROCESS == 0:
            self.close()
        return outcomes, ""

    def _start(self) -> subprocess.Popen[str]:
        self.error_output = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        return subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.error_output, text=True
        )

    def close(self) -> None:
        """End the process."""
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(BrokenPipeError):
                process.communicate()
            self.error_output.close()


def _work(engine: str) -> None:
    """Run the programs whose seeds each input line names; print each outcome as soon as it is known."""
    for line in sys.stdin:
        for outcome in batch([generate(int(seed)) for seed in line.split()], engine):
            print(outcome.seed, outcome.kind, outcome.detail.replace("\n", "\\n"), sep="\t", flush=True)
        print(_END_OF_BATCH, end="", flush=True)


def _reduce(seed: int, engine: str, jobs: int) -> None:
    """Print ever smaller programs that fail as the seed's program does; try several at a time."""
    judges = [Judge(functools.partial(_kind, engine), LIMIT) for _ in range(jobs)]
    program = generate(seed)
    fault = judges[0].ask(program)
    if fault == "same":
        sys.exit(f"seed {seed} shows no fault")
    pool = concurrent.futures.ThreadPoolExecutor(jobs)

    def first_failing(tried: Sequence[Program]) -> Program | None:
        for candidates in batched(tried, jobs):
            kinds = [*pool.map(Judge.ask, judges, candidates)]  # all of them: each judge answers one at a time
            failing = next((p for p, kind in zip(candidates, kinds, strict=True) if kind == fault), None)
            if failing is not None:
                return failing
        return None

    smallest = program
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # the smallest program so far is worth showing
        for smallest in shrink(program, first_failing):
            print(f"# {size(smallest)} statements", flush=True)
    print(f"seed {seed}: {fault}: {size(program)} statements -> {size(smallest)}, math={smallest.math!r}")
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
