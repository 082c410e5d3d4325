"""Random arrays: ``mnb.random.randn(1000)``. The same seed gives the same numbers on every engine.

A generator is a key and the number of blocks used so far. The device computes the numbers from counters
(``random.metal``); for a few distributions NumPy does so on the host (``distributions``). Bits, integers and uniform
floats are identical on every engine. Normal floats use only operations that IEEE 754 rounds exactly, so they too are
identical on engines that conform to it; metalcompute compiles with fast math, which may change the last bits.

Each array is filled by one dispatch. ``keys`` makes keys on the host, and ``generator`` starts the kernels through
`library_kernels.launching`.

The functions of this module share one generator, which `seed` restarts; its initial seed comes from the system.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from .generator import Generator

__all__ = [
    "Generator", "beta", "binomial", "bytes", "choice", "default_generator", "default_rng", "exponential", "gamma",
    "laplace", "normal", "permutation", "poisson", "rand", "randint", "randn", "random", "random_integers",
    "random_sample", "ranf", "sample", "seed", "shuffle", "standard_exponential", "standard_gamma",
    "standard_normal", "uniform",
]  # fmt: skip


P = ParamSpec("P")
R = TypeVar("R")

# ---- The module's own generator.
_default: Generator | None = None


def default_generator() -> Generator:
    """Return the generator that the functions of this module share."""
    global _default  # noqa: PLW0603  (one generator for all functions of the module)
    if _default is None:
        _default = Generator()
    return _default


def default_rng(seed: int | None = None) -> Generator:
    """Return a new generator, as NumPy's function of this name does."""
    return Generator(seed)


def seed(seed: int | None = None) -> None:
    """Restart the module's generator; without a seed, it takes one from the system."""
    global _default  # noqa: PLW0603
    _default = Generator(seed)


def _of_default(method: Callable[Concatenate[Generator, P], R]) -> Callable[P, R]:
    """Return a method of `Generator` as a function that uses the module's own generator."""

    def function(*args: P.args, **options: P.kwargs) -> R:
        return method(default_generator(), *args, **options)

    function.__name__ = function.__qualname__ = method.__name__
    function.__doc__ = method.__doc__
    function.__wrapped__ = method  # type: ignore[attr-defined]
    signature = inspect.signature(method)
    _, *parameters = signature.parameters.values()  # all but `self`
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


random = _of_default(Generator.random)
uniform = _of_default(Generator.uniform)
normal = _of_default(Generator.normal)
standard_normal = _of_default(Generator.standard_normal)
rand = _of_default(Generator.rand)
randn = _of_default(Generator.randn)
randint = _of_default(Generator.randint)
permutation = _of_default(Generator.permutation)
shuffle = _of_default(Generator.shuffle)
choice = _of_default(Generator.choice)
exponential = _of_default(Generator.exponential)
standard_exponential = _of_default(Generator.standard_exponential)
laplace = _of_default(Generator.laplace)
gamma = _of_default(Generator.gamma)
standard_gamma = _of_default(Generator.standard_gamma)
beta = _of_default(Generator.beta)
poisson = _of_default(Generator.poisson)
binomial = _of_default(Generator.binomial)
random_integers = _of_default(Generator.random_integers)
random_sample = ranf = sample = _of_default(Generator.random_sample)
bytes = _of_default(Generator.bytes)
