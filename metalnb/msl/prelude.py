"""Metal's whole library, parsed once by libclang and kept on disk: most of the time of parsing a cell was its.

What is kept serves a cell that begins by including ``<metal_stdlib>``, or a file of the kernel library, each of which
does; any other cell must not see what it did not ask for.
"""

from __future__ import annotations

import functools
import hashlib
import re
import tempfile
from pathlib import Path
from typing import Any

from metalnb import cache

from .includes import INCLUDE

__all__ = ["begins_with_library", "parser_version", "precompiled"]

TARGET = Path(__file__).parent / "target"
_AHEAD = r"\s|//[^\n]*\n|/\*.*?\*/|#[ \t]*(?:define|pragma)\b[^\n]*\n"  # says nothing that needs the library
_BEGINS = re.compile(rf"(?:{_AHEAD})*+#[ \t]*include[ \t]*<(?:metal_stdlib|metalnb/[^>]*)>", re.DOTALL)
_WHOLE = "/metalnb-library/library.h"  # exists only in memory
_INCOMPLETE = 0x02  # CXTranslationUnit_Incomplete: a header, not a program
_FOR_SERIALIZATION = 0x10  # CXTranslationUnit_ForSerialization


def begins_with_library(text: str) -> bool:
    """Tell whether the first thing in a text, but for comments and macros, is the library's inclusion."""
    return _BEGINS.match(text) is not None


def precompiled(cindex: Any, flags: tuple[str, ...]) -> Path | None:
    """Give the library as parsed with these flags, made once for each state of headers and parser.

    Parameters
    ----------
    cindex : module
        libclang.
    flags : tuple of str
        As they are given to the parser.

    Returns
    -------
    Path or None
        For ``-include-pch``; None where nothing can be kept.
    """
    kept = cache.store()
    key = cache.digest(_state(), *flags)
    path = kept.path(key, "library").with_suffix(".pch")
    try:
        if path.exists() and (path in _checked or kept.get(key, "library") == _digest(path)):
            _checked.add(path)
            return path
        kept.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="metalnb-", dir=kept.root) as name:
            files = [(_WHOLE, "#include <metal_stdlib>\n")]
            options = _INCOMPLETE | _FOR_SERIALIZATION
            unit = cindex.Index.create().parse(_WHOLE, args=flags, unsaved_files=files, options=options)
            unit.save(str(Path(name, "library.pch")))
            kept.put(key, "library", _digest(Path(name, "library.pch")))
            Path(name, "library.pch").replace(path)
    except (OSError, cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError):
        return None
    return path


_checked: set[Path] = set()  # in this process: a damaged file could end it


def _digest(path: Path) -> bytes:
    return hashlib.blake2b(path.read_bytes()).digest()


@functools.cache
def parser_version() -> str:
    """Return the version of libclang, which decides what is read in a cell."""
    import importlib.metadata

    return importlib.metadata.version("libclang")


@functools.cache
def _state() -> str:
    """Name the state of the headers and of the parser."""
    headers = [f for f in (*INCLUDE.rglob("*"), *TARGET.glob("*.h")) if f.is_file()]
    return f"{cache.fingerprint(headers)} {parser_version()}"
