"""Functions in stubs: their parameters with types and defaults, and their docstrings."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from metalnb.library_kernels.elementwise.elementwise_op import Elementwise
from metalnb.library_kernels.op import Op

__all__ = ["annotations", "definition", "listed", "op_definition", "parameters", "returned"]

_WIDTH = 120

# Types for parameters annotated `Any`, by the parameter's name.
_BY_NAME = {
    "axis": "_Axis", "dtype": "DTypeLike | None", "out": "Array", "kernel_size": "int | Sequence[int]",
    "stride": "int | Sequence[int]", "padding": "int | Sequence[int] | str", "dilation": "int | Sequence[int]",
    "output_size": "int | Sequence[int]", "q": "float | Sequence[float] | _ArrayLike",
}  # fmt: skip
# Ops accept other libraries' arrays, except as outputs, and any sequence as a shape. `mnb.bool` hides
# Python's.
_TAKEN = {"Array": "_ArrayLike", "Shape": "Sequence[int]", "bool": "_bool"}
_GIVEN = {"bool": "_bool"}


def definition(name: str, parameters: list[str], given: str, doc: str | None) -> str:
    """Write a function without a body."""
    head = f"def {name}({', '.join(parameters)}) -> {given}:"
    if len(head) > _WIDTH:
        head = "\n".join([f"def {name}(", *(f"    {p}," for p in parameters), f") -> {given}:"])
    said = inspect.cleandoc(doc or "").replace("\\", "\\\\")
    text = f'"""{said}"""' if "\n" not in said else f'"""{said}\n"""'
    return f"{head}\n{textwrap.indent(text, '    ')}"


def op_definition(op: Op) -> str:
    """Write an op as a decorated function, and its aliases."""
    taken = parameters(op.__signature__, elementwise=isinstance(op, Elementwise))
    text = definition(op.name, taken, returned(op.__signature__), op.__doc__)
    return "\n".join(["@_op", text, *(f"{alias} = {op.name}" for alias in op.row.aliases)])


def listed(names: Iterable[str]) -> str:
    """Write the lines of ``__all__``."""
    text = ", ".join(f'"{name}"' for name in names)
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ") + ","


def parameters(signature: inspect.Signature, *, elementwise: bool = False) -> list[str]:
    """Write the parameters, with `/` after positional-only and `*` before keyword-only ones."""
    return list(_parameters(signature, elementwise=elementwise))


def _parameters(signature: inspect.Signature, *, elementwise: bool) -> Iterator[str]:
    before = None
    for p in signature.parameters.values():
        if before is p.POSITIONAL_ONLY and p.kind is not before:
            yield "/"
        if p.kind is p.KEYWORD_ONLY and before not in {p.KEYWORD_ONLY, p.VAR_POSITIONAL}:
            yield "*"
        written_to = p.name == "out" or signature.return_annotation == "None"
        yield "self" if p.name == "self" else _parameter(
            p, _GIVEN if written_to else _TAKEN, elementwise=elementwise
        )
        before = p.kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _parameter(p: inspect.Parameter, names: dict[str, str], *, elementwise: bool) -> str:
    star = "*" if p.kind is inspect.Parameter.VAR_POSITIONAL else ""
    if p.annotation in {"Any", inspect.Parameter.empty}:
        default = "Any" if not elementwise else "_Operand" if p.kind is inspect.Parameter.POSITIONAL_ONLY else "float"
        said = _BY_NAME.get(p.name, default)
        if p.default is None and said != "Any" and "None" not in said:
            said += " | None"
    else:
        said = _renamed(p.annotation, names)
    return f"{star}{p.name}: {said}" + ("" if p.default is inspect.Parameter.empty else f" = {_default(p.default)}")


def returned(signature: inspect.Signature) -> str:
    """Write a function's return type; an elementwise op without one returns an array."""
    given = signature.return_annotation
    return "Array" if given is inspect.Signature.empty else _renamed(given, _GIVEN)


def _renamed(annotation: str, names: dict[str, str]) -> str:
    tree = ast.parse(annotation, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return ast.unparse(tree)


def _default(value: Any) -> str:
    finite = isinstance(value, float) and np.isfinite(value)
    return repr(value) if finite or isinstance(value, (bool, int, str, tuple, types.NoneType)) else "..."


def annotations(signature: inspect.Signature) -> Iterator[str]:
    """Return the annotations of a signature."""
    for found in (*(p.annotation for p in signature.parameters.values()), signature.return_annotation):
        if found is not inspect.Parameter.empty:
            yield found
