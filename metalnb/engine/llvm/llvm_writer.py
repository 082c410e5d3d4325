"""Write a function's records as LLVM's text, in the place of one that was read."""

from __future__ import annotations

from collections.abc import Iterator

from .instructions import IRFunction

__all__ = ["with_function"]


def with_function(text: str, function: IRFunction, declarations: str = "") -> str:
    """Return a module's text with another body for one of its functions.

    Parameters
    ----------
    text : str
    function : IRFunction
        Its head is a line of the text. Values without names keep their order, as LLVM wants it.
    declarations : str
        Lines for functions that only the new body calls.
    """
    before, found, rest = text.partition(f"{function.head}\n")
    if not found:
        message = f"no function {function.name}"
        raise ValueError(message)
    _, _, after = rest.partition("\n}\n")
    return "\n".join([f"{before}{function.head}", *_body(function), "}", declarations, after])


def _body(function: IRFunction) -> Iterator[str]:
    for label, block in function.blocks.items():
        if label != f"%{len(function.parameters)}":  # the first block's number, which is not written
            yield f"{label[1:]}:"
        for made in block:
            yield f"  {f'{made.result} = ' if made.result else ''}{made.text}{made.metadata}"
