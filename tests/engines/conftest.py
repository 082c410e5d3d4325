"""A machine on which only the CPU engine runs."""

from collections.abc import Iterator

import pytest
from opened_engines import open_only

from metalnb.engine import engine_choice as engines


@pytest.fixture
def only_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let only cpu run here, with no engine chosen."""
    open_only(monkeypatch, "cpu")
    engines._warn_renamed.cache_clear()
    yield
    engines._warn_renamed.cache_clear()
