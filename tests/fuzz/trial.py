"""Run programs on an engine and on the host, and report where the two differ."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import metalnb as mnb
from metalnb.engine.clang.driver import clang_command

from .host_text import HOST_PRELUDE, host
from .metal_text import cell, metal
from .tree import ATOMICS, CELLS, SLOTS, Program

__all__ = ["Launch", "Outcome", "arguments", "batch", "batched", "expected", "launches"]

T = TypeVar("T")
Size = int | tuple[int, int]  # threads in one or two dimensions

# Kernels in a cell. Clang reads the whole cell for each kernel, and the prelude for each cell.
CELL = 4

# (threads of the grid, threads of a threadgroup): complete and partial SIMD-groups, with and without tails.
LAUNCHES = (
    (1, 1), (7, 7), (9, 1), (31, 31), (40, 8), (64, 32), (70, 33), (100, 64), (257, 256), (300, 100), (96, 96),
    (95, 31),
)  # fmt: skip
# The same in two dimensions: rows of whole, half and quarter SIMD-groups, and rows of other lengths.
PLANES = (
    ((24, 20), (8, 8)), ((16, 16), (16, 16)), ((33, 9), (16, 4)), ((40, 6), (5, 3)), ((64, 4), (32, 2)),
    ((17, 5), (17, 3)), ((20, 20), (4, 4)), ((48, 3), (48, 2)), ((7, 7), (3, 5)), ((10, 30), (10, 25)),
    ((64, 6), (64, 3)), ((100, 2), (100, 2)), ((32, 8), (8, 8)), ((64, 8), (16, 4)), ((96, 2), (32, 1)),
)  # fmt: skip
_FLAGS = (
    "-x", "c++", "-std=c++20", "-O0", "-fPIC", "-nostdinc", "-ffreestanding", "-fno-exceptions", "-fwrapv",
    "-fsigned-char", "-ffp-contract=off", "-Wno-everything", "-Xclang", "-ffloat16-excess-precision=none",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """A program's outcome: ``kind`` is "same", "different" or "refused", ``detail`` says how."""

    seed: int
    kind: str
    detail: str = ""


def batch(programs: Sequence[Program], engine: str = "cpu") -> Iterator[Outcome]:
    """Run each program on the host and on an engine; yield its outcome."""
    with _on_host(programs) as library:
        numbered = [*enumerate(programs)]
        for math in ("fast", "precise"):
            chosen = {f"k{i}": (p, library[f"k{i}"]) for i, p in numbered if p.math == math}
            for names in batched([*chosen], CELL):
                yield from _cell({name: chosen[name] for name in names}, math, engine)


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield a sequence in batches."""
    for at in range(0, len(items), size):
        yield items[at : at + size]


def _cell(chosen: Mapping[str, tuple[Program, Any]], math: str, engine: str) -> Iterator[Outcome]:
    """Yield the outcomes of one cell's programs."""
    text = cell(metal(p, name) for name, (p, _) in chosen.items())
    try:
        compiled = mnb.compile(text, math=math, engine=engine)
    except mnb.MetalnbError as error:
        if len(chosen) == 1:
            yield Outcome(next(iter(chosen.values()))[0].seed, "refused", str(error))
        else:
            for name, pair in chosen.items():
                yield from _cell({name: pair}, math, engine)
        return
    for name, (program, on_host) in chosen.items():
        yield _outcome(program, compiled[name], on_host)


def _outcome(program: Program, kernel: Any, on_host: Any) -> Outcome:
    for launch in launches(program):
        expected_words, expected_cells = expected(on_host, launch)
        operands = arguments(program, launch)
        out, cells = operands[0], operands[-1] if program.cells else expected_cells
        try:
            kernel(*operands, grid=launch.grid, threadgroup=launch.threadgroup)
        except mnb.MetalnbError as error:
            return Outcome(program.seed, "refused", str(error))
        wrong = np.argwhere(expected_words != out)
        if len(wrong):
            i, slot = wrong[0]
            first_wrong = f"first: thread {i}, word {slot}: {out[i, slot]}, not {expected_words[i, slot]}"
            return Outcome(program.seed, "different", f"{launch}: {len(wrong)} of {out.size} words, {first_wrong}")
        if not np.array_equal(expected_cells, cells):
            difference = f"cells {cells.tolist()}, not {expected_cells.tolist()}"
            return Outcome(program.seed, "different", f"{launch}: {difference}")
    return Outcome(program.seed, "same")


@dataclass(frozen=True, slots=True)
class Launch:
    """A dispatch: the threads of the grid and of a threadgroup, in one or two dimensions, the arrays, and a number."""

    grid: Size
    threadgroup: Size
    inputs: list[np.ndarray]
    n: int

    @property
    def threads(self) -> int:
        """The threads of the grid."""
        return int(np.prod(self.grid))

    def __str__(self) -> str:
        return f"grid {self.grid}, threadgroup {self.threadgroup}, n {self.n}"


def threadgroups(grid: Size, threadgroup: Size) -> Iterator[tuple[int, int, int]]:
    """Yield each one's first thread, the number of its threads, and how many of them are in a row."""
    (width, height), (x, y) = ((*np.atleast_1d(size).tolist(), 1)[:2] for size in (grid, threadgroup))
    for top in range(0, height, y):
        for left in range(0, width, x):
            across = min(x, width - left)
            yield top * width + left, across * min(y, height - top), across


def arguments(program: Program, launch: Launch) -> list[Any]:
    """Return a kernel's arguments: the output, the inputs, 0, a number, and the cells that threads share."""
    out, shared = np.zeros((launch.threads, SLOTS), np.uint32), [_cells()] if program.cells else []
    return [out, *launch.inputs, np.uint32(0), np.uint32(launch.n), *shared]


def launches(program: Program) -> Iterator[Launch]:
    """Yield a program's dispatches, the same ones each time."""
    dice = np.random.default_rng(program.seed)
    shapes: Sequence[Any] = PLANES if program.planar else LAUNCHES
    if program.holds("matrices"):  # matrices need whole SIMD-groups
        shapes = [s for s in shapes if all(threads % 32 == 0 for _, threads, _ in threadgroups(*s))]
    for grid, threadgroup in (shapes[i] for i in dice.permutation(len(shapes))[:4]):
        yield Launch(grid, threadgroup, _inputs(dice), int(dice.choice([0, 1, 3, 8, 100, 2**32 - 1])))


def expected(on_host: Any, launch: Launch) -> tuple[np.ndarray, np.ndarray]:
    """Return the output and the cells that the host's build of a program writes."""
    words, cells = np.zeros((launch.threads, SLOTS), np.uint32), _cells()
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (words, *launch.inputs)]
    pitch = int(np.atleast_1d(launch.grid)[0])
    for threadgroup in threadgroups(launch.grid, launch.threadgroup):
        numbers = [ctypes.c_uint(x) for x in (0, launch.n, *threadgroup, pitch)]
        on_host(*pointers, *numbers[:2], ctypes.c_void_p(cells.ctypes.data), *numbers[2:])
    return words, cells


def _cells() -> np.ndarray:
    """Return the initial values of the atomic operations' cells: two for each operation, and the threadgroups' sums."""
    return np.concatenate([np.repeat(np.array([*ATOMICS.values()], np.uint32), 2), np.zeros(CELLS, np.uint32)])


def _inputs(dice: np.random.Generator) -> list[np.ndarray]:
    """Return the five input arrays: 64 elements each, including edge cases."""
    arrays: list[np.ndarray] = []
    for kind in (np.uint32, np.int32, np.int64):
        limits = np.iinfo(kind)
        x = dice.integers(limits.min, limits.max, 64, kind, endpoint=True)
        x[::3] = dice.integers(0, 40, len(x[::3]))
        x[:6] = [0, 1, limits.max, limits.min, limits.max - 1, 2]
        arrays.append(dice.permutation(x))
    f = (dice.normal(size=64) * 10.0 ** dice.integers(-3, 4, 64)).astype(np.float32)
    f[:9] = [0, 1, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 3.4e38, 2.5]
    return [*arrays, dice.permutation(f), dice.integers(0, 255, 64, np.uint8, endpoint=True)]


@contextlib.contextmanager
def _on_host(programs: Iterable[Program]) -> Iterator[ctypes.CDLL]:
    """Yield programs built for this machine, without optimization and without any library."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = HOST_PRELUDE + "".join(host(p, f"k{i}") for i, p in enumerate(programs))
        (folder / "host.cpp").write_text(text, encoding="utf-8")
        target = ("--target=x86_64-linux-gnu", "-mf16c")
        _run([*clang_command(), *target, *_FLAGS, "-c", "host.cpp", "-o", "host.o"], folder)
        _run([*clang_command()[:-1], "ld.lld", "-shared", "host.o", "-o", "host.so"], folder)
        yield ctypes.CDLL(str(folder / "host.so"))


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"the host's compiler refused the program:\n{done.stderr[:3000]}"
        raise AssertionError(message)
