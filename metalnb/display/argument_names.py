"""The names of a kernel's parameters in Python, which has keywords that MSL does not have: ``in``, ``lambda``."""

from __future__ import annotations

import keyword

__all__ = ["named_argument", "variable_of"]


def variable_of(name: str) -> str:
    """Return the name of the variable for a parameter: ``in_`` for a parameter called ``in``."""
    return f"{name}_" if keyword.iskeyword(name) else name


def named_argument(name: str, value: str) -> str:
    """Return the Python text of an argument that is passed by its parameter's name."""
    return f"**{{{name!r}: {value}}}" if keyword.iskeyword(name) else f"{name}={value}"
