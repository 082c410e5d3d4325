"""A kernel's call on one block, as Dask sends it to its workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from metalnb.call.kernel import Kernel
from metalnb.call.packing import type_dtype
from metalnb.errors import ArgumentError
from metalnb.msl.signature import Param
from metalnb.plurals import quantity

__all__ = ["BlockCall", "first_array", "named_arguments", "output_of"]


class BlockCall:
    """A kernel and its arguments except the arrays. It is pickled as source, which each worker compiles once.

    Parameters
    ----------
    kernel : Kernel
    names : sequence of str
        The parameters that receive the blocks, in order.
    values : mapping of str to value or callable
        The other arguments; a callable receives the first block and returns the argument.
    options : mapping of str to value or callable
        The options of the kernel's call, such as ``grid``; these may be callables, too.
    """

    def __init__(
        self, kernel: Kernel, names: tuple[str, ...], values: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        self.kernel = kernel
        self.names = names
        self.values = dict(values)
        self.options = dict(options)

    @property
    def __name__(self) -> str:
        """The name of the layer in Dask's graph and dashboard."""
        return self.kernel.signature.name

    def __call__(self, *blocks: Any) -> Any:
        """Run the kernel on blocks; return its output."""
        contiguous = [_contiguous(block) for block in blocks]
        first = contiguous[0]
        options = {k: v(first) if callable(v) else v for k, v in {**self.values, **self.options}.items()}
        return self.kernel(**dict(zip(self.names, contiguous, strict=True)), **options)


def _contiguous(block: Any) -> Any:
    """Return a contiguous block for a kernel; Dask's blocks may be views."""
    if isinstance(block, (np.ndarray, np.generic)):  # a masked array keeps its type, so that the kernel refuses it
        return np.asanyarray(block, order="C")
    return block if block.contiguous else block.copy()


def _present(kernel: Kernel) -> list[Param]:
    return [p for p in kernel.signature.buffers if not kernel.unit.is_absent(p)]


def named_arguments(kernel: Kernel, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments by the names of their parameters.

    Raises
    ------
    ArgumentError
        For too many arguments, an unknown name, or a name given twice.
    """
    names = [p.name for p in _present(kernel)]
    if len(args) > len(names):
        arguments_text, buffers_text = quantity(len(args), "argument"), quantity(len(names), "buffer")
        raise ArgumentError(f"{kernel.__name__}: got {arguments_text} for {buffers_text}: {', '.join(names)}.")
    arguments = dict(zip(names, args, strict=False))
    for name, value in keywords.items():
        if name not in names:
            raise ArgumentError(f"{kernel.__name__}: no parameter {name!r}; there are: {', '.join(names)}.")
        if name in arguments:
            raise ArgumentError(f"{kernel.__name__}: {name!r} is passed twice, by position and by name")
        arguments[name] = value
    return arguments


def output_of(kernel: Kernel, arguments: Mapping[str, Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the dtype of the single buffer that a call leaves out, and the axes of one of its elements.

    Raises
    ------
    ArgumentError
        If the call leaves out no buffer, or several: a Dask block is one array.
    """
    left_out = [p for p in _present(kernel) if p.name not in arguments and p.writable]
    if len(left_out) != 1:
        names = ", ".join(p.name for p in left_out) or "none"
        cure = "Leave out the one buffer that the kernel writes, and pass all others"
        raise ArgumentError(f"{kernel.__name__}: a block has one output; left out: {names}. {cure}.")
    return type_dtype(left_out[0].type, kernel.reflection)


def first_array(kernel: Kernel, arguments: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    """Return the name of the array whose shape determines the grid, and the axes of one of its elements."""
    param = next((p for p in _present(kernel) if p.name in arguments and not p.reference), None)
    return ("", ()) if param is None else (param.name, type_dtype(param.type, kernel.reflection)[1])
