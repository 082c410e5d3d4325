"""The instruments' saved HTML in VS Code's notebook renderer and in pages by nbconvert: both themes, wide and narrow.

Neither has JupyterLab's variables (nbconvert's template ``lab`` has them), the extension, or a kernel. The screenshots
are left in ``build/screenshots``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.still_pages import VSCODE, stills, vscode_page, vscode_script
from browser.text_contrast import CONTRASTS_IN, LEAST_CONTRAST
from lab import Page, chromium

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
SECONDS = 240
WIDTHS = (1400, 800)
HOSTS = [*(f"vscode-{theme}" for theme in VSCODE), "lab-light", "lab-dark", "classic-light"]

# A browser takes a minute to start and draw; tests/notebook/test_without_styles.py covers the still pages.
pytestmark = [pytest.mark.browser, pytest.mark.long]

# What is only for other pages, and so must not be seen on one with styles.
SPARE = ".metalnb-spare, .metalnb-png, .metalnb-acts"
HIDDEN = f"[...document.querySelectorAll('{SPARE}')].filter(e => e.checkVisibility())"
WIDE = "[...document.querySelectorAll('.metalnb')].filter(e => e.scrollWidth > e.clientWidth + 1)"


@pytest.fixture(scope="module")
def browsed(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("still")
    with chromium(browser, folder, time.monotonic() + SECONDS, WIDTHS[0], 1200) as page:
        yield page


@pytest.fixture(scope="module", params=HOSTS)
def host(browsed: Page, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[Page, str]:
    """A host's page with every instrument on it, and the host's name."""
    kind, theme = request.param.split("-")
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(vscode_page(theme) if kind == "vscode" else exported(kind, theme), "utf-8")
    browsed.call("Page.navigate", url=path.as_uri())
    browsed.wait(f"location.href === {path.as_uri()!r} && document.readyState === 'complete'")
    for name, html in stills().items() if kind == "vscode" else ():
        browsed.evaluate(vscode_script(name, html))
    browsed.wait("document.querySelectorAll('.mt[data-ready], .mp[data-ready]').length === 2")
    return browsed, request.param


def exported(template: str, theme: str) -> str:
    """Return a page by nbconvert."""
    nbconvert = pytest.importorskip("nbconvert")
    import nbformat

    outputs = [nbformat.v4.new_output("display_data", {"text/html": html}) for html in stills().values()]
    cells = [nbformat.v4.new_code_cell("shown", outputs=[output], execution_count=1) for output in outputs]
    exporter = nbconvert.HTMLExporter(template_name=template, theme=theme)
    return str(exporter.from_notebook_node(nbformat.v4.new_notebook(cells=cells))[0])


@pytest.mark.parametrize("width", WIDTHS)
def test_still_page_fits_and_is_readable(host: tuple[Page, str], width: int) -> None:
    page, name = host
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=1200, deviceScaleFactor=1, mobile=False)
    tall = page.evaluate("document.documentElement.scrollHeight")
    page.screenshot(SCREENSHOTS / f"still-{name}-{width}.png", x=0, y=0, width=width, height=tall, scale=1)
    assert page.evaluate(f"{WIDE}.map(e => e.innerText.slice(0, 30))") == []
    assert page.evaluate(f"{HIDDEN}.map(e => e.className)") == []
    found: list[Any] = page.evaluate(f"[...document.querySelectorAll('.metalnb')].flatMap({CONTRASTS_IN})")
    assert len(found) > 500
    faint = {text for text, ratio in found if ratio < LEAST_CONTRAST}
    if name.startswith("lab"):  # its page has its own token colors
        tokens = "[...document.querySelectorAll('.metalnb :is(.c, .k, .m, .p)')]"
        faint -= set(page.evaluate(f"{tokens}.map(e => e.textContent)"))
    assert faint == set()


def test_tables_look_alike_on_every_page(host: tuple[Page, str]) -> None:
    page, _ = host
    style = "(s => e => getComputedStyle(e)[s])"
    heads = page.evaluate(f"[...document.querySelectorAll('.mp th:not(.mp-source)')].map({style}('textAlign'))")
    assert set(heads) == {"right"}, "as the figures below them"
    backs = page.evaluate(f"[...document.querySelectorAll('.metalnb :is(thead, tr)')].map({style}('backgroundColor'))")
    assert set(backs) == {"rgba(0, 0, 0, 0)"}
    lines = page.evaluate(f"""[...document.querySelectorAll('.metalnb-head + table > tbody > tr > td')].map(
      {style}('borderTopWidth'))""")
    assert set(lines) == {"1px"}
    heats = page.evaluate(f"[...document.querySelectorAll('td.mp-number')].map({style}('borderLeftWidth'))")
    assert set(heats) == {"4px"}


def test_the_stepper_and_the_profile_answer(host: tuple[Page, str]) -> None:
    page, _ = host
    page.evaluate("document.querySelector('.mt').focus()")
    before = page.evaluate("document.querySelector('.mt').dataset.tick")
    for kind in ("rawKeyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    assert page.evaluate("document.querySelector('.mt').dataset.tick") != before
    page.evaluate("document.querySelector('.mp th button').click()")
    page.evaluate("document.querySelectorAll('.mp th button')[1].click()")
    assert page.evaluate("document.querySelector('.mp th[aria-sort]').textContent") == "cost"
    page.evaluate("document.querySelectorAll('.mp th button')[0].click()")
    assert page.evaluate("document.querySelector('.mp th[aria-sort]') === null")
