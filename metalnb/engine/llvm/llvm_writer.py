"""Write a function's records as LLVM IR, replacing one in a parsed module."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .instructions import IRFunction

__all__ = ["replace_function"]

_NUMBER = re.compile(r"%(\d+)\b")  # a value without a name


def replace_function(text: str, function: IRFunction, declarations: str = "", head: str = "") -> str:
    """Return a module's text with a new body for one of its functions.

    Parameters
    ----------
    text : str
    function : IRFunction
        Its head is a line of the text. Unnamed values receive names, since LLVM numbers values in order.
    declarations : str
        Declarations of functions that only the new body calls.
    head : str
        Replaces the function's own.
    """
    before, separator, rest = text.partition(f"{function.head}\n")
    if not separator:
        message = f"no function {function.name}"
        raise ValueError(message)
    _, _, after = rest.partition("\n}\n")
    lines = (_NUMBER.sub(r"%v.\1", line) for line in (head or function.head, *_body(function)))
    return "\n".join([before + "\n".join(lines), "}", declarations, after])


def _body(function: IRFunction) -> Iterator[str]:
    for label, block in function.blocks.items():
        yield f"{'v.' if label[1:].isdigit() else ''}{label[1:]}:"
        for inst in block:
            yield f"  {f'{inst.result} = ' if inst.result else ''}{inst.text}{inst.metadata}"
