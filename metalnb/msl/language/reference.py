"""Describe MSL name by name: signatures, the specification's section, and a one-line description.

The text is in ``reference_texts/*.txt``, which read like a header: ``# section kind Title`` opens a chapter, and the
line after it explains the letters, ``T: half or float; Ti: int``; an entry keeps the parts that its signatures need.
A line of declarations (several separated by `` ; ``, or a row of names) is followed by an indented line that describes
them. Sections are those of the Metal Shading Language specification, version 4.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .attributes import ATTRIBUTES

__all__ = ["KEYWORDS", "Entry", "entries", "lookup"]

_FOLDER = Path(__file__).parent / "reference_texts"
_HEAD = re.compile(r"# (?P<section>[\d.]+) (?P<kind>\w+) (?P<title>.+)")
_DECLARED = re.compile(r"(\w+)(?:<[^()<>]*>)?\(")

# The C++ keywords that MSL keeps; section 1.5.4 lists those that it leaves out.
_KEYWORDS = (
    "alignof auto break case class const const_cast constexpr continue decltype default do else enum explicit extern "
    "false for friend if inline mutable namespace noexcept nullptr operator private protected public reinterpret_cast "
    "return signed sizeof static static_assert static_cast struct switch template this true typedef typename union "
    "unsigned using volatile while"
)
KEYWORDS = frozenset(_KEYWORDS.split())


@dataclass(frozen=True, slots=True)
class Entry:
    """Names that MSL declares together.

    Attributes
    ----------
    names : tuple of str
    kind : {"function", "type", "word", "attribute"}
    signatures : tuple of str
        The declarations in MSL; for types, the names themselves.
    summary : str
        A one-line description.
    section, title : str
        The section of the specification, and its title.
    letters : str
        The meaning of the letters in the signatures.
    """

    names: tuple[str, ...]
    kind: str
    signatures: tuple[str, ...]
    summary: str
    section: str
    title: str
    letters: str = ""


def lookup(name: str) -> tuple[Entry, ...]:
    """Return MSL's entries for a name, one for each chapter that has it (``abs`` is in two); empty if MSL lacks it."""
    return _by_name().get(name, ())


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return all entries: those of the language, then the functions."""
    return tuple(
        entry
        for path in sorted(_FOLDER.glob("*.txt"), reverse=True)
        for entry in _read(path.read_text(encoding="utf-8").split("\n"))
    )


@functools.cache
def _by_name() -> Mapping[str, tuple[Entry, ...]]:
    by_name: dict[str, tuple[Entry, ...]] = {}
    for entry in entries():
        for name in entry.names:
            by_name[name] = (*by_name.get(name, ()), entry)
    return by_name


def _read(lines: list[str]) -> Iterator[Entry]:
    chapter: re.Match[str] | None = None
    letters = ""
    for i, line in enumerate(lines):
        head = _HEAD.fullmatch(line)
        if head:
            chapter, letters = head, lines[i + 1]
        elif chapter and line and not line.startswith(" ") and lines[i + 1].startswith("    "):
            yield _entry(line, lines[i + 1].strip(), chapter, letters)


def _entry(declaration: str, summary: str, chapter: re.Match[str], letters: str) -> Entry:
    kind, section_and_title = chapter["kind"], (chapter["section"], chapter["title"])
    if kind == "attribute":
        name = re.findall(r"\w+", declaration)[0]
        widths = ATTRIBUTES[name].widths
        signature = f"{_vector('uint', max(widths))} name {declaration}" if widths else declaration
        return Entry((name,), kind, (signature,), summary, *section_and_title, _types(widths))
    if kind == "function":
        signatures = tuple(declaration.split(" ; "))
        names = tuple(dict.fromkeys(_DECLARED.findall(declaration)))
        return Entry(names, kind, signatures, summary, *section_and_title, _letters_used(letters, declaration))
    names = (_name(declaration),) if re.search(r"[<(]", declaration) else tuple(declaration.split())
    return Entry(names, kind, (declaration,) if len(names) == 1 else (), summary, *section_and_title)


def _name(declaration: str) -> str:
    return re.split(r"[<(]", declaration)[0]


def _letters_used(letters: str, declaration: str) -> str:
    """Keep the explanations of the declaration's letters, and the general explanations."""
    explanations = [(part, part.partition(":")[0] if ":" in part else "") for part in letters.split("; ")]
    return "; ".join(part for part, letter in explanations if not letter or re.search(rf"\b{letter}\b", declaration))


def _vector(scalar: str, width: int) -> str:
    return scalar if width == 1 else f"{scalar}{width}"


def _types(widths: tuple[int, ...]) -> str:
    """Return the types that a kernel input may have, as one line."""
    kinds = [", ".join(_vector(scalar, width) for width in widths) for scalar in ("uint", "ushort")]
    return f"type: {', '.join(kinds)}" if widths else ""
