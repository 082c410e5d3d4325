"""The engine `metal` on its double, under its own name."""

import pytest
from metal.doubled_engines import Calls, doubled

from metalnb.engine import engine_choice as engines
from metalnb.engine.metal.metal_engine import MetalEngine


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> MetalEngine:
    """Open a Mac's engines on their doubles."""
    opened, others = doubled(), engines._open
    monkeypatch.setattr(engines, "_open", lambda name: opened.get(name) or others(name))
    found: MetalEngine = opened["metal"]
    return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)
