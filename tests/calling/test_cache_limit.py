"""The cache stays within its limit: the least recently used entries are removed first, by an occasional scan."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import metalnb as mnb
from metalnb import cache, cache_limit
from metalnb.engine.clang import driver
from metalnb.msl.libclang import parse
from metalnb.program import compiled as programs

DAY = 86_400.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test its own empty cache of at most 100 kB."""
    monkeypatch.setenv("METALNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("METALNB_CACHE_SIZE", "100k")
    yield tmp_path / "cache"
    programs._programs.clear()


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list that collects the cache folders scanned."""
    found: list[Path] = []
    scan = cache_limit.Upkeep._scan

    def counted(upkeep: cache_limit.Upkeep, limit: int | None) -> None:
        found.append(upkeep._root)
        scan(upkeep, limit)

    monkeypatch.setattr(cache_limit.Upkeep, "_scan", counted)
    return found


def key(n: int) -> str:
    return cache.digest("entry", str(n))


def aged(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.name != "written")


def compiled(text: str) -> list[int]:
    source = f"#include <metal_stdlib>\n// {text}\nkernel void k(device int* y [[buffer(0)]]) {{ y[0] = 7; }}"
    programs._programs.clear()
    return mnb.compile(source, engine="cpu").k(grid=1).tolist()


def test_least_recently_used_entry_is_evicted_first(folder: Path) -> None:
    store = cache.Store(folder)
    for n in range(9):
        store.put(key(n), "text", bytes(10_000))
        aged(store.path(key(n), "text"), (20 - n) * DAY)
    assert store.get(key(0), "text")  # the oldest entry is used
    store.put(key(9), "text", bytes(10_000))  # beyond the limit: reduced to nine tenths of it
    assert [n for n in range(10) if store.get(key(n), "text") is None] == [1, 2]


def test_only_files_of_the_cache_count(folder: Path) -> None:
    store = cache.Store(folder)
    large = folder / "text" / "ab" / "a file of the user's"
    large.parent.mkdir(parents=True)
    large.write_bytes(bytes(300_000))
    store.put(key(0), "signatures", bytes(1000))
    with store.scratch() as scratch:
        for n, suffix in ((1, ".pch"), (2, ".dll")):
            path = store.path(key(n), "headers", suffix)
            store.prepare(path)
            (scratch / "out").write_bytes(bytes(45_000))
            store.take(scratch / "out", path)
            aged(path, (3 - n) * DAY)
    assert store.usage() == {"headers": cache.Usage(2, 90_000), "signatures": cache.Usage(1, 1016)}
    store.put(key(3), "text", bytes(9000))
    assert store.usage().keys() == {"headers", "signatures", "text"}
    assert not store.has(store.path(key(1), "headers", ".pch"))
    assert store.has(store.path(key(2), "headers", ".dll"))
    assert large.stat().st_size == 300_000


def test_limit_holds_after_many_entries_and_few_scans(folder: Path, scans: list[Path]) -> None:
    draw = random.Random(34)
    for n in range(300):
        store = cache.Store(folder)  # in a separate process
        store.put(key(n), "text", bytes(draw.choice([16, 700, 3000])))
        assert size(folder) <= 100_000
    assert size(folder) > 80_000
    assert 5 < len(scans) < 200


def test_failed_removal_is_not_retried_each_time(
    folder: Path, scans: list[Path], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "in use")

    monkeypatch.setattr(Path, "unlink", refuse)
    store = cache.Store(folder)
    for n in range(300):
        store.put(key(n), "text", bytes(1000))
    assert store.usage()["text"].entries == 300
    assert len(scans) < 40


WRITER = """
import random, sys
from metalnb import cache
store, draw = cache.store(), random.Random(int(sys.argv[1]))
for _ in range(700):
    n = draw.randrange(300)
    body = bytes([n % 256]) * 1500
    assert store.get(cache.digest(str(n)), "text") in {None, body}
    store.put(cache.digest(str(n)), "text", body)
"""


def test_concurrent_writes_and_removals_are_safe(folder: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", WRITER, str(n)], stderr=subprocess.PIPE, text=True)
        for n in range(3)
    ]
    assert [writer.communicate()[1] for writer in writers] == [""] * 3
    assert {writer.returncode for writer in writers} == {0}
    assert size(folder) <= 100_000 + 3 * 1516  # each may have written one while another was counting
    assert not list(folder.rglob(".*"))


def test_entry_used_again_within_a_minute_keeps_its_time(folder: Path) -> None:
    store = cache.Store(folder)
    store.put(key(0), "text", b"kept")
    path = store.path(key(0), "text")
    aged(path, 60)
    before = path.stat().st_mtime_ns
    assert store.get(key(0), "text") == b"kept"
    assert path.stat().st_mtime_ns == before
    for age in (DAY, -DAY):  # as after the clock was set back
        aged(path, age)
        assert store.get(key(0), "text") == b"kept"
        assert abs(path.stat().st_mtime - time.time()) < 60


def test_compiling_with_precompiled_headers_renews_their_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("METALNB_CACHE_SIZE", "1G")
    assert compiled("a") == [7]
    headers = list(folder.rglob("*.pch"))
    assert {path.parent.parent.name for path in headers} == {"headers", "library"}
    for path in headers:
        aged(path, DAY)
    assert compiled("b") == [7]
    assert [path for path in headers if path.stat().st_mtime < time.time() - 600] == []


def test_cell_compiles_after_its_precompiled_headers_were_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("METALNB_CACHE_SIZE", "1G")
    removed = []

    def vanishing(make: Any) -> Any:
        def make_and_remove(*arguments: Any, **named: Any) -> Path | None:
            path: Path | None = make(*arguments, **named)
            assert path is not None
            path.unlink()
            removed.append(path.parent.parent.name)
            return path

        return make_and_remove

    monkeypatch.setattr(parse, "precompiled_header", vanishing(parse.precompiled_header))
    monkeypatch.setattr(driver, "_precompile_headers", vanishing(driver._precompile_headers))
    assert compiled("a") == [7]
    assert set(removed) == {"headers", "library"}


def test_cell_compiles_with_a_cache_smaller_than_it_needs(folder: Path) -> None:
    assert compiled("a") == [7]
    assert compiled("b") == [7]
    assert size(folder) <= 100_000


def test_read_only_folder_raises_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = cache.Store(folder)
    store.put(key(0), "text", b"kept")
    aged(store.path(key(0), "text"), DAY)
    (folder / "written").unlink()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "read-only file system")

    for owner, name in ((os, "utime"), (cache.tempfile, "mkstemp"), (Path, "mkdir"), (Path, "unlink")):
        monkeypatch.setattr(owner, name, refuse)
    assert store.get(key(0), "text") == b"kept"
    store.put(key(1), "text", b"more")
    assert store.get(key(1), "text") is None
    assert not (folder / "written").exists()


def test_entries_are_kept_where_their_count_cannot_be_written(folder: Path) -> None:
    (folder / "written").mkdir(parents=True, mode=0o700)
    store = cache.Store(folder)
    store.put(key(0), "text", b"kept")
    assert store.get(key(0), "text") == b"kept"
    with store.scratch() as scratch:
        (scratch / "out").write_bytes(b"kept")
        store.take(scratch / "out", store.path(key(0), "text", ".pch"))
    assert store.has(store.path(key(0), "text", ".pch"))


@pytest.mark.parametrize("damage", [b"", b"\xff", b"\xff" * 16, b"\x00" * 16, b"nonsense" * 9])
def test_damaged_count_is_recomputed(damage: bytes, folder: Path) -> None:
    store = cache.Store(folder)
    for n in range(9):
        store.put(key(n), "text", bytes(10_000))
    (folder / "written").write_bytes(damage)
    for n in range(9, 12):
        store.put(key(n), "text", bytes(10_000))
    assert size(folder) <= 100_000


@pytest.mark.parametrize(
    ("value", "limit"),
    [("", 10**9), (" ", 10**9), ("0", None), ("0G", None), ("4096", 4096), ("500M", 5 * 10**8), ("2g", 2 * 10**9),
     ("1.5 GB", 15 * 10**8), ("64kB", 64_000), ("1T", 10**12)],
)  # fmt: skip
def test_size_is_bytes_or_has_a_unit(value: str, limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALNB_CACHE_SIZE", value)
    assert cache_limit.size_limit() == limit


@pytest.mark.parametrize("value", ["much", "-1", "1e9", "2GiB", "nan", "inf", "1 2", "9" * 400, "G", "٣"])
def test_invalid_size_warns_once_and_falls_back_to_1_gb(
    value: str, folder: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("METALNB_CACHE_SIZE", value)
    store = cache.Store(folder)
    with pytest.warns(RuntimeWarning, match=r"METALNB_CACHE_SIZE is a size in bytes.* \(got .*\); 1G is used"):
        store.put(key(0), "text", b"kept")
    store.put(key(1), "text", b"kept")  # a warning is an error here
    assert cache_limit.size_limit() == 10**9
    assert store.usage()["text"].entries == 2


def test_without_a_limit_nothing_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALNB_CACHE_SIZE", "0")
    for n in range(60):
        cache.Store(folder).put(key(n), "text", bytes(10_000))
    assert cache.Store(folder).usage()["text"].entries == 60
