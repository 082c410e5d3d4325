"""The best threadgroups that sweeps have found, stored on disk for each kernel and device.

At most one threadgroup is stored for each number of grid dimensions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from metalnb import cache
from metalnb.engine.base import Grid

from .grids import MAX_THREADS, dimensions

__all__ = ["forget", "key_of", "recall", "remember"]

_KIND = "tuned"


def key_of(content: tuple[Any, ...], kernel: str, device: str) -> str:
    """Return the key of a kernel's threadgroups: a digest of its program's content, its name and the device's name."""
    return cache.digest(repr(content), kernel, device)


def recall(key: str) -> dict[int, Grid]:
    """Return the stored threadgroups, by number of grid dimensions."""
    data = cache.store().get(key, _KIND)
    if data is None:
        return {}
    try:
        groups = {int(n): tuple(map(int, group)) for n, group in json.loads(data).items()}
    except (ValueError, TypeError, AttributeError):
        return {}
    return {n: (g[0], g[1], g[2]) for n, g in groups.items() if len(g) == 3 and min(g) > 0 and _fits(g)}


def remember(key: str, grid: Grid, threadgroup: Grid) -> None:
    """Store a threadgroup for grids with the same number of dimensions."""
    _store(key, {**recall(key), dimensions(grid): threadgroup})


def forget(key: str) -> None:
    """Restore the default threadgroups."""
    _store(key, {})


def _store(key: str, groups: Mapping[int, Grid]) -> None:
    cache.store().put(key, _KIND, json.dumps({str(n): list(g) for n, g in groups.items()}).encode())


def _fits(group: tuple[int, ...]) -> bool:
    return math.prod(group) <= MAX_THREADS
