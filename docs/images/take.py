"""Take the README's pictures: a cell, its card and what it computes, in JupyterLab's light and dark theme.

Run it as ``python docs/images/take.py``; it needs Chromium and the packages of the tests.
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from conftest import find_browser  # noqa: E402  (found through the line above)
from lab import CELLS, PANEL, THEMES, new_notebook, opened  # noqa: E402  (found through the line above)

SETUP = """\
%load_ext metalnb
import matplotlib.pyplot as plt
import numpy as np
plt.rc("savefig", pad_inches=0)
"""
KERNEL = """\
%%metal
#include <metal_stdlib>
using namespace metal;

/// How many iterations of z ← z² + c each pixel needs to escape; 0 if it needs 300 or more.
kernel void julia(device float* image, constant float2& c,
                  uint2 pixel [[thread_position_in_grid]], uint2 size [[threads_per_grid]])
{
    float2 z = (2.0 * float2(pixel) - float2(size)) / size.y;
    float n = 0;
    while (n < 300 && dot(z, z) < 256) {
        z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
        n += 1;
    }
    image[pixel.y * size.x + pixel.x] = n < 300 ? n + 1 - log2(log2(dot(z, z)) / 2) : 0;
}
"""
CALL = """\
image = julia(c=(-0.7269, 0.1889), grid=(1600, 900))
plt.figure(figsize=(9, 5.06)).add_axes((0, 0, 1, 1)).set_axis_off()
plt.imshow(np.log1p(image), cmap="magma", origin="lower", aspect="auto");
"""
PART = f"""(() => {{
  const [first, last] = [{CELLS}[1], {CELLS}[2]].map(w => w.node.getBoundingClientRect());
  return {{x: first.x, y: first.y, width: first.width, height: last.bottom - first.y}};
}})()"""


def main() -> None:
    """Write ``notebook-light.png`` and ``notebook-dark.png`` beside this file."""
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(new_notebook(SETUP, KERNEL, CALL), find_browser(), Path(folder), 180, width=1000, height=1500) as page,
    ):
        page.restart_and_run_all()
        page.wait("document.querySelector('.jp-RenderedImage img')?.naturalWidth")
        page.evaluate(f"{CELLS}.length && ({PANEL}.content.activeCellIndex = 0)")
        for theme in THEMES:
            page.dress(theme)
            page.screenshot(HERE / f"notebook-{theme}.png", **page.evaluate(PART), scale=1.2)


if __name__ == "__main__":
    main()
