"""The import graph has one direction: a module imports from its own package and from lower layers, without cycles.

The graph is read from the source with `ast`, so that imports inside functions and for types count like any other. So do
modules that a table names by a string (the lazy names of ``metalnb/__init__.py``, the registry of engines, the
renderers, the modules of ops).
"""

import ast
import functools
import graphlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from package_modules import PACKAGE, modules, tree_of

from metalnb.rendering import RENDERERS, Rendered

# From the bottom up. A name covers a module, or those modules of a package that no longer name here covers. Add a new
# package at the lowest place above everything it imports. Modules of one layer do not import each other.
LAYERS = (
    ("cache_limit",),
    (
        "tracebacks", "dtypes", "cache", "compile_limits", "free_memory", "package_versions", "library_includes",
        "plurals", "rendering",
    ),
    ("errors", "metal_lexer"),
    ("msl.signature",),
    ("msl.text",),
    ("msl.language",),
    ("msl.rewrite", "msl.libclang"),
    ("msl.analysis.rules",),
    ("msl.analysis",),
    ("msl.editor", "msl"),
    ("display",),
    ("engine.unit",),
    ("engine",),
    ("engine.clang", "engine.llvm"),
    ("engine.robust",),
    ("engine.vectorizer.not_vectorized",),
    ("engine.vectorizer.shape_analysis",),
    ("engine.vectorizer.vector_code",),
    ("engine.vectorizer",),
    ("engine.cpu", "engine.cuda", "engine.metal"),
    ("engine.engine_choice",),
    ("engine.__init__",),
    ("metalcompute", "arrays", "call"),
    ("program", "library_kernels.planning"),
    ("library_kernels.launching",),
    ("library_kernels.op", "library_kernels.elementwise.elementwise_text"),
    ("library_kernels.docstrings", "library_kernels.fusion.traced_operators"),
    ("library_kernels.fusion.tracing",),
    ("library_kernels.elementwise",),
    ("library_kernels.fusion", "library_kernels.indexing.take_and_put"),
    ("library_kernels.shapes",),
    ("library_kernels.indexing", "library_kernels.reductions"),
    ("library_kernels.creation", "library_kernels.linear_algebra", "library_kernels.elementwise.closeness"),
    ("library_kernels.sorting",),
    ("library_kernels.statistics", "random"),
    ("library_kernels.norms",),
    ("library_kernels.neural", "linalg"),
    ("library_kernels",),
    ("timing.progress", "timing.units"),
    ("profiling",),
    ("library_kernels.samples", "timing", "validation", "dask"),
    ("timing.views", "puzzles", "drawing", "stepping"),
    ("widgets",),
    ("widgets.animate", "widgets.dashboard", "widgets.explore", "widgets.monitor", "widgets.tune"),
    ("magics",),
    ("__init__", "doctor"),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# Imports that may climb, stay within a layer or close a cycle, each with its reason.
ALLOWED = {
    ("rendering", "timing.views"): "by name, when a record is shown: a record must not know what renders it",
    ("rendering", "validation.report_view"): "likewise",
    ("rendering", "timing"): "the table's keys are records",
    ("rendering", "validation.access_report"): "likewise",
    ("rendering", "engine.engine_list"): "likewise",
    ("rendering", "display.engine_table"): "by name, when a record is shown",
    ("rendering", "stepping"): "likewise",
    ("rendering", "profiling"): "likewise",
    ("call.kernel", "validation"): "by name, on request: `Kernel.check` is short for `validate`",
    ("engine.metal.metalcompute_path.__init__", "metalcompute"): "by name, on request: the double, on the engine `cpu`",
    ("arrays.protocols", "__init__"): "by name: `__array_namespace__` must return the package itself",
}


def resolve(dotted: str, known: dict[str, Path]) -> str:
    """Return the module of `dotted` (relative to the package): itself, a package, or the one that defines it."""
    parts = dotted.split(".") if dotted else []
    while parts:
        for name in (".".join(parts), ".".join([*parts, "__init__"])):
            if name in known:
                return name
        parts.pop()
    return "__init__"


@functools.cache
def imports(package: Path) -> dict[str, set[str]]:
    """Return what each module of a package imports from it."""
    known = modules(package)
    return {module: imported(module, known) for module in known}


def imported(module: str, known: dict[str, Path]) -> set[str]:
    """Return the package's modules that `module` imports anywhere, or names in a table for `import_module`."""
    tree = tree_of(known[module])
    found = set(named(module, tree, known)) if "import_module" in known[module].read_text("utf-8") else set()
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".")[: -node.level]
                base = ".".join(["metalnb", *package, *filter(None, [base])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        found |= {resolve(n.removeprefix("metalnb").removeprefix("."), known) for n in names if is_own(n)}
    return found - {module}


def named(module: str, tree: ast.Module, known: dict[str, Path]) -> Iterator[str]:
    """Return modules named in strings: from the package or the module's package down, or by one of their members."""
    here = module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value == "metalnb":
                yield "__init__"
            text = node.value.removeprefix("metalnb.")
            modules_named = [
                found for name in {text, f"{here}.{text}" if here else text}
                for found in known.keys() & {name, f"{name}.__init__"}
            ]  # fmt: skip
            of = text.rpartition(".")[0]
            yield from modules_named or (known.keys() & {of, f"{of}.__init__"} if of else ())


def is_own(name: str) -> bool:
    return name == "metalnb" or name.startswith("metalnb.")


def graph(package: Path) -> dict[str, set[str]]:
    """Return what each module of a package imports from it, except for what `ALLOWED` names."""
    return {m: {t for t in targets if allowed(m, t) is None} for m, targets in imports(package).items()}


def allowed(module: str, target: str) -> tuple[str, str] | None:
    """Return the row of `ALLOWED` that lets a module import another."""
    return next((row for row in ALLOWED if row[0] == module and within(target, row[1])), None)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def layer_name(module: str) -> str:
    """Return the longest name in `LAYERS` that covers a module, or an empty string."""
    return max((name for name in RANK if within(module, name)), key=len, default="")


def climbing(package: Path) -> list[str]:
    """Return a readable line for each import from a higher layer, or from another package of the same layer."""
    found = []
    for module, targets in graph(package).items():
        for target in sorted(targets):
            layer, target_layer = layer_name(module), layer_name(target)
            if layer != target_layer and RANK.get(layer, -1) <= RANK.get(target_layer, -1):
                where = "above it" if RANK.get(layer, -1) < RANK[target_layer] else "beside it"
                found.append(f"{module} imports {target}, which is {where}")
    return found


def write_package(root: Path, **sources: str) -> Path:
    for name, text in {"__init__": "", **sources}.items():
        path = root.joinpath(*name.split("__", 1) if not name.startswith("__") else [name]).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return root


def test_modules_import_only_lower_layers() -> None:
    assert climbing(PACKAGE) == []


def test_there_are_no_import_cycles() -> None:
    graphlib.TopologicalSorter(graph(PACKAGE)).prepare()  # raises a CycleError that names the cycle


def test_every_exception_is_needed() -> None:
    assert {allowed(m, t) for m, targets in imports(PACKAGE).items() for t in targets} - {None} == ALLOWED.keys()


def test_every_module_has_a_layer() -> None:
    """Add a new package to LAYERS."""
    known = modules(PACKAGE)
    assert [name for name in known if not layer_name(name)] == []
    assert [name for name in RANK if not any(layer_name(module) == name for module in known)] == []


def test_engines_import_neither_display_nor_arrays_nor_calls() -> None:
    """An engine receives only units, memory, arguments and grids (``engine/base.py``)."""
    above = ("display", "arrays", "call", "program", "library_kernels")
    crossing = [
        f"{module} imports {target}"
        for module, targets in graph(PACKAGE).items()
        for target in sorted(targets)
        if within(module, "engine") and any(within(target, package) for package in above)
    ]
    assert crossing == []


@pytest.mark.parametrize("package", ["magics", "library_kernels"])
def test_packages_with_a_link_at_the_root_use_relative_imports(package: str) -> None:
    """With an absolute import the link could be imported, as a second copy under another name."""
    for path in (PACKAGE / package).rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                assert not [a.name for a in node.names if is_own(a.name) or a.name.split(".")[0] == package], path
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert not is_own(node.module or ""), f"{path}:{node.lineno}"
                assert (node.module or "").split(".")[0] != package, f"{path}:{node.lineno}"


@pytest.mark.parametrize(
    "line",
    [
        "from .display import show",
        "from . import display",
        "import metalnb.display",
        "from metalnb import display",
        "from metalnb.display import show",
        "def f():\n    from .display import show",
        "from . import __version__",
    ],
)
def test_every_spelling_of_an_upward_import_is_found(tmp_path: Path, line: str) -> None:
    assert len(climbing(write_package(tmp_path, errors=line, display=""))) == 1


def test_upward_import_from_a_package_is_found(tmp_path: Path) -> None:
    package = write_package(tmp_path, msl__scan="from ..call import Kernel", msl____init__="", call="")
    assert climbing(package) == ["msl.scan imports call, which is above it"]


def test_an_import_along_a_layer_is_seen(tmp_path: Path) -> None:
    package = write_package(tmp_path, errors="from .metal_lexer import Lexer", metal_lexer="")
    assert climbing(package) == ["errors imports metal_lexer, which is beside it"]


def test_imports_within_a_package_and_downward_are_allowed(tmp_path: Path) -> None:
    below = "from .dtypes import D\nimport numpy"
    package = write_package(tmp_path, errors=below, dtypes="", magics__cell="from .line import run", magics__line="")
    assert climbing(package) == []


@pytest.mark.parametrize(
    "line",
    [
        "from .line import run",
        "def f():\n    from metalnb.magics import line",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import line",
        "import importlib\nimportlib.import_module('metalnb.magics.line')",
        "import importlib\nTABLE = {'run': 'line'}\nimportlib.import_module(f'{__package__}.{TABLE}')",
        "import importlib\nTABLE = {'magics.line.run': 'text'}\nimportlib.import_module(f'metalnb.{TABLE}')",
    ],
)
def test_every_spelling_of_a_cycle_is_found(tmp_path: Path, line: str) -> None:
    package = write_package(tmp_path, magics__cell=line, magics__line="from . import cell", magics____init__="")
    with pytest.raises(graphlib.CycleError, match=r"magics\.line"):
        graphlib.TopologicalSorter(graph(package)).prepare()


# ---- Records and their renderers -------------------------------------------------------------------------------------


def found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"metalnb.{module}"), attribute)


@pytest.mark.parametrize("record", RENDERERS)
def test_every_record_has_the_renderers_that_the_table_names(record: str) -> None:
    assert issubclass(found(record), Rendered)
    assert {"text/plain", "text/html"} <= RENDERERS[record].keys()
    assert all(callable(found(function)) for function in RENDERERS[record].values())


def test_every_record_that_is_rendered_has_a_row() -> None:
    bases = {
        f"{module}.{node.name}"
        for module, path in modules(PACKAGE).items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and "Rendered" in [ast.unparse(base) for base in node.bases]
    }
    assert bases == RENDERERS.keys()


def test_no_record_imports_a_renderer() -> None:
    renderers = {function.rpartition(".")[0] for row in RENDERERS.values() for function in row.values()}
    for record in RENDERERS:
        module = record.rpartition(".")[0]
        assert not imports(PACKAGE)[module] & renderers
