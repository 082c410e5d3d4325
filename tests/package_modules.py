"""The package's modules and their files."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def modules(package: Path) -> dict[str, Path]:
    """Return every module below `package` by its dotted name."""
    return {".".join(path.relative_to(package).with_suffix("").parts): path for path in package.rglob("*.py")}
