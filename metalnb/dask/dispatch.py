"""What Dask looks up by an array's type, so that its own methods work on blocks of ours without ``meta=``."""

from __future__ import annotations

from dask.array.dispatch import concatenate_lookup, numel_lookup, tensordot_lookup

from metalnb.arrays.array import Array
from metalnb.library_kernels.namespace import find

__all__ = ["register"]


def register() -> None:
    """Tell Dask of our arrays."""
    concatenate_lookup.register(Array, lambda arrays, axis=0: find("concat")(arrays, axis=axis))
    tensordot_lookup.register(Array, lambda a, b, axes=2: find("tensordot")(a, b, axes=axes))
    numel_lookup.register(Array, lambda a, **_: a.size)
