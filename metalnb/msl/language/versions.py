"""Find the version of MSL that introduced a word, and the words in a cell that are newer than a version."""

from __future__ import annotations

import itertools
import re

from metalnb.errors import Diagnostic

from ..text.bracket_tree import Outline, outline
from ..text.scanned_cell import Cell
from ..text.tokens import Token

__all__ = ["DEFAULT", "LAMBDAS", "SINCE", "VERSIONS", "Version", "newer_words", "read", "version_text", "words"]

Version = tuple[int, int]

VERSIONS: tuple[Version, ...] = ((2, 3), (2, 4), (3, 0), (3, 1), (3, 2))  # those that a cell can request
DEFAULT: Version = (3, 2)
LAMBDAS: Version = (3, 2)  # the first version that allows lambdas (MSL 1.5.4)

# Words of compute kernels introduced after MSL 2.3.
_WORDS: dict[Version, str] = {
    (2, 4): "atomic_bool atomic_ulong atomic_max_explicit atomic_min_explicit simd_shuffle_and_fill_up "
            "simd_shuffle_and_fill_down quad_shuffle_and_fill_up quad_shuffle_and_fill_down",
    (3, 0): "atomic_float mem_object_data",
    (3, 1): "bfloat bfloat2 bfloat3 bfloat4 packed_bfloat2 packed_bfloat3 packed_bfloat4 simdgroup_bfloat8x8 nextafter "
            "MAXBFLOAT HUGE_VALBF M_E_BF M_LOG2E_BF M_LOG10E_BF M_LN2_BF M_LN10_BF M_PI_BF M_PI_2_BF M_PI_4_BF "
            "M_1_PI_BF M_2_PI_BF M_2_SQRTPI_BF M_SQRT2_BF M_SQRT1_2_BF",
    (3, 2): "atomic_thread_fence memory_order_seq_cst thread_scope_thread thread_scope_simdgroup "
            "thread_scope_threadgroup thread_scope_device",
}  # fmt: skip
SINCE = {word: version for version, line in _WORDS.items() for word in line.split()}


def read(text: str) -> Version:
    """Parse a version as authors write it: "2.3".

    Raises
    ------
    ValueError
        If the version does not exist; the message lists those that do.
    """
    for version in VERSIONS:
        if version_text(version) == text:
            return version
    message = f"msl is one of {', '.join(map(version_text, VERSIONS))}; got {text!r}"
    raise ValueError(message)


def version_text(version: Version) -> str:
    """Format a version: "2.3"."""
    return ".".join(map(str, version))


def words(cell: Cell) -> list[str]:
    """Return the words of a cell, including macros but not comments and strings."""
    return list(outline(cell.edited.original).words)


def newer_words(cell: Cell, version: Version) -> list[tuple[str, Version, Diagnostic]]:
    """Return the words that a version of the language lacks, each with the version that has it and its first position.

    Words that the cell itself declares are left out, and so are words inside ``#if __METAL_VERSION__ …``.
    """
    text = outline(cell.edited.original)
    guarded_ranges = _guarded_ranges(text)
    newer_words: dict[str, tuple[str, Version, Diagnostic]] = {}
    for tree in text.trees:
        declared_words = _declared_words(tree.tokens)
        for token in tree.tokens:
            since = SINCE.get(token.text)
            if (
                since is None
                or since <= version
                or token.kind != "word"
                or token.text in declared_words
                or token.text in newer_words
            ):
                continue
            if any(start <= token.start < end for start, end in guarded_ranges):
                continue
            line, column = cell.edited.position(token.start)
            place = Diagnostic(line, column, _needs(token.text), cell.edited.line(line), cell.name)
            newer_words[token.text] = (token.text, since, place)
    return list(newer_words.values())


def _needs(word: str) -> str:
    major, minor = SINCE[word]
    return f"'{word}' needs MSL {major}.{minor}"


def _declared_words(tokens: list[Token]) -> set[str]:
    """Return the words after struct, class, using or enum, and after a member access."""
    return {
        following.text
        for previous, following in itertools.pairwise(tokens)
        if previous.text in {"struct", "class", "using", "enum", "union", "typename", ".", "->"}
    }


_CONDITION = re.compile(r"if(?:n?def)?$")
_VERSION = frozenset({"__METAL_VERSION__", "__HAVE_BFLOAT__"})


def _guarded_ranges(text: Outline) -> list[tuple[int, int]]:
    """Return the ranges of text between a conditional that tests the language's version and its ``#endif``."""
    ranges = []
    open_starts: list[int] = []
    for directive in text.directives:
        if _CONDITION.match(directive.name):
            tests_version = any(t.text in _VERSION for t in directive.tokens)
            open_starts.append(directive.start if tests_version else -1)
        elif directive.name == "endif" and open_starts:
            start = open_starts.pop()
            if start >= 0:
                ranges.append((start, directive.start))
    ranges += [(start, len(text.source)) for start in open_starts if start >= 0]
    return ranges
