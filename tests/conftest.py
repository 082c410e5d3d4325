"""Shared by all tests: a separate cache, repeatable random examples, and skips that state their reason."""

import dataclasses
import importlib.util
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from long_tests import mark_long_tests
from opened_engines import SecondEngine, open_as

import metalnb as mnb
from metalnb.engine import engine_choice as engines
from metalnb.library_kernels.launching import arg_reduction_launch, reduction_launch, scan_launch

ROOT = Path(__file__).resolve().parent.parent

# Separate from the user's cache, and kept between runs; processes that the tests start inherit it.
os.environ.setdefault("METALNB_CACHE", str(ROOT / "build" / "test-cache"))

# A failing example must fail again on another machine; compiling makes a time limit per example meaningless.
settings.register_profile("metalnb", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("metalnb")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    """Return the headless browser that ``browser`` tests drive, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.hookimpl(tryfirst=True)  # before -m, which reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_long_tests(items)
    missing = {}
    if sys.platform != "darwin":
        missing["macos"] = pytest.mark.skip(reason="needs a Mac with Metal")
    if not find_browser():
        missing["browser"] = pytest.mark.skip(reason="needs Chromium: apt-get install chromium")
    for item in items:
        for name in missing.keys() & {mark.name for mark in item.iter_markers()}:
            item.add_marker(missing[name])


@pytest.fixture
def empty_cache(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process that has compiled nothing yet."""
    return {**os.environ, "METALNB_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def shared_memory() -> None:
    """Skip a test where arrays are in memory that NumPy cannot access."""
    engine = engines.current()
    if not engine.caps.shared:
        pytest.skip(f"engine {engine.name!r} has its own memory")


@pytest.fixture(params=[True, False], ids=["cores", "lanes"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice on a CPU: with kernels for threads that are cores, and with kernels for a GPU's lanes."""
    engine = engines.current()
    if engine.name == "cpu":
        monkeypatch.setattr(engine, "caps", dataclasses.replace(engine.caps, serial=request.param))
    elif request.param:
        pytest.skip("threads are lanes here")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that makes the CPU engine pass for a GPU with a given number of processors."""
    device: Any = mnb.use("cpu")

    def forget() -> None:
        for module, names in ((reduction_launch, ("_stages", "build")), (arg_reduction_launch, ("_steps", "_program")),
                              (scan_launch, ("_steps", "_program"))):  # fmt: skip
            for name in names:
                getattr(module, name).cache_clear()

    def passes(processors: int, matrices: Iterable[str] = (), *, copies: bool = False) -> None:
        forget()
        caps = dataclasses.replace(
            device.caps, processors=processors, serial=False, matrices=frozenset(matrices), copies=copies
        )
        monkeypatch.setattr(device, "caps", caps)

    yield passes
    forget()
    mnb.use(None)


@pytest.fixture
def second_engine(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of another engine for this machine's cores, one without a clock."""
    second = SecondEngine()
    open_as(monkeypatch, {second.name: second})
    return second.name


@pytest.fixture
def no_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `mnb.tune` find only the kernel's engine, also on a machine with a GPU."""
    monkeypatch.setattr("metalnb.widgets.tune.tuner._answers", lambda _name: False)


@pytest.fixture(scope="session")
def execute_notebook() -> Callable[[Any, Path], None]:
    """Return the function that runs a notebook's cells in place, as `make demo` does, without any network interface."""
    spec = importlib.util.spec_from_file_location("run_notebooks", ROOT / "notebooks" / "run.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.execute


@pytest.fixture(scope="session")
def browser() -> str:
    """Return the path of Chromium."""
    found = find_browser()
    if not found:
        pytest.skip("needs Chromium: apt-get install chromium")
    return found


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return random numbers that are equal in every run and differ between tests; METALNB_SEED changes them.

    The seed is printed; pytest shows it when the test fails.
    """
    name = request.node.nodeid.rpartition("/")[2]  # whichever folder it is in
    seed = int(os.environ.get("METALNB_SEED") or zlib.crc32(name.encode()))
    print(f"METALNB_SEED={seed}")
    return np.random.default_rng(seed)
