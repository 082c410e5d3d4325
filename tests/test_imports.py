"""The import graph runs one way: a module imports from its own layer and from those below it, never from above.

The graph is read from the source with `ast`, so that an import inside a function counts like any other. What is
imported by name at run time (the lazy names of ``metalnb/__init__.py``) stands at the top and cannot break the order.
"""

import ast
import graphlib
import importlib
import os
from pathlib import Path
from typing import Any

import pytest

import metalnb
from metalnb.rendering import RENDERERS, Rendered

ROOT = Path(__file__).resolve().parent.parent

# From the bottom up. A package's name stands for all its modules; a new module must be given its place here.
LAYERS = (
    ("errors", "tracebacks", "dtypes", "cache", "library_includes", "metal_lexer"),
    ("msl",),
    # Functions of the records below; what those above add to it are records too.
    ("rendering", "display"),
    ("engine",),
    ("metalcompute",),
    ("call",),
    ("program",),
    ("arrays",),
    ("library_kernels",),
    ("random",),
    ("timing",),
    ("validation",),
    ("widgets", "puzzles", "drawing"),
    ("magics",),
    ("__init__", "__main__", "doctor"),
)
# Between the modules of these no circle of imports exists, be it at call time or for types only.
ACYCLIC = ("rendering", "display", "timing", "validation", "widgets", "puzzles", "drawing")
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def modules(package: Path) -> dict[str, Path]:
    """Every module below `package` by its dotted name within it; the rooms are met through their links."""
    found = {}
    for folder, _, files in os.walk(package, followlinks=True):
        for file in files:
            if file.endswith(".py"):
                path = Path(folder, file)
                found[".".join(path.relative_to(package).with_suffix("").parts)] = path
    return found


def resolve(dotted: str, known: dict[str, Path]) -> str:
    """The module that `dotted` (relative to the package) lives in: itself, a package, or the one that defines it."""
    parts = dotted.split(".") if dotted else []
    while parts:
        for name in (".".join(parts), ".".join([*parts, "__init__"])):
            if name in known:
                return name
        parts.pop()
    return "__init__"


def imported(module: str, tree: ast.Module, known: dict[str, Path]) -> set[str]:
    """The package's own modules that `module` imports anywhere in its text."""
    found = set()
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


def is_own(name: str) -> bool:
    return name == "metalnb" or name.startswith("metalnb.")


def upward(known: dict[str, Path]) -> list[str]:
    """Every import that climbs, as a line to read."""
    edges = (
        (module, target)
        for module, path in known.items()
        for target in sorted(imported(module, ast.parse(path.read_text("utf-8")), known))
    )
    return [f"{m} imports {target}, which stands above it" for m, target in edges if rank(m) < rank(target)]


def rank(module: str) -> int:
    return RANK.get(module.split(".", maxsplit=1)[0], -1)


def write_package(root: Path, **sources: str) -> dict[str, Path]:
    for name, text in {"__init__": "", **sources}.items():
        path = root.joinpath(*name.split("__", 1) if not name.startswith("__") else [name]).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return modules(root)


def test_no_import_climbs() -> None:
    assert upward(modules(ROOT / "metalnb")) == []


def test_the_rooms_that_show_things_have_no_circle() -> None:
    known = modules(ROOT / "metalnb")
    here = {name for name in known if name.split(".")[0] in ACYCLIC}
    graph = {name: imported(name, ast.parse(known[name].read_text("utf-8")), known) & here for name in here}
    graphlib.TopologicalSorter(graph).prepare()  # raises a CycleError that names the circle


def test_every_module_has_a_layer() -> None:
    """Add a new module to LAYERS, at the lowest place from which it can reach what it imports."""
    assert {name.split(".")[0] for name in modules(ROOT / "metalnb")} <= RANK.keys()


def test_the_lazy_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse((ROOT / "metalnb" / "__init__.py").read_text("utf-8"))
    block = next(n for n in tree.body if isinstance(n, ast.If))
    seen = {a.name: n.module for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert seen == metalnb._HOMES


def test_the_rooms_are_part_of_the_graph() -> None:
    known = modules(ROOT / "metalnb")
    assert {"magics.__init__", "library_kernels.__init__"} <= known.keys()


@pytest.mark.parametrize("room", ["magics", "library_kernels"])
def test_a_room_imports_its_neighbours_relatively(room: str) -> None:
    """An absolute import would let the folder be imported at the root, as a second copy under another name."""
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not [a.name for a in node.names if is_own(a.name) or a.name.split(".")[0] == room], path
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert not is_own(node.module or ""), f"{path}:{node.lineno}"
                assert (node.module or "").split(".")[0] != room, f"{path}:{node.lineno}"


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
def test_every_spelling_of_a_climbing_import_is_seen(tmp_path: Path, line: str) -> None:
    assert len(upward(write_package(tmp_path, errors=line, display=""))) == 1


def test_a_climbing_import_is_seen_from_a_folder(tmp_path: Path) -> None:
    known = write_package(tmp_path, msl__scan="from ..call import Kernel", msl____init__="", call="")
    assert upward(known) == ["msl.scan imports call, which stands above it"]


def test_imports_along_a_layer_and_downward_are_fine(tmp_path: Path) -> None:
    below = "from .errors import E\nimport numpy"
    known = write_package(tmp_path, dtypes=below, errors="", magics="from . import dtypes")
    assert upward(known) == []


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
        for module, path in modules(ROOT / "metalnb").items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and "Rendered" in [ast.unparse(base) for base in node.bases]
    }
    assert bases == RENDERERS.keys()


def test_no_record_imports_a_renderer() -> None:
    known = modules(ROOT / "metalnb")
    renderers = {function.rpartition(".")[0] for row in RENDERERS.values() for function in row.values()}
    for record in RENDERERS:
        module = record.rpartition(".")[0]
        assert not imported(module, ast.parse(known[module].read_text("utf-8")), known) & renderers
