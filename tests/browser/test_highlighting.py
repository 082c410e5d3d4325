"""Typing in a cell in JupyterLab: its colors, Tab and Shift-Tab, in the light and the dark theme.

All tests use one JupyterLab. The screenshots are left in ``build/screenshots``.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.text_contrast import CONTRASTS_IN, LEAST_CONTRAST
from lab import CELLS, COLORS, COMPLETER, EXTENSION, THEMES, Cell, Page, new_notebook, opened

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
SECONDS = 80  # s: the limit of every wait in this file

# A browser takes a minute; the last tests here compare the built files with their sources.
browser_test = [pytest.mark.browser, pytest.mark.long]

METAL = """\
%%metal --quiet
#include <metal_stdlib>
using namespace metal;

struct Particle { float3 position; packed_half2 spin; float mass; };

/// The total mass of each SIMD-group's particles.
kernel void total(device const Particle* particles [[buffer(0)]], device float* out,
                  uint i [[thread_position_in_grid]]) {
    float mass = 0x1.8p-3f;  // a start
    out[i] = simd_sum(mass);
}
"""
PYTHON = "device = [float(x) for x in range(3)]\nkernel = len(device)\n"
MARKDOWN = "%%metal\nkernel void no(device float* x) {}\n"


@pytest.fixture(scope="module")
def page(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    import nbformat

    notebook = new_notebook("%load_ext metalnb", METAL, PYTHON, "", nbformat.v4.new_markdown_cell(MARKDOWN))
    with opened(notebook, browser, tmp_path_factory.mktemp("writing"), SECONDS, width=1000, height=760) as page:
        page.run_first()
        yield page


def browses(test: Any) -> Any:
    for mark in browser_test:
        test = mark(test)
    return test


@browses
def test_a_metal_cell_is_colored_as_metal_and_its_neighbors_are_left_alone(page: Page) -> None:
    metal, python = Cell(page, 1), Cell(page, 2)
    assert [Cell(page, i).mime() for i in range(5)] == [
        "text/x-ipython", "text/x-metal", "text/x-ipython", "text/x-ipython", "text/x-ipythongfm",
    ]  # fmt: skip
    keyword, kind = python.color("for"), python.color("float")
    assert keyword == kind  # JupyterLab draws both green, keywords bold
    for word in ("struct", "kernel", "device", "float3", "packed_half2", "uint"):
        assert metal.color(word) == keyword, word
    attribute, comment = metal.color("buffer"), metal.color("// a start")
    assert metal.color("thread_position_in_grid") == attribute
    assert len({keyword, attribute, comment, metal.color("%%metal --quiet")}) == 4
    assert metal.color("0x1.8p-3f") == python.color("3")
    plain = "getComputedStyle(document.querySelector('.jp-CodeCell .cm-content')).color"
    words = [text for text, color in page.evaluate(f"{COLORS}(2)") if color != page.evaluate(plain)]
    assert "device" not in words
    assert "kernel" not in words


@browses
def test_the_colors_come_and_go_as_the_first_line_is_typed(page: Page) -> None:
    written = Cell(page, 3)
    written.put("%%meta\nkernel void f(device float* x) {}")
    written.go("%%meta")
    assert written.mime() == "text/x-ipython"
    written.type("l")
    assert written.mime() == "text/x-metal"
    page.wait(f"{COLORS}(3).some(([text]) => text === 'kernel')")
    written.type("s")
    assert written.mime() == "text/x-ipython"
    written.press("Backspace", 8)
    page.wait(f"{CELLS}[3].model.mimeType === 'text/x-metal'")
    written.put("print(1)")
    assert written.mime() == "text/x-ipython"


@browses
def test_tab_lists_metals_functions_and_a_structs_members(page: Page) -> None:
    metal = Cell(page, 1)
    metal.put(METAL.replace("simd_sum(mass)", "simd_s"))
    metal.go("out[i] = simd_s")
    listed = metal.tab()
    assert "simd_sum" in listed
    assert all(word.startswith("simd_s") for word in listed)
    metal.escape()
    metal.type("um(particles[i].")
    assert metal.tab() == ["mass", "position", "spin"]
    metal.press("Enter", 13)
    page.wait(f"{CELLS}[1].model.sharedModel.getSource().includes('simd_sum(particles[i].mass')")
    metal.put(METAL)


@browses
def test_shift_tab_shows_the_signature(page: Page) -> None:
    metal = Cell(page, 1)
    metal.put(METAL)
    metal.go("simd_sum(")
    assert metal.shift_tab().splitlines()[:2] == ["T simd_sum(T data)", "The sum of data over the active threads."]
    metal.escape()
    metal.go("device const Parti")
    assert "packed_half2 spin" in metal.shift_tab()
    metal.escape()


@browses
def test_python_cells_complete_and_explain_python(page: Page) -> None:
    written = Cell(page, 3)
    written.put("simd_s = 1\nabs(")
    written.go("abs(")
    assert "absolute value" in written.shift_tab()
    written.escape()
    written.put("import json\njson.dum")
    written.go("json.dum")
    assert written.tab() == ["dump", "dumps"]
    written.escape()


@browses
@pytest.mark.parametrize("name", THEMES)
def test_completions_are_shown_and_explanations_readable_in_both_themes(page: Page, name: str) -> None:
    page.dress(name)
    metal = Cell(page, 1)
    metal.put(METAL.replace("simd_sum(mass)", "simd_s"))
    metal.go("out[i] = simd_s")
    names = metal.tab()
    page.screenshot(SCREENSHOTS / f"completion-{name}.png")
    completions = page.evaluate(f"{CONTRASTS_IN}(document.querySelector('{COMPLETER}'))")
    offered = "".join(text for text, _ in completions)  # the typed part of a name has an element of its own
    assert [name for name in names if name not in offered] == []
    metal.escape()
    metal.put(METAL)
    metal.go("simd_sum(")
    metal.shift_tab()
    page.screenshot(SCREENSHOTS / f"inspection-{name}.png")
    inspection = page.evaluate(f"{CONTRASTS_IN}(document.querySelector('.jp-Tooltip'))")
    assert "simd_sum" in "".join(text for text, _ in inspection)
    assert [text for text, ratio in inspection if ratio < LEAST_CONTRAST] == []  # the completer has JupyterLab's colors
    metal.escape()


# Without a browser --------------------------------------------------------------------------------------------------


def test_the_words_are_those_of_the_packages_tables() -> None:
    spec = importlib.util.spec_from_file_location("labextension_words", ROOT / "labextension" / "words.py")
    assert spec
    assert spec.loader
    words = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(words)
    assert words.WORDS.read_text(encoding="utf-8") == words.text(), "make labextension"
    assert {"kernel", "device"} <= set(words.words()["keywords"])


def test_the_built_extension_is_of_these_sources() -> None:
    """As far as can be checked without building: it has every word of the table, and the version built."""
    built = "".join(path.read_text(encoding="utf-8") for path in EXTENSION.glob("static/*.js"))
    table = json.loads((ROOT / "labextension" / "src" / "words.json").read_text(encoding="utf-8"))
    assert not [word for words in table.values() for word in words if word not in built], "make labextension"
    of_source, of_build = (
        json.loads((folder / "package.json").read_text()) for folder in (EXTENSION.parent, EXTENSION)
    )
    of_build["jupyterlab"].pop("_build")
    assert of_build == of_source, "make labextension"


def test_jupyterlab_accepts_the_extension_as_compatible(tmp_path: Path) -> None:
    (tmp_path / "labextensions").mkdir()
    (tmp_path / "labextensions" / "metalnb").symlink_to(EXTENSION)
    command = [sys.executable, "-m", "jupyterlab.labextensions", "list"]
    environment = {**os.environ, "JUPYTER_PATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    assert re.search(r"metalnb v\S+ enabled OK", shown), shown
