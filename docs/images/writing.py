"""Take the pictures of writing in a cell: completion and Shift-Tab, in JupyterLab's light and dark theme.

Run it as ``python docs/images/writing.py``; it needs Chromium and the packages of the tests.
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from conftest import find_browser  # noqa: E402  (found through the line above)
from lab import CELLS, THEMES, Cell, new_notebook, opened  # noqa: E402  (found through the line above)

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
    """Write ``completion-light.png`` and the other pictures beside this file."""
    notebook = new_notebook("%load_ext metalnb", METAL, PYTHON)
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(notebook, find_browser(), Path(folder), 120, width=860, height=700) as page,
    ):
        page.run_first()
        cell = Cell(page, 1)
        for theme in THEMES:
            page.dress(theme)
            for shot, (text, before, ask) in SHOTS.items():
                cell.put(text.strip())
                cell.go(before)
                ask(cell)
                page.screenshot(HERE / f"{shot}-{theme}.png", **page.evaluate(PART), scale=1.0)
                cell.escape()


if __name__ == "__main__":
    main()
