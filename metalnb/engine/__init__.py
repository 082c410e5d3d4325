"""Which engines there are, which can run here, and which one is in use."""

from __future__ import annotations

import functools
import importlib
import os
import threading
from dataclasses import dataclass

from metalnb.display import Listing, Table
from metalnb.errors import EngineUnavailable

from .base import Engine

__all__ = ["REGISTRY", "Engine", "EngineStatus", "current", "engines", "named", "use"]

# name -> module with open_engine(), in the order in which a default is sought.
REGISTRY = {
    "metal": "metalnb.engine.metal",
    "cpu": "metalnb.engine.cpu",
}

_lock = threading.RLock()
_chosen: list[str] = []


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """One engine on this machine.

    Attributes
    ----------
    name : str
    available : bool
    device : str
        The device's name, or an empty string.
    reason : str
        Why it cannot run here and what would mend it; empty when it can.
    versions : dict of str
    """

    name: str
    available: bool
    device: str = ""
    reason: str = ""
    versions: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.device}" if self.available else f"{self.name}: not here: {self.reason}"


@functools.cache
def _open(name: str) -> Engine:
    opened: Engine = importlib.import_module(REGISTRY[name]).open_engine()
    return opened


def named(name: str | None = None) -> Engine:
    """Give an engine by name, opened on first use; by default the one in use.

    Raises
    ------
    EngineUnavailable
        When there is no such engine, or it cannot run here.
    """
    if name is None:
        return current()
    if name not in REGISTRY:
        message = f"unknown engine {name!r}; there are: {', '.join(REGISTRY)}"
        raise EngineUnavailable(message)
    with _lock:
        return _open(name)


def current() -> Engine:
    """Give the engine in use: by `use`, else ``METALNB_ENGINE``, else the first of the registry that can run.

    Raises
    ------
    EngineUnavailable
        When none can run on this machine; the message has each one's reason.
    """
    with _lock:
        if _chosen:
            return named(_chosen[0])
        wanted = os.environ.get("METALNB_ENGINE")
        if wanted:
            return named(wanted)
        return named(_default())


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
    """Choose the engine for what is compiled from now on.

    Parameters
    ----------
    name : str or None
        One of `engines`; None goes back to the default.

    Raises
    ------
    EngineUnavailable
        When it cannot run here; the choice stays as it was.
    """
    if name is None:
        _chosen.clear()
        return current()
    opened = named(name)
    _chosen[:] = [name]
    return opened


def engines() -> Listing[EngineStatus]:
    """Tell of every engine whether it can run here, on what device, and why not; a notebook shows it as a table."""
    found = {}
    for name in REGISTRY:
        try:
            opened = named(name)
        except EngineUnavailable as error:
            found[name] = EngineStatus(name, available=False, reason=str(error))
        else:
            caps = opened.caps
            found[name] = EngineStatus(name, available=True, device=caps.device, versions=tuple(caps.versions.items()))
    return Listing(found, _table(found))


def _table(found: dict[str, EngineStatus]) -> Table:
    try:
        chosen = current().name
    except EngineUnavailable:
        chosen = ""
    rows = []
    for name, status in found.items():
        state = "in use" if name == chosen else "ready" if status.available else "not here"
        told = ", ".join(v if v.startswith(what) else f"{what} {v}" for what, v in status.versions)
        rows.append((name, state, status.device or "–", told or status.reason))
    return Table(("engine", "", "device", "versions, or what is missing"), tuple(rows), code=frozenset({0}))
