"""Reduce a kernel's LLVM text that shows a fault: ``python tests/fuzz/reduce_llvm.py kernel.ll --differs``.

The kernel is given as the LLVM IR of one thread (`metalnb.engine.cpu.lanes.vector_build.thread_text`), as a cell in a
``.metal`` file, or as the seed of a random program. Blocks, instructions and operands are removed, by halves first, as
long as the fault remains; the smallest text is written to standard output.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

import metalnb as mnb  # noqa: E402
from fuzz.metal_text import cell, metal  # noqa: E402
from fuzz.programs import generate  # noqa: E402
from fuzz.reducing.edits import KINDS, Edit, apply_edits, entry, merge_blocks, prune  # noqa: E402
from fuzz.reducing.judge import DIED, Judge  # noqa: E402
from fuzz.reducing.run_forms import Launch, in_vectors, object_of_thread, one_at_a_time, prepare, vector_code  # noqa: E402
from fuzz.trial import arguments, launches  # noqa: E402
from metalnb.cache import digest  # noqa: E402
from metalnb.engine.clang.driver import BackendError  # noqa: E402
from metalnb.engine.cpu.lanes.vector_build import thread_text  # noqa: E402
from metalnb.engine.llvm.instructions import IRFunction  # noqa: E402
from metalnb.engine.llvm.llvm_types import UnsupportedIR  # noqa: E402
from metalnb.engine.vectorizer.not_vectorized import NotVectorized  # noqa: E402
from metalnb.errors import EngineUnavailable  # noqa: E402

LIMIT = 30.0  # seconds to compile and run a kernel in one form
_ARRAYS, _WORDS = 16, 1 << 14  # the arrays for a kernel whose own are not given

Fails = Callable[[str], bool]


def reduced(text: str, fails: Fails) -> Iterator[str]:
    """Yield ever smaller texts that still fail; from the last one nothing more can be removed."""
    done = {text}

    def still_fails(candidate: str) -> bool:
        if candidate in done or not any(inst.opcode == "ret" for inst in entry(candidate)):
            return False
        done.add(candidate)
        return fails(candidate)

    smallest, before = text, ""
    while smallest != before:
        before = smallest
        for kind in KINDS:
            for smaller in _by_halves(smallest, kind, still_fails):
                yield (smallest := smaller)
        for shorter in (merge_blocks, prune):
            if still_fails(shortened := shorter(smallest)):
                yield (smallest := shortened)


def _by_halves(text: str, kind: Callable[[IRFunction], list[Edit]], still_fails: Fails) -> Iterator[str]:
    """Yield texts with edits of one kind: all of them, each half, each quarter, … each of them."""
    step = len(kind(entry(text)))
    while step:
        at = 0
        while chosen := kind(entry(text))[at : at + step]:
            if still_fails(edited := apply_edits(text, chosen)):
                yield (text := edited)
            else:
                at += step
        step //= 2


# ---- What is asked of a text.


class Question:
    """Whether a text still shows a fault.

    Parameters
    ----------
    launch : Launch
    fault : {"differs", "died", "raises", "crashes", "slow"}
        Vector code writes other results than threads run one at a time; it crashes or does not end, as they do; the
        vectorizer raises; clang does not compile its text; or both take more than `seconds` of processor time.
    seconds : float, optional
    """

    def __init__(self, launch: Launch, fault: str, seconds: float = LIMIT) -> None:
        self.launch, self.fault, self.seconds = launch, fault, seconds
        prepare()  # here, since the child may be restarted
        self.judge = Judge(_answer, LIMIT if fault != "slow" else 2 * seconds + LIMIT)

    def __call__(self, text: str) -> bool:
        """Return the answer; False for a text that is not a valid kernel."""
        runs = self.fault in {"differs", DIED}
        threads = self._ask("threads" if runs else "object", text)
        if threads in {None, DIED}:
            return False
        answer = self._ask("vectors" if runs else "seconds", text)
        if self.fault == "slow":
            return isinstance(answer, float) and answer > self.seconds
        if self.fault != "differs":
            return answer == self.fault
        return answer not in {None, DIED, "raises", "crashes", threads} and threads == self._ask("differently", text)

    def _ask(self, form: str, text: str) -> str | float | None:
        answer: str | float | None = self.judge.ask((form, text, self.launch))
        return answer


def _answer(question: tuple[str, str, Launch]) -> str | float | None:
    """Return the memory's digest after a run in one form, or what is wrong; None if the text is not valid."""
    form, text, launch = question
    try:
        if form == "seconds":  # of all processors
            start = sum(os.times()[:4])
            vector_code(text, launch)
            return sum(os.times()[:4]) - start
        if form == "object":
            memory: bytes | None = object_of_thread(text)
        elif form == "vectors":
            memory = in_vectors(text, launch)
        else:
            memory = one_at_a_time(text, launch, in_step_and_reversed=form == "differently")
        return digest(memory) if memory is not None else None
    except (UnsupportedIR, EngineUnavailable):
        return None
    except NotVectorized as reason:
        return "crashes" if isinstance(reason.__cause__, BackendError) else None
    except Exception:  # noqa: BLE001  (the fault that is asked about)
        return "raises"


# ---- The command line.


def main() -> None:
    """Read the command line and reduce."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="an .ll file, a .metal file, or a seed of run.py")
    fault = parser.add_mutually_exclusive_group()
    fault.add_argument("--differs", action="store_const", const="differs", dest="fault", default="differs",
                       help="vector code writes other results than threads run one at a time (default)")  # fmt: skip
    fault.add_argument("--dies", action="store_const", const=DIED, dest="fault", help="vector code crashes or hangs")
    fault.add_argument("--raises", action="store_const", const="raises", dest="fault", help="the vectorizer raises")
    fault.add_argument("--crashes", action="store_const", const="crashes", dest="fault", help="clang rejects its text")
    fault.add_argument("--slower-than", type=float, metavar="SECONDS", help="both together take longer")
    parser.add_argument("--kernel", help="which kernel of the .metal file (default: the first)")
    parser.add_argument("--arguments", type=Path, help="an .npz file with its arrays (default: small integers)")
    parser.add_argument("--grid", type=int, nargs="+", default=[100], help="threads along x, y, z (default 100)")
    parser.add_argument("--threadgroup", type=int, nargs="+", default=[64], help="threads of each (default 64)")
    options = parser.parse_args()
    chosen = ("slow", options.slower_than) if options.slower_than else (options.fault, LIMIT)
    with tempfile.TemporaryDirectory(prefix="metalnb-reduce-") as folder:
        os.environ.setdefault("METALNB_CACHE", folder)
        text, possible = _read(options)
        for launch in possible:
            if (question := Question(launch, *chosen))(text):
                break
            question.judge.close()
        else:
            sys.exit(f"{options.source} shows no such fault")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        smallest = text
        with contextlib.suppress(KeyboardInterrupt):  # the smallest text so far is worth showing
            for smallest in reduced(text, question):
                print(f"# {sum(1 for _ in entry(smallest))} instructions", file=sys.stderr, flush=True)
        print(f"; grid {launch.grid}, threadgroup {launch.threadgroup}\n{smallest}")
        question.judge.close()


def _read(options: argparse.Namespace) -> tuple[str, Iterator[Launch]]:
    """Return a kernel's text, and its possible dispatches."""
    if options.source.isdigit():
        program = generate(int(options.source))
        kernel = mnb.compile(cell([metal(program, "k")]), math=program.math, engine="cpu").k
        return thread_text(kernel.unit), (
            Launch([np.atleast_1d(a) for a in arguments(program, launch)], launch.grid, launch.threadgroup)
            for launch in launches(program)
        )
    if options.arguments:
        with np.load(options.arguments) as file:
            arrays: Sequence[np.ndarray[Any, Any]] = list(file.values())
    else:
        dice = np.random.default_rng(1)
        arrays = [dice.integers(0, 64, _WORDS, np.uint32) for _ in range(_ARRAYS)]
    text = Path(options.source).read_text(encoding="utf-8")
    if options.source.endswith(".metal"):
        program = mnb.compile(text, engine="cpu")
        text = thread_text(program[options.kernel or next(iter(program))].unit)
    return text, iter([Launch(arrays, tuple(options.grid), tuple(options.threadgroup))])


if __name__ == "__main__":
    main()
