"""`map_blocks` and `map_overlap`: run a kernel on each block of Dask arrays, with or without its neighbors' edges."""

from __future__ import annotations

import math
from typing import Any

import dask.array as da
import numpy as np

from metalnb.call.argument_binding import OPTIONS
from metalnb.call.kernel import Kernel
from metalnb.errors import ArgumentError

from .block_call import BlockCall, first_array, named_arguments, output_of

__all__ = ["map_blocks", "map_overlap"]


def map_blocks(kernel: Kernel, *args: Any, chunks: Any = None, **keywords: Any) -> da.Array:
    """Run a kernel on each block of Dask's arrays.

    Parameters
    ----------
    kernel : Kernel
    *args, **named
        The arguments of the kernel, by position or by name, with Dask arrays where the kernel takes their blocks.
        Leave out the buffer that the kernel writes, which becomes the result. A scalar, or an option of the call
        (``grid``, ``groups``, ``threadgroup``, ``shapes``, ``threadgroup_memory``, ``timeout``), may be a function; it
        receives the first array's block and returns the value for that block.
    chunks : tuple, optional
        The result's blocks, as for `dask.array.map_blocks`. They are needed if their shapes, in elements, differ from
        those of the first array's blocks.

    Returns
    -------
    dask.array.Array
        With the output's dtype. Nothing is computed yet.

    Raises
    ------
    ArgumentError
        If no argument is a Dask array, or the call leaves out none or several buffers. Nothing has run then.

    Examples
    --------
    >>> import dask.array as da, metalnb as mnb, numpy as np
    >>> scale = mnb.compile('''
    ... kernel void scale(device const float* x, device float* y, constant float& a,
    ...                   uint i [[thread_position_in_grid]]) { y[i] = a * x[i]; }''').scale
    >>> x = da.arange(6, chunks=3, dtype=np.float32)
    >>> mnb.dask.map_blocks(scale, x, a=2.0).compute()
    array([ 0.,  2.,  4.,  6.,  8., 10.], dtype=float32)
    """
    call, arrays, dtype, axes = _prepare(kernel, args, keywords)
    if chunks is not None:
        axes = {"chunks": chunks}
    return da.map_blocks(call, *arrays, dtype=dtype, meta=_meta(arrays, dtype), token=call.__name__, **axes)


def map_overlap(
    kernel: Kernel, *args: Any, depth: Any = 1, boundary: Any = "nearest", **keywords: Any,
) -> da.Array:  # fmt: skip
    """Run a kernel on each block together with its neighbors' edges: stencils and filters.

    The kernel receives blocks that are larger by ``depth`` on each side and computes each in full; Dask then cuts off
    the margins. The way the kernel treats an array's border therefore matters only at the border of the entire array;
    ``boundary`` sets the values beyond it.

    Parameters
    ----------
    kernel : Kernel
    *args, **named
        As for `map_blocks`. A scalar such as the width of a row is a function: ``width=lambda block: block.shape[1]``.
    depth : int, tuple of int or dict
        Elements on each side, for all axes or for each.
    boundary : {"nearest", "reflect", "periodic", "none"}, number or dict
        As for `dask.array.map_overlap`.

    Returns
    -------
    dask.array.Array

    Raises
    ------
    ArgumentError
    """
    call, arrays, dtype, axes = _prepare(kernel, args, keywords)
    if axes:
        cure = "Use packed arrays of numbers, or map_blocks on overlapping blocks"
        raise ArgumentError(f"{kernel.__name__}: map_overlap needs an output of the shape of its first array. {cure}.")
    return da.map_overlap(
        call, *arrays, depth=depth, boundary=boundary, dtype=dtype, meta=_meta(arrays, dtype), token=call.__name__,
    )  # fmt: skip


def _prepare(
    kernel: Kernel, args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[BlockCall, list[da.Array], Any, dict[str, Any]]:
    """Return the call, its Dask arrays, the result's dtype, and how its blocks differ from those of the first array."""
    options = {name: keywords.pop(name) for name in OPTIONS if name in keywords}
    arguments = named_arguments(kernel, args, keywords)
    arrays = {name: value for name, value in arguments.items() if isinstance(value, da.Array)}
    if not arrays:
        message = f"{kernel.__name__}: none of the arguments is a Dask array. Call the kernel itself."
        raise ArgumentError(message)
    dtype, axes_out = output_of(kernel, arguments)
    values = {name: value for name, value in arguments.items() if name not in arrays}
    name, axes_in = first_array(kernel, arguments)
    is_first_shape = name in arrays and not options.keys() & {"grid", "groups", "shapes"}
    axes = _changed_axes(arrays[name], axes_in, axes_out) if is_first_shape else {}
    return BlockCall(kernel, tuple(arrays), values, options), [*arrays.values()], dtype, axes


def _changed_axes(x: da.Array, axes_in: tuple[int, ...], axes_out: tuple[int, ...]) -> dict[str, Any]:
    """Return the options of `dask.array.map_blocks` for an output whose elements have other axes than the input's."""
    chunks, has_axes = x.chunks, bool(axes_in) and x.shape[-len(axes_in) :] == axes_in
    if axes_in == axes_out and (has_axes or not axes_in):
        return {}
    if has_axes:
        chunks = chunks[: -len(axes_in)]
    elif axes_in:  # the last axis of the input has the components
        count = math.prod(axes_in)
        chunks = (*chunks[:-1], tuple(n // count for n in chunks[-1]))
    rank = len(chunks)
    axes: dict[str, Any] = {"chunks": (*chunks, *((n,) for n in axes_out))}
    if rank < x.ndim:
        axes["drop_axis"] = [*range(rank, x.ndim)]
    if axes_out:
        axes["new_axis"] = [*range(rank, rank + len(axes_out))]
    return axes


def _meta(arrays: list[da.Array], dtype: Any) -> Any:
    """Return an empty array of the result's kind: NumPy's for NumPy's blocks and for records, else ours."""
    first = arrays[0]
    is_numpys = isinstance(first._meta, np.ndarray) or dtype.names  # noqa: SLF001
    return np.empty((0,) * first.ndim, dtype) if is_numpys else first._meta.astype(dtype)  # noqa: SLF001
