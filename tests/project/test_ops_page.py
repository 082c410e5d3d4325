"""The list of ops agrees with the table, and ``docs/adding-an-op.md`` adds an op with one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ops_page import PAGE, page

import metalnb as mnb
from metalnb.library_kernels import op_table

ROOT = Path(__file__).resolve().parents[2]
ADDING = ROOT / "docs" / "adding-an-op.md"
TESTED = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/library/test_library.py", "-k")


def test_committed_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "update it: make docs"


def test_every_op_and_alias_is_a_function_of_metalnb_and_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    for name, op in op_table.ops().items():
        assert re.search(rf"^\| `{name}\(", text, re.MULTILINE), name
        assert getattr(mnb.linalg if name == "trace" else mnb, name) is op  # `mnb.trace` follows a kernel's call
        for alias in op.row.aliases:
            assert getattr(mnb, alias) is op
            assert f"`{alias}`" in text


@pytest.mark.parametrize("page", [PAGE, ADDING], ids=lambda p: p.name)
def test_links_lead_to_files(page: Path) -> None:
    for link in set(re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8"))):
        assert (page.parent / link).is_file(), link


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with the page's row added and no other edit."""
    copy = tmp_path_factory.mktemp("tree")
    for name in ("metalnb", "tests", "benchmarks", "pyproject.toml"):  # metalnb's links are followed
        whole = ROOT / name
        skip = shutil.ignore_patterns("__pycache__", "msl" if name == "tests" else "", "test_[!l]*", "test_la*")
        shutil.copytree(whole, copy / name, ignore=skip) if whole.is_dir() else shutil.copy(whole, copy)
    row = re.search(r"```python\n(Elementwise\(.*\),)\n```", ADDING.read_text("utf-8"))
    assert row
    rows = copy / "metalnb" / "library_kernels" / "elementwise" / "unary.py"
    text = rows.read_text("utf-8")
    assert text.endswith("\n)\n")
    rows.write_text(f"{text[:-2]}    {row[1]}\n)\n", encoding="utf-8")
    return copy


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long  # It runs an edited copy of the tree in processes of its own
def test_an_op_is_added_with_one_line(copy: Path) -> None:
    tested = run(copy, *TESTED, "logcosh")
    assert "17 passed" in tested
    timed = run(copy, "benchmarks/library.py", "logcosh", "--size", "65536", "--runs", "1")
    assert re.search(r"^logcosh +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+", timed, re.MULTILINE), timed
    run(copy, "tests/ops_page.py")
    written = (copy / PAGE.relative_to(ROOT)).read_text("utf-8")
    assert "| `logcosh(x, /, *, out=None)` | log(cosh(x)). | any dtype | 4 |" in written
    said = run(copy, "-c", "import metalnb as mnb; print(mnb.logcosh(mnb.asarray([0, 100])), mnb.logcosh.__doc__)")
    assert said.startswith("[ 0.       99.306854] log(cosh(x)).\n\nParameters\n")


@pytest.mark.long  # The test above runs a new row's tests; test_library.py compares ops with references
def test_a_wrong_row_fails_its_tests(copy: Path) -> None:
    rows = copy / "metalnb" / "library_kernels" / "elementwise" / "unary.py"
    right = rows.read_text("utf-8")
    rows.write_text(right.replace("- 0.693147181f", "- 0.693146f"), encoding="utf-8")
    try:
        with pytest.raises(AssertionError, match="3 failed"):
            run(copy, *TESTED, "logcosh-float32")
    finally:
        rows.write_text(right, encoding="utf-8")


def test_notebook_example_of_the_page_works() -> None:
    call = re.search(r"mnb\.elementwise\(\"(.+)\"\)", ADDING.read_text("utf-8"))
    assert call
    assert mnb.elementwise(call[1])(mnb.asarray([0.0])).tolist() == pytest.approx([0], abs=1e-6)
