"""The widgets as a user sees them in JupyterLab: moved with the mouse, in the light and the dark theme.

The screenshots are left in ``build/screenshots``.
"""

import json
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.lab_notebook import LabNotebook
from lab import CELLS as ALL
from lab import THEMES, new_notebook, opened, until
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
SECONDS = 400  # s: the limit of every wait in this file

# A browser takes a minute to start and draw; tests/notebook/test_widgets.py covers the Python side.
pytestmark = [pytest.mark.browser, pytest.mark.long]

CELLS = [
    """\
%load_ext metalnb
import numpy as np
import time
import metalnb as mnb
x, y = np.random.rand(2, 1 << 20).astype(np.float32)
image = np.random.rand(256, 256).astype(np.float32)""",
    """\
%%metal --quiet
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device const float* x, device float* y, constant float& a,
                  uint i [[thread_position_in_grid]]) { y[i] = a * x[i] + y[i]; }

kernel void blur(device const float* x, device float* y, constant uint& radius,
                 uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    float sum = 0;
    for (uint k = 0; k < radius; ++k) sum += x[i.y * n.x + min(i.x + k, n.x - 1)];
    y[i.y * n.x + i.x] = sum / radius;
}

kernel void julia(device float* image, constant float2& c, uint2 at [[thread_position_in_grid]],
                  uint2 size [[threads_per_grid]]) {
    float2 z = (2.0 * float2(at) - float2(size)) / size.y;
    float n = 0;
    while (n < 200 && dot(z, z) < 256) { z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c; n += 1; }
    image[at.y * size.x + at.x] = n < 200 ? log(n + 1 - log2(log2(dot(z, z)) / 2)) : 0;
}

kernel void rings(device float* image, constant float2& center, constant float& height, constant float& width,
                  uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    float2 p = center + (float2(at) + 0.5 - 0.5 * float2(size)) / size.y * height;
    image[at.y * size.x + at.x] = fract(length(p) / width);
}""",
    "board = mnb.dashboard(saxpy, x, y, a=2.0)\nboard",
    "watch = mnb.monitor()\nwatch",
    """\
for _ in range(150):
    saxpy(x, y, a=0.5)
    blur(image, radius=5)
    time.sleep(0.02)""",
    "tuner = mnb.tune(blur, image, radius=200)\ntuner",
    "mnb.explore(julia, c=(-0.7269, 0.1889), grid=(384, 384))",
    """\
mnb.explore(rings, center=(0.0, 0.0), height=2.0, width=0.5, grid=(300, 200),
            window=("center.x", "center.y", "height"))""",
]
SETUP, KERNELS, BOARD, WATCH, LOOP, TUNE, EXPLORE, WINDOW = range(len(CELLS))


@pytest.fixture(scope="module")
def notebook(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabNotebook]:
    """Open a notebook whose Jupyter kernel is ready and whose Metal kernels are compiled."""
    with opened(new_notebook(*CELLS), browser, tmp_path_factory.mktemp("widgets"), SECONDS, height=1100) as page:
        notebook = LabNotebook(page)
        notebook.run(SETUP)
        notebook.run(KERNELS)
        assert notebook.text(KERNELS) == ""
        yield notebook


def test_a_slider_of_the_dashboard_moved_by_the_mouse_changes_the_figures(notebook: LabNotebook) -> None:
    notebook.run(BOARD)
    notebook.wait(BOARD, "e.querySelectorAll('.noUi-handle').length === 3")
    assert "1 run" in notebook.text(BOARD)
    before = notebook.page.evaluate(f"{ALL}[{BOARD}].node.querySelector('.metalnb-big').innerText")
    handle = f"{ALL}[{BOARD}].node.querySelectorAll('.noUi-handle')[0]"
    notebook.press(handle, -60)
    notebook.wait(BOARD, "!e.innerText.includes('grid 1,048,576,')")
    notebook.wait(BOARD, "/([2-9]|\\d\\d) runs/.test(e.innerText)")
    assert notebook.page.evaluate(f"{ALL}[{BOARD}].node.querySelector('.metalnb-big').innerText") != before
    runs = "Number(e.innerText.match(/(\\d+) runs/)[1])"
    count = notebook.wait(BOARD, runs)
    notebook.click(BOARD, "Run")
    notebook.wait(BOARD, f"{runs} > {count}")


# What Tab comes to, with the name that a screen reader has for it.
STOPS = """(node => [...node.querySelectorAll('button, a[href], input, select, summary, [tabindex]')]
  .filter(e => e.tabIndex >= 0 && !e.disabled && e.checkVisibility())
  .map(e => [e.ariaLabel, ...[...e.labels ?? []].map(l => l.textContent), e.alt, e.placeholder, e.textContent, e.title]
    .find(name => name?.trim()) ?? e.outerHTML))"""


def test_every_control_has_a_name(notebook: LabNotebook) -> None:
    stops = notebook.page.evaluate(f"{STOPS}({ALL}[{BOARD}].node.querySelector('.jp-Cell-outputArea'))")
    assert [name for name in stops if "<" in name] == []
    named = {name.strip() for name in stops}
    assert {"size", "threadgroup", "a", "play", "play or pause", "stop", "Run", "copy the call"} <= named


def test_the_monitor_fills_while_a_cell_runs(notebook: LabNotebook) -> None:
    notebook.run(WATCH)
    notebook.wait(WATCH, "e.innerText.includes('nothing yet')")
    notebook.run(LOOP, wait=False)
    count = "Number(e.innerText.match(/([\\d,]+) dispatches/)?.[1].replace(',', ''))"
    seen = notebook.wait(WATCH, f"{count} > 0 && {count}")
    assert notebook.page.evaluate(f"{ALL}[{LOOP}].model.executionState") == "running"
    assert 0 < seen < 300
    notebook.page.wait(f"{ALL}[{LOOP}].model.executionState === 'idle'")
    notebook.wait(WATCH, f"{count} === 300")
    text = notebook.text(WATCH)
    assert "saxpy" in text
    assert "256 × 256" in text
    assert notebook.page.evaluate(f"{ALL}[{WATCH}].node.querySelectorAll('.metalnb-spark').length") == 2
    kernels = f"[...{ALL}[{WATCH}].node.querySelectorAll('code[data-metalnb-at]')]"
    notebook.press(f"{kernels}.find(e => e.innerText.endsWith('blur'))")
    notebook.wait(WATCH, "e.querySelector('code[data-metalnb-at]').innerText === '★ blur'")
    notebook.press(f"{ALL}[{WATCH}].node.querySelector('input[type=text]')")
    notebook.page.call("Input.insertText", text="sax")
    notebook.wait(WATCH, "e.querySelectorAll('.metalnb-spark').length === 1")
    for _ in "sax":
        notebook.page.call("Input.dispatchKeyEvent", type="rawKeyDown", key="Backspace", windowsVirtualKeyCode=8)
    notebook.wait(WATCH, "e.querySelectorAll('.metalnb-spark').length === 2")
    notebook.click(WATCH, "CSV")
    assert "300 dispatches" in notebook.wait(WATCH, "e.querySelector('a[download]')?.parentElement.innerText")
    notebook.click(WATCH, "Stop")
    notebook.wait(WATCH, "e.innerText.includes('stopped')")


def test_tuner_progress_bar_and_stop_button(notebook: LabNotebook) -> None:
    notebook.run(TUNE)
    bar = "e.querySelector('.progress-bar')?.style.width"
    first = notebook.wait(TUNE, f"parseFloat({bar}) > 0 && {bar}")
    assert first != notebook.wait(TUNE, f"{bar} !== {json.dumps(first)} && {bar}")
    notebook.wait(TUNE, "e.querySelectorAll('[data-metalnb-at]').length > 3")  # enough for the tests below
    notebook.click(TUNE, "Stop")
    notebook.wait(TUNE, "[...e.querySelectorAll('button')].some(b => b.innerText.trim() === 'Continue')")
    (tried, of) = notebook.wait(TUNE, "e.innerText.match(/(\\d+) of (\\d+) conf/)?.slice(1).map(Number)")
    assert 0 < tried < of
    stopped = notebook.page.evaluate(f"(e => {bar})({ALL}[{TUNE}].node)")
    notebook.click(TUNE, "Apply")
    notebook.wait(TUNE, "e.innerText.includes('by default')")
    assert notebook.page.evaluate(f"(e => {bar})({ALL}[{TUNE}].node)") == stopped
    best = notebook.page.evaluate(f"{ALL}[{TUNE}].node.querySelectorAll('.metalnb-best').length")
    assert best == 1 or (best == 0 and "no configuration is faster" in notebook.text(TUNE))


def test_a_picture_follows_its_slider(notebook: LabNotebook) -> None:
    notebook.run(EXPLORE)
    source = "e.querySelector('.widget-image')?.src"
    before = notebook.wait(EXPLORE, f"e.querySelector('.widget-image')?.naturalWidth && {source}")
    notebook.press(f"{ALL}[{EXPLORE}].node.querySelectorAll('.noUi-handle')[0]", 10)
    assert notebook.wait(EXPLORE, f"{source} !== {json.dumps(before)} && {source}")
    notebook.wait(EXPLORE, "e.querySelector('.widget-image').naturalWidth === 384")
    notebook.wait(EXPLORE, "e.innerText.includes('per second')")


COPIED = "e.querySelector('.metalnb-copy')?.title"
HANDLE = f"{ALL}[{{}}].node.querySelectorAll('.metalnb-knob .noUi-handle')[0]"
PICTURE = f"{ALL}[{{}}].node.querySelector('.metalnb-picture')"


def test_arrows_move_a_slider_by_a_hundredth_and_with_shift_by_a_thousandth(notebook: LabNotebook) -> None:
    """A screen reader also names the scalar."""
    notebook.wait(EXPLORE, "e.querySelectorAll('.noUi-handle[aria-label]').length === 2")
    labels = notebook.wait(EXPLORE, "[...e.querySelectorAll('.noUi-handle')].map(h => h.ariaLabel)")
    assert labels == ["c.x", "c.y"]
    value = f"Number(({COPIED}).match(/c=\\(([-\\d.]+)/)[1])"
    notebook.page.evaluate(f"{HANDLE.format(EXPLORE)}.focus()")
    before = notebook.settled(EXPLORE, value)  # the previous test's mouse position may still have an effect
    notebook.key("ArrowRight")
    reach = 4 * 0.7269
    notebook.wait(EXPLORE, f"Math.abs({value} - {before} - {reach / 100}) < 0.001")
    notebook.key("ArrowLeft")
    notebook.wait(EXPLORE, f"Math.abs({value} - {before}) < 0.001")
    notebook.key("ArrowLeft", modifiers=8)
    notebook.wait(EXPLORE, f"Math.abs({value} - {before} + {reach / 1000}) < 0.0006")


def test_a_picture_is_magnified_and_moved_by_hand(notebook: LabNotebook) -> None:
    image = PICTURE.format(EXPLORE)
    notebook.press(image)
    notebook.key("+")
    style = "e.querySelector('.metalnb-picture').style.transform"
    assert "scale(1.25)" in notebook.wait(EXPLORE, f"{style}.includes('scale(1.25)') && {style}")
    before = notebook.wait(EXPLORE, style)
    notebook.press(image, 20, 10)
    after = notebook.wait(EXPLORE, f"{style} !== {json.dumps(before)} && {style}")
    (x0, y0), (x1, y1) = ([float(n) for n in re.findall(r"(-?[\d.]+)px", text)] for text in (before, after))
    assert (x1 - x0, y1 - y0) == pytest.approx((20, 10), abs=0.5)
    notebook.key("0")
    notebook.wait(EXPLORE, f"{style}.includes('scale(1)')")


def test_keys_with_modifiers_reach_the_browser_and_the_notebook(notebook: LabNotebook) -> None:
    def taken(element: str, key: str, *modifiers: str) -> bool:
        options = {"key": key, "bubbles": True, "cancelable": True, **dict.fromkeys(modifiers, True)}
        event = f"new KeyboardEvent('keydown', {json.dumps(options)})"
        return not notebook.page.evaluate(f"{element}.dispatchEvent({event})")

    image = PICTURE.format(EXPLORE)
    cell = f"{ALL}[{TUNE}].node.querySelector('[data-metalnb-at]')"
    for modifier in ("ctrlKey", "metaKey", "altKey"):
        assert not any(taken(image, key, modifier) for key in "+-0")
        assert not taken(cell, "Enter", modifier)
    assert not taken(cell, "Enter", "shiftKey"), "it runs the cell"
    assert taken(image, "0")


def test_play_button_moves_its_slider_step_by_step(notebook: LabNotebook) -> None:
    play = f"{ALL}[{EXPLORE}].node.querySelectorAll('.jupyter-widget-play button, .widget-play button')[0]"
    before = notebook.wait(EXPLORE, COPIED)
    notebook.press(play)
    seen = notebook.wait(EXPLORE, f"{COPIED} !== {json.dumps(before)} && {COPIED}")
    notebook.wait(EXPLORE, f"{COPIED} !== {json.dumps(seen)} && {COPIED}")
    notebook.press(play)


def test_a_call_is_copied_and_a_picture_saved(notebook: LabNotebook, tmp_path: Path) -> None:
    page = notebook.page
    page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    notebook.press(f"{ALL}[{EXPLORE}].node.querySelector('.metalnb-copy')")
    notebook.wait(EXPLORE, "e.querySelector('.metalnb-copy').innerText === 'copied'")
    text = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(r"image = julia\(c=\(-?[\d.]+, [\d.]+\), grid=\(384, 384\)\)", text)
    notebook.press(f"{ALL}[{EXPLORE}].node.querySelector('[data-metalnb-save]')")
    saved = tmp_path / "julia.png"
    until(saved.exists, time.monotonic() + SECONDS, "the picture")
    with Image.open(saved) as picture:
        assert picture.size == (384, 384)


def test_dragging_pans_and_the_wheel_zooms(notebook: LabNotebook) -> None:
    notebook.run(WINDOW)
    notebook.wait(WINDOW, "e.querySelector('.metalnb-picture[tabindex]')?.naturalWidth")
    assert notebook.wait(WINDOW, "[...e.querySelectorAll('.noUi-handle')].map(h => h.ariaLabel).join()") == "width"
    image = PICTURE.format(WINDOW)
    place = f"({COPIED}).match(/[-\\d.e]+(?=[,)])/g).slice(0, 3).map(Number)"
    assert notebook.wait(WINDOW, place) == [0, 0, 2]
    tall = notebook.page.evaluate(f"{image}.getBoundingClientRect().height")
    notebook.press(image, 50, 25)
    goal = f"[{-50 / tall * 2}, {-25 / tall * 2}, 2]"  # frame by frame
    notebook.wait(WINDOW, f"({place}).every((n, i) => Math.abs(n - {goal}[i]) < 0.001)")
    notebook.over(image)
    x, y = notebook.page.evaluate(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({image}.getBoundingClientRect())")
    notebook.page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-120)
    assert notebook.wait(WINDOW, f"({place})[2] !== 2 && {place}")[2] == pytest.approx(2 * math.exp(-120 / 500), 1e-3)
    notebook.key("0")
    notebook.wait(WINDOW, f"({place}).join() === '0,0,2'")


def test_a_configuration_is_read_by_pointing_and_applied_by_clicking(notebook: LabNotebook) -> None:
    cells = f"[...{ALL}[{TUNE}].node.querySelectorAll('[data-metalnb-at]')]"
    cell = f"{cells}.find(c => !c.classList.contains('metalnb-best'))"
    title = notebook.page.evaluate(f"{cell}.title")
    notebook.over(cell)
    assert re.match(r"[\d ×]+: [\d.]+ [µm]s", title)
    notebook.wait(TUNE, f"e.querySelector('.metalnb-description').innerText === {json.dumps(title)}")
    other = notebook.page.evaluate(f"""(() => {{
      const output = {ALL}[{TUNE}].node.querySelector('.jp-Cell-outputArea');
      const noted = () => output.innerText.match(/now uses threadgroup (.*) by/)?.[1];
      const before = noted();
      window.notes = new Set();
      new MutationObserver(() => window.notes.add(noted()))
        .observe(output, {{childList: true, subtree: true, characterData: true}});
      const other = {cells}.find(c => c !== {cell} && c.title.split(':')[0] !== before);
      for (const kind of ['pointerdown', 'pointerup'])
        other.dispatchEvent(new PointerEvent(kind, {{button: 2, bubbles: true}}));
      return other.title.split(':')[0];
    }})()""")
    notebook.press(cell)
    group = title.split(":")[0]
    notebook.wait(TUNE, f"e.innerText.includes({json.dumps(f'blur now uses threadgroup {group} by default')})")
    assert other not in notebook.page.evaluate("[...window.notes]"), "the right button opens a menu"


def test_a_saved_notebook_keeps_the_last_state_of_each_widget(notebook: LabNotebook) -> None:
    notebook.run(BOARD)
    notebook.wait(BOARD, "e.querySelectorAll('.noUi-handle[aria-label]').length === 3")
    assert "threadgroup 256" in notebook.still(BOARD)
    handle = f"{ALL}[{BOARD}].node.querySelectorAll('.noUi-handle')[0]"
    notebook.press(handle, -60)
    notebook.wait(BOARD, "/([2-9]|\\d\\d) runs/.test(e.innerText)")  # a slow machine also shows values in between
    shown = notebook.settled(BOARD, "e.innerText.match(/grid ([\\d,]+),/)[1]")
    assert f"grid {shown}," not in notebook.still(BOARD), "it would be redrawn under the hand"
    notebook.away()
    kept = f"{ALL}[{BOARD}].model.outputs.get(0).toJSON().data['text/html']"
    notebook.page.wait(f"{kept}.includes({json.dumps(f'grid {shown},')})")
    notebook.wait(BOARD, "e.querySelectorAll('.noUi-handle[aria-label]').length === 3")
    assert 'class="metalnb-png"' in notebook.still(BOARD)


@pytest.mark.parametrize("width", [1400, 800])
@pytest.mark.parametrize("name", THEMES)
def test_widgets_fit_in_both_themes_wide_and_narrow(notebook: LabNotebook, name: str, width: int) -> None:
    page = notebook.page
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=1100, deviceScaleFactor=1, mobile=False)
    page.dress(name)
    notebook.away()
    page.evaluate("new Promise(done => setTimeout(done, 500))")  # the page is laid out again
    widgets = {"dashboard": BOARD, "monitor": WATCH, "tune": TUNE, "explore": EXPLORE, "window": WINDOW}
    for label, i in widgets.items():
        page.wait(f"{ALL}[{i}].node.querySelector('.metalnb-live') !== null")
        part = page.evaluate(f"""(() => {{
          {ALL}[{i}].node.scrollIntoView();
          const outputs = [...{ALL}[{i}].node.querySelectorAll('.jp-OutputArea-output')];
          const r = outputs.map(e => e.getBoundingClientRect()).find(box => box.height > 0);
          return {{x: r.x, y: r.y, width: r.width, height: r.height}};
        }})()""")
        part["width"] += 16  # a scrollbar, which the screenshot leaves out
        page.screenshot(SCREENSHOTS / f"{label}-{name}-{width}.png", **part, scale=1)
        assert part["height"] > 150
        wide = f"""[...{ALL}[{i}].node.querySelectorAll('.metalnb-live *')].filter(e => {{
          const s = getComputedStyle(e);
          const edge = e.closest('.jp-OutputArea-output').getBoundingClientRect().right + 1;
          if (e.closest('.metalnb-scroll, svg, .metalnb-picture, .metalnb table') || !e.offsetWidth) return false;
          const out = e.getBoundingClientRect().right > edge;
          return out || (s.overflowX === 'hidden' && e.scrollWidth > e.clientWidth + 1);
        }}).map(e => [e.className, e.getBoundingClientRect().right, e.scrollWidth, e.clientWidth])"""
        assert page.evaluate(wide) == [], (label, "is cut, or scrolls")
