"""A validation as text, and as HTML with the same content."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from metalnb.display import framed, highlight, mix, wrapping
from metalnb.display.card_buttons import BUTTONS, step_button

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
    f".metalnb .metalnb-well{{padding:5px 12px;border-top:1px solid {mix(8)}}}" + CSS + BUTTONS
)


def text(seen: Validation) -> str:
    """Render a validation for a terminal."""
    wide = max((len(b.name) for b in seen.buffers), default=0)
    lines = [f"{seen.kernel}: {_head(seen)}"]
    lines += [f"  {b.name:{wide}}  {', '.join(_counts(b))}" for b in seen.buffers]
    for found in seen.findings:
        lines += [sentence(found), *_marked(found)]
    for differs in seen.differences:
        lines += [difference_sentence(differs), *([] if differs.case else difference_map(differs))]
    return "\n".join([*lines, *_rest(seen)])


def html(seen: Validation) -> str:
    """Render a validation for a notebook."""
    head = (
        f'<div class="metalnb-head"><code><b>{escape(seen.kernel)}</b></code> '
        f'<span class="metalnb-doc">{escape(_head(seen))}</span></div>'
    )
    rows = "".join(
        f"<tr><td><code>{wrapping(b.name)}</code></td><td>{escape(', '.join(_counts(b)))}</td></tr>"
        for b in seen.buffers
    )
    listed = "".join(
        f'<div class="metalnb-finding{"" if f.is_fault else " metalnb-remark"}">{escape(sentence(f))}{_line(f)}</div>'
        for f in seen.findings
    )
    listed += "".join(_difference(seen.kernel, differs) for differs in seen.differences)
    rest = "".join(f'<div class="metalnb-well">{escape(line)}</div>' for line in _rest(seen))
    return framed(f"{head}<table>{rows}</table>{listed}{rest}", _CSS)


def _difference(kernel: str, found: Difference) -> str:
    said = f'<div class="metalnb-finding">{escape(difference_sentence(found))}</div>'
    if found.case:
        return said
    return said + difference_svg(found) + (step_button(kernel, element_of(found)) if found.thread >= 0 else "")


def _head(seen: Validation) -> str:
    count = sum(f.is_fault for f in seen.findings)
    number = "no fault" if not count else "1 fault" if count == 1 else f"{count} faults"
    x, y, z = seen.grid
    sizes = " × ".join(f"{n:,}" for n in (x, y, z)[: 3 if z > 1 else 2 if y > 1 else 1])
    wrong = {d.name: None for d in seen.differences}
    differs = f", {' and '.join(wrong)} not as expected" if wrong else ""
    watched = f"by {seen.by}" if seen.by else f"{seen.accesses:,} accesses"
    return f"{number}{differs}, {sizes} threads, {watched}"


def _counts(buffer: WatchedBuffer) -> Iterator[str]:
    yield f"{buffer.size:,} element{'s' * (buffer.size != 1)}"
    for count, word in ((buffer.reads, "read"), (buffer.writes, "atomic operation" if buffer.atomic else "write")):
        if count:
            yield f"{count:,} {word}{'s' * (count > 1)}"
    if buffer.beyond:
        yield f"{buffer.beyond:,} beyond"
    if buffer.others:
        yield f"in the memory of {' and '.join(buffer.others)}"


def _rest(seen: Validation) -> Iterator[str]:
    """State which outputs were compared, and which were left out."""
    right = [name for name in seen.compared if name not in {d.name for d in seen.differences}]
    if right:
        sizes = f", also with {', '.join(seen.tried)} threads" if seen.tried else ""
        yield f"{', '.join(right)} {'is' if len(right) == 1 else 'are'} as expected{sizes}."
    if seen.left_out:
        x, y, z = (-(-g // t) for g, t in zip(seen.grid, seen.threadgroup, strict=True))
        yield (
            f"{seen.left_out:,} of {x * y * z:,} threadgroups were not run to their end: there was no time for them. "
            "A smaller grid, or seconds=, shows all."
        )


def _marked(found: Finding) -> list[str]:
    if not found.source:
        return []
    bare = found.source.lstrip()
    cut = len(found.source) - len(bare)
    return [f"    {bare}", " " * (4 + max(0, found.column - 1 - cut)) + "^"]


def _line(found: Finding) -> str:
    """Return the author's line, with its number and the place marked."""
    if not found.source:
        return ""
    source = found.source.rstrip()
    at = max(0, found.column - 1)
    end = at + _width(source[at:])
    marked = f"{highlight(source[:at])}<mark>{highlight(source[at:end])}</mark>{highlight(source[end:])}"
    number = f'<span class="metalnb-line-number">{found.line}  </span>'
    return f'<pre class="metalnb-code">{number}{marked.strip()}</pre>'


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
