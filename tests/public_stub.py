"""Make the stubs of `metalnb` and of its modules, from the public names and the ops (`make docs`).

``metalnb/__init__.py`` resolves names on first use, which type checkers cannot follow. Its stub states where each name
is imported from, the signature and docstring of every op, the dtypes and the constants. `stubs` makes the others: the
array methods that are ops, `metalnb.linalg`, `metalnb.random`.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from stubs.definitions import annotations, listed, op_definition
from stubs.method_stub import METHOD_STUB, method_stub
from stubs.module_stubs import MODULE_STUBS, module_stub

import metalnb
from metalnb.library_kernels import namespace, op_table
from metalnb.library_kernels.op import Op

__all__ = ["STUB", "STUBS", "stub"]

STUB = Path(metalnb.__file__).with_name("__init__.pyi")

_KNOWN = {"Array", "Shape", "bool", "Any", "Literal", "Sequence", "None", "float", "int", "list", "str", "tuple"}

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
    public = {name: op for name, op in sorted(op_table.ops().items()) if getattr(metalnb, name) is op}
    imports = {("." + metalnb._HOMES[name], name, True) for name in metalnb._HOMES}
    imports |= {(".errors", name, True) for name in metalnb.__all__ if name not in metalnb._HOMES}
    imports |= {(".", name, True) for name in metalnb._MODULES}
    imports |= {(".library_kernels.op", "Op", False), (".library_kernels.namespace", "Namespace", False)}
    imports |= {found for op in public.values() for found in _classes(op)}
    return _HEAD.format(
        imports="\n".join(_import(*row) for row in sorted(imports)),
        names=listed(metalnb.__all__),
        values="\n".join(_values()),
        ops="\n\n".join(op_definition(op) for op in public.values()),
    )


def _import(module: str, name: str, public: bool) -> str:
    return f"from {module} import {name}" + (f" as {name}" if public else "")


def _values() -> Iterator[str]:
    """State the dtypes, the constants and the namespace's other values."""
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
    """Find the modules of the classes in the ops' annotations."""
    for node in (node for text in annotations(op.__signature__) for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.Name) and node.id not in _KNOWN:
            yield "." + _scope(op)[node.id].__module__.removeprefix("metalnb."), node.id, False


def _scope(op: Op) -> dict[str, Any]:
    function = op._function
    assert isinstance(function, types.FunctionType)
    return function.__globals__


STUBS: dict[Path, Callable[[], str]] = {
    STUB: stub,
    METHOD_STUB: method_stub,
    **{path: functools.partial(module_stub, module) for path, module in MODULE_STUBS.items()},
}

if __name__ == "__main__":
    for path, write in STUBS.items():
        path.write_text(write(), encoding="utf-8")
