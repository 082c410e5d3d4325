"""The record of a puzzle: its task, its launch, and its specification."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from metalnb.display import Source

from .budgets import Budget

__all__ = ["Case", "LaunchOptions", "Puzzle"]

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n\n"

Array = np.ndarray[Any, Any]
LaunchOptions = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """Inputs chosen by hand, for cases that random numbers do not produce.

    Attributes
    ----------
    description : str
        The special property of the inputs; the text continues "with a of 100 elements, …".
    n : int
        The size, for `Puzzle.launch`.
    inputs : dict
        Arrays and scalars by parameter name, as `Puzzle.given` makes them.
    """

    description: str
    n: int
    inputs: dict[str, Any]


@dataclass(frozen=True)
class Puzzle:
    """One puzzle.

    Attributes
    ----------
    name : str
        The name of the kernel to write.
    title : str
    task : str
        The task, in a few sentences of Markdown.
    starter : str
        The kernel to start from; like every cell, it starts with the library's header.
    given : callable
        ``given(rng, n)`` returns the inputs for a size: a dict of arrays and scalars by parameter name.
    spec : callable
        ``spec(**inputs)`` returns the right answer: the puzzle in NumPy.
    launch : callable
        ``launch(n)`` returns grid, threadgroup and threadgroup_memory for a size.
    sizes : tuple of int
        The sizes that `check` tries.
    cases : tuple of Case
        The inputs that `check` tries afterwards.
    shown : int
        The size that `show` draws.
    hints : tuple of str
        The hints, from a nudge to nearly the answer.
    out : str
        The parameter that is written.
    dtype : type
        The dtype of the output.
    once : bool
        Whether each element must be written by only one thread.
    zeroed : bool
        Whether the output starts as 0, so that an element that is never written is not an error.
    budgets : tuple of callable
        Limits on the cost of a correct answer: each takes a `Profile` at the last size and returns a message if it
        exceeds the limit, else an empty string.
    """

    name: str
    title: str
    task: str
    starter: str
    given: Callable[[np.random.Generator, int], dict[str, Any]]
    spec: Callable[..., Array]
    launch: Callable[[int], LaunchOptions]
    sizes: tuple[int, ...] = (1, 8, 31, 32, 33, 100, 257)
    cases: tuple[Case, ...] = ()
    shown: int = 8
    hints: tuple[str, ...] = ()
    out: str = "out"
    dtype: Any = np.float32
    once: bool = True
    zeroed: bool = False
    budgets: tuple[Budget, ...] = ()

    @property
    def cell(self) -> Source:
        """The cell to start from, to be copied below ``%%metal``."""
        return Source(_HEAD + self.starter)

    def unknown_parameter(self, names: Iterable[str], inputs: Mapping[str, Any]) -> str:
        """Return a message about the first parameter that the puzzle has no argument for; empty if there is none."""
        unknown = [name for name in names if name not in inputs and name != self.out]
        if not unknown:
            return ""
        given = ", ".join([*inputs, self.out])
        message = f"the kernel has a parameter {unknown[0]!r}, but the puzzle gives {given}."
        return f"{message} Keep the head of the starter cell."

    def __repr__(self) -> str:
        return f"{self.title}\n\n{self.task}\n\n%%metal\n{self.cell}"

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        text = self.cell._repr_html_()
        html = f"<h4>{escape(self.title)}</h4><p>{escape(self.task)}</p>{text}"
        return {"text/plain": repr(self), "text/html": html}
