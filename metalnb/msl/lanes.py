"""Which kernels of a cell tell the lanes of a threadgroup apart.

Only for them must an engine cut SIMD-groups as Metal does; the rest it may run in whatever order is quick.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .tokens import tokenize

__all__ = ["kernels_with_lanes", "names_lanes"]


def names_lanes(words: Iterable[str]) -> bool:
    """Tell whether one of the words has to do with SIMD-groups or quad-groups (MSL 5.2.3.6, 6.9.2, 6.9.3)."""
    return any(w.startswith(("simd", "quad")) or "_simdgroup" in w or "_quadgroup" in w for w in words)


def kernels_with_lanes(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Tell of each kernel whether it, or anything outside of the kernels, names lanes: a function that it may call.

    Parameters
    ----------
    text : str
        The cell's.
    spans : sequence of (int, int)
        Where the kernels' definitions begin and end, in bytes of UTF-8.
    """
    data = text.encode()
    end, between = 0, []
    for start, stop in sorted(set(spans)):
        between.append(data[end:start])
        end = stop
    if _names_lanes(b" ".join([*between, data[end:]])):
        return [True] * len(spans)
    return [_names_lanes(data[start:stop]) for start, stop in spans]


def _names_lanes(data: bytes) -> bool:
    stream = tokenize(data.decode(errors="replace"))
    return names_lanes(t.text for tokens in (stream.program, *stream.macros) for t in tokens if t.kind == "word")
