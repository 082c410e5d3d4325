"""The tests that `make test` leaves to `make test-long`: those marked ``long``, entirely or except for some cases."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["mark_long_tests"]


def mark_long_tests(items: Iterable[pytest.Item]) -> None:
    """Keep the mark ``long`` only on the cases that its arguments do not exempt.

    ``long(every=n)`` exempts the first case and every n-th after it. ``long(unless=condition)`` exempts the cases for
    which the condition is true; its parameters are named like the test's.
    """
    seen: collections.Counter[str] = collections.Counter()
    for item in items:
        for mark in [m for m in item.own_markers if m.name == "long" and m.kwargs]:
            item.own_markers.remove(mark)
            test = item.nodeid.partition("[")[0]
            if not _spared(item, seen[test], **mark.kwargs):
                item.add_marker("long")
            seen[test] += 1


def _spared(item: Any, number: int, *, every: int = 0, unless: Callable[..., bool] | None = None) -> bool:
    if unless is None:
        return number % every == 0
    return unless(*(item.callspec.params[name] for name in inspect.signature(unless).parameters))
