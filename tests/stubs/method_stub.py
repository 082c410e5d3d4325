"""The stub of an array's methods: each has its own named parameters, followed by those of its op."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metalnb.arrays import op_methods
from metalnb.library_kernels import op_table

from .definitions import definition, parameters, returned

__all__ = ["METHOD_STUB", "method_stub"]

METHOD_STUB = Path(op_methods.__file__).with_suffix(".pyi")

_HEAD = '''\
# Written by tests/public_stub.py from the signatures of the ops (`make docs`). Do not edit.
"""{doc}
"""

from builtins import bool as _bool
from collections.abc import Sequence
from typing import Any, Literal

from metalnb import _ArrayLike, _Axis
from metalnb.arrays.array import Array
from metalnb.arrays.core import Core
from numpy.typing import DTypeLike

__all__ = ["OpMethods"]

class OpMethods(Core):
    """{summary}"""

{methods}
'''


def method_stub() -> str:
    """Write the stub."""
    methods = (_method(name, found) for name, found in vars(op_methods.OpMethods).items() if hasattr(found, "op"))
    return _HEAD.format(
        doc=inspect.cleandoc(op_methods.__doc__ or ""), summary=op_methods.OpMethods.__doc__,
        methods=textwrap.indent("\n\n".join(methods), "    "),
    )  # fmt: skip


def _method(name: str, method: Any) -> str:
    signature = op_table.op(method.op).__signature__
    own = inspect.signature(method)
    return definition(
        name, parameters(own.replace(parameters=list(_parameters(own, signature)))), returned(signature), method.__doc__
    )


def _parameters(own: inspect.Signature, of_op: inspect.Signature) -> Iterator[inspect.Parameter]:
    """Put the op's parameters in place of ``*args`` and ``**options``."""
    _, *rest = of_op.parameters.values()
    left = {p.name: p for p in rest}
    by_position = any(p.kind is p.POSITIONAL_ONLY for p in rest) and "args" in own.parameters
    for p in own.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            yield from left.values()
            return
        if p.kind is p.VAR_KEYWORD:
            yield from (found.replace(kind=p.KEYWORD_ONLY) for found in left.values())
        elif p.name == "self":
            yield p.replace(kind=p.POSITIONAL_ONLY) if by_position else p
        else:
            known = left.pop(p.name, p)
            yield p.replace(annotation=known.annotation)
