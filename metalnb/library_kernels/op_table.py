"""The table of ops by name, gathered from the rows of every module."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .op import Op

__all__ = ["MODULES", "op", "ops"]

# Modules with rows: `Elementwise` records in a tuple ROWS, or functions under the decorator `op`. An op whose name
# begins with an underscore is part of another op.
MODULES = (
    "elementwise.unary", "elementwise.conversion", "shapes.array_views", "shapes.flips_and_rolls", "shapes.joining",
    "shapes.stacking", "shapes.splitting", "shapes.repeating", "shapes.padding",
    "creation.filled", "creation.spaced_numbers", "creation.matrices", "creation.index_grids",
    "elementwise.binary", "elementwise.ternary", "elementwise.clipping", "elementwise.closeness",
    "elementwise.interpolation", "neural.activations", "neural.gating",
    "indexing.take_and_put", "indexing.nonzero",
    "sorting.sort", "sorting.selection", "sorting.searching", "sorting.unique", "sorting.set_algebra",
    "reductions.basic_reductions", "reductions.arg_reductions", "reductions.nan_reductions", "reductions.scans",
    "statistics.moments", "statistics.nan_moments", "statistics.quantiles", "statistics.histograms",
    "statistics.covariances",
    "linear_algebra.matrix_products", "linear_algebra.contractions",
    "norms.vector_norms", "norms.layer_norms", "norms.channel_norms",
    "neural.softmax", "neural.attention", "neural.convolution", "neural.pooling", "neural.losses", "neural.dense",
    "neural.embeddings", "neural.dropout", "neural.quantized", "neural.quantized_products",
)


@functools.cache
def ops() -> Mapping[str, Op]:
    """Return every op by its name."""
    ops_by_name: dict[str, Op] = {}
    for name in MODULES:
        module = importlib.import_module(f".{name}", __package__)
        functions = (v for n, v in vars(module).items() if isinstance(v, Op) and n[0] != "_")
        rows: list[Any] = [*getattr(module, "ROWS", ()), *functions]
        for row in rows:
            if ops_by_name.setdefault(row.name, row) is not row:
                raise ValueError(f"two ops are named {row.name!r}")
    return MappingProxyType(ops_by_name)


@functools.cache
def op(name: str) -> Op:
    """Return an op by its name or an alias.

    Raises
    ------
    KeyError
    """
    all_ops = ops()
    if name in all_ops:
        return all_ops[name]
    aliased = next((o for o in all_ops.values() if name in o.row.aliases), None)
    if aliased is None:
        raise KeyError(name)
    return aliased
