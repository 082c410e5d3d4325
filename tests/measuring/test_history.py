"""The benchmarks of a range of commits: each runs, on small arrays, as asv would run it; asv itself is not needed."""

import importlib.util
import inspect
import itertools
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = json.loads((ROOT / "asv.conf.json").read_text("utf-8"))
FOLDER = ROOT / CONFIGURATION["benchmark_dir"]
KINDS = ("time_", "peakmem_")  # asv has more, which we do not use
SMALL = {"elements": 5, "side": 16}


def modules() -> Iterator[ModuleType]:
    """Import each module of the folder, which asv takes for a package."""
    assert (FOLDER / "__init__.py").is_file()
    for path in sorted(FOLDER.glob("[!_]*.py")):
        spec = importlib.util.spec_from_file_location(f"{FOLDER.name}.{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def benchmarks() -> Iterator[tuple[type, str, tuple[str, ...]]]:
    """Yield each benchmark: its class, its method, and the value of its parameter, if it has one."""
    for module in modules():
        for _, owner in inspect.getmembers(module, inspect.isclass):
            if owner.__module__ == module.__name__:
                methods = [name for name in dir(owner) if name.startswith(KINDS)]
                values = [(value,) for value in getattr(owner, "params", ())] or [()]
                yield from itertools.product([owner], methods, values)


ALL = list(benchmarks())


def test_speed_and_memory_have_a_history() -> None:
    names = {f"{owner.__name__}.{name}" for owner, name, _ in ALL}
    assert {"Compile.time_first_call", "Call.time_call", "Vectorizer.time_softmax", "Import.peakmem_import"} < names
    ops = {values[0] for _, name, values in ALL if name == "time_op"}
    assert ops == {"saxpy", "sum", "softmax", "matmul", "sort", "conv2d"}


@pytest.mark.parametrize(("owner", "name", "values"), ALL, ids=["-".join([o.__name__, n, *v]) for o, n, v in ALL])
def test_a_benchmark_runs(owner: type, name: str, values: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for size in SMALL.keys() & vars(owner):
        monkeypatch.setattr(owner, size, SMALL[size])
    benchmark: Any = owner()
    for _ in range(2):  # asv sets up again for each sample
        if hasattr(benchmark, "setup"):
            benchmark.setup(*values)
        getattr(benchmark, name)(*values)


def test_results_are_ignored_by_git() -> None:
    ignored = (ROOT / ".gitignore").read_text("utf-8").split()
    for name in ("env_dir", "results_dir", "html_dir"):
        assert f"/{Path(CONFIGURATION[name]).parts[0]}/" in ignored


def test_asv_is_only_in_an_extra_of_its_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {name: " ".join(requirements) for name, requirements in project["optional-dependencies"].items()}
    assert [name for name, needed in extras.items() if "asv" in needed or "history" in needed] == ["history"]
    assert CONFIGURATION["project"] == project["name"]
