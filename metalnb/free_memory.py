"""Find the memory that this process can still allocate under the limits of the machine, control groups and process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["free_memory"]

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60


def free_memory() -> int | None:
    """Return the bytes that can still be allocated; None if the system does not report it.

    This is the least of the machine's available memory, the unused part of each enclosing control group's limit (a
    container's limit), and the limit on this process's addresses.
    """
    figures = [*_machine_memory(), *_control_group_memory(), *_process_memory()]
    return max(min(figures), 0) if figures else None


def _machine_memory() -> Iterator[int]:
    import psutil

    try:
        yield int(psutil.virtual_memory().available)
    except (OSError, RuntimeError, ValueError, KeyError):  # a sandbox may hide the figures
        return


def _control_group_memory() -> Iterator[int]:
    try:
        lines = (_PROC / "self/cgroup").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            root, limit_file, usage_file, cache_field = _GROUPS, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit_file, usage_file = _GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cache_field = "total_inactive_file"
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):  # a limit holds for all groups below; a container sees its own as root
            if folder.is_relative_to(root):
                yield from _free_in_group(folder, limit_file, usage_file, cache_field)


def _free_in_group(folder: Path, limit_file: str, usage_file: str, cache_field: str) -> Iterator[int]:
    try:
        limit = int((folder / limit_file).read_text(encoding="ascii"))  # "max" in version 2
        usage = int((folder / usage_file).read_text(encoding="ascii"))
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return
    files = next((int(line.split()[1]) for line in lines if line.split()[:1] == [cache_field]), 0)
    if limit < _UNLIMITED:
        yield limit - usage + files


def _process_memory() -> Iterator[int]:
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int((_PROC / "self/statm").read_text(encoding="ascii").split()[0])
        if limit != resource.RLIM_INFINITY:
            yield limit - pages * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return
