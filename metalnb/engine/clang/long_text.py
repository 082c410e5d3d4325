"""Bound the compile time of long kernels: inline less, and skip the slowest passes.

Some passes of LLVM's code generators are quadratic in the length of a block, and inlining turns straight-line
arithmetic into a single block: 16 products in a 384-bit field are about 80,000 instructions. Above a threshold,
functions with several call sites are therefore not inlined, and a kernel that is still too long is compiled without the
slow passes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["arithmetic_of", "flags_for_length", "flags_for_vectors", "with_functions"]

_NAME = r'(?:"[^"]*"|[-\w.$]+)'
_HEAD = re.compile(rf"define [^@]*@({_NAME})\(")
_GROUP = re.compile(r" #(\d+)(?= )")
_CALL = re.compile(rf" (?:call|invoke) .*?(?P<mark>[@%])(?P<name>{_NAME})\(")
_LABEL = re.compile(rf"({_NAME}):")
_BACK = re.compile(rf"  br (?:i1 [^,]+, label %{_NAME}, )?label %({_NAME}),.* !llvm\.loop ")
_BOUND = re.compile(r"  %\S+ = icmp \w+ i\d+ (%[^,]+), (\d+)(?:,|$)")
_LOAD = re.compile(r"  (%\S+) = load i\d+, ptr (%[^,]+)")
_STEP = re.compile(r"  %\S+ = add (?:nuw |nsw )*i\d+ (%[^,]+), (\d+)(?:,|$)")
_ARITHMETIC = re.compile(
    r"  %\S+ = (?:f?(?:add|sub|mul|cmp)|fneg|[fsu](?:div|rem)|shl|[la]shr|and|or|xor|icmp|select|trunc|[sz]ext)\b"
)

# Arithmetic instructions; those in a loop count once per iteration that is certain to run.
_LONG = 20_000  # clang compiles that many in one to five seconds
_ENDLESS = 50_000
_WORTH_A_CALL = 1_000
_MOST_ITERATIONS = 64  # clang does not unroll longer loops by itself
_RUNTIME = "metalnb_"  # functions in which threads may wait for each other
_LONG_VECTORS, _LONG_NARROW = 10_000, 20_000  # lines
_NARROW = 128  # bits of a register, so that a vector of 32 floats takes eight
# Skips CodeGenPrepare, which took 20 of 25 seconds for 27,000 lines of vector code.
_UNPREPARED = ("-mllvm", "-disable-cgp")
# Allocates registers block by block: 34,000 lines for 128-bit registers take 26 seconds instead of 300.
_BY_BLOCKS = (*_UNPREPARED, "-mllvm", "-regalloc=fast", "-mllvm", "-optimize-regalloc=false")
# Also skips the machine scheduler and the SLP vectoriser.
_SHORTER = (*_UNPREPARED, "-mllvm", "-enable-misched=false", "-fno-slp-vectorize")


@dataclass(slots=True)
class _Function:
    """A function's part of LLVM IR.

    Attributes
    ----------
    line : int
        The line where it begins.
    group : str
        The number of its attribute group.
    own : int
        Its own arithmetic.
    calls : Counter of str
        Calls, by the name of the function called.
    leads_out : bool
        Whether it calls the runtime or an unknown function.
    """

    line: int
    group: str
    own: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    leads_out: bool = False


def arithmetic_of(text: str) -> int:
    """Return the number of arithmetic instructions in the longest function of LLVM IR, inlined and unrolled."""
    lines = text.splitlines()
    return max(_lengths(_functions(lines), _kept(lines)).values(), default=0)


def flags_for_length(text: str) -> tuple[str, ...]:
    """Return flags that bound clang's time on LLVM IR: none unless a function, fully inlined, is long."""
    return _SHORTER if arithmetic_of(text) > _LONG else ()


def flags_for_vectors(text: str, bits: int) -> tuple[str, ...]:
    """Return flags that bound clang's time on vector code: none unless the text is long.

    Parameters
    ----------
    text : str
    bits : int
        Of a vector register.
    """
    lines = text.count("\n")
    if lines > _LONG_NARROW and bits <= _NARROW:
        return _BY_BLOCKS
    return _UNPREPARED if lines > _LONG_VECTORS else ()


def with_functions(text: str) -> str:
    """Return LLVM IR, with long functions that are called more than once kept from inlining if it is very long.

    A function in which threads may wait for one another is still inlined: the runtime identifies such calls by their
    position.
    """
    lines = text.splitlines()
    functions = _functions(lines)
    lengths = _lengths(functions, _kept(lines))
    if max(lengths.values(), default=0) <= _ENDLESS:
        return text
    called: Counter[str] = sum((f.calls for f in functions.values()), Counter())
    for name, function in functions.items():
        if called[name] > 1 and lengths[name] >= _WORTH_A_CALL and not _leads_out(functions, name):
            _keep(lines, function)
    return "\n".join(lines) + "\n"


def _functions(lines: Sequence[str]) -> dict[str, _Function]:
    """Read a text's functions."""
    found: dict[str, _Function] = {}
    start = -1
    for i, line in enumerate(lines):
        if line.startswith("define "):
            start = i
        elif start >= 0 and line == "}":
            head = _HEAD.match(lines[start])
            if head:
                group = _GROUP.findall(lines[start])
                found[head[1]] = _read(start, group[-1] if group else "", lines[start + 1 : i])
            start = -1
    return found


def _read(line: int, group: str, body: Sequence[str]) -> _Function:
    function = _Function(line, group)
    for text, times in zip(body, _iterations(body), strict=True):
        if _ARITHMETIC.match(text):
            function.own += times
        elif call := _CALL.search(text):
            function.calls[call["name"]] += times
            function.leads_out |= call["mark"] == "%" or call["name"].startswith(_RUNTIME)
    return function


def _iterations(body: Sequence[str]) -> list[int]:
    """Return how often each line runs, given the loops with constant bounds; loops are in order and nested.

    A loop counts from 0, by 1 or by the step that the IR shows for the compared variable, which is in memory before
    mem2reg has run.
    """
    if not any(" !llvm.loop " in text for text in body):
        return [1] * len(body)
    labels: dict[str, int] = {}
    bounds: dict[str, tuple[int, str]] = {}  # by block: a bound, and the variable compared with it
    variables: dict[str, str] = {}  # by value: the variable that it was loaded from
    steps: dict[str, int] = {}  # by variable: what this block adds to it
    times = [1] * len(body)
    label = ""
    for i, text in enumerate(body):
        if found := _LABEL.match(text):
            label = found[1]
            labels[label] = i
            steps.clear()
        elif found := _LOAD.match(text):
            variables[found[1]] = found[2]
        elif found := _STEP.match(text):
            steps[variables.get(found[1], "")] = int(found[2])
        elif found := _BOUND.match(text):
            bounds.setdefault(label, (int(found[2]), variables.get(found[1], "")))
        elif found := _BACK.match(text):
            bound, variable = bounds.get(found[1], (1, ""))
            step = steps.get(variable, 1) if variable else 1
            count = -(-bound // max(step, 1))
            if 1 < count <= _MOST_ITERATIONS:
                first = labels.get(found[1], i)
                times[first : i + 1] = [count * n for n in times[first : i + 1]]
    return times


def _kept(lines: Sequence[str]) -> frozenset[str]:
    """Return the attribute groups of functions that are not inlined."""
    return frozenset(
        line.split()[1][1:] for line in reversed(lines) if line.startswith("attributes #") and " noinline " in line
    )


def _lengths(functions: Mapping[str, _Function], kept: frozenset[str]) -> dict[str, int]:
    """Return each function's arithmetic, with its inlined callees."""
    lengths: dict[str, int] = {}

    def length(name: str) -> int:
        if name not in lengths:
            function = functions[name]
            lengths[name] = function.own
            lengths[name] += sum(
                times * length(called) for called, times in function.calls.items()
                if called in functions and functions[called].group not in kept
            )  # fmt: skip
        return lengths[name]

    for name in functions:
        length(name)
    return lengths


def _leads_out(functions: Mapping[str, _Function], name: str) -> bool:
    """Return whether a function or its callees call outside the module."""
    reached, ahead = {name}, [name]
    while ahead:
        function = functions[ahead.pop()]
        if function.leads_out:
            return True
        new = (function.calls.keys() & functions.keys()) - reached
        reached |= new
        ahead += new
    return False


def _keep(lines: list[str], function: _Function) -> None:
    """Give a function its own attribute group, which forbids inlining."""
    number = len(lines)  # unique: a text has fewer attribute groups than lines
    given = next((line for line in reversed(lines) if line.startswith(f"attributes #{function.group} = ")), "{ }")
    plain = re.sub(r" (?:alwaysinline|inlinehint|noinline)(?= )", "", given.partition("{")[2])
    lines.append(f"attributes #{number} = {{ noinline{plain}")
    head = lines[function.line]
    at = head.rfind(f" #{function.group} ")
    lines[function.line] = f"{head[:at]} #{number} {head[at + len(function.group) + 3 :]}"
