"""Which engines a test finds: doubles under their names, a second one for this machine's cores, or only some."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

import metalnb as mnb
from metalnb.engine import engine_choice
from metalnb.engine.cpu import CpuEngine

__all__ = ["SecondEngine", "open_as", "open_only"]


class SecondEngine(CpuEngine):
    """A second engine on this machine's cores that poses as `cuda`, to test code that distinguishes engines."""

    name = "cuda"

    def __init__(self) -> None:
        super().__init__()
        self.caps = dataclasses.replace(self.caps, clock="wall")


def open_as(monkeypatch: pytest.MonkeyPatch, opened: Mapping[str, Any]) -> None:
    """Let names stand for these engines; other names open theirs."""
    others = engine_choice._open
    monkeypatch.setattr(engine_choice, "_open", lambda name: opened.get(name) or others(name))


def open_only(
    monkeypatch: pytest.MonkeyPatch, *names: str, problem: str = "engine {name!r} is not here"
) -> None:
    """Let only these engines run here, with none chosen."""
    others = engine_choice._open

    def opened(name: str) -> Any:
        if name not in names:
            raise mnb.EngineUnavailable(problem.format(name=name))
        return others(name)

    monkeypatch.delenv("METALNB_ENGINE", raising=False)
    monkeypatch.setattr(engine_choice, "_chosen", [])
    monkeypatch.setattr(engine_choice, "_open", opened)
    monkeypatch.setattr(engine_choice, "_default", engine_choice._default.__wrapped__)
