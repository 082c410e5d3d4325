"""The stepper in two dimensions, on a plain browser page: threads drawn in their grid, arrays as images."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lab import Page, chromium

import metalnb as mnb

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"

# A browser takes a minute to start and draw; tests/checking/test_trace.py covers the recorded steps.
pytestmark = [pytest.mark.browser, pytest.mark.long]

SOURCE = """
kernel void turned(device const float* x, device float* y, uint2 i [[thread_position_in_grid]],
                   uint2 n [[threads_per_grid]]) {
    float v = x[i.y * n.x + i.x];
    y[i.x * n.y + i.y] = v;
}"""


BLUR = """
kernel void pairs(device const float* x, device float* y, uint2 i [[thread_position_in_grid]],
                  uint2 n [[threads_per_grid]]) {
    float sum = x[i.y * n.x + i.x];
    sum += x[i.y * n.x + (i.x + 1) % n.x];
    y[i.y * n.x + i.x] = sum;
}"""


@contextmanager
def shown(browser: str, folder: Path, *call: Any, **options: Any) -> Iterator[Page]:
    """Show a call's stepper on its own page."""
    try:
        stepper = mnb.trace(*call, **options)
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    file = folder / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{stepper._repr_html_()}", "utf-8")
    with chromium(browser, folder, time.monotonic() + 60, 900, 900) as page:
        page.call("Page.navigate", url=file.as_uri())
        page.wait(f"document.querySelectorAll('.mt-t[data-thread]').length === {len(stepper.threads)}")
        yield page


@pytest.fixture
def page(browser: str, tmp_path: Path) -> Iterator[Page]:
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    call = mnb.compile(SOURCE).turned, x, np.zeros((4, 8), np.float32)
    with shown(browser, tmp_path, *call, grid=(8, 4), threadgroup=(8, 4)) as page:
        yield page


@pytest.fixture
def image(browser: str, tmp_path: Path) -> Iterator[Page]:
    x = np.arange(60 * 80, dtype=np.float32).reshape(60, 80)
    with shown(browser, tmp_path, mnb.compile(BLUR).pairs, x, until="y[21, 79]", threadgroup=(8, 4)) as page:
        yield page


def marked(page: Page, name: str, how: str) -> list[int]:
    """Return the elements of an array that carry a mark of some kind."""
    rects = f"document.querySelectorAll('[data-memory=\"{name}\"] rect.{how}')"
    return sorted(page.evaluate(f"[...{rects}].map(r => +r.dataset.index)"))


def level(page: Page, name: str, row: int, column: int) -> int:
    """Return a pixel's brightness, from 0 to 255; rows and columns count within the part drawn."""
    script = f"""document.querySelector('[data-memory="{name}"] canvas').getContext('2d')
      .getImageData({column}, {row}, 1, 1).data[0]"""
    return int(page.evaluate(script))


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


def test_stepper_opens_at_the_requested_write_and_a_key_returns_to_it(image: Page) -> None:
    state = "(d => [+d.tick, +d.thread])(document.querySelector('[data-ready]').dataset)"
    line = "document.querySelector('.mt-here').dataset.line"
    opened = image.evaluate(state)
    assert opened[1] == 1 * 8 + 7, "thread 79, 21 of the grid is 7, 1 of its threadgroup"
    assert image.evaluate(line) == "6"
    assert "Thread 79, 21 writes 3439 to y[21, 79] on line 6." in image.evaluate("document.body.innerText")
    key(image, "Home")
    key(image, "ArrowUp")
    assert image.evaluate(state) != opened
    key(image, "w")
    assert image.evaluate(state) == opened
    key(image, "Home")
    image.evaluate("[...document.querySelectorAll('.mt-bar button')].find(b => b.title.includes('(W)')).click()")
    assert image.evaluate(state) == opened


def test_an_array_is_an_image_with_the_accessed_elements_marked(image: Page) -> None:
    own = 21 * 80 + 79
    threads = [row * 80 + column for row in range(20, 24) for column in range(72, 80)]
    assert marked(image, "y", "mt-wrong") == marked(image, "y", "mt-writes") == [own]
    assert marked(image, "y", "mt-others") == [at for at in threads if at != own]
    assert marked(image, "x", "mt-read") == []
    key(image, "ArrowLeft")
    assert marked(image, "x", "mt-read") == [21 * 80], "the neighbor across the edge"
    image.screenshot(SCREENSHOTS / "stepper-image.png")
    told = "document.querySelector('[data-memory=\"y\"] .mt-caption').textContent"
    assert image.evaluate(told) == "rows 6 to 37, columns 48 to 79; all 0"
    assert level(image, "y", 15, 31) == 0
    key(image, "End")
    assert marked(image, "y", "mt-new") == threads
    brightest = 23 * 80 + 78 + 23 * 80 + 79
    assert level(image, "y", 17, 30) == 255
    assert level(image, "y", 15, 31) == round(255 * (own + 21 * 80) / brightest)
    assert image.evaluate(told) == f"rows 6 to 37, columns 48 to 79; black 0, white {brightest}"


def test_hovering_an_image_shows_the_element(image: Page) -> None:
    key(image, "End")
    at = image.evaluate("""(r => [r.x + 31.5 / 32 * r.width, r.y + 15.5 / 32 * r.height])(
      document.querySelector('[data-memory="y"] svg').getBoundingClientRect())""")
    image.call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])
    told = "document.querySelector('[data-memory=\"y\"] .mt-caption').textContent"
    image.wait(f"{told}.startsWith('row')")
    assert image.evaluate(told) == f"row 21, column 79: {21 * 80 + 79 + 21 * 80}, written by thread 7, 1"
