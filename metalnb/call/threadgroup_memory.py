"""The threadgroup memory of a launch: its parameters' sizes, and whether they fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from metalnb.engine.base import Grid
from metalnb.errors import LaunchError
from metalnb.msl.signature import Signature

__all__ = ["check_memory", "memory_sizes", "refuse_memory"]

_MULTIPLE = 16  # Metal takes multiples of 16 bytes


def memory_sizes(signature: Signature, group: Grid, given: Mapping[str, Any]) -> dict[int, int]:
    """Return the bytes for each threadgroup parameter, by its position in the signature.

    Parameters
    ----------
    signature : Signature
    group : tuple of 3 int
        The threadgroup: a parameter without a size gets one element for each of its threads.
    given : mapping of str to int
        Bytes requested by the caller, by name.

    Raises
    ------
    LaunchError
    """
    sizes = {}
    for i, param in enumerate(signature.params):
        if param.space != "threadgroup":
            continue
        default = param.type.size * (1 if param.reference else math.prod(group))
        nbytes = given.get(param.name, default)
        if not isinstance(nbytes, int) or nbytes < param.type.size:
            message = f"threadgroup_memory[{param.name!r}] is a number of bytes, at least {param.type.size}"
            raise LaunchError(f"{signature.name}: {message}; got {nbytes!r}.")
        sizes[i] = -(-nbytes // _MULTIPLE) * _MULTIPLE
    refuse_memory(signature, given)
    return sizes


def refuse_memory(signature: Signature, given: Iterable[str]) -> None:
    """Refuse memory for a name that is not a threadgroup parameter.

    Raises
    ------
    LaunchError
    """
    has = [p.name for p in signature.threadgroup]
    for name in given:
        if name not in has:
            names = ", ".join(has) or "none"
            raise LaunchError(f"{signature.name}: has no threadgroup parameter {name!r}; it has: {names}.")


def check_memory(signature: Signature, declared: int, arguments: Iterable[Any], most: int) -> None:
    """Check that the threadgroup memory of a kernel's variables and arguments fits together.

    Raises
    ------
    LaunchError
    """
    passed = sum(a for a in arguments if type(a) is int)
    if declared + passed > most:
        message = (
            f"{signature.name}: needs {declared + passed:,} bytes of threadgroup memory "
            f"({declared:,} declared, {passed:,} by arguments); Metal allows {most:,}."
        )
        raise LaunchError(message)
