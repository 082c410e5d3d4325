"""The stubs agree with the ops and the modules, and type-check users' scripts."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from public_stub import STUB, STUBS
from stubs.method_stub import METHOD_STUB
from stubs.module_stubs import MODULE_STUBS

import metalnb as mnb
from metalnb.arrays.implementations import implementations
from metalnb.library_kernels import op_table
from metalnb.library_kernels.op import Op

ROOT = STUB.parent.parent
TREE = ast.parse(STUB.read_text("utf-8"))


def definitions(tree: ast.Module | ast.ClassDef, *, decorated: bool) -> dict[str, ast.FunctionDef]:
    return {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and bool(n.decorator_list) == decorated}


FUNCTIONS = definitions(TREE, decorated=True)
(CLASS,) = (node for node in ast.parse(METHOD_STUB.read_text("utf-8")).body if isinstance(node, ast.ClassDef))
METHODS = definitions(CLASS, decorated=False)

# What a user writes. A wrong line states its error: mypy must report that error there, and no other.
SCRIPT = """\
from typing import Any

import metalnb as mnb
import numpy as np

x: mnb.Array = mnb.asarray(np.ones((3, 4), np.float32))
total: mnb.Array = mnb.sum(x, axis=1, keepdims=True)
total = mnb.sum(x, axis=(0, 1), dtype="float32") + 1
total = mnb.sum(np.ones(3, np.float32), dtype=mnb.float32)
mnb.exp(x, out=x)
mnb.add(x, 2)
mnb.where(x > 0, x, 0.0)
mnb.leaky_relu(x, 0.1)
mnb.clip(x, 0, max=1)
mnb.zeros([2, 3]), mnb.zeros((2, 3), np.int32), mnb.zeros(4, dtype=mnb.bool)
mnb.concat([x, x], axis=-1).shape
edges: tuple[mnb.Array, mnb.Array] = mnb.histogram(x, bins=10)
values: mnb.Array = mnb.topk(x, 2).values
mnb.absolute(x), mnb.cumsum(x), mnb.max_pool2d(x, (2, 2), stride=None)
noise: mnb.Array = mnb.random.randn(3, 4) @ (1 - x.T) > 0
mnb.linalg.inv(x), mnb.pi, mnb.newaxis
row: mnb.Array = x.sum(axis=1, keepdims=True).reshape(-1).astype(mnb.float16)
row = x.mean(0).reshape(2, -1).reshape((4,)).std(ddof=1).round(2).clip(0, max=1).argsort().squeeze()
places: tuple[mnb.Array, ...] = x.nonzero()
size: mnb.Array = mnb.linalg.norm(x, axis=0) + mnb.linalg.norm(x, "fro") + mnb.linalg.matmul(x, x.T)
vectors: mnb.Array = mnb.linalg.svd(np.ones((3, 3), np.float32), full_matrices=False).U
noise = mnb.random.normal(0, 1, size=(2, 3), dtype=mnb.float16)
noise = mnb.random.default_rng(7).integers(10, size=4)
text: str = mnb.sum.source
program: mnb.Program = mnb.compile("kernel void f() {}")


@mnb.fuse
def gelu(x: mnb.Array) -> Any:
    return x * mnb.sigmoid(1.702 * x)


mnb.smu(3)  # wrong: attr-defined
mnb.sum()  # wrong: call-arg
mnb.sum([1, 2])  # wrong: arg-type
mnb.sum(x, axes=1)  # wrong: call-arg
mnb.sum(x, axis="rows")  # wrong: arg-type
mnb.sum(x, keepdims=None)  # wrong: arg-type
mnb.sum(x=x)  # wrong: call-arg
mnb.exp("x")  # wrong: arg-type
mnb.add(x)  # wrong: call-arg
mnb.searchsorted(x, x, side="middle")  # wrong: arg-type
number: int = mnb.sum(x)  # wrong: assignment
x @= x.sauce  # wrong: attr-defined
(x + 1).sauce  # wrong: attr-defined
x.smu()  # wrong: attr-defined
mnb.zeros(3).smu()  # wrong: attr-defined
x.sum().smu()  # wrong: attr-defined
x.reshape(2, -1).smu()  # wrong: attr-defined
x.sum(axes=1)  # wrong: call-arg
x.mean(axis="rows")  # wrong: arg-type
x.argsort(kind="stable")  # wrong: call-arg
x.searchsorted(x, side="middle")  # wrong: arg-type
number = x.max()  # wrong: assignment
mnb.linalg.nrom(x)  # wrong: attr-defined
mnb.linalg.norm()  # wrong: call-arg
mnb.linalg.norm(x, "forbenius")  # wrong: arg-type
mnb.linalg.matmul(x)  # wrong: call-arg
mnb.linalg.trace(x, axis=1)  # wrong: call-arg
mnb.linalg.qr(x).Z  # wrong: attr-defined
mnb.random.nromal(3)  # wrong: attr-defined
mnb.random.randint()  # wrong: call-arg
mnb.random.rand(3, size=2)  # wrong: call-arg
mnb.random.shuffle(np.ones(3))  # wrong: arg-type
mnb.sum.sauce  # wrong: attr-defined
mnb.sum = mnb.max  # wrong: assignment
"""


@pytest.mark.parametrize("path", STUBS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_committed_stubs_are_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == STUBS[path](), "update it: make docs"


def test_every_public_name_is_declared() -> None:
    declared: set[str] = set()
    for node in TREE.body:
        if isinstance(node, ast.ImportFrom):
            declared |= {alias.asname for alias in node.names if alias.asname}
        elif isinstance(node, ast.Assign):
            declared |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            declared.add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            declared.add(node.name)
    public = {name for name in declared if not re.match("_[^_]", name) and name != "__all__"}
    assert public == {*dir(mnb), "load_ipython_extension", "unload_ipython_extension"}


def declared_parameters(node: ast.FunctionDef) -> list[tuple[str, Any, bool]]:
    """Return each parameter of a function in the stub: its name, its kind, and whether it is optional."""
    given, kinds = node.args, inspect.Parameter
    several = [*given.posonlyargs, *given.args]
    first = len(several) - len(given.defaults)
    found = [
        (a.arg, kinds.POSITIONAL_ONLY if i < len(given.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD, i >= first)
        for i, a in enumerate(several)
    ]
    if given.vararg:
        found.append((given.vararg.arg, kinds.VAR_POSITIONAL, False))
    return found + [
        (a.arg, kinds.KEYWORD_ONLY, d is not None) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]


def test_every_op_has_its_signature_and_docstring() -> None:
    names = {*dir(mnb)} - {"dask"}  # an extra
    ops = {name for name in names if isinstance(getattr(mnb, name), Op) and getattr(mnb, name).name == name}
    assert FUNCTIONS.keys() == ops
    for name, node in FUNCTIONS.items():
        op = getattr(mnb, name)
        parameters = op.__signature__.parameters.values()
        assert declared_parameters(node) == [(p.name, p.kind, p.default is not p.empty) for p in parameters], name
        assert ast.get_docstring(node) == inspect.cleandoc(op.__doc__), name


def test_every_method_passes_the_parameters_of_its_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    assert METHODS.keys() == {name for name in dir(mnb.Array) if hasattr(getattr(mnb.Array, name), "op")}
    for name, node in METHODS.items():
        method = getattr(mnb.Array, name)
        assert ast.get_docstring(node) == method.__doc__, name
        signature = op_table.op(method.op).__signature__
        monkeypatch.setitem(
            implementations, method.op, lambda *args, bind=signature.bind, **options: bind(*args, **options).arguments
        )
        _, *declared = declared_parameters(node)
        needed = [p for p, _, optional in declared if not optional]
        assert set(method("the array", *needed).values()) >= {"the array", *needed}, name
        first, *own = signature.parameters
        assert {p for p, *_ in declared} - {"ddof"} == set(own), name
        by_position = [p for p, kind, _ in declared if kind is not inspect.Parameter.KEYWORD_ONLY]
        by_name = {p: p for p, kind, _ in declared if kind is not inspect.Parameter.POSITIONAL_ONLY and p != "ddof"}
        for positions in (len(needed), len(by_position)):
            args = by_position[:positions]
            options = {p: p for p in by_name if p not in args}
            assert method("the array", *args, **options) == {first: "the array", **{p: p for p in own}}, name
    assert mnb.Array.std("the array", ddof=2)["correction"] == 2  # type: ignore[call-overload, arg-type]


@pytest.mark.parametrize("path", MODULE_STUBS, ids=lambda path: path.parent.name)
def test_a_module_stub_matches_the_module(path: Path) -> None:
    module, tree = MODULE_STUBS[path], ast.parse(path.read_text("utf-8"))
    functions = definitions(tree, decorated=False)
    ops = definitions(tree, decorated=True)
    imported = {
        alias.asname: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    imported = {name: source for name, source in imported.items() if name not in {None, "_bool"}}
    assert functions.keys() | ops.keys() | imported.keys() == set(module.__all__)
    for name, source in imported.items():
        assert getattr(sys.modules[source], name) is getattr(module, name)
    for name, node in (functions | ops).items():
        found = getattr(module, name)
        parameters = inspect.signature(found).parameters.values()
        assert declared_parameters(node) == [(p.name, p.kind, p.default is not p.empty) for p in parameters], name
        assert ast.get_docstring(node) == inspect.cleandoc(found.__doc__), name


def check(folder: Path, script: str) -> list[tuple[int, str]]:
    """Run mypy on a script; return the line and the code of each error."""
    path = folder / "script.py"
    path.write_text(script, "utf-8")
    command = ["-m", "mypy", "--strict", "--config-file=", f"--cache-dir={ROOT / '.mypy_cache' / 'user'}", path.name]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "MYPYPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return [
        (int(line), code)
        for line, code in re.findall(r"^script\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    ]


@pytest.mark.long  # mypy takes seconds; the tests above compare the stub with the package
def test_a_type_checker_takes_right_calls_and_refuses_wrong_ones(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="needs mypy: pip install 'metalnb[lint]'")
    lines = enumerate(SCRIPT.splitlines(), 1)
    wrong = [(n, line.partition("# wrong: ")[2]) for n, line in lines if "# wrong: " in line]
    assert len(wrong) > 10
    assert check(tmp_path, SCRIPT) == wrong
