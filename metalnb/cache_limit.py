"""Keep a cache within its limit: count the bytes written, and remove entries in occasional scans.

The least recently used entries are removed first. An entry's file time is the time of its last use, to within ten
minutes. The count is one file, which begins with the result of the last scan; every process appends a byte to it for
each 1024 bytes that it stores. So a process reads the folder only when the limit is reached, or an hour has passed.
Nothing here needs a lock: two scans at once remove the same entries, and the next scan restores a lost count.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import struct
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

__all__ = ["CacheEntry", "Upkeep", "entries", "note_use", "size_limit"]

_DEFAULT = 10**9  # bytes
_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?)b?\s*", re.IGNORECASE | re.ASCII)
_LEFT = 0.9  # fraction of the limit left after a scan, so that the next one is far off
_HOUR = 3600.0  # s: by then no process is still writing a file, and the folder is scanned again
_RECENT = 600.0  # s: a use is noted again only after this time
_UNIT = 1024  # stored bytes per byte of the count
_HEAD = struct.Struct("<Qd")  # bytes found by the last scan, and its time
_ENTRY = re.compile(r"[0-9a-f]{40}(\.pch|\.dll)?")  # `digest`, and files next to it with the system's suffixes


def size_limit() -> int | None:
    """Return the most bytes that a cache may take: ``METALNB_CACHE_SIZE``, else 1 GB; None for 0, which sets no limit.

    A value that is not a size causes one warning, and the default is used.
    """
    return _parse_size(os.environ.get("METALNB_CACHE_SIZE", ""))


@functools.cache
def _parse_size(text: str) -> int | None:
    if not text.strip():
        return _DEFAULT
    match = _SIZE.fullmatch(text)
    if match is None:
        message = f"METALNB_CACHE_SIZE is a size in bytes, as 500M or 2G, or 0 for no limit (got {text!r}); 1G is used"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return _DEFAULT
    return int(float(match[1]) * _SCALES[match[2].lower()]) or None


def note_use(path: Path, status: os.stat_result) -> None:
    """Note that an entry with this status is in use."""
    if abs(time.time() - status.st_mtime) > _RECENT:
        with contextlib.suppress(OSError):  # the folder may be read-only
            os.utime(path)


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An entry's file, its kind, its bytes, and when it was last used: seconds since the epoch."""

    path: str
    kind: str
    nbytes: int
    last_use: float


_File: TypeAlias = tuple[str, str, "os.DirEntry[str]"]  # the names of the two folders above a file, and the file


def entries(root: Path) -> Iterator[CacheEntry]:
    """Return the entries of a cache, ignoring other files in its folder."""
    return _entries_among(_files(root))


def _entries_among(files: Iterable[_File]) -> Iterator[CacheEntry]:
    for kind, prefix, file in files:
        with contextlib.suppress(OSError):  # another process has removed it
            if _ENTRY.fullmatch(prefix + file.name) and file.is_file(follow_symlinks=False):
                status = file.stat(follow_symlinks=False)
                yield CacheEntry(file.path, kind, status.st_size, status.st_mtime)


def _files(root: Path) -> Iterator[_File]:
    """Yield the files two folders deep, with the names of both folders."""
    for kind in _inside(root):
        for prefix in _inside(kind.path):
            for file in _inside(prefix.path):
                yield kind.name, prefix.name, file


def _inside(folder: str | Path) -> list[os.DirEntry[str]]:
    """Return a folder's entries; none if it is a file, or another process has just removed it."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries_of_folder:
        return list(entries_of_folder)
    return []


class Upkeep:
    """The count of one cache, and its scans.

    Parameters
    ----------
    root : Path
        The cache's folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._count = root / "written"

    def note_write(self, nbytes: int) -> None:
        """Count an entry that has just been written; scan the folder if it is time."""
        with contextlib.suppress(OSError):
            total, last_scan = self._add(nbytes)
            limit = size_limit()
            if abs(time.time() - last_scan) > _HOUR or (limit is not None and total > limit):
                self._scan(limit)

    def _add(self, nbytes: int) -> tuple[int, float]:
        """Append to the count; return the approximate bytes of all entries, and the time of the last scan."""
        with self._count.open("ab+") as file:
            file.write(bytes(-(-nbytes // _UNIT)))
            size = (file.tell() - _HEAD.size) * _UNIT
            file.seek(0)
            head = file.read(_HEAD.size)
        counted, last_scan = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0.0)
        return counted + size, last_scan

    def _scan(self, limit: int | None) -> None:
        """Remove incomplete files of killed processes, and the entries beyond the limit; restart the count."""
        files = list(_files(self._root))
        self._sweep(files)
        by_age = sorted(_entries_among(files), key=lambda entry: entry.last_use)
        total = sum(entry.nbytes for entry in by_age)
        if limit is not None and total > limit:
            total = _trim(by_age, total, int(limit * _LEFT))
        with self._count.open("r+b") as file:
            file.write(_HEAD.pack(total, time.time()))
            file.truncate()

    def _sweep(self, files: Iterable[_File]) -> None:
        halves = [file.path for _, _, file in files if file.name.startswith(".")]
        folders = [folder.path for folder in _inside(self._root) if folder.name.startswith("metalnb-")]
        for path in map(Path, (*halves, *folders)):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - _HOUR:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _trim(by_age: list[CacheEntry], total: int, target: int) -> int:
    """Remove entries from the front until the rest is within a target; return the bytes left.

    Entries that cannot be removed, such as loaded libraries on Windows, are excluded from the sum: they would otherwise
    be retried at every write.
    """
    for entry in by_age:
        if total <= target:
            break
        with contextlib.suppress(OSError):
            Path(entry.path).unlink()
        total -= entry.nbytes
    return total
