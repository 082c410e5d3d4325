"""Insert calls of the validated build's runtime into the LLVM IR of a kernel, before it is optimised.

clang's sanitizers report accesses. These calls report values: each floating-point operation passes its result and its
operands (the origin of a NaN or an infinity), each shift its count, each integer division its divisor, and some atomics
their address; each iteration of a loop makes a call, too (to find endless loops). Each call takes the debug location of
the instruction that it precedes or follows.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from itertools import count
from typing import NamedTuple

from ...llvm.instructions import IRInstruction, Operand
from ...llvm.llvm_lines import lines_of
from ...llvm.llvm_types import IRType

__all__ = ["ValidatingCode", "with_calls"]


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
_OURS = re.compile(r"@metalnb_thread\(|\$stand|\$input")
_RUNTIME = """
@metalnb_stopping = external hidden global ptr
declare void @metalnb_not_finite(float, float, float, float, i32) cold nounwind
declare void @metalnb_far_shifted(i64) cold nounwind
declare void @metalnb_late() cold nounwind
declare void @metalnb_by_zero() cold nounwind
declare void @metalnb_modified(ptr, i64) nounwind

define internal void @metalnb_made(float %made, float %a, float %b, float %c, i32 %operation) alwaysinline nounwind {
  %bits = bitcast float %made to i32
  %exponent = and i32 %bits, 2139095040
  %odd = icmp eq i32 %exponent, 2139095040
  br i1 %odd, label %tell, label %done
tell:
  call void @metalnb_not_finite(float %made, float %a, float %b, float %c, i32 %operation)
  br label %done
done:
  ret void
}

define internal void @metalnb_shifted(i64 %count, i64 %width) alwaysinline nounwind {
  %far = icmp uge i64 %count, %width
  br i1 %far, label %tell, label %done
tell:
  call void @metalnb_far_shifted(i64 %count)
  br label %done
done:
  ret void
}

define internal void @metalnb_divided(i64 %by) alwaysinline nounwind {
  %zero = icmp eq i64 %by, 0
  br i1 %zero, label %tell, label %done
tell:
  call void @metalnb_by_zero()
  br label %done
done:
  ret void
}

define internal void @metalnb_turn() alwaysinline nounwind {
  %flag = load ptr, ptr @metalnb_stopping, !nosanitize !{}
  %stopping = load volatile i64, ptr %flag, !nosanitize !{}
  %late = icmp ne i64 %stopping, 0
  br i1 %late, label %tell, label %done
tell:
  call void @metalnb_late()
  br label %done
done:
  ret void
}
"""


def with_calls(text: str) -> ValidatingCode:
    """Insert the calls."""
    declared = set(_DECLARED.findall(text))
    operations: dict[str, int] = {}
    fresh = (f'%"$w{i}"' for i in count())
    lines: list[str] = []
    ours = False
    for line, made in lines_of(text, _WATCHED):
        if made is None:
            if line.startswith("define "):
                ours = _OURS.search(line) is not None
            lines.append(line)
            continue
        lines += _before(made, fresh)
        lines.append(f"{line}, !nosanitize !{{}}" if ours and made.opcode == "load" else line)
        lines += _behind(made, declared, operations, fresh)
    return ValidatingCode("\n".join(lines) + _RUNTIME, tuple(operations))


def _before(made: IRInstruction, fresh: Iterator[str]) -> Iterator[str]:
    if made.opcode == "br" and "!llvm.loop " in made.metadata:
        yield f"  call void @metalnb_turn(){made.debug_suffix}"
    elif made.opcode == "atomicrmw" and made.word in _MODIFIED:
        yield f"  call void @metalnb_modified({made.pointer}, i64 {made.type.bits // 8}){made.debug_suffix}"
    elif made.opcode in _DIVISIONS and (by := made.operands[1]).text.startswith("%"):
        yield from _each_lane(by, "call void @metalnb_divided(i64 {})", made.debug_suffix, fresh)


def _behind(
    made: IRInstruction, declared: set[str], operations: dict[str, int], fresh: Iterator[str],
) -> Iterator[str]:  # fmt: skip
    if made.opcode == "and" and _MASK.fullmatch(made.result):
        count = made.operands[0]
        shifted = f"call void @metalnb_shifted(i64 {{}}, i64 {count.type.element.bits})"
        yield from _each_lane(count, shifted, made.debug_suffix, fresh)
    if not _is_float(made.type):
        return
    if made.opcode in _SYMBOLS:
        how = _SYMBOLS[made.opcode]
    elif made.opcode == "call" and made.word in declared:
        how = _plain(made.word)
    else:
        return
    given = [operand for operand in made.operands if _is_float(operand.type)][:3]
    number = operations.setdefault(how, len(operations))
    yield from _made(Operand(made.type, made.result), given, number, made.debug_suffix, fresh)


def _is_float(kind: IRType) -> bool:
    return kind.kind in {"float", "vector"} and kind.element.text in _FLOATS


def _plain(name: str) -> str:
    """Return a function's name in the source: ``expf`` is exp, ``llvm.sqrt.v4f32`` is sqrt."""
    if name.startswith("llvm."):
        plain = re.sub(r"^experimental\.constrained\.", "", name[5:]).rsplit(".", 1)[0]
        return "fma" if plain == "fmuladd" else plain
    return name.removesuffix("f")


def _made(
    result: Operand, given: list[Operand], number: int, place: str, fresh: Iterator[str],
) -> Iterator[str]:  # fmt: skip
    if any(operand.type.components != result.type.components for operand in given):
        return
    for lane in range(result.type.components):
        words = []
        for operand in (result, *given):
            name = yield from _component(operand, lane, place, fresh)
            if operand.type.element.text != "float":
                narrow, name = name, next(fresh)
                yield f"  {name} = fpext {operand.type.element} {narrow} to float{place}"
            words.append(f"float {name}")
        words += ["float 0.0"] * (4 - len(words))
        yield f"  call void @metalnb_made({', '.join(words)}, i32 {number << 2 | len(given)}){place}"


def _each_lane(operand: Operand, call: str, place: str, fresh: Iterator[str]) -> Iterator[str]:
    """Yield a call with each lane of an integer, widened."""
    for lane in range(operand.type.components):
        name = yield from _component(operand, lane, place, fresh)
        if operand.type.element.text != "i64":
            narrow, name = name, next(fresh)
            yield f"  {name} = sext {operand.type.element} {narrow} to i64{place}"
        yield f"  {call.format(name)}{place}"


def _component(operand: Operand, lane: int, place: str, fresh: Iterator[str]) -> Generator[str, None, str]:
    """Yield the instruction that extracts a lane of a vector; return the lane's name."""
    if operand.type.kind != "vector":
        return operand.text
    name = next(fresh)
    yield f"  {name} = extractelement {operand}, i32 {lane}{place}"
    return name
