"""Show how outputs differ from the expected ones: a sentence, and a map of the elements, as text and as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalnb.plurals import quantity

from .access_report import Difference

__all__ = ["CSS", "difference_map", "difference_sentence", "difference_svg", "element_of"]

_COLUMNS, _ROWS, _CELL = 64, 32, 9
_RIGHT, _TWICE, _WRONG, _NEVER = range(4)
_SIGNS = ".2x_"
_WORDS = {_WRONG: "wrong", _NEVER: "never written", _RIGHT: "right", _TWICE: "written twice"}
CSS = (
    ".metalnb .metalnb-elements{margin:6px 12px;display:block;max-width:calc(100% - 24px);height:auto}"
    ".metalnb .metalnb-elements .w0{fill:#3f9d63;fill-opacity:.45}.metalnb .metalnb-elements .w1{fill:#d0a22a}"
    ".metalnb .metalnb-elements .w2{fill:#cf4a3c}"
    ".metalnb .metalnb-elements .w3{fill:none;stroke:currentColor;stroke-opacity:.5}"
    ".metalnb .metalnb-elements text{font:11px sans-serif;fill:currentColor;fill-opacity:.8}"
)


def difference_sentence(difference: Difference) -> str:
    """Return a sentence with the differences and the thread that wrote the first wrong element."""
    count, size = int(difference.wrong.sum()), difference.wrong.size
    case = f"with {difference.case} {'thread' if difference.case == '1' else 'threads'}: " if difference.case else ""
    element = f"{case}{element_of(difference)}"
    be = "is" if count == 1 else "are"
    values = f"{element} is {_number(difference.got)}, expected {_number(difference.expected)}"
    writer = f"thread {difference.thread} wrote it" + (f" on line {difference.line}" if difference.line else "")
    cause = f"; {writer}" if difference.thread >= 0 else "; no thread wrote it" if difference.thread == -1 else ""
    deviation = f", by up to {difference.ulp:,.{0 if difference.ulp >= 10 else 1}f} ulp" if difference.ulp < 1e6 else ""
    return f"{values}{cause}. {count:,} of {quantity(size, 'element')} {be} wrong{deviation}."


def element_of(difference: Difference) -> str:
    """Return the first wrong element as Python names it."""
    return f"{difference.name}[{', '.join(map(str, difference.index))}]" if difference.index else difference.name


def _number(value: Any) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _codes(difference: Difference) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return at most 32 rows of at most 64 cells; a cell that covers several elements has the code of the worst one."""
    codes = np.full(difference.wrong.shape, _RIGHT, np.uint8)
    codes[difference.twice] = _TWICE
    codes[difference.wrong] = _WRONG
    codes[difference.wrong & difference.unwritten] = _NEVER
    if codes.ndim < 2:
        flat = codes.reshape(-1)
        per = -(-flat.size // (_COLUMNS * _ROWS))
        flat = _worst_of(flat.reshape(1, -1), per, axis=1)[0]
        rows = -(-flat.size // _COLUMNS)
        padded = np.full(rows * min(_COLUMNS, max(1, flat.size)), 255, np.uint8)
        padded[: flat.size] = flat
        return padded.reshape(rows, -1)
    if codes.ndim > 2 and codes.shape[-1] <= 4:
        codes = codes.max(axis=-1)  # one cell for each pixel of an image, not for each component
    plane = codes.reshape(-1, codes.shape[-1])
    plane = _worst_of(plane, -(-plane.shape[0] // _ROWS), axis=0)
    return _worst_of(plane, -(-plane.shape[1] // _COLUMNS), axis=1)


def _worst_of(codes: np.ndarray[Any, np.dtype[np.uint8]], per: int, axis: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    if per <= 1:
        return codes
    return np.maximum.reduceat(codes, np.arange(0, codes.shape[axis], per), axis=axis)


def difference_map(difference: Difference) -> list[str]:
    """Return the map as lines of signs, with a legend."""
    codes = _codes(difference)
    lines = ["    " + "".join(_SIGNS[c] if c < 4 else " " for c in row) for row in codes[:_ROWS]]
    present = [c for c in _WORDS if (codes == c).any()]
    return [*lines, "    " + ", ".join(f"{_SIGNS[c]} {_WORDS[c]}" for c in present)]


def difference_svg(difference: Difference) -> str:
    """Return the map as a picture."""
    codes = _codes(difference)
    rows, columns = codes.shape
    cells = [
        f'<rect class="w{c}" x="{x * _CELL + 0.5}" y="{y * _CELL + 0.5}" width="{_CELL - 2}" height="{_CELL - 2}"/>'
        for y, row in enumerate(codes.tolist())
        for x, c in enumerate(row)
        if c < 4
    ]
    foot, x = rows * _CELL + 14, 0
    for c in (c for c in _WORDS if (codes == c).any()):
        cells.append(f'<rect class="w{c}" x="{x + 0.5}" y="{foot - 8.5}" width="{_CELL - 2}" height="{_CELL - 2}"/>')
        cells.append(f'<text x="{x + 12}" y="{foot}">{_WORDS[c]}</text>')
        x += 30 + 7 * len(_WORDS[c])
    width, height = max(columns * _CELL, x), foot + 4
    title = f"<title>{difference.name}: where it is wrong</title>"
    return (
        f'<svg class="metalnb-elements" xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{title}{"".join(cells)}</svg>'
    )
