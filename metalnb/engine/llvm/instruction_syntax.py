"""Parse instructions (LLVM Language Reference, "Instruction Reference"), with one function per form."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

from .instructions import IRInstruction, Operand
from .llvm_types import IRType, UnsupportedIR, bracket_length, split_list, split_type, type_of

__all__ = ["BINARY", "CASTS", "extracted_type", "instruction_pattern", "read_instruction"]

BINARY = frozenset({
    "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor",
    "fadd", "fsub", "fmul", "fdiv", "frem",
})  # fmt: skip
CASTS = frozenset({
    "zext", "sext", "trunc", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint", "inttoptr",
    "bitcast", "addrspacecast",
})  # fmt: skip
_FLAGS = frozenset({
    "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc", "fast", "nuw", "nsw", "exact", "disjoint", "nneg",
    "samesign", "inbounds", "nusw",
})  # fmt: skip
_RESULT = r'(?:(%(?:"[^"]*"|[-\w.$]+)) = )?(?:(?:tail|musttail|notail) )?'
_START = re.compile(rf"\s*{_RESULT}(\w+)\s*")
_METADATA = re.compile(r"(?:, ![\w.]+ ![\w(){}]+)+$")
_DEBUG_LOCATION = re.compile(r", (!dbg ![0-9]+)")
_PARAMETER_WORDS = re.compile(
    r"(?:(?:noundef|nonnull|signext|zeroext|readonly|writeonly|readnone|noalias|nocapture|returned|immarg|nofree|inreg"
    r"|dead_on_return|dead_on_unwind|noext|captures\([^)]*\)|dereferenceable(?:_or_null)?\(\d+\)|align \d+|writable"
    r"|range\([^)]*\)|nofpclass\([^)]*\)|initializes\(\([^)]*\)\)|sret\([^)]*\)|byval\([^)]*\))\s+)+"
)
_RETURN_WORDS = re.compile(
    r"(?:(?:noundef|nonnull|signext|zeroext|noalias|range\([^)]*\)|nofpclass\([^)]*\)|align \d+|spir_func|fastcc"
    r"|dereferenceable\(\d+\)|amdgpu_kernel|ptx_kernel)\s+)+"
)
_CALLEE = re.compile(r'@("[^"]*"|[-\w.$]+)\(')
_ORDERINGS = "unordered|monotonic|acquire|release|acq_rel|seq_cst"
_ATOMIC_END = re.compile(rf'(.*?)(?:\s+syncscope\("[^"]*"\))?\s+({_ORDERINGS})(?:\s+(?:{_ORDERINGS}))?$')
_ALIGN = re.compile(r"align (\d+)")
_VOID = type_of("void")
_BIT = type_of("i1")
_POINTER = type_of("ptr")

_Reader = Callable[[IRInstruction, str], None]


@functools.cache
def instruction_pattern(opcodes: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern that matches lines with these instructions."""
    return re.compile(rf"  {_RESULT}(?:{'|'.join(sorted(opcodes))})\b")


def read_instruction(line: str) -> IRInstruction:
    """Read one instruction.

    Raises
    ------
    UnsupportedIR
        If the line cannot be parsed; the message quotes it.
    """
    try:
        return _read_line(line)
    except (ValueError, IndexError, KeyError, TypeError) as error:
        message = f"cannot parse this LLVM IR: {line.strip()} ({error})"
        raise UnsupportedIR(message) from error


def _read_line(line: str) -> IRInstruction:
    metadata = debug_location = ""
    if "!" in line and (tail := _METADATA.search(line)):
        metadata, line = tail[0], line[: tail.start()]
        if match := _DEBUG_LOCATION.search(metadata):
            debug_location = match[1]
    start = _START.match(line)
    if start is None:
        message = f"no instruction: {line}"
        raise UnsupportedIR(message)
    opcode = start[2]
    rest = line[start.end() :]
    inst = IRInstruction(f"{opcode} {rest}".rstrip(), opcode, start[1] or "", _VOID, metadata=metadata)
    inst.debug_location = debug_location
    reader = _READERS.get(opcode)
    if reader is None:
        message = f"unknown instruction {opcode}"
        raise UnsupportedIR(message)
    flags, rest = _read_flags(rest)
    inst.flags = flags
    reader(inst, rest)
    return inst


def _read_flags(rest: str) -> tuple[tuple[str, ...], str]:
    flags: list[str] = []
    while True:
        word, space, after = rest.partition(" ")
        if not space or word not in _FLAGS:
            return tuple(flags), rest
        flags.append(word)
        rest = after


def _operand(text: str) -> Operand:
    ir_type, rest = split_type(text)
    if rest and (match := _PARAMETER_WORDS.match(rest)):
        rest = rest[match.end() :]
    return Operand(ir_type, rest)


def _binary(inst: IRInstruction, rest: str) -> None:
    inst.type, rest = split_type(rest)
    left, right = split_list(rest)
    inst.operands = [Operand(inst.type, left), Operand(inst.type, right)]


def _unary(inst: IRInstruction, rest: str) -> None:
    inst.type, rest = split_type(rest)
    inst.operands = [Operand(inst.type, rest)]


def _comparison(inst: IRInstruction, rest: str) -> None:
    inst.word, _, rest = rest.partition(" ")
    flags, rest = _read_flags(rest)  # LLVM writes samesign before the predicate
    inst.flags += flags
    ir_type, rest = split_type(rest)
    left, right = split_list(rest)
    inst.operands = [Operand(ir_type, left), Operand(ir_type, right)]
    inst.type = type_of(f"<{ir_type.count} x i1>") if ir_type.kind == "vector" else _BIT


def _cast(inst: IRInstruction, rest: str) -> None:
    source, _, target = rest.rpartition(" to ")
    inst.operands = [_operand(source)]
    inst.type = type_of(target.strip())


def _select(inst: IRInstruction, rest: str) -> None:
    inst.operands = [_operand(part) for part in split_list(rest)]
    inst.type = inst.operands[1].type


def _phi(inst: IRInstruction, rest: str) -> None:
    inst.type, rest = split_type(rest)
    for part in split_list(rest):
        value, source = split_list(part[1:-1])
        inst.operands.append(Operand(inst.type, value))
        inst.targets.append(source)


def _read_access(inst: IRInstruction, rest: str) -> list[str]:
    """Parse the syntax shared by loads and stores."""
    is_atomic = False
    while rest.startswith(("atomic ", "volatile ")):
        is_atomic |= rest.startswith("atomic")
        rest = rest.partition(" ")[2]
    parts = split_list(rest)
    for part in parts[2:]:
        if match := _ALIGN.match(part):
            inst.alignment = int(match[1])
    if is_atomic and (match := _ATOMIC_END.match(parts[1])):
        parts[1], inst.ordering = match[1], match[2]
    return parts


def _load(inst: IRInstruction, rest: str) -> None:
    parts = _read_access(inst, rest)
    inst.type = type_of(parts[0])
    inst.operands = [_operand(parts[1])]


def _store(inst: IRInstruction, rest: str) -> None:
    parts = _read_access(inst, rest)
    inst.operands = [_operand(parts[0]), _operand(parts[1])]


def _getelementptr(inst: IRInstruction, rest: str) -> None:
    if rest.startswith("inrange("):
        rest = rest.partition(") ")[2]
    parts = split_list(rest)
    inst.element = type_of(parts[0])
    inst.operands = [_operand(part) for part in parts[1:]]
    pointer = inst.operands[0].type
    counts = [o.type.count for o in inst.operands if o.type.kind == "vector"]
    inst.type = type_of(f"<{counts[0]} x {pointer}>") if counts and pointer.kind != "vector" else pointer


def _vector_operation(inst: IRInstruction, rest: str) -> None:
    inst.operands = [_operand(part) for part in split_list(rest)]
    first = inst.operands[0].type
    if inst.opcode == "extractelement":
        inst.type = first.element
    elif inst.opcode == "insertelement":
        inst.type = first
    else:
        inst.type = type_of(f"<{inst.operands[2].type.count} x {first.element}>")


def extracted_type(inst: IRInstruction, types: Mapping[str, IRType]) -> IRType:
    """Return the result type of an ``extractvalue``; ``void`` if `types` does not have its struct."""
    ir_type = inst.operands[0].type
    for index in inst.indices:
        ir_type = types.get(ir_type.text, ir_type)
        if ir_type.kind == "named":
            return _VOID
        ir_type = ir_type.element if ir_type.kind == "array" else ir_type.fields[index]
    return ir_type


def _extractvalue(inst: IRInstruction, rest: str) -> None:
    first, *indices = split_list(rest)
    inst.operands = [_operand(first)]
    inst.indices = tuple(int(index) for index in indices)
    inst.type = extracted_type(inst, {})


def _insertvalue(inst: IRInstruction, rest: str) -> None:
    first, value, *indices = split_list(rest)
    inst.operands = [_operand(first), _operand(value)]
    inst.indices = tuple(int(index) for index in indices)
    inst.type = inst.operands[0].type


def _alloca(inst: IRInstruction, rest: str) -> None:
    kind, *options = split_list(rest)
    inst.element, inst.type = type_of(kind), _POINTER
    for part in options:
        if match := _ALIGN.match(part):
            inst.alignment = int(match[1])
        elif not part.startswith("addrspace("):
            message = "an alloca of several elements"
            raise UnsupportedIR(message)


def _call(inst: IRInstruction, rest: str) -> None:
    if match := _RETURN_WORDS.match(rest):
        rest = rest[match.end() :]
    inst.type, rest = split_type(rest)
    if rest.startswith("("):  # the callee's complete type
        rest = rest[bracket_length(rest) :].lstrip()
    callee = _CALLEE.match(rest)
    if callee is None:
        inst.word = ""  # a call through a pointer, or assembly; only attributes mark it as collective
        return
    inst.text = re.sub(r"\s*#\d+$", "", inst.text)
    inst.word = callee[1]
    arguments = rest[callee.end() - 1 :]
    inside = arguments[1 : bracket_length(arguments) - 1]
    inst.operands = [_operand(part) for part in split_list(inside) if not part.startswith("metadata")]


def _atomicrmw(inst: IRInstruction, rest: str) -> None:
    rest = rest.removeprefix("volatile ")
    inst.word, _, rest = rest.partition(" ")
    address, value, *options = split_list(rest)
    match = _ATOMIC_END.match(value)
    if match is None:
        message = "no ordering"
        raise UnsupportedIR(message)
    inst.operands, inst.ordering = [_operand(address), _operand(match[1])], match[2]
    inst.type = inst.operands[1].type
    inst.alignment = next((int(m[1]) for part in options if (m := _ALIGN.match(part))), 1)


def _cmpxchg(inst: IRInstruction, rest: str) -> None:
    while rest.startswith(("weak ", "volatile ")):
        rest = rest.partition(" ")[2]
    address, expected, new, *options = split_list(rest)
    match = _ATOMIC_END.match(new)
    if match is None:
        message = "no ordering"
        raise UnsupportedIR(message)
    inst.operands = [_operand(address), _operand(expected), _operand(match[1])]
    inst.ordering = match[2]
    inst.type = type_of(f"{{ {inst.operands[1].type}, i1 }}")
    inst.alignment = next((int(m[1]) for part in options if (m := _ALIGN.match(part))), 1)


def _br(inst: IRInstruction, rest: str) -> None:
    parts = split_list(rest)
    if len(parts) > 1:
        inst.operands = [_operand(parts[0])]
    inst.targets = [part.split(" ", 1)[1] for part in parts[-2:] if part.startswith("label ")]


_SWITCH = re.compile(r'(.*?), label (%(?:"[^"]*"|[-\w.$]+)) \[(.*)\]$')
_CASE = re.compile(r'i\d+ (-?\w+), label (%(?:"[^"]*"|[-\w.$]+))')


def _switch(inst: IRInstruction, rest: str) -> None:
    match = _SWITCH.match(rest)
    if match is None:
        message = "no list of cases"
        raise UnsupportedIR(message)
    inst.operands = [_operand(match[1])]
    cases = _CASE.findall(match[3])
    inst.cases = [value for value, _ in cases]
    inst.targets = [match[2], *(label for _, label in cases)]


def _ret(inst: IRInstruction, rest: str) -> None:
    if rest != "void" and rest:
        inst.operands = [_operand(rest)]


def _no_operands(inst: IRInstruction, rest: str) -> None:
    del inst, rest


_READERS: dict[str, _Reader] = {
    **dict.fromkeys(BINARY, _binary), **dict.fromkeys(CASTS, _cast),
    "fneg": _unary, "freeze": _unary, "icmp": _comparison, "fcmp": _comparison, "select": _select, "phi": _phi,
    "load": _load, "store": _store, "getelementptr": _getelementptr, "extractelement": _vector_operation,
    "insertelement": _vector_operation, "shufflevector": _vector_operation, "extractvalue": _extractvalue,
    "insertvalue": _insertvalue, "alloca": _alloca, "call": _call, "atomicrmw": _atomicrmw, "cmpxchg": _cmpxchg,
    "fence": _no_operands, "br": _br, "switch": _switch, "ret": _ret, "unreachable": _no_operands,
}  # fmt: skip
