"""Edits that make the LLVM IR of a function smaller: branches decided, instructions and their uses removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from metalnb.engine.llvm.instruction_syntax import read_instruction
from metalnb.engine.llvm.instructions import NAME, IRFunction, IRInstruction
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.llvm.llvm_types import IRType
from metalnb.engine.llvm.llvm_writer import replace_function
from metalnb.engine.vectorizer.vectorize import THREAD_FUNCTION

__all__ = ["KINDS", "Edit", "apply_edits", "entry", "merge_blocks", "prune"]


class Edit(NamedTuple):
    """A change to one instruction.

    Attributes
    ----------
    block, number
        Where it is.
    text : str
        What it becomes; nothing if it is empty.
    value : str
        What takes the place of its result.
    """

    block: str
    number: int
    text: str = ""
    value: str = ""


def entry(text: str) -> IRFunction:
    """Return the function of one thread."""
    return read_module(text).functions[THREAD_FUNCTION]


# ---- Which edits there are.

Finder = Callable[[IRInstruction, Mapping[IRType, str]], Iterator[Edit]]
_ZEROS = {"integer": "0", "float": "0.0", "pointer": "null"}
_EFFECTS = frozenset({"store", "atomicrmw", "cmpxchg", "fence"})


def _zero(ir_type: IRType) -> str:
    if ir_type.text in {"half", "bfloat"}:
        return "0xH0000" if ir_type.text == "half" else "0xR0000"
    return "false" if ir_type.text == "i1" else _ZEROS.get(ir_type.kind, "zeroinitializer")


def _one(ir_type: IRType) -> str:
    """Return 1, or 0 for a type without it."""
    ones = {"half": "0xH3C00", "bfloat": "0xR3F80", "float": "1.0", "double": "1.0", "i1": "true"}
    return ones.get(ir_type.text, "1" if ir_type.kind == "integer" else _zero(ir_type))


def _has_effect(inst: IRInstruction) -> bool:
    """Return whether an instruction does more than compute its result."""
    return inst.is_terminator or inst.opcode in _EFFECTS or (inst.opcode == "call" and not inst.result)


def _to_a_block(choice: int) -> Finder:
    """Return the edits that decide each branch for its first, second, … or last target."""

    def found(inst: IRInstruction, _: Mapping[IRType, str]) -> Iterator[Edit]:
        if inst.is_terminator and len(inst.targets) > 1 and choice < len(inst.targets):
            yield Edit("", 0, f"br label {inst.targets[choice]}")

    return found


def _removed(inst: IRInstruction, _: Mapping[IRType, str]) -> Iterator[Edit]:
    if _has_effect(inst) and not inst.is_terminator:
        yield Edit("", 0, "", _zero(inst.type))


def _as_zero(inst: IRInstruction, _: Mapping[IRType, str]) -> Iterator[Edit]:
    if inst.result:
        yield Edit("", 0, "", _zero(inst.type))


def _as_another(inst: IRInstruction, first: Mapping[IRType, str]) -> Iterator[Edit]:
    """Yield the replacement of a value by its operands, or by the function's first value of its type."""
    operands = [operand.text for operand in inst.operands if operand.type == inst.type]
    for name in dict.fromkeys((*operands, first.get(inst.type, inst.result))):
        if inst.result and name != inst.result:
            yield Edit("", 0, "", name)


def _with_a_constant(inst: IRInstruction, _: Mapping[IRType, str]) -> Iterator[Edit]:
    for operand in inst.operands:
        if NAME.fullmatch(operand.text):
            for constant in dict.fromkeys((_zero(operand.type), _one(operand.type))):
                yield Edit("", 0, inst.renamed_text({operand.text: constant}))


def _without_flags(inst: IRInstruction, _: Mapping[IRType, str]) -> Iterator[Edit]:
    """Yield the removal of flags and metadata, which promise what a smaller kernel may no longer keep."""
    if inst.flags or inst.metadata:
        yield Edit("", 0, f"{inst.opcode} {inst.text.removeprefix(f'{inst.opcode} {inst.flag_prefix}')}".rstrip())


_FINDERS = (
    _without_flags, _to_a_block(-1), _to_a_block(0), _removed, _as_zero, _as_another, _to_a_block(1), _with_a_constant,
)  # fmt: skip


def _all(finder: Finder) -> Callable[[IRFunction], list[Edit]]:
    def found(function: IRFunction) -> list[Edit]:
        begin = reversed(function.blocks[function.entry])
        first = {inst.type: inst.result for inst in begin if inst.result}  # they dominate all other blocks
        return [
            edit._replace(block=label, number=i)
            for label, block in function.blocks.items() for i, inst in enumerate(block) for edit in finder(inst, first)
        ]  # fmt: skip

    return found


KINDS = tuple(map(_all, _FINDERS))  # of edits of a function, the strongest first


# ---- Making them.


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text after some edits, without what they leave unused."""
    function = entry(text)
    chosen = {(edit.block, edit.number): edit for edit in edits}
    names: dict[str, str] = {}
    for label, block in function.blocks.items():
        for i, inst in enumerate(block):
            if (label, i) in chosen and not chosen[label, i].text:
                names[inst.result] = chosen[label, i].value
    names = {name: _end_of(name, names, _zero(ir_type)) for name, ir_type in _types(function, names).items()}
    for label, block in function.blocks.items():
        function.blocks[label] = []
        for i, inst in enumerate(block):
            edit = chosen.get((label, i))
            if edit is None:
                function.blocks[label].append(_written(inst, inst.text, names, inst.metadata))
            elif edit.text:
                function.blocks[label].append(_written(inst, edit.text, names))
    return _with_body(text, function)


def _types(function: IRFunction, names: Mapping[str, str]) -> dict[str, IRType]:
    return {inst.result: inst.type for inst in function if inst.result in names}


def _end_of(name: str, names: Mapping[str, str], zero: str) -> str:
    """Follow what takes the place of what; values that replace one another become zero."""
    for _ in names:
        if name not in names:
            return name
        name = names[name]
    return zero if name in names else name


def _written(inst: IRInstruction, text: str, names: Mapping[str, str], metadata: str = "") -> IRInstruction:
    """Return an instruction with another text and metadata, and values renamed in it."""
    text = NAME.sub(lambda found: names.get(found[0], found[0]), text)
    again = read_instruction(f"  {f'{inst.result} = ' if inst.result else ''}{text}")
    again.metadata = metadata
    return again


def _with_body(text: str, function: IRFunction) -> str:
    """Write a function after removing the blocks that nothing reaches, and the values that nothing uses."""
    reached, left = set[str](), [function.entry]
    while left:
        label = left.pop()
        if label not in reached:
            reached.add(label)
            left += function.blocks[label][-1].targets
    edges = Counter((label, to) for label in reached for to in function.blocks[label][-1].targets)
    function.blocks = {
        label: [_from_edges(inst, label, edges) for inst in block]
        for label, block in function.blocks.items() if label in reached
    }  # fmt: skip
    by_name = {inst.result: inst for inst in function if inst.result}
    used, worklist = set[str](), [inst for inst in function if _has_effect(inst)]
    while worklist:
        for name in worklist.pop().used_names:
            if name in by_name and name not in used:
                used.add(name)
                worklist.append(by_name[name])
    for label, block in function.blocks.items():
        function.blocks[label] = [inst for inst in block if _has_effect(inst) or inst.result in used]
    return replace_function(text, function).replace("\n}\n\n", "\n}\n")


def _from_edges(inst: IRInstruction, label: str, edges: Mapping[tuple[str, str], int]) -> IRInstruction:
    """Return a phi with one value for each edge to its block; any other instruction as it is."""
    if inst.opcode != "phi":
        return inst
    counted, kept = Counter[str](), list[str]()
    for operand, source in zip(inst.operands, inst.targets, strict=True):
        counted[source] += 1
        if counted[source] <= edges.get((source, label), 0):
            kept.append(f"[ {operand.text}, {source} ]")
    return inst if len(kept) == len(inst.targets) else _written(inst, f"phi {inst.type} {', '.join(kept)}", {})


def merge_blocks(text: str) -> str:
    """Return a text whose blocks are joined where one leads only to the next, which has no other predecessor."""
    function = entry(text)
    blocks, names = function.blocks, dict[str, str]()
    edges = Counter(to for block in blocks.values() for to in block[-1].targets)
    joined = dict[str, str]()
    for label in list(blocks):
        while label in blocks and blocks[label][-1].opcode == "br" and len(targets := blocks[label][-1].targets) == 1:
            to = targets[0]
            if edges[to] != 1 or to in {label, function.entry}:
                break
            names |= {inst.result: inst.operands[0].text for inst in blocks[to] if inst.opcode == "phi"}
            blocks[label][-1:] = [inst for inst in blocks.pop(to) if inst.opcode != "phi"]
            joined[to] = label
    names = {name: _end_of(name, names, "") for name in names} | {to: _end_of(to, joined, "") for to in joined}
    for label, block in blocks.items():
        blocks[label] = [_written(inst, inst.text, names, inst.metadata) for inst in block]
    return _with_body(text, function)


def prune(text: str) -> str:
    """Return a text without the declarations, constants, attributes and metadata that its function does not need."""
    module = read_module(text)
    function = module.functions[THREAD_FUNCTION]
    body = "\n".join(f"{inst.text}{inst.metadata}" for inst in function)
    needless = {line for name, line in (module.declarations | module.globals).items() if f"@{name}" not in body}
    needless |= {f"${name} = comdat any" for name, line in module.globals.items() if line in needless}
    if "!" not in body:
        needless |= {*module.metadata.values()}
    used = {word for line in module.declarations.values() if line not in needless for word in line.split()}
    needless |= {line for group, line in module.attributes.items() if group not in used}
    shorter = {line: line.partition(' "')[0] + " }" for line in module.attributes.values() if '"' in line}
    shorter[function.head] = f"define void @{THREAD_FUNCTION}({', '.join(map(str, function.parameters))}) {{"
    lines = (line for line in text.splitlines() if line and line not in needless and not line.startswith("; "))
    return "\n".join(shorter.get(line, line) for line in lines) + "\n"
