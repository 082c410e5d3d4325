"""LLVM's text of a kernel, before it is optimised, with calls of the checked build's runtime put in.

clang's sanitizers tell of accesses. This tells of values: each floating-point operation hands over its result and its
operands (where a NaN or an infinity is made), each shift its count, each turn of a loop itself (a loop that does
not end), and some atomics their address. The calls have the debug location of what they stand beside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

__all__ = ["NAME", "WatchedCode", "lanes_of", "place_in", "watched"]


class WatchedCode(NamedTuple):
    """A text, and the names of its floating-point operations, by the number that the runtime is given."""

    text: str
    operations: tuple[str, ...]


NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_FLOATS = r"(?:float|half|<\d+ x (?:float|half)>)"
_SYMBOLS = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "frem": "fmod", "fptrunc": "half"}
_ARITHMETIC = re.compile(
    rf"  (?P<to>{NAME}) = (?P<how>fadd|fsub|fmul|fdiv|frem)(?: [a-z]+)*? (?P<type>{_FLOATS}) (?P<rest>.*)"
)
_NARROWED = re.compile(
    rf"  (?P<to>{NAME}) = fptrunc(?: [a-z]+)*? (?P<from>{_FLOATS}) (?P<value>.+?) to (?P<type>{_FLOATS})(?P<rest>.*)"
)
_CALL = re.compile(
    rf"  (?P<to>{NAME}) = (?:tail )?call(?: [a-z]+)*? (?P<type>{_FLOATS}) @(?P<how>[\w.]+)\((?P<rest>.*)"
)
_ARGUMENT = re.compile(rf"(?P<type>{_FLOATS}) (?:(?:noundef|nofpclass\([^)]*\)) )*(?P<value>.*)")
_MASK = re.compile(r"  (?P<to>%sh[lr]\.mask\d*) = and (?P<type>i\d+|<\d+ x i\d+>) (?P<rest>.*)")
# What the thread sanitizer does not know.
_MODIFIED = re.compile(
    rf"  {NAME} = atomicrmw (?:volatile )?(?:u?max|u?min|fadd|fsub|fmax|fmin|uinc_wrap|udec_wrap) "
    rf"ptr (?P<at>{NAME}), (?P<type>i\d+|float|half) "
)
_DECLARED = re.compile(r"^declare .*@([\w.]+)\(", re.MULTILINE)
_PLACE = re.compile(r", (!dbg ![0-9]+)")
_RUNTIME = """
@metalnb_stopping = external hidden global ptr
declare void @metalnb_not_finite(float, float, float, float, i32) cold nounwind
declare void @metalnb_far_shifted(i64) cold nounwind
declare void @metalnb_late() cold nounwind
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


def watched(text: str) -> WatchedCode:
    """Put the calls in."""
    declared = set(_DECLARED.findall(text))
    operations: dict[str, int] = {}
    fresh = (f'%"$w{i}"' for i in count())
    lines = []
    for line in text.splitlines():
        if ", !llvm.loop " in line and line.startswith("  br "):
            lines.append(f"  call void @metalnb_turn(){place_in(line)}")
        if (m := _MODIFIED.match(line)) is not None:
            size = {"float": 4, "half": 2}.get(m["type"]) or int(m["type"][1:]) // 8
            lines.append(f"  call void @metalnb_modified(ptr {m['at']}, i64 {size}){place_in(line)}")
        lines.append(line)
        if " = " in line:
            lines += _beside(line, declared, operations, fresh)
    return WatchedCode("\n".join(lines) + _RUNTIME, tuple(operations))


def place_in(line: str) -> str:
    """Return an instruction's debug location, as it is written behind a call beside it."""
    found = _PLACE.search(line)
    return f", {found[1]}" if found else ""


def _beside(line: str, declared: set[str], operations: dict[str, int], fresh: Iterator[str]) -> Iterator[str]:
    if (m := _MASK.match(line)) is not None:
        value, _ = _parts(m["rest"])[:2]
        yield from _shift(m["type"], value, place_in(line), fresh)
        return
    if (m := _ARITHMETIC.match(line)) is not None:
        given = [(m["type"], value) for value in _parts(m["rest"])[:2]]
        how = _SYMBOLS[m["how"]]
    elif (m := _NARROWED.match(line)) is not None:
        given, how = [(m["from"], m["value"])], "half"
    elif (m := _CALL.match(line)) is not None and m["how"] in declared:
        found = (_ARGUMENT.fullmatch(each) for each in _parts(_closed(m["rest"])))
        given, how = [(each["type"], each["value"]) for each in found if each], _plain(m["how"])
    else:
        return
    number = operations.setdefault(how, len(operations))
    yield from _made(m["type"], m["to"], given[:3], number, place_in(line), fresh)


def _plain(name: str) -> str:
    """Return what an author calls a function: ``expf`` is exp, ``llvm.sqrt.v4f32`` is sqrt."""
    if name.startswith("llvm."):
        plain = re.sub(r"^experimental\.constrained\.", "", name[5:]).rsplit(".", 1)[0]
        return "fma" if plain == "fmuladd" else plain
    return name.removesuffix("f")


def _parts(text: str) -> list[str]:
    """Split at the commas that stand in no bracket, as far as the metadata."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, mark in enumerate(text):
        if mark == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif mark in "(<[{":
            depth += 1
        elif mark in ")>]}":
            depth -= 1
        elif mark == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p and not p.startswith("!")]


def _closed(text: str) -> str:
    """Return what stands before the bracket that closes."""
    depth, quoted = 0, False
    for i, mark in enumerate(text):
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark == "(":
            depth += 1
        elif not quoted and mark == ")":
            if depth == 0:
                return text[:i]
            depth -= 1
    return text


def lanes_of(kind: str) -> tuple[int, str]:
    """Return how many lanes a type has, 0 for a scalar, and the type of one."""
    m = re.fullmatch(r"<(\d+) x (\w+)>", kind)
    return (int(m[1]), m[2]) if m else (0, kind)


def _made(
    kind: str, result: str, given: list[tuple[str, str]], number: int, place: str, fresh: Iterator[str],
) -> Iterator[str]:  # fmt: skip
    lanes, _ = lanes_of(kind)
    if any(lanes_of(k)[0] != lanes for k, _ in given):
        return
    for lane in range(max(1, lanes)):
        words = []
        for each, value in [(kind, result), *given]:
            _, scalar = lanes_of(each)
            name = value
            if lanes:
                name = next(fresh)
                yield f"  {name} = extractelement {each} {value}, i32 {lane}{place}"
            if scalar != "float":
                wide = next(fresh)
                yield f"  {wide} = fpext {scalar} {name} to float{place}"
                name = wide
            words.append(f"float {name}")
        words += ["float 0.0"] * (4 - len(words))
        yield f"  call void @metalnb_made({', '.join(words)}, i32 {number << 2 | len(given)}){place}"


def _shift(kind: str, value: str, place: str, fresh: Iterator[str]) -> Iterator[str]:
    lanes, scalar = lanes_of(kind)
    for lane in range(max(1, lanes)):
        each = value
        if lanes:
            each = next(fresh)
            yield f"  {each} = extractelement {kind} {value}, i32 {lane}{place}"
        if scalar != "i64":
            wide = next(fresh)
            yield f"  {wide} = sext {scalar} {each} to i64{place}"
            each = wide
        yield f"  call void @metalnb_shifted(i64 {each}, i64 {scalar[1:]}){place}"
