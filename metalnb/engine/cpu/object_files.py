"""The contents of an object file or library: sections, symbols, and calls, for three systems."""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["ObjectFile", "object_file"]


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """A 64-bit ELF, COFF or Mach-O file.

    Attributes
    ----------
    sections : dict of str to bytes
        The contents of sections, by their ELF names.
    symbols : dict of str to int
        The addresses of symbols, by their C names.
    calls : list of (int, str)
        The calls in an object file's code: the offset of the callee's address, and the callee's name.
    base : int
        The image's base address.
    """

    sections: dict[str, bytes]
    symbols: dict[str, int]
    calls: list[tuple[int, str]]
    base: int = 0


def object_file(data: bytes) -> ObjectFile:
    """Read a file; the result is empty if the format is unknown."""
    if data[:5] == b"\x7fELF\x02":
        return _elf(data)
    if data[:4] == b"\xcf\xfa\xed\xfe":
        return _macho(data)
    if data[:2] == b"MZ" or data[:2] == b"\x64\x86":
        return _coff(data)
    return ObjectFile({}, {}, [])


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode()


_ELF_SYMBOL, _ELF_RELOCATION = struct.Struct("<IBBHQQ"), struct.Struct("<QQq")


def _elf(data: bytes) -> ObjectFile:
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, labels = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    texts = headers[labels][4]
    sections = {
        _text(data, texts + name): b"" if kind == 8 else data[offset : offset + length]
        for name, kind, _, _, offset, length, *_ in headers
    }
    names = sections.get(".strtab", b"")
    symbols = [(_text(names, s[0]), s[4]) for s in _ELF_SYMBOL.iter_unpack(sections.get(".symtab", b""))]
    calls = [
        (offset, symbols[info >> 32][0])
        for offset, info, _ in _ELF_RELOCATION.iter_unpack(sections.get(".rela.text", b""))
    ]
    return ObjectFile(sections, {name: value for name, value in symbols if name}, calls)


_COFF_SYMBOL, _COFF_RELOCATION = struct.Struct("<8sIhHBB"), struct.Struct("<IIH")
_RELOCATION_OVERFLOW = 1 << 24  # IMAGE_SCN_LNK_NRELOC_OVFL: the first relocation contains their number


def _coff(data: bytes) -> ObjectFile:
    image = data[:2] == b"MZ"
    at = struct.unpack_from("<I", data, 0x3C)[0] + 4 if image else 0
    _, count, _, table, symbol_count, optional, _ = struct.unpack_from("<HHIIIHH", data, at)
    (base,) = struct.unpack_from("<Q", data, at + 20 + 24) if image else (0,)
    texts = table + symbol_count * _COFF_SYMBOL.size

    def name_of(raw: bytes) -> str:
        if raw[:4] == b"\0\0\0\0":
            return _text(data, texts + struct.unpack_from("<I", raw, 4)[0])
        if raw[:1] == b"/":
            return _text(data, texts + int(raw.rstrip(b"\0")[1:]))
        return raw.rstrip(b"\0").decode()

    headers = [struct.unpack_from("<8sIIIIIIHHI", data, at + 20 + optional + i * 40) for i in range(count)]
    sections: dict[str, bytes] = {}
    for raw, virtual, _, length, offset, *_ in headers:
        size = min(virtual, length) if image else length  # in an image a section is padded with zeros
        sections.setdefault(name_of(raw), data[offset : offset + size] if offset else b"")
    symbols: dict[int, tuple[str, int]] = {}
    i = 0
    while i < symbol_count:  # by index, since auxiliary records follow some symbols
        raw, value, section, _, _, auxiliary_count = _COFF_SYMBOL.unpack_from(data, table + i * _COFF_SYMBOL.size)
        symbols[i] = name_of(raw), value + (headers[section - 1][2] if section > 0 else 0)
        i += 1 + auxiliary_count
    calls = []
    for raw, _, _, _, _, at_relocations, _, number, _, flags in headers:
        if image or name_of(raw) != ".text":
            continue
        overflows = number == 0xFFFF and bool(flags & _RELOCATION_OVERFLOW)
        end = _COFF_RELOCATION.unpack_from(data, at_relocations)[0] if overflows else number
        for k in range(int(overflows), end):
            address, symbol, _ = _COFF_RELOCATION.unpack_from(data, at_relocations + k * _COFF_RELOCATION.size)
            calls.append((address, symbols[symbol][0]))
    return ObjectFile(sections, dict(symbols.values()), calls, base)


_MACHO_SYMBOL, _MACHO_SECTION = struct.Struct("<IBBHQ"), struct.Struct("<16s16sQQIIIIIIII")
_SEGMENT, _SYMBOLS, _STABS = 0x19, 0x2, 0xE0


def _macho(data: bytes) -> ObjectFile:
    sections: dict[str, bytes] = {}
    all_symbols: list[tuple[str, int]] = []
    relocations: list[tuple[int, int, int]] = []  # code sections: address, offset, count
    symbols: dict[str, int] = {}
    (count,) = struct.unpack_from("<I", data, 16)
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command == _SEGMENT:
            (number,) = struct.unpack_from("<I", data, at + 64)
            for i in range(number):
                header = _MACHO_SECTION.unpack_from(data, at + 72 + i * 80)
                raw, _, start, length, offset, _, first, relocation_count, *_ = header
                name = raw.rstrip(b"\0").decode()
                sections.setdefault(name.replace("__", ".", 1), data[offset : offset + length] if offset else b"")
                if name == "__text":
                    relocations.append((start, first, relocation_count))
        elif command == _SYMBOLS:
            table, number, texts, _ = struct.unpack_from("<IIII", data, at + 8)
            for i in range(number):
                name_at, kind, _, _, value = _MACHO_SYMBOL.unpack_from(data, table + i * _MACHO_SYMBOL.size)
                name = _text(data, texts + name_at).removeprefix("_")
                all_symbols.append((name, value))
                if not kind & _STABS:  # debugger symbols
                    symbols[name] = value
        at += size
    calls = []
    for start, first, relocation_count in relocations:
        for i in range(relocation_count):
            address, word = struct.unpack_from("<iI", data, first + i * 8)
            if word >> 27 & 1:  # the relocation refers to a symbol
                calls.append((start + address, all_symbols[word & 0xFFFFFF][0]))
    return ObjectFile(sections, symbols, calls)
