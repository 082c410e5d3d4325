"""The packages installed for users, for each make target and for the tests; some target runs every test."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

DISTRIBUTION = {"PIL": "pillow", "distributed": "dask", "sklearn": "scikit-learn"}
BY_ANOTHER = {"jupyter_client": "ipykernel", "nbconvert": "jupyterlab"}  # which depends on it
# Gigabytes, and mostly tested on a GPU: a machine with one has them already.
NOWHERE = {"jax", "torch"}


def name(requirement: str) -> str:
    match = re.match(r"[\w-]+", requirement)
    assert match is not None
    return match[0].replace("_", "-")


def installed(*extras: str) -> set[str]:
    """Return the distributions that extras install, including metalnb's dependencies."""
    found = set(map(name, PROJECT["dependencies"]))
    for extra in extras:
        for requirement in EXTRAS[extra]:
            own = re.fullmatch(r"metalnb\[([\w,-]+)\]", requirement)
            found |= installed(*own[1].split(",")) if own else {name(requirement)}
    return found


def skipped_without() -> Iterator[tuple[str, str, bool]]:
    """Return each package whose absence skips tests: where, its name, and whether a reason is given."""
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "importorskip":
                package = ast.literal_eval(node.args[0]) if isinstance(node.args[0], ast.Constant) else ""
                yield f"{path.name}:{node.lineno}", package.partition(".")[0], bool(node.keywords)


def distribution(package: str) -> str:
    return BY_ANOTHER.get(package) or DISTRIBUTION.get(package) or package.replace("_", "-")


def test_no_test_is_skipped_everywhere_for_want_of_a_package() -> None:
    found = [(place, package) for place, package, _ in skipped_without() if package]
    assert len(found) > 25
    every = installed("test-all")
    assert [(where, what) for where, what in found if distribution(what) not in every | NOWHERE] == []


def test_a_test_that_make_test_skips_names_the_extra() -> None:
    usual = installed("test")
    unsaid = [
        (place, package) for place, package, said in skipped_without()
        if package and not said and distribution(package) not in usual | NOWHERE
    ]  # fmt: skip
    assert unsaid == []


@pytest.mark.parametrize(
    ("extra", "without"),
    [
        ("bfloat16", {"anywidget", "ipython", "ipywidgets", "matplotlib", "pillow"}),  # metalnb needs none, either
        ("display", {"ipykernel", "jupyterlab", "pytest"}),
        ("notebooks", {"jupyterlab", "pytest", "scipy", "dask", "sphinx", "mypy"}),
        ("test", {"dask", "zarr", "sphinx", "furo", "mypy", "ruff", "tinygrad", "pandas", "cuda-bindings"}),
        ("lint", {"pytest", "sphinx", "dask", "jupyterlab"}),
        ("docs", {"pytest", "dask", "jupyterlab", "mypy"}),
    ],
)
def test_an_extra_brings_nothing_that_only_others_need(extra: str, without: set[str]) -> None:
    assert installed(extra) & without == set()


def test_the_complete_environment_meets_each_targets_requirements() -> None:
    needed = set(re.findall(r"\$\(call needs,([\w-]+)\)", MAKEFILE))
    assert needed == {"docs", "lab", "lint", "notebooks", "test", "test-all"}
    for extra in needed:
        assert installed(extra) <= installed("dev")
    assert re.search(r"^ready: \$\(VENV\)/with-dev ", MAKEFILE, re.MULTILINE)
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    assert ci.index("make --no-print-directory ready\n") < ci.index("make --no-print-directory test\n")
