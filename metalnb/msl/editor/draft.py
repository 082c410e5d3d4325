"""Read a cell that is being written as far as possible, even if it is invalid or unfinished.

Where `scan` and `parse` reject a text, this module repairs the damage that an unfinished statement does to the
statements after it, and passes the rest to libclang unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from metalnb.errors import CompileError

from ..libclang.flags import FOLDER, header_file
from ..rewrite.scan import normalize_text, scan
from ..text.edits import Edit, EditedText
from ..text.scanned_cell import MAIN, Cell
from ..text.tokens import Token, tokenize

__all__ = ["Draft", "TypedPart", "read_draft"]

_WORD = re.compile(r"[^\W\d]\w*$")
# Comments, and strings that end on their line; an unterminated comment or string extends to the end.
_SILENT = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*(?:"|$|\Z)|'(?:\\.|[^'\\\n])+'""", re.DOTALL | re.MULTILINE
)
_ATTRIBUTE = re.compile(r"\[\[(?:[^\[\]()]|\([^()]*\))*$")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]*)\Z", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*\w*\Z", re.MULTILINE)
_AROUND = '#include <metal_stdlib>\nusing namespace metal;\n#include "{}"\n'  # a header cell, as others include it


@dataclass(frozen=True, slots=True)
class TypedPart:
    """The text before the cursor.

    Attributes
    ----------
    kind : {"code", "scoped", "member", "attribute", "include", "directive", "silent"}
        "scoped" comes after ``::``; "silent" is a comment, a string or a number.
    word : str
        The part of a word already typed.
    bracket : str
        The bracket of an include: ``<`` or ``"``.
    in_parentheses : bool
    """

    kind: str
    word: str
    bracket: str = ""
    in_parentheses: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A cell being edited, prepared for libclang.

    Attributes
    ----------
    source : str
        The author's text, repaired.
    offset : int
        The cursor's position in `source`.
    cell : Cell
        The scanned cell; a header cell has the name by which others include it.
    headers : mapping of str to Cell
    """

    source: str
    offset: int
    cell: Cell
    headers: Mapping[str, Cell]

    @property
    def path(self) -> str:
        """The file in which the cursor is."""
        return f"{FOLDER}/{self.cell.name}"

    @property
    def files(self) -> list[tuple[str, str]]:
        """The files for libclang; the last is the one to parse, which includes the other files."""
        cells = [*self.headers.items(), (self.cell.name, self.cell)]
        files = [(header_file(name), cell.edited.text) for name, cell in cells]
        return files if self.cell.name == MAIN else [*files, (f"{FOLDER}/{MAIN}", _AROUND.format(self.cell.name))]

    def position(self, offset: int) -> tuple[int, int]:
        """Return libclang's line and column (from 1, in bytes) for an offset in `source`."""
        before = self.cell.edited.text[: self.cell.edited.edited_offset(offset)]
        line = before.rpartition("\n")[2]
        return before.count("\n") + 1, len(line.encode()) + 1

    def typed_part(self) -> TypedPart:
        """Return the part being typed at the cursor."""
        return _typed_part(self.source[: self.offset])


def read_draft(source: str, offset: int, headers: Mapping[str, str], name: str = MAIN) -> Draft:
    """Read a cell with the cursor at an offset, and the header cells that it may include.

    Parameters
    ----------
    source : str
    offset : int
        The cursor's position, in characters.
    headers : mapping of str to str
    name : str
        The name by which others include it, if it is a header cell.
    """
    head, tail = normalize_text(source[:offset]), normalize_text(source[offset:])
    closed_head = _close_statements(head)
    other_headers = {header: text for header, text in headers.items() if header != name}
    header_cells = {
        header: _scan(normalize_text(text), header, frozenset(headers)) for header, text in other_headers.items()
    }
    cell = _scan(closed_head + tail, name, frozenset(headers))
    return Draft(closed_head + tail, len(closed_head), cell, header_cells)


def _scan(text: str, name: str, headers: frozenset[str]) -> Cell:
    try:
        return scan(text, name, headers)
    except CompileError:  # leave it unedited
        return Cell(name, EditedText(text, []), (), expands=False, includes=(), optional=frozenset())


def _close_statements(text_before: str) -> str:
    """Close brackets that finished statements left open and add missing semicolons, so that clang reads the rest."""
    edits: list[Edit] = []
    open_marks: list[Token] = []
    previous: Token | None = None
    for token in tokenize(text_before).program:
        text = token.text
        if previous is not None and _begins_statement(token, previous, open_marks, text_before):
            edits.append(Edit(previous.end, previous.end, ";"))
        if text in {"(", "[", "{"}:
            # The semicolons in the head of a `for` do not end a statement; `previous` reveals them.
            is_for = text == "(" and previous is not None and previous.text == "for"
            open_marks.append(token._replace(kind="for") if is_for else token)
        elif text in {")", "]", "}"}:
            _close_bracket(open_marks, {")": "(", "]": "[", "}": "{"}[text])
        elif text == ";":
            missing = ""
            while open_marks and open_marks[-1].text in {"(", "["} and open_marks[-1].kind != "for":
                missing += ")" if open_marks.pop().text == "(" else "]"
            if missing:
                edits.append(Edit(token.start, token.start, missing))
        elif text.startswith('"') and _is_open(text) and token.end < len(text_before):
            edits.append(Edit(token.end, token.end, '";'))
        previous = token
    cursor = Token("word", "", len(text_before), len(text_before))
    if previous is not None and _begins_statement(cursor, previous, open_marks, text_before):
        edits.append(Edit(previous.end, previous.end, ";"))
    return EditedText(text_before, edits).text


# After these tokens the end of a line does not end a statement.
_UNFINISHED = frozenset(
    {"case", "const", "constant", "constexpr", "device", "do", "else", "enum", "goto", "inline", "kernel", "namespace",
     "private", "public", "return", "signed", "static", "struct", "template", "thread", "threadgroup", "typedef",
     "typename", "union", "unsigned", "using", "volatile"}
)  # fmt: skip


def _begins_statement(token: Token, previous: Token, open_marks: list[Token], text_before: str) -> bool:
    """Return whether a word begins a line of a block, and the line before ends an expression without a semicolon."""
    is_ended = previous.kind in {"word", "number", "string"} or previous.text in {")", "]"}
    is_on_new_line = token.kind == "word" and "\n" in text_before[previous.end : token.start]
    inside = bool(open_marks) and open_marks[-1].text == "{"
    return is_ended and is_on_new_line and inside and previous.text not in _UNFINISHED


def _close_bracket(open_marks: list[Token], opening: str) -> None:
    """Pop the open brackets up to the one that is closed, if it is among them."""
    if any(mark.text == opening for mark in open_marks):
        while open_marks.pop().text != opening:
            pass


def _typed_part(text_before: str) -> TypedPart:
    include = _INCLUDE.search(text_before)
    if include:
        return TypedPart("include", include[2], include[1])
    directive = _DIRECTIVE.search(text_before)
    if directive:
        return TypedPart("directive", re.findall(r"\w*$", directive[0])[0])
    code = _SILENT.sub(lambda m: m[0] if m.end() == len(text_before) and _is_open(m[0]) else " ", text_before)
    if any(m.end() == len(code) and _is_open(m[0]) for m in _SILENT.finditer(code)):
        return TypedPart("silent", "")
    word = (_WORD.search(code) or [""])[0]
    rest = code[: len(code) - len(word)]
    if re.search(r"[\w.]$", rest) and re.search(r"(?<![\w.)\]])\.?\d[\w.]*$", rest):
        return TypedPart("silent", "")
    if _ATTRIBUTE.search(rest):
        statement = re.split(r"[;{}]", rest)[-1]
        return TypedPart("attribute", word, in_parentheses=statement.count("(") > statement.count(")"))
    before_word = re.search(r"(?:(\.|->)|(::))\s*$", rest)
    return TypedPart("code" if before_word is None else "member" if before_word[1] else "scoped", word)


def _is_open(silent: str) -> bool:
    """Return whether a comment or string is unterminated."""
    if silent.startswith("//"):
        return True
    if silent.startswith("/*"):
        return len(silent) < 4 or not silent.endswith("*/")
    return len(silent) < 2 or not silent.endswith(silent[0])
