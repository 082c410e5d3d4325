"""The engines that can run here, as a table."""

from __future__ import annotations

from typing import Any

from .text_table import Table

__all__ = ["engines_html", "engines_text"]


def engines_text(engines: Any) -> str:
    """Return an `EngineList` as text."""
    return _table(engines).text()


def engines_html(engines: Any) -> str:
    """Return an `EngineList` as HTML."""
    return _table(engines).html()


def _table(engines: Any) -> Table:
    chosen, reason = engines.chosen, engines.reason
    caption = f"{chosen} is in use: {reason}" if chosen else f"no engine is in use: {reason}"
    in_use = chosen if chosen in engines else chosen.rpartition(":")[0]  # without the device's index
    rows = []
    for name, status in engines.items():
        state = "in use" if name == in_use else "ready" if status.available else "not here"
        told = ", ".join(v if v.startswith(what) else f"{what} {v}" for what, v in status.versions)
        rows.append((name, state, status.device or "–", told or status.reason))
    return Table(("engine", "", "device", "versions, or what is missing"), tuple(rows), caption, code=frozenset({0}))
