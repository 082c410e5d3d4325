"""Take the pictures of writing in a cell: completion and Shift-Tab, in JupyterLab's light and dark theme.

Run it as ``python docs/images/writing.py``; it needs Chromium and the packages of the tests.
"""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from lab import CELLS, PANEL, Cell, chromium, jupyterlab  # noqa: E402  (found through the line above)

METAL = """\
%%metal --math precise
#include <metal_stdlib>
using namespace metal;

struct Particle { float3 position; packed_half2 spin; float mass; };

/// The mass of every 32 particles, summed by their SIMD-group.
kernel void masses(device const Particle* particles, device float* out,
                   uint i [[thread_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]])
{
    float total = simd_sum(particles[i].mass);
    if (lane == 0) out[i / 32] = total;
}
"""
PYTHON = """\
particles = np.zeros(1024, masses.program.dtype("Particle"))
masses(particles, shapes={"out": 32})
"""
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
SHOTS = {
    # name: the text, where the cursor is, how it is asked
    "completion": (METAL.replace("particles[i].mass)", "particles[i].)"), "simd_sum(particles[i].", Cell.tab),
    "inspection": (METAL, "simd_sum(", Cell.shift_tab),
}  # fmt: skip
PART = f"""(() => {{
  const [first, last] = [{CELLS}[1], {CELLS}[2]].map(w => w.node.getBoundingClientRect());
  return {{x: first.x, y: first.y - 4, width: first.width, height: last.bottom - first.y + 8}};
}})()"""


def main() -> None:
    """Write ``completion-light.png`` and its kin beside this file."""
    cells = [nbformat.v4.new_code_cell(text.strip()) for text in ("%load_ext metalnb", METAL, PYTHON)]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": ""}})
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notebooks").mkdir()
        nbformat.write(notebook, folder / "notebooks" / "writing.ipynb")
        end = time.monotonic() + 120
        with (
            jupyterlab(folder / "notebooks", folder, end) as address,
            chromium(browser, folder, end, 860, 700) as page,
        ):
            page.call("Page.navigate", url=address("writing.ipynb"))
            page.wait(f"({PANEL})?.context.isReady && {PANEL}.sessionContext.session?.kernel?.status === 'idle'")
            page.evaluate(f"jupyterapp.shell.activateById({PANEL}.id)")
            page.evaluate("jupyterapp.shell.collapseLeft()")
            page.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")
            page.wait(f"{CELLS}[0].model.executionCount && {CELLS}[0].model.executionState === 'idle'")
            cell = Cell(page, 1)
            for theme, title in THEMES.items():
                page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: {json.dumps(title)}}})")
                page.wait(f"document.body.dataset.jpThemeLight === '{str(theme == 'light').lower()}'")
                page.wait("!document.querySelector('#jupyterlab-splash')")
                for shot, (text, before, ask) in SHOTS.items():
                    cell.put(text.strip())
                    cell.go(before)
                    ask(cell)
                    page.screenshot(HERE / f"{shot}-{theme}.png", **page.evaluate(PART), scale=1.0)
                    cell.escape()


if __name__ == "__main__":
    main()
