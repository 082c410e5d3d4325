"""Puzzles: short kernels to be written, checked against a specification in NumPy.

>>> from metalnb import puzzles
>>> puzzles.puzzle("add_ten")      # what is asked, and the cell to begin with
>>> puzzles.check(add_ten)         # is it right? on sizes and numbers that you have not seen
>>> puzzles.show(add_ten)          # what each thread reads and writes
>>> puzzles.hint("add_ten")        # a nudge; again for the next

puzzle.py        what a puzzle is
simple.py, together.py   the puzzles; inputs.py, what the second are given
check.py         right or wrong, and why
order.py         the same kernel with its SIMD-groups in another order
draw.py          the picture of it
solutions/       one way to solve each
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from metalnb.display import Source
from metalnb.errors import ArgumentError
from metalnb.kernel import Kernel

from . import cooperative_puzzles, elementwise_puzzles
from .access_diagram import AccessDiagram, access_diagram
from .checker import Verdict, check_kernel
from .puzzle import Puzzle

__all__ = ["PUZZLES", "Puzzle", "Verdict", "check", "hint", "puzzle", "show", "solution"]

_IN_ORDER = (*elementwise_puzzles.PUZZLES, *cooperative_puzzles.PUZZLES)
PUZZLES: Mapping[str, Puzzle] = MappingProxyType({p.name: p for p in _IN_ORDER})

_asked: dict[str, int] = {}


def puzzle(name: str | int) -> Puzzle:
    """Give a puzzle by its kernel's name or its number.

    Raises
    ------
    ArgumentError
        When there is no such puzzle.
    """
    if isinstance(name, int) and 1 <= name <= len(PUZZLES):
        return list(PUZZLES.values())[name - 1]
    if name not in PUZZLES:
        raise ArgumentError(f"no puzzle {name!r}; there are: {', '.join(PUZZLES)}, or 1 to {len(PUZZLES)}.")
    return PUZZLES[str(name)]


def check(kernel: Kernel, *, seed: int | None = None) -> Verdict:
    """Tell whether a kernel solves the puzzle that it is named after.

    Parameters
    ----------
    kernel : Kernel
    seed : int, optional
        Of the random inputs; by default they are fresh each time.

    Returns
    -------
    Verdict
        True when it does; else its message says what is wrong: the first wrong element with what was expected, elements
        never written, elements that two threads write, accesses beyond the end, and some missing barriers: on a CPU not
        every one shows.
    """
    return check_kernel(_puzzle_of(kernel, "check"), kernel, seed)


def show(kernel: Kernel) -> AccessDiagram:
    """Draw what each thread of a small dispatch reads and writes."""
    return access_diagram(_puzzle_of(kernel, "show"), kernel)


def hint(name: str | int) -> str:
    """Give the next hint of a puzzle; after the last one it begins again."""
    asked = puzzle(name)
    at = _asked.get(asked.name, 0)
    _asked[asked.name] = at + 1
    return asked.hints[at % len(asked.hints)]


def solution(name: str | int) -> Source:
    """Give one way to solve a puzzle."""
    return Source((Path(__file__).parent / "solutions" / f"{puzzle(name).name}.metal").read_text("utf-8"))


def _puzzle_of(kernel: Any, who: str) -> Puzzle:
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f"{who}: needs a kernel; got {type(kernel).__name__}. Run the %%metal cell first.")
    return puzzle(kernel.signature.name)
