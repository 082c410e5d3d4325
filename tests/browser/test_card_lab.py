"""The buttons of a kernel's card, clicked in JupyterLab, in both themes.

The screenshots are left in ``build/screenshots``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.lab_notebook import LabNotebook
from lab import CELLS as ALL
from lab import THEMES, new_notebook, opened

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
SECONDS = 400  # s: the limit of every wait in this file

# A browser takes a minute to start and draw; tests/notebook/test_display.py covers what a card contains.
pytestmark = [pytest.mark.browser, pytest.mark.long]

METAL = """\
%%metal
#include <metal_stdlib>
using namespace metal;

/// y = a x + y
kernel void saxpy(device const float* x, device float* y, constant float& a,
                  uint i [[thread_position_in_grid]]) {
    y[i] = a * x[i] + y[i];
}"""
CELLS = [
    "%load_ext metalnb\nimport numpy as np\nx, other = np.ones((2, 4096), np.float32)",
    METAL,
    "saxpy(x, other, a=3.0)",
    "saxpy",
    "saxpy.check(x, other, a=3.0, expected=lambda x, y, a: np.where(np.arange(4096) > 7, 0, a * x + y))",
]
SETUP, KERNEL, CALLED, SHOWN, CHECKED = range(len(CELLS))
BUTTON = "[...{}.node.querySelectorAll('.metalnb-acts button')].find(b => b.ariaLabel === '{}')"


@pytest.fixture(scope="module")
def notebook(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabNotebook]:
    with opened(new_notebook(*CELLS), browser, tmp_path_factory.mktemp("card"), SECONDS, height=1100) as page:
        notebook = LabNotebook(page)
        for i in range(len(CELLS)):
            notebook.run(i)
        yield notebook


def clicked(notebook: LabNotebook, label: str, i: int = KERNEL) -> str:
    """Click a card's button; return the source of the cell that appears below it, once it has run."""
    notebook.press(BUTTON.format(f"{ALL}[{i}]", label))
    below = f"{ALL}[{i + 1}].model"
    notebook.page.wait(f"{below}.sharedModel.getSource() !== {CELLS[i + 1]!r} && {below}.executionCount")
    notebook.page.wait(f"{below}.executionState === 'idle'")
    return str(notebook.page.evaluate(f"{below}.sharedModel.getSource()"))


def test_the_source_is_not_repeated_below_its_own_cell(notebook: LabNotebook) -> None:
    assert "Metal source" not in notebook.text(KERNEL)
    assert "Metal source, 8 lines" in notebook.text(SHOWN)


def test_the_folded_source_opens_and_is_highlighted(notebook: LabNotebook) -> None:
    opened = notebook.page.evaluate(f"""(() => {{
      const details = {ALL}[{SHOWN}].node.querySelector('.metalnb details');
      if (details.open) return [];
      details.querySelector('summary').click();
      const shown = [...details.querySelectorAll('.k')].filter(e => e.checkVisibility()).map(e => e.textContent);
      details.open = false;
      return shown;
    }})()""")
    assert "kernel" in opened
    assert "device" in opened


@pytest.mark.parametrize("width", [1400, 800])
@pytest.mark.parametrize("theme", THEMES)
def test_the_buttons_are_there_in_both_themes(notebook: LabNotebook, theme: str, width: int) -> None:
    page = notebook.page
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=1100, deviceScaleFactor=1, mobile=False)
    page.dress(theme)
    page.screenshot(SCREENSHOTS / f"card-buttons-{theme}-{width}.png")
    sizes = page.evaluate(f"""[...{ALL}[{KERNEL}].node.querySelectorAll('.metalnb-acts button')].map(b =>
      [b.ariaLabel, b.getBoundingClientRect().width > 30])""")
    assert [label for label, _ in sizes] == ["Time", "Profile", "Step", "Check", "Tune", "Copy call"]
    assert all(seen for _, seen in sizes)


def test_copy_call_copies_the_latest_call(notebook: LabNotebook) -> None:
    page = notebook.page
    page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    notebook.press(BUTTON.format(f"{ALL}[{KERNEL}]", "Copy call"))
    page.wait(f"{BUTTON.format(f'{ALL}[{KERNEL}]', 'copied')} !== undefined")
    assert page.evaluate("navigator.clipboard.readText()") == "saxpy(x, other, a=3.0)"


@pytest.mark.parametrize(
    ("label", "cell", "said"),
    [
        ("Time", "%metal_time saxpy(x, other, a=3.0)", "clock"),
        ("Check", "import metalnb as mnb\nmnb.validate(saxpy, x, other, a=3.0)", "saxpy"),
        ("Tune", "import metalnb as mnb\nmnb.tune(saxpy, x, other, a=3.0)", "configurations"),
        ("Profile", "%metal_profile saxpy(x, other, a=3.0)", "sectors"),
        ("Step", "import metalnb as mnb\nmnb.trace(saxpy, x, other, a=3.0)", "y[i] = a * x[i] + y[i]"),
    ],
)
def test_a_button_puts_its_cell_below_and_runs_it(notebook: LabNotebook, label: str, cell: str, said: str) -> None:
    count = notebook.page.evaluate(f"{ALL}.length")
    assert clicked(notebook, label) == cell
    assert notebook.page.evaluate(f"{ALL}.length") == count + 1
    notebook.wait(KERNEL + 1, f"e.innerText.includes({said!r})")
    first = notebook.page.evaluate(f"{ALL}[{KERNEL + 1}].model.executionCount")
    notebook.press(BUTTON.format(f"{ALL}[{KERNEL}]", label))
    notebook.page.wait(f"{ALL}[{KERNEL + 1}].model.executionCount > {first}")
    assert notebook.page.evaluate(f"{ALL}.length") == count + 1, "a second click runs the same cell"
    notebook.page.evaluate(f"{ALL}[{KERNEL + 1}].model.sharedModel.setSource('')")
    notebook.page.evaluate("jupyterapp.commands.execute('notebook:delete-cell')")


def test_the_card_of_a_check_steps_to_the_first_wrong_write(notebook: LabNotebook) -> None:
    before = notebook.page.evaluate(f"{ALL}.length")
    card = f"{ALL}.findIndex(c => c.model.sharedModel.getSource() === {CELLS[CHECKED]!r})"
    at = int(notebook.page.evaluate(card))
    notebook.press(BUTTON.format(f"{ALL}[{at}]", "Step to it"))
    notebook.page.wait(f"{ALL}.length > {before} && {ALL}[{at + 1}].model.executionCount")
    source = notebook.page.evaluate(f"{ALL}[{at + 1}].model.sharedModel.getSource()")
    assert source == "import metalnb as mnb\nmnb.trace(saxpy, x, other, a=3.0, until='y[8]')"
    notebook.wait(at + 1, "e.querySelector('.mt')?.dataset.ready === '1'")
    notebook.wait(at + 1, "e.innerText.includes('Thread 8 writes 7 to y[8] on line 8.')")
    notebook.page.screenshot(SCREENSHOTS / "card-step-to-it.png")
