"""Completion in ``%%metal`` cells, and on the lines of ``%%metal`` and ``%metal``.

The completer is an IPython matcher, so it works wherever IPython completes. In a Metal cell it suppresses the other
matchers, because Python's names are noise there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from ..engine import REGISTRY
from ..errors import ArgumentError
from ..msl.editor.complete import complete
from ..msl.text.scanned_cell import MAIN
from ..program.recipe import header_name
from .cell_magic import CellMagics
from .line_magic import COMMANDS
from .option_values import unquote
from .session import Session

__all__ = ["IDENTIFIER", "MetalText", "matcher", "metal_text"]

IDENTIFIER = "metalnb"

_CELL = re.compile(r"\s*%%metal(?P<options>[ \t][^\n]*)?(?:\n|\Z)")
_LINE = re.compile(r"\s*%metal[ \t]+(?P<words>.*)$", re.DOTALL)
_HEADER = re.compile(r"--header(?:[ \t]+|=)(\S+)")
_CONSTANT = re.compile(r"(\w+)\s*\[\[\s*function_constant\b")

# Maps metalnb's kinds of completions to those of Jupyter's completer, which draws a letter for each.
_JUPYTER = {"type": "class", "variable": "instance", "field": "property", "macro": "statement",
            "attribute": "property", "namespace": "module", "header": "path"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MetalText:
    """A Metal cell with a cursor in it.

    Attributes
    ----------
    body : str
        The magic's input: the text after its line.
    offset : int
        The cursor's position in the body; negative on the magic's own line.
    name : str
        The name of the header cell, else "cell".
    """

    body: str
    offset: int
    name: str


def metal_text(text: str, offset: int) -> MetalText | None:
    """Return a cell's Metal, with the cursor at an offset in the cell's text; None if it is not a Metal cell."""
    match = _CELL.match(text)
    if match is None:
        return None
    start = match.end() + (not match[0].endswith("\n"))  # a body not yet written begins on the next line
    header = _HEADER.search(match["options"] or "")
    return MetalText(text[start:], offset - start, _header_name(unquote(header[1])) if header else MAIN)


def _header_name(name: str) -> str:
    try:
        return header_name(name)
    except ArgumentError:  # the name is incomplete or missing
        return name


class _Silence(list[SimpleCompletion]):
    """An empty list that is true: only a non-empty answer can suppress IPython's other matchers."""

    def __len__(self) -> int:
        return 1


def matcher(session: Session) -> Callable[[CompletionContext], Any]:
    """Return a session's matcher."""

    @context_matcher(priority=1000, identifier=IDENTIFIER)
    def match(context: CompletionContext) -> Any:
        try:
            return _match(context, session)
        except Exception:  # noqa: BLE001  (typing must not be interrupted, and IPython would print a traceback)
            return {"completions": []}

    return match  # type: ignore[no-any-return]


def _match(context: CompletionContext, session: Session) -> dict[str, Any]:
    lines = context.full_text.split("\n")
    line_start = lines[context.cursor_line][: context.cursor_position]
    offset = sum(len(line) + 1 for line in lines[: context.cursor_line]) + len(line_start)
    metal = metal_text(context.full_text, offset)
    if metal and metal.offset >= 0:
        word, completions = complete(metal.body, metal.offset, session.headers_for(metal.body), metal.name)
        return _answer(word, [SimpleCompletion(c.text, type=_JUPYTER.get(c.kind, c.kind)) for c in completions])
    if metal and re.match(r"\s*%%metal[ \t]", line_start):
        return _words(line_start, _options(line_start, metal.body))
    line = _LINE.match(line_start)
    return _words(line_start, _arguments(line["words"].split(" "), session)) if line else {"completions": []}


def _answer(fragment: str, completions: list[SimpleCompletion]) -> dict[str, Any]:
    return {
        "completions": completions or _Silence(), "matched_fragment": fragment, "suppress": True, "ordered": True,
    }  # fmt: skip


def _words(line: str, words: Iterable[tuple[str, str]] | None) -> dict[str, Any]:
    """Complete the last word of a line; None leaves it to the other matchers."""
    if words is None:
        return {"completions": []}
    last = (re.search(r"[^\s=]*$", line) or [""])[0]
    return _answer(last, [SimpleCompletion(word, type=kind) for word, kind in words if word.startswith(last)])


def _options(line: str, body: str) -> Iterable[tuple[str, str]] | None:
    """Return the completions for the line of ``%%metal``, from the declarations of its options."""
    earlier_words = re.split(r"[\s=]+", line)[:-1]
    actions = {option: a for a in CellMagics.metal.parser._actions for option in a.option_strings}  # noqa: SLF001
    last = actions.get(earlier_words[-1])
    if last is None or last.nargs == 0:
        used_options = {word for word in earlier_words if word in actions and word != "--constant"}
        return [(option, "keyword") for option in actions if option not in used_options]
    if last.dest in {"header", "save"}:
        return None  # a file's name
    values = {
        "engine": list(REGISTRY), "constant": [f"{n}=" for n in dict.fromkeys(_CONSTANT.findall(body))],
    }.get(last.dest, list(last.choices or ()))  # fmt: skip
    return [(value, "instance") for value in values]


def _arguments(words: list[str], session: Session) -> Iterator[tuple[str, str]]:
    """Return the completions for the line of ``%metal``."""
    earlier_words = [word for word in words[:-1] if word]
    if not earlier_words:
        return ((name, "keyword") for name in COMMANDS)
    second = {"use": [*REGISTRY, "default"], "source": [*session.kernels(), "--lowered"], "cache": ["clear"]}
    return ((name, "instance") for name in (second.get(earlier_words[0], []) if len(earlier_words) == 1 else []))
