"""Make ``metalnb/__init__.pyi`` from the public names and the table of ops (`make docs`).

``metalnb/__init__.py`` finds its names on first use, which no type checker can follow. The stub states them: where a
name is imported from, the signature and docstring of every op, the dtypes and the constants.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import metalnb
from metalnb.library_kernels import namespace, table
from metalnb.library_kernels.elementwise.elementwise_op import Elementwise
from metalnb.library_kernels.op import Op

__all__ = ["STUB", "stub"]

STUB = Path(metalnb.__file__).with_name("__init__.pyi")
WIDTH = 120

# What an op's own annotation leaves open as `Any`, by the name of the parameter.
_BY_NAME = {
    "axis": "_Axis", "dtype": "DTypeLike | None", "out": "Array", "kernel_size": "int | Sequence[int]",
    "stride": "int | Sequence[int]", "padding": "int | Sequence[int] | str", "dilation": "int | Sequence[int]",
    "output_size": "int | Sequence[int]", "q": "float | Sequence[float] | _ArrayLike",
}  # fmt: skip
# Ops take other libraries' arrays, and any sequence for a shape. `mnb.bool` hides Python's.
_TAKEN = {"Array": "_ArrayLike", "Shape": "Sequence[int]", "bool": "_bool"}
_GIVEN = {"bool": "_bool"}
_KNOWN = {*_TAKEN, "Any", "Literal", "Sequence", "None", "float", "int", "list", "str", "tuple"}

_HEAD = '''\
# Written by tests/public_stub.py from the public names and the table of ops (`make docs`). Do not edit.
"""The public names of metalnb, for type checkers and editors."""

from builtins import bool as _bool
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Literal, ParamSpec, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy
from numpy.typing import DTypeLike, NDArray

{imports}

__all__ = [
{names}
]

__version__: str

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)

class _Lender(Protocol):
    def __dlpack__(self, *args: Any, **options: Any) -> Any: ...

_ArrayLike: TypeAlias = Array | NDArray[Any] | numpy.generic | _Lender
_Operand: TypeAlias = _ArrayLike | float
_Axis: TypeAlias = SupportsIndex | Iterable[SupportsIndex]

class _Op(Op, Generic[_P, _R]):
    def __call__(self, *args: _P.args, **options: _P.kwargs) -> _R: ...

def _op(function: Callable[_P, _R], /) -> _Op[_P, _R]: ...
def load_ipython_extension(shell: Any) -> None: ...
def unload_ipython_extension(shell: Any) -> None: ...

{values}

{ops}
'''


def stub() -> str:
    """Write the stub."""
    public = {name: op for name, op in sorted(table.ops().items()) if getattr(metalnb, name) is op}
    imports = {("." + metalnb._HOMES[name], name, True) for name in metalnb._HOMES}
    imports |= {(".errors", name, True) for name in metalnb.__all__ if name not in metalnb._HOMES}
    imports |= {(".", name, True) for name in metalnb._MODULES}
    imports |= {(".library_kernels.op", "Op", False), (".library_kernels.namespace", "Namespace", False)}
    imports |= {found for op in public.values() for found in _classes(op)}
    names = textwrap.fill(
        ", ".join(f'"{name}"' for name in metalnb.__all__), WIDTH, initial_indent="    ", subsequent_indent="    "
    )
    return _HEAD.format(
        imports="\n".join(_import(*row) for row in sorted(imports)),
        names=f"{names},",
        values="\n".join(_values()),
        ops="\n\n".join(_written(op) for op in public.values()),
    )


def _import(module: str, name: str, public: bool) -> str:
    return f"from {module} import {name}" + (f" as {name}" if public else "")


def _values() -> Iterator[str]:
    """State the dtypes, the constants and what else the namespace holds besides ops."""
    for name in sorted(namespace.names()):
        value = None if name == "bfloat16" else namespace.find(name)
        if name == "bfloat16":
            yield "bfloat16: numpy.dtype[Any]"
        elif isinstance(value, np.dtype):
            yield f"{name}: numpy.dtype[numpy.{value.type.__name__}]"
        elif isinstance(value, type):
            yield f"{name}: type[{value.__name__}]"
        elif not isinstance(value, Op):
            yield f"{name}: {'None' if value is None else type(value).__name__}"


def _classes(op: Op) -> Iterator[tuple[str, str, bool]]:
    """Find where the classes that an op's annotations name are imported from."""
    for node in (node for text in _annotations(op) for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.Name) and node.id not in _KNOWN:
            yield "." + _scope(op)[node.id].__module__.removeprefix("metalnb."), node.id, False


def _annotations(op: Op) -> Iterator[str]:
    signature = op.__signature__
    for found in (*(p.annotation for p in signature.parameters.values()), signature.return_annotation):
        if found is not inspect.Parameter.empty:
            yield found


def _scope(op: Op) -> dict[str, Any]:
    function = op._function
    assert isinstance(function, types.FunctionType)
    return function.__globals__


def _written(op: Op) -> str:
    """Write an op as a decorated function, and its aliases."""
    elementwise = isinstance(op, Elementwise)
    parameters = list(_parameters(op, elementwise=elementwise))
    given = "Array" if elementwise else _renamed(op.__signature__.return_annotation, _GIVEN)
    head = f"def {op.name}({', '.join(parameters)}) -> {given}:"
    if len(head) > WIDTH:
        head = "\n".join([f"def {op.name}(", *(f"    {p}," for p in parameters), f") -> {given}:"])
    doc = inspect.cleandoc(op.__doc__ or "").replace("\\", "\\\\")
    text = f'"""{doc}"""' if "\n" not in doc else f'"""{doc}\n"""'
    aliases = [f"{alias} = {op.name}" for alias in op.row.aliases]
    return "\n".join(["@_op", head, textwrap.indent(text, "    "), *aliases])


def _parameters(op: Op, *, elementwise: bool) -> Iterator[str]:
    """Write the parameters, and the marks after those by position and before those by name."""
    before = None
    for p in op.__signature__.parameters.values():
        if before is p.POSITIONAL_ONLY and p.kind is not before:
            yield "/"
        if p.kind is p.KEYWORD_ONLY and before not in {p.KEYWORD_ONLY, p.VAR_POSITIONAL}:
            yield "*"
        yield _parameter(p, elementwise=elementwise)
        before = p.kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _parameter(p: inspect.Parameter, *, elementwise: bool) -> str:
    star = "*" if p.kind is inspect.Parameter.VAR_POSITIONAL else ""
    if p.annotation in {"Any", inspect.Parameter.empty}:
        default = "Any" if not elementwise else "_Operand" if p.kind is inspect.Parameter.POSITIONAL_ONLY else "float"
        said = _BY_NAME.get(p.name, default)
        if p.default is None and said != "Any" and "None" not in said:
            said += " | None"
    else:
        said = _renamed(p.annotation, _TAKEN)
    return f"{star}{p.name}: {said}" + ("" if p.default is inspect.Parameter.empty else f" = {_default(p.default)}")


def _renamed(annotation: str, names: dict[str, str]) -> str:
    tree = ast.parse(annotation, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return ast.unparse(tree)


def _default(value: Any) -> str:
    finite = isinstance(value, float) and np.isfinite(value)
    return repr(value) if finite or isinstance(value, (bool, int, str, tuple, types.NoneType)) else "..."


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
