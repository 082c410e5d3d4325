"""A content-addressed store on disk, shared by every process of the user.

An entry is written to its own file and moved into place, so that a reader sees all of it or nothing. A digest of its
contents and name precedes the contents, so that a damaged or wrong entry is recognized and rebuilt. Entries are
executed, so a folder that others can write to is not used. ``cache_limit.py`` keeps the store within its limit, and
removes incomplete files of killed processes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .cache_limit import Upkeep, entries, note_use

__all__ = ["Store", "Usage", "digest", "fingerprint", "folder", "store"]

_DIGEST = 16
_ROOM = 64 << 20  # bytes: many times the output of a compilation


def digest(*parts: str | bytes) -> str:
    """Return a name for contents: a hexadecimal BLAKE2b of all parts, each with its length."""
    h = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


def _seal(key: str, kind: str, body: bytes) -> bytes:
    """Return the header of an entry: a digest of its contents and of its name."""
    return hashlib.blake2b(f"{kind}/{key}\0".encode() + body, digest_size=_DIGEST).digest()


def fingerprint(files: Iterable[Path]) -> str:
    """Return a digest of the state of files: their names, sizes and times; the files are not read."""
    parts = []
    for path in sorted(files):
        status = path.stat()
        parts.append(f"{path.name}:{status.st_size}:{status.st_mtime_ns}")
    return digest(*parts)


def folder() -> Path:
    """Return the cache's folder: ``METALNB_CACHE``, else the user's cache folder."""
    path = os.environ.get("METALNB_CACHE")
    if path:
        return Path(path).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("metalnb", appauthor=False))


class Store:
    """Entries under one folder.

    Parameters
    ----------
    root : Path
        The folder, which is created on first use, with mode 0700. If it cannot be created or written, or others can
        write to it, nothing is cached and everything still works.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._upkeep = Upkeep(root)

    @functools.cached_property
    def is_writable_by_others(self) -> bool:
        """Whether other users can write to the folder, so that nothing in it can be trusted; warns once."""
        try:
            status = self.root.stat()
        except OSError:
            return False
        if os.name != "posix" or (status.st_uid == os.getuid() and not status.st_mode & 0o022):
            return False
        message = f"the cache {self.root} is accessible to others: nothing is kept. Fix this: chmod 700 {self.root}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return True

    def prepare(self, path: Path) -> None:
        """Make an entry's folder.

        Raises
        ------
        OSError
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.is_writable_by_others:
            message = f"{self.root} is open to others"
            raise PermissionError(message)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Provide a folder for a compilation; a killed process's leftovers are removed like other files.

        The folder is in the system's temporary folder if the store's own folder cannot be written or is full.
        """
        parent = None
        with contextlib.suppress(OSError):
            self.prepare(self.root / "scratch")
            if os.access(self.root, os.W_OK) and shutil.disk_usage(self.root).free > _ROOM:
                parent = self.root
        with tempfile.TemporaryDirectory(prefix="metalnb-", dir=parent) as name:
            yield Path(name)

    def path(self, key: str, kind: str, suffix: str = "") -> Path:
        """Return an entry's file; a file with a suffix is for a tool to read and contains no digest."""
        return self.root / kind / key[:2] / f"{key[2:]}{suffix}"

    def has(self, path: Path) -> bool:
        """Return whether an entry for a tool exists, and note its use."""
        try:
            note_use(path, path.stat())
        except OSError:
            return False
        return True

    def take(self, file: Path, path: Path) -> None:
        """Move a file that was made in `scratch` into place as an entry.

        Raises
        ------
        OSError
        """
        nbytes = file.stat().st_size
        file.replace(path)
        self._upkeep.note_write(nbytes)

    def get(self, key: str, kind: str) -> bytes | None:
        """Read an entry; return None if there is none or it is damaged."""
        if self.is_writable_by_others:
            return None
        path = self.path(key, kind)
        try:
            with path.open("rb") as file:
                data = file.read()
                note_use(path, os.fstat(file.fileno()))
        except OSError:
            return None
        body = data[_DIGEST:]
        return body if data[:_DIGEST] == _seal(key, kind, body) else None

    def put(self, key: str, kind: str, body: bytes) -> None:
        """Write an entry atomically."""
        path = self.path(key, kind)
        data = _seal(key, kind, body) + body
        with contextlib.suppress(OSError):
            self.prepare(path)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                Path(name).replace(path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            self._upkeep.note_write(len(data))

    def make(self, key: str, kind: str, build: Callable[[], bytes]) -> bytes:
        """Read an entry, or build and write it."""
        body = self.get(key, kind)
        if body is None:
            body = build()
            self.put(key, kind, body)
        return body

    def usage(self) -> dict[str, Usage]:
        """Return the number of entries of each kind, and their size."""
        usages: dict[str, Usage] = {}
        for entry in entries(self.root):
            usage = usages.get(entry.kind, Usage(0, 0))
            usages[entry.kind] = Usage(usage.entries + 1, usage.nbytes + entry.nbytes)
        return dict(sorted(usages.items()))

    def clear(self) -> dict[str, Usage]:
        """Remove every entry, but no other files in the folder; return the removed entries by kind."""
        usages = self.usage()
        for entry in entries(self.root):
            with contextlib.suppress(OSError):
                Path(entry.path).unlink()
        return usages


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of entries of one kind, and their bytes."""

    entries: int
    nbytes: int


@functools.cache
def _store(root: Path) -> Store:
    return Store(root.absolute())  # the same folder after a `%cd`


def store() -> Store:
    """Return the user's store."""
    return _store(folder())
