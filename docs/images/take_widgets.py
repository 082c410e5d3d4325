"""Take the widgets' pictures: in JupyterLab, in its light and dark theme.

Run it as ``python docs/images/take_widgets.py`` on a quiet machine; it needs Chromium and the packages of the tests.
"""

import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from conftest import find_browser  # noqa: E402  (found through the line above)
from lab import CELLS, THEMES, Page, new_notebook, opened  # noqa: E402  (found through the line above)

SETUP = """\
%load_ext metalnb
import metalnb as mnb
import numpy as np
x, y = np.random.rand(2, 1 << 24).astype(np.float32)
image = np.random.rand(1024, 1024).astype(np.float32)
def soft(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)
rows = np.random.rand(2048, 512).astype(np.float32)
start = np.zeros((420, 512), np.float32)
start[60:120, 80:400] = start[240:360, 120:180] = start[240:360, 300:340] = 1
"""
KERNELS = """\
%%metal --quiet
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device const float* x, device float* y, constant float& a,
                  uint i [[thread_position_in_grid]]) { y[i] = a * x[i] + y[i]; }

kernel void transpose(device const float* a, device float* b, uint2 at [[thread_position_in_grid]],
                      uint2 size [[threads_per_grid]]) { b[at.x * size.y + at.y] = a[at.y * size.x + at.x]; }

kernel void heat(device const float* a, device float* b, constant float& alpha,
                 uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    uint up = i.y > 0 ? i.y - 1 : i.y, down = i.y + 1 < n.y ? i.y + 1 : i.y;
    uint left = i.x > 0 ? i.x - 1 : i.x, right = i.x + 1 < n.x ? i.x + 1 : i.x;
    float here = a[i.y * n.x + i.x];
    float around = a[up * n.x + i.x] + a[down * n.x + i.x] + a[i.y * n.x + left] + a[i.y * n.x + right];
    b[i.y * n.x + i.x] = here + alpha * (around - 4 * here);
}

/// A thread for each row.
kernel void mine(device const float* x, device float* y, uint row [[thread_position_in_grid]]) {
    device const float* in = x + row * 512;
    float top = in[0], sum = 0;
    for (uint k = 1; k < 512; ++k) top = max(top, in[k]);
    for (uint k = 0; k < 512; ++k) sum += exp(in[k] - top);
    for (uint k = 0; k < 512; ++k) y[row * 512 + k] = exp(in[k] - top) / sum;
}

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
    "animate": "moving = mnb.animate(heat, start, alpha=0.2, steps=16)\nmoving",
    "compare": "%metal_compare mine(rows, soft(rows), grid=2048) mnb.softmax(rows, axis=1) soft(rows)",
    "explore": 'mnb.explore(julia, c=(-0.7269, 0.1889), zoom=1.0, grid=(560, 420), ranges={"zoom": (0.5, 8)})',
}
DRIVE = """\
tuner.wait()  # alone on the machine
for _ in range(20):
    moving.step()
moving.wait()
for factor in board.widget and board._sizes.factors[2::2]:
    board.controls["grid"].value = factor
    board.wait()
board.controls["grid"].value = 1
board.wait()
watch.clear()  # of what the others ran
for n in range(60):
    saxpy(x, y, a=0.5)
    transpose(image)
    julia(c=(-0.7, 0.2), zoom=1 + n / 60, grid=(560, 420))
"""


def main() -> None:
    """Write ``<widget>-light.png`` and ``<widget>-dark.png`` beside this file."""
    notebook = new_notebook(SETUP, KERNELS, *SHOWN.values(), DRIVE)
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(notebook, find_browser(), Path(folder), 300, width=1120, height=1300) as page,
    ):
        page.restart_and_run_all()
        for theme in THEMES:
            page.dress(theme)
            time.sleep(1)  # the monitor's next look
            for i, widget in enumerate(SHOWN, start=2):
                take(page, i, HERE / f"{widget}-{theme}.png")


def take(page: Page, i: int, path: Path) -> None:
    """Write the output of a cell."""
    part = page.evaluate(f"""(() => {{
      {CELLS}[{i}].node.scrollIntoView();
      const outputs = [...{CELLS}[{i}].node.querySelectorAll('.jp-OutputArea-output > *')];
      const box = outputs.find(e => e.getBoundingClientRect().height > 20); // progress leaves an empty one
      const r = box.getBoundingClientRect();
      return {{x: r.x - 6, y: r.y, width: Math.min(r.width, 980) + 12, height: r.height + 4}};
    }})()""")
    page.screenshot(path, **part, scale=1)


if __name__ == "__main__":
    main()
