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

__all__ = ["count_arithmetic", "flags_for_length", "flags_for_vectors", "limit_inlining"]

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
_LONG_INSTRUCTIONS = 20_000  # clang compiles that many in one to five seconds
_TOO_LONG = 50_000
_WORTH_A_CALL = 1_000
_MAX_UNROLLED = 64  # clang does not unroll longer loops by itself
_RUNTIME = "metalnb_"  # the prefix of functions in which threads may wait for each other
_LONG_VECTORS, _LONG_NARROW = 10_000, 20_000  # lines
_REGISTER_BITS = 128  # bits of a register, so that a vector of 32 floats takes eight
# Skips CodeGenPrepare, which took 20 of 25 seconds for 27,000 lines of vector code.
_NO_PREPARATION = ("-mllvm", "-disable-cgp")
# Allocates registers block by block: 34,000 lines for 128-bit registers take 26 seconds instead of 300.
_FAST_ALLOCATION = (*_NO_PREPARATION, "-mllvm", "-regalloc=fast", "-mllvm", "-optimize-regalloc=false")
# Also skips the machine scheduler and the SLP vectorizer.
_FEWER_PASSES = (*_NO_PREPARATION, "-mllvm", "-enable-misched=false", "-fno-slp-vectorize")


@dataclass(slots=True)
class _Function:
    """A function's part of LLVM IR.

    Attributes
    ----------
    line : int
        The line where it begins.
    group : str
        The number of its attribute group.
    arithmetic : int
        The number of its own arithmetic instructions, without those of its callees.
    calls : Counter of str
        Calls, by the name of the function called.
    calls_outside : bool
        Whether it calls the runtime or an unknown function.
    """

    line: int
    group: str
    arithmetic: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    calls_outside: bool = False


def count_arithmetic(text: str) -> int:
    """Return the number of arithmetic instructions in the longest function, after inlining and unrolling."""
    lines = text.splitlines()
    return max(_lengths(_functions(lines), _noinline_groups(lines)).values(), default=0)


def flags_for_length(text: str) -> tuple[str, ...]:
    """Return flags that bound clang's time on LLVM IR: none unless a function, fully inlined, is long."""
    return _FEWER_PASSES if count_arithmetic(text) > _LONG_INSTRUCTIONS else ()


def flags_for_vectors(text: str, bits: int) -> tuple[str, ...]:
    """Return flags that bound clang's time on vector code: none unless the text is long.

    Parameters
    ----------
    text : str
    bits : int
        The width of a vector register.
    """
    lines = text.count("\n")
    if lines > _LONG_NARROW and bits <= _REGISTER_BITS:
        return _FAST_ALLOCATION
    return _NO_PREPARATION if lines > _LONG_VECTORS else ()


def limit_inlining(text: str) -> str:
    """Return LLVM IR in which, if it is very long, long functions with several call sites are not inlined.

    A function in which threads may wait for one another is still inlined: the runtime identifies such calls by their
    position.
    """
    lines = text.splitlines()
    functions = _functions(lines)
    lengths = _lengths(functions, _noinline_groups(lines))
    if max(lengths.values(), default=0) <= _TOO_LONG:
        return text
    call_counts: Counter[str] = sum((f.calls for f in functions.values()), Counter())
    for name, function in functions.items():
        if call_counts[name] > 1 and lengths[name] >= _WORTH_A_CALL and not _calls_outside(functions, name):
            _forbid_inlining(lines, function)
    return "\n".join(lines) + "\n"


def _functions(lines: Sequence[str]) -> dict[str, _Function]:
    """Read a text's functions."""
    functions: dict[str, _Function] = {}
    start = -1
    for i, line in enumerate(lines):
        if line.startswith("define "):
            start = i
        elif start >= 0 and line == "}":
            head = _HEAD.match(lines[start])
            if head:
                group = _GROUP.findall(lines[start])
                functions[head[1]] = _read_function(start, group[-1] if group else "", lines[start + 1 : i])
            start = -1
    return functions


def _read_function(line: int, group: str, body: Sequence[str]) -> _Function:
    function = _Function(line, group)
    for text, times in zip(body, _iterations(body), strict=True):
        if _ARITHMETIC.match(text):
            function.arithmetic += times
        elif call := _CALL.search(text):
            function.calls[call["name"]] += times
            function.calls_outside |= call["mark"] == "%" or call["name"].startswith(_RUNTIME)
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
    steps: dict[str, int] = {}  # by variable: the amount that this block adds to it
    times = [1] * len(body)
    label = ""
    for i, text in enumerate(body):
        if match := _LABEL.match(text):
            label = match[1]
            labels[label] = i
            steps.clear()
        elif match := _LOAD.match(text):
            variables[match[1]] = match[2]
        elif match := _STEP.match(text):
            steps[variables.get(match[1], "")] = int(match[2])
        elif match := _BOUND.match(text):
            bounds.setdefault(label, (int(match[2]), variables.get(match[1], "")))
        elif match := _BACK.match(text):
            bound, variable = bounds.get(match[1], (1, ""))
            step = steps.get(variable, 1) if variable else 1
            count = -(-bound // max(step, 1))
            if 1 < count <= _MAX_UNROLLED:
                first = labels.get(match[1], i)
                times[first : i + 1] = [count * n for n in times[first : i + 1]]
    return times


def _noinline_groups(lines: Sequence[str]) -> frozenset[str]:
    """Return the attribute groups of functions that are not inlined."""
    return frozenset(
        line.split()[1][1:] for line in reversed(lines) if line.startswith("attributes #") and " noinline " in line
    )


def _lengths(functions: Mapping[str, _Function], noinline: frozenset[str]) -> dict[str, int]:
    """Return the number of arithmetic instructions of each function, including its inlined callees."""
    lengths: dict[str, int] = {}

    def length(name: str) -> int:
        if name not in lengths:
            function = functions[name]
            lengths[name] = function.arithmetic
            lengths[name] += sum(
                times * length(callee) for callee, times in function.calls.items()
                if callee in functions and functions[callee].group not in noinline
            )  # fmt: skip
        return lengths[name]

    for name in functions:
        length(name)
    return lengths


def _calls_outside(functions: Mapping[str, _Function], name: str) -> bool:
    """Return whether a function or its callees call outside the module."""
    visited, worklist = {name}, [name]
    while worklist:
        function = functions[worklist.pop()]
        if function.calls_outside:
            return True
        new = (function.calls.keys() & functions.keys()) - visited
        visited |= new
        worklist += new
    return False


def _forbid_inlining(lines: list[str], function: _Function) -> None:
    """Give a function its own attribute group, which forbids inlining."""
    number = len(lines)  # unique: a text has fewer attribute groups than lines
    group = next((line for line in reversed(lines) if line.startswith(f"attributes #{function.group} = ")), "{ }")
    plain = re.sub(r" (?:alwaysinline|inlinehint|noinline)(?= )", "", group.partition("{")[2])
    lines.append(f"attributes #{number} = {{ noinline{plain}")
    head = lines[function.line]
    offset = head.rfind(f" #{function.group} ")
    lines[function.line] = f"{head[:offset]} #{number} {head[offset + len(function.group) + 3 :]}"
