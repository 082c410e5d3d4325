"""Insert calls of the validated build's runtime into the LLVM IR of a kernel, before it is optimized.

clang's sanitizers report accesses. These calls report values: each floating-point operation passes its result and its
operands, which shows the origin of a NaN or an infinity; each shift passes its count, each integer division its
divisor, and some atomics their address. Each iteration of a loop makes a call, too, so that endless loops are found.
Each call takes the debug location of the instruction that it precedes or follows.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from itertools import count
from typing import NamedTuple

from ...llvm.instructions import IRInstruction, Operand
from ...llvm.llvm_lines import parse_lines
from ...llvm.llvm_types import IRType

__all__ = ["ValidatingCode", "insert_calls"]


class ValidatingCode(NamedTuple):
    """A text, and the names of its floating-point operations, by the number that the runtime receives."""

    text: str
    operations: tuple[str, ...]


_SYMBOLS = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "frem": "fmod", "fptrunc": "half"}
_DIVISIONS = frozenset({"sdiv", "udiv", "srem", "urem"})
_WATCHED = frozenset({*_SYMBOLS, *_DIVISIONS, "call", "and", "atomicrmw", "br", "load"})
_FLOATS = frozenset({"float", "half"})
_MASK = re.compile(r"%sh[lr]\.mask\d*")
# Atomic operations that the thread sanitizer does not handle.
_MODIFIED = frozenset({"max", "umax", "min", "umin", "fadd", "fsub", "fmax", "fmin", "uinc_wrap", "udec_wrap"})
_DECLARED = re.compile(r"^declare .*@([\w.]+)\(", re.MULTILINE)
# Functions that find a thread's position and arguments; they read only the runtime's memory.
_OWN_FUNCTION = re.compile(r"@metalnb_thread\(|\$position_of|\$lane_position|\$input")
_RUNTIME = """
@metalnb_stopping = external hidden global ptr
declare void @metalnb_not_finite(float, float, float, float, i32) cold nounwind
declare void @metalnb_far_shifted(i64) cold nounwind
declare void @metalnb_late() cold nounwind
declare void @metalnb_by_zero() cold nounwind
declare void @metalnb_modified(ptr, i64) nounwind

define internal void @metalnb_check(float %result, float %a, float %b, float %c, i32 %operation) alwaysinline nounwind {
  %bits = bitcast float %result to i32
  %exponent = and i32 %bits, 2139095040
  %odd = icmp eq i32 %exponent, 2139095040
  br i1 %odd, label %report, label %done
report:
  call void @metalnb_not_finite(float %result, float %a, float %b, float %c, i32 %operation)
  br label %done
done:
  ret void
}

define internal void @metalnb_shifted(i64 %count, i64 %width) alwaysinline nounwind {
  %far = icmp uge i64 %count, %width
  br i1 %far, label %report, label %done
report:
  call void @metalnb_far_shifted(i64 %count)
  br label %done
done:
  ret void
}

define internal void @metalnb_divided(i64 %by) alwaysinline nounwind {
  %zero = icmp eq i64 %by, 0
  br i1 %zero, label %report, label %done
report:
  call void @metalnb_by_zero()
  br label %done
done:
  ret void
}

define internal void @metalnb_iteration() alwaysinline nounwind {
  %flag = load ptr, ptr @metalnb_stopping, !nosanitize !{}
  %stopping = load volatile i64, ptr %flag, !nosanitize !{}
  %late = icmp ne i64 %stopping, 0
  br i1 %late, label %report, label %done
report:
  call void @metalnb_late()
  br label %done
done:
  ret void
}
"""


def insert_calls(text: str) -> ValidatingCode:
    """Return a kernel's LLVM IR with the calls inserted."""
    declared = set(_DECLARED.findall(text))
    operations: dict[str, int] = {}
    names = (f'%"$w{i}"' for i in count())
    lines: list[str] = []
    is_own = False
    for line, inst in parse_lines(text, _WATCHED):
        if inst is None:
            if line.startswith("define "):
                is_own = _OWN_FUNCTION.search(line) is not None
            lines.append(line)
            continue
        lines += _calls_before(inst, names)
        lines.append(f"{line}, !nosanitize !{{}}" if is_own and inst.opcode == "load" else line)
        lines += _calls_after(inst, declared, operations, names)
    return ValidatingCode("\n".join(lines) + _RUNTIME, tuple(operations))


def _calls_before(inst: IRInstruction, names: Iterator[str]) -> Iterator[str]:
    if inst.opcode == "br" and "!llvm.loop " in inst.metadata:
        yield f"  call void @metalnb_iteration(){inst.debug_suffix}"
    elif inst.opcode == "atomicrmw" and inst.word in _MODIFIED:
        yield f"  call void @metalnb_modified({inst.pointer}, i64 {inst.type.bits // 8}){inst.debug_suffix}"
    elif inst.opcode in _DIVISIONS and (divisor := inst.operands[1]).text.startswith("%"):
        yield from _call_per_lane(divisor, "call void @metalnb_divided(i64 {})", inst.debug_suffix, names)


def _calls_after(
    inst: IRInstruction, declared: set[str], operations: dict[str, int], names: Iterator[str],
) -> Iterator[str]:  # fmt: skip
    if inst.opcode == "and" and _MASK.fullmatch(inst.result):
        count = inst.operands[0]
        call = f"call void @metalnb_shifted(i64 {{}}, i64 {count.type.element.bits})"
        yield from _call_per_lane(count, call, inst.debug_suffix, names)
    if not _is_float(inst.type):
        return
    if inst.opcode in _SYMBOLS:
        operation = _SYMBOLS[inst.opcode]
    elif inst.opcode == "call" and inst.word in declared:
        operation = _source_name(inst.word)
    else:
        return
    operands = [operand for operand in inst.operands if _is_float(operand.type)][:3]
    number = operations.setdefault(operation, len(operations))
    yield from _operation_call(Operand(inst.type, inst.result), operands, number, inst.debug_suffix, names)


def _is_float(ir_type: IRType) -> bool:
    return ir_type.kind in {"float", "vector"} and ir_type.element.text in _FLOATS


def _source_name(name: str) -> str:
    """Return a function's name in the source: ``expf`` is exp, ``llvm.sqrt.v4f32`` is sqrt."""
    if name.startswith("llvm."):
        base = re.sub(r"^experimental\.constrained\.", "", name[5:]).rsplit(".", 1)[0]
        return "fma" if base == "fmuladd" else base
    return name.removesuffix("f")


def _operation_call(
    result: Operand, operands: list[Operand], number: int, debug_suffix: str, names: Iterator[str],
) -> Iterator[str]:  # fmt: skip
    if any(operand.type.components != result.type.components for operand in operands):
        return
    for lane in range(result.type.components):
        words = []
        for operand in (result, *operands):
            name = yield from _component(operand, lane, debug_suffix, names)
            if operand.type.element.text != "float":
                narrow, name = name, next(names)
                yield f"  {name} = fpext {operand.type.element} {narrow} to float{debug_suffix}"
            words.append(f"float {name}")
        words += ["float 0.0"] * (4 - len(words))
        yield f"  call void @metalnb_check({', '.join(words)}, i32 {number << 2 | len(operands)}){debug_suffix}"


def _call_per_lane(operand: Operand, call: str, debug_suffix: str, names: Iterator[str]) -> Iterator[str]:
    """Yield a call with each lane of an integer, widened."""
    for lane in range(operand.type.components):
        name = yield from _component(operand, lane, debug_suffix, names)
        if operand.type.element.text != "i64":
            narrow, name = name, next(names)
            yield f"  {name} = sext {operand.type.element} {narrow} to i64{debug_suffix}"
        yield f"  {call.format(name)}{debug_suffix}"


def _component(operand: Operand, lane: int, debug_suffix: str, names: Iterator[str]) -> Generator[str, None, str]:
    """Yield the instruction that extracts a lane of a vector; return the lane's name."""
    if operand.type.kind != "vector":
        return operand.text
    name = next(names)
    yield f"  {name} = extractelement {operand}, i32 {lane}{debug_suffix}"
    return name
