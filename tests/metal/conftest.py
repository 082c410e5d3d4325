"""The engines `metal` and `metal:metalcompute`, on their doubles or on a Mac, under their own names."""

from types import ModuleType

import pytest
from metal.doubled_engines import Calls, doubled
from metal_module import metal_module
from opened_engines import open_as

from metalnb.engine.metal.metal_engine import MetalEngine
from metalnb.engine.metal.metalcompute_path import open_engine
from metalnb.engine.metal.metalcompute_path.metalcompute_engine import MetalcomputeEngine
from metalnb.program import compiled


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> MetalEngine:
    """Open a Mac's engines on their doubles."""
    open_as(monkeypatch, doubled())
    opened: MetalEngine = doubled()["metal"]
    return opened


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


@pytest.fixture(scope="module")
def metalcompute() -> ModuleType:
    return metal_module()


@pytest.fixture
def metal_engine(metalcompute: ModuleType, monkeypatch: pytest.MonkeyPatch) -> MetalcomputeEngine:
    """Make ``engine="metal:metalcompute"`` use these tests' metalcompute."""
    opened = open_engine(module=metalcompute)
    open_as(monkeypatch, {"metal:metalcompute": opened})
    compiled._programs.clear()  # cached programs belong to an earlier test's engine
    return opened
