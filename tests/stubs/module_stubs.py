"""The stubs of `metalnb.linalg` and `metalnb.random`: ops, typed as in `metalnb`, and the modules' own functions."""

from __future__ import annotations

import ast
import builtins
import inspect
from pathlib import Path
from types import FunctionType, ModuleType

import metalnb
from metalnb.library_kernels.op import Op

from .definitions import definition, listed, op_definition, parameters, returned

__all__ = ["MODULE_STUBS", "module_stub"]

MODULE_STUBS = {
    Path(module.__file__ or "").with_suffix(".pyi"): module for module in (metalnb.linalg, metalnb.random)
}
# The modules from which a stub imports the names in its types.
_SOURCES = {
    "Any": "typing", "DTypeLike": "numpy.typing", "Literal": "typing", "Sequence": "collections.abc",
    "builtins": "builtins", "_ArrayLike": "metalnb", "_Axis": "metalnb", "_op": "metalnb", "bool as _bool": "builtins",
}  # fmt: skip

_HEAD = '''\
# Written by tests/public_stub.py from the module's public names (`make docs`). Do not edit.
"""{doc}
"""

{imports}

__all__ = [
{names}
]

{functions}
'''


def module_stub(module: ModuleType) -> str:
    """Write the stub of a module."""
    public = {name: getattr(module, name) for name in module.__all__}
    functions = {name: found for name, found in public.items() if inspect.isfunction(found)}
    # An op whose name means something else in `metalnb`, where `trace` steps through a kernel.
    own = {n: f for n, f in public.items() if isinstance(f, Op) and getattr(metalnb, n) is not f}
    written = [*map(op_definition, own.values()), *(_written(name, found) for name, found in functions.items())]
    imports = _sources_of_types(written, list(functions.values()))
    imports |= {n: f.__module__ for n, f in public.items() if n not in functions}
    imports |= {n: "metalnb" for n, f in public.items() if isinstance(f, Op)}
    lines = sorted(_import(imports[n], n, n in public) for n in imports.keys() - own.keys())
    return _HEAD.format(
        doc=inspect.cleandoc(module.__doc__ or ""), imports="\n".join(lines), names=listed(module.__all__),
        functions="\n\n".join(written),
    )  # fmt: skip


def _written(name: str, function: FunctionType) -> str:
    signature = inspect.signature(function)
    return definition(name, parameters(signature), returned(signature), function.__doc__)


def _sources_of_types(written: list[str], functions: list[FunctionType]) -> dict[str, str]:
    """Find the module of each name in the signatures: a class's module, or where a function finds an alias."""
    scope = {}
    for function in functions:
        plain = inspect.unwrap(function)
        scope |= {
            name: value.__module__ if isinstance(value, type) else plain.__module__
            for name, value in plain.__globals__.items()
        }
    names = {node.id for text in written for node in ast.walk(_head(text)) if isinstance(node, ast.Name)}
    names = {"bool as _bool" if name == "_bool" else name for name in names - set(dir(builtins))}
    return {name: _SOURCES.get(name) or scope[name] for name in names}


def _head(text: str) -> ast.Module:
    """Parse a definition without its body."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = [ast.Pass()]
    return tree


def _import(source: str, name: str, public: bool) -> str:
    return f"import {name}" if source == name else f"from {source} import {name}" + (f" as {name}" if public else "")
