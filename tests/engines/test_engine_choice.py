"""The engine in use and the reason, the cost of choosing it, and an engine's former name."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import metalnb as mnb
from metalnb.engine import engine_choice as engines
from metalnb.program.compiled import from_recipe
from metalnb.program.recipe import Recipe

KERNEL = "kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }"


pytestmark = pytest.mark.usefixtures("only_cpu")


def first_line() -> str:
    return repr(mnb.engines()).splitlines()[0]


def test_the_first_that_can_run_is_in_use_and_the_table_has_the_reasons() -> None:
    assert first_line() == "cpu is in use: it is the first that can run here"
    for name in ("metal", "metal:metalcompute", "cuda"):
        assert f"engine {name!r} is not here" in repr(mnb.engines())


def test_environment_variable_chooses_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALNB_ENGINE", "cpu:0")
    assert first_line() == "cpu is in use: METALNB_ENGINE names it"
    monkeypatch.setenv("METALNB_ENGINE", "abacus")
    assert first_line().startswith("no engine is in use: unknown engine 'abacus'; there are: metal")
    assert "in use  " not in repr(mnb.engines()).partition("\n")[2]
    mnb.use("cpu")
    assert first_line() == "cpu is in use: metalnb.use chose it"


def test_a_second_device_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = engines._open

    class Second:
        name, caps = "cuda:1", opened("cpu").caps

    monkeypatch.setattr(engines, "_open", lambda name: Second() if name.startswith("cuda") else opened(name))
    mnb.use("cuda:1")
    text = repr(mnb.engines())
    assert text.startswith("cuda:1 is in use: metalnb.use chose it")
    (row,) = (line for line in text.splitlines() if line.startswith("cuda  "))
    assert "in use" in row


def test_an_engine_that_cannot_run_here_is_not_loaded_to_find_out() -> None:
    missing = [name for name in ("metal", "metal:metalcompute", "cuda") if not _available(name)]
    script = f"""
import sys
from metalnb import engine
from metalnb.errors import EngineUnavailable
import metalnb.engine.base
for name in {missing}:
    before = set(sys.modules)
    try:
        engine.named(name)
    except EngineUnavailable:
        print(name, *sorted(m for m in set(sys.modules) - before if m.startswith("metalnb.")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    modules = {
        "metal": ["metalnb.engine.metal", "metalnb.engine.metal.bindings"],
        "metal:metalcompute": ["metalnb.engine.metal.metalcompute_path"],
        "cuda": ["metalnb.engine.cuda", "metalnb.engine.cuda.driver_api"],
    }
    assert loaded == {name: modules[name] for name in missing}


def _available(name: str) -> bool:
    script = f"from metalnb import engine; engine.named({name!r})"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


# The engine cpu, by its former name ------------------------------------------------------------------------------


def by_environment() -> Any:
    os.environ["METALNB_ENGINE"] = "native"
    try:
        return engines.current().name
    finally:
        del os.environ["METALNB_ENGINE"]


def loaded(name: str) -> Any:
    recipe = Recipe(KERNEL, {}, "fast", {}, name, "k.metal")
    return from_recipe(pickle.loads(pickle.dumps(recipe))).k.engine.name  # noqa: S301  (its own)


def loaded_generator() -> Any:
    generator = mnb.random.Generator(1, device="native")
    return pickle.loads(pickle.dumps(generator)).random(3).device  # noqa: S301  (its own)


OLD: dict[str, Callable[[], Any]] = {
    "use": lambda: mnb.use("native").name,
    "a device": lambda: mnb.use("native:0").name,
    "METALNB_ENGINE": by_environment,
    "compile": lambda: mnb.compile(KERNEL, engine="native").k.engine.name,
    "on": lambda: mnb.compile(KERNEL).k.on("native").engine.name,
    "a program": lambda: mnb.compile(KERNEL).on("native").k.engine.name,
    "a recipe that was saved": lambda: loaded("native"),
    "a generator that was saved": loaded_generator,
    "array": lambda: mnb.array([1.0], device="native").device,
    "zeros": lambda: mnb.zeros(3, device="native").device,
    "asarray": lambda: mnb.asarray(np.ones(3, np.float32), device="native").device,
    "to_device": lambda: mnb.array([1.0]).to_device("native").device,
}


@pytest.mark.parametrize("name", OLD)
def test_native_means_cpu_and_warns_once(name: str) -> None:
    with pytest.warns(FutureWarning, match="engine 'native' is called 'cpu' now") as said:
        assert OLD[name]() == "cpu"
    assert len(said) == 1
    assert OLD[name]() == "cpu"  # a warning is an error here


@pytest.mark.parametrize(
    "cell", ["%%metal --engine native --quiet\n" + KERNEL, "%metal use native", "%metal_compare k@cpu(x) k@native(x)"],
)
def test_native_means_cpu_in_a_notebook(cell: str) -> None:
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    try:
        shell.extension_manager.load_extension("metalnb")
        shell.push({"k": mnb.compile(KERNEL).k, "x": np.ones(1 << 16, np.float32)})
        with pytest.warns(FutureWarning, match="engine 'native' is called 'cpu' now"):
            shell.run_cell(cell).raise_error()
        assert shell.user_ns["k"].engine.name == "cpu"
        shell.run_cell(cell).raise_error()
    finally:
        InteractiveShell.clear_instance()


@pytest.mark.filterwarnings("ignore:engine 'native':FutureWarning")
@pytest.mark.parametrize("name", ["native:x", "native:1", "natives", "Native"])
def test_unknown_device_or_name_is_refused(name: str) -> None:
    with pytest.raises(mnb.EngineUnavailable):
        mnb.use(name)


@pytest.mark.parametrize("name", [5, b"cpu"])
def test_a_name_that_is_no_string_is_refused(name: Any) -> None:
    with pytest.raises(mnb.EngineUnavailable, match="an engine is named by a string"):
        mnb.use(name)
