"""Render a validation as text, and as HTML with the same content."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from metalnb.display import framed, highlight, mix, wrapping
from metalnb.display.card_buttons import BUTTONS_CSS, step_button
from metalnb.plurals import quantity

from .access_report import Difference, Finding, Validation, WatchedBuffer
from .difference_view import CSS, difference_map, difference_sentence, difference_svg, element_of
from .sentences import sentence

__all__ = ["html", "text"]

_CSS = (
    ".metalnb .metalnb-finding{border-left:3px solid #cf4a3c;padding:1px 10px;margin:6px 12px}"
    ".metalnb .metalnb-finding.metalnb-remark{border-left-color:#d08a2a}"
    f".metalnb.metalnb .metalnb-finding pre{{margin:3px 0 4px;padding:2px 8px;background:{mix(6)};border-radius:3px}}"
    ".metalnb .metalnb-finding mark{background:none;color:inherit;text-decoration:underline wavy #cf4a3c 1.5px;"
    "text-underline-offset:3px}"
    f".metalnb .metalnb-line-number{{color:{mix(76)};user-select:none}}"
    f".metalnb .metalnb-well{{padding:5px 12px;border-top:1px solid {mix(8)}}}" + CSS + BUTTONS_CSS
)


def text(report: Validation) -> str:
    """Render a validation for a terminal."""
    width = max((len(b.name) for b in report.buffers), default=0)
    lines = [f"{report.kernel}: {_head(report)}"]
    lines += [f"  {b.name:{width}}  {', '.join(_counts(b))}" for b in report.buffers]
    for finding in report.findings:
        lines += [sentence(finding), *_caret_lines(finding)]
    for difference in report.differences:
        lines += [difference_sentence(difference), *([] if difference.case else difference_map(difference))]
    return "\n".join([*lines, *_notes(report)])


def html(report: Validation) -> str:
    """Render a validation for a notebook."""
    head = (
        f'<div class="metalnb-head"><code><b>{escape(report.kernel)}</b></code> '
        f'<span class="metalnb-doc">{escape(_head(report))}</span></div>'
    )
    rows = "".join(
        f"<tr><td><code>{wrapping(b.name)}</code></td><td>{escape(', '.join(_counts(b)))}</td></tr>"
        for b in report.buffers
    )
    entries = "".join(
        f'<div class="metalnb-finding{"" if f.is_fault else " metalnb-remark"}">{escape(sentence(f))}{_line(f)}</div>'
        for f in report.findings
    )
    entries += "".join(_difference(report.kernel, difference) for difference in report.differences)
    notes = "".join(f'<div class="metalnb-well">{escape(line)}</div>' for line in _notes(report))
    return framed(f"{head}<table>{rows}</table>{entries}{notes}", _CSS)


def _difference(kernel: str, difference: Difference) -> str:
    entry = f'<div class="metalnb-finding">{escape(difference_sentence(difference))}</div>'
    if difference.case:
        return entry
    button = step_button(kernel, element_of(difference)) if difference.thread >= 0 else ""
    return entry + difference_svg(difference) + button


def _head(report: Validation) -> str:
    count = sum(f.is_fault for f in report.findings)
    number = "no fault" if not count else quantity(count, "fault")
    x, y, z = report.grid
    sizes = " × ".join(f"{n:,}" for n in (x, y, z)[: 3 if z > 1 else 2 if y > 1 else 1])
    names = {d.name: None for d in report.differences}
    mismatch = f", {' and '.join(names)} not as expected" if names else ""
    basis = f"by {report.by}" if report.by else quantity(report.accesses, "access", "accesses")
    return f"{number}{mismatch}, {sizes} thread{'s' * (sizes != '1')}, {basis}"


def _counts(buffer: WatchedBuffer) -> Iterator[str]:
    yield quantity(buffer.size, "element")
    for count, word in ((buffer.reads, "read"), (buffer.writes, "atomic operation" if buffer.atomic else "write")):
        if count:
            yield quantity(count, word)
    if buffer.beyond:
        yield f"{buffer.beyond:,} beyond"
    if buffer.others:
        yield f"in the memory of {' and '.join(buffer.others)}"


def _notes(report: Validation) -> Iterator[str]:
    """Yield notes that say which outputs were compared, and which were left out."""
    as_expected = [name for name in report.compared if name not in {d.name for d in report.differences}]
    if as_expected:
        sizes = f", also with {', '.join(report.tried)} threads" if report.tried else ""
        yield f"{', '.join(as_expected)} {'is' if len(as_expected) == 1 else 'are'} as expected{sizes}."
    if report.left_out:
        x, y, z = (-(-g // t) for g, t in zip(report.grid, report.threadgroup, strict=True))
        yield (
            f"{report.left_out:,} of {x * y * z:,} threadgroups were not run to completion, for lack of time. "
            "Pass a smaller grid, or a larger seconds=, to run all."
        )


def _caret_lines(finding: Finding) -> list[str]:
    if not finding.source:
        return []
    source = finding.source.lstrip()
    indentation = len(finding.source) - len(source)
    return [f"    {source}", " " * (4 + max(0, finding.column - 1 - indentation)) + "^"]


def _line(finding: Finding) -> str:
    """Return the author's line, with its number and the place marked."""
    if not finding.source:
        return ""
    source = finding.source.rstrip()
    start = max(0, finding.column - 1)
    end = start + _width(source[start:])
    code = f"{highlight(source[:start])}<mark>{highlight(source[start:end])}</mark>{highlight(source[end:])}"
    number = f'<span class="metalnb-line-number">{finding.line}  </span>'
    return f'<pre class="metalnb-code">{number}{code.strip()}</pre>'


def _width(rest: str) -> int:
    """Return the length of the token at the start of a text: a word with its brackets, or one sign."""
    depth = 0
    for i, mark in enumerate(rest):
        if mark in "([":
            depth += 1
        elif mark in ")]":
            depth -= 1
            if depth == 0:
                return i + 1
        if depth < 0 or (depth == 0 and not (mark.isalnum() or mark in "_.([")):
            return max(1, i)
    return len(rest)
