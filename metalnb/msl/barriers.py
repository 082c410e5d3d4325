"""Find kernels in which a thread may leave before a threadgroup_barrier that the others wait at (MSL 6.9.1).

All threads of a threadgroup must reach a barrier. Where some have returned, Apple's GPUs usually go on without them;
the specification promises nothing, and the CPU engine loses the group's work.
"""

from __future__ import annotations

from .tokens import Token, close, tokenize

__all__ = ["leaves_before_barrier"]

_BARRIER = "threadgroup_barrier"


def leaves_before_barrier(text: str, own: frozenset[str]) -> int:
    """Give the line, from 0, of the first ``if (…) return`` before a kernel's last barrier; -1 when there is none.

    Parameters
    ----------
    text : str
        The kernel's definition.
    own : frozenset of str
        The names of its inputs that differ among the threads of a threadgroup: only a condition that speaks of one
        parts them.
    """
    if not own or _BARRIER not in text or "return" not in text:
        return -1
    tokens = tokenize(text).program
    last = max((i for i, t in enumerate(tokens) if t.text == _BARRIER), default=-1)
    for i in range(last):
        if tokens[i].text == "if" and tokens[i + 1].text == "(":
            end = close(tokens, i + 1)
            parts = any(t.text in own for t in tokens[i + 2 : end])
            if parts and 0 < end < last and _returns(tokens, end + 1):
                return text.count("\n", 0, tokens[i].start)
    return -1


def _returns(tokens: list[Token], at: int) -> bool:
    """Tell whether a statement ends in ``return``: ``return;`` or ``{ …; return; }``."""
    if tokens[at].text == "return":
        return True
    end = close(tokens, at) if tokens[at].text == "{" else -1
    return end > at + 2 and tokens[end - 2].text == "return"
