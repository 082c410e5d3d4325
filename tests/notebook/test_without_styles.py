"""Each instrument on a page that removes styles, scripts, drawings and buttons, as GitHub does."""

import re
from xml.etree import ElementTree as ET

import pytest
from browser.still_pages import sanitized, stills

SAID = {
    "card": [
        r"saxpy y = a x \+ y", r"device const float\* \[\[buffer\(0\)\]\] read float32 array",
        r"call: saxpy\(x, y, a=1\.0\)",
    ],
    "timing": [r"saxpy [\d.]+ .s median of \d+"],
    "compare": ["wall clock device clock p20 to p80", r"saxpy .* [\d.]+ .s to [\d.]+ .s"],
    "two": [r"saxpy [\d.]+ .s [\d.]+ .s to [\d.]+ .s"],
    "limits": ["limit measured nominal", r"read reading an array [\d.]+ GB/s"],
    "roofline": ["roofline", "1? ?saxpy: "],
    "race": ["race 3 faults", r"x 64 elements, 64 reads", r"tile\[ ?63 - t\]"],
    "wrong": [r"y\[0\] is [\d.]+, expected [\d.]+; thread 0 wrote it on line 6\. 4,096 of 4,096 elements are wrong"],
    "profile": ["line cost runs lanes integer asked travels source", "b write, device memory; 32 sectors in 32 lines"],
    "stepper": [r"race thread \(0\) of threadgroup \(0\)", r"tile\[t\] = x\[t\];", r"reads x\[0\] = "],
    "monitor": [
        "kernel grid calls median bandwidth of the limit times",
        r"saxpy 4,096 5 [\d.]+ .s .* % (from the caches )?[▁▂▃▄▅▆▇█]{5}",
    ],
    "dashboard": [r"saxpy grid 4,096, threadgroup \d+, a = 2", r"[\d.]+ .s median of \d+"],
    "tune": [r"turned grid 64 × 64 · 3 of 3 configurations tried", "threadgroup", r"y \\ x"],
    "animate": ["heat alpha = 0.2", "step 0 step"],
    "explore": ["heat alpha = 0.2"],
    "memory": ["memory of arrays", "used", "cached", "peak"],
    "engines": ["engine device versions, or what is missing", "cpu"],
}  # fmt: skip


def left(name: str) -> ET.Element:
    """Return an instrument without what such a page removes."""
    return ET.fromstring(f"<div>{sanitized(stills()[name])}</div>")  # noqa: S314  (metalnb's own)


@pytest.mark.parametrize("name", SAID)
def test_figures_remain_as_text(name: str) -> None:
    text = " ".join(" ".join(left(name).itertext()).split())
    for pattern in SAID[name]:
        assert re.search(pattern, text), (pattern, text)
    assert not re.search(r"function|metalnb-|color-mix|data:", text)


@pytest.mark.parametrize("name", SAID)
def test_no_words_run_together(name: str) -> None:
    """Between elements that only their style distinguishes there is a space."""
    html = re.sub("<wbr/>", "", sanitized(stills()[name]))
    inline = r"</?(?:span|b|i|code|s|small|mark)(?: [^>]*)?>"
    source = re.sub("<(pre|code).*?</\\1>", "", html, flags=re.DOTALL)
    assert re.findall(rf"\w(?:{inline}){{2,}}\w", source) == []


def shows(cell: ET.Element) -> bool:
    """Return whether there is a text or an image in a cell."""
    return bool("".join(cell.itertext()).strip()) or cell.find(".//img") is not None


@pytest.mark.parametrize("name", SAID)
def test_no_column_is_empty(name: str) -> None:
    for table in left(name).iter("table"):
        rows = [list(row) for row in table.iter("tr")]
        wide = max(map(len, rows))
        full = [row for row in rows if len(row) == wide]
        empty = [i for i in range(wide) if not any(shows(row[i]) for row in full[1:])]
        assert empty == [], [["".join(cell.itertext()) for cell in row] for row in full[:2]]


@pytest.mark.parametrize("name", ["monitor", "dashboard", "animate", "explore"])
def test_picture_remains_an_image(name: str) -> None:
    assert all(image.get("src", "").startswith("data:image/png;base64,") for image in left(name).iter("img"))
    assert any(True for _ in left(name).iter("img"))
