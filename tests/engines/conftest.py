"""A machine on which only the CPU engine runs."""

from collections.abc import Iterator

import pytest

import metalnb as mnb
from metalnb.engine import engine_choice as engines


@pytest.fixture
def only_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let only cpu run here, with no engine chosen."""
    opened = engines._open

    def open_cpu(name: str) -> engines.Engine:
        if name != "cpu":
            message = f"engine {name!r} is not here"
            raise mnb.EngineUnavailable(message)
        return opened(name)

    monkeypatch.delenv("METALNB_ENGINE", raising=False)
    monkeypatch.setattr(engines, "_chosen", [])
    monkeypatch.setattr(engines, "_open", open_cpu)
    monkeypatch.setattr(engines, "_default", engines._default.__wrapped__)
    engines._warn_renamed.cache_clear()
    yield
    engines._warn_renamed.cache_clear()
