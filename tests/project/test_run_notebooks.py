"""notebooks/run.py, used by `make demo` and `make notebooks`, keeps outputs, and fails if a cell does."""

import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def run(tmp_path: Path, *cells: str, tags: tuple[str, ...] = ()) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Execute a notebook of `cells`, with `tags` on the last one; return the run and the executed file."""
    import nbformat

    v4 = nbformat.v4
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell("# A title\n\ntext"), *map(v4.new_code_cell, cells)])
    notebook.cells[-1].metadata["tags"] = list(tags)
    nbformat.write(notebook, tmp_path / "trial.ipynb")
    command = [sys.executable, ROOT / "notebooks" / "run.py", "--into", tmp_path / "out", tmp_path / "trial.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    return done, tmp_path / "out" / "trial.ipynb"


def read(executed: Path) -> Any:
    import nbformat

    return nbformat.read(executed, as_version=4)


def test_outputs_are_kept_and_summed_up(tmp_path: Path) -> None:
    """A cell that is meant to raise keeps its output, and the run succeeds."""
    rows = "for i in range(9): print('row', i)"
    cells = ("print(6 * 7)", "import metalnb\nmetalnb.__name__", rows, "1 / 0")
    done, executed = run(tmp_path, *cells, tags=("raises-exception",))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A title: 4 code cells in ")
    assert "    [4] ZeroDivisionError: division by zero\n" in done.stdout
    assert "    [1] 42\n    [2] 'metalnb'\n    [3] row 0\n" in done.stdout
    assert "row 3\n        … 5 more lines\n" in done.stdout
    assert done.stdout.endswith(f"Executed notebook: {executed}\n")
    cells = read(executed).cells
    assert cells[1].outputs[0].text == "42\n"
    assert not any("execution" in cell.metadata for cell in cells)


def test_a_cell_that_raises_ends_the_run(tmp_path: Path) -> None:
    done, executed = run(tmp_path, "1 / 0", "print('never')")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert read(executed).cells[2].outputs == []


def test_a_widget_is_kept_as_the_picture_beside_it(tmp_path: Path) -> None:
    cell = (
        "import metalnb as mnb\n"
        "k = mnb.compile('#include <metal_stdlib>\\nusing namespace metal;'\n"
        "    'kernel void k(device float* y, constant float& a, uint2 i [[thread_position_in_grid]])'\n"
        "    '{ y[8 * i.y + i.x] = a; }').k\n"
        "mnb.explore(k, a=1.0, grid=(8, 8))"
    )
    done, executed = run(tmp_path, cell)
    assert done.returncode == 0, done.stderr
    notebook = read(executed)
    assert "widgets" not in notebook.metadata
    (output,) = notebook.cells[1].outputs
    assert set(output.data) == {"text/html", "text/plain"}


def test_a_progress_line_leaves_no_output(tmp_path: Path) -> None:
    cell = "from metalnb.timing.progress import progress\nwith progress('counting', -1.0) as told: told(0.5)"
    done, executed = run(tmp_path, cell)
    assert done.returncode == 0, done.stderr
    assert read(executed).cells[1].outputs == []
