"""Splitting arrays into views: split and NumPy's variants, unstack."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...plurals import quantity
from ..launching.copying import as_array
from ..op import ALL, op
from ..planning.axes import axis_of
from .array_views import moveaxis

__all__ = ["array_split", "dsplit", "hsplit", "split", "unstack", "vsplit"]


@op(
    "moving",
    reference=lambda x, axis=0: tuple(np.moveaxis(x, axis, 0)),
    dtypes=ALL,
    numpy=(np.unstack,) if hasattr(np, "unstack") else (),
    flops=0,
)
def unstack(x: Array, /, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices of an array along an axis, as views.

    Raises
    ------
    ValueError
        If the array has no axes.
    """
    x = as_array("unstack", x)
    if not x.ndim:
        raise ValueError("unstack: x must have at least one axis; got shape ().")
    return tuple(moveaxis(x, axis_of("unstack", axis, x.ndim), 0))


@op("moving", reference=lambda x, parts, axis=0: tuple(np.array_split(x, parts, axis)), dtypes=ALL, flops=0,
    numpy=(np.array_split,), cite="NumPy, ``array_split``")  # fmt: skip
def array_split(x: Array, indices_or_sections: Any, /, axis: int = 0) -> tuple[Array, ...]:
    """Split an array along an axis into views: into a number of parts, the first ones longer by one, or at indices."""
    x = as_array("array_split", x)
    axis_index = axis_of("array_split", axis, x.ndim)
    n = x.shape[axis_index]
    if isinstance(indices_or_sections, Iterable):
        cuts = [0, *(operator.index(i) for i in indices_or_sections), n]
    else:
        count = operator.index(indices_or_sections)
        if count < 1:
            raise ValueError(f"array_split: the number of parts must be 1 or more; got {count}.")
        cuts = [i * (n // count) + min(i, n % count) for i in range(count + 1)]
    lead = (slice(None),) * axis_index
    return tuple(x[(*lead, slice(a, b), ...)] for a, b in itertools.pairwise(cuts))


def _equal_parts(caller: str, x: Any, sections: Any, axis: int) -> tuple[Array, ...]:
    x = as_array(caller, x)
    axis_index = axis_of(caller, axis, x.ndim)
    length = x.shape[axis_index]
    if not isinstance(sections, Iterable) and operator.index(sections) > 0 and length % operator.index(sections):
        elements = quantity(length, "element")
        raise ValueError(f"{caller}: axis {axis} has {elements}, which cannot form {sections} equal parts. "
                         "Use mnb.array_split.")  # fmt: skip
    parts: tuple[Array, ...] = array_split(x, sections, axis=axis_index)
    return parts


@op("moving", reference=lambda x, parts, axis=0: tuple(np.split(x, parts, axis)), dtypes=ALL, flops=0,
    numpy=(np.split,), cite="NumPy, ``split``")  # fmt: skip
def split(x: Array, indices_or_sections: Any, /, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts of an array along an axis, as views: a number of equal parts, or at indices.

    Parameters
    ----------
    x : Array
    indices_or_sections : int or sequence of int
        The number of parts, or the indices at which to split.
    axis : int

    Raises
    ------
    ValueError
        If the parts would not be equal.
    """
    return _equal_parts("split", x, indices_or_sections, axis)


@op("moving", reference=lambda x, parts: tuple(np.hsplit(x, parts)), dtypes=ALL, flops=0, numpy=(np.hsplit,),
    cite="NumPy, ``hsplit``")  # fmt: skip
def hsplit(x: Array, indices_or_sections: Any, /) -> tuple[Array, ...]:
    """Like `split`, along the second axis, or the only one."""
    return _equal_parts("hsplit", x, indices_or_sections, 1 if np.ndim(x) > 1 else 0)


@op("moving", reference=lambda x, parts: tuple(np.vsplit(x, parts)), dtypes=ALL, flops=0, numpy=(np.vsplit,),
    cite="NumPy, ``vsplit``")  # fmt: skip
def vsplit(x: Array, indices_or_sections: Any, /) -> tuple[Array, ...]:
    """Like `split`, along the first axis."""
    return _equal_parts("vsplit", x, indices_or_sections, 0)


@op("moving", reference=lambda x, parts: tuple(np.dsplit(x, parts)), dtypes=ALL, flops=0, numpy=(np.dsplit,),
    cite="NumPy, ``dsplit``")  # fmt: skip
def dsplit(x: Array, indices_or_sections: Any, /) -> tuple[Array, ...]:
    """Like `split`, along the third axis."""
    return _equal_parts("dsplit", x, indices_or_sections, 2)
