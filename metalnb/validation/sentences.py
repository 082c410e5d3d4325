"""The text of a finding: the error, its position, and a possible fix."""

from __future__ import annotations

from collections.abc import Callable

from .access_report import Finding

__all__ = ["sentence"]

_WRAPPED = 1 << 31  # an unsigned index from here on has gone below 0


def sentence(found: Finding) -> str:
    """Return a sentence about a finding, with its source line."""
    where = f"line {found.line}: " if found.line else ""
    times = f" ({found.count:,} times in all)" if found.count > 1 and found.kind != "missing write" else ""
    case = f"with {found.case} threads, " if found.case else ""
    return f"{where}{case}{_SENTENCES[found.kind](found)}{times}."


def _accesses(found: Finding) -> str:
    return f"thread {found.thread} {'writes' if found.written else 'reads'} {found.name}[{found.index}]"


def _beyond(found: Finding) -> str:
    if not found.name:
        if found.index is None:
            deed = "writes" if found.written else "reads"
            return f"thread {found.thread} {deed} memory that no argument has, and was stopped there"
        return f"thread {found.thread} uses index {found.index} of an array that is shorter, and was stopped there"
    index = found.index or 0
    if index < 0:
        return f"{_accesses(found)}, before the start"
    has = f": {found.name} has {found.size:,} element{'s' * (found.size != 1)}" if found.size else ""
    if index >= _WRAPPED:
        wrapped = f" (which is {index - (1 << 32)} as a uint: it went below 0)"
        return f"{_accesses(found)}{wrapped}, beyond the end{has}"
    return f"{_accesses(found)}, beyond the end{has}"


def _race(found: Finding) -> str:
    other = found.other
    if other is None:
        return _accesses(found)
    deed = "wrote" if other.written else "read"
    on_line = f" on line {other.line}" if other.line else ""
    within = other.threadgroup == found.threadgroup
    cure = "put a barrier between them" if within else "nothing orders threadgroups; use an atomic, or an element each"
    if within and other.line == found.line:
        cure = "use an atomic, or an element each"
    if found.others:
        cure = f"it is in the memory of {' and '.join(found.others)} too; pass a copy of one"
    mine = "" if found.value is None else f" = {found.value:g}" if found.written else f" as {found.value:g}"
    theirs = "" if other.value is None or not found.written else f" as {other.value:g}"
    return f"{_accesses(found)}{mine}, which thread {other.thread} {deed}{theirs}{on_line}: {cure}"


def _never_written(found: Finding) -> str:
    if found.index is not None:
        return f"{_accesses(found)}, which no thread of its threadgroup has written"
    if found.name:
        return f"thread {found.thread} uses {found.name}, a variable of its own that it has never set: give it a value"
    return f"thread {found.thread} uses a variable of its own that it has never set"


def _barrier(found: Finding) -> str:
    if found.other is None:
        return f"a threadgroup's threads wait at different barriers, thread {found.thread} at this one"
    who = f"thread {found.thread} never reached the barrier at which thread {found.other.thread} waits"
    return f"{who}: all threads of a threadgroup must reach it, so keep it out of an if, and return after it"


def _conversion(found: Finding) -> str:
    what = f"{found.given[0]:g}" if found.given else "a float"
    return f"thread {found.thread} converts {what} to an integer type that cannot hold it"


def _shift(found: Finding) -> str:
    count = int(found.given[0]) if found.given else 0
    count = count - (1 << 64) if count >= 1 << 63 else count
    return f"thread {found.thread} shifts by {count} bits, which is not within the width of the type"


def _division(found: Finding) -> str:
    return f"thread {found.thread} divides an integer by 0, which may give any number"


def _lane(found: Finding) -> str:
    lane = found.index or 0
    takes = f"thread {found.thread} takes a value from lane {lane} of its SIMD-group"
    if lane >= found.size:
        return f"{takes}, which has {found.size} lane{'s' * (found.size != 1)}: the value is undefined"
    cure = "let all lanes execute it, and choose from the values afterwards"
    return f"{takes}, which takes no part: it is on another path or has ended, and the value is undefined; {cure}"


def _misaligned(found: Finding) -> str:
    return f"{_accesses(found)} at an address that is not a multiple of the access's size: use a packed type"


def _not_finite(found: Finding) -> str:
    what = "NaN" if found.kind == "nan" else "an infinity"
    values = [f"{v:g}" for v in found.given]
    if found.operation == "half":
        of = f"of {values[0]}, which half cannot hold" if values else "by conversion to half"
    elif len(values) == 2 and not found.operation.isalpha():
        of = f"by {values[0]} {found.operation} {values[1]}"
    else:
        of = f"by {found.operation}({', '.join(values)})"
    by = f", by thread {found.other.thread}" if found.other else ""
    return f"thread {found.thread} makes {what} {of}; it ends in {found.name}[{found.index}]{by}"


def _endless(found: Finding) -> str:
    iterations = int(found.given[0]) if found.given else 0
    return f"thread {found.thread} is in a loop that had not ended after {iterations:,} iterations, when it was stopped"


def _reported(found: Finding) -> str:
    return found.operation.rstrip(".")


def _missing(found: Finding) -> str:
    if found.count == found.size:
        return f"{found.name}: no element is written"
    be = "is" if found.count == 1 else "are"
    return f"{found.name}: {found.count:,} of {found.size:,} elements {be} never written, the first is [{found.index}]"


def _twice(found: Finding) -> str:
    if found.other is None:
        return _accesses(found)
    on_line = f" on line {found.other.line}" if found.other.line else ""
    return f"{_accesses(found)} again: what thread {found.other.thread} wrote{on_line} was never read"


_SENTENCES: dict[str, Callable[[Finding], str]] = {
    "beyond": _beyond,
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
    "endless": _endless,
    "reported": _reported,
    "missing write": _missing,
    "written twice": _twice,
}
