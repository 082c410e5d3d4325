"""The bytes of the constants in LLVM's text, laid out as its data layout says: vectors of three with their padding."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["tables_of_three"]

_TABLE = re.compile(r"^@(\"[^\"]*\"|[\w.$]+) = [^\n{\[<@]*?\bconstant (.*)$", re.MULTILINE)
_STRUCT = re.compile(r"^(%(?:\"[^\"]*\"|[\w.$]+)) = type (.*)$", re.MULTILINE)
_WORD = re.compile(
    r'\s*(<\{|\}>|[<>{}\[\](),]|c"[^"]*"|%(?:"[^"]*"|[\w.$]+)|@(?:"[^"]*"|[\w.$]+)|-?\d[\w.+-]*|[A-Za-z_]\w*|\S)'
)
_REALS = {"half": ("<H", 2), "bfloat": ("<H", 2), "float": ("<f", 4), "double": ("<d", 8)}
_NOTHING = frozenset({"zeroinitializer", "undef", "poison", "null"})
_ENDS = {"[": "]", "<": ">", "{": "}", "<{": "}>"}


def tables_of_three(text: str) -> dict[str, bytes]:
    """Return the bytes of each constant of a module that holds vectors of three, by its name as PTX has it.

    Raises
    ------
    ValueError
        When one holds what is not a number, such as an address.
    """
    structs = dict(_STRUCT.findall(text))
    found = {}
    for name, rest in _TABLE.findall(text):
        reader = _Reader(rest, structs)
        kind = reader.kind()
        if kind.three:
            found[re.sub(r"[.@]", "_$_", name.strip('"'))] = reader.value(kind)
    return found


class _Kind(NamedTuple):
    """A type: a scalar's name, or what it is made of; its bytes and alignment, and where each part lies."""

    scalar: str
    parts: tuple[_Kind, ...]
    offsets: tuple[int, ...]
    size: int
    alignment: int
    three: bool


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


class _Reader:
    """Reads a type and a value of it, word by word."""

    def __init__(self, text: str, structs: dict[str, str]) -> None:
        self._words: Iterator[str] = (m[1] for m in _WORD.finditer(text))
        self._structs = structs
        self._ahead = next(self._words, "")

    def _next(self) -> str:
        word, self._ahead = self._ahead, next(self._words, "")
        return word

    def _expect(self, word: str) -> None:
        if (found := self._next()) != word:
            message = f"{word!r} is expected, not {found!r}"
            raise ValueError(message)

    # ---- Types

    def kind(self) -> _Kind:
        """Read a type."""
        word = self._next()
        if word in {"[", "<"}:
            return self._row(word)
        if word in {"{", "<{"}:
            parts = []
            while self._ahead != _ENDS[word]:
                parts.append(self.kind())
                if self._ahead == ",":
                    self._next()
            self._next()
            return _structure(parts, packed=word == "<{")
        if word in self._structs:
            return _Reader(self._structs[word], self._structs).kind()
        if word in _REALS:
            size = _REALS[word][1]
        elif re.fullmatch(r"i(1|8|16|32|64)", word):
            size = max(int(word[1:]) // 8, 1)
        else:
            message = f"a constant of type {word!r}"
            raise ValueError(message)
        return _Kind(word, (), (), size, size, three=False)

    def _row(self, opened: str) -> _Kind:
        count = int(self._next())
        self._expect("x")
        part = self.kind()
        self._expect(_ENDS[opened])
        if opened == "[":
            offsets = tuple(i * part.size for i in range(count))
            return _Kind("", (part,) * count, offsets, count * part.size, part.alignment, part.three)
        whole = 1 << (count * part.size - 1).bit_length()  # a vector takes a power of two
        offsets = tuple(i * part.size for i in range(count))
        return _Kind("", (part,) * count, offsets, whole, whole, three=count == 3)

    # ---- Values

    def value(self, kind: _Kind) -> bytes:
        """Read a value of a type: its bytes, padding and all."""
        word = self._next()
        if word in _NOTHING:
            return bytes(kind.size)
        if not kind.parts:
            return _scalar(kind, word)
        if word.startswith('c"'):
            return re.sub(rb"\\([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), word[2:-1].encode())
        made = bytearray(kind.size)
        if word == "splat":
            self._expect("(")
            one = self.value(self.kind())
            self._expect(")")
            for at in kind.offsets:
                made[at : at + len(one)] = one
            return bytes(made)
        if word not in _ENDS:
            message = f"a constant {word!r}"
            raise ValueError(message)
        for i, (part, at) in enumerate(zip(kind.parts, kind.offsets, strict=True)):
            if i:
                self._expect(",")
            own = self.value(self.kind())
            made[at : at + part.size] = own
        self._expect(_ENDS[word])
        return bytes(made)


def _structure(parts: list[_Kind], *, packed: bool) -> _Kind:
    at, offsets = 0, []
    for part in parts:
        at = at if packed else _aligned(at, part.alignment)
        offsets.append(at)
        at += part.size
    alignment = 1 if packed else max((p.alignment for p in parts), default=1)
    three = any(p.three for p in parts)
    return _Kind("", tuple(parts), tuple(offsets), _aligned(at, alignment), alignment, three)


def _scalar(kind: _Kind, word: str) -> bytes:
    if kind.scalar not in _REALS:
        number = {"true": 1, "false": 0}.get(word)
        number = int(word) if number is None else number
        return (number % (1 << 8 * kind.size)).to_bytes(kind.size, "little")
    form, size = _REALS[kind.scalar]
    if word[:3] in {"0xH", "0xR"}:
        return struct.pack(form, int(word[3:], 16))
    if size == 2:  # a decimal
        message = f"a {kind.scalar} written as {word!r}"
        raise ValueError(message)
    if word.startswith("0x"):  # a double's bits, whatever the type
        return struct.pack(form, struct.unpack("<d", int(word, 16).to_bytes(8, "little"))[0])
    return struct.pack(form, float(word))
