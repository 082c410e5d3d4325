"""The layout of the tree: each folder states its purpose and holds few files, and names are unique."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from package_modules import PACKAGE, ROOT, modules, tree_of

MODULES = modules(PACKAGE)
PACKAGES = sorted(name for name in MODULES if name.split(".")[-1] == "__init__")
# metalcompute's own API has these names, and its double must have them too.
FORCED = {"Device", "Function", "Kernel"}
ENDING = r"\.(?:py|metal|h|c|js|css|md|toml|yml|ipynb)"
NOT_MODULES = {"functional"}  # in package docstrings, a name of another library: torch.nn.functional
OF_ANOTHER_PACKAGE = "metalcompute.__init__"  # its docstring names files of the package that it imitates
LONGEST = 400  # lines of a file of the package; most have fewer than 300
MOST = 15  # files of Python in a folder; MSL's headers, the library's Metal and the puzzles' solutions are data


def tree(name: str) -> ast.Module:
    return tree_of(MODULES[name])


@pytest.mark.parametrize("package", PACKAGES)
def test_package_docstring_starts_with_a_sentence(package: str) -> None:
    """A one-line sentence, and optional details below it. Words are not counted, which would reward filler."""
    first, *more = (ast.get_docstring(tree(package)) or "").split("\n")
    assert first.endswith("."), first
    assert not more or (more[0] == "" and more[1]), more


def test_every_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in MODULES.values()}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_no_folder_has_too_many_files() -> None:
    ours = [*MODULES.values(), *Path(ROOT, "tests").rglob("*.py")]
    files = Counter(str(path.parent.relative_to(ROOT)) for path in ours if path.name != "__init__.py")
    files["tests/msl"] = 0  # a file per chapter of the specification, and shared ones
    assert {folder: count for folder, count in files.items() if count > MOST} == {}


def test_no_file_of_the_package_is_too_long() -> None:
    lines = {name: path.read_text("utf-8").count("\n") for name, path in MODULES.items()}
    lines |= {path.name: path.read_text("utf-8").count("\n") for path in (ROOT / "metalnb").rglob("*.js")}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


def test_module_names_are_unique() -> None:
    own = {name.removesuffix(".__init__") for name in MODULES} - {"__init__", "__main__"}
    names = Counter(name.split(".")[-1] for name in own)
    assert [name for name, count in names.items() if count > 1] == []


def test_class_names_are_unique() -> None:
    names = Counter(
        node.name
        for name in MODULES
        for node in tree(name).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1 and name not in FORCED] == []


def test_contributing_lists_every_package() -> None:
    """CONTRIBUTING.md has a line for each folder at the top of the package."""
    listed = Path(ROOT, "CONTRIBUTING.md").read_text("utf-8").partition("## The layout")[2].partition("tests/")[0]
    packages = {name.split(".")[0] for name in PACKAGES} - {"__init__"}
    assert [name for name in sorted(packages) if f"{name}/" not in listed] == []


def test_documents_and_docstrings_name_existing_files() -> None:
    """Each file named in a page or docstring exists, as does each module named in a package's docstring."""
    folders = (".github", "metalnb", "docs", "benchmarks", "labextension", "tests")
    files = [*ROOT.iterdir(), *(path for folder in folders for path in Path(ROOT, folder).rglob("*"))]
    names, stems = {path.name for path in files}, {path.stem for path in files}
    texts = {name: ast.get_docstring(tree(name)) or "" for name in PACKAGES if name != OF_ANOTHER_PACKAGE}
    pages = {page: Path(ROOT, page).read_text("utf-8") for page in ("CONTRIBUTING.md", "docs/architecture.md")}
    missing = [
        (source, name)
        for source, text in (texts | pages).items()
        for name in re.findall(rf"(?<!…)\b[\w$-]+{ENDING}\b", text) if name not in names
    ]  # fmt: skip
    missing += [
        (source, name)
        for source, text in texts.items()
        for name in re.findall(rf"``(?!\w+{ENDING}``)(?:\w+\.)*([a-z_]\w*)``", text) if name not in stems | NOT_MODULES
    ]  # fmt: skip
    assert missing == []


def test_architecture_page_names_existing_files() -> None:
    page = Path(ROOT, "docs", "architecture.md").read_text("utf-8")
    files = {f"/metalnb/{'/'.join(name.split('.'))}.py" for name in MODULES}
    files |= {f"/metalnb/{path.relative_to(ROOT / 'metalnb').as_posix()}" for path in (ROOT / "metalnb").rglob("*.h")}
    folders = ("benchmarks", "docs", "tests")
    files |= {f"/{path.relative_to(ROOT).as_posix()}" for f in folders for path in Path(ROOT, f).rglob("*.py")}
    named = set(re.findall(r"`([\w/]+\.(?:py|h))`", page))
    assert len(named) > 50
    assert [name for name in sorted(named) if not any(file.endswith(f"/{name}") for file in files)] == []
    named_folders = {name.rstrip("/") for name in re.findall(r"`((?:\w+/)+\w*)`", page)} - {"docs", "tests"}
    assert [name for name in sorted(named_folders) if not Path(ROOT, "metalnb", name).is_dir()] == []
