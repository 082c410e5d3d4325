"""Run random kernels on an engine against the host: ``python tests/fuzz/run.py --count 1000 --first 0``.

Each worker is a process of its own, so that one that dies is a finding too. Every finding is printed with its seed,
which makes the same program again; ``--shrink SEED`` prints the smallest kernel that still shows it. ``--without CURE``
leaves out one of the things that keep answers right, and stops at the first finding. What is compiled is kept in a
folder that goes with the run, unless METALNB_CACHE names one.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

from fuzz.cures import CURES, leave_out  # noqa: E402  (the path must be set first)
from fuzz.metal_text import METAL_PRELUDE, metal  # noqa: E402
from fuzz.programs import generate  # noqa: E402
from fuzz.shrink import shrink, size  # noqa: E402
from fuzz.tree import Program  # noqa: E402
from fuzz.trial import batch  # noqa: E402

BATCH = 20
LIMIT = 120.0  # seconds for a program; one that takes longer hangs


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=300, help="how many programs")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing new after so long")
    parser.add_argument("--findings", type=Path, help="write seeds, what was seen, and the kernels to this file")
    parser.add_argument("--without", choices=CURES, metavar="CURE", help=f"leave one out: {', '.join(CURES)}")
    parser.add_argument("--shrink", type=int, metavar="SEED", help="reduce the program of a seed that fails")
    parser.add_argument("--worker", nargs="*", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.without and (given.worker is not None or given.shrink is not None):
        leave_out(given.without)
    if given.worker is not None:
        _work([generate(seed) for seed in given.worker], given.engine)
    elif given.shrink is not None:
        _reduce(given.shrink, given.engine)
    else:
        with _cache():
            sys.exit(_campaign(given))


@contextlib.contextmanager
def _cache() -> Iterator[None]:
    """Give all workers one folder for what they compile; the headers are compiled once, before they are many."""
    with tempfile.TemporaryDirectory(prefix="metalnb-fuzz-") as folder:
        os.environ.setdefault("METALNB_CACHE", folder)
        yield


def _campaign(given: argparse.Namespace) -> int:
    """Run programs in batches; print each finding, and the sums. Return 1 when there was a finding."""
    start, sums, seen = time.monotonic(), collections.Counter[str](), 0
    end, stopped, first = given.first + given.count, threading.Event(), given.first
    batches = [range(at, min(at + BATCH, end)) for at in range(first, end, BATCH)]

    def judge(seeds: Sequence[int]) -> list[tuple[int, str, str]]:
        late = stopped.is_set() or time.monotonic() - start > given.seconds
        return [] if late else judged(seeds, given.engine, given.without)

    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool, _written(given.findings) as write:
        done = itertools.chain([judge(batches[0])], pool.map(judge, batches[1:])) if batches else iter(())
        for found in done:
            for seed, kind, told in found:
                sums[kind] += 1
                seen += 1
                if kind == "same":
                    continue
                print(f"seed {seed}: {kind}: {told}", flush=True)
                write(f"// seed {seed}: {kind}: {told}\n{metal(generate(seed), f'k{seed}')}\n")
                if given.without:
                    print(f"without {given.without}: found in kernel {seen}")
                    stopped.set()
                    return 1
            if found and seen % 400 == 0:
                print(f"# {seen} programs, {dict(sums)}, {time.monotonic() - start:.0f} s", flush=True)
    if given.without:
        print(f"without {given.without}: not in {seen} kernels")
    print(
        f"{seen} kernels from seed {first} on engine {given.engine}: {sums['different']} differences, "
        f"{sums['refused']} refusals, {sums['died']} deaths, {time.monotonic() - start:.0f} s"
    )
    return int(set(sums) != {"same"})


@contextlib.contextmanager
def _written(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Yield what writes to a file as soon as it is told, behind what all kernels stand on; without one, to nowhere."""
    if path is None:
        yield lambda _: None
        return
    with path.open("w", encoding="utf-8", buffering=1) as file:
        file.write(f"{METAL_PRELUDE}\n")
        yield file.write


def judged(seeds: Sequence[int], engine: str, without: str | None = None) -> list[tuple[int, str, str]]:
    """Return (seed, kind, what was seen) of programs, each batch run in a process of its own."""
    left_out = ("--without", without) if without else ()
    limit = LIMIT if len(seeds) == 1 else 5 * LIMIT
    command = [sys.executable, str(HERE / "run.py"), "--engine", engine, *left_out, "--worker", *map(str, seeds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        output, end = done.stdout, f"the process ended with status {done.returncode}: {done.stderr[-300:]}"
    except subprocess.TimeoutExpired as error:
        output, end = (error.stdout or b"").decode(), f"no end in {limit:.0f} s"
    found = {}
    for line in output.splitlines():
        seed, kind, told = line.split("\t", 2)
        found[int(seed)] = (int(seed), kind, told.replace("\\n", "\n"))
    missing = [s for s in seeds if s not in found]
    if len(missing) == 1:
        found[missing[0]] = (missing[0], "died", end)
    elif missing:
        for seed in missing:
            found[seed] = judged([seed], engine, without)[0]
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
