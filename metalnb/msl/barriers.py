"""Find kernels in which a thread may miss a threadgroup_barrier that the others wait at (MSL 6.9.1).

All threads of a threadgroup must reach a barrier. Where some have returned, or take another branch, Apple's GPUs
usually go on without them; the specification promises nothing, and the CPU engine loses the group's work.
"""

from __future__ import annotations

from collections.abc import Iterator

from .tokens import Token, close, tokenize

__all__ = ["barrier_in_branch", "leaves_before_barrier"]

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
    for i, end in _parting(tokens, own):
        if end < last and _returns(tokens, end + 1):
            return text.count("\n", 0, tokens[i].start)
    return -1


def barrier_in_branch(text: str, own: frozenset[str]) -> int:
    """Give the line, from 0, of the first barrier in a branch that not all threads of a threadgroup take; else -1.

    Parameters are as for `leaves_before_barrier`. Only a branch in braces is looked into: a barrier is seldom alone.
    """
    if not own or _BARRIER not in text:
        return -1
    tokens = tokenize(text).program
    for _, end in _parting(tokens, own):
        if tokens[end + 1].text != "{":
            continue
        stop = close(tokens, end + 1)
        if [t.text for t in tokens[stop + 1 : stop + 3]] == ["else", "{"]:
            stop = close(tokens, stop + 2)
        for token in tokens[end + 1 : stop]:
            if token.text == _BARRIER:
                return text.count("\n", 0, token.start)
    return -1


def _parting(tokens: list[Token], own: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield each ``if`` whose condition speaks of a name in `own`: where it stands, and where its condition ends."""
    for i, token in enumerate(tokens[:-1]):
        if token.text == "if" and tokens[i + 1].text == "(":
            end = close(tokens, i + 1)
            if 0 < end < len(tokens) - 1 and any(t.text in own for t in tokens[i + 2 : end]):
                yield i, end


def _returns(tokens: list[Token], at: int) -> bool:
    """Tell whether a statement ends in ``return``: ``return;`` or ``{ …; return; }``."""
    if tokens[at].text == "return":
        return True
    end = close(tokens, at) if tokens[at].text == "{" else -1
    return end > at + 2 and tokens[end - 2].text == "return"
