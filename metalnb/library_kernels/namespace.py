"""The names of the array API at the top of `metalnb`: ops and their aliases, dtypes, constants."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import engine as engines
from ..arrays.dtype_info import isdtype
from ..arrays.promotion import DTYPES, bfloat16
from . import op_table
from .planning.elementwise_plan import RANK

__all__ = ["Namespace", "find", "hint", "names"]

# The standard's dtypes; float16 and bfloat16 are additions, which it allows.
_STANDARD = tuple(name for name in DTYPES if name not in {"float16", "bfloat16"})

# Source: Python array API standard 2024.12, "Constants" and "Inspection".
_CONSTANTS = {
    "__array_api_version__": "2024.12",
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "newaxis": None,
    "pi": math.pi,
}

# Names that differ in PyTorch and NumPy, and features of both that Metal lacks.
_SUGGESTIONS = {
    "as_tensor": "mnb.asarray", "bmm": "mnb.matmul", "cat": "mnb.concat", "from_numpy": "mnb.asarray",
    "mm": "mnb.matmul", "manual_seed": "mnb.random.seed", "permute": "mnb.permute_dims", "tensor": "mnb.array",
    "unsqueeze": "mnb.expand_dims", "double": "mnb.float32", "float64": "mnb.float32: Metal has no float64",
}  # fmt: skip


def hint(name: str) -> str:
    """Return the suggestion for an unknown name, to append to a message; empty if there is none."""
    if name in {"nn", "functional"}:
        return ". The functions of torch.nn.functional are at the top level: mnb.relu, mnb.conv2d, mnb.cross_entropy"
    if name in _SUGGESTIONS:
        return f". Use {_SUGGESTIONS[name]}"
    other = getattr(np, name, None)
    if not callable(other) or isinstance(other, type):
        return ""
    return f". NumPy's takes the array's memory: np.{name}(x.numpy(), …)"


def find(name: str) -> Any:
    """Return the object that a name of the namespace refers to.

    Raises
    ------
    KeyError
        If the name is unknown.
    AttributeError
        For ``bfloat16`` without the package ml_dtypes.
    """
    if name != "bfloat16":
        return _public_values()[name]
    try:
        return bfloat16()
    except TypeError as error:
        raise AttributeError(str(error)) from None


def names() -> tuple[str, ...]:
    """Return all names."""
    return (*_public_values(), "bfloat16")


@functools.cache
def _public_values() -> Mapping[str, Any]:
    ops = op_table.ops().values()
    values: dict[str, Any] = {**_CONSTANTS, "__array_namespace_info__": Namespace}
    values |= {name: np.dtype(name) for name in DTYPES if name != "bfloat16"}
    values |= {alias: op for op in ops for alias in op.row.aliases}
    values |= {op.name: op for op in ops}
    return MappingProxyType(values)


class Namespace:
    """The namespace's capabilities (array API, "Inspection"), from `metalnb.__array_namespace_info__`."""

    def capabilities(self) -> dict[str, Any]:
        """Return the standard's options: boolean indexing, data-dependent shapes, the maximum number of axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": RANK}

    def default_device(self) -> str:
        """Return the name of the engine in use."""
        return engines.current().name

    def devices(self) -> list[str]:
        """Return the names of the engines that can run here."""
        return [name for name, status in engines.engines().items() if status.available]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of Python numbers; complex numbers are not supported."""
        _check_device(device)
        names = {"real floating": "float32", "integral": "int64", "indexing": "int64"}
        return {use: np.dtype(name) for use, name in names.items()}

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the standard's dtypes that arrays can have, by name; `kind` as for `isdtype`."""
        _check_device(device)
        dtypes_by_name = {name: np.dtype(name) for name in _STANDARD}
        return dtypes_by_name if kind is None else {n: d for n, d in dtypes_by_name.items() if isdtype(d, kind)}


def _check_device(device: str | None) -> None:
    if device is not None:
        engines.named(device)
