"""`animate` as a user sees it in JupyterLab: played, drawn into and saved, in the light and the dark theme.

The screenshots are left in ``build/screenshots``.
"""

import io
import json
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

# A browser takes a minute to start and draw; tests/notebook/test_animate.py covers the frames.
pytestmark = [pytest.mark.browser, pytest.mark.long]

CELLS = [
    """\
%load_ext metalnb
import numpy as np
import time
import metalnb as mnb
start = np.zeros((512, 512), np.float32)
start[200:300, 150:250] = start[350:380, 300:460] = 1
board = (np.random.default_rng(1).random((96, 128)) < 0.3).astype(np.uint8)""",
    """\
%%metal --quiet
kernel void heat(device const float* a, device float* b, constant float& alpha,
                 uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    uint up = i.y > 0 ? i.y - 1 : i.y, down = i.y + 1 < n.y ? i.y + 1 : i.y;
    uint left = i.x > 0 ? i.x - 1 : i.x, right = i.x + 1 < n.x ? i.x + 1 : i.x;
    float here = a[i.y * n.x + i.x];
    float around = a[up * n.x + i.x] + a[down * n.x + i.x] + a[i.y * n.x + left] + a[i.y * n.x + right];
    b[i.y * n.x + i.x] = here + alpha * (around - 4 * here);
}

kernel void life(device const uchar* now, device uchar* next,
                 uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) {
    int alive = 0;
    for (uint y = i.y + n.y - 1; y <= i.y + n.y + 1; ++y)
        for (uint x = i.x + n.x - 1; x <= i.x + n.x + 1; ++x) alive += now[(y % n.y) * n.x + x % n.x];
    uchar here = now[i.y * n.x + i.x];
    next[i.y * n.x + i.x] = alive == 3 || (alive == 4 && here);
}""",
    "moving = mnb.animate(heat, start, alpha=0.2, steps=16)\nmoving",
    "mnb.animate(life, board, swap=('now', 'next'), rate=10, colors='gray')",
    "moving.frames",
    "from metalnb.widgets.animate import animation\ngif, animation.gif = animation.gif, None",
    "animation.gif = gif",
]
SETUP, KERNELS, HEAT, LIFE, ASK, BREAK, REPAIR = range(len(CELLS))
STEP = "Number((e.innerText.match(/step ([\\d,]+) ·/) ?? ['', '0'])[1].replaceAll(',', ''))"
IMAGE = f"{ALL}[{{}}].node.querySelector('.metalnb-picture')"


@pytest.fixture(scope="module")
def notebook(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabNotebook]:
    """Open a notebook with two animations, the one of heat playing."""
    with opened(new_notebook(*CELLS), browser, tmp_path_factory.mktemp("animate"), SECONDS, height=1100) as page:
        notebook = LabNotebook(page)
        for i in (SETUP, KERNELS, HEAT, LIFE):
            notebook.run(i)
        assert notebook.text(KERNELS) == ""
        notebook.wait(HEAT, "e.querySelector('.metalnb-picture[tabindex]')?.naturalWidth === 512")
        notebook.click(HEAT, "Play")
        yield notebook


def test_512_by_512_with_16_steps_a_frame_plays_at_30_frames_a_second(notebook: LabNotebook) -> None:
    notebook.wait(HEAT, f"{STEP} > 16 * 60")
    said = notebook.wait(HEAT, "e.innerText.match(/([\\d.]+) frames per second · kernel ([^·]+) a step/)?.slice(1)")
    print(said)
    assert notebook.wait(HEAT, "[...e.querySelectorAll('button')].some(b => b.innerText.trim() === 'Pause')")


def test_keys_and_buttons_pause_step_and_reset(notebook: LabNotebook) -> None:
    notebook.page.evaluate(f"{IMAGE.format(HEAT)}.focus()")
    notebook.key(" ")
    notebook.wait(HEAT, "[...e.querySelectorAll('button')].some(b => b.innerText.trim() === 'Play')")
    at = notebook.settled(HEAT, STEP)
    notebook.key(".")
    notebook.wait(HEAT, f"{STEP} === {at + 16}")
    notebook.click(HEAT, "Step")
    notebook.wait(HEAT, f"{STEP} === {at + 32}")
    notebook.click(HEAT, "Reset")
    notebook.wait(HEAT, f"{STEP} === 0")
    notebook.run(ASK)
    assert notebook.text(ASK).split() == ["[5]:", "0"]


def test_the_pointer_draws_into_the_state(notebook: LabNotebook) -> None:
    image = IMAGE.format(LIFE)
    notebook.wait(LIFE, "e.querySelector('.metalnb-picture[tabindex]')?.naturalWidth === 128")
    source = "e.querySelector('.metalnb-picture').src"
    before = notebook.wait(LIFE, source)
    notebook.press(image, 100, 60)
    notebook.wait(LIFE, f"{source} !== {json.dumps(before)}")
    style = "e.querySelector('.metalnb-picture').style.transform"
    assert notebook.page.evaluate(f"(e => {style})({ALL}[{LIFE}].node)") in {"", "none"}, "it is not moved meanwhile"
    pixel = f"""(async i => {{
      const c = new OffscreenCanvas(128, 96).getContext('2d');
      c.drawImage(i, 0, 0);
      return c.getImageData(64, 48, 1, 1).data[0];
    }})({image})"""
    notebook.page.wait(f"{pixel}.then(red => red === 255)")


def test_after_a_recording_that_failed_the_button_works(notebook: LabNotebook) -> None:
    """The test after this one records with the same button."""
    label = "e.querySelector('[data-metalnb-record]').textContent"
    before = notebook.wait(LIFE, label)
    notebook.run(BREAK)
    notebook.press(f"{ALL}[{LIFE}].node.querySelector('[data-metalnb-record]')")
    notebook.wait(LIFE, "e.innerText.includes('object is not callable')")
    notebook.wait(LIFE, f"{label} === {json.dumps(before)}")
    notebook.run(REPAIR)


def test_gif_of_the_following_frames_is_saved(notebook: LabNotebook, tmp_path: Path) -> None:
    notebook.page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    notebook.press(f"{ALL}[{LIFE}].node.querySelector('[data-metalnb-record]')")
    saved = tmp_path / "life.gif"
    until(saved.exists, time.monotonic() + SECONDS, "the GIF")
    until(lambda: saved.read_bytes()[-1:] == b";", time.monotonic() + 30, "its end")
    with Image.open(io.BytesIO(saved.read_bytes())) as film:
        assert film.size == (256, 192)
        assert film.n_frames == 30
        assert film.info["duration"] == 100


@pytest.mark.parametrize("width", [1400, 800])
@pytest.mark.parametrize("theme", THEMES)
def test_animation_fits_its_page_in_both_themes(notebook: LabNotebook, theme: str, width: int) -> None:
    page = notebook.page
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=1100, deviceScaleFactor=1, mobile=False)
    page.dress(theme)
    for i, name in ((HEAT, "heat"), (LIFE, "life")):
        page.evaluate(f"{ALL}[{i}].node.scrollIntoView({{block: 'start'}})")
        time.sleep(0.3)
        page.screenshot(SCREENSHOTS / f"animate-{name}-{theme}-{width}.png")
        wide = """(o => [...o.querySelectorAll('.metalnb-live, .metalnb-live *')].filter(e => e.checkVisibility() &&
          e.getBoundingClientRect().right > o.getBoundingClientRect().right + 1).length)"""
        assert page.evaluate(f"{wide}({ALL}[{i}].node.querySelector('.jp-Cell-outputArea'))") == 0, name
