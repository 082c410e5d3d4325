"""The text of a finding: the error, its position, and a possible fix."""

from __future__ import annotations

from collections.abc import Callable

from metalnb.plurals import quantity

from .access_report import Finding

__all__ = ["sentence"]

_WRAPPED = 1 << 31  # a uint from here on has gone below 0
_EXACT = 1e16  # whole numbers below this are written in full


def sentence(finding: Finding) -> str:
    """Return a sentence about a finding, with its source line."""
    location = f"line {finding.line}: " if finding.line else ""
    times = f" ({finding.count:,} times in all)" if finding.count > 1 and finding.kind != "missing write" else ""
    case = f"with {finding.case} {'thread' if finding.case == '1' else 'threads'}, " if finding.case else ""
    return f"{location}{case}{_SENTENCES[finding.kind](finding)}{times}."


def _access(finding: Finding) -> str:
    return f"thread {finding.thread} {'writes' if finding.written else 'reads'} {finding.name}[{finding.index}]"


def _number(value: float) -> str:
    """Return a number with all its digits if it is whole, since two may differ only in the last."""
    is_whole = isinstance(value, int) or (abs(value) < _EXACT and value.is_integer())
    return str(int(value)) if is_whole else f"{value:g}"


def _out_of_bounds(finding: Finding) -> str:
    if not finding.name:
        if finding.index is None:
            verb = "writes" if finding.written else "reads"
            return f"thread {finding.thread} {verb} memory outside all arguments, and was stopped there"
        return f"thread {finding.thread} uses index {finding.index} of an array that is shorter, and was stopped there"
    index = finding.index or 0
    if index < 0:
        return f"{_access(finding)}, before the start"
    size = f": {finding.name} has {quantity(finding.size, 'element')}" if finding.size else ""
    if _WRAPPED <= index < 2 * _WRAPPED:
        as_signed = f" (which is {index - (1 << 32)} as a uint: it went below 0)"
        return f"{_access(finding)}{as_signed}, beyond the end{size}"
    return f"{_access(finding)}, beyond the end{size}"


def _race(finding: Finding) -> str:
    party = finding.other
    if party is None:
        return _access(finding)
    verb = "wrote" if party.written else "read"
    on_line = f" on line {party.line}" if party.line else ""
    same_group = party.threadgroup == finding.threadgroup
    unordered = "nothing orders threadgroups; use an atomic, or give each thread its own element"
    cure = "put a barrier between them" if same_group else unordered
    if same_group and party.line == finding.line:
        cure = "use an atomic, or give each thread its own element"
    if finding.operation == "mem_none":
        memory = "mem_device" if finding.size else "mem_threadgroup"
        cure = f"the barrier between them orders no memory: use mem_flags::{memory}"
    if finding.others:
        cure = f"it is in the memory of {' and '.join(finding.others)} too; pass a copy of one"
    word = "=" if finding.written else "as"
    own_value = "" if finding.value is None else f" {word} {_number(finding.value)}"
    other_value = "" if party.value is None or not finding.written else f" as {_number(party.value)}"
    return f"{_access(finding)}{own_value}, which thread {party.thread} {verb}{other_value}{on_line}: {cure}"


def _never_written(finding: Finding) -> str:
    if finding.index is not None:
        return f"{_access(finding)}, which no thread of its threadgroup has written"
    if finding.name:
        variable = f"{finding.name}, a variable of its own that it has never set"
        return f"thread {finding.thread} uses {variable}: give it a value"
    return f"thread {finding.thread} uses a variable of its own that it has never set"


def _barrier(finding: Finding) -> str:
    if finding.other is None:
        return f"a threadgroup's threads wait at different barriers, thread {finding.thread} at this one"
    subject = f"thread {finding.thread} never reached the barrier at which thread {finding.other.thread} waits"
    return f"{subject}: all threads of a threadgroup must reach it, so keep it out of an if, and return after it"


def _conversion(finding: Finding) -> str:
    value = _number(finding.operands[0]) if finding.operands else "a float"
    return f"thread {finding.thread} converts {value} to an integer type that cannot hold it"


def _shift(finding: Finding) -> str:
    count = int(finding.operands[0]) if finding.operands else 0
    count = count - (1 << 64) if count >= 1 << 63 else count
    return f"thread {finding.thread} shifts by {count} bits, which is outside the width of the type"


def _division(finding: Finding) -> str:
    return f"thread {finding.thread} divides an integer by 0, which may give any number"


def _lane(finding: Finding) -> str:
    lane = finding.index or 0
    subject = f"thread {finding.thread} takes a value from lane {lane} of its SIMD-group"
    if lane >= finding.size:
        return f"{subject}, which has {quantity(finding.size, 'lane')}: the value is undefined"
    cure = "let all lanes execute it, and choose from the values afterwards"
    return f"{subject}, which takes no part: it is on another path or has ended, and the value is undefined; {cure}"


def _misaligned(finding: Finding) -> str:
    return f"{_access(finding)} at an address that is not a multiple of the access's size: use a packed type"


def _not_finite(finding: Finding) -> str:
    value = "NaN" if finding.kind == "nan" else "an infinity"
    values = [f"{v:g}" for v in finding.operands]
    if finding.operation == "half":
        source = f"of {values[0]}, which half cannot hold" if values else "by conversion to half"
    elif len(values) == 2 and not finding.operation.isalpha():
        source = f"by {values[0]} {finding.operation} {values[1]}"
    else:
        source = f"by {finding.operation}({', '.join(values)})"
    writer = f", by thread {finding.other.thread}" if finding.other else ""
    return f"thread {finding.thread} makes {value} {source}; it ends in {finding.name}[{finding.index}]{writer}"


def _endless_loop(finding: Finding) -> str:
    iterations = int(finding.operands[0]) if finding.operands else 0
    loop = f"a loop that had not ended after {iterations:,} iterations"
    return f"thread {finding.thread} is in {loop}, when it was stopped"


def _device_report(finding: Finding) -> str:
    return finding.operation.rstrip(".")


def _missing_write(finding: Finding) -> str:
    if finding.count == finding.size:
        return f"{finding.name}: no element is written"
    be = "is" if finding.count == 1 else "are"
    share = f"{finding.count:,} of {quantity(finding.size, 'element')}"
    return f"{finding.name}: {share} {be} never written, the first is [{finding.index}]"


def _written_twice(finding: Finding) -> str:
    if finding.other is None:
        return _access(finding)
    on_line = f" on line {finding.other.line}" if finding.other.line else ""
    return f"{_access(finding)} again: what thread {finding.other.thread} wrote{on_line} was never read"


_SENTENCES: dict[str, Callable[[Finding], str]] = {
    "beyond": _out_of_bounds,
    "race": _race,
    "never written": _never_written,
    "barrier": _barrier,
    "conversion": _conversion,
    "shift": _shift,
    "division": _division,
    "lane": _lane,
    "misaligned": _misaligned,
    "nan": _not_finite,
    "infinity": _not_finite,
    "endless": _endless_loop,
    "reported": _device_report,
    "missing write": _missing_write,
    "written twice": _written_twice,
}
