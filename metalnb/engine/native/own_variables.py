"""LLVM's text of a kernel, before it is optimised, with a memory of which variables a thread has set.

Beside each variable that clang leaves unset lies another of the same type: 0, and all ones once it has been set. A load
of the first looks into the second. The optimiser takes both apart: nothing is left of a variable that is always set. One
whose address goes anywhere but into a load or a store is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .watched_code import NAME, place_in

__all__ = ["with_set_flags"]

_SCALAR = r"i(?:8|16|32|64)|float|half"
_ALLOCATED = re.compile(
    rf"  (?P<name>{NAME}) = alloca (?P<type>(?:\[\d+ x )*(?:{_SCALAR}|%\"?struct\.[^,]*?)\]*), align "
)
_DERIVED = re.compile(rf"  (?P<name>{NAME}) = getelementptr (?P<how>.*?), ptr (?P<at>{NAME})(?P<rest>, .*)")
_LOADED = re.compile(rf"  {NAME} = load (?P<type>{_SCALAR}), ptr (?P<at>{NAME}), ")
_STORED = re.compile(rf"  store (?P<type>{_SCALAR}) (?P<value>[^ ]+), ptr (?P<at>{NAME}), ")
_FILLED = re.compile(
    rf"  call void @llvm\.memset\.p0\.i64\(ptr (?:align \d+ )?(?P<at>{NAME}), i8 [^,]+, (?P<rest>i64 .*)"
)
_LIFETIME = "call void @llvm.lifetime."
_UNSET = ", !annotation "  # of a store by which clang marks what nobody has set
_NAMES = re.compile(NAME)
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
    """Return the text with such memory, and the variables' names, by the number that the runtime is given."""
    names: list[str] = []
    lines: list[str] = []
    function: list[str] | None = None
    for line in text.splitlines():
        if line.startswith("define ") and not _OF_METAL.search(line):
            function = []
        if function is None:
            lines.append(line)
            continue
        function.append(line)
        if line == "}":
            lines += _function(function, names)
            function = None
    return "\n".join(lines) + _RUNTIME, tuple(names)


def _function(lines: Sequence[str], names: list[str]) -> Iterator[str]:
    owner = _owners(lines)
    numbers: dict[str, int] = {}
    for i, line in enumerate(lines):
        yield line
        place = place_in(line)
        if (m := _ALLOCATED.match(line)) is not None and m["name"] in owner:
            numbers[m["name"]] = len(names)
            names.append(m["name"].strip('%"'))
            yield f"  {_flag(m['name'])} = alloca {m['type']}, align 16"
        elif (m := _DERIVED.match(line)) is not None and m["at"] in owner:
            yield f"  {_flag(m['name'])} = getelementptr {m['how']}, ptr {_flag(m['at'])}{m['rest']}"
        elif (m := _FILLED.match(line)) is not None and m["at"] in owner:
            yield f"  call void @llvm.memset.p0.i64(ptr {_flag(m['at'])}, i8 {0 if _UNSET in line else -1}, {m['rest']}"
        elif (m := _STORED.match(line)) is not None and m["at"] in owner:
            value = 0 if _UNSET in line else -1
            yield f"  store {_BITS.get(m['type'], m['type'])} {value}, ptr {_flag(m['at'])}, align 1, !nosanitize !{{}}"
        elif (m := _LOADED.match(line)) is not None and m["at"] in owner:
            kind = _BITS.get(m["type"], m["type"])
            what = numbers[owner[m["at"]]] << 1 | (kind == m["type"])
            flag, wide = f'%"$f{i}"', f'%"$g{i}"'
            yield f"  {flag} = load {kind}, ptr {_flag(m['at'])}, align 1, !nosanitize !{{}}"
            yield f"  {wide} = {'sext ' + kind if kind != 'i64' else 'bitcast i64'} {flag} to i64"
            yield f"  call void @metalnb_used(i64 {wide}, i32 {what}){place}"


def _flag(name: str) -> str:
    return '%"$set ' + name.strip('%"') + '"'


def _owners(lines: Sequence[str]) -> dict[str, str]:
    """Return each pointer to a variable that is watched, or into it, with the variable."""
    owner: dict[str, str] = {}
    unset: set[str] = set()
    dropped: set[str] = set()
    for line in lines:
        if (m := _ALLOCATED.match(line)) is not None:
            owner[m["name"]] = m["name"]
            continue
        used = [name for name in _NAMES.findall(line.partition(", !dbg")[0]) if name in owner]
        if not used or _LIFETIME in line:
            continue
        if (m := _DERIVED.match(line)) is not None and used == [m["at"]]:
            owner[m["name"]] = owner[m["at"]]
        elif _LOADED.match(line) is not None:
            continue
        elif (m := _STORED.match(line) or _FILLED.match(line)) is not None and used == [m["at"]]:
            if _UNSET in line:
                unset.add(owner[m["at"]])
        else:
            dropped |= {owner[name] for name in used}
    kept = unset - dropped
    return {pointer: root for pointer, root in owner.items() if root in kept}
