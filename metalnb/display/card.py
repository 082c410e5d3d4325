"""Render the card of a kernel or a program: as text, and as HTML with the same content."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from metalnb.dtypes import SCALARS
from metalnb.msl.signature import Param, Reflection, Signature
from metalnb.plurals import quantity

from .argument_names import named_argument, variable_of
from .card_buttons import BUTTONS_CSS, buttons
from .frame import framed, note
from .highlight import highlight
from .text_table import Table, columns, html_table

__all__ = ["Card", "bundle", "cards_html", "cards_text", "folded"]

_LINES = 500  # lines of the cell's source that its card repeats
_THREADS = 1024  # the most threads that Metal allows in a threadgroup
_MAX_CARDS = 4  # kernels of a program that get a card each; more are shown as a table


@dataclass(frozen=True, slots=True)
class Card:
    """The contents of a kernel's card.

    Attributes
    ----------
    signature : Signature
    reflection : Reflection
        The reflection of the kernel's cell, which has the fields of structs.
    engine, device, math : str
    constants : mapping of str to value
        The function constants it was compiled with.
    absent : frozenset of str
        Parameters that a function constant removes.
    threadgroup_bytes : int
        The threadgroup memory that the kernel declares, in bytes; 0 if it declares none or the size is not known yet.
    threadgroup_limit : int
    pointers : bool
        Whether a caller can pass a struct's pointers.
    threads : int
        The maximum threads per threadgroup of the compiled kernel; 0 if not known yet.
    more : tuple of (str, str)
        Further facts that the engine reports about the compiled kernel, each with its label.
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
    pointers: bool = False
    threads: int = 0
    more: tuple[tuple[str, str], ...] = ()
    source: str = ""

    @property
    def summary(self) -> str:
        """The first line of the kernel's comment."""
        return self.signature.doc.strip().split("\n", maxsplit=1)[0]

    @property
    def runs(self) -> str:
        """The engine, device and math mode, on one line."""
        return " · ".join(filter(None, (self.engine, self.device, f"{self.math} math")))

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Further facts, each with its label."""
        facts = []
        if self.threadgroup_bytes:
            facts.append(("threadgroup memory", f"{self.threadgroup_bytes:,} of {self.threadgroup_limit:,} bytes"))
        limit = min(n or _THREADS for n in (self.signature.max_threads, self.threads))
        if limit < _THREADS or self.signature.max_threads:
            facts.append(("threads in a threadgroup", f"at most {limit:,}"))
        if self.constants:
            facts.append(("function constants", ", ".join(f"{k} = {v!r}" for k, v in self.constants.items())))
        return [*facts, *self.more]

    @property
    def call(self) -> str:
        """A call to start from: it names the arrays, has a value for each scalar, and omits the returned arrays."""
        results = ", ".join(variable_of(p.name) for p in self._present_params if _is_returned(p))
        return f"{f'{results} = ' if results else ''}{self.bare_call}"

    @property
    def _present_params(self) -> list[Param]:
        return [p for p in self.signature.buffers if p.name not in self.absent]

    @property
    def bare_call(self) -> str:
        """The call alone, without names for its results."""
        params = self._present_params
        arrays = [p for p in params if not p.reference and not (p.writable and p.use == "write")]
        arguments: list[str] = []
        for i, p in enumerate(p for p in params if not _is_returned(p)):
            variable = variable_of(p.name)
            value = variable if p in arrays or p.writable else _example(p)
            # Arguments are positional until one is named or left out.
            has_names = any("=" in argument or argument.startswith("**") for argument in arguments)
            by_position = value == variable and p is params[i] and not has_names
            arguments.append(value if by_position else named_argument(p.name, value))
        arguments += [f"grid={grid}" for grid in filter(None, [_grid(self.signature, arrays)])]
        memory = ", ".join(f'"{p.name}": 1024' for p in self.signature.threadgroup)
        arguments += [f"threadgroup_memory={{{memory}}}"] if memory else []
        return f"{self.signature.name}({', '.join(arguments)})"

    def parameters(self) -> list[tuple[str, str, str, str, str]]:
        """Return a row for each parameter: name, MSL type, attribute, access, Python argument."""
        rows = []
        for p in self.signature.params:
            access = "shared" if p.space == "threadgroup" else _ACCESS[p.use or ("update" if p.writable else "read")]
            is_absent = p.name in self.absent
            argument = f"nothing: {p.gate} is false" if is_absent else _argument_text(p, self)
            rows.append((p.name, p.spelling, p.attribute, "–" if is_absent else access, argument))
        return rows


_ACCESS = {"read": "read", "write": "write", "update": "read, write", "none": "not used"}


def _argument_text(param: Param, card: Card) -> str:
    """Return a description of a parameter's Python argument."""
    if param.space == "threadgroup":
        return f"sized by the launch: one {param.type}{'' if param.reference else ' for each thread'}"
    if param.reference and not param.writable:
        return _value(param, card.reflection, pointers=card.pointers)
    layout, extents = param.type.layout, param.type.extents
    shape = (*extents, *(layout.stride if layout else ()))
    tail = f" (…, {', '.join(map(str, shape))})" if shape else ""
    if layout is not None:
        kind = f"{SCALARS[layout.scalar]} array"
    else:
        record = f'array of {card.signature.name}.program.dtype("{param.type.name}")'
        kind = "any array" if param.type.name == "void" else record
    count_text = " of one element" if param.reference else tail
    return kind + count_text + (", or left out: returned" if param.writable and param.type.name != "void" else "")


def _is_returned(param: Param) -> bool:
    return param.writable and not param.reference and param.use == "write" and param.type.name != "void"


def _grid(signature: Signature, arrays: Sequence[Param]) -> str:
    """Return the grid that a call needs, as text; empty if it follows from the arrays."""
    width = max((i.width for i in signature.inputs if i.attribute == "thread_position_in_grid"), default=1)
    if width > 1:
        return f"({', '.join(['64'] * width)})"
    shaping = next((p for p in arrays if p.writable), arrays[0] if arrays else None)
    if shaping is None:
        return "1024"
    indexed = next((p for p in arrays if p.every), shaping)
    return "" if shaping.every or indexed is shaping else f"{variable_of(indexed.name)}.size"


def _example(param: Param) -> str:
    layout, extents = param.type.layout, param.type.extents
    if layout is None:
        return variable_of(param.name)
    number = "True" if layout.scalar == "bool" else "1" if layout.dtype.kind in "iu" else "1.0"
    shape = (*extents, *layout.shape)
    if len(shape) > 1:
        return f"np.ones({shape})"
    return f"({', '.join([number] * shape[0])})" if shape else number


def _value(param: Param, reflection: Reflection, *, pointers: bool) -> str:
    """Return a description of one value's Python argument; the engine decides whether a struct may hold pointers."""
    layout, extents = param.type.layout, param.type.extents
    if layout is None:
        record = reflection.struct(param.type.name)
        if record and any(f.type.name == "pointer" for f in record.fields):
            names = ", ".join(f.name for f in record.fields)
            fields_text = f"a dict of {names}; its pointers take mnb.array"
            return fields_text if pointers else "nothing: it holds pointers; make them parameters"
        fields = ", ".join(f.name for f in record.fields) if record else ""
        return f"dict, dataclass or record: {fields}" if fields else "bytes"
    shape = (*extents, *layout.shape)
    if shape:
        return f"{'×'.join(map(str, shape))} numbers"
    if layout.scalar == "bool":
        return "True or False"
    return "number" if layout.dtype.kind not in "iu" else "whole number"


def bundle(cards: Sequence[Card], *, source: bool = True) -> dict[str, str]:
    """Return the MIME bundle that IPython shows for a kernel (one card) or a program."""
    return {"text/plain": cards_text(cards), "text/html": cards_html(cards, source=source)}


def cards_text(cards: Sequence[Card]) -> str:
    """Return cards as text for a terminal."""
    if len(cards) > _MAX_CARDS:
        return _table(cards).text()
    return "\n\n".join(map(_text, cards))


def cards_html(cards: Sequence[Card], *, source: bool = True) -> str:
    """Return cards as HTML for a notebook; the source that they share appears once, collapsed, at the end.

    Parameters
    ----------
    cards : sequence of Card
        The cards of one program.
    source : bool, optional
        False if the source is shown above them.
    """
    body = _table_html(cards) if len(cards) > _MAX_CARDS else "".join(map(_html, cards))
    return framed(body + (folded(cards[0].source) if source else ""), BUTTONS_CSS) if cards else ""


def _text(card: Card) -> str:
    title = f"kernel {card.signature.name}" + (f": {card.summary}" if card.summary else "")
    inputs = [(i.name, f"{i.type} [[{i.attribute}]]") for i in card.signature.inputs]
    lines = [title, *(f"  {line}" for rows in (card.parameters(), inputs) for line in columns(rows))]
    lines += [f"  {label}: {value}" for label, value in card.facts]
    lines.append(f"  call: {card.call}")
    return "\n".join([*lines, f"  runs on {card.runs}"])


def _html(card: Card) -> str:
    name = f"<code><b>{escape(card.signature.name)}</b></code>"
    summary = f' <span class="metalnb-doc">{escape(card.summary)}</span>' if card.summary else ""
    rows = card.parameters()
    head = ("argument", "Metal type", "index", "access", "in Python")
    table = html_table(head, rows, frozenset({0, 1, 2})) if rows else ""
    chips = [f"<code>{escape(i.type)} {escape(i.name)}</code> {escape(i.attribute)}" for i in card.signature.inputs]
    notes = [note("given by the dispatch", ", ".join(chips))] if chips else []
    notes += [note(label, escape(value)) for label, value in card.facts]
    notes.append(note("call", f'<code class="metalnb-call">{escape(card.call)}</code>'))
    notes.append(note("runs on", escape(card.runs)))
    foot = f'<div class="metalnb-notes">{"".join(notes)}</div>{_acts(card)}'
    return f'<div class="metalnb-head">{name}{summary}</div>{table}{foot}'


def _acts(card: Card) -> str:
    name = card.signature.name
    return buttons(name, card.bare_call) if name.isidentifier() and not keyword.iskeyword(name) else ""


def _table(cards: Sequence[Card]) -> Table:
    rows = tuple((c.signature.name, ", ".join(p.name for p in c.signature.params), c.summary) for c in cards)
    caption = f"{quantity(len(cards), 'kernel')} on {cards[0].runs}"
    return Table(("kernel", "arguments", ""), rows, caption, code=frozenset({0, 1}))


def _table_html(cards: Sequence[Card]) -> str:
    table = _table(cards)
    return f'<div class="metalnb-head">{escape(table.caption)}</div>{html_table(table.head, table.rows, table.code)}'


def folded(source: str) -> str:
    """Return Metal source as collapsed HTML that a click opens; an empty string if there is no source."""
    lines = source.strip("\n").splitlines()
    if not source.strip():
        return ""
    label = f"Metal source, {quantity(len(lines), 'line')}"
    code = highlight("\n".join(lines[:_LINES]))
    rest = f"<div>… and {quantity(len(lines) - _LINES, 'more line')}</div>" if len(lines) > _LINES else ""
    return f'<details><summary>{label}</summary><pre class="metalnb-code">{code}</pre>{rest}</details>'
