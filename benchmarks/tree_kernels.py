"""The tree's kernels, for benchmarks of compiling: of the library, of the notebooks and of the tests."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from dispatches import PARTS, Choice

from metalnb import engine as engines
from metalnb.engine.cpu.cpu_engine import CpuEngine
from metalnb.engine.unit import Unit

__all__ = ["units"]

TESTS = Path(__file__).parent.parent / "tests"
_ELEMENTS = 1000  # of the library's samples


def units(count: int) -> list[Unit]:
    """Return kernels, each once: those of the tree's dispatches, and first kernels of tests of the language.

    Parameters
    ----------
    count : int
        How many at most. With few, a part of each source is taken.
    """
    share = Choice([], (1, max(1, 500 // count)))
    engine = engines.named("cpu")
    found: dict[Any, Unit] = {}
    for name, part in PARTS.items():
        arguments = (engine, _ELEMENTS, share) if name == "library" else (engine, share)
        for dispatched in part(*arguments):
            _keep(found, dispatched.binary.unit)
    if len(found) < count:
        _add_kernels_of_language_tests(found, count)
    return [*found.values()][:count]


def _keep(found: dict[Any, Unit], unit: Unit) -> None:
    text = "".join(unit.texts.values())
    found.setdefault((unit.signature.name, unit.math, repr(unit.constants), text), unit)


class _KernelCollector:
    """Collects tests at equal distances, and ends once there are as many kernels as are wanted."""

    def __init__(self, found: dict[Any, Unit], count: int) -> None:
        self.found, self.count = found, count

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep several tests for each kernel: some have none, and some have one that others have too."""
        items[:] = items[:: max(1, len(items) // (5 * (self.count - len(self.found))))]

    def pytest_runtest_logfinish(self) -> None:
        """End once there are enough."""
        if len(self.found) >= self.count:
            pytest.exit("enough")

    def compile(self, unit: Unit) -> None:
        """Note a kernel instead of compiling it."""
        _keep(self.found, unit)
        pytest.skip("its kernel is collected")


def _add_kernels_of_language_tests(found: dict[Any, Unit], count: int) -> None:
    """Add the first kernels of some tests in tests/msl, without running the tests."""
    some, quiet = _KernelCollector(found, count), io.StringIO()
    with (
        mock.patch.object(CpuEngine, "compile", some.compile),
        contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet),
    ):  # fmt: skip
        pytest.main(["-q", "-p", "no:cacheprovider", str(TESTS / "msl")], plugins=[some])
