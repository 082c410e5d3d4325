"""The faults of a call as text, and as HTML with the same content."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from metalnb.display import framed

from .faults import Fault, Faults

__all__ = ["fault_html", "fault_sentence", "fault_text"]

_CSS = (
    ".metalnb .metalnb-finding{border-left:3px solid #d08a2a;padding:1px 8px;margin:4px 12px}"
    ".metalnb .metalnb-finding pre{margin:2px 0}"
)


def fault_text(seen: Faults) -> str:
    """Render faults for a terminal."""
    lines = [f"{seen.kernel}: {_head(seen)}"]
    for fault in seen.findings:
        lines += [fault_sentence(fault), *_marked(fault)]
    return "\n".join([*lines, *_left_out(seen)])


def fault_html(seen: Faults) -> str:
    """Render faults for a notebook."""
    head = (
        f'<div class="metalnb-head"><code><b>{escape(seen.kernel)}</b></code> '
        f'<span class="metalnb-doc">{escape(_head(seen))}</span></div>'
    )
    listed = "".join(
        f'<div class="metalnb-finding">{escape(fault_sentence(f))}<pre>{escape(chr(10).join(_marked(f)))}</pre></div>'
        for f in seen.findings
    )
    rest = "".join(f"<div>{escape(line)}</div>" for line in _left_out(seen))
    return framed(f"{head}{listed}{rest}", _CSS)


def _head(seen: Faults) -> str:
    count = len(seen.findings)
    number = "no fault" if not count else "1 fault" if count == 1 else f"{count} faults"
    return f"{number} in {seen.accesses:,} accesses"


def _left_out(seen: Faults) -> list[str]:
    return [f"{seen.left_out:,} threadgroups were not run."] if seen.left_out else []


def _marked(fault: Fault) -> list[str]:
    if not fault.source:
        return []
    bare = fault.source.lstrip()
    cut = len(fault.source) - len(bare)
    return [f"    {bare}", " " * (4 + max(0, fault.column - 1 - cut)) + "^"]


def fault_sentence(fault: Fault) -> str:
    """Return what is wrong, and what may be done about it."""
    where = f"line {fault.line}: " if fault.line else ""
    times = f" ({fault.count:,} times in all)" if fault.count > 1 else ""
    return f"{where}{_SENTENCES[fault.kind](fault)}{times}."


def _beyond(fault: Fault) -> str:
    if fault.name:
        side = "before the start" if (fault.index or 0) < 0 else "beyond the end"
        return f"{_accesses(fault)}, {side}"
    if fault.index is None:
        deed = "writes" if fault.written else "reads"
        return f"thread {fault.thread} {deed} memory that no argument has, and was ended there"
    return f"thread {fault.thread} uses index {fault.index} of an array that is shorter, and was ended there"


def _race(fault: Fault) -> str:
    other = fault.other
    if other is None:
        return _accesses(fault)
    deed = "wrote" if other.written else "read"
    on_line = f" on line {other.line}" if other.line else ""
    within = other.threadgroup == fault.threadgroup
    cure = "put a barrier between them" if within else "nothing orders threadgroups; use an atomic, or an element each"
    return f"{_accesses(fault)}, which thread {other.thread} {deed}{on_line}: {cure}"


def _barrier(fault: Fault) -> str:
    if fault.other is None:
        return f"a threadgroup's threads wait at different barriers, thread {fault.thread} at this one"
    return f"thread {fault.thread} never reached the barrier at which thread {fault.other.thread} waits"


def _accesses(fault: Fault) -> str:
    return f"thread {fault.thread} {'writes' if fault.written else 'reads'} {fault.name}[{fault.index}]"


_SENTENCES: dict[str, Callable[[Fault], str]] = {
    "beyond": _beyond,
    "race": _race,
    "never written": lambda f: f"{_accesses(f)}, which no thread of its threadgroup has written",
    "barrier": _barrier,
    "conversion": lambda f: f"thread {f.thread} converts a float to an integer that cannot hold it",
}
