"""Line tables: what clang writes for three systems, and tables written here byte by byte from the DWARF 4 standard."""

import platform
import struct
import subprocess
from pathlib import Path

import pytest

import metalnb as mnb
from metalnb.engine.clang import driver
from metalnb.engine.cpu.debug_lines import DebugLines, Line
from metalnb.engine.cpu.linking import link
from metalnb.engine.cpu.object_files import object_file

# Each marker is a symbol before one `nop`; an assembler statement stays where it is written.
MARKERS = '#define MARK(name) __asm__ volatile(".globl _" name "\\n_" name ": nop")\n'
FIRST = """static inline __attribute__((always_inline)) void inner(void) { MARK("in_inner"); }
static inline __attribute__((always_inline)) void middle(void) {
    inner();
}
void outer(void) {
    MARK("in_outer");
  middle(); MARK("after_middle");
}
"""
SECOND = """static inline __attribute__((always_inline)) void helper(void) {
   MARK("in_helper");
}
void second(void) { for (int k = 0; k < 1000; k += 2) MARK("before_helper");
helper(); }
"""
MARKED = {
    "in_inner": [Line("first.c", 1, 65), Line("first.c", 3, 5), Line("first.c", 7, 3)],
    "in_outer": [Line("first.c", 6, 5)],
    "after_middle": [Line("first.c", 7, 13)],
    "in_helper": [Line("second.c", 2, 4), Line("second.c", 5, 1)],
    "before_helper": [Line("second.c", 4, 55)],
}
SYSTEMS = ["x86_64-linux-gnu", "aarch64-linux-gnu", "x86_64-windows-gnu", "aarch64-macos11"]


def compiled(folder: Path, name: str, text: str, triple: str) -> bytes:
    """Return the object file of a C file with line tables."""
    source, target = folder / name, folder / f"{name}.o"
    source.write_text(f"{MARKERS}#line 1\n{text}", "utf-8")
    try:
        clang = driver.clang_command()
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    flags = ("--target=" + triple, "-O2", "-fno-unroll-loops", "-gdwarf-4", "-gline-tables-only")
    subprocess.run([*clang, *flags, "-c", name, "-o", target.name], cwd=folder, check=True)
    return target.read_bytes()


@pytest.mark.skipif(platform.system() != "Linux", reason="links with ziglang's files for Linux")
@pytest.mark.parametrize("triple", SYSTEMS)
def test_chain_has_an_inlined_position_and_each_call_on_the_way(triple: str, tmp_path: Path) -> None:
    """Two files are linked to one library, as a kernel and its runtime are; on macOS the object file has the tables."""
    parts = [compiled(tmp_path, "first.c", FIRST, triple), compiled(tmp_path, "second.c", SECOND, triple)]
    files = parts if "macos" in triple else [link(*parts, triple=triple)]
    found = {}
    for file in files:
        lines = DebugLines(file)
        marks = {name.lstrip("_"): at for name, at in object_file(file).symbols.items()}
        found |= {name: lines.chain(marks[name]) for name in MARKED if name in marks}
    assert found == MARKED


# ---- Tables written by hand.

_OPERANDS = (0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2)  # of the opcodes 1 to 13; the standard has 12
_SPECIAL, _BASE, _SPAN = 14, -3, 12  # the first special opcode; special opcodes add -3 to 8 to the line
_COPY, _CONSTANT, _END = b"\x01", b"\x08", b"\x00\x01\x01"


def uleb(number: int) -> bytes:
    last = number < 0x80
    return bytes([number]) if last else bytes([number & 0x7F | 0x80]) + uleb(number >> 7)


def address(at: int) -> bytes:
    return b"\x00\x09\x02" + struct.pack("<Q", at)


def special(bytes_on: int, lines_on: int) -> bytes:
    return bytes([_SPECIAL + (lines_on - _BASE) + _SPAN * bytes_on])


def table(program: bytes, version: int = 4) -> bytes:
    """Return a unit's line table with the files a.metal (1) and b.metal (2)."""
    head = struct.pack("<BBBbBB", 1, 1, 1, _BASE, _SPAN, _SPECIAL) + bytes(_OPERANDS) + b"folder\0\0"
    head += b"".join(name + b"\0\1" + uleb(300) + b"\0" for name in (b"a.metal", b"b.metal")) + b"\0"
    head += b"\1\1"  # a header may have more fields, and states its length
    content = struct.pack("<HI", version, len(head)) + head + program
    return struct.pack("<I", len(content)) + content


def library(**sections: bytes) -> bytes:
    """Return an ELF file with these sections, whose names get a dot in front."""
    parts = {"": b"", **{f".{name}": content for name, content in sections.items()}}
    names = b"\0".join(name.encode() for name in parts) + b"\0"
    parts[".shstrtab"], at, data, headers = names + b".shstrtab\0", 64, b"", b""
    for name, content in parts.items():
        name_at = (b"\0" + parts[".shstrtab"]).index(f"\0{name}\0".encode())
        headers += struct.pack("<IIQQQQIIQQ", name_at, 1, 0, 0, at + len(data), len(content), 0, 0, 1, 0)
        data += content
    head = b"\x7fELF\x02".ljust(0x28, b"\0") + struct.pack("<Q", at + len(data))
    return head.ljust(0x3A, b"\0") + struct.pack("<HHH", 64, len(parts), len(parts) - 1) + data + headers


def each_line(lines: DebugLines, last: int) -> list[tuple[str, int, int] | None]:
    """Return the line of each position up to the last one."""
    found = [lines.chain(at) for at in range(last + 1)]
    assert all(len(chain) <= 1 for chain in found)
    return [tuple(chain[0]) if chain else None for chain in found]


@pytest.mark.parametrize(("program", "at", "expected"), [
    pytest.param(special(0, 6) + special(9, -3) + special(0, -3) + special(0, 8), 9, ("a.metal", 9, 0),
                 id="special opcodes"),
    pytest.param(b"\x02" + uleb(300) + _COPY, 300, ("a.metal", 1, 0), id="advance_pc"),
    pytest.param(b"\x03" + uleb(300) + _COPY + b"\x03\x9b\x7f\x02\x04" + _COPY, 4, ("a.metal", 200, 0),
                 id="advance_line, up by 300 and down by 101"),
    pytest.param(b"\x04\x02" + _COPY, 0, ("b.metal", 1, 0), id="set_file"),
    pytest.param(b"\x05" + uleb(129) + _COPY, 0, ("a.metal", 1, 129), id="set_column"),
    pytest.param(_CONSTANT + special(1, 1), (255 - _SPECIAL) // _SPAN + 1, ("a.metal", 2, 0), id="const_add_pc"),
    pytest.param(b"\x09\x34\x12" + _COPY, 0x1234, ("a.metal", 1, 0), id="fixed_advance_pc"),
    pytest.param(b"\x06\x07\x0a\x0b\x0c\x81\x01" + special(2, 2), 2, ("a.metal", 3, 0), id="opcodes that only mark"),
    pytest.param(b"\x0d\x81\x01\x05" + special(2, 2), 2, ("a.metal", 3, 0), id="an unknown opcode with two operands"),
    pytest.param(b"\x00\x03\x04\x81\x01" + special(2, 2), 2, ("a.metal", 3, 0), id="a discriminator"),
])  # fmt: skip
def test_opcode_sets_the_position(program: bytes, at: int, expected: tuple[str, int, int]) -> None:
    lines = DebugLines(library(debug_line=table(address(0) + program + b"\x02\x01" + _END)))
    assert lines.chain(at) == [Line(*expected)]
    assert lines.chain(at + 1) == []
    assert at == 0 or lines.chain(at - 1) != lines.chain(at)


def test_line_extends_to_the_next_row_and_a_sequence_to_its_end() -> None:
    """A second sequence starts again at line 1 of the first file."""
    first = address(2) + b"\x04\x02\x05\x07" + special(0, 4) + special(3, 1) + b"\x02\x02" + _END
    second = address(9) + _COPY + b"\x02\x02" + _END
    found = each_line(DebugLines(library(debug_line=table(first + second))), 12)
    b5, b6, a1 = ("b.metal", 5, 7), ("b.metal", 6, 7), ("a.metal", 1, 0)
    assert found == [None, None, b5, b5, b5, b6, b6, None, None, a1, a1, None, None]


def test_sequences_may_be_in_any_order() -> None:
    """The end of a sequence does not hide the first line of one that starts at the same address."""
    later = address(4) + special(0, 8) + b"\x02\x02" + _END
    earlier = address(2) + special(0, 4) + b"\x02\x02" + _END
    found = each_line(DebugLines(library(debug_line=table(later + earlier))), 6)
    assert found == [None, None, ("a.metal", 5, 0), ("a.metal", 5, 0), ("a.metal", 9, 0), ("a.metal", 9, 0), None]


def test_last_row_of_an_address_holds() -> None:
    rows = address(0) + special(0, 1) + special(0, 1) + b"\x02\x01" + _END
    assert DebugLines(library(debug_line=table(rows))).chain(0) == [Line("a.metal", 3, 0)]


def test_tables_of_another_version_are_left_out() -> None:
    other, own = (table(address(at) + _COPY + b"\x02\x01" + _END, version) for at, version in ((0, 5), (1, 4)))
    assert each_line(DebugLines(library(debug_line=other + own)), 2) == [None, ("a.metal", 1, 0), None]


def test_file_without_line_tables_has_no_lines() -> None:
    assert DebugLines(library(text=b"\xc3")).chain(0) == []
    assert DebugLines(b"not a library").chain(0) == []


# A compile unit; a function with an attribute of each form to be skipped; code inlined in pieces, and from one address.
_ABBREVIATIONS = b"".join([
    b"\x01\x11\x01" + b"\x10\x17" + b"\x11\x01" + b"\0\0",
    b"\x02\x2e\x01" + b"".join(bytes([0x40 + i, form]) for i, form in enumerate(
        (0x08, 0x0D, 0x0F, 0x18, 0x19, 0x0B, 0x05, 0x06, 0x07, 0x0C, 0x0E, 0x10, 0x13),
    )) + b"\0\0",
    b"\x03\x1d\x01" + b"\x55\x17" + b"\x58\x0b\x59\x05\x57\x0b" + b"\0\0",
    b"\x04\x1d\x00" + b"\x11\x01\x12\x06" + b"\x58\x0b\x59\x0b" + b"\0\0",
]) + b"\0"  # fmt: skip
_SKIPPED = b"name\0" + b"\xff\x7e" + b"\xff\x01" + b"\x02\x91\x00" + b"1" + b"22" + b"4444" + b"8" * 8 + bytes(13)


def unit(children: bytes, *, base: int, table_at: int = 0, abbreviations_at: int = 0, version: int = 4) -> bytes:
    """Return a compile unit with one function that has these children."""
    content = struct.pack("<HIB", version, abbreviations_at, 8) + b"\x01" + struct.pack("<IQ", table_at, base)
    content += b"\x02" + _SKIPPED + children + b"\0\0"
    return struct.pack("<I", len(content)) + content


def in_pieces(ranges_at: int, line: int, children: bytes) -> bytes:
    """Return code inlined in several pieces from a line of b.metal, column 9."""
    return b"\x03" + struct.pack("<IBHB", ranges_at, 2, line, 9) + children + b"\0"


def in_one_piece(low: int, high: int, line: int) -> bytes:
    """Return code inlined from a line of a.metal."""
    return b"\x04" + struct.pack("<QIBB", low, high - low, 1, line)


def ranges(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<QQ", low, high) for low, high in (*pairs, (0, 0)))


def test_inlined_code_has_its_calls_outwards() -> None:
    """Ranges count from the unit's base, or from one that the list states; ends are exclusive."""
    rows = address(0) + special(0, 6) + b"\x02\x40" + _END
    info = unit(in_pieces(0, 700, in_one_piece(12, 14, 50)) + in_one_piece(30, 32, 60), base=10)
    pieces = ranges((1, 5), ((1 << 64) - 1, 20), (0, 2))
    lines = DebugLines(library(
        debug_line=table(rows), debug_info=info, debug_abbrev=_ABBREVIATIONS, debug_ranges=pieces,
    ))  # fmt: skip
    outer, inner, apart = Line("b.metal", 700, 9), Line("a.metal", 50, 0), Line("a.metal", 60, 0)
    calls = {11: [outer], 12: [inner, outer], 13: [inner, outer], 14: [outer], 20: [outer], 21: [outer]}
    calls |= {30: [apart], 31: [apart]}
    places = list(range(40))
    assert lines.chains(places) == [[Line("a.metal", 7, 0), *calls.get(at, [])] for at in places]
    assert [lines.chain(at) for at in places] == lines.chains(places)


def test_each_unit_has_its_own_tables() -> None:
    """A unit names its line table, its abbreviations and its ranges by their offsets; other versions are left out."""
    first, second = (table(address(at) + _COPY + b"\x02\x04" + _END) for at in (0, 4))
    second = second.replace(b"b.metal", b"c.metal")
    other = b"\x01\x11\x00\0\0\0"
    info = unit(in_pieces(0, 70, b""), base=0, version=5)
    info += unit(in_pieces(0, 71, b""), base=0, abbreviations_at=len(other))
    info += unit(in_pieces(32, 72, b""), base=4, table_at=len(first), abbreviations_at=len(other))
    pieces = ranges((1, 2)) * 2
    found = DebugLines(library(
        debug_line=first + second, debug_info=info, debug_abbrev=other + _ABBREVIATIONS, debug_ranges=pieces,
    ))  # fmt: skip
    assert found.chain(1) == [Line("a.metal", 1, 0), Line("b.metal", 71, 9)]
    assert found.chain(5) == [Line("a.metal", 1, 0), Line("c.metal", 72, 9)]
