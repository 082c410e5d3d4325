"""Locks that are free in a forked process.

A fork copies each lock in its current state, but only the thread that calls it. A lock that another thread held at that
moment would stay locked in the new process.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

__all__ = ["new_lock", "new_reentrant_lock"]

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """Return a lock."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_reentrant_lock() -> threading.RLock:
    """Return a lock that its owner may take again."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # noqa: SLF001  (as Python's own libraries do)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
