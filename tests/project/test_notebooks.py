"""The notebooks run from top to bottom, and the committed outputs are what a reader should see."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
PICTURES = {
    "01_first_kernel.ipynb": 3,
    "02_memory_and_throughput.ipynb": 8,
    "03_reductions.ipynb": 14,
    "04_tiling.ipynb": 17,
    "05_the_kernel_library.ipynb": 2,
    "06_julia_live.ipynb": 10,
    "07_debugging_a_kernel.ipynb": 3,
    "09_how_a_gpu_runs_your_kernel.ipynb": 5,
    "10_simd_group_functions.ipynb": 3,
    "11_scan_compaction_sort.ipynb": 2,
    "12_histograms_and_atomics.ipynb": 6,
    "13_matrices_of_a_simd_group.ipynb": 7,
    "14_attention_fused.ipynb": 4,
    "15_simulations_live.ipynb": 5,
    "16_quantized_matvec.ipynb": 8,
    "17_on_a_mac.ipynb": 1,
}
SECTIONS = {
    "01_first_kernel.ipynb": 5,
    "02_memory_and_throughput.ipynb": 11,
    "03_reductions.ipynb": 12,
    "04_tiling.ipynb": 12,
    "05_the_kernel_library.ipynb": 13,
    "06_julia_live.ipynb": 8,
    "07_debugging_a_kernel.ipynb": 13,
    "09_how_a_gpu_runs_your_kernel.ipynb": 10,
    "10_simd_group_functions.ipynb": 8,
    "11_scan_compaction_sort.ipynb": 7,
    "12_histograms_and_atomics.ipynb": 11,
    "13_matrices_of_a_simd_group.ipynb": 9,
    "14_attention_fused.ipynb": 8,
    "15_simulations_live.ipynb": 10,
    "16_quantized_matvec.ipynb": 10,
    "17_on_a_mac.ipynb": 8,
    "18_more_puzzles.ipynb": 5,
}

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def read(path: Path) -> Any:
    import nbformat  # imported here: it takes seconds

    return nbformat.read(path, as_version=4)


def code(path: Path) -> list[Any]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def problems(cells: list[Any]) -> list[str]:
    """Return the problems of an executed notebook, as text."""
    found = []
    for number, cell in enumerate(cells, 1):
        raised = [o for o in cell.outputs if o.output_type == "error"]
        meant = "raises-exception" in cell.metadata.get("tags", ())
        if raised and not meant:
            found.append(f"cell {number} raised {raised[0].ename}: {raised[0].evalue}")
        if meant and not raised:
            found.append(f"cell {number} was to raise, and did not")
        if cell.execution_count != number:
            found.append(f"cell {number} was executed as number {cell.execution_count}")
        found += [f"cell {number} warned: {o.text}" for o in cell.outputs if o.get("name") == "stderr"]
    return found


def pictures(cells: list[Any]) -> int:
    kinds = [kind for cell in cells for o in cell.outputs for kind in o.get("data", {})]
    return sum(kind.startswith("image/") for kind in kinds)


def asserts(cell: Any) -> bool:
    if cell.source.startswith("%"):
        return False
    tree = ast.parse(cell.source)
    return any(isinstance(node, ast.Assert) for node in ast.walk(tree)) or "np.testing.assert_" in cell.source


def sections(path: Path) -> dict[str, list[Any]]:
    """Return the code cells under each second-level heading."""
    found: dict[str, list[Any]] = {}
    title = ""
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            heading = re.findall(r"^## +(.+)$", cell.source, re.MULTILINE)
            title = heading[-1] if heading else title
        elif title:
            found.setdefault(title, []).append(cell)
    return found


@pytest.mark.long  # Minutes; a test below checks the committed outputs, and make demo runs the first notebook
@each_notebook
def test_a_notebook_goes_through_from_the_top(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "notebooks" / "run.py", "--into", tmp_path, path]
    done = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": "utf-8"}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    cells = code(tmp_path / path.name)
    assert [p for p in problems(cells) if "still running" not in p] == []  # only on a busy machine
    assert pictures(cells) == PICTURES.get(path.name, 0)


@each_notebook
def test_the_committed_outputs_are_of_one_run_from_the_top(path: Path) -> None:
    cells = code(path)
    assert cells
    assert problems(cells) == []
    assert pictures(cells) == PICTURES.get(path.name, 0)


@each_notebook
def test_notebooks_contain_no_paths_of_the_machine_that_ran_them(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"/(home|root|Users|tmp|work)/", text)


@each_notebook
def test_a_committed_error_shows_no_frame_of_ours(path: Path) -> None:
    for cell in code(path):
        for output in cell.outputs:
            if output.output_type == "error":
                assert "metalnb/" not in "\n".join(output.traceback)


@pytest.mark.parametrize(("name", "count"), SECTIONS.items())
def test_each_section_of_a_notebook_ends_with_a_check(name: str, count: int) -> None:
    found = sections(ROOT / "notebooks" / name)
    assert len(found) == count
    *_, last = found  # it may only say where to go next; an appendix may follow
    for title, cells in found.items():
        assert title in {last, "Where to go next"} or asserts(cells[-1]), title


def test_comparison_of_outputs_can_fail() -> None:
    """The comparison above can fail: for an unexpected error, a missing one, a warning, a wrong order."""
    import nbformat

    new = nbformat.v4.new_code_cell
    error = nbformat.v4.new_output("error", ename="E", evalue="v", traceback=[])
    warning = nbformat.v4.new_output("stream", name="stderr", text="careful")
    assert problems([new("x", outputs=[error], execution_count=1)]) == ["cell 1 raised E: v"]
    tagged = {"tags": ["raises-exception"]}
    assert problems([new("x", metadata=tagged, execution_count=1)]) == ["cell 1 was to raise, and did not"]
    assert problems([new("x", metadata=tagged, outputs=[error], execution_count=1)]) == []
    assert problems([new("x", execution_count=3)]) == ["cell 1 was executed as number 3"]
    assert problems([new("x", outputs=[warning], execution_count=1)]) == ["cell 1 warned: careful"]
