"""Draw an access: the 32 lanes of a SIMD-group, and the 128-byte line or the bank that each lane accesses.

One row is 128 bytes: a line of device memory, four sectors of 32; or one word of 4 bytes in each of 32 banks.
"""

from __future__ import annotations

import itertools
from html import escape

from metalnb.plurals import quantity

from .cost_records import LANES, LINE, AccessCost

__all__ = ["access_caption", "draw_access"]

_CELL, _LEFT, _TOP = 18, 76, 44  # pixels: a cell, the labels on the left, the lanes on top
_WORD = 4
_DARK = 2  # lanes below this have dark colors
_MAX_ROWS, _TALL_ROWS = 32, 10


def access_caption(access: AccessCost, banks: int) -> str:
    """Return a caption for the picture: ``lanes 0 to 31 of threadgroup 0 read 4 bytes each, 128 bytes apart``."""
    active = [lane for lane, at in enumerate(access.sample) if at is not None]
    first = f"lanes {active[0]} to {active[-1]}" if len(active) > 1 else f"lane {active[0]}"
    some = "" if len(active) == active[-1] - active[0] + 1 else f" ({len(active)} of them)"
    stride = access.stride
    if stride is None:
        apart = _describe_ranges(access) if len(active) > 1 else ""
    else:
        apart = "all at one address" if not stride else f"{quantity(abs(stride), 'byte')} apart"
    verb = {"read": "read", "write": "write", "atomic": "update"}[access.kind]
    text = f"{first}{some} of threadgroup {access.group:,} {verb} {quantity(access.size, 'byte')} each"
    rows = f"a row is one word in each of {banks} banks" if access.space == "threadgroup" else (
        "a row is a line of 128 bytes, in four sectors of 32"
    )  # fmt: skip
    return f"{text}{f', {apart}' if apart else ''}; {rows}"


def _describe_ranges(access: AccessCost) -> str:
    """Describe the separate memory ranges that the lanes access."""
    addresses = sorted({at for at in access.sample if at is not None})
    count = 1 + sum(b > a + access.size for a, b in itertools.pairwise(addresses))
    return f"in {count} stretches" if 1 < count < len(addresses) else "at scattered addresses"


def draw_access(access: AccessCost, banks: int = 32) -> str:
    """Draw an access as SVG; lines and text have the page's color."""
    row_bytes = banks * _WORD if access.space == "threadgroup" else LINE
    columns = row_bytes // _WORD
    cells = _lanes_by_word(access, row_bytes)
    rows = sorted({row for row, _ in cells})
    shown = rows[:_MAX_ROWS]
    cell_height = _CELL if len(shown) <= _TALL_ROWS else 9
    below = (30 if access.space == "threadgroup" else 8) + (16 if len(rows) > len(shown) else 0)
    height = _TOP + cell_height * len(shown) + below
    width = _LEFT + _CELL * max(columns, LANES) + 4
    frame = _draw_frame(len(shown), columns, cell_height, sectors=access.space != "threadgroup")
    parts = [*_draw_lanes(access), *frame]
    for i, row in enumerate(shown):
        y = _TOP + i * cell_height
        if cell_height == _CELL or i % 4 == 0:
            below_text = 5 if cell_height == _CELL else 0
            parts.append(_text(_LEFT - 6, y + cell_height - below_text, f"+{row * row_bytes:,}", "end"))
        used_columns = (column for column in range(columns) if (row, column) in cells)
        parts += [_draw_cell(column, y, cell_height, cells[row, column]) for column in used_columns]
    if access.space == "threadgroup":
        parts += _draw_bank_counts(cells, columns, _TOP + cell_height * len(shown))
    if len(rows) > len(shown):
        parts.append(_text(_LEFT, height - 4, f"and {quantity(len(rows) - len(shown), 'more row')}", "start"))
    label = escape(access_caption(access, banks))
    return (
        f'<svg class="mp-picture" viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _lanes_by_word(access: AccessCost, row_bytes: int) -> dict[tuple[int, int], list[int]]:
    """Return the lanes that access each word, by row and column."""
    lanes_by_word: dict[tuple[int, int], list[int]] = {}
    for lane, at in enumerate(access.sample):
        if at is not None:
            for word in range(at // _WORD, (at + access.size - 1) // _WORD + 1):
                lanes_by_word.setdefault((word * _WORD // row_bytes, word % (row_bytes // _WORD)), []).append(lane)
    return lanes_by_word


def _color(lane: int) -> str:
    """Return a color from blue to green, which any color vision can distinguish on light and dark pages."""
    return f"hsl({215 - 2.2 * lane:.0f} 62% {48 + lane * 0.25:.0f}%)"


def _text_color(lane: int) -> str:
    """Return the text color that is readable on a lane's color: black or white."""
    return "#fff" if lane < _DARK else "#000"


def _draw_lanes(access: AccessCost) -> list[str]:
    parts = [_text(_LEFT - 6, 17, "lane", "end")]
    for lane, at in enumerate(access.sample):
        x = _LEFT + lane * _CELL
        fill = f'fill="{_color(lane)}"' if at is not None else 'fill="none" stroke="currentColor" stroke-opacity=".3"'
        parts.append(f'<rect x="{x + 1}" y="4" width="{_CELL - 2}" height="{_CELL}" rx="2" {fill}/>')
        ink = f' fill="{_text_color(lane)}"' if at is not None else ' fill="currentColor" opacity=".5"'
        parts.append(f'<text x="{x + _CELL / 2}" y="17" text-anchor="middle"{ink}>{lane}</text>')
    return parts


def _draw_frame(rows: int, columns: int, cell_height: int, *, sectors: bool) -> list[str]:
    """Draw the lines of 128 bytes, with thicker borders between sectors."""
    end, bottom = _LEFT + columns * _CELL, _TOP + rows * cell_height
    parts = [
        f'<path d="M{_LEFT} {_TOP + i * cell_height}H{end}" stroke="currentColor" stroke-opacity=".18"/>'
        for i in range(rows + 1)
    ]  # fmt: skip
    step = 8 if sectors else 1
    parts += [
        f'<path d="M{_LEFT + i * _CELL} {_TOP}V{bottom}" stroke="currentColor" '
        f'stroke-opacity="{".55" if sectors else ".1"}"/>'
        for i in range(0, columns + 1, step)
    ]
    sector_names = [f"sector {i}" for i in range(columns // 8)] if sectors else []
    parts += [_text(_LEFT + (8 * i + 4) * _CELL, _TOP - 6, name, "middle") for i, name in enumerate(sector_names)]
    if not sectors:
        parts += [_text(_LEFT + (i + 0.5) * _CELL, _TOP - 6, str(i), "middle") for i in range(0, columns, 4)]
        parts.append(_text(_LEFT - 6, _TOP - 6, "bank", "end"))
    return parts


def _draw_cell(column: int, y: float, height: int, lanes: list[int]) -> str:
    x = _LEFT + column * _CELL
    box = f'<rect x="{x + 0.5}" y="{y + 0.5}" width="{_CELL - 1}" height="{height - 1}" fill="{_color(lanes[0])}"/>'
    title = f"lane {lanes[0]}" if len(lanes) == 1 else f"lanes {', '.join(map(str, lanes))}"
    if height < _CELL:
        return f"<g><title>{title}</title>{box}</g>"
    text = str(lanes[0]) if len(lanes) == 1 else f"×{len(lanes)}"
    at = f'x="{x + _CELL / 2}" y="{y + height - 5}"'
    color = _text_color(lanes[0])
    return f'<g><title>{title}</title>{box}<text {at} text-anchor="middle" fill="{color}">{text}</text></g>'


def _draw_bank_counts(cells: dict[tuple[int, int], list[int]], columns: int, y: float) -> list[str]:
    """Label each bank with the number of words that it must deliver."""
    counts = [sum(column == c for _, column in cells) for c in range(columns)]
    largest = max(counts)
    parts = [_text(_LEFT - 6, y + 16, "words", "end")]
    for column, count in enumerate(counts):
        if count:
            weight = ' font-weight="700"' if count == largest > 1 else ""
            x = _LEFT + (column + 0.5) * _CELL
            parts.append(f'<text x="{x}" y="{y + 16}" text-anchor="middle" fill="currentColor"{weight}>{count}</text>')
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="currentColor" opacity=".75">{escape(text)}</text>'
