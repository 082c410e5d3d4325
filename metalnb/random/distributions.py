"""Further distributions: the device derives some from uniform floats, and NumPy draws the rest on the host."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from metalnb.arrays.array import Array
from metalnb.arrays.convert import asarray
from metalnb.arrays.dtype_info import finfo
from metalnb.arrays.promotion import as_dtype, is_float
from metalnb.library_kernels.elementwise.elementwise_by_name import BY_NAME

from .keys import CHILD, block

__all__ = ["Distributions", "Size"]

Size = int | Iterable[int] | None

_FLOAT32 = np.dtype(np.float32)
_LOG1P, _ABS = BY_NAME["log1p"], BY_NAME["abs"]


class Distributions:
    """The methods of a generator whose numbers are derived from uniform numbers, or drawn by NumPy."""

    key: int
    device: str | None

    def exponential(self, scale: float = 1.0, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return floats from the exponential distribution with a mean: -scale log(1 - random()), at most 16.6 scale.

        Raises
        ------
        ValueError
            If the mean is negative.
        """
        if not scale >= 0:
            raise ValueError(f"exponential: scale must be 0 or more; got {scale}.")
        return self._convert("exponential", _LOG1P(-self._uniform(size)) * -float(scale), dtype)

    def standard_exponential(self, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return floats from the exponential distribution with mean 1."""
        return self.exponential(1.0, size, dtype)

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return floats from the double exponential distribution around a mean.

        Raises
        ------
        ValueError
            If the scale is negative.
        """
        if not scale >= 0:
            raise ValueError(f"laplace: scale must be 0 or more; got {scale}.")
        uniform = self._uniform(size) - 0.5 + 2.0**-25  # symmetric about 0, and never at an end
        distance = _LOG1P(_ABS(uniform) * -2.0) * -float(scale)
        return self._convert("laplace", BY_NAME["copysign"](distance, uniform) + float(loc), dtype)

    # ---- Distributions that NumPy draws by rejection sampling. Each call takes its own stream.
    def gamma(self, shape: Any, scale: Any = 1.0, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return floats from the gamma distribution with a shape and a scale, which may be numbers or arrays.

        NumPy's `Generator` draws them on the host in float64, so they depend on the seed and on NumPy's version.

        Raises
        ------
        ValueError
            For a negative shape or scale.
        """
        return self._draw_with_numpy("gamma", size, _float_dtype("gamma", dtype), shape, scale)

    def standard_gamma(self, shape: Any, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return floats from the gamma distribution with a shape and scale 1, drawn on the host like `gamma`."""
        return self.gamma(shape, 1.0, size, dtype)

    def beta(self, a: Any, b: Any, size: Size = None, dtype: Any = _FLOAT32) -> Array:
        """Return floats on [0, 1] from the beta distribution, drawn on the host like `gamma`.

        Raises
        ------
        ValueError
            For a or b of 0 or less.
        """
        return self._draw_with_numpy("beta", size, _float_dtype("beta", dtype), a, b)

    def poisson(self, lam: Any = 1.0, size: Size = None, dtype: Any = np.int64) -> Array:
        """Return counts from the Poisson distribution with mean `lam`, drawn on the host like `gamma`.

        Raises
        ------
        ValueError
            For a negative `lam`, and if the dtype cannot hold a count.
        """
        return self._draw_with_numpy("poisson", size, as_dtype(dtype, "poisson"), lam)

    def binomial(self, n: Any, p: Any, size: Size = None, dtype: Any = np.int64) -> Array:
        """Return how many of n trials succeed, each with probability p; drawn on the host like `gamma`.

        Raises
        ------
        ValueError
            For a negative n, a p outside [0, 1], and if the dtype cannot hold a count.
        """
        return self._draw_with_numpy("binomial", size, as_dtype(dtype, "binomial"), n, p)

    # ---- NumPy's older names.
    def random_sample(self, size: Size = None) -> Array:
        """Return floats on [0, 1); this is NumPy's older name for `random`."""
        return self._uniform(size)

    ranf = sample = random_sample

    def random_integers(self, low: int, high: int | None = None, size: Size = None) -> Array:
        """Return integers from `low` up to and including `high`; from 1 up to `low` when `high` is left out."""
        low, high = (1, low) if high is None else (low, high)
        integers: Array = self.randint(low, high, size, endpoint=True)  # type: ignore[attr-defined]
        return integers

    # ---- Implementation.
    def _uniform(self, size: Size) -> Array:
        numbers: Array = self.random(size)  # type: ignore[attr-defined]
        return numbers

    def _convert(self, caller: str, numbers: Any, dtype: Any) -> Array:
        result: Array = numbers.astype(_float_dtype(caller, dtype), copy=False)
        return result

    def _draw_with_numpy(self, caller: str, size: Size, target_dtype: np.dtype[Any], *parameters: Any) -> Array:
        words = block(self._take(1), self.key, CHILD)  # type: ignore[attr-defined]
        stream = np.random.Generator(np.random.Philox(key=words[0] | words[1] << 32))
        host_parameters = [np.asarray(p.read() if isinstance(p, Array) else p) for p in parameters]
        if any(not math.isfinite(v) for p in host_parameters for v in p.flat):
            raise ValueError(f"{caller}: parameters must be finite; got {', '.join(map(str, parameters))}.")
        numbers = np.asarray(getattr(stream, caller)(*(p[()] for p in host_parameters), size=size))
        most = numbers.max(initial=0)
        if numbers.dtype.kind == "i" and most > (largest := _largest_count(target_dtype)):
            raise ValueError(f"{caller}: {target_dtype} holds numbers up to {largest}; got {most}. Pass a wider dtype.")
        return asarray(numbers.astype(target_dtype), device=self.device)


def _float_dtype(caller: str, dtype: Any) -> np.dtype[Any]:
    target_dtype = as_dtype(dtype, caller)
    if not is_float(target_dtype):
        raise TypeError(f"{caller}: dtype must be float32, float16 or bfloat16; got {target_dtype}.")
    return target_dtype


def _largest_count(dtype: np.dtype[Any]) -> float:
    """Return the largest number that a dtype can represent."""
    if dtype == np.bool_:
        return 1
    return float(finfo(dtype).max) if is_float(dtype) else int(np.iinfo(dtype).max)
