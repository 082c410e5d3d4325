"""Instrument the LLVM IR of a kernel, before it is optimized, to record which variables a thread has set.

Each variable that clang leaves unset gets a shadow of the same type: all zeros at first, all ones once it has been set.
A load of the variable tests its shadow. The optimizer sees both, so it removes the shadow of a variable that is always
set. A variable whose address has other uses than loads and stores is not instrumented.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...llvm.instructions import NAME, IRInstruction
from ...llvm.llvm_lines import parse_lines
from ...llvm.llvm_types import IRType

__all__ = ["insert_set_flags"]

_Lines = Sequence[tuple[str, IRInstruction | None]]
_OPCODES = frozenset({"alloca", "getelementptr", "load", "store", "call"})
_SCALARS = frozenset({"i8", "i16", "i32", "i64", "float", "half"})
_FILL = "llvm.memset.p0.i64"
_UNSET = ", !annotation "  # metadata of the store with which clang marks an unset variable
_BITS = {"float": "i32", "half": "i16"}
_OF_METAL = re.compile(r"@\"?_Z\w{0,14}5metal")  # a function of metalnb's headers
_RUNTIME = """
declare void @metalnb_never_set(i32) cold nounwind
define internal void @metalnb_used(i64 %set, i32 %code) alwaysinline nounwind {
  %never = icmp eq i64 %set, 0
  br i1 %never, label %report, label %done
report:
  call void @metalnb_never_set(i32 %code)
  br label %done
done:
  ret void
}
"""


def insert_set_flags(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the IR with shadow variables, and the variables' names by the number that the runtime receives."""
    names: list[str] = []
    lines: list[str] = []
    function: list[tuple[str, IRInstruction | None]] | None = None
    for line, inst in parse_lines(text, _OPCODES):
        if line.startswith("define ") and not _OF_METAL.search(line):
            function = []
        if function is None:
            lines.append(line)
            continue
        function.append((line, inst))
        if line == "}":
            lines += _instrument(function, names)
            function = None
    return "\n".join(lines) + _RUNTIME, tuple(names)


def _instrument(lines: _Lines, names: list[str]) -> Iterator[str]:
    owner = _owners(lines)
    numbers: dict[str, int] = {}
    for i, (line, inst) in enumerate(lines):
        yield line
        if inst is None:
            continue
        if inst.opcode == "alloca":
            if inst.result in owner:
                numbers[inst.result] = len(names)
                names.append(inst.result.strip('%"'))
                yield f"  {_flag(inst.result)} = alloca {inst.element}, align 16"
        elif (address := _followed_address(inst)) in owner:
            yield from _shadow_instructions(inst, _flag(address), numbers[owner[address]], i)


def _shadow_instructions(inst: IRInstruction, flag: str, number: int, i: int) -> Iterator[str]:
    """Yield the instructions on the shadow for an instruction that uses the variable."""
    value = 0 if _UNSET in inst.metadata else -1
    if inst.opcode == "getelementptr":
        yield f"  {_flag(inst.result)} = {inst.renamed_text({inst.operands[0].text: flag})}{inst.metadata}"
    elif inst.word == _FILL:
        size, volatile = inst.operands[2:]
        yield f"  call void @{_FILL}(ptr {flag}, i8 {value}, {size}, {volatile}){inst.metadata}"
    elif inst.opcode == "store":
        kind = inst.operands[0].type.text
        yield f"  store {_BITS.get(kind, kind)} {value}, ptr {flag}, align 1, !nosanitize !{{}}"
    else:
        kind = _BITS.get(inst.type.text, inst.type.text)
        code = number << 1 | (kind == inst.type.text)
        shadow, wide = f'%"$f{i}"', f'%"$g{i}"'
        yield f"  {shadow} = load {kind}, ptr {flag}, align 1, !nosanitize !{{}}"
        yield f"  {wide} = {'sext ' + kind if kind != 'i64' else 'bitcast i64'} {shadow} to i64"
        yield f"  call void @metalnb_used(i64 {wide}, i32 {code}){inst.debug_suffix}"


def _flag(name: str) -> str:
    return '%"$set ' + name.strip('%"') + '"'


def _followed_address(inst: IRInstruction) -> str:
    """Return the address of an access, or of a step that the shadow can follow, or an empty string."""
    if inst.opcode in {"load", "store"}:
        ir_type = inst.type if inst.opcode == "load" else inst.operands[0].type
        is_special = inst.text.startswith((f"{inst.opcode} atomic", f"{inst.opcode} volatile"))
        return "" if is_special or ir_type.text not in _SCALARS else inst.pointer.text
    return inst.operands[0].text if inst.opcode == "getelementptr" or inst.word == _FILL else ""


def _holds_scalars(ir_type: IRType | None) -> bool:
    """Return whether a variable is a scalar or a struct, or an array of them."""
    while ir_type is not None and ir_type.kind == "array":
        ir_type = ir_type.element
    return ir_type is not None and (ir_type.text in _SCALARS or ir_type.text.startswith(("%struct.", '%"struct.')))


def _owners(lines: _Lines) -> dict[str, str]:
    """Return each pointer to or into an instrumented variable, with the variable."""
    owner: dict[str, str] = {}
    unset: set[str] = set()
    dropped: set[str] = set()
    for line, inst in lines:
        if inst is not None and inst.opcode == "alloca" and _holds_scalars(inst.element):
            owner[inst.result] = inst.result
            continue
        names = [name for name in NAME.findall(line.partition(", !dbg")[0]) if name in owner]
        if not names or (inst is not None and inst.word.startswith("llvm.lifetime.")):
            continue
        if inst is None or names != [_followed_address(inst)]:
            dropped |= {owner[name] for name in names}
        elif inst.opcode == "getelementptr":
            owner[inst.result] = owner[names[0]]
        elif inst.opcode != "load" and _UNSET in inst.metadata:
            unset.add(owner[names[0]])
    instrumented = unset - dropped
    return {pointer: root for pointer, root in owner.items() if root in instrumented}
