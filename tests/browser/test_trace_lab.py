"""The stepper in JupyterLab, in both themes: stepped by keyboard, compared with what NumPy computes.

It steps through the tutorials' tree reduction and tiled matrix product, unchanged. The screenshots are left in
``build/screenshots``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser.text_contrast import CONTRASTS_IN
from lab import CELLS, THEMES, Cell, Page, chromium, new_notebook, opened

import metalnb as mnb

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
SECONDS = 240  # s: the limit of every wait in this file
LEAST_CONTRAST = 4.5  # WCAG 2.2, success criterion 1.4.3

# A browser takes a minute to start and draw; tests/checking/test_trace.py covers the recorded steps.
pytestmark = [
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="the traced build runs under Linux"),
]


def tutorial(name: str, kernel: str) -> str:
    """Return the tutorial's cell with a kernel."""
    import nbformat

    (path,) = (ROOT / "notebooks").glob(f"{name}_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    return next(c.source for c in cells if c.source.startswith("%%metal") and f"kernel void {kernel}(" in c.source)


X = (np.arange(256) * 7 % 10).astype(np.float32)
A = (np.arange(1024).reshape(32, 32) * 5 % 7).astype(np.float32)
B = (np.arange(1024).reshape(32, 32) * 3 % 5).astype(np.float32)
SETUP, TREE_CELL, TREE, TILED_CELL, TILED = range(5)
SHOWN = [
    (
        "%load_ext metalnb\nimport numpy as np\nimport metalnb as mnb\n"
        "x = (np.arange(256) * 7 % 10).astype(np.float32)\n"
        "a = (np.arange(1024).reshape(32, 32) * 5 % 7).astype(np.float32)\n"
        "b = (np.arange(1024).reshape(32, 32) * 3 % 5).astype(np.float32)"
    ),
    tutorial("03", "sequential"),
    "mnb.trace(sequential, x, np.zeros(1, np.uint32), grid=256, threadgroup=256, thread=1)",
    tutorial("04", "tiled"),
    "mnb.trace(tiled, a, b, np.zeros((32, 32), np.float32), 32, grid=(1024, 1), threadgroup=(1024, 1), thread=37)",
]


def alone() -> str:
    """Return the stepper of the tree reduction as HTML."""
    kernel = mnb.compile(SHOWN[TREE_CELL].partition("\n")[2])["sequential"]
    stepper = mnb.trace(kernel, X, np.zeros(1, np.uint32), grid=256, threadgroup=256)
    return str(stepper._repr_html_())


class Stepper:
    """A stepper on the page."""

    def __init__(self, page: Page, cell: int) -> None:
        self.page, self.cell = page, cell
        self.root = f"{CELLS}[{cell}].node.querySelector('.mt')"
        page.wait(f"{self.root}?.dataset.ready === '1'")
        self.ask("root.closest('.metalnb').scrollIntoView({block: 'center'})")
        self.ask("root.focus()")

    def ask(self, script: str) -> Any:
        return self.page.evaluate(f"(root => {script})({self.root})")

    def press(self, key: str, shift: bool = False) -> None:
        codes = {"End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        Cell(self.page, self.cell).press(key, codes[key], modifiers=8 if shift else 0)

    @property
    def line(self) -> int:
        return int(self.ask("root.querySelector('.mt-here').dataset.line"))

    @property
    def marked(self) -> str:
        return str(self.ask("[...root.querySelectorAll('.mt-here mark')].map(m => m.textContent).join('')"))

    @property
    def variables(self) -> dict[str, str]:
        script = "[...root.querySelectorAll('[data-variable]')].map(v => [v.dataset.variable, v.textContent])"
        return dict(self.ask(script))

    def memory(self, name: str) -> list[str]:
        """Return an array's elements as the picture shows them."""
        cells = f"root.querySelectorAll('[data-memory=\"{name}\"] .mt-cell')"
        return list(self.ask(f"[...{cells}].map(c => c.firstChild.textContent)"))

    def writers(self, name: str) -> list[str]:
        cells = f"root.querySelectorAll('[data-memory=\"{name}\"] .mt-cell s')"
        return list(self.ask(f"[...{cells}].map(s => s.textContent.trim())"))

    def marked_cells(self, name: str, how: str) -> list[int]:
        cells = f"root.querySelectorAll('[data-memory=\"{name}\"] .mt-cell.{how}')"
        return list(self.ask(f"[...{cells}].map(c => +c.dataset.index)"))

    def threads(self, state: str) -> list[int]:
        """Return the threads in a state."""
        return list(self.ask(f"[...root.querySelectorAll('.mt-strip .{state}')].map(c => +c.dataset.thread)"))

    def picture(self, path: Path) -> None:
        clip = self.ask(
            "(r => ({x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height}))"
            "(root.closest('.metalnb').getBoundingClientRect())",
        )
        self.page.screenshot(path, **clip, scale=1)


@pytest.fixture(scope="module")
def page(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("stepper")
    with opened(new_notebook(*SHOWN), browser, folder, SECONDS, width=1400, height=1900) as page:
        page.restart_and_run_all()
        yield page


def line_of(cell: str, text: str) -> int:
    """Return the line of a cell that contains a text, as its editor counts."""
    return next(i for i, line in enumerate(cell.split("\n"), 1) if text in line)


@pytest.mark.parametrize("theme", THEMES)
def test_stepper_follows_a_tree_reduction(page: Page, theme: str) -> None:
    page.dress(theme)
    source = SHOWN[TREE_CELL]
    stepper = Stepper(page, TREE)
    stepper.press("Home")
    assert (stepper.line, stepper.marked) == (line_of(source, "part[t] = x[i];"), "part[t] = x[i];")
    assert stepper.variables == {"x": "&x[0]", "total": "&total[0]", "i": "1", "t": "1"}
    assert set(stepper.memory("part")) == {"·"}
    stepper.press("ArrowRight")
    part = X.copy()
    assert [float(v) for v in stepper.memory("part")] == part.tolist()
    assert len(stepper.threads("mt-bar-wait")) == 256
    assert stepper.marked_cells("part", "mt-new") == list(range(256))

    for gap in (128, 64, 32, 16, 8, 4, 2, 1):
        stepper.press("ArrowRight")
        assert stepper.marked == "gap > 0"
        assert stepper.variables["gap"] == str(gap)
        stepper.press("ArrowRight")
        assert stepper.marked == "if (t < gap)"
        if gap > 1:
            stepper.press("ArrowRight")
            assert stepper.line == line_of(source, "part[t] += part[t + gap];")
            assert stepper.threads("mt-run") == list(range(gap))
            assert stepper.marked_cells("part", "mt-read") == [1, 1 + gap]
            if gap == 16:
                assert stepper.threads("mt-bar-wait") == list(range(16, 256))
                stepper.picture(SCREENSHOTS / f"stepper-tree-{theme}.png")
        part[:gap] += part[gap : 2 * gap]
        stepper.press("ArrowRight")
        assert stepper.marked == "threadgroup_barrier(mem_flags::mem_threadgroup);"
        assert [float(v) for v in stepper.memory("part")] == part.tolist()
        assert stepper.marked_cells("part", "mt-new") == list(range(gap))
        assert stepper.writers("part") == [str(t) for t in range(256)]

    stepper.press("End")
    assert stepper.memory("part")[0] == str(int(X.sum()))
    assert stepper.memory("total") == [str(int(X.sum()))]
    assert len(stepper.threads("mt-ended")) == 256
    stepper.press("ArrowLeft")
    assert stepper.marked == "}"
    stepper.press("Home")
    stepper.press("ArrowRight", shift=True)
    stepper.press("ArrowRight", shift=True)
    assert stepper.marked == "threadgroup_barrier(mem_flags::mem_threadgroup);"
    assert [float(v) for v in stepper.memory("part")[:128]] == (X[:128] + X[128:]).tolist()
    stepper.ask("root.querySelector('.mt-t[data-thread=\"200\"]').click()")
    assert stepper.variables["t"] == "200"
    stepper.press("ArrowUp")
    assert stepper.variables["t"] == "199"
    stepper.ask("root.querySelector('.mt-t[data-thread=\"1\"]').click()")


@pytest.mark.parametrize("theme", THEMES)
def test_stepper_follows_a_tiled_product(page: Page, theme: str) -> None:
    page.dress(theme)
    stepper = Stepper(page, TILED)
    stepper.press("Home")
    stepper.press("ArrowRight", shift=True)
    assert [float(v) for v in stepper.memory("tile_a")] == A.ravel().tolist()
    assert [float(v) for v in stepper.memory("tile_b")] == B.ravel().tolist()
    row, column = 1, 5  # thread 37's
    total = 0.0
    for k in range(32):
        stepper.press("ArrowRight")
        assert stepper.marked == "k < 32"
        assert (stepper.variables["k"], float(stepper.variables["sum"])) == (str(k), total)
        stepper.press("ArrowRight")
        assert stepper.line == line_of(SHOWN[TILED_CELL], "sum += tile_a")
        assert stepper.marked_cells("tile_a", "mt-read") == [row * 32 + k]
        assert stepper.marked_cells("tile_b", "mt-read") == [k * 32 + column]
        if k == 7:
            stepper.picture(SCREENSHOTS / f"stepper-tiled-{theme}.png")
        total += float(A[row, k] * B[k, column])
    assert total == (A @ B)[row, column]
    stepper.press("End")
    assert float(stepper.variables["sum"]) == total


@pytest.mark.parametrize("theme", THEMES)
def test_stepper_is_readable_in_both_themes(page: Page, theme: str) -> None:
    page.dress(theme)
    for cell in (TREE, TILED):
        stepper = Stepper(page, cell)
        assert stepper.ask("(f => f.scrollWidth <= f.clientWidth)(root.closest('.metalnb'))")
        stepper.press("Home")
        for _ in range(6):
            stepper.press("ArrowRight")
            for part in (".mt-bar", ".mt-here", ".mt-side", ".mt-strip", ".mt-key", ".mt-memory"):
                seen = page.evaluate(f"{CONTRASTS_IN}({stepper.root}.querySelector('{part}'))")
                assert [(text, round(ratio, 2)) for text, ratio in seen if ratio < LEAST_CONTRAST] == [], part


def test_the_page_needs_no_jupyter(browser: str, tmp_path: Path) -> None:
    html = alone()
    tmp_path.joinpath("page.html").write_text(f"<!doctype html><meta charset=utf-8>{html}{html}", "utf-8")
    with chromium(browser, tmp_path, time.monotonic() + SECONDS) as page:
        page.call("Page.navigate", url=tmp_path.joinpath("page.html").as_uri())
        page.wait("document.querySelectorAll('.mt[data-ready]').length === 2")  # two outputs of one trace
        seen = page.evaluate("""(roots => {
          roots[1].dispatchEvent(new KeyboardEvent('keydown', {key: 'End'}));
          return roots.map(r => r.querySelector('[data-memory="total"] .mt-cell').firstChild.textContent);
        })([...document.querySelectorAll('.mt')])""")
        assert seen == ["0", str(int(X.sum()))]
