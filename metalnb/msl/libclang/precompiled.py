"""Precompile the headers at the start of a cell and keep them on disk: they took most of the time to parse a cell.

A cell that starts by including ``<metal_stdlib>`` gets the entire library; so does one that starts with a file of the
kernel library, since these all include it first. Any other cell gets only Metal's keywords and vector types: it must
not see declarations that it did not include.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from metalnb import cache
from metalnb.package_versions import version_of

from ..text.includes import INCLUDE
from .flags import TARGET

__all__ = ["begins_with_library", "parser_version", "precompiled_header"]

_AHEAD = r"\s|//[^\n]*\n|/\*.*?\*/|#[ \t]*(?:define|pragma)\b[^\n]*\n"  # nothing here needs the library
_BEGINS = re.compile(rf"(?:{_AHEAD})*+#[ \t]*(?:include|import)[ \t]*<(?:metal_stdlib|metalnb/[^>]*)>", re.DOTALL)
_LIBRARY_HEADER = "/metalnb-library/library.h"  # exists only in memory
_ROOM = 256 << 20  # bytes: many times the file's size
_INCOMPLETE = 0x02  # CXTranslationUnit_Incomplete: a header, not a program
_FOR_SERIALIZATION = 0x10  # CXTranslationUnit_ForSerialization


def begins_with_library(text: str) -> bool:
    """Return whether only comments and macros precede a text's include of the library."""
    return _BEGINS.match(text) is not None


def precompiled_header(cindex: Any, flags: tuple[str, ...], *, library: bool = True) -> Path | None:
    """Return a header precompiled with these flags; it is built once per version of the headers and the parser.

    Parameters
    ----------
    cindex : module
        libclang.
    flags : tuple of str
        The parser's flags.
    library : bool, optional
        Whether it contains Metal's entire library, or only the files that the flags include.

    Returns
    -------
    Path or None
        The path for ``-include-pch``; None if the header cannot be stored.
    """
    cache_store = cache.store()
    text = "#include <metal_stdlib>\n" if library else "\n"
    key = cache.digest(_state(), text, *flags)
    path = cache_store.path(key, "library", ".pch")
    if cache_store.is_writable_by_others:
        return None
    try:
        if cache_store.has(path) and (path in _checked or cache_store.get(key, "library") == _digest(path)):
            _checked.add(path)
            return path
        cache_store.prepare(path)
        if shutil.disk_usage(cache_store.root).free < _ROOM:  # libclang ends the process when the disk is full
            return None
        with tempfile.TemporaryDirectory(prefix="metalnb-", dir=cache_store.root) as name:
            files = [(_LIBRARY_HEADER, text)]
            options = _INCOMPLETE | _FOR_SERIALIZATION
            unit = cindex.Index.create().parse(_LIBRARY_HEADER, args=flags, unsaved_files=files, options=options)
            unit.save(str(Path(name, "library.pch")))
            cache_store.put(key, "library", _digest(Path(name, "library.pch")))
            cache_store.take(Path(name, "library.pch"), path)
    except (OSError, cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError):
        return None
    return path


_checked: set[Path] = set()  # files that this process has checked: a damaged one could crash it


def _digest(path: Path) -> bytes:
    return hashlib.blake2b(path.read_bytes()).digest()


@functools.cache
def parser_version() -> str:
    """Return the version of libclang, on which the reflection of a cell depends."""
    return version_of("libclang", "clang")


@functools.cache
def _state() -> str:
    """Return a key for the state of the headers and the parser."""
    headers = [f for f in (*INCLUDE.rglob("*"), *TARGET.glob("*.h")) if f.is_file()]
    return f"{cache.fingerprint(headers)} {parser_version()}"
