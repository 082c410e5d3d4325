"""Run random kernels on an engine against the host: ``python tests/fuzz/run.py --count 1000 --first 0``.

Each worker is a process of its own, so that one that dies is a finding too. Every finding is printed with its seed,
which makes the same program again; ``--shrink SEED`` prints the smallest kernel that still shows it.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from fuzz.metal_text import metal  # noqa: E402
from fuzz.programs import generate  # noqa: E402  (the path must be set first)
from fuzz.shrink import shrink, size  # noqa: E402
from fuzz.tree import Program  # noqa: E402
from fuzz.trial import batch  # noqa: E402

BATCH = 20
LIMIT = 120.0  # seconds for a batch; a program that takes longer hangs


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=300, help="how many programs")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shrink", type=int, metavar="SEED", help="reduce the program of a seed that fails")
    parser.add_argument("--worker", nargs="*", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        _work([generate(seed) for seed in given.worker], given.engine)
    elif given.shrink is not None:
        _reduce(given.shrink, given.engine)
    else:
        sys.exit(_campaign(given.first, given.count, given.engine, given.jobs))


def _campaign(first: int, count: int, engine: str, jobs: int) -> int:
    """Run programs in batches; print each finding, and the sums. Return 1 when there was a finding."""
    start, sums = time.monotonic(), collections.Counter[str]()
    batches = [range(at, min(at + BATCH, first + count)) for at in range(first, first + count, BATCH)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done, found in enumerate(pool.map(lambda b: judged(b, engine), batches), 1):
            for seed, kind, told in found:
                sums[kind] += 1
                if kind != "same":
                    print(f"seed {seed}: {kind}: {told}", flush=True)
            if done % 20 == 0:
                print(f"# {sum(sums.values())} programs, {dict(sums)}, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{sum(sums.values())} programs from seed {first} on engine {engine}: {dict(sums)}")
    return int(set(sums) != {"same"})


def judged(seeds: Sequence[int], engine: str) -> list[tuple[int, str, str]]:
    """Return (seed, kind, what was seen) of programs, each batch run in a process of its own."""
    command = [sys.executable, str(HERE / "run.py"), "--engine", engine, "--worker", *map(str, seeds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        output, end = done.stdout, f"the process ended with status {done.returncode}: {done.stderr[-300:]}"
    except subprocess.TimeoutExpired as error:
        output, end = (error.stdout or b"").decode(), f"no end in {LIMIT:.0f} s"
    found = {}
    for line in output.splitlines():
        seed, kind, told = line.split("\t", 2)
        found[int(seed)] = (int(seed), kind, told.replace("\\n", "\n"))
    missing = [s for s in seeds if s not in found]
    if len(missing) == 1:
        found[missing[0]] = (missing[0], "died", end)
    elif missing:
        for seed in missing:
            found[seed] = judged([seed], engine)[0]
    return [found[s] for s in seeds]


def _work(programs: Sequence[Program], engine: str) -> None:
    """Run programs in this process; print what became of each as soon as it is known."""
    for outcome in batch(programs, engine):
        print(outcome.seed, outcome.kind, outcome.told.replace("\n", "\\n"), sep="\t", flush=True)


def _reduce(seed: int, engine: str) -> None:
    """Print ever smaller programs that fail as the one of a seed does."""
    judge = _Judge(engine)
    program = generate(seed)
    wanted = judge.kind(program)
    if wanted == "same":
        sys.exit(f"seed {seed} shows no fault")

    def first_failing(tried: Sequence[Program]) -> Program | None:
        return next((p for p in tried if judge.kind(p) == wanted), None)

    smallest = program
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # what was reached so far is worth seeing
        for smallest in shrink(program, first_failing):
            print(f"# {size(smallest)} statements", flush=True)
    print(f"seed {seed}: {wanted}: {size(program)} statements -> {size(smallest)}, math={smallest.math!r}")
    print(metal(smallest, f"k{seed}"))


class _Judge:
    """Runs one program after another in a child, which may die and is then started again."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.start()

    def start(self) -> None:
        """Start the child."""
        self.mine, its = multiprocessing.get_context("fork").Pipe()
        self.child = multiprocessing.get_context("fork").Process(target=_answer, args=(its, self.engine), daemon=True)
        self.child.start()
        its.close()

    def kind(self, program: Program) -> str:
        """Return what becomes of a program."""
        self.mine.send(program)
        try:
            if self.mine.poll(LIMIT):
                return str(self.mine.recv())
        except EOFError:
            pass
        self.child.kill()
        self.child.join()
        self.start()
        return "died"


def _answer(ours: Connection, engine: str) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while True:
        try:
            ours.send(next(batch([ours.recv()], engine)).kind)
        except AssertionError:  # the host's compiler refused it
            ours.send("invalid")


if __name__ == "__main__":
    main()
