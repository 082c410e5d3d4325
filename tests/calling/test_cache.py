"""Cached files are found again, never trusted when damaged, never stale, and never required."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb import cache
from metalnb.engine.clang import driver
from metalnb.msl.libclang import precompiled as prelude
from metalnb.program import compiled as programs
from metalnb.program import front_end

KINDS = ("signatures", "cpu-text", "cpu-lanes", "cpu-library")


def cell(value: int, salt: object) -> str:
    return f"// {salt}\nkernel void k(device int* y, uint i [[thread_position_in_grid]]) {{ y[i] = {value}; }}"


def run(source: str, **options: object) -> list[int]:
    """Compile as a new process would, with nothing cached in memory; return the kernel's output.

    Always on the engine `cpu`: the kinds of entries above are specific to it.
    """
    programs._programs.clear()
    return mnb.compile(source, engine="cpu", **options).k(grid=2).tolist()  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test its own empty cache."""
    path = tmp_path / "fresh" / "cache"
    monkeypatch.setenv("METALNB_CACHE", str(path))
    yield path
    programs._programs.clear()


def entries(folder: Path, kind: str) -> list[Path]:
    return sorted(p for p in (folder / kind).rglob("*") if p.is_file())


def test_a_program_is_kept_in_every_stage_and_for_its_user_alone(folder: Path, tmp_path: Path) -> None:
    assert run(cell(7, tmp_path)) == [7, 7]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for kind in KINDS:
        assert {stat.S_IMODE(entry.stat().st_mode) for entry in entries(folder, kind)} == {0o600}
    assert not list(folder.rglob(".*")) + list(folder.rglob("metalnb-*"))  # no incomplete file is left
    before = {p: p.stat().st_mtime_ns for k in KINDS for p in entries(folder, k)}
    assert run(cell(7, tmp_path)) == [7, 7]
    assert {p: p.stat().st_mtime_ns for k in KINDS for p in entries(folder, k)} == before


def test_headers_are_precompiled_once_for_checked_and_unchecked_cells_and_for_divisions(folder: Path) -> None:
    divided = "kernel void k(device int* y, uint i [[thread_position_in_grid]]) { y[i] = 10 / int(i + 1); }"
    for checked in (True, False):
        assert run(cell(7, folder), checked=checked) == [7, 7]
        assert run(divided, checked=checked) == [10, 5]
    assert len([*(folder / "headers").rglob("*.pch")]) == 1
    assert run(cell(7, folder), math="precise") == [7, 7]
    assert len([*(folder / "headers").rglob("*.pch")]) == 2


def test_cached_result_is_used(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(cell(7, tmp_path))

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a compiler was started")

    from metalnb.msl.analysis import reflect

    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setattr(reflect, "parse", refuse)
    assert run(cell(7, tmp_path)) == [7, 7]


def test_a_relative_folder_stays_the_same_in_another_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    relative = f"cache of {tmp_path.name}"
    monkeypatch.setenv("METALNB_CACHE", relative)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    cache.store().put("0" * 40, "kind", b"kept")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cache.store().get("0" * 40, "kind") == b"kept"
    assert cache.store().root == tmp_path / relative


def test_changed_libclang_parses_a_cell_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(cell(7, tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(prelude, "version_of", lambda _name, _module: "17.0")
        for kept in (prelude.parser_version, front_end._front_end):
            kept.cache_clear()
        try:
            assert run(cell(7, tmp_path)) == [7, 7]
        finally:
            for kept in (prelude.parser_version, front_end._front_end):
                kept.cache_clear()
    assert len(entries(folder, "signatures")) == 2


@pytest.mark.long(every=3)  # These still include each kind of damage and each kind of entry
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", ["empty", "cut", "turned", "replaced", "folder"])
def test_damaged_cache_entry_is_rebuilt(kind: str, damage: str, folder: Path, tmp_path: Path) -> None:
    run(cell(7, tmp_path))
    for entry in entries(folder, kind):
        good = entry.read_bytes()
        if damage == "folder":
            entry.unlink()
            entry.mkdir()
        else:
            middle = len(good) // 2
            flipped = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
            kinds = {"empty": b"", "cut": good[:middle], "turned": flipped, "replaced": b"nonsense" * 9}
            entry.write_bytes(kinds[damage])
    assert run(cell(7, tmp_path)) == [7, 7]
    if damage != "folder":
        assert cache.store().get(entry.parent.name + entry.name, kind)


def test_valid_entry_that_is_not_a_program_is_rebuilt(folder: Path, tmp_path: Path) -> None:
    """Signatures of another shape with a correct checksum."""
    run(cell(7, tmp_path))
    (entry,) = entries(folder, "signatures")
    cache.store().put(entry.parent.name + entry.name, "signatures", b'{"kernels": 3}')
    assert run(cell(7, tmp_path)) == [7, 7]
    assert cache.store().get(entry.parent.name + entry.name, "signatures") != b'{"kernels": 3}'


@pytest.mark.long(unless=lambda damage: damage == "cut")  # Each makes clang fail, and all take the same path from there
@pytest.mark.parametrize("damage", ["empty", "cut", "replaced"])
def test_damaged_precompiled_headers_are_made_again(damage: str, folder: Path, tmp_path: Path) -> None:
    run(cell(1, tmp_path))
    (entry,) = entries(folder, "headers")
    good = entry.read_bytes()
    entry.write_bytes({"empty": b"", "cut": good[: len(good) // 2], "replaced": b"nonsense" * 9}[damage])
    assert run(cell(2, tmp_path)) == [2, 2]
    assert run(cell(3, tmp_path)) == [3, 3]
    (entry,) = entries(folder, "headers")
    assert entry.stat().st_size == len(good)


MSL = "#include <metal_stdlib>\nusing namespace metal;\n"


@pytest.mark.long(unless=lambda damage: damage == "one bit")  # One digest detects all three; this is the least damage
@pytest.mark.parametrize("damage", ["cut", "empty", "one bit"])
def test_damaged_library_is_parsed_again(damage: str, folder: Path, tmp_path: Path) -> None:
    assert run(MSL + cell(7, tmp_path)) == [7, 7]
    (entry,) = folder.glob("library/*/*.pch")
    sound = entry.read_bytes()
    half = len(sound) // 2
    one_bit = sound[:half] + bytes([sound[half] ^ 1]) + sound[half + 1 :]
    entry.write_bytes({"cut": sound[:half], "empty": b"", "one bit": one_bit}[damage])
    prelude._checked.clear()  # as in a new process
    assert run(MSL + cell(8, tmp_path)) == [8, 8]
    assert len(entry.read_bytes()) == len(sound)


def test_a_library_that_the_parser_does_not_take_is_parsed_from_its_text(folder: Path, tmp_path: Path) -> None:
    assert run(MSL + cell(7, tmp_path)) == [7, 7]
    (entry,) = folder.glob("library/*/*.pch")
    entry.write_bytes(b"of another parser")
    assert run(MSL + cell(8, tmp_path)) == [8, 8]


def test_the_kept_library_shows_only_in_a_cell_that_asks_for_it(folder: Path, tmp_path: Path) -> None:
    uses = cell(7, tmp_path).replace("= 7", "= metal::min(7, 8)")
    assert run(f"/* {tmp_path} */\n#define A 1\n#include <metal_stdlib>\n{uses}") == [7, 7]
    assert entries(folder, "library")
    with pytest.raises(mnb.CompileError, match="metal"):
        run(uses)
    with pytest.raises(mnb.CompileError, match="metal"):
        run(f"{uses}\n#include <metal_stdlib>\n")


@pytest.mark.long(every=2)  # Each starts a process that compiles everything, and both raise an OSError
@pytest.mark.parametrize("place", ["/dev/null/cache", "/proc/no/cache"])
def test_cells_compile_without_a_usable_cache_folder(place: str, tmp_path: Path) -> None:
    if not Path(place).parent.parent.exists():
        pytest.skip("no such place here")
    code = f"import metalnb as mnb\nprint(mnb.compile({cell(7, tmp_path)!r}, engine='cpu').k(grid=2).tolist())"
    environment = {**os.environ, "METALNB_CACHE": place}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout, done.stderr) == ("[7, 7]\n", "")


def test_a_cache_that_can_be_read_only(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(cell(1, tmp_path))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(cache.tempfile, "mkstemp", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert run(cell(1, tmp_path)) == [1, 1]
    assert run(cell(2, tmp_path)) == [2, 2]


def test_changed_source_never_runs_stale_code(folder: Path, tmp_path: Path) -> None:
    text = f"""// {tmp_path}
#include "value.h"
constant int n [[function_constant(0)]];
kernel void k(device int* y, uint i [[thread_position_in_grid]]) {{ y[i] = VALUE * 100 + n * 10 + $FAST_MATH; }}"""
    for again in range(2):
        for value in (1, 2):
            for n in (3, 4):
                for math in ("fast", "precise"):
                    headers = {"value.h": '#include "deep.h"\n', "deep.h": f"#define VALUE {value}\n"}
                    expected = value * 100 + n * 10 + (math == "fast")
                    assert run(text, headers=headers, constants={"n": n}, math=math) == [expected] * 2, again
    assert run(cell(5, tmp_path)) == [5, 5]
    assert run(cell(6, tmp_path)) == [6, 6]


def test_unrelated_header_cell_triggers_no_rebuild(folder: Path, tmp_path: Path) -> None:
    run(cell(7, tmp_path), headers={"other.h": "#define A 1"})
    before = entries(folder, "cpu-lanes")
    run(cell(7, tmp_path), headers={"other.h": "#define A 2", "more.h": ""})
    assert entries(folder, "cpu-lanes") == before


@pytest.mark.parametrize("changed", ["_headers", "compiler_version"])
def test_changed_compiler_or_headers_trigger_a_rebuild(
    changed: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    run(cell(7, tmp_path))
    before = entries(folder, "cpu-lanes")
    monkeypatch.setattr(driver, changed, lambda *_: "another")
    run(cell(7, tmp_path))
    assert len(entries(folder, "cpu-lanes")) == len(before) + 1


def test_a_compiler_named_without_its_folder_is_identified_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    file = tmp_path / ("some-clang.exe" if os.name == "nt" else "some-clang")
    monkeypatch.setenv("METALNB_CLANG", "some-clang")
    monkeypatch.setenv("PATH", str(tmp_path))
    versions = set()
    for content in ("a", "another"):
        file.write_text(content)
        file.chmod(0o755)
        driver.clang_command.cache_clear()
        versions.add(driver.compiler_version.__wrapped__())
    driver.clang_command.cache_clear()
    assert len(versions) == 2


def test_header_fingerprint_depends_on_contents_and_time(tmp_path: Path) -> None:
    file = tmp_path / "h"
    file.write_text("a")
    first = cache.fingerprint([file])
    os.utime(file, ns=(1, 1))
    second = cache.fingerprint([file])
    file.write_text("ab")
    os.utime(file, ns=(1, 1))
    assert len({first, second, cache.fingerprint([file])}) == 3


def test_parts_of_a_key_do_not_run_together() -> None:
    assert (
        len({cache.digest("ab", "c"), cache.digest("a", "bc"), cache.digest("abc"), cache.digest("ab", "c", "")}) == 4
    )


def test_many_programs_do_not_stay_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_PROGRAMS_KEPT", 3)
    programs._programs.clear()
    made = [mnb.compile(cell(n, folder)) for n in range(5)]
    assert len(programs._programs) == 3
    assert mnb.compile(cell(4, folder)) is made[4]
    assert mnb.compile(cell(0, folder)) is not made[0]
    assert np.array_equal(made[0].k(grid=1), [0])


def test_a_folder_that_vanishes_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process compiles in its own folder in the cache, and removes it."""
    store = cache.Store(tmp_path / "cache")
    store.put("a" * 40, "module", b"kept")
    (tmp_path / "cache" / "metalnb-gone").mkdir()
    listed = os.scandir

    def vanishing(folder: Any) -> Any:
        if Path(folder).name == "metalnb-gone":
            raise FileNotFoundError(folder)
        return listed(folder)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert store.usage()["module"].entries == 1
