"""The threadgroup memory of a launch: the size of each parameter, and the check that they fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from metalnb.engine.base import Grid
from metalnb.errors import LaunchError
from metalnb.msl.signature import Signature

__all__ = ["check_memory", "memory_sizes", "refuse_memory"]

_MULTIPLE = 16  # Metal requires multiples of 16 bytes


def memory_sizes(signature: Signature, group: Grid, requested: Mapping[str, Any]) -> dict[int, int]:
    """Return the bytes for each threadgroup parameter, by its position in the signature.

    Parameters
    ----------
    signature : Signature
    group : tuple of 3 int
        The threadgroup. A parameter without a requested size gets one element for each thread.
    requested : mapping of str to int
        The bytes that the caller requests, by parameter name.

    Raises
    ------
    LaunchError
    """
    sizes = {}
    for i, param in enumerate(signature.params):
        if param.space != "threadgroup":
            continue
        default = param.type.size * (1 if param.reference else math.prod(group))
        nbytes = requested.get(param.name, default)
        if not isinstance(nbytes, Integral) or nbytes < param.type.size:
            message = f"threadgroup_memory[{param.name!r}] is a number of bytes, at least {param.type.size}"
            raise LaunchError(f"{signature.name}: {message}; got {nbytes!r}.")
        sizes[i] = -(-int(nbytes) // _MULTIPLE) * _MULTIPLE
    refuse_memory(signature, requested)
    return sizes


def refuse_memory(signature: Signature, names_given: Iterable[str]) -> None:
    """Refuse memory for a name that is not a threadgroup parameter.

    Raises
    ------
    LaunchError
    """
    parameters = [p.name for p in signature.threadgroup]
    for name in names_given:
        if name not in parameters:
            names = ", ".join(parameters) or "none"
            raise LaunchError(f"{signature.name}: has no threadgroup parameter {name!r}; it has: {names}.")


def check_memory(signature: Signature, declared_bytes: int, arguments: Iterable[Any], limit: int) -> None:
    """Check that a kernel's variables and arguments together fit into threadgroup memory.

    Raises
    ------
    LaunchError
    """
    argument_bytes = sum(a for a in arguments if type(a) is int)
    if declared_bytes + argument_bytes > limit:
        message = (
            f"{signature.name}: needs {declared_bytes + argument_bytes:,} bytes of threadgroup memory "
            f"({declared_bytes:,} declared, {argument_bytes:,} by arguments); Metal allows {limit:,}."
        )
        raise LaunchError(message)
