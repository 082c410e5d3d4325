"""A profile's page in a real browser: clicked, sorted, in light and dark, 1400 and 800 pixels wide; and in JupyterLab.

The screenshots are left in ``build/screenshots``.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab import CELLS, THEMES, Page, chromium, new_notebook, opened, until

import metalnb as mnb

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
SECONDS = 240  # s: the limit of every wait in this file

# A browser takes a minute to start and draw; tests/measuring/profiling covers what a profile shows.
pytestmark = [pytest.mark.browser, pytest.mark.long]

TILE = """#include <metal_stdlib>
using namespace metal;
kernel void turned(device const float* x, device float* out, uint2 i [[thread_position_in_threadgroup]],
                   uint l [[thread_index_in_threadgroup]]) {
    threadgroup float t[32][32];
    t[i.y][i.x] = x[l];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[l] = t[i.x][i.y] * 2;
}"""
SHOWN = [
    "%load_ext metalnb\nimport numpy as np\nx = np.zeros((32, 32), np.float32)",
    f"%%metal --quiet\n{TILE}",
    "%metal_profile turned(x, threadgroup=(32, 32))",
]
LINES = "[...root.querySelectorAll('tbody')].filter(b => b.offsetHeight).map(b => +b.dataset.line)"


class Card:
    """A profile on the page."""

    def __init__(self, page: Page, root: str) -> None:
        self.page, self.root = page, root
        page.wait(f"{root}?.dataset.ready === '1'")

    def ask(self, script: str) -> Any:
        return self.page.evaluate(f"(root => {script})({self.root})")

    def click(self, script: str) -> None:
        """Click the middle of an element with the mouse."""
        self.ask(f"({script}).scrollIntoView({{block: 'center'}})")
        x, y = self.ask(f"(r => [r.x + r.width / 2, r.y + r.height / 2])(({script}).getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self.page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def used(self, line: int) -> None:
        """Act as a reader: open the costliest line's access, sort, go back."""
        order = self.ask(LINES)
        assert order == sorted(order)
        assert self.ask("[...root.querySelectorAll('details')].every(d => !d.open)")
        self.click("root.querySelector('.mp-at:not(.mp-fine)')")  # the column read, in the source
        opened = self.ask("[...root.querySelectorAll('details[open] summary')].map(s => s.textContent)")
        assert opened == ["t read, threadgroup memory; 32 passes for 1; 32 times"]
        assert self.ask("root.querySelector('details[open] svg').getBoundingClientRect().height") > 200
        self.click("root.querySelector('thead button[type]:not(th:first-child button)')")  # by cost
        assert self.ask(LINES)[0] == line
        assert self.ask("root.querySelector('th[aria-sort]').textContent") == "cost"
        self.click("root.querySelector('thead th:first-child button')")
        assert self.ask(LINES) == order


@pytest.mark.parametrize("width", [1400, 800])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_needs_no_jupyter(browser: str, tmp_path: Path, width: int, dark: bool) -> None:
    html = mnb.profile(mnb.compile(TILE).turned, np.zeros((32, 32), np.float32), threadgroup=(32, 32))._repr_html_()
    colors = "background:#111;color:#ddd" if dark else "background:#fff;color:#222"
    room = "padding:0 110px"  # the width that prompts and side bars take
    text = f"<!doctype html><meta charset=utf-8><body style='{colors};{room}'>{html}{html}"
    tmp_path.joinpath("page.html").write_text(text, "utf-8")
    with chromium(browser, tmp_path, time.monotonic() + SECONDS, width=width) as page:
        page.call("Page.navigate", url=tmp_path.joinpath("page.html").as_uri())
        for i in (0, 1):  # two outputs of one profile
            Card(page, f"document.querySelectorAll('.mp')[{i}]").used(8)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        cut = "(s => s.scrollWidth > s.clientWidth)(document.querySelector('.mp-scroll'))"
        assert not page.evaluate(cut)
        page.screenshot(SCREENSHOTS / f"profile-{width}-{'dark' if dark else 'light'}.png")


def test_a_finding_opens_its_access_by_keyboard(browser: str, tmp_path: Path) -> None:
    html = mnb.profile(mnb.compile(TILE).turned, np.zeros((32, 32), np.float32), threadgroup=(32, 32))._repr_html_()
    tmp_path.joinpath("page.html").write_text(f"<!doctype html><meta charset=utf-8><body>{html}", "utf-8")
    with chromium(browser, tmp_path, time.monotonic() + SECONDS) as page:
        page.call("Page.navigate", url=tmp_path.joinpath("page.html").as_uri())
        card = Card(page, "document.querySelector('.mp')")
        for name, code in (("Tab", 9), ("Enter", 13)):
            for kind in ("rawKeyDown", "keyUp"):
                page.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)
        opened = card.ask("[...root.querySelectorAll('details[open] summary')].map(s => s.textContent)")
        assert opened == ["t read, threadgroup memory; 32 passes for 1; 32 times"]  # not the line's first, `out`
        until(  # the event `toggle` comes after an element has opened
            lambda: card.ask("root.querySelector('.mp-at:not(.mp-fine)').getAttribute('aria-expanded') === 'true'"),
            time.monotonic() + SECONDS, "the access's mark says that it is open",
        )  # fmt: skip
        assert card.ask("getComputedStyle(root.querySelector('.mp-finding a')).outlineStyle") == "solid"


@pytest.mark.parametrize(("template", "theme"), [("lab", "light"), ("lab", "dark"), ("classic", "light")])
def test_profile_is_shown_after_nbconvert(browser: str, tmp_path: Path, template: str, theme: str) -> None:
    nbconvert = pytest.importorskip("nbconvert")
    nbformat = pytest.importorskip("nbformat")
    profile = mnb.profile(mnb.compile(TILE).turned, np.zeros((32, 32), np.float32), threadgroup=(32, 32))
    data = {"text/html": profile._repr_html_(), "text/plain": repr(profile)}
    output = nbformat.v4.new_output("execute_result", data, execution_count=1)
    cell = nbformat.v4.new_code_cell(SHOWN[2], outputs=[output], execution_count=1)
    exporter = nbconvert.HTMLExporter(template_name=template, theme=theme)
    html, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    tmp_path.joinpath("page.html").write_text(html, "utf-8")
    with chromium(browser, tmp_path, time.monotonic() + SECONDS, width=1000) as page:
        page.call("Page.navigate", url=tmp_path.joinpath("page.html").as_uri())
        card = Card(page, "document.querySelector('.mp')")
        card.used(8)
        texts = card.ask("[...root.querySelectorAll('.mp-code')].map(each => each.textContent)")
        assert texts == TILE.splitlines()  # exporters strip spaces
        ask = "getComputedStyle(root.querySelector('{}')).{}"
        assert card.ask(ask.format(".mp-finding", "borderLeftWidth")) == "3px"
        assert card.ask(ask.format(".mp-code", "fontSize")) == card.ask(ask.format("td.mp-cost", "fontSize")) == "12px"
        assert card.ask(ask.format("summary", "display")) == "list-item"
        assert card.ask(ask.format(".mp-code", "color")) == card.ask(ask.format("td.mp-source", "color"))
        heats = card.ask("[...root.querySelectorAll('td.mp-number')].map(d => getComputedStyle(d).borderLeftColor)")
        assert len(set(heats)) >= 3  # none, little, much
        page.screenshot(SCREENSHOTS / f"profile-nbconvert-{template}-{theme}.png")


@pytest.fixture(scope="module")
def lab(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("profile")
    with opened(new_notebook(*SHOWN), browser, folder, SECONDS, width=1400, height=1400) as page:
        page.restart_and_run_all()
        yield page


@pytest.mark.parametrize("theme", THEMES)
def test_profile_is_shown_in_jupyterlab(lab: Page, theme: str) -> None:
    lab.dress(theme)
    card = Card(lab, f"{CELLS}[2].node.querySelector('.mp')")
    if theme == "light":
        card.used(9)  # as the editor counts, including the magic's line
    assert card.ask("root.querySelector('.mp-finding').textContent").startswith("line 9: 32 lanes need 32 passes")
    lab.screenshot(SCREENSHOTS / f"profile-lab-{theme}.png")
