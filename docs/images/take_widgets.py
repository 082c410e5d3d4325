"""Take the widgets' pictures: in JupyterLab, in its light and dark theme.

Run it as ``python docs/images/take_widgets.py`` on a quiet machine; it needs Chromium and the packages of the tests.
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

from lab import Page, chromium, jupyterlab  # noqa: E402  (found through the line above)

SETUP = """\
%load_ext metalnb
import metalnb as mnb
import numpy as np
x, y = np.random.rand(2, 1 << 24).astype(np.float32)
image = np.random.rand(1024, 1024).astype(np.float32)
"""
KERNELS = """\
%%metal --quiet
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device const float* x, device float* y, constant float& a,
                  uint i [[thread_position_in_grid]]) { y[i] = a * x[i] + y[i]; }

kernel void transpose(device const float* a, device float* b, uint2 at [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]]) { b[at.x * size.y + at.y] = a[at.y * size.x + at.x]; }

kernel void julia(device float* image, constant float2& c, constant float& zoom,
                  uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    float2 z = (2.0 * float2(at) - float2(size)) / size.y / zoom;
    float n = 0;
    while (n < 300 && dot(z, z) < 256) { z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c; n += 1; }
    image[at.y * size.x + at.x] = n < 300 ? log(n + 1 - log2(log2(dot(z, z)) / 2)) : 0;
}
"""
SHOWN = {
    "dashboard": "board = mnb.dashboard(saxpy, x, y, a=2.0)\nboard",
    "monitor": "watch = mnb.monitor()\nwatch",
    "tune": "tuner = mnb.tune(transpose, image)\ntuner",
    "explore": 'mnb.explore(julia, c=(-0.7269, 0.1889), zoom=1.0, grid=(560, 420), ranges={"zoom": (0.5, 8)})',
}
DRIVE = """\
tuner.wait()  # alone on the machine
for factor in board.widget and board._sizes.factors[2::2]:
    board.controls["grid"].value = factor
    board.wait()
board.controls["grid"].value = 1
board.wait()
for n in range(60):
    saxpy(x, y, a=0.5)
    transpose(image)
    julia(c=(-0.7, 0.2), zoom=1 + n / 60, grid=(560, 420))
"""
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
PANEL = "[...(window.jupyterapp?.shell.widgets('main') ?? [])].find(w => w.context?.path.endsWith('.ipynb'))"
CELLS = f"{PANEL}.content.widgets"


def main() -> None:
    """Write ``<widget>-light.png`` and ``<widget>-dark.png`` beside this file."""
    sources = [SETUP, KERNELS, *SHOWN.values(), DRIVE]
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notebooks").mkdir()
        nbformat.write(notebook, folder / "notebooks" / "widgets.ipynb")
        end = time.monotonic() + 300
        with (
            jupyterlab(folder / "notebooks", folder, end) as address,
            chromium(browser, folder, end, 1120, 1300) as page,
        ):
            page.call("Page.navigate", url=address("widgets.ipynb"))
            page.wait(f"({PANEL})?.context.isReady && {PANEL}.sessionContext.session?.kernel?.status === 'idle'")
            page.evaluate(f"jupyterapp.shell.activateById({PANEL}.id)")
            page.evaluate("jupyterapp.shell.collapseLeft()")
            page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
            page.wait(f"{CELLS}.every(w => w.model.executionCount && w.model.executionState === 'idle')")
            for theme, title in THEMES.items():
                page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: {json.dumps(title)}}})")
                page.wait(f"document.body.dataset.jpThemeLight === '{str(theme == 'light').lower()}'")
                page.wait("!document.querySelector('#jupyterlab-splash')")
                time.sleep(1)  # the monitor's next look
                for i, widget in enumerate(SHOWN, start=2):
                    take(page, i, HERE / f"{widget}-{theme}.png")


def take(page: Page, i: int, path: Path) -> None:
    """Write the output of a cell."""
    part = page.evaluate(f"""(() => {{
      {CELLS}[{i}].node.scrollIntoView();
      const box = {CELLS}[{i}].node.querySelector('.jp-OutputArea-output > *');
      const r = box.getBoundingClientRect();
      return {{x: r.x - 6, y: r.y, width: Math.min(r.width, 980) + 12, height: r.height + 4}};
    }})()""")
    page.screenshot(path, **part, scale=1)


if __name__ == "__main__":
    main()
