"""The first notebook as a user sees it: in JupyterLab, run from the top, in the light and the dark theme.

The screenshots are left in ``build/screenshots``.
"""

import base64
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.text_contrast import CARD_CONTRASTS, LEAST_CONTRAST
from lab import CODE, THEMES, Page, opened

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "01_first_kernel.ipynb"
SCREENSHOTS = ROOT / "build" / "screenshots"
SECONDS = 80  # s: the limit of every wait in this file

# A browser takes a minute to start and draw; tests/project/test_notebooks.py runs the first notebook.
pytestmark = [pytest.mark.browser, pytest.mark.long]

OUTPUTS = f"{CODE}.map(w => w.model.outputs.toJSON())"


@pytest.fixture(scope="module")
def page(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Open the notebook without outputs, then Restart and Run All."""
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    with opened(notebook, browser, tmp_path_factory.mktemp("lab"), SECONDS) as page:
        page.restart_and_run_all()
        yield page


def test_every_cell_runs_and_only_the_deliberate_errors_raise(page: Page) -> None:
    outputs = page.evaluate(OUTPUTS)
    tags = page.evaluate(f"{CODE}.map(w => w.model.getMetadata('tags') ?? [])")
    raised = [any(o["output_type"] == "error" for o in cell) for cell in outputs]
    assert raised == ["raises-exception" in t for t in tags]
    assert page.evaluate(f"{CODE}.map(w => w.model.executionCount)") == list(range(1, len(outputs) + 1))


def test_extension_loads_and_lists_the_engines(page: Page) -> None:
    (loading, engines, *_) = page.evaluate(OUTPUTS)
    assert loading == []
    assert "in use" in engines[0]["data"]["text/html"]


def test_card_has_a_row_for_each_parameter(page: Page) -> None:
    card = page.evaluate("""(() => {
      const card = [...document.querySelectorAll('.metalnb')].find(e => e.textContent.includes('saxpy'));
      const {width, height} = card.getBoundingClientRect();
      return {width, height, rows: card.querySelectorAll('tbody tr').length};
    })()""")
    assert card["rows"] == 3
    assert card["width"] > 400
    assert card["height"] > 120


def test_pictures_are_those_of_the_outputs_undistorted(page: Page) -> None:
    page.wait("document.querySelector('.jp-RenderedImage img')?.naturalWidth")
    outputs = [output["data"] for cell in page.evaluate(OUTPUTS) for output in cell if "data" in output]
    heads = [base64.b64decode(data["image/png"])[:24] for data in outputs if "image/png" in data]
    shown = page.evaluate("""[...document.querySelectorAll('.jp-RenderedImage img')].map(
      e => [e.naturalWidth, e.naturalHeight, e.clientWidth / e.clientHeight])""")
    assert heads
    assert [(width, height) for width, height, _ in shown] == [struct.unpack(">II", head[16:]) for head in heads]
    assert [ratio for *_, ratio in shown] == pytest.approx([width / height for width, height, _ in shown], rel=0.01)


def test_the_compile_error_is_shown_with_its_caret(page: Page) -> None:
    texts = page.evaluate("[...document.querySelectorAll('.jp-OutputArea-output pre')].map(e => e.innerText)")
    (shown,) = (text for text in texts if text.startswith("CompileError"))
    assert "lenght" in shown
    assert shown.splitlines()[2].strip().endswith("^")


@pytest.mark.parametrize("name", THEMES)
def test_a_card_is_readable_in_both_themes(page: Page, name: str) -> None:
    page.dress(name)
    worst: list[Any] = page.evaluate(CARD_CONTRASTS)
    assert len(worst) > 50
    assert worst[0][0] >= LEAST_CONTRAST, worst[:5]
    for label, marker in {"card": "saxpy(", "picture": "imshow"}.items():
        page.evaluate(f"{CODE}.find(w => w.model.sharedModel.source.includes('{marker}')).node.scrollIntoView()")
        page.screenshot(SCREENSHOTS / f"{label}-{name}.png")
