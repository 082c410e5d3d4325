"""The package's modules and their files."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def modules(package: Path) -> dict[str, Path]:
    """Return every module below `package` by its dotted name, following the links to packages at the root."""
    found = {}
    for folder, _, files in os.walk(package, followlinks=True):
        for file in files:
            if file.endswith(".py"):
                path = Path(folder, file)
                found[".".join(path.relative_to(package).with_suffix("").parts)] = path
    return found
