"""Sums of products over axes (einsum, kron, dot, inner), computed as matrix products, and trace."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import check_engine
from ...arrays.promotion import promote
from ...plurals import quantity
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import as_array, convert
from ..op import NUMERIC, op
from ..reductions import basic_reductions
from ..shapes.array_views import broadcast_to, diagonal, permute_dims, reshape
from .matrix_products import matmul, tensordot

__all__ = ["dot", "einsum", "inner", "kron", "trace"]

_MULTIPLY = BY_NAME["multiply"]
_ELLIPSIS_LETTERS = [chr(c) for c in range(0x4E00, 0x4E00 + 64)]  # letters for the axes of an ellipsis


class _Term(NamedTuple):
    """An array with a letter for each of its axes."""

    letters: str
    array: Array


def _read(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """Split subscripts into the letters of each operand and of the result; an ellipsis gets its own letters."""
    text = subscripts.replace(" ", "")
    inputs, arrow, right = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(ranks):
        raise ValueError(f"einsum: {subscripts!r} names {quantity(len(parts), 'operand')}; got {len(ranks)}.")
    parsed = []
    free_rank = 0
    for part, rank in zip(parts, ranks, strict=True):
        operands_text = part.replace("...", "", 1)
        if not all(c.isalpha() for c in operands_text):
            raise ValueError(f"einsum: {subscripts!r} has a character in {part!r} that is not a letter.")
        ellipsis_letters = rank - len(operands_text)
        if ellipsis_letters < 0 or (ellipsis_letters and "..." not in part):
            named = quantity(len(operands_text), "axis", "axes")
            raise ValueError(f"einsum: {part!r} names {named}; the operand has {rank}.")
        free_rank = max(free_rank, ellipsis_letters)
        parsed.append(part.replace("...", "".join(_ELLIPSIS_LETTERS[64 - ellipsis_letters :])))
    if not arrow:
        operands_text = "".join(p.replace("...", "", 1) for p in parts)
        right = "".join(sorted(c for c in set(operands_text) if operands_text.count(c) == 1))
        result = "".join(_ELLIPSIS_LETTERS[64 - free_rank :]) + right
    else:
        result = right.replace("...", "".join(_ELLIPSIS_LETTERS[64 - free_rank :]))
    unknown = [c for c in result if not any(c in part for part in parsed)]
    if unknown or len(set(result)) != len(result):
        raise ValueError(f"einsum: the result of {subscripts!r} must name axes of the operands, each once.")
    return parsed, result


def _take_diagonals(term: _Term) -> _Term:
    """Take the diagonal of a term in which a letter occurs twice."""
    letters, x = term
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first_axis = letters.index(letter)
            second_axis = letters.index(letter, first_axis + 1)
            if x.shape[first_axis] != x.shape[second_axis]:
                lengths = f"{x.shape[first_axis]} and {x.shape[second_axis]}"
                raise ValueError(f"einsum: {letter!r} must have one length; got {lengths}.")
            x = diagonal(x, 0, first_axis, second_axis)
            letters = letters[:first_axis] + letters[first_axis + 1 : second_axis] + letters[second_axis + 1 :] + letter
    return _Term(letters, x)


def _sum_unneeded(term: _Term, needed_letters: str) -> _Term:
    """Sum over the axes that are no longer needed."""
    summed_axes = tuple(i for i, c in enumerate(term.letters) if c not in needed_letters)
    if not summed_axes:
        return term
    x = basic_reductions.sum(term.array, axis=summed_axes, dtype=term.array.dtype)
    return _Term("".join(c for c in term.letters if c in needed_letters), x)


def _reorder(term: _Term, letters: str) -> Array:
    result: Array = permute_dims(term.array, tuple(term.letters.index(c) for c in letters))
    return result


def _product(first: _Term, second: _Term, needed_letters: str, sizes: dict[str, int]) -> _Term:
    """Multiply two terms and sum over the axes that neither the result nor another term needs."""
    shared_letters = [c for c in first.letters if c in second.letters]
    letters = needed_letters + "".join(shared_letters)
    first, second = _sum_unneeded(first, letters), _sum_unneeded(second, letters)
    shapes = [dict(zip(term.letters, term.array.shape, strict=True)) for term in (first, second)]
    broadcast_letters = [c for c in shared_letters if shapes[0][c] != shapes[1][c]]
    batch = "".join(c for c in shared_letters if c in needed_letters)
    summed_letters = "".join(c for c in shared_letters if c not in needed_letters)
    rows = "".join(c for c in first.letters if c not in shared_letters)
    columns = "".join(c for c in second.letters if c not in shared_letters)
    if broadcast_letters:  # one of the two has length 1
        first, second = (_Term(t.letters, _broadcast_term(t, broadcast_letters, sizes)) for t in (first, second))
    if not summed_letters:
        shape_of_one = _reorder(first, batch + rows)
        left = reshape(shape_of_one, (*shape_of_one.shape, *(1,) * len(columns)))
        right = _reorder(second, batch + columns)
        right = reshape(right, (*right.shape[: len(batch)], *(1,) * len(rows), *right.shape[len(batch) :]))
        return _Term(batch + rows + columns, _MULTIPLY(left, right))
    lengths = [math.prod(sizes[c] for c in group) for group in (rows, summed_letters, columns)]
    lead = tuple(sizes[c] for c in batch)
    a = reshape(_reorder(first, batch + rows + summed_letters), (*lead, lengths[0], lengths[1]))
    b = reshape(_reorder(second, batch + summed_letters + columns), (*lead, lengths[1], lengths[2]))
    result = reshape(matmul(a, b), (*lead, *(sizes[c] for c in rows), *(sizes[c] for c in columns)))
    return _Term(batch + rows + columns, result)


def _broadcast_term(term: _Term, stretched: list[str], sizes: dict[str, int]) -> Array:
    shape = tuple(sizes[c] if c in stretched else n for c, n in zip(term.letters, term.array.shape, strict=True))
    result: Array = broadcast_to(term.array, shape)
    return result


def _sizes(terms: list[_Term]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for letters, x in terms:
        for c, n in zip(letters, x.shape, strict=True):
            if sizes.setdefault(c, n) != n and 1 not in {n, sizes[c]}:
                name = "an axis of the ellipsis" if c in _ELLIPSIS_LETTERS else repr(c)
                raise ValueError(f"einsum: {name} must have one length; got {sizes[c]} and {n}.")
            sizes[c] = n if sizes[c] == 1 else sizes[c]
    return sizes


def _path(subscripts: str, terms: list[_Term], sizes: dict[str, int]) -> list[tuple[int, ...]]:
    """Return the order in which to multiply pairs, which NumPy's search derives from the sizes."""
    if len(terms) < 3:
        return [tuple(range(len(terms)))]
    shapes = [np.broadcast_to(np.float32(0), tuple(sizes[c] for c in t.letters)) for t in terms]
    numbered = {c: i for i, c in enumerate(sizes)}
    sublists: list[Any] = []
    for term, shape in zip(terms, shapes, strict=True):
        sublists += [shape, [numbered[c] for c in term.letters]]
    result = subscripts.partition("->")[2]
    path = np.einsum_path(*sublists, [numbered[c] for c in result], optimize="greedy")[0]
    return [step for step in path[1:] if isinstance(step, tuple)]


def _einsum(subscripts: str, *operands: Any, optimize: bool = True) -> Any:
    return np.einsum(subscripts, *operands, optimize=optimize)


def _term_sizes(subscripts: Any, *arguments: Any) -> Any:
    *operands, want = arguments
    return np.maximum(np.abs(want), np.einsum(subscripts, *(np.abs(o) for o in operands)))


@op("linear", reference=_einsum, dtypes=NUMERIC, kernels=("matmul.metal", "reduce.metal"), flops=2,
    numpy=(np.einsum,), size=_term_sizes, tolerance={"float32": 40.0, "float16": 3.0, "bfloat16": 2.0},
    cite="NumPy, ``einsum``")  # fmt: skip
def einsum(subscripts: str, /, *operands: Array, optimize: bool = True) -> Array:
    """Return the sum of products over the axes that subscripts name: ``einsum("ij,jk->ik", a, b)`` is a matrix product.

    Parameters
    ----------
    subscripts : str
        One letter per axis for each operand, then ``->`` and the axes of the result; by default, the letters that occur
        once, in alphabetical order. ``...`` means all other axes, which broadcast.
    *operands : Array
    optimize : bool
        Whether to choose the order of the products by their sizes; otherwise it is from left to right.

    Returns
    -------
    Array
        In the dtype that the operands promote to, which is also that of intermediate results. Each product of two
        operands is a matrix product, after a copy if the axes need another order.

    Raises
    ------
    ValueError
        If the subscripts do not fit the operands.
    """
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: the first argument must be the subscripts, a str; got {type(subscripts).__name__}.")
    arrays = [as_array("einsum", x) for x in operands]
    if not arrays:
        raise ValueError("einsum: needs an operand; got none.")
    check_engine(arrays[0].engine, "einsum", *arrays)
    dtype = arrays[0].dtype
    for x in arrays[1:]:
        dtype = promote(dtype, x.dtype, "einsum")
    letters, result = _read(subscripts, [x.ndim for x in arrays])
    terms = [_take_diagonals(_Term(p, convert(x, dtype))) for p, x in zip(letters, arrays, strict=True)]
    sizes = _sizes(terms)
    steps = [(0, 1)] * (len(terms) - 1) if not optimize else _path(f"->{result}", terms, sizes)
    for step in steps:
        if len(terms) == 1:
            break
        pair = [terms[i] for i in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        while len(pair) > 1:
            needed = result + "".join(t.letters for t in (*terms, *pair[2:]))
            pair = [_product(pair[0], pair[1], needed, sizes), *pair[2:]]
        terms.append(pair[0])
    out = _sum_unneeded(terms[0], result)
    reordered: Array = _reorder(out, result)
    return reordered if reordered.block is not arrays[0].block else reordered.copy()


@op("linear", reference=np.kron, dtypes=NUMERIC, numpy=(np.kron,), tolerance={"float32": 0.5},
    kernels=("elementwise.h",), cite="NumPy, ``kron``")  # fmt: skip
def kron(x1: Array, x2: Array, /) -> Array:
    """Return the Kronecker product, whose blocks are each element of x1 times all of x2, by one multiplication.

    Parameters
    ----------
    x1, x2 : Array
        Axes of length 1 are prepended to the array with fewer axes.

    Returns
    -------
    Array
        Each axis has the product of both lengths.
    """
    a, b = as_array("kron", x1), as_array("kron", x2)
    rank = max(a.ndim, b.ndim)
    shapes = [(1,) * (rank - x.ndim) + x.shape for x in (a, b)]
    a = reshape(a, _interleave_ones(shapes[0], ones_first=False))
    b = reshape(b, _interleave_ones(shapes[1], ones_first=True))
    result: Array = reshape(_MULTIPLY(a, b), tuple(n * m for n, m in zip(*shapes, strict=True)))
    return result


def _interleave_ones(shape: Iterable[int], *, ones_first: bool) -> tuple[int, ...]:
    return tuple(m for n in shape for m in ((1, n) if ones_first else (n, 1)))


def _products_size(x1: Any, x2: Any, want: Any) -> Any:
    del x1, x2
    return np.maximum(np.abs(want), 64)  # the size of 80 products of normal numbers, which may cancel


def _product_options(name: str) -> dict[str, Any]:
    tolerance = {"float32": 40.0, "float16": 0.51, "bfloat16": 0.51}
    return {"numpy": (getattr(np, name),), "tolerance": tolerance, "size": _products_size, "cite": f"NumPy, ``{name}``"}


@op("linear", reference=np.dot, dtypes=NUMERIC, kernels=("matmul.metal", "dots.metal"), flops=2,
    **_product_options("dot"))
def dot(x1: Array, x2: Array, /) -> Array:
    """Return sums of products over the last axis of x1 and the second to last axis of x2, or a vector's only axis.

    Vectors and matrices are multiplied as by `matmul`, and a number is multiplied with every element. If x2 has more
    than two axes, every matrix of x1 is multiplied with every matrix of x2.
    """
    if np.ndim(x1) == 0 or np.ndim(x2) == 0:
        result: Array = _MULTIPLY(x1, x2)
    elif np.ndim(x1) == 1 or np.ndim(x2) < 3:
        result = matmul(x1, x2)
    else:
        result = tensordot(x1, x2, axes=((-1,), (-2,)))
    return result


@op("linear", reference=np.inner, dtypes=NUMERIC, kernels=("matmul.metal", "dots.metal"), flops=2,
    **_product_options("inner"))
def inner(x1: Array, x2: Array, /) -> Array:
    """Return sums of products over the last axes of two arrays, or the elementwise product if one is a number."""
    scalar = np.ndim(x1) == 0 or np.ndim(x2) == 0
    result: Array = _MULTIPLY(x1, x2) if scalar else tensordot(x1, x2, axes=((-1,), (-1,)))
    return result


@op(
    "moving",
    reference=lambda x, offset=0, dtype=None: np.trace(x, offset, -2, -1),  # noqa: ARG005
    dtypes=NUMERIC,
    kernels=("reduce.metal",),
)
def trace(x: Array, /, offset: int = 0, *, dtype: Any = None, axis1: int = -2, axis2: int = -1) -> Array:
    """Return the sums of diagonals of matrices, by default of the last two axes.

    Parameters
    ----------
    x : Array
    offset : int
        Diagonals above the main one are positive.
    dtype : dtype, optional
        As for `metalnb.sum`.
    axis1, axis2 : int
        The matrices' rows and columns.
    """
    result: Array = basic_reductions.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)
    return result
