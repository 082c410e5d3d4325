"""Read the versions of installed packages from the names of their folders.

To find a version, ``importlib.metadata`` parses a package's entire description, and first imports the standard
library's mail and archive parsers, which takes more time than reading a small kernel.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

__all__ = ["version_of"]


def version_of(distribution: str, module: str) -> str:
    """Return a distribution's version.

    Parameters
    ----------
    distribution : str
        The distribution's name, as its metadata folder spells it.
    module : str
        A top-level module that it installs; it is located, not imported.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
    """
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.origin:
        folders = [*Path(spec.origin).parent.parent.glob(f"{distribution}-*.dist-info")]
        if len(folders) == 1:  # a failed update may leave two folders
            return folders[0].stem.removeprefix(f"{distribution}-")
    from importlib import metadata

    return metadata.version(distribution)
