"""Run programs on an engine and on the host, and tell where the two differ."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import metalnb as mnb
from metalnb.engine.clang.driver import clang

from .host_text import HOST_PRELUDE, host
from .metal_text import METAL_PRELUDE, metal
from .tree import ATOMICS, CELLS, SLOTS, Program

__all__ = ["Outcome", "batch"]

# (threads of the grid, threads of a threadgroup): whole SIMD-groups, parts of one, and tails of both.
LAUNCHES = (
    (1, 1), (7, 7), (9, 1), (31, 31), (40, 8), (64, 32), (70, 33), (100, 64), (257, 256), (300, 100), (96, 96),
    (95, 31),
)  # fmt: skip
_FLAGS = (
    "-x", "c++", "-std=c++20", "-O0", "-fPIC", "-nostdinc", "-ffreestanding", "-fno-exceptions", "-fwrapv",
    "-fsigned-char", "-ffp-contract=off", "-Wno-everything", "-Xclang", "-ffloat16-excess-precision=none",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a program: ``kind`` is "same", "different" or "refused", ``told`` what was seen."""

    seed: int
    kind: str
    told: str = ""


def batch(programs: Sequence[Program], engine: str = "cpu") -> Iterator[Outcome]:
    """Yield what became of each program, run on the host and on an engine."""
    with _on_host(programs) as library:
        for math in ("fast", "precise"):
            chosen = {f"k{i}": p for i, p in enumerate(programs) if p.math == math}
            if not chosen:
                continue
            text = METAL_PRELUDE + "".join(metal(p, name) for name, p in chosen.items())
            try:
                compiled = mnb.compile(text, math=math, engine=engine)
            except mnb.MetalnbError as error:
                if len(chosen) == 1:
                    yield Outcome(next(iter(chosen.values())).seed, "refused", str(error))
                else:
                    for program in chosen.values():
                        yield from batch([program], engine)
                continue
            for name, program in chosen.items():
                yield _outcome(program, compiled[name], library[name])


def _outcome(program: Program, kernel: Any, on_host: Any) -> Outcome:
    dice = np.random.default_rng(program.seed)
    for grid, threadgroup in (LAUNCHES[i] for i in dice.permutation(len(LAUNCHES))[:4]):
        inputs, n = _inputs(dice), int(dice.choice([0, 1, 3, 8, 100, 2**32 - 1]))
        want, out = np.zeros((2, grid, SLOTS), np.uint32)
        wanted, cells = _cells(), _cells()
        for first in range(0, grid, threadgroup):
            pointers = [ctypes.c_void_p(x.ctypes.data) for x in (want, *inputs)]
            numbers = [ctypes.c_uint(x) for x in (0, n, first, min(threadgroup, grid - first))]
            on_host(*pointers, *numbers[:2], ctypes.c_void_p(wanted.ctypes.data), *numbers[2:])
        shared = [cells] if program.cells else []
        try:
            kernel(out, *inputs, 0, n, *shared, grid=grid, threadgroup=threadgroup)
        except mnb.MetalnbError as error:
            return Outcome(program.seed, "refused", str(error))
        wrong = np.argwhere(want != out)
        if len(wrong):
            i, slot = wrong[0]
            launch = f"grid {grid}, threadgroup {threadgroup}, n {n}: {len(wrong)} of {want.size} words"
            first_wrong = f"first: thread {i}, word {slot}: {out[i, slot]}, not {want[i, slot]}"
            return Outcome(program.seed, "different", f"{launch}, {first_wrong}")
        if not np.array_equal(wanted, cells):
            launch = f"grid {grid}, threadgroup {threadgroup}, n {n}"
            return Outcome(program.seed, "different", f"{launch}: cells {cells.tolist()}, not {wanted.tolist()}")
    return Outcome(program.seed, "same")


def _cells() -> np.ndarray:
    """Return the cells that atomic operations change, as they are before: two for each, and the threadgroups' sums."""
    return np.concatenate([np.repeat(np.array([*ATOMICS.values()], np.uint32), 2), np.zeros(CELLS, np.uint32)])


def _inputs(dice: np.random.Generator) -> list[np.ndarray]:
    """Return the five input arrays: 64 elements each, edges among them."""
    made: list[np.ndarray] = []
    for kind in (np.uint32, np.int32, np.int64):
        limits = np.iinfo(kind)
        x = dice.integers(limits.min, limits.max, 64, kind, endpoint=True)
        x[::3] = dice.integers(0, 40, len(x[::3]))
        x[:6] = [0, 1, limits.max, limits.min, limits.max - 1, 2]
        made.append(dice.permutation(x))
    f = (dice.normal(size=64) * 10.0 ** dice.integers(-3, 4, 64)).astype(np.float32)
    f[:9] = [0, 1, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 3.4e38, 2.5]
    return [*made, dice.permutation(f), dice.integers(0, 255, 64, np.uint8, endpoint=True)]


@contextlib.contextmanager
def _on_host(programs: Iterable[Program]) -> Iterator[ctypes.CDLL]:
    """Yield programs built for this machine, without optimisation and without any library."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = HOST_PRELUDE + "".join(host(p, f"k{i}") for i, p in enumerate(programs))
        (folder / "host.cpp").write_text(text, encoding="utf-8")
        target = ("--target=x86_64-linux-gnu", "-mf16c")
        _run([*clang(), *target, *_FLAGS, "-c", "host.cpp", "-o", "host.o"], folder)
        _run([*clang()[:-1], "ld.lld", "-shared", "host.o", "-o", "host.so"], folder)
        yield ctypes.CDLL(str(folder / "host.so"))


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"the host's compiler refused the program:\n{done.stderr[:3000]}"
        raise AssertionError(message)
