# Written by tests/public_stub.py from the module's public names (`make docs`). Do not edit.
"""Random arrays: ``mnb.random.randn(1000)``. The same seed gives the same numbers on every engine.

A generator consists of a key and the number of blocks used so far. The device computes the numbers from counters
(``random.metal``); NumPy draws a few distributions on the host (``distributions``). Bits, integers and uniform
floats are identical on every engine. Normal floats use only operations that IEEE 754 rounds exactly, so they too are
identical on engines that conform to it; metalcompute compiles with fast math, which may change the last bits.

Each array is filled by one dispatch. ``keys`` makes keys on the host, and ``generator`` starts the kernels through
`library_kernels.launching`.

The functions of this module share one generator, which `seed` restarts; its initial seed comes from the system.
"""

from builtins import bool as _bool
from metalnb import _ArrayLike
from metalnb.arrays.array import Array
from metalnb.random.generator import Generator as Generator
from metalnb.random.generator import Size
from numpy.typing import DTypeLike
from typing import Any
import builtins

__all__ = [
    "Generator", "beta", "binomial", "bytes", "choice", "default_generator", "default_rng", "exponential", "gamma",
    "laplace", "normal", "permutation", "poisson", "rand", "randint", "randn", "random", "random_integers",
    "random_sample", "ranf", "sample", "seed", "shuffle", "standard_exponential", "standard_gamma", "standard_normal",
    "uniform",
]

def beta(a: Any, b: Any, size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return floats on [0, 1] from the beta distribution, drawn on the host like `gamma`.

    Raises
    ------
    ValueError
        For a or b of 0 or less.
    """

def binomial(n: Any, p: Any, size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return how many of n trials succeed, each with probability p; drawn on the host like `gamma`.

    Raises
    ------
    ValueError
        For a negative n, a p outside [0, 1], and if the dtype cannot hold a count.
    """

def bytes(length: int) -> builtins.bytes:
    """Return random bytes; a negative length raises ValueError."""

def choice(a: Any, size: Size = None, replace: _bool = True, p: Any = None, axis: int = 0) -> Any:
    """Choose among an array's rows, or the integers below a number.

    Parameters
    ----------
    a : int, Array or sequence
        If arrays cannot hold its elements, such as text or float64, the result is a NumPy array.
    size : int or tuple of int, optional
    replace : bool
        Whether an element can be chosen more than once.
    p : sequence of float, optional
        The probability of each element; their sum must be 1. Only with `replace`.
    axis : int

    Raises
    ------
    ValueError
        If there are too few elements to choose from, or `p` does not fit.
    """

def default_generator() -> Generator:
    """Return the generator that the functions of this module share."""

def default_rng(seed: int | None = None) -> Generator:
    """Return a new generator, like NumPy's function of the same name."""

def exponential(scale: float = 1.0, size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return floats from the exponential distribution with a mean: -scale log(1 - random()), at most 16.6 scale.

    Raises
    ------
    ValueError
        If the mean is negative.
    """

def gamma(shape: Any, scale: Any = 1.0, size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return floats from the gamma distribution with a shape and a scale, which may be numbers or arrays.

    NumPy's `Generator` draws them on the host in float64, so they depend on the seed and on NumPy's version.

    Raises
    ------
    ValueError
        For a negative shape or scale.
    """

def laplace(loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return floats from the double exponential distribution around a mean.

    Raises
    ------
    ValueError
        If the scale is negative.
    """

def normal(loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return floats from the normal distribution with a mean and a standard deviation.

    Raises
    ------
    ValueError
        If the standard deviation is negative.
    """

def permutation(x: int | _ArrayLike, axis: int = 0) -> Array:
    """Return a random permutation of an array's rows, or of 0 … x - 1; every order is equally likely."""

def poisson(lam: Any = 1.0, size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return counts from the Poisson distribution with mean `lam`, drawn on the host like `gamma`.

    Raises
    ------
    ValueError
        For a negative `lam`, and if the dtype cannot hold a count.
    """

def rand(*shape: int, dtype: DTypeLike | None = ...) -> Array:
    """Return floats on [0, 1): ``rand(3, 4)``."""

def randint(
    low: int,
    high: int | None = None,
    size: Size = None,
    dtype: DTypeLike | None = ...,
    *,
    endpoint: _bool = False,
) -> Array:
    """Return integers, all equally likely.

    Parameters
    ----------
    low, high : int
        From `low` up to but not including `high`; from 0 up to `low` when `high` is left out.
    size : int or tuple of int, optional
    dtype : dtype
        Any integer dtype, or bool.
    endpoint : bool
        Whether `high` is included.

    Raises
    ------
    ValueError
        If there is no such integer, or the dtype cannot hold them all.
    """

def randn(*shape: int, dtype: DTypeLike | None = ...) -> Array:
    """Return standard normal floats: ``randn(3, 4)``."""

def random(size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return uniform floats on [0, 1): multiples of 2^-24, or of 2^-11 for float16 and 2^-8 for bfloat16."""

def random_integers(low: int, high: int | None = None, size: Size = None) -> Array:
    """Return integers from `low` up to and including `high`; from 1 up to `low` when `high` is left out."""

def random_sample(size: Size = None) -> Array:
    """Return floats on [0, 1); this is NumPy's older name for `random`."""

def ranf(size: Size = None) -> Array:
    """Return floats on [0, 1); this is NumPy's older name for `random`."""

def sample(size: Size = None) -> Array:
    """Return floats on [0, 1); this is NumPy's older name for `random`."""

def seed(seed: int | None = None) -> None:
    """Restart the module's generator; without a seed, it takes one from the system."""

def shuffle(x: Array, axis: int = 0) -> None:
    """Put an array's rows in random order, in place.

    Raises
    ------
    TypeError
        For anything but a metalnb array.
    ValueError
        For a broadcast view, whose elements share memory.
    """

def standard_exponential(size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return floats from the exponential distribution with mean 1."""

def standard_gamma(shape: Any, size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return floats from the gamma distribution with a shape and scale 1, drawn on the host like `gamma`."""

def standard_normal(size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return floats from the normal distribution with mean 0 and standard deviation 1."""

def uniform(low: float = 0.0, high: float = 1.0, size: Size = None, dtype: DTypeLike | None = ...) -> Array:
    """Return floats on [low, high): ``low + (high - low) * random()``, which may round to `high`.

    Raises
    ------
    ValueError
        If a bound is not finite or exceeds the dtype, or if their difference exceeds float32.
    """
