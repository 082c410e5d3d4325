"""What a notebook shows of kernels and programs, as text and as HTML with the same content; and the frame of all HTML.

The HTML is readable by its structure alone, because GitHub removes styles. It uses JupyterLab's own colours where they
exist, and otherwise greys mixed from the text's colour, which suit a light page and a dark one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, TypeVar

from .dtypes import SCALARS
from .highlight import highlight
from .msl.signature import Param, Reflection, Signature

__all__ = [
    "Card", "Listing", "Source", "Table", "bundle", "cards_html", "cards_text", "framed", "mix", "nbytes", "note",
]  # fmt: skip

T = TypeVar("T")

# JupyterLab aligns cells to the right. It removes style sheets, but not this, from a notebook it does not trust yet.
_LEFT = 'style="text-align:left"'
_LINES = 500  # of a cell's source that its card repeats
_FULL = 4  # kernels of a program that get a card each; more are shown as a table


@dataclass(frozen=True, slots=True)
class Card:
    """What a kernel's card shows.

    Attributes
    ----------
    signature : Signature
    reflection : Reflection
        Of its cell, for the fields of structs.
    engine, device, math : str
    constants : mapping of str to value
        The function constants it was compiled with.
    absent : frozenset of str
        Parameters that a function constant removes.
    threadgroup_bytes : int
        What the kernel declares; 0 for none, or if not known yet.
    threadgroup_limit : int
    source : str
        The cell's text.
    """

    signature: Signature
    reflection: Reflection
    engine: str
    device: str
    math: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    threadgroup_bytes: int = 0
    threadgroup_limit: int = 32768
    source: str = ""

    @property
    def summary(self) -> str:
        """The first line of the kernel's comment."""
        return self.signature.doc.strip().split("\n", maxsplit=1)[0]

    @property
    def runs(self) -> str:
        """Engine, device and math mode, in a line."""
        return " · ".join(filter(None, (self.engine, self.device, f"{self.math} math")))

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Further facts, each with its label."""
        facts = []
        if self.threadgroup_bytes:
            facts.append(("threadgroup memory", f"{self.threadgroup_bytes:,} of {self.threadgroup_limit:,} bytes"))
        if self.signature.max_threads:
            facts.append(("threads in a threadgroup", f"at most {self.signature.max_threads:,}"))
        if self.constants:
            facts.append(("function constants", ", ".join(f"{k} = {v!r}" for k, v in self.constants.items())))
        return facts

    def parameters(self) -> list[tuple[str, str, str, str, str]]:
        """Return a row for each parameter: name, MSL type, attribute, access, what Python passes."""
        rows = []
        for p in self.signature.params:
            access = "shared" if p.space == "threadgroup" else _ACCESS[p.use or ("update" if p.writable else "read")]
            gone = p.name in self.absent
            passed = f"nothing: {p.gate} is false" if gone else _passed(p, self.signature.name, self.reflection)
            rows.append((p.name, p.spelling, p.attribute, "–" if gone else access, passed))
        return rows


_ACCESS = {"read": "read", "write": "write", "update": "read, write", "none": "not used"}


def _passed(param: Param, kernel: str, reflection: Reflection) -> str:
    """Describe what a caller passes for a parameter."""
    if param.space == "threadgroup":
        return f"sized by the launch: one {param.type}{'' if param.reference else ' for each thread'}"
    if param.reference and not param.writable:
        return _value(param, reflection)
    layout, extents = param.type.layout, param.type.extents
    shape = (*extents, *(layout.stride if layout else ()))
    tail = f" (…, {', '.join(map(str, shape))})" if shape else ""
    if layout is not None:
        kind = f"{SCALARS[layout.scalar]} array"
    else:
        kind = "any array" if param.type.name == "void" else f'array of {kernel}.program.dtype("{param.type.name}")'
    one = " of one element" if param.reference else tail
    return kind + one + (", or left out: returned" if param.writable and param.type.name != "void" else "")


def _value(param: Param, reflection: Reflection) -> str:
    """Describe what a caller passes for one value."""
    layout, extents = param.type.layout, param.type.extents
    if layout is None:
        record = reflection.struct(param.type.name)
        fields = ", ".join(f.name for f in record.fields) if record else ""
        return f"dict, dataclass or record: {fields}" if fields else "bytes"
    shape = (*extents, *layout.shape)
    if shape:
        return f"{'×'.join(map(str, shape))} numbers"
    if layout.scalar == "bool":
        return "True or False"
    return "number" if layout.dtype.kind not in "iu" else "whole number"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a head.

    Attributes
    ----------
    head : tuple of str
    rows : tuple of tuple of str
    caption : str
    empty : str
        The text in place of rows when there are none.
    code : frozenset of int
        The columns that hold code.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    empty: str = "none"
    code: frozenset[int] = frozenset()

    def text(self) -> str:
        """Return it as text in columns."""
        lines = [self.caption] if self.caption else []
        return "\n".join([*lines, *_columns([self.head, *self.rows])]) if self.rows else "\n".join([*lines, self.empty])

    def html(self) -> str:
        """Return it as an HTML element."""
        caption = f'<div class="metalnb-head">{escape(self.caption)}</div>' if self.caption else ""
        body = _html_table(self.head, self.rows, self.code) if self.rows else f"<div>{escape(self.empty)}</div>"
        return framed(caption + body)


class Listing(dict[str, T]):
    """A dictionary that a notebook shows as a table.

    Parameters
    ----------
    items : mapping
    table : Table
    """

    def __init__(self, items: Mapping[str, T], table: Table) -> None:
        super().__init__(items)
        self.table = table

    def __repr__(self) -> str:
        return self.table.text()

    def _repr_html_(self) -> str:
        return self.table.html()


class Source(str):
    """MSL, or text generated from it, that a notebook shows highlighted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return framed(f'<pre class="metalnb-code">{highlight(self)}</pre>')


def nbytes(count: int) -> str:
    """Write a number of bytes: ``1.2 MB``."""
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" or size >= 99.5 else f"{size:.1f} {units[0]}"


def bundle(cards: Sequence[Card]) -> dict[str, str]:
    """Return the MIME bundle that IPython shows for a kernel (one card) or a program."""
    return {"text/plain": cards_text(cards), "text/html": cards_html(cards)}


def cards_text(cards: Sequence[Card]) -> str:
    """Render cards for a terminal."""
    if len(cards) > _FULL:
        return _listed(cards).text()
    return "\n\n".join(map(_text, cards))


def cards_html(cards: Sequence[Card]) -> str:
    """Render cards for a notebook; the source that they share is shown once, folded, at the end."""
    body = _listed_html(cards) if len(cards) > _FULL else "".join(map(_html, cards))
    return framed(body + _folded(cards[0].source)) if cards else ""


def _text(card: Card) -> str:
    title = f"kernel {card.signature.name}" + (f": {card.summary}" if card.summary else "")
    inputs = [(i.name, f"{i.type} [[{i.attribute}]]") for i in card.signature.inputs]
    lines = [title, *(f"  {line}" for rows in (card.parameters(), inputs) for line in _columns(rows))]
    lines += [f"  {label}: {value}" for label, value in card.facts]
    return "\n".join([*lines, f"  runs on {card.runs}"])


def _html(card: Card) -> str:
    name = f"<code><b>{escape(card.signature.name)}</b></code>"
    summary = f' <span class="metalnb-doc">{escape(card.summary)}</span>' if card.summary else ""
    rows = card.parameters()
    head = ("argument", "Metal type", "index", "access", "in Python")
    table = _html_table(head, rows, frozenset({0, 1, 2})) if rows else ""
    chips = [f"<code>{escape(i.type)} {escape(i.name)}</code> {escape(i.attribute)}" for i in card.signature.inputs]
    notes = [note("given by the dispatch", ", ".join(chips))] if chips else []
    notes += [note(label, escape(value)) for label, value in card.facts]
    notes.append(note("runs on", escape(card.runs)))
    return f'<div class="metalnb-head">{name}{summary}</div>{table}<div class="metalnb-notes">{"".join(notes)}</div>'


def note(label: str, html: str) -> str:
    """Render a line of a card's foot."""
    return f"<div><i>{escape(label)}:</i> {html}</div>"


def _listed(cards: Sequence[Card]) -> Table:
    rows = tuple((c.signature.name, ", ".join(p.name for p in c.signature.params), c.summary) for c in cards)
    return Table(("kernel", "arguments", ""), rows, f"{len(cards)} kernels on {cards[0].runs}", code=frozenset({0, 1}))


def _listed_html(cards: Sequence[Card]) -> str:
    table = _listed(cards)
    return f'<div class="metalnb-head">{escape(table.caption)}</div>{_html_table(table.head, table.rows, table.code)}'


def _folded(source: str) -> str:
    lines = source.strip("\n").splitlines()
    if not source.strip():
        return ""
    label = f"Metal source, {len(lines):,} line{'' if len(lines) == 1 else 's'}"
    shown = highlight("\n".join(lines[:_LINES]))
    rest = f"<div>… and {len(lines) - _LINES:,} more lines</div>" if len(lines) > _LINES else ""
    return f'<details><summary>{label}</summary><pre class="metalnb-code">{shown}</pre>{rest}</details>'


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]], code: frozenset[int]) -> str:
    def cell(i: int, text: str) -> str:
        shown = escape(text)
        return f"<td {_LEFT}>{f'<code>{shown}</code>' if i in code and text else shown}</td>"

    top = "".join(f"<th {_LEFT}>{escape(h)}</th>" for h in head)
    body = "".join(f"<tr>{''.join(cell(i, text) for i, text in enumerate(row))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of text in columns two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]  # none for no rows
    return ["  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def framed(body: str, css: str = "") -> str:
    """Return HTML in metalnb's frame, with the common styles and further rules ``css``."""
    return f'<div class="metalnb"><style scoped="">{_CSS}{css}</style>{body}</div>'


def _token(name: str, theirs: str, ours: str) -> str:
    """Return the rule for a class of `highlight`: JupyterLab's editor's colour, or one for light and dark pages."""
    return f".metalnb .{name}{{color:var(--jp-mirror-editor-{theirs}-color,{ours})}}"


def mix(percent: int) -> str:
    """Return a grey for any page: a part of the text's own colour."""
    return f"color-mix(in srgb,currentColor {percent}%,transparent)"


# The class is doubled to outweigh JupyterLab's own rules for tables and code.
_CSS = (
    f".metalnb{{border:1px solid {mix(18)};border-radius:6px;overflow:hidden;margin:4px 0;"
    "width:fit-content;min-width:min(36rem,100%);max-width:100%;font-size:13px;line-height:1.5}"
    f".metalnb .metalnb-head{{padding:7px 12px;background:{mix(5)};border-bottom:1px solid {mix(12)}}}"
    f".metalnb .metalnb-notes+.metalnb-head{{border-top:1px solid {mix(12)}}}"
    f".metalnb .metalnb-doc{{margin-left:8px;color:{mix(80)}}}"
    ".metalnb.metalnb code{background:none!important;padding:0!important;color:inherit;font-size:inherit;"
    "white-space:nowrap}"
    ".metalnb.metalnb .metalnb-head code{font-size:14px}"
    ".metalnb.metalnb table{border:0;border-collapse:collapse;table-layout:auto;margin:3px 0;width:100%;font-size:13px}"
    ".metalnb.metalnb tr{background:none!important}"
    ".metalnb.metalnb thead{border:0}"
    ".metalnb.metalnb :is(th,td){text-align:left;vertical-align:baseline;padding:4px 12px;border:0;background:none;"
    "max-width:none;white-space:nowrap}"
    f".metalnb.metalnb th{{font-weight:normal;color:{mix(70)}}}"
    ".metalnb.metalnb td:last-child{white-space:normal}"
    f".metalnb.metalnb tbody td{{border-top:1px solid {mix(8)}}}"
    f".metalnb .metalnb-notes{{padding:4px 12px 8px;border-top:1px solid {mix(8)}}}"
    f".metalnb .metalnb-notes i{{font-style:normal;color:{mix(70)}}}"
    f".metalnb details{{border-top:1px solid {mix(12)};padding:5px 12px}}"
    f".metalnb summary{{cursor:pointer;color:{mix(80)}}}"
    ".metalnb .metalnb-code{margin:6px 0;padding:0;overflow-x:auto;white-space:pre;line-height:1.45;background:none;"
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)}"
    ".metalnb.metalnb>.metalnb-code{padding:0 12px}"
    + _token("k", "keyword", "#8a5cd0") + _token("t", "builtin", "#2f8a62") + _token("s", "string", "#c0504d")
    + _token("m", "number", "#2f8a62") + _token("c", "comment", "#808a94") + _token("p", "meta", "#7a8a2a")
    + _token("f", "def", "#3b7fd0")
)  # fmt: skip
