"""Instrument the LLVM IR of a kernel, before it is optimised, to record which variables a thread has set.

Each variable that clang leaves unset gets a shadow of the same type: all zeros at first, all ones once it has been set.
A load of the variable tests its shadow. The optimiser sees both, so it removes the shadow of a variable that is always
set. A variable whose address has other uses than loads and stores is not instrumented.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...llvm.instructions import NAME, IRInstruction
from ...llvm.llvm_lines import lines_of
from ...llvm.llvm_types import IRType

__all__ = ["with_set_flags"]

_Lines = Sequence[tuple[str, IRInstruction | None]]
_READ = frozenset({"alloca", "getelementptr", "load", "store", "call"})
_SCALARS = frozenset({"i8", "i16", "i32", "i64", "float", "half"})
_FILL = "llvm.memset.p0.i64"
_UNSET = ", !annotation "  # metadata of the store with which clang marks an unset variable
_BITS = {"float": "i32", "half": "i16"}
_OF_METAL = re.compile(r"@\"?_Z\w{0,14}5metal")  # a function of metalnb's headers
_RUNTIME = """
declare void @metalnb_never_set(i32) cold nounwind
define internal void @metalnb_used(i64 %set, i32 %what) alwaysinline nounwind {
  %never = icmp eq i64 %set, 0
  br i1 %never, label %tell, label %done
tell:
  call void @metalnb_never_set(i32 %what)
  br label %done
done:
  ret void
}
"""


def with_set_flags(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the IR with shadow variables, and the variables' names by the number that the runtime receives."""
    names: list[str] = []
    lines: list[str] = []
    function: list[tuple[str, IRInstruction | None]] | None = None
    for line, made in lines_of(text, _READ):
        if line.startswith("define ") and not _OF_METAL.search(line):
            function = []
        if function is None:
            lines.append(line)
            continue
        function.append((line, made))
        if line == "}":
            lines += _function(function, names)
            function = None
    return "\n".join(lines) + _RUNTIME, tuple(names)


def _function(lines: _Lines, names: list[str]) -> Iterator[str]:
    owner = _owners(lines)
    numbers: dict[str, int] = {}
    for i, (line, made) in enumerate(lines):
        yield line
        if made is None:
            continue
        if made.opcode == "alloca":
            if made.result in owner:
                numbers[made.result] = len(names)
                names.append(made.result.strip('%"'))
                yield f"  {_flag(made.result)} = alloca {made.element}, align 16"
        elif (at := _address(made)) in owner:
            yield from _beside(made, _flag(at), numbers[owner[at]], i)


def _beside(made: IRInstruction, flag: str, number: int, i: int) -> Iterator[str]:
    """Yield the instructions on the shadow for an instruction that uses the variable."""
    value = 0 if _UNSET in made.metadata else -1
    if made.opcode == "getelementptr":
        yield f"  {_flag(made.result)} = {made.renamed_text({made.operands[0].text: flag})}{made.metadata}"
    elif made.word == _FILL:
        size, volatile = made.operands[2:]
        yield f"  call void @{_FILL}(ptr {flag}, i8 {value}, {size}, {volatile}){made.metadata}"
    elif made.opcode == "store":
        kind = made.operands[0].type.text
        yield f"  store {_BITS.get(kind, kind)} {value}, ptr {flag}, align 1, !nosanitize !{{}}"
    else:
        kind = _BITS.get(made.type.text, made.type.text)
        what = number << 1 | (kind == made.type.text)
        known, wide = f'%"$f{i}"', f'%"$g{i}"'
        yield f"  {known} = load {kind}, ptr {flag}, align 1, !nosanitize !{{}}"
        yield f"  {wide} = {'sext ' + kind if kind != 'i64' else 'bitcast i64'} {known} to i64"
        yield f"  call void @metalnb_used(i64 {wide}, i32 {what}){made.debug_suffix}"


def _flag(name: str) -> str:
    return '%"$set ' + name.strip('%"') + '"'


def _address(made: IRInstruction) -> str:
    """Return the address of an access, or of a step that the shadow can follow, or an empty string."""
    if made.opcode in {"load", "store"}:
        kind = made.type if made.opcode == "load" else made.operands[0].type
        odd = made.text.startswith((f"{made.opcode} atomic", f"{made.opcode} volatile"))
        return "" if odd or kind.text not in _SCALARS else made.pointer.text
    return made.operands[0].text if made.opcode == "getelementptr" or made.word == _FILL else ""


def _holds_scalars(kind: IRType | None) -> bool:
    """Return whether a variable is a scalar or a struct, or an array of them."""
    while kind is not None and kind.kind == "array":
        kind = kind.element
    return kind is not None and (kind.text in _SCALARS or kind.text.startswith(("%struct.", '%"struct.')))


def _owners(lines: _Lines) -> dict[str, str]:
    """Return each pointer to or into an instrumented variable, with the variable."""
    owner: dict[str, str] = {}
    unset: set[str] = set()
    dropped: set[str] = set()
    for line, made in lines:
        if made is not None and made.opcode == "alloca" and _holds_scalars(made.element):
            owner[made.result] = made.result
            continue
        used = [name for name in NAME.findall(line.partition(", !dbg")[0]) if name in owner]
        if not used or (made is not None and made.word.startswith("llvm.lifetime.")):
            continue
        if made is None or used != [_address(made)]:
            dropped |= {owner[name] for name in used}
        elif made.opcode == "getelementptr":
            owner[made.result] = owner[used[0]]
        elif made.opcode != "load" and _UNSET in made.metadata:
            unset.add(owner[used[0]])
    kept = unset - dropped
    return {pointer: root for pointer, root in owner.items() if root in kept}
