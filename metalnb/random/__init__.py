"""Random arrays: ``mnb.random.randn(1000)``. The same seed gives the same numbers on every engine.

A generator consists of a key and the number of blocks used so far. The device computes the numbers from counters
(``random.metal``); NumPy draws a few distributions on the host (``distributions``). Bits, integers and uniform
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
    """Return a new generator, like NumPy's function of the same name."""
    return Generator(seed)


def seed(seed: int | None = None) -> None:
    """Restart the module's generator; without a seed, it takes one from the system."""
    global _default  # noqa: PLW0603
    _default = Generator(seed)


def _default_function(method: Callable[Concatenate[Generator, P], R]) -> Callable[P, R]:
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


random = _default_function(Generator.random)
uniform = _default_function(Generator.uniform)
normal = _default_function(Generator.normal)
standard_normal = _default_function(Generator.standard_normal)
rand = _default_function(Generator.rand)
randn = _default_function(Generator.randn)
randint = _default_function(Generator.randint)
permutation = _default_function(Generator.permutation)
shuffle = _default_function(Generator.shuffle)
choice = _default_function(Generator.choice)
exponential = _default_function(Generator.exponential)
standard_exponential = _default_function(Generator.standard_exponential)
laplace = _default_function(Generator.laplace)
gamma = _default_function(Generator.gamma)
standard_gamma = _default_function(Generator.standard_gamma)
beta = _default_function(Generator.beta)
poisson = _default_function(Generator.poisson)
binomial = _default_function(Generator.binomial)
random_integers = _default_function(Generator.random_integers)
random_sample = ranf = sample = _default_function(Generator.random_sample)
bytes = _default_function(Generator.bytes)
