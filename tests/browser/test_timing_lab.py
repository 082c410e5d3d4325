"""The measuring magics as a user sees them in JupyterLab, in the light and the dark theme.

The screenshots are left in ``build/screenshots``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.text_contrast import CARD_CONTRASTS, LEAST_CONTRAST
from lab import CELLS, CODE, THEMES, Page, new_notebook, opened

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
SECONDS = 80  # s: the limit of every wait in this file
OUTPUTS = f"{CODE}.map(w => w.model.outputs.toJSON())"

# A browser takes a minute to start and draw; tests/notebook/test_magics_timing.py covers the magics.
pytestmark = [pytest.mark.browser, pytest.mark.long]

KERNELS = """\
%%metal --quiet
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) {
    y[i] = a * x[i] + y[i];
}
"""
SOURCES = [
    "%load_ext metalnb\nimport numpy as np\nimport metalnb as mnb",
    KERNELS,
    "x, y = np.ones((2, 1 << 22), np.float32)\nt = %metal_time --flops 2*x.size saxpy(x, y, a=2.0)\nt",
    KERNELS.replace("a * x[i] + y[i]", "fma(a, x[i], y[i])"),
    "%metal_compare saxpy@1 saxpy@2",
    "mnb.roofline(t)",
    "mnb.limits()",
    "%metal_compare saxpy@1(x, y, a=2.0) saxpy@2 2*x+y np.add(x, y) mnb.add(x, y)",
]


@pytest.fixture(scope="module")
def page(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Open a notebook of these cells, then Restart and Run All."""
    with opened(new_notebook(*SOURCES), browser, tmp_path_factory.mktemp("lab"), SECONDS, height=1300) as page:
        page.restart_and_run_all()
        yield page


def card(cell: int, what: str) -> str:
    """Return an expression for an element in a cell's output."""
    return f"{CELLS}[{cell}].node.querySelector('.jp-OutputArea-output .metalnb{what}')"


def test_every_cell_shows_its_record_once(page: Page) -> None:
    outputs: list[list[Any]] = page.evaluate(OUTPUTS)
    # A measurement of more than a second shows its progress, in an output that ends up empty.
    outputs = [[o for o in cell if o.get("data") != {}] for cell in outputs]
    assert [len(cell) for cell in outputs] == [0, 0, 1, 0, 1, 1, 1, 1]
    assert {cell[0]["output_type"] for cell in outputs if cell} == {"execute_result"}


def test_the_bar_is_as_long_as_the_share_says(page: Page) -> None:
    text = page.evaluate(f"{card(2, ' .metalnb-against')}.innerText")
    share = float(text.split(", ")[1].split(" %")[0])
    whole, full = page.evaluate(f"""(() => {{
      const bar = {card(2, " .metalnb-bar")};
      return [bar, bar.firstElementChild].map(e => e.getBoundingClientRect().width);
    }})()""")
    assert whole > 300
    assert full / whole == pytest.approx(min(1.0, share / 100), abs=0.02)


def test_a_comparison_of_several_has_strips_on_one_axis(page: Page) -> None:
    strips = page.evaluate(f"""[...{CELLS}[7].node.querySelectorAll('.metalnb-strip')].map(s => {{
      const rule = s.querySelector('.metalnb-middle').getBoundingClientRect();
      const r = s.getBoundingClientRect();
      return [r.x, r.width, rule.x - r.x, s.querySelectorAll('circle').length];
    }})""")
    assert len(strips) == 5
    assert len({(x, width) for x, width, *_ in strips}) == 1
    assert all(dots >= 15 for *_, dots in strips)
    at = [middle for _, _, middle, _ in strips]
    # They are ranked by their shares of each round, so if two are nearly equal, either may come first.
    assert at[0] - min(at) < (max(at) - min(at)) / 5, "the fastest is first"
    said = page.evaluate(f"{card(7, '')}.innerText")
    assert "wall clock" in said
    assert "since 2*x+y has no other" in said


def test_the_roofline_is_drawn(page: Page) -> None:
    drawn = page.evaluate(f"""(() => {{
      const box = {card(5, " svg")}.getBoundingClientRect();
      return [box.width, box.height, {card(5, "")}.innerText];
    }})()""")
    assert drawn[0] > 500
    assert drawn[1] > 250
    assert "1 saxpy" in drawn[2]


@pytest.mark.parametrize("name", THEMES)
def test_timings_are_readable_in_both_themes(page: Page, name: str) -> None:
    page.dress(name)
    worst = page.evaluate(CARD_CONTRASTS)
    assert len(worst) > 20
    assert worst[0][0] >= LEAST_CONTRAST, worst[:5]
    for label, cell in {"timing": 2, "roofline": 5, "compare": 7}.items():
        page.evaluate(f"{CELLS}[{cell}].node.scrollIntoView()")
        page.screenshot(SCREENSHOTS / f"{label}-{name}.png")
