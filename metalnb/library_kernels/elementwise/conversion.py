"""astype: convert an array to another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.promotion import as_dtype
from ..launching.copying import as_array, convert, copy_into
from ..op import ALL, op

__all__ = ["astype"]


def _astype_reference(x: Any, dtype: Any, **_options: Any) -> Any:
    """Convert to the dtype as NumPy does."""
    return x.astype(dtype)


@op(
    "moving",
    reference=_astype_reference,
    dtypes=ALL,
    kernels=("copy.metal", "transpose.metal"),
    numpy=(np.astype,) if hasattr(np, "astype") else (),
    flops=0,
)
def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Array:
    """Convert an array to a dtype.

    Parameters
    ----------
    x : Array
    dtype : dtype
    copy : bool
        Whether to copy even if the array already has that dtype; if False, the array itself is returned then.
    device : str, optional
        The name of an engine.

    Returns
    -------
    Array
        Contiguous, with x's shape. Floats are truncated to integers; as in C, a value that does not fit is undefined.
    """
    x = as_array("astype", x)
    target = as_dtype(dtype, "astype")
    result = copy_into(empty(x.shape, target, x.engine), x) if copy else convert(x, target)
    return result if device is None else result.to_device(device)
