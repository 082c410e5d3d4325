"""The MSL of a kernel that writes its results past the caches (``streamed.h``): of an op, and of a fused function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["streamed_kernel", "suits_vectors"]

_SIGNS = re.compile(r"[\w\s.()+*/,-]+")  # what means the same of floats and of vectors of them, as far as
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")  # … all names do:
_CALLED = frozenset(("T", "abs", "clip_of", "fma", "maximum_of", "minimum_of"))  # see streamed.h


def suits_vectors(expression: str, names: Iterable[str]) -> bool:
    """Return whether an expression of some floats is one of vectors, too; types and comparisons are not the same."""
    return _SIGNS.fullmatch(expression) is not None and {*_WORD.findall(expression)} <= {*names, *_CALLED}


def streamed_kernel(
    name: str, arrays: Sequence[str], numbers: Sequence[str], lines: Sequence[str], value: str
) -> list[str]:
    """Write a kernel for long results of float32: a thread makes a vector, and the first and the last one the rest.

    Parameters
    ----------
    name : str
        The kernel's.
    arrays, numbers : sequence of str
        What is read, and the scalars that the kernel is given.
    lines, value : sequence of str, str
        What the result is made of, and the result, where ``T`` is a float, or a vector.
    """
    made = []
    for kind in ("float", "wide"):
        given = ", ".join([*(f"{kind} {n}" for n in arrays), *(f"float {n}" for n in numbers)])
        made += [f"inline {kind} {name}_made({given}) {{", f"    using T = {kind};"]
        made += [*(f"    {line}" for line in lines), f"    return {value};", "}"]
    return [
        "#include <metalnb/streamed.h>",
        *made,
        f"template <{', '.join(f'typename {n}Step' for n in (*arrays, 'out'))}>",
        f"kernel void {name}(",
        *(f"    device const float* {n}_," for n in arrays),
        "    device float* out_,",
        "    constant Walk& walk,",
        *(f"    constant float& {n}," for n in numbers),
        "    uint thread_ [[thread_position_in_grid]]) {",
        "    const uint count_ = walk.sizes[0], head_ = before_line(out_), first_ = head_ + thread_ * WIDE;",
        f"    if (first_ + WIDE <= count_) stream(out_ + first_, {_call(name, arrays, numbers, 'load', 'first_')});",
        f"    else for (uint i_ = first_; i_ < count_; ++i_) out_[i_] = {_call(name, arrays, numbers, 'one', 'i_')};",
        "    if (thread_ > 0) return;",
        f"    for (uint i_ = 0; i_ < min(head_, count_); ++i_) out_[i_] = {_call(name, arrays, numbers, 'one', 'i_')};",
        "}",
    ]  # fmt: skip


def _call(name: str, arrays: Sequence[str], numbers: Sequence[str], read: str, place: str) -> str:
    return f"{name}_made({', '.join([*(f'Wide<{n}Step>::{read}({n}_, {place})' for n in arrays), *numbers])})"
