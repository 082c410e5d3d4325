"""The names of the array API at the top of `metalnb`: ops and their aliases, dtypes, constants."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..arrays.inspection import Namespace
from ..arrays.types import DTYPES, bfloat16
from . import table

__all__ = ["find", "names"]

# Source: Python array API standard 2024.12, "Constants" and "Inspection".
_CONSTANTS = {
    "__array_api_version__": "2024.12",
    "__array_namespace_info__": Namespace,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "newaxis": None,
    "pi": math.pi,
}


def find(name: str) -> Any:
    """Give what a name of the namespace stands for.

    Raises
    ------
    KeyError
        When it stands for nothing.
    AttributeError
        For ``bfloat16`` without the package ml_dtypes.
    """
    if name != "bfloat16":
        return _known()[name]
    try:
        return bfloat16()
    except TypeError as error:
        raise AttributeError(str(error)) from None


def names() -> tuple[str, ...]:
    """Give all names."""
    return (*_known(), "bfloat16")


@functools.cache
def _known() -> Mapping[str, Any]:
    ops = table.ops().values()
    found: dict[str, Any] = dict(_CONSTANTS)
    found |= {name: np.dtype(name) for name in DTYPES if name != "bfloat16"}
    found |= {alias: op for op in ops for alias in op.row.aliases}
    found |= {op.name: op for op in ops}
    return MappingProxyType(found)
