"""Puzzles: check a learner's kernel, explain what is wrong, and draw its accesses.

>>> from metalnb import puzzles
>>> puzzles.puzzle("add_ten")      # the task, and the cell to start from
>>> puzzles.check(add_ten)         # is it right? on sizes and numbers that you have not seen
>>> puzzles.show(add_ten)          # what each thread reads and writes
>>> puzzles.hint("add_ten")        # a nudge; again for the next

A puzzle is a short kernel to write, checked against a specification in NumPy. ``puzzle`` is the record of a puzzle;
``elementwise_puzzles``, ``cooperative_puzzles``, ``lane_puzzles`` and ``tile_puzzles`` (with ``inputs``) contain them,
and ``solutions`` one way to solve each. ``checker`` judges a kernel, with ``simdgroup_order``, which runs the
SIMD-groups in another order, and ``budgets``, which limit the cost of a correct answer; ``access_diagram`` draws. The
kernel runs on metalnb's own inputs: the learner's arrays must not change here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from metalnb.call.kernel import Kernel
from metalnb.display import Source
from metalnb.errors import ArgumentError

from . import cooperative_puzzles, elementwise_puzzles, lane_puzzles, tile_puzzles
from .access_diagram import AccessDiagram, access_diagram
from .checker import Verdict, check_kernel
from .puzzle import Puzzle

__all__ = ["PUZZLES", "Puzzle", "Verdict", "check", "hint", "puzzle", "show", "solution"]

_IN_ORDER = (
    *elementwise_puzzles.PUZZLES, *cooperative_puzzles.PUZZLES, *lane_puzzles.PUZZLES, *tile_puzzles.PUZZLES,
)  # fmt: skip
PUZZLES: Mapping[str, Puzzle] = MappingProxyType({p.name: p for p in _IN_ORDER})

_asked: dict[str, int] = {}


def puzzle(name: str | int) -> Puzzle:
    """Return a puzzle by its kernel's name or its number.

    Raises
    ------
    ArgumentError
        If the puzzle is unknown.
    """
    if not isinstance(name, str) and name in range(1, len(PUZZLES) + 1):
        return list(PUZZLES.values())[int(name) - 1]
    if not isinstance(name, str) or name not in PUZZLES:
        raise ArgumentError(f"no puzzle {name!r}; there are: {', '.join(PUZZLES)}, or 1 to {len(PUZZLES)}.")
    return PUZZLES[name]


def check(kernel: Kernel, *, seed: int | None = None) -> Verdict:
    """Check whether a kernel solves the puzzle of its name.

    Parameters
    ----------
    kernel : Kernel
    seed : int, optional
        The seed of the random inputs; by default they are new each time.

    Returns
    -------
    Verdict
        True if it does. Otherwise its message describes the error: the first wrong element and its expected value,
        elements never written, elements that two threads write, accesses beyond the end, some missing barriers (a CPU
        does not reveal all of them), or, for a correct answer, operations beyond the puzzle's limits.
    """
    return check_kernel(_puzzle_of(kernel, "check"), kernel, seed)


def show(kernel: Kernel) -> AccessDiagram:
    """Draw the reads and writes of each thread in a small dispatch."""
    return access_diagram(_puzzle_of(kernel, "show"), kernel)


def hint(name: str | int) -> str:
    """Return the next hint of a puzzle; after the last one, the first again."""
    chosen = puzzle(name)
    count = _asked.get(chosen.name, 0)
    _asked[chosen.name] = count + 1
    return chosen.hints[count % len(chosen.hints)]


def solution(name: str | int) -> Source:
    """Return one way to solve a puzzle."""
    return Source((Path(__file__).parent / "solutions" / f"{puzzle(name).name}.metal").read_text("utf-8"))


def _puzzle_of(kernel: Any, caller: str) -> Puzzle:
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f"{caller}: needs a kernel; got {type(kernel).__name__}. Run the %%metal cell first.")
    return puzzle(kernel.signature.name)
