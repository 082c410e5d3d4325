"""Faults of the tools around a kernel: each was once a crash, a wrong result or a bare Python exception."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import metalnb as mnb
from metalnb import cache, metalcompute
from metalnb.compile_limits import time_limit
from metalnb.engine.clang import driver
from metalnb.engine.unit import Unit
from metalnb.msl.libclang import precompiled
from metalnb.msl.rewrite.scan import scan
from metalnb.msl.signature import Signature

KERNEL = "kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache"
    monkeypatch.setenv("METALNB_CACHE", str(path))
    return path


def an_hour_later(folder: Path) -> None:
    """Make a cache forget when it was last scanned."""
    (folder / "written").unlink()


# The cache ------------------------------------------------------------------------------------------------------------


def test_entry_under_another_name_is_not_trusted(folder: Path) -> None:
    store = cache.Store(folder)
    one, two = cache.digest("one"), cache.digest("two")
    store.put(one, "device", b"the first kernel")
    store.put(two, "device", b"the second kernel")
    shutil.copy(store.path(one, "device"), store.path(two, "device"))
    assert store.get(one, "device") == b"the first kernel"
    assert store.get(two, "device") is None
    store.path(one, "text").parent.mkdir(parents=True)
    shutil.copy(store.path(one, "device"), store.path(one, "text"))
    assert store.get(one, "text") is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    store = cache.Store(folder)
    with pytest.warns(RuntimeWarning, match="accessible to others: nothing is kept. Fix this: chmod 700"):
        store.put(cache.digest("x"), "device", b"a kernel")
    assert store.get(cache.digest("x"), "device") is None  # and the warning appears once
    assert list(folder.rglob("*")) == []
    folder.chmod(0o755)
    store = cache.Store(folder)
    store.put(cache.digest("x"), "device", b"a kernel")
    assert store.get(cache.digest("x"), "device") == b"a kernel"


def test_leftovers_of_a_killed_process_are_removed(folder: Path) -> None:
    store = cache.Store(folder)
    store.put(cache.digest("x"), "device", b"a kernel")
    kept = store.path(cache.digest("x"), "device")
    old, new = kept.parent / ".tmpold", kept.parent / ".tmpnew"
    strays = folder / "metalnb-old"
    strays.mkdir()
    for path in (old, new, strays / "out.pch"):
        path.write_bytes(b"half")
    for path in (old, strays):
        os.utime(path, (time.time() - 7200,) * 2)
    an_hour_later(folder)
    cache.Store(folder).put(cache.digest("y"), "device", b"another")
    assert (kept.exists(), old.exists(), new.exists(), strays.exists()) == (True, False, True, False)


def test_precompiled_library_is_skipped_when_the_disk_is_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precompiled.shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
    program = mnb.compile(f"#include <metal_stdlib>\n{KERNEL} // with a full disk", engine="cpu")
    assert list(program) == ["k"]
    assert list(folder.rglob("library/*/*.pch")) == []


SLOW = """#!{python}
import pathlib, sys, time
pathlib.Path("out").write_bytes(b"half")
pathlib.Path({started!r}).touch()
time.sleep(600)
"""


def test_leftovers_of_a_killed_compilation_are_ignored(folder: Path, tmp_path: Path) -> None:
    started = tmp_path / "started"
    clang = tmp_path / "clang"
    clang.write_text(SLOW.format(python=sys.executable, started=str(started)))
    clang.chmod(0o700)
    script = f"import metalnb as mnb, numpy as np\nmnb.compile({KERNEL!r}, engine='cpu').k(np.zeros(4, np.float32))"
    environment = {**os.environ, "METALNB_CLANG": str(clang)}
    running = subprocess.Popen([sys.executable, "-c", script], env=environment, start_new_session=True)
    while not started.exists():
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    left = list(folder.glob("metalnb-*"))
    assert [(path / "out").exists() for path in left].count(True) == 1
    cache.Store(folder).put(cache.digest("x"), "device", b"it may be somebody's still")
    assert all(path.exists() for path in left)
    for path in left:
        os.utime(path, (time.time() - 7200,) * 2)
    an_hour_later(folder)
    cache.Store(folder).put(cache.digest("y"), "device", b"an hour later")
    assert list(folder.glob("metalnb-*")) == []


# Threads --------------------------------------------------------------------------------------------------------------

DAEMONS = """
import sys, threading, time
import numpy as np
import metalnb as mnb

cell = '''kernel void k(device float* x, uint i [[thread_position_in_grid]]) {
    for (int j = 0; j < 200; ++j) x[i] = x[i] * 0.5f + 1;
}'''
kernel = mnb.compile(cell, engine=sys.argv[1]).k
kernel(np.zeros(4, np.float32))
runs = [0] * 4

def dispatch(which):
    x = np.zeros(200_000, np.float32)
    while True:
        kernel(x)
        runs[which] += 1

for which in range(4):
    threading.Thread(target=dispatch, args=(which,), daemon=True).start()
while min(runs) < 3:
    time.sleep(0.01)
print("all ran")
"""


def test_threads_that_dispatch_when_python_ends() -> None:
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", DAEMONS, "cpu"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "all ran\n", "")


# Messages about what went wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["shapes", "threadgroup_memory"])
@pytest.mark.parametrize("value", [3, 5.0, "x", [("x", 4)]])
def test_options_that_are_mappings(option: str, value: object) -> None:
    k = mnb.compile(KERNEL, engine="cpu").k
    with pytest.raises(mnb.ArgumentError, match=rf"k: {option} is a mapping by parameter, like {{.*}}; got"):
        k(np.zeros(4, np.float32), **{option: value})


def test_a_mapping_is_shown_with_the_kernels_own_names() -> None:
    text = "kernel void k(device const float* x, device float* out, threadgroup float* part) { out[0] = x[0]; }"
    k = mnb.compile(text, engine="cpu").k
    x = np.zeros(4, np.float32)
    with pytest.raises(mnb.ArgumentError, match=r"like {'part': 1024}; got 128"):
        k(x, x, grid=1, threadgroup_memory=128)
    with pytest.raises(mnb.ArgumentError, match=r"like {'out': \(4, 4\)}; got 4"):
        k(x, grid=1, shapes=4)


RECORDS = np.zeros(2, [("d", np.float16), ("q", np.uint8, 16)])


@pytest.mark.parametrize(
    ("kind", "given", "cure"),
    [
        ("device const char*", RECORDS, "Pass x.view(np.int8), the records' bytes as they are."),
        ("device const uchar*", np.zeros(3, np.float32),
         "Pass x.astype(np.uint8), or x.view(np.uint8) for its bytes as they are."),
        ("device char*", np.zeros(3, np.float32),
         "Make it with dtype np.int8: the kernel writes in place, or pass x.view(np.int8), its bytes as they are."),
        ("device const bfloat*", np.zeros(3, np.uint16),
         "Pass x.astype(ml_dtypes.bfloat16), or x.view(ml_dtypes.bfloat16) for its bytes as they are."),
        ("device const bfloat*", np.zeros(3, np.float32), "Pass x.astype(ml_dtypes.bfloat16)."),
        ("device const char*", np.zeros(3, np.uint8), "Pass x.astype(np.int8)."),
        ("struct C { float re, im; };device const C*", np.zeros(3, np.complex64),
         "Make it with dtype k.program.dtype('C'), or pass x.view(k.program.dtype('C'))."),
        ("struct C { float re, im; };device const C*", np.zeros(3, np.float32),
         "Make it with dtype k.program.dtype('C')."),
        ("device const float*", np.zeros(3, np.uint8), "Pass x.astype(np.float32)."),
        ("device const uint*", np.zeros(8, np.int8),
         "Pass x.astype(np.uint32), or x.view(np.uint32) for its bytes as they are."),
        ("device const uint4*", np.zeros(32, np.uint8),
         "Pass x.astype(np.uint32), or x.view(np.uint32).reshape(-1, 4) for its bytes as they are."),
    ],
)  # fmt: skip
def test_bytes_are_viewed_and_not_converted(kind: str, given: np.ndarray, cure: str) -> None:
    struct, _, kind = kind.rpartition(";")
    k = mnb.compile(f"{struct};kernel void k({kind} x, device float* y) {{ y[0] = 1; }}", engine="cpu").k
    with pytest.raises(mnb.ArgumentError) as caught:
        k(given, grid=1)
    assert str(caught.value).endswith(cure)


def unit(text: str) -> Unit:
    return Unit(Signature("k", "::k"), scan(text))


def test_only_deep_nesting_is_reported_as_deep_nesting() -> None:
    said = "clang: error: clang frontend command failed with exit code 139"
    plain = unit(KERNEL + "".join(f"\nvoid f{i}(int i) {{ for (; i < {i};) ; }}" for i in range(999)))
    (found,) = driver._diagnostics(said, plain)
    assert found.message == "'k': the compiler crashed on this kernel"
    assert "nested" not in found.hint
    assert found.hint
    for deep in ("(" * 300 + "1" + ")" * 300, "A<" * 300 + "int" + " >" * 300):
        (found,) = driver._diagnostics(said, unit(KERNEL + f"\nint x = {deep};"))
        assert "nested too deeply" in found.hint


def test_unsupported_features_of_a_backend_are_described(tmp_path: Path) -> None:
    script = tmp_path / "clang"
    reason = "error: error in backend: cannot select: %49:pid(p0) = G_ADDRSPACE_CAST %31:pid(p0) (in function: e)"
    script.write_text(f"#!/bin/sh\necho '{driver.DUMP} Before'>&2\necho '{reason}'>&2\nexit 1\n")
    script.chmod(0o700)
    with pytest.raises(driver.BackendError) as caught:
        driver._run_to_output([str(script)], tmp_path, unit(KERNEL))
    found = caught.value.diagnostics[0]
    assert found.message == "'k': clang's backend cannot compile it: it has no instruction for addrspace cast"
    assert found.hint


# Slow sources ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [True, False])
def test_a_name_of_70_000_characters(declared: bool) -> None:
    name = "n" * 70_000
    cell = f"#include <metal_stdlib>\nconstant float {name if declared else 'other'} = 2;\n"
    cell += KERNEL.replace("1", name)
    if declared:
        x = np.zeros(2, np.float32)
        mnb.compile(cell, engine="cpu").k(x)
        assert x.tolist() == [2, 2]
    else:
        with pytest.raises(mnb.CompileError, match="use of undeclared identifier 'nnn") as caught:
            mnb.compile(cell, engine="cpu")
        assert caught.value.diagnostics[0].line == 3


def test_short_cell_never_takes_minutes_to_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("METALNB_COMPILE_TIMEOUT", raising=False)
    assert (time_limit(), time_limit(500), time_limit(10_000_000)) == (120, 21, 120)
    monkeypatch.setenv("METALNB_COMPILE_TIMEOUT", "0.5")
    assert (time_limit(), time_limit(500)) == (0.5, 0.5)
    bomb = "template <int N, int M> struct B { enum { v = B<N - 1, 2 * M>::v + B<N - 1, 2 * M + 1>::v }; };\n"
    bomb += "template <int M> struct B<0, M> { enum { v = 1 }; };\n"
    with pytest.raises(mnb.CompileError, match="the parser did not finish within 0 s") as caught:
        mnb.compile(bomb + KERNEL.replace("1", "B<16, 0>::v"), engine="cpu")
    assert "templates" in caught.value.diagnostics[0].hint


BOMBS = {
    "without an end": (
        "template <int N> struct F { F<N - 1> a; F<N - 2> b; };", "sizeof(F<30>)",
        "recursive template instantiation exceeded maximum depth of 512",
    ),
    "a function's": (
        "template <int N> int f() { return f<N + 1>(); }", "f<0>()",
        "recursive template instantiation exceeded maximum depth of 512",
    ),
    "a value's": (
        "constexpr int f(int n) { while (true) ++n; return n; }", "f(1)",
        "constexpr function never produces a constant expression",
    ),
    "a type's name": (
        "template <class A, class B> struct P {}; using T0 = P<int, int>;"
        + "".join(f" using T{n + 1} = P<T{n}, T{n}>;" for n in range(14)), "T14::one",
        r"no member named 'one' in 'P<P<P<.* … .*>>'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_templates_that_never_end(bomb: str) -> None:
    head, value, message = BOMBS[bomb]
    with pytest.raises(mnb.CompileError, match=message) as caught:
        mnb.compile(f"{head}\n{KERNEL.replace('1', value)}", engine="cpu")
    assert len(caught.value.message) < 5000


def test_templates_that_do_end() -> None:
    head = "template <int N> struct F { F<N - 1> a; F<N - 2> b; };\n"
    head += "template <> struct F<0> { float v; };\ntemplate <> struct F<1> { float v; };\n"
    x = np.zeros(2, np.float32)
    mnb.compile(head + KERNEL.replace("1", "sizeof(F<20>) / 4"), engine="cpu").k(x)
    assert x.tolist() == [10946, 10946]  # Fibonacci numbers


def test_a_value_that_clang_does_not_compute() -> None:
    """The value is computed when the kernel is loaded."""
    head = "#include <metal_stdlib>\nusing namespace metal;\nconstant float q = sin(1.0f);\n"
    x = np.zeros(2, np.float32)
    mnb.compile(head + KERNEL.replace("1", "q"), engine="cpu").k(x)
    np.testing.assert_allclose(x, np.sin(1), rtol=1e-6)


# metalcompute ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pipe", "local"])
def test_metalcompute_finds_a_kernel_named_as_a_word_of_opencl(name: str) -> None:
    text = KERNEL.replace("void k(", f"void {name}(")
    function = metalcompute.Device().kernel(text).function(name)
    x = np.arange(1024, dtype=np.float32)
    out = metalcompute.Device().buffer(x.nbytes)
    np.frombuffer(out, np.float32)[:] = x
    function(1024, out)
    np.testing.assert_array_equal(np.frombuffer(out, np.float32), x + 1)
