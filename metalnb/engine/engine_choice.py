"""Choose the engine: the user's choice, the environment's, or the first that can run."""

from __future__ import annotations

import functools
import importlib
import os
import warnings
from typing import Any

from metalnb.errors import EngineUnavailable

from .base import Engine
from .engine_list import EngineList, EngineStatus
from .process_locks import new_reentrant_lock

__all__ = ["REGISTRY", "RENAMED", "current", "engines", "named", "use", "why_current"]

# Name -> module with open_engine(device), in the order in which a default is sought.
REGISTRY = {
    "metal": "metalnb.engine.metal",
    "metal:metalcompute": "metalnb.engine.metal.metalcompute_path",
    "cuda": "metalnb.engine.cuda",
    "cpu": "metalnb.engine.cpu",
}

RENAMED = {"native": "cpu"}  # former names, which sources and pickles may still contain

_lock = new_reentrant_lock()
_chosen: list[str] = []


@functools.cache
def _open(name: str) -> Engine:
    engine, _, device = _split(name)
    opened: Engine = importlib.import_module(REGISTRY[engine]).open_engine(int(device or 0))
    return opened


def _split(name: str) -> tuple[str, str, str]:
    """Split a name at its last colon into the engine's name, which may contain colons, and the device's index."""
    return (name, "", "") if name in REGISTRY else name.rpartition(":")


def _canonical_name(name: Any) -> str:
    """Check an engine's name, ``"cuda"`` or ``"cuda:1"``; the first device needs no index, so ``"cuda:0"`` has none.

    Raises
    ------
    EngineUnavailable
    """
    if not isinstance(name, str):
        message = f"an engine is named by a string; got {name!r}. There are: {', '.join(REGISTRY)}."
        raise EngineUnavailable(message)
    before, colon, device = name.partition(":")
    if before in RENAMED:
        _warn_renamed(before)
        name = f"{RENAMED[before]}{colon}{device}"
    engine, colon, device = _split(name)
    if engine not in REGISTRY:
        message = f"unknown engine {name!r}; there are: {', '.join(REGISTRY)}."
        raise EngineUnavailable(message)
    if colon and not (device.isascii() and device.isdecimal()):
        message = f"unknown device of engine {name!r}: a device is named by its index, as in '{engine}:0'."
        raise EngineUnavailable(message)
    return f"{engine}:{int(device)}" if int(device or 0) else engine


@functools.cache
def _warn_renamed(name: str) -> None:
    warnings.warn(f"engine {name!r} is called {RENAMED[name]!r} now", FutureWarning, stacklevel=4)


def named(name: str | None = None) -> Engine:
    """Return an engine by name, opened on first use; by default the one in use.

    Parameters
    ----------
    name : str, optional
        One of `engines`; ``"cuda:1"`` is the second device of an engine.

    Raises
    ------
    EngineUnavailable
        If there is no such engine or device, or it cannot run here.
    """
    if name is None:
        return current()
    canonical = _canonical_name(name)
    with _lock:
        return _open(canonical)


def current() -> Engine:
    """Return the engine in use: by `use`, else ``METALNB_ENGINE``, else the first of the registry that can run.

    Raises
    ------
    EngineUnavailable
        If none can run on this machine; the message has each one's reason.
    """
    with _lock:
        if _chosen:
            return named(_chosen[0])
        name = os.environ.get("METALNB_ENGINE")
        if name:
            return named(name)
        return named(_default())


def why_current() -> str:
    """Return the reason for `current`, as part of a sentence."""
    if _chosen:
        return "metalnb.use chose it"
    if os.environ.get("METALNB_ENGINE"):
        return "METALNB_ENGINE names it"
    return "it is the first that can run here"


@functools.cache
def _default() -> str:
    reasons = []
    for name in REGISTRY:
        try:
            _open(name)
        except EngineUnavailable as error:
            reasons.append(str(error))
        else:
            return name
    message = "no engine can run on this machine:\n  " + "\n  ".join(reasons)
    raise EngineUnavailable(message)


def use(name: str | None) -> Engine:
    """Choose the engine for everything compiled from now on.

    Parameters
    ----------
    name : str or None
        One of `engines`; a device after the first is named with its index, ``"cuda:1"``. None restores the default.

    Raises
    ------
    EngineUnavailable
        If the engine cannot run here, or has no such device; the choice then stays the same.
    """
    if name is None:
        _chosen.clear()
        return current()
    opened = named(name)
    _chosen[:] = [_canonical_name(name)]
    return opened


def engines() -> EngineList:
    """Return whether each engine can run here, on which device, or why not; a notebook shows a table.

    The first line names the engine in use, and why: `use` chose it, ``METALNB_ENGINE`` names it, or it is the first of
    the table that can run here.
    """
    statuses = {}
    for name in REGISTRY:
        try:
            opened = named(name)
        except EngineUnavailable as error:
            statuses[name] = EngineStatus(name, available=False, reason=str(error))
        else:
            caps = opened.caps
            statuses[name] = EngineStatus(
                name, available=True, device=caps.device, versions=tuple(caps.versions.items())
            )  # fmt: skip
    try:
        return EngineList(statuses, current().name, why_current())
    except EngineUnavailable as error:
        return EngineList(statuses, "", str(error))
