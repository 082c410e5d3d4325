"""Render the engines that can run here as a table."""

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
    current, reason = engines.chosen, engines.reason
    caption = f"{current} is in use: {reason}" if current else f"no engine is in use: {reason}"
    in_use = current if current in engines else current.rpartition(":")[0]  # without the device's index
    rows = []
    for name, status in engines.items():
        state = "in use" if name == in_use else "ready" if status.available else "not here"
        versions = ", ".join(v if v.startswith(part) else f"{part} {v}" for part, v in status.versions)
        rows.append((name, state, status.device or "–", versions or status.reason))
    return Table(("engine", "", "device", "versions, or what is missing"), tuple(rows), caption, code=frozenset({0}))
