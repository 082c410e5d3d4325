"""The package's modules, their files, and what these contain."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "metalnb"


def modules(package: Path) -> dict[str, Path]:
    """Return every module below `package` by its dotted name."""
    return {".".join(path.relative_to(package).with_suffix("").parts): path for path in package.rglob("*.py")}


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return ast.parse(path.read_text("utf-8"))
