"""The kernel library's files, for a cell to include: ``#include <metalnb/reduce.metal>``."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["bundled"]

_FOLDER = Path(__file__).parent.parent / "library_kernels" / "metal"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]metalnb/([\w.]+)[>"]', re.MULTILINE)


def bundled(texts: Iterable[str]) -> dict[str, str]:
    """Return the library's files that some texts include, directly or indirectly, by the name in the ``#include``."""
    found: dict[str, str] = {}
    ahead = [name for text in texts for name in _INCLUDE.findall(text)]
    while ahead:
        name = ahead.pop()
        text = _text(name)
        if text is not None and f"metalnb/{name}" not in found:
            found[f"metalnb/{name}"] = text
            ahead += _INCLUDE.findall(text)
    return found


@functools.cache
def _text(name: str) -> str | None:
    file = _FOLDER / name
    return file.read_text("utf-8") if file.suffix in {".h", ".metal"} and file.is_file() else None
