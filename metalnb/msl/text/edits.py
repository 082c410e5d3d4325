"""A text with recorded edits, so that every position in the edited text maps back to the author's.

An edit never adds or removes a line end: line numbers stay correct, and only columns are mapped.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

__all__ = ["Edit", "EditedText", "Omission", "Refusal"]


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace ``original[start:end]`` by ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Remark:
    """An edit with a message for the author.

    Attributes
    ----------
    start, end : int
        The range replaced.
    at : int
        The position that the message is about.
    message, hint : str
    form : str
        The replacement.
    """

    start: int
    end: int
    at: int
    message: str
    hint: str = ""
    form: str = ""


@dataclass(frozen=True, slots=True)
class Refusal(_Remark):
    """An edit that replaces code that must not compile with an undeclared name; inside ``#if 0`` it has no effect.

    The ``{}`` of its `form` stands for the name.
    """

    form: str = "{}"


@dataclass(frozen=True, slots=True)
class Omission(_Remark):
    """An edit that removes something valid in Metal but useless here, with a warning for the author."""


class EditedText:
    r"""A text and its edited form.

    Parameters
    ----------
    original : str
        The author's text, with ``\n`` line ends.
    edits : list of Edit
        If two overlap, as they can in text that is not valid Metal, the first wins.
    """

    def __init__(self, original: str, edits: list[Edit]) -> None:
        self.original = original
        self._edits: list[Edit] = []
        self._replacements: list[str] = []  # each edit's text, with the line ends of the text that it replaces
        pieces: list[str] = []
        position = 0
        for edit in sorted(set(edits)):
            if edit.start < position:
                continue
            self._edits.append(edit)
            self._replacements.append(_keep_lines(original[edit.start : edit.end], edit.text))
            pieces += [original[position : edit.start], self._replacements[-1]]
            position = edit.end
        self.text = "".join([*pieces, original[position:]])

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(line_end.end() for line_end in re.finditer("\n", self.original))]

    @cached_property
    def _edited_lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def line_count(self) -> int:
        """The number of lines."""
        return len(self._line_starts)

    def edited_line(self, number: int) -> str:
        """Return a line of the edited text, counted from 1, without its end; an empty string if there is none."""
        return self._edited_lines[number - 1] if 1 <= number <= len(self._edited_lines) else ""

    def line(self, number: int) -> str:
        """Return the author's line, counted from 1, without its end."""
        lines = self._line_starts
        if not 1 <= number <= len(lines):
            return ""
        end = lines[number] - 1 if number < len(lines) else len(self.original)
        return self.original[lines[number - 1] : end]

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column, both from 1, of an offset in the author's text."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column in the author's text."""
        return self._line_starts[line - 1] + column - 1

    def edited_offset(self, offset: int) -> int:
        """Map an offset in the author's text to the edited text; inside a replaced range, to its start."""
        i = bisect_right(self._edits, offset, key=lambda edit: edit.end)
        start = self._edits[i].start if i < len(self._edits) else offset
        return min(start, offset) + self._shifts[i]

    def original_offset(self, offset: int) -> int:
        """Map an offset in the edited text to the author's; inside inserted text, to the start of what it replaced."""
        i = bisect_left(self._edited_starts, offset)
        if i and offset < self._edited_starts[i - 1] + len(self._replacements[i - 1]):
            return self._edits[i - 1].start
        return offset - self._shifts[i]

    def add_edits(self, edits: Iterable[Edit]) -> EditedText:
        """Return the text with additional edits."""
        return EditedText(self.original, [*self._edits, *edits])

    def replace_edits(self, edits: Iterable[Edit]) -> EditedText:
        """Return the text with edits replaced by new ones with the same ranges."""
        replacements = {(edit.start, edit.end): edit for edit in edits}
        other_edits = (edit for edit in self._edits if (edit.start, edit.end) not in replacements)
        return EditedText(self.original, [*other_edits, *replacements.values()])

    @cached_property
    def _shifts(self) -> list[int]:
        """The total shift of the text after each edit."""
        pairs = zip(self._edits, self._replacements, strict=True)
        return [0, *accumulate(len(text) - (edit.end - edit.start) for edit, text in pairs)]

    @cached_property
    def _edited_starts(self) -> list[int]:
        """Where each edit begins in the edited text."""
        return [edit.start + shift for edit, shift in zip(self._edits, self._shifts, strict=False)]

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Map a range of the author's text to the edited text, including edits; None if an end is inside an edit.

        Text that is inserted at the end of the range stays outside it.
        """
        first, last = (bisect_left(self._edits, at, key=lambda e: e.start) for at in (start, end))
        if any(i and self._edits[i - 1].end > at for i, at in ((first, start), (last, end))):
            return None
        return start + self._shifts[first], end + self._shifts[last]

    def original_column(self, line: int, column: int) -> int:
        """Map a column (from 1, in characters) of the edited text's line to the author's."""
        if not 1 <= line <= len(self._line_starts):
            return column
        start = self._line_starts[line - 1]
        end = self._line_starts[line] if line < len(self._line_starts) else len(self.original) + 1
        shift = 0
        first, last = (bisect_left(self._edits, at, key=lambda e: e.start) for at in (start, end))
        for edit in self._edits[first:last]:
            if "\n" in self.original[edit.start : edit.end]:
                break
            edited_start = edit.start - start + 1 + shift
            if column < edited_start:
                break
            if column < edited_start + len(edit.text):  # inside inserted text: the start of what it replaced
                return edit.start - start + 1
            shift += len(edit.text) - (edit.end - edit.start)
        return max(1, column - shift)


_END = re.compile(r"(?:\\[ \t\f\v]*)?\n")  # a line end, with the backslash that continues a macro


def _keep_lines(old: str, new: str) -> str:
    return new + "".join(_END.findall(old)[new.count("\n") :])
