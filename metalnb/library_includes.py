"""Find the files of the package that a cell can include: ``#include <metalnb/reduce.metal>``.

``metalnb/__init__.py`` sets the folders.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["bundle_files", "folders"]

folders: dict[str, Path] = {}  # by the first part of an include, before the slash

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"](\w+)/([\w.]+)[>"]', re.MULTILINE)


def bundle_files(texts: Iterable[str]) -> dict[str, str]:
    """Return the files that sources include, directly or indirectly, by the name in the include."""
    files: dict[str, str] = {}
    pending = [pair for text in texts for pair in _INCLUDE.findall(text)]
    while pending:
        folder, name = pending.pop()
        text = _text(folder, name)
        if text is not None and f"{folder}/{name}" not in files:
            files[f"{folder}/{name}"] = text
            pending += _INCLUDE.findall(text)
    return files


@functools.cache
def _text(folder: str, name: str) -> str | None:
    if folder not in folders or not name.endswith((".h", ".metal")):
        return None
    file = folders[folder] / name
    return file.read_text("utf-8") if file.is_file() else None
