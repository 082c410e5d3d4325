"""A row of the table of kernels, and the comparison of a result with its oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import metalnb as mnb

FOLDER = Path(__file__).parent

Array = np.ndarray[Any, np.dtype[Any]]
Sizes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel's result, and the expected one.

    Attributes
    ----------
    got : array
    want : array
        The oracle's result: float64 or integers.
    roundings : float
        How many half-units in the last place of `got`'s dtype may separate them, in units of `scale`; 0 is exact.
    scale : array, optional
        The size that a rounding is relative to, if not the result: the sum of the magnitudes that each element adds up.
    epsilon : dtype, optional
        The type of intermediate roundings, if not the result's.
    """

    got: Array
    want: Array
    roundings: float = 0
    scale: Any = None
    epsilon: Any = None

    def verify(self) -> None:
        """Raise an AssertionError that names the worst element."""
        got, expected = np.asarray(self.got), np.asarray(self.want)
        assert got.shape == expected.shape, f"shape {got.shape}, want {expected.shape}"
        if self.roundings == 0:
            np.testing.assert_array_equal(got, expected)
            return
        numbers, expected = got.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(numbers[~finite], expected[~finite])
        scale = np.broadcast_to(np.abs(expected) if self.scale is None else self.scale, expected.shape)
        kind = self.epsilon or got.dtype
        unit, tiny = _precision(np.dtype(kind))
        with np.errstate(invalid="ignore"):
            excess = np.abs(numbers - expected) / (unit / 2 * scale + tiny)
        excess = np.where(finite, excess, 0)
        if excess.size and not excess.max() <= self.roundings:
            worst = np.unravel_index(np.nanargmax(np.where(np.isnan(excess), np.inf, excess)), excess.shape)
            message = (
                f"at {tuple(map(int, worst))}: got {numbers[worst]!r}, want {expected[worst]!r}: "
                f"{excess[worst]:.3g} roundings, {self.roundings:g} allowed"
            )
            raise AssertionError(message)


def _precision(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return a type's relative spacing and its smallest normal number, below which Metal may flush to zero."""
    if dtype.name == "bfloat16":
        return 2.0**-7, 2.0**-126
    info = np.finfo(dtype)
    return float(info.eps), float(info.tiny)


class Bench:
    """Where a case runs: it compiles the case's kernel file for one engine."""

    def __init__(self, name: str, engine: str, seed: np.random.Generator) -> None:
        self.name = name
        self.engine = engine
        self.rng = seed

    def load(self, **constants: Any) -> Any:
        """Compile the file, with these function constants."""
        return mnb.load(FOLDER / f"{self.name}.metal", engine=self.engine, constants=constants)

    def normal(self, *shape: int, dtype: Any = np.float32) -> Array:
        """Return random numbers around 0."""
        return self.rng.standard_normal(shape).astype(dtype)


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel file, its sizes, and the function that runs it and its oracle."""

    name: str
    run: Callable[..., Check | Iterable[Check]]
    sizes: tuple[Sizes, ...]
    metal: bool = True
    needs: str = ""


@dataclass(slots=True)
class Table:
    """Collects the cases of one file."""

    cases: list[Case] = field(default_factory=list)

    def case(self, *sizes: Sizes, name: str = "", **options: Any) -> Callable[[Any], Any]:
        """Register a function that runs ``<its name>.metal`` (or `name`) at each of `sizes`."""

        def enter(run: Any) -> Any:
            self.cases.append(Case(name or run.__name__, run, sizes or ({},), **options))
            return run

        return enter


def padded(n: int, group: int) -> int:
    """Return the number of threads in complete groups that cover n."""
    return -(-n // group) * group
