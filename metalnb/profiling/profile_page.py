"""Render a profile as HTML: the source with a heat map and figures beside each line, and a picture of each access."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

from metalnb.display import nbytes, note
from metalnb.display.frame import framed
from metalnb.display.highlight import highlight

from .access_picture import access_caption, draw_access
from .cost_findings import findings
from .cost_records import LANES, AccessCost, LineCost
from .profile_record import Profile
from .profile_text import COLUMNS, abbreviate, headline, line_cells, totals

__all__ = ["profile_html"]

_FOLDER = Path(__file__).parent
_WORD = re.compile(r"\w+")
_BREAKS = re.compile(r"(::|\()(?=[\w<&;])")  # where a long line may be broken
_LINE_NUMBER = re.compile(r"^line (\d+)")
_MAX_BEFORE = 8  # the most lines shown before the first with figures
_MAX_SPREAD = 1.5
_NO_LINE = "// not part of a line: values computed once, at the start of the kernel"
_TITLES = {
    "cost": "an estimate of the cycles that a processor spends on the line, to sort by",
    "runs": "how often a SIMD-group executed the line",
    "lanes": "of 32, how many were active on average",
    "flops": "floating-point operations of all lanes",
    "special": "divisions, roots, exponentials, sines of all lanes",
    "integer": "integer operations of all lanes",
    "simd": "SIMD functions that SIMD-groups executed",
    "asked": "bytes of device memory that lanes request",
    "travels": "bytes of device memory transferred, in sectors of 32",
    "conflicts": "avoidable passes over the banks of threadgroup memory",
}


@functools.cache
def _read_file(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def profile_html(profile: Profile) -> str:
    """Render a profile for a notebook."""
    name = f"metalnb-profile-{hashlib.sha256(repr((profile.source, profile.lines)).encode()).hexdigest()[:12]}"
    head = (
        f'<div class="metalnb-head"><code><b>{escape(profile.kernel)}</b></code> '
        f'<span class="metalnb-doc">{escape(headline(profile))}</span></div>'
    )
    numbers = {id(access): i for i, access in enumerate(profile.accesses)}
    findings_html = "".join(
        f'<div class="mp-finding">{_link_line(finding.sentence, numbers.get(id(finding.access)))}</div>'
        for finding in findings(profile)
    )
    notes = "".join(note(label, escape(value)) for label, value in totals(profile))
    script = f"<script>{_read_file('profile.js')}\nmetalnbProfile({json.dumps(name)});</script>"
    body = f'{head}<div class="mp" id="{name}">{findings_html}<div class="mp-scroll">{_table(profile)}</div></div>'
    return framed(f'{body}<div class="metalnb-notes">{notes}</div>{script}', _read_file("profile.css"))


def _link_line(sentence: str, access: int | None) -> str:
    match = _LINE_NUMBER.match(sentence)
    if match is None:
        return escape(sentence)
    opens = "" if access is None else f' data-a="{access}"'
    link = f'<a role="button" tabindex="0" data-line="{match[1]}"{opens}>{match[0]}</a>'
    return f"{link}{escape(sentence[match.end() :])}"


def _table(profile: Profile) -> str:
    total = sum(line.cycles for line in profile.lines)
    by_line = {line.line: line for line in profile.lines}
    figures = {number: line_cells(line, total) for number, line in by_line.items()}
    shown = [i for i in range(len(COLUMNS)) if any(row[i] for row in figures.values())]
    titles = "".join(
        f'<th title="{escape(_TITLES[COLUMNS[i]])}">{COLUMNS[i]}</th>' for i in shown
    )
    top = f'<tr><th title="the order of the source">line</th>{titles}'
    rows = []
    counts = itertools.accumulate((len(line.accesses) for line in profile.lines), initial=0)
    starts = dict(zip(by_line, list(counts)[:-1], strict=True))  # the number of a line's first access
    source = profile.source.split("\n")
    span = list(_shown_lines(profile, source))
    texts = dict(zip(span, _dedent([source[n - 1] if n else _NO_LINE for n in span]), strict=True))
    for number in span:
        line = by_line.get(number)
        row = _row(number, line, figures.get(number, ()), shown, total) if line else _idle_row(number, len(shown))
        first = starts.get(number, 0)
        cut = len(source[number - 1]) - len(texts[number]) if number else 0
        accesses = line.accesses if line else ()
        text = _code(texts[number], accesses, first, cut)
        details = "".join(_access_details(a, first + i, profile.banks) for i, a in enumerate(accesses))
        heat = f' style="--h:{_heat(line, total)}%"' if line else ' class="mp-idle"'
        below = f'<tr><td class="mp-more" colspan="{len(shown) + 2}">{details}</td></tr>' if details else ""
        body = f'<tr>{row}<td class="mp-source">{text}</td></tr>{below}'
        rows.append(f'<tbody data-line="{number}"{heat}>{body}</tbody>')
    return f'<table><thead>{top}<th class="mp-source">source</th></tr></thead>{"".join(rows)}</table>'


def _code(text: str, accesses: tuple[AccessCost, ...], first: int, cut: int) -> str:
    """Return a source line that wraps with a hanging indent; its own indentation takes no space.

    The line is a `pre` element, in which nbconvert keeps spaces.
    """
    bare = text.lstrip()
    indent = text[: len(text) - len(bare)]
    spaces = f'<span class="mp-indent">{indent}</span>' if indent else ""
    marked = _BREAKS.sub(r"\1<wbr>", _mark_accesses(bare, accesses, first, cut + len(indent)))
    return f'<pre class="mp-code" style="--i:{len(indent.expandtabs(4))}ch">{spaces}{marked}</pre>'


def _dedent(lines: list[str]) -> list[str]:
    """Remove the indentation common to all lines."""
    return textwrap.dedent("\n".join(lines)).split("\n")


def _shown_lines(profile: Profile, source: list[str]) -> Iterator[int]:
    """Yield the lines to show: from a little before the first line with figures to just after the last; or all."""
    numbers = [line.line for line in profile.lines]
    line_numbers = [n for n in numbers if 0 < n <= len(source)]
    if line_numbers:
        first = min(line_numbers)
        while first > max(1, min(line_numbers) - _MAX_BEFORE) and source[first - 2].strip():
            first -= 1
        yield from range(first, min(len(source), max(line_numbers) + 1) + 1)
    else:
        yield from range(1, len(source) + 1)
    if 0 in numbers:
        yield 0


def _heat(line: LineCost, total: float) -> str:
    return f"{min(100, 400 * line.cycles / total if total else 0):.0f}"


def _idle_row(number: int, columns: int) -> str:
    return f'<td class="mp-number" data-v="{-number}">{number}</td>{"<td></td>" * columns}'


def _row(number: int, line: LineCost, figures: tuple[str, ...], shown: list[int], total: float) -> str:
    """Return a line's number and figures."""
    values = _sort_keys(line)
    parts = [f'<td class="mp-number" data-v="{-number}">{number or "–"}</td>']
    for i in shown:
        text = escape(figures[i])
        if i == 0:
            share = 100 * line.cycles / total if total else 0.0
            text = f'<i style="--w:{share:.1f}%"></i><span>{text}</span>'
        kind = ' class="mp-cost"' if i == 0 else ""
        parts.append(f'<td{kind} data-v="{values[i]:.6g}">{text}</td>')
    return "".join(parts)


def _sort_keys(line: LineCost) -> tuple[float, ...]:
    """Return the sort keys of the columns; the column of lanes is sorted by the number of idle lanes."""
    idle = LANES - line.lanes
    return (
        line.cycles, line.runs, idle, line.flops, line.special, line.integer, line.simd, line.asked, line.traveled,
        line.conflicts,
    )  # fmt: skip


def _mark_accesses(text: str, accesses: tuple[AccessCost, ...], first: int, cut: int) -> str:
    """Return a line of the source, shortened by `cut` characters, with its accesses marked."""
    marked, at = "", 0
    for i, access in enumerate(accesses):
        match = _name_span(text, access, cut)
        if match is None or match[0] < at:
            continue
        start, end = match
        fine = "" if _is_costly(access) else " mp-fine"
        marked += _highlight(text[at:start])
        named = escape(text[start:end])
        marked += f'<span class="mp-at{fine}" role="button" tabindex="0" data-a="{first + i}">{named}</span>'
        at = end
    return marked + _highlight(text[at:])


def _highlight(text: str) -> str:
    """Return a part of a line with its tokens marked; a comment ends with the line."""
    return highlight(f"{text}\n").replace("\n", "")


def _name_span(text: str, access: AccessCost, cut: int) -> tuple[int, int] | None:
    """Return the position of an accessed name in a line: at the access's column, or its first occurrence."""
    spans = [m.span() for m in re.finditer(rf"\b{re.escape(access.name)}\b", text)] if _WORD.match(access.name) else []
    return min(spans, key=lambda span: abs(span[0] + cut - access.column + 1), default=None)


def _is_costly(access: AccessCost) -> bool:
    return bool(access.conflicts or access.contended or access.sectors > _MAX_SPREAD * access.least_sectors)


def _access_details(access: AccessCost, number: int, banks: int) -> str:
    words = escape(access_caption(access, banks))
    return (
        f'<details data-a="{number}"><summary><code>{escape(access.name)}</code> {_figures(access)}</summary>'
        f'<div class="mp-words">{words}</div>{draw_access(access, banks)}</details>'
    )


def _figures(access: AccessCost) -> str:
    """Return the cost of each execution of an access, with bad figures in bold."""
    runs = max(1, access.runs)
    parts = [f"{access.kind}, {access.space or 'other'} memory"]
    if access.passes:
        worse = access.conflicts > 0
        text = _format_mean(access.passes / runs, "pass", "es") + (f" for {access.least / runs:.3g}" if worse else "")
        parts.append(f"<b>{text}</b>" if worse else text)
    elif access.sectors:
        worse = access.sectors > _MAX_SPREAD * access.least_sectors
        text = f"{_format_mean(access.sectors / runs, 'sector')} in {_format_mean(access.lines / runs, 'line')}"
        parts.append(f"<b>{text}</b>" if worse else text)
        parts.append(f"{nbytes(access.used // runs)} used")
    if access.contended:
        parts.append(f"<b>{access.contended / runs:.3g} lanes at another's address</b>")
    return f"{'; '.join(parts)}; {abbreviate(access.runs)} times"


def _format_mean(number: float, word: str, plural: str = "s") -> str:
    """Write a mean with its word: ``1 pass``, ``2.5 passes``."""
    text = f"{number:.3g}"
    return f"{text} {word}" if text == "1" else f"{text} {word}{plural}"
