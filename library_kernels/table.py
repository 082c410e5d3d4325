"""The table of ops: every row of every module, by name."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .op import Op

__all__ = ["MODULES", "op", "ops"]

# Modules with rows: `Elementwise` records in a tuple ROWS, or functions under the decorator `op`; a name with a leading
# underscore is part of another op.
MODULES = (
    "elementwise.unary", "ops.conversion", "ops.array_views", "ops.joining", "ops.creation", "ops.matrices",
    "elementwise.binary", "elementwise.activations", "ops.sorting", "ops.indexed", "ops.reductions", "ops.statistics",
    "ops.searching", "ops.sets", "ops.scans", "ops.normalization", "ops.linear_algebra",
    "composed.nan_reductions", "composed.quantiles", "composed.histograms", "composed.lookups", "composed.covariances",
    "composed.contractions", "composed.padding", "composed.stacking", "composed.index_grids", "composed.set_algebra",
    "composed.selections", "composed.closeness", "neural.attention", "neural.convolution", "neural.pooling",
    "neural.channel_norms", "neural.losses", "neural.gating", "neural.dense",
    "neural.quantized",
)


@functools.cache
def ops() -> Mapping[str, Op]:
    """Return every op by its name."""
    found: dict[str, Op] = {}
    for name in MODULES:
        module = importlib.import_module(f".{name}", __package__)
        functions = (v for n, v in vars(module).items() if isinstance(v, Op) and n[0] != "_")
        rows: list[Any] = [*getattr(module, "ROWS", ()), *functions]
        for row in rows:
            if found.setdefault(row.name, row) is not row:
                raise ValueError(f"two ops are named {row.name!r}")
    return MappingProxyType(found)


@functools.cache
def op(name: str) -> Op:
    """Return an op by its name or an alias.

    Raises
    ------
    KeyError
    """
    known = ops()
    if name in known:
        return known[name]
    found = next((o for o in known.values() if name in o.row.aliases), None)
    if found is None:
        raise KeyError(name)
    return found
