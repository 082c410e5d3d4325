"""The functions that an array's operators and methods call: ops, and a few functions that are not ops.

`metalnb.arrays.implementations` is filled from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import numpy_functions, numpy_ufuncs, op_table
from .indexing import array_indexing

__all__ = ["find"]

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "array_function": numpy_functions.function,
    "get": array_indexing.get,
    "set": array_indexing.set_items,
    "ufunc": numpy_ufuncs.ufunc,
}


def find(name: str) -> Callable[..., Any]:
    """Return the function that an array's operator or method names.

    Raises
    ------
    KeyError
    """
    return _FUNCTIONS.get(name) or op_table.op(name)
