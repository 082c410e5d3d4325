"""The Metal engine: an Apple GPU through metalcompute."""

from __future__ import annotations

from metalnb.errors import EngineUnavailable

from .base import Engine

__all__ = ["open_engine"]


def open_engine() -> Engine:
    """Open the engine."""
    message = "engine 'metal' needs macOS 14 and metalcompute: pip install metalcompute"
    raise EngineUnavailable(message)
