"""Random kernels whose index is a linear function of a thread's inputs: negative factors, types, forms.

`test_affine_bounds.py` calls them with arrays as long as the largest index needs, and one element shorter.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["GROUPS", "HEAD", "THREADS", "Affine", "affine"]

GROUPS, THREADS = 4, 32
HEAD = """#include <metal_stdlib>
using namespace metal;
struct Pair { float first, second; };
"""
_TYPES = ("float", "uchar", "float4", "Pair")
_FACTORS = (-64, -33, -32, -16, -5, -3, -1, 1, 2, 4, 7, 16, 32, 48)
_VALUES = {"g": "threadgroup_position_in_grid", "l": "thread_position_in_threadgroup", "i": "thread_position_in_grid"}


@dataclass(frozen=True)
class Affine:
    """A kernel in which each thread reads or writes one element in each iteration of a loop, or one without a loop.

    Attributes
    ----------
    text : str
        The kernel's source. Its parameters are the array, the number added to the index, and the output if it reads.
    kind : str
    written : bool
    index : numpy.ndarray
        The element that each thread takes when nothing is added; the last axis is the loop's.
    """

    text: str
    kind: str
    written: bool
    index: np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def affine(rng: random.Random, name: str) -> Affine:
    """Return a random kernel."""
    kind, written = rng.choice(_TYPES), rng.random() < 0.4
    iterations = rng.choice([1, 1, 1, 5])
    names = rng.sample(["g", "l", "i", "j"] if iterations > 1 else ["g", "l", "i"], rng.choice([1, 2, 2, 3]))
    factors = [rng.choice(_FACTORS) for _ in names]
    i = np.arange(GROUPS * THREADS, dtype=np.int64)[:, None] + np.zeros(iterations, np.int64)
    values = {"i": i, "g": i // THREADS, "l": i % THREADS, "j": np.arange(iterations) + 0 * i}
    index = np.asarray(sum(values[value] * factor for value, factor in zip(names, factors, strict=True)))
    pointer = f"{'device' if written else 'device const'} {kind}*"
    known = -int(index.min())  # a literal, so that the compiler does all that it can with a constant
    lines, element = _element(rng, dict(zip(names, factors, strict=True)), pointer, known)
    element += {"Pair": ".second", "float4": ".w"}.get(kind, "")
    lines.append(f"{element} = 1;" if written else f"o[i * {iterations} + j] = {element};")
    loop = f"for (int j = 0; j < {iterations}; ++j)" if iterations > 1 else "const int j = 0;"
    inputs = ", ".join(f"uint {v} [[{a}]]" for v, a in _VALUES.items())
    output = "" if written else "device float* o, "
    head = f"kernel void {name}({pointer} d, constant int& c, {output}{inputs})"
    return Affine(f"{head} {{ {loop} {{ {' '.join(lines)} }} }}\n", kind, written, index)


def _element(rng: random.Random, factors: Mapping[str, int], pointer: str, known: int) -> tuple[list[str], str]:
    """Return statements, and the element whose index is the sum of the terms, a known number and ``c``."""
    number = rng.choice(["int", "int", "int", "long", "short", "uint", "ulong"])
    terms = [_term(rng, value, factor, number) for value, factor in factors.items()]
    constant, passed = (f"{known}", "c") if rng.random() < 0.7 else ("0", f"(c + {known})")
    lines, base, last = [], "d", []
    if number[0] == "u":  # parts of the sum are negative, but the total is not
        terms += [f"{number}({constant})", f"{number}({passed})"]
    elif rng.random() < 0.4:
        base = "p"
        lines.append(f"{pointer} p = d + {constant} + {passed};")
    else:
        terms += [constant, passed]
    rng.shuffle(terms)
    if base == "p" and rng.random() < 0.3:
        last = [f"p += {terms.pop()};"]
    whole = " + ".join(terms) or "0"
    if rng.random() < 0.5:
        lines.append(f"const {'int' if number == 'short' else number} at = {whole};")
        whole = "at"
    return [*lines, *last], f"{base}[{whole}]"


def _term(rng: random.Random, value: str, factor: int, number: str) -> str:
    """Return a multiple in one of its forms."""
    size, wide = abs(factor), f"{number}({value})"
    forms = [f"{wide} * {factor}", f"{factor} * {wide}", f"{wide} * {number}({factor})"]
    if factor < 0:
        forms += [f"-({wide} * {size})", f"-{size} * {wide}"]
    if factor in {1, -1}:
        forms.append(f"{'-' if factor < 0 else ''}{wide}")
    if size & (size - 1) == 0:
        forms.append(f"{'-' if factor < 0 else ''}({wide} << {size.bit_length() - 1})")
    if size > 2:
        forms.append(f"({wide} * {factor - 1} + {wide})")
    return rng.choice(forms)
