"""Execute notebooks with this interpreter and print what they computed.

    python notebooks/run.py notebooks/01_first_kernel.ipynb                     # keep the outputs in the file
    python notebooks/run.py --into build/notebooks notebooks/01_first_kernel.ipynb

A cell that raises ends its notebook and the run, unless it is tagged ``raises-exception``.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from metalnb.engine import current
from metalnb.errors import EngineUnavailable

WIDTH = 100  # characters of a summary's line
LINES = 4  # of each output
WIDGET = "application/vnd.jupyter.widget-view+json"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run every cell of `notebook` in place, in a fresh kernel whose working directory is `folder`."""
    os.environ.pop("MPLBACKEND", None)  # a picture belongs in the notebook, whatever the shell's figures do
    with tempfile.TemporaryDirectory(prefix="metalnb-") as sockets:
        # No kernel specification but the one of this interpreter, whatever the user has installed; and sockets in the
        # file system, which work where the machine has no network interface at all.
        kernel = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            transport="ipc",
            ip=str(Path(sockets, "kernel")),
        )
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, km=kernel, timeout=600, resources=resources).execute(cleanup_kc=True)


def strip_run(notebook: nbformat.NotebookNode) -> None:
    """Remove the cells' times, the widgets, and outputs with no data.

    A widget does not work without its kernel. Each has a picture beside it, which a page shows only if the output names
    no widget. An output with no data is what a progress line leaves.
    """
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("data") != {}]
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", ()):
                output.data.pop(WIDGET, None)


def title(notebook: nbformat.NotebookNode) -> str:
    """Return the first heading of `notebook`."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    heading = re.search(r"^#+ +(.+)$", text, re.MULTILINE)
    return heading[1].strip() if heading else "(untitled)"


def output_text(output: nbformat.NotebookNode) -> str:
    """Return one output of a cell as the text to show for it."""
    if output.output_type == "stream":
        return str(output.text)
    if output.output_type == "error":
        return ANSI.sub("", f"{output.ename}: {output.evalue}")
    kinds = output.data.keys()
    if any(kind.startswith("image/") for kind in kinds):
        return "(a picture)"
    return str(output.data.get("text/plain", f"({', '.join(kinds)})"))


def summary(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Yield the cells' outputs, each after its number, clipped to a few lines."""
    for cell in notebook.cells:
        text = "\n".join(map(output_text, cell.get("outputs", ())))
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        number = f"[{cell.get('execution_count')}]"
        for line in lines[:LINES]:
            yield f"  {number:>5} {line if len(line) <= WIDTH else line[: WIDTH - 1] + '…'}"
            number = ""
        if len(lines) > LINES:
            yield f"  {'':5} … {len(lines) - LINES} more lines"


def engine() -> str:
    """Name the engine that a notebook gets when it does not choose, and its device."""
    try:
        chosen = current()
    except EngineUnavailable as error:
        return f"no engine ({error})"
    return f"engine '{chosen.name}' ({chosen.caps.device})"


def run(path: Path, target: Path) -> bool:
    """Execute the notebook at `path` into `target`, print its summary and return whether it went through."""
    notebook = nbformat.read(path, as_version=4)
    start = time.perf_counter()
    problem = None
    try:
        execute(notebook, path.parent.resolve())
    except CellExecutionError as error:
        problem = error
    seconds = time.perf_counter() - start
    strip_run(notebook)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)

    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    print(f"{title(notebook)}: {cells} code cells in {seconds:.1f} s on {engine()}")
    print(*summary(notebook), sep="\n")
    if problem:
        print(f"A cell failed:\n{problem}", file=sys.stderr)
    print(f"Executed notebook: {target}", flush=True)
    return problem is None


def main() -> int:
    """Read the command line, run each notebook, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--into", type=Path, help="the folder for the executed notebooks (default: where they are)")
    options = parser.parse_args()
    results = [run(path, (options.into or path.parent) / path.name) for path in options.notebooks]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
