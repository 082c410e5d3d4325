"""Parse instructions (LLVM Language Reference, "Instruction Reference"), with one function per form."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

from .instructions import IRInstruction, Operand
from .llvm_types import IRType, UnreadText, bracketed, parts_of, split_type, type_of

__all__ = ["BINARY", "CASTS", "extracted_type", "read_instruction", "start_of"]

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
_PLACE = re.compile(r", (!dbg ![0-9]+)")
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
def start_of(opcodes: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern that matches lines with these instructions."""
    return re.compile(rf"  {_RESULT}(?:{'|'.join(sorted(opcodes))})\b")


def read_instruction(line: str) -> IRInstruction:
    """Read one instruction.

    Raises
    ------
    UnreadText
        With the line.
    """
    try:
        return _read(line)
    except (ValueError, IndexError, KeyError, TypeError) as error:
        message = f"LLVM IR: not understood: {line.strip()} ({error})"
        raise UnreadText(message) from error


def _read(line: str) -> IRInstruction:
    metadata = place = ""
    if "!" in line and (tail := _METADATA.search(line)):
        metadata, line = tail[0], line[: tail.start()]
        if found := _PLACE.search(metadata):
            place = found[1]
    start = _START.match(line)
    if start is None:
        message = f"no instruction: {line}"
        raise UnreadText(message)
    opcode = start[2]
    rest = line[start.end() :]
    made = IRInstruction(f"{opcode} {rest}".rstrip(), opcode, start[1] or "", _VOID, metadata=metadata, place=place)
    reader = _READERS.get(opcode)
    if reader is None:
        message = f"an unknown instruction: {opcode}"
        raise UnreadText(message)
    words, rest = _words(rest)
    made.flags = words
    reader(made, rest)
    return made


def _words(rest: str) -> tuple[tuple[str, ...], str]:
    words: list[str] = []
    while True:
        word, space, more = rest.partition(" ")
        if not space or word not in _FLAGS:
            return tuple(words), rest
        words.append(word)
        rest = more


def _operand(text: str) -> Operand:
    kind, rest = split_type(text)
    if rest and (found := _PARAMETER_WORDS.match(rest)):
        rest = rest[found.end() :]
    return Operand(kind, rest)


def _binary(made: IRInstruction, rest: str) -> None:
    made.type, rest = split_type(rest)
    left, right = parts_of(rest)
    made.operands = [Operand(made.type, left), Operand(made.type, right)]


def _unary(made: IRInstruction, rest: str) -> None:
    made.type, rest = split_type(rest)
    made.operands = [Operand(made.type, rest)]


def _comparison(made: IRInstruction, rest: str) -> None:
    made.word, _, rest = rest.partition(" ")
    words, rest = _words(rest)  # LLVM writes samesign before the predicate
    made.flags += words
    kind, rest = split_type(rest)
    left, right = parts_of(rest)
    made.operands = [Operand(kind, left), Operand(kind, right)]
    made.type = type_of(f"<{kind.count} x i1>") if kind.kind == "vector" else _BIT


def _cast(made: IRInstruction, rest: str) -> None:
    given, _, to = rest.rpartition(" to ")
    made.operands = [_operand(given)]
    made.type = type_of(to.strip())


def _select(made: IRInstruction, rest: str) -> None:
    made.operands = [_operand(part) for part in parts_of(rest)]
    made.type = made.operands[1].type


def _phi(made: IRInstruction, rest: str) -> None:
    made.type, rest = split_type(rest)
    for part in parts_of(rest):
        value, source = parts_of(part[1:-1])
        made.operands.append(Operand(made.type, value))
        made.targets.append(source)


def _accessed(made: IRInstruction, rest: str) -> list[str]:
    """Parse the syntax shared by loads and stores."""
    atomic = False
    while rest.startswith(("atomic ", "volatile ")):
        atomic |= rest.startswith("atomic")
        rest = rest.partition(" ")[2]
    parts = parts_of(rest)
    for part in parts[2:]:
        if found := _ALIGN.match(part):
            made.alignment = int(found[1])
    if atomic and (found := _ATOMIC_END.match(parts[1])):
        parts[1], made.ordering = found[1], found[2]
    return parts


def _load(made: IRInstruction, rest: str) -> None:
    parts = _accessed(made, rest)
    made.type = type_of(parts[0])
    made.operands = [_operand(parts[1])]


def _store(made: IRInstruction, rest: str) -> None:
    parts = _accessed(made, rest)
    made.operands = [_operand(parts[0]), _operand(parts[1])]


def _getelementptr(made: IRInstruction, rest: str) -> None:
    if rest.startswith("inrange("):
        rest = rest.partition(") ")[2]
    parts = parts_of(rest)
    made.element = type_of(parts[0])
    made.operands = [_operand(part) for part in parts[1:]]
    counts = [o.type.count for o in made.operands if o.type.kind == "vector"]
    made.type = type_of(f"<{counts[0]} x ptr>") if counts else _POINTER


def _elements(made: IRInstruction, rest: str) -> None:
    made.operands = [_operand(part) for part in parts_of(rest)]
    first = made.operands[0].type
    if made.opcode == "extractelement":
        made.type = first.element
    elif made.opcode == "insertelement":
        made.type = first
    else:
        made.type = type_of(f"<{made.operands[2].type.count} x {first.element}>")


def extracted_type(made: IRInstruction, types: Mapping[str, IRType]) -> IRType:
    """Return the result type of an ``extractvalue``; ``void`` if `types` does not have its struct."""
    kind = made.operands[0].type
    for index in made.indices:
        kind = types.get(kind.text, kind)
        if kind.kind == "named":
            return _VOID
        kind = kind.element if kind.kind == "array" else kind.fields[index]
    return kind


def _extractvalue(made: IRInstruction, rest: str) -> None:
    first, *indices = parts_of(rest)
    made.operands = [_operand(first)]
    made.indices = tuple(int(index) for index in indices)
    made.type = extracted_type(made, {})


def _insertvalue(made: IRInstruction, rest: str) -> None:
    first, value, *indices = parts_of(rest)
    made.operands = [_operand(first), _operand(value)]
    made.indices = tuple(int(index) for index in indices)
    made.type = made.operands[0].type


def _alloca(made: IRInstruction, rest: str) -> None:
    kind, *more = parts_of(rest)
    made.element, made.type = type_of(kind), _POINTER
    for part in more:
        if found := _ALIGN.match(part):
            made.alignment = int(found[1])
        elif not part.startswith("addrspace("):
            message = "an alloca of several elements"
            raise UnreadText(message)


def _call(made: IRInstruction, rest: str) -> None:
    if found := _RETURN_WORDS.match(rest):
        rest = rest[found.end() :]
    made.type, rest = split_type(rest)
    if rest.startswith("("):  # the callee's complete type
        rest = rest[bracketed(rest) :].lstrip()
    named = _CALLEE.match(rest)
    if named is None:
        made.word = ""  # a call through a pointer, or assembly; only attributes mark it as collective
        return
    made.text = re.sub(r"\s*#\d+$", "", made.text)
    made.word = named[1]
    given = rest[named.end() - 1 :]
    inside = given[1 : bracketed(given) - 1]
    made.operands = [_operand(part) for part in parts_of(inside) if not part.startswith("metadata")]


def _atomicrmw(made: IRInstruction, rest: str) -> None:
    rest = rest.removeprefix("volatile ")
    made.word, _, rest = rest.partition(" ")
    address, value, *more = parts_of(rest)
    found = _ATOMIC_END.match(value)
    if found is None:
        message = "no ordering"
        raise UnreadText(message)
    made.operands, made.ordering = [_operand(address), _operand(found[1])], found[2]
    made.type = made.operands[1].type
    made.alignment = next((int(m[1]) for part in more if (m := _ALIGN.match(part))), 1)


def _cmpxchg(made: IRInstruction, rest: str) -> None:
    while rest.startswith(("weak ", "volatile ")):
        rest = rest.partition(" ")[2]
    address, expected, new, *more = parts_of(rest)
    found = _ATOMIC_END.match(new)
    if found is None:
        message = "no ordering"
        raise UnreadText(message)
    made.operands = [_operand(address), _operand(expected), _operand(found[1])]
    made.ordering = found[2]
    made.type = type_of(f"{{ {made.operands[1].type}, i1 }}")
    made.alignment = next((int(m[1]) for part in more if (m := _ALIGN.match(part))), 1)


def _br(made: IRInstruction, rest: str) -> None:
    parts = parts_of(rest)
    if len(parts) > 1:
        made.operands = [_operand(parts[0])]
    made.targets = [part.split(" ", 1)[1] for part in parts[-2:] if part.startswith("label ")]


_SWITCH = re.compile(r'(.*?), label (%(?:"[^"]*"|[-\w.$]+)) \[(.*)\]$')
_CASE = re.compile(r'i\d+ (-?\w+), label (%(?:"[^"]*"|[-\w.$]+))')


def _switch(made: IRInstruction, rest: str) -> None:
    found = _SWITCH.match(rest)
    if found is None:
        message = "no list of cases"
        raise UnreadText(message)
    made.operands = [_operand(found[1])]
    cases = _CASE.findall(found[3])
    made.cases = [value for value, _ in cases]
    made.targets = [found[2], *(label for _, label in cases)]


def _ret(made: IRInstruction, rest: str) -> None:
    if rest != "void" and rest:
        made.operands = [_operand(rest)]


def _nothing(made: IRInstruction, rest: str) -> None:
    del made, rest


_READERS: dict[str, _Reader] = {
    **dict.fromkeys(BINARY, _binary), **dict.fromkeys(CASTS, _cast),
    "fneg": _unary, "freeze": _unary, "icmp": _comparison, "fcmp": _comparison, "select": _select, "phi": _phi,
    "load": _load, "store": _store, "getelementptr": _getelementptr, "extractelement": _elements,
    "insertelement": _elements, "shufflevector": _elements, "extractvalue": _extractvalue,
    "insertvalue": _insertvalue, "alloca": _alloca, "call": _call, "atomicrmw": _atomicrmw, "cmpxchg": _cmpxchg,
    "fence": _nothing, "br": _br, "switch": _switch, "ret": _ret, "unreachable": _nothing,
}  # fmt: skip
