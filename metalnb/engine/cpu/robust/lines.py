"""The lines of a kernel's accesses: the kernel compiled once more, with lines, when a fault is to be explained.

clang's SPIR-V backend writes no lines, and keeping them would make each compilation slower. With them clang prints the
same intermediate code, whose instructions know their places. Its blocks and the module's are walked side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import NamedTuple

from ..spirv.module import BasicBlock, Module
from ..spirv.opcodes import Spv
from .proofs.pointers import Access, Roots

__all__ = ["SourcePlace", "loop_places", "places"]

_PLACE = re.compile(r"^!(\d+) = (?:distinct )?!(DILocation|DISubprogram|DILexicalBlock(?:File)?|DIFile)\((.*)\)$")
_FIELD = re.compile(r'(\w+): (?:!(\d+)|(\d+)|"([^"]*)")')
_DEBUG = re.compile(r"!dbg !(\d+)")
_LABEL = re.compile(r"^([-\w.$]+|\"[^\"]+\"):")
_TARGET = re.compile(r"label %([-\w.$]+|\"[^\"]+\")")
_MADE = re.compile(r"^%([-\w.$]+) = ")
_OTHER = re.compile(
    r"^(%\S+ = )?(tail |notail )?(atomicrmw|cmpxchg|load atomic|store atomic|call .*@(llvm\.mem|\S*[aA]tom))"
)
_LOAD = re.compile(r"^%\S+ = load ")
_STORE = re.compile(r"^store ")


class SourcePlace(NamedTuple):
    """A place in one of the author's texts, as clang was given it.

    Attributes
    ----------
    file : str
    line, column : int
        From 1.
    """

    file: str
    line: int
    column: int


def places(
    printed: str, module: Module, roots: Roots, found: list[Access], is_own: Callable[[str], bool],
) -> dict[int, SourcePlace]:  # fmt: skip
    """Return the place of each access, by its number; one that is not found is left out.

    Parameters
    ----------
    printed : str
        clang's intermediate code with its metadata.
    found : list of Access
        Of the module.
    is_own : callable
        Tells whether a file is the author's.
    """
    notes = _notes(printed)
    names = {i.words[1]: _text(i.words[2:]) for i in module.preamble if i.op == Spv.NAME}
    told: dict[int, SourcePlace] = {}
    for function in module.functions:
        name = names.get(function.name, "")
        body = _body(printed, name)
        if function.blocks and body:
            pairs = _side_by_side(module, {b.label: b for b in function.blocks}, function.blocks[0].label, body)
            for block, lines in pairs:
                told.update(_matched(block, lines, module, roots, found, notes, is_own))
    return told


def loop_places(
    printed: str, module: Module, heads: Collection[int], is_own: Callable[[str], bool],
) -> list[SourcePlace]:  # fmt: skip
    """Return the places of loops, by the labels of their heads; those that are not found are left out."""
    notes, found = _notes(printed), []
    names = {i.words[1]: _text(i.words[2:]) for i in module.preamble if i.op == Spv.NAME}
    for function in module.functions:
        body = _body(printed, names.get(function.name, ""))
        if function.blocks and body:
            blocks = {b.label: b for b in function.blocks}
            pairs = _side_by_side(module, blocks, function.blocks[0].label, body)
            order = [name for name, _ in body]
            for block, lines in pairs:
                if block.label in heads:
                    # The branch back is the loop's own; what stands in its head may be a part of its condition.
                    name = next(n for n, some in body if some is lines)
                    backs = [
                        line for n, some in body[order.index(name) :] for line in some
                        if line.startswith("br ") and "!llvm.loop" in line and f"label %{name}" in line
                    ]  # fmt: skip
                    told = [_located(line, notes, is_own) for line in (*backs, *lines)]
                    found += [place for place in told if place][:1]
    return sorted(found)


def _text(words: list[int]) -> str:
    return b"".join(w.to_bytes(4, "little") for w in words).rstrip(b"\0").decode(errors="replace")


def _notes(printed: str) -> dict[int, tuple[str, dict[str, str]]]:
    found = {}
    for line in printed.splitlines():
        match = _PLACE.match(line)
        if match:
            fields = {m[1]: m[2] or m[3] or m[4] or "" for m in _FIELD.finditer(match[3])}
            found[int(match[1])] = match[2], fields
    return found


def _body(printed: str, name: str) -> list[tuple[str, list[str]]]:
    """Return the blocks of a function in clang's printed code: label and lines, the entry first."""
    lines = printed.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith("define ") and (
        f"@{name}(" in line or f'@"{name}"(' in line)), None)  # fmt: skip
    if start is None:
        return []
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for line in lines[start + 1 :]:
        if line == "}":
            break
        label = _LABEL.match(line)
        if label:
            blocks.append((label[1], []))
        elif line.strip():
            blocks[-1][1].append(line.strip())
    return blocks if blocks[0][1] else blocks[1:]


def _side_by_side(
    module: Module, blocks: dict[int, BasicBlock], entry: int, body: list[tuple[str, list[str]]],
) -> list[tuple[BasicBlock, list[str]]]:  # fmt: skip
    named = dict(body)
    ahead, seen, pairs = [(entry, body[0][0])], set(), []
    while ahead:
        label, name = ahead.pop()
        if label in seen or name not in named:
            continue
        seen.add(label)
        pairs.append((blocks[label], named[name]))
        ends = " ".join(named[name][_last(named[name]) :])
        ahead += zip(module.targets(blocks[label]), _TARGET.findall(ends), strict=False)
    return pairs


def _last(lines: list[str]) -> int:
    """Return where a block's terminator begins: a switch has a line for each case."""
    return next((n for n, line in enumerate(lines) if line.startswith(("br ", "switch "))), len(lines))


def _matched(
    block: BasicBlock, lines: list[str], module: Module, roots: Roots, found: list[Access],
    notes: dict[int, tuple[str, dict[str, str]]], is_own: Callable[[str], bool],
) -> dict[int, SourcePlace]:  # fmt: skip
    inside = set(block.instructions)
    mine: dict[str, list[list[Access]]] = {"load": [], "store": [], "other": []}
    for access in found:
        i = access.instruction
        if i not in inside or _added(access, module, roots):
            continue
        kind = {int(Spv.LOAD): "load", int(Spv.STORE): "store"}.get(i.op, "other")
        if mine[kind] and mine[kind][-1][0].instruction is i:
            mine[kind][-1].append(access)
        else:
            mine[kind].append([access])
    # clang's backend writes an atomic load or store as a volatile one now and then: both readings are tried.
    atomic = re.compile(r"^(%\S+ = load|store) atomic ")
    loads, stores = ([x for x in lines if pattern.match(x)] for pattern in (_LOAD, _STORE))
    others = [x for x in lines if _OTHER.match(x)]
    if len(mine["load"]) + len(mine["store"]) != len(loads) + len(stores):
        loads, stores = ([x for x in some if not atomic.match(x)] for some in (loads, stores))
    else:
        others = [x for x in others if not atomic.match(x)]
    theirs = {"load": loads, "store": stores, "other": others}
    made = {m[1]: line for line in lines if (m := _MADE.match(line))}
    told = {}
    for kind, groups in mine.items():
        if len(groups) == len(theirs[kind]):
            for group, line in zip(groups, theirs[kind], strict=True):
                place = _place(line, made, notes, is_own)
                if place:
                    told.update({a.number: place for a in group})
    return told


def _added(access: Access, module: Module, roots: Roots) -> bool:
    """Say whether an access is none of clang's: a built-in variable, or a counter that a pass put into memory."""
    root = module.definitions[roots.place(access.pointer).root]
    words = access.instruction.words
    volatile = words[3 if access.kind == "writes" else 4 :][:1] == [1]
    return root.op == Spv.VARIABLE and (root.words[3] == 1 or (root.words[3] == 7 and volatile))


def _place(
    line: str, made: dict[str, str], notes: dict[int, tuple[str, dict[str, str]]], is_own: Callable[[str], bool],
) -> SourcePlace | None:  # fmt: skip
    """Return the author's place of an instruction; the column is that of its pointer where both have one line."""
    own = _located(line, notes, is_own)
    pointer = re.search(r"ptr(?: addrspace\(\d+\))? %([-\w.$]+)", line)
    above = _located(made.get(pointer[1], ""), notes, is_own) if pointer else None
    return above if above and own and above[:2] == own[:2] else own


def _located(
    line: str, notes: dict[int, tuple[str, dict[str, str]]], is_own: Callable[[str], bool],
) -> SourcePlace | None:  # fmt: skip
    debug = _DEBUG.search(line)
    at = int(debug[1]) if debug else -1
    while at in notes:
        fields = notes[at][1]
        file = _file(int(fields.get("scope", "-1")), notes)
        if is_own(file) and fields.get("line", "0") != "0":
            return SourcePlace(file, int(fields["line"]), int(fields.get("column", "1")))
        at = int(fields.get("inlinedAt", "-1"))
    return None


def _file(scope: int, notes: dict[int, tuple[str, dict[str, str]]]) -> str:
    while scope in notes:
        kind, fields = notes[scope]
        if kind == "DIFile":
            return fields.get("filename", "").removeprefix("./")
        scope = int(fields.get("file") or fields.get("scope") or "-1")
    return ""
