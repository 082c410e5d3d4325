"""How errors and cards look in JupyterLab: contrast and scrolling, in both themes, wide and narrow.

The screenshots are left in ``build/screenshots``.
"""

# ruff: noqa: E501  (cells wider than a page, and scripts)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.text_contrast import CONTRASTS_IN, LEAST_CONTRAST
from lab import CELLS as ALL
from lab import THEMES, Cell, Page, new_notebook, opened

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
SECONDS = 240  # s: the limit of every wait in this file
WIDTHS = (1400, 800)

# A browser takes a minute to start and draw; tests/notebook/test_display.py covers what is shown.
pytestmark = [pytest.mark.browser, pytest.mark.long]

CELLS = [
    "%load_ext metalnb\nimport numpy as np\nimport metalnb as mnb\nimage = np.random.rand(64, 64).astype(np.float32)",
    """\
%%metal
#include <metal_stdlib>
using namespace metal;

/// Another brightness for each pixel: a line that is too long for a narrow page, with a name that must not break.
kernel void brightened_by_a_factor_and_an_offset(device const float* image, device float* brightened_by_a_factor, constant float& factor,
                                                 uint2 pixel [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    brightened_by_a_factor[pixel.y * size.x + pixel.x] = factor * image[pixel.y * size.x + pixel.x] + 0.125;
}""",
    """\
%%metal
#include <metal_stdlib>
using namespace metal;

kernel void wrong(device float* x, uint i [[thread_position_in_grid]]) {
    float h = x[i];
    x[i] = lenght(h);
}""",
    """\
bright = brightened_by_a_factor_and_an_offset
tuner = mnb.tune(bright, image, factor=2.0, threadgroup=[(n, m) for n in (1, 2, 4, 8, 16, 32) for m in range(1, 12)])
tuner.wait()""",
    "mnb.roofline(bright.prepare(image, factor=2.0), flops=[2 * image.size])",
    "%metal limits",
    "mnb.memory_info()",
    "mnb.compare(bright.prepare(image, factor=2.0), bright.prepare(image[:1], factor=2.0))",
    "bright",
    """\
%%metal
struct PartialDigestOfAThreadgroup { uint words[8]; };
kernel void digest(device const PartialDigestOfAThreadgroup* digests, device PartialDigestOfAThreadgroup* partial_digests_of_threadgroups,
                   threadgroup uint* scratch [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
    scratch[0] = 1;
    partial_digests_of_threadgroups[i].words[0] = digests[i].words[0] + scratch[0];
}""",
    "%metal_compare bright(image, factor=2.0) 2*image+0.125 np.exp(image)",
    "watch = mnb.monitor()\nwatch",
    "bright.check(image, factor=2.0, expected=lambda image, factor: image)",
    """\
for group in ((32, 8), (16, 16), (8, 32)):
    bright(image, factor=2.0, threadgroup=group)""",
]
(
    SETUP, CARD, WRONG, TUNE, ROOFLINE, LIMITS, MEMORY, COMPARE, SHOWN, RECORDS, SEVERAL, WATCH, CHECKED, CALLS,
) = range(len(CELLS))  # fmt: skip

OUTPUT = f"(i => {ALL}[i].node.querySelector('.jp-Cell-outputArea'))"


@pytest.fixture(scope="module")
def page(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("look")
    with opened(new_notebook(*CELLS), browser, folder, SECONDS, WIDTHS[0], 1400) as page:
        for i in range(len(CELLS)):
            page.evaluate(f"({ALL}[{i}].node.scrollIntoView(), 0)")
            page.evaluate(
                f"jupyterapp.shell.currentWidget.content.activeCellIndex = {i}, "
                "void jupyterapp.commands.execute('notebook:run-cell')"
            )
            page.wait(f"{ALL}[{i}].model.executionCount && {ALL}[{i}].model.executionState === 'idle'")
        page.evaluate(f"[...{OUTPUT}({SHOWN}).querySelectorAll('details')].forEach(d => d.open = true)")
        page.wait(f"{OUTPUT}({WATCH}).innerText.includes('in 8 × 32')")
        yield page


def shaped(page: Page, theme: str, width: int) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=1400, deviceScaleFactor=1, mobile=False)
    page.dress(theme)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_everything_is_readable_and_scrolls_in_its_frame(page: Page, theme: str, width: int) -> None:
    shaped(page, theme, width)
    faint: list[Any] = []
    for i in range(1, len(CELLS)):
        name = f"look-{i}-{theme}-{width}.png"
        box = page.evaluate(f"""(e => {{ e.scrollIntoView({{block: 'start'}}); const r = e.getBoundingClientRect();
                                         return [r.x, r.y, r.width, r.height]; }})({ALL}[{i}].node)""")
        x, y, w, h = box
        page.screenshot(SCREENSHOTS / name, x=x, y=y, width=w, height=max(1, min(h, 1200)), scale=1)
        contrasts = page.evaluate(f"{CONTRASTS_IN}({OUTPUT}({i}))")
        themes_own = page.evaluate(f"[...{OUTPUT}({i}).querySelectorAll('.metalnb :is(.c, .k, .m, .p)')].map(e => e.textContent)")
        faint += [(i, text, ratio) for text, ratio in contrasts if ratio < LEAST_CONTRAST and text not in themes_own]
        if i != CALLS:  # it shows nothing
            assert contrasts, (i, "has no text")
        wide = f"""(o => [...o.querySelectorAll('.metalnb, .metalnb-live')].filter(
                     e => e.getBoundingClientRect().right > o.getBoundingClientRect().right + 1).length)({OUTPUT}({i}))"""
        assert page.evaluate(wide) == 0, (i, "reaches out of its output")
        assert not page.evaluate(f"(o => o.scrollWidth > o.clientWidth + 1)({OUTPUT}({i}))"), (i, "scrolls")
        frames = f"[...{OUTPUT}({i}).querySelectorAll('.metalnb')].filter(e => e.scrollWidth > e.clientWidth + 1)"
        assert page.evaluate(f"{frames}.length") == 0, (i, "scrolls within its frame")
    assert faint == []


def test_a_ratio_and_its_range_are_whole_in_a_narrow_comparison(page: Page) -> None:
    shaped(page, "light", 800)
    sizes = page.evaluate(f"""[...{OUTPUT}({SEVERAL}).querySelectorAll('.metalnb-phrase')].map(
      e => e.getClientRects().length)""")
    assert sizes
    assert set(sizes) == {1}
    strips = page.evaluate(f"""[...{OUTPUT}({SEVERAL}).querySelectorAll('.metalnb-strip')].map(e => e.clientWidth)""")
    assert min(strips) >= 100


@pytest.mark.parametrize("theme", THEMES)
def test_keyboard_focus_is_visible(page: Page, theme: str) -> None:
    shaped(page, theme, 1400)
    stops = "button, summary, [data-metalnb-at]"
    lost = page.evaluate(f"""[{CARD}, {TUNE}, {SHOWN}, {WATCH}, {CHECKED}].flatMap(i =>
      [...{OUTPUT}(i).querySelectorAll('.metalnb :is({stops})')].filter(e => e.checkVisibility()).map(e => {{
        e.focus({{focusVisible: true, preventScroll: true}});
        const s = getComputedStyle(e);
        const ring = s.outlineStyle === 'solid' && parseFloat(s.outlineWidth) >= 1;
        return [e.ariaLabel || e.textContent, document.activeElement === e && ring];
      }}))""")
    assert len(lost) > 60
    assert [name for name, seen in lost if not seen] == []


def test_the_source_on_a_card_breaks_at_no_token(page: Page) -> None:
    shaped(page, "light", 800)
    lines = page.evaluate(f"""(e => {{
      const height = parseFloat(getComputedStyle(e).lineHeight);
      return [Math.round(e.clientHeight / height), e.textContent.trimEnd().split('\\n').length, e.scrollWidth > e.clientWidth];
    }})({OUTPUT}({SHOWN}).querySelector('pre.metalnb-code'))""")
    shown, written, scrolls = lines
    assert abs(shown - written) <= 1  # a scrollbar may take part of a line
    assert scrolls


def test_the_heat_map_scrolls_in_its_frame(page: Page) -> None:
    shaped(page, "light", 800)
    inside = page.evaluate(f"""(e => {{
      const frame = e.closest('.metalnb-scroll');
      return frame.getBoundingClientRect().right <= {OUTPUT}({TUNE}).getBoundingClientRect().right + 1;
    }})({OUTPUT}({TUNE}).querySelector('.metalnb-map'))""")
    assert inside


def test_errors_count_lines_as_the_gutter_does(page: Page) -> None:
    said = page.evaluate(f"{OUTPUT}({WRONG}).innerText")
    assert "cell:7:12: error: use of undeclared identifier 'lenght'; did you mean 'length'?" in said
    assert said.count("did you mean") == 1


def test_a_hover_has_no_scrollbar_that_it_does_not_need(page: Page) -> None:
    shaped(page, "light", 800)
    cell = Cell(page, CARD)
    cell.put("%%metal\n#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device float* x) { x[0] = clamp(1.0, 0.0, 2.0); }")
    cell.go("x[0] = cla")
    cell.shift_tab()
    page.screenshot(SCREENSHOTS / "look-hover.png")
    bars = page.evaluate("""[...document.querySelectorAll('.jp-Tooltip, .jp-Tooltip *')].filter(e => {
      const s = getComputedStyle(e);
      const scrolls = v => v === 'auto' || v === 'scroll';
      return (scrolls(s.overflowY) && e.scrollHeight > e.clientHeight + 1)
          || (scrolls(s.overflowX) && e.scrollWidth > e.clientWidth + 1);
    }).map(e => e.className)""")
    assert bars == []


def test_mistakes_are_marked_while_typing_and_fixed_by_a_click(page: Page) -> None:
    cell = Cell(page, CARD)
    node = f"{ALL}[{CARD}].node"
    cell.put("%%metal\n#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device float* x) { x[0] = lenght(float2(1)); }")
    cell.go("x[0] = lenght")
    page.wait(f"{node}.querySelector('.cm-lintRange-error')?.textContent === 'lenght'")
    page.wait(f"{node}.querySelector('.cm-gutter-lint .cm-lint-marker-error') !== null")
    page.screenshot(SCREENSHOTS / "look-mistake.png")
    box = page.evaluate(f"""(r => [r.x + r.width / 2, r.y + r.height / 2])(
        {node}.querySelector('.cm-lintRange-error').getBoundingClientRect())""")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] - 30, y=box[1] + 60)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    page.wait("document.querySelector('.cm-diagnosticAction')?.textContent.startsWith('length')")
    page.screenshot(SCREENSHOTS / "look-mistake-hover.png")
    page.evaluate("document.querySelector('.cm-diagnosticAction').dispatchEvent(new MouseEvent('mousedown', {bubbles: true}))")
    page.wait(f"{ALL}[{CARD}].model.sharedModel.getSource().includes('length(float2(1))')")
    page.wait(f"{node}.querySelector('.cm-lintRange-error, .cm-lint-marker-error') === null")
    cell.put("lenght = 1  # Python")
    assert page.evaluate(f"{ALL}[{SETUP}].node.querySelector('.cm-gutter-lint') === null")
    page.wait(f"{node}.querySelector('.cm-gutter-lint') === null")
