"""The README's examples run and print what it shows."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metalnb as mnb

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def saxpy() -> mnb.Kernel:
    (cell,) = (text for kind, text in BLOCKS if kind == "cpp")
    magic, _, source = cell.partition("\n")
    assert magic == "%%metal"
    return mnb.compile(source)["saxpy"]


def test_the_cell_computes_the_result_in_the_comment(saxpy: mnb.Kernel) -> None:
    (call,) = (text for kind, text in BLOCKS if kind == "python" and "arange" in text)
    names = {"np": np, "saxpy": saxpy}
    exec(call, names)  # noqa: S102  (this repository's own code)
    match = re.search(r"^y +# (.+)$", call, re.MULTILINE)
    assert match
    assert repr(names["y"]) == match[1]


def test_arrays_are_usable_in_kernels() -> None:
    names: dict[str, Any] = {"np": np}
    calls = [text for kind, text in BLOCKS if kind == "python" and ("mnb.softmax" in text or "mnb.elementwise" in text)]
    assert len(calls) == 2
    for call in calls:
        exec(call.replace("4096", "64"), names)  # noqa: S102  (this repository's own code)
    x = np.asarray(names["x"], np.float64)
    e = np.exp(x * 0.5 + 1)
    np.testing.assert_allclose(np.asarray(names["y"]), e / e.sum(-1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(names["norm"](names["x"])), (x * x).sum(), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(names["mish"](names["x"])), x * np.tanh(np.log1p(np.exp(x))), atol=1e-5)


def test_the_compile_error_reads_as_shown() -> None:
    source = """\
#include <metal_stdlib>
using namespace metal;

kernel void half_of(device float* x, uint i [[thread_position_in_grid]]) {
    double h = 0.5;
    x[i] *= h;
}
"""
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    assert f"CompileError: {caught.value}\n" in [text for _, text in BLOCKS]


def test_the_call_errors_read_as_shown(saxpy: mnb.Kernel) -> None:
    x = np.arange(5, dtype=np.float32)
    with pytest.raises(mnb.ArgumentError) as wrong:
        saxpy(x, np.zeros(5), 2.0)
    with pytest.raises(mnb.LaunchError) as large:
        saxpy(x, x.copy(), 2.0, threadgroup=(32, 64))
    shown = f"ArgumentError: {wrong.value} LaunchError: {large.value}"
    assert flat(shown) in [flat(text) for _, text in BLOCKS]


def test_the_fault_reads_as_shown() -> None:
    source = """\
#include <metal_stdlib>
using namespace metal;

kernel void blur(device const float* x, device float* out, constant uint& radius,
                 uint i [[thread_position_in_grid]]) {
    float sum = 0;
    for (uint k = 0; k <= radius; ++k) sum += x[i + k];
    out[i] = sum / (radius + 1);
}
"""
    blur = mnb.compile(source, engine="cpu").blur
    with pytest.raises(mnb.KernelFault) as fault:
        blur(np.ones(1000, np.float32), radius=4, grid=1000)
    assert f"KernelFault: {fault.value}\n" in [text for _, text in BLOCKS]


@pytest.mark.parametrize("link", sorted(set(re.findall(r'(?:\]\(|src(?:set)?=")((?!http)[^)"#]+)', README))))
def test_a_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


KINDS = ("*.md", "docs/**/*.md", "metalnb/**/*.md", "notebooks/*.ipynb")
PAGES = [page for kind in KINDS for page in sorted(ROOT.glob(kind))]


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_pages_and_headings_that_are_linked_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for link in re.findall(r'(?:\]\(|src(?:set)?=")((?!\w+:)[^)"\s]+)', text):
        name, _, anchor = link.partition("#")
        there = page.parent / name if name else page
        assert there.exists(), link
        if anchor and there.suffix == ".md":
            assert anchor in headings(there), link


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake (\w+)", README))))
def test_a_make_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
