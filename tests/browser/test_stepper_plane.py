"""The stepper of a threadgroup of two dimensions: drawn as it lies, on a plain page of the browser."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from lab import Page, chromium

import metalnb as mnb

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"

pytestmark = [pytest.mark.browser, pytest.mark.long]

SOURCE = """
kernel void turned(device const float* x, device float* y, uint2 i [[thread_position_in_grid]],
                   uint2 n [[threads_per_grid]]) {
    float v = x[i.y * n.x + i.x];
    y[i.x * n.y + i.y] = v;
}"""


@pytest.fixture
def page(browser: str, tmp_path: Path) -> Iterator[Page]:
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    try:
        seen = mnb.trace(mnb.compile(SOURCE).turned, x, np.zeros((4, 8), np.float32), grid=(8, 4), threadgroup=(8, 4))
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{seen._repr_html_()}", "utf-8")
    with chromium(browser, tmp_path, time.monotonic() + 60, 900, 900) as page:
        page.call("Page.navigate", url=file.as_uri())
        page.wait("document.querySelectorAll('.mt-t[data-thread]').length === 32")
        yield page


def key(page: Page, name: str) -> int:
    page.evaluate("document.querySelector('[data-ready]').dispatchEvent("
                  f"new KeyboardEvent('keydown', {{key: '{name}', bubbles: true}}))")  # fmt: skip
    return int(page.evaluate("document.querySelector('[data-ready]').dataset.thread"))


def test_8_by_4_threads_are_drawn_8_by_4(page: Page) -> None:
    rows = page.evaluate("""[...document.querySelectorAll('.mt-simd')].map(r =>
      [r.querySelector('small').textContent, r.querySelectorAll('[data-thread]').length])""")
    assert rows == [["0", 8], ["1", 8], ["2", 8], ["3", 8]]
    across = page.evaluate("""(g => {
      const cells = [...g.querySelectorAll('.mt-cell')].map(c => c.getBoundingClientRect().y);
      return cells.filter(y => y === cells[0]).length;
    })(document.querySelector("[data-memory='y'] .mt-grid"))""")
    assert across == 8, "an array that is as long as a few rows of threads has rows as long as theirs"
    page.screenshot(SCREENSHOTS / "stepper-plane.png")


def test_keys_walk_through_the_rows_and_along_them(page: Page) -> None:
    assert [key(page, k) for k in (".", "ArrowDown", "ArrowDown", ",", "ArrowUp")] == [1, 9, 17, 16, 8]
