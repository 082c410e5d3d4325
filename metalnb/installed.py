"""Versions of installed packages, read from the names of their folders.

``importlib.metadata`` parses a package's whole description for that, and imports the standard library's parsers of
mail and archives first: more time than all of a small kernel's reading takes.
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
        Its name, as its folder of metadata spells it.
    module : str
        A module at the top that it installs; it is looked for, not imported.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
    """
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.origin:
        found = [*Path(spec.origin).parent.parent.glob(f"{distribution}-*.dist-info")]
        if len(found) == 1:  # two are left by an update that failed
            return found[0].stem.removeprefix(f"{distribution}-")
    from importlib import metadata

    return metadata.version(distribution)
