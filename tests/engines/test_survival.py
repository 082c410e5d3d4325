"""Robustness: deep stacks, divisions by zero, forks, a full disk."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb import cache, engine, free_memory

on_cpu = pytest.mark.skipif(engine.current().name != "cpu", reason="of the engine cpu")
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
DEEP = HEAD + """
kernel void deep(device const uint* x, device uint* y, uint i [[thread_position_in_grid]]) {
    uint a[SIZE];
    for (uint j = 0; j < SIZE; ++j) a[j] = x[i] * j + i;
    BARRIER
    uint s = 0;
    for (uint j = 0; j < 100; ++j) s += a[(j * x[i] + 17 * i) % SIZE];
    y[i] = s;
}
"""
DIVIDE = HEAD + """
kernel void divide(device const TYPE* a, device const TYPE* b, device TYPE* q, device TYPE* r,
                   uint i [[thread_position_in_grid]]) {
    q[i] = a[i] / b[i];
    r[i] = a[i] % b[i];
}
"""
INTEGERS = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32, "uint": np.uint32,
    "long": np.int64, "ulong": np.uint64,
}  # fmt: skip


def deep(size: int, barrier: bool) -> Any:
    text = DEEP.replace("SIZE", str(size))
    return mnb.compile(text.replace("BARRIER", "threadgroup_barrier(mem_flags::mem_none);" if barrier else "")).deep


@on_cpu
@pytest.mark.parametrize("barrier", [False, True])
@pytest.mark.parametrize("size", [1000, 40_000])
def test_a_deep_stack_is_right(size: int, barrier: bool) -> None:
    x = np.arange(1, 101, dtype=np.uint32)
    y = deep(size, barrier)(x, threadgroup=100)
    j, i = np.arange(100, dtype=np.uint32)[:, None], np.arange(100, dtype=np.uint32)
    assert (y == (x * ((j * x + 17 * i) % size) + i).sum(0, dtype=np.uint32)).all()


def test_free_memory_honors_cgroup_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = free_memory.free_memory()
    assert whole is None or whole > 0
    monkeypatch.setattr(free_memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(free_memory, "_GROUPS", tmp_path / "cgroup")

    def group(path: str, **files: str) -> None:
        for name, text in files.items():
            place = tmp_path / "cgroup" / path / name.replace("__", ".")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/old\n0::/a/b\n")
    (tmp_path / "proc/self/statm").write_text("1 1 1")
    group("a/b", memory__max="max\n", memory__current="5", memory__stat="")
    group("a", memory__max="9000", memory__current="4000", memory__stat="anon 1\ninactive_file 1000\n")
    assert free_memory.free_memory() == 6000
    group("memory/old", memory__limit_in_bytes="3000", memory__usage_in_bytes="2500",
          memory__stat="total_inactive_file 100\n")  # fmt: skip
    assert free_memory.free_memory() == 600
    group("memory", memory__limit_in_bytes="100", memory__usage_in_bytes="900", memory__stat="")
    assert free_memory.free_memory() == 0


GUARDED = """
template <class T> T divided(T a, T b) { return b == T(0) || b == T(-1) ? a : T(a / b); }
kernel void k(device uint* y, device const long* b, uint i [[thread_position_in_grid]],
              uint size [[threads_per_threadgroup]]) {
    KIND v = KIND(popcount(KIND(absdiff(KIND(size), KIND(32767)))));
    if (KIND(3) >= v) v = divided<KIND>(KIND(uint(v) << (uint(v) & 15)), KIND(b[1]));
    y[i] = uint(v);
}"""
CHILD = """
import sys
import numpy as np
import metalnb as mnb
kernel, y = mnb.compile(sys.stdin.read(), engine="cpu").k, np.zeros(98, np.uint32)
for d in (0, 1, -1, 5):
    kernel(y, np.full(64, d, np.int64), grid=98, threadgroup=7)
    print(*{*y.tolist()})
"""


def guarded(kind: str, d: int) -> int:
    """Compute GUARDED's result for the divisor `d` and threadgroups of 7 threads."""
    size, most = (int(number.astype(INTEGERS[kind])) for number in (np.int64(7), np.int64(32767)))
    v = abs(most - size).bit_count()
    if v > 3:
        return v  # no division: int has |32767 - 7| = 0x7ff8, 12 bits; uchar |255 - 7| = 0xf8, 5 bits
    shifted = v << (v & 15)  # char: |-1 - 7| = 8, 1 bit, and 1 << 1 = 2
    return shifted if d in (0, -1) else shifted // d


# One process per case. The regular run keeps char, short and long: the compiler widens the guarded division of one of
# them, and not of the other two.
@pytest.mark.long(every=2)
@on_cpu
@pytest.mark.parametrize("kind", ["char", "uchar", "short", "int", "long"])
def test_a_division_that_a_guard_keeps_from_0(kind: str) -> None:
    """Even if the compiler moves a division out of its guard, the process must not end with SIGFPE."""
    text = "#include <metal_stdlib>\nusing namespace metal;" + GUARDED.replace("KIND", kind)
    done = subprocess.run([sys.executable, "-c", CHILD], input=text, text=True, capture_output=True, check=False)
    expected = [guarded(kind, d) for d in (0, 1, -1, 5)]
    assert (done.returncode, [*map(int, done.stdout.split())]) == (0, expected), done.stderr[-300:]


@on_cpu  # other engines return an unspecified value (docs/robustness.md)
@pytest.mark.parametrize("threadgroup", [1, 20, 32, 70])
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_division_has_one_result(name: str, threadgroup: int) -> None:
    kernel = mnb.compile(DIVIDE.replace("TYPE", name)).divide
    dtype = INTEGERS[name]
    kinds = np.iinfo(dtype)
    least = kinds.min or 1
    a = np.resize(np.array([least, 7, 7, kinds.max], dtype), 140)
    b = np.resize(np.array([-1 if kinds.min else 1, 0, 2, 0], dtype), 140)
    q, r = kernel(a, b, threadgroup=threadgroup)
    assert (q[::4] == least).all()  # INT_MIN / -1 wraps round
    assert (r[::4] == 0).all()
    assert (q[1::4] == 7).all()  # dividing by 0 acts as dividing by 1, in vector code and after it
    assert (q[3::4] == kinds.max).all()
    assert (r[1::2] == 0).all()
    assert (q[2::4] == 3).all()  # the neighbors of a division by zero are right
    assert (r[2::4] == 1).all()


@pytest.mark.filterwarnings("ignore:.*zero:metalnb.MetalnbWarning")
def test_a_constant_zero_ends_no_process() -> None:
    text = HEAD + (
        "kernel void z(device const int* a, device int* q, uint i [[thread_position_in_grid]]) {\n"
        "  q[i] = a[i] / 0 + a[i] % 0 + a[i] / -1; }"
    )
    assert mnb.compile(text).z(np.array([1, -(2**31)], np.int32)).shape == (2,)


FORK = """
import os, signal, sys
import numpy as np
import metalnb as mnb
{before}
child = os.fork()
if not child:
    signal.alarm(60)  # the bug this guards against was a hang
    mnb.compile(sys.argv[1]).deep(np.ones(4, np.uint32))
    os.write(1, b"ran")
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (mnb.compile(sys.argv[1]).deep(np.ones(4, np.uint32)) > 0).all()
"""
USED = "mnb.compile(sys.argv[1]).deep(np.ones(4, np.uint32))"
UNDER_WAY = "a = mnb.ones(1 << 22)\nfor _ in range(20): a = mnb.sin(a)"


# Processes that take seconds; "before", "a loop that can be stopped" and "while it opens" remain.
@pytest.mark.long(every=2)
@on_cpu
@pytest.mark.parametrize(
    ("before", "times"),
    [
        ("", "10"), (USED, "10"), (USED, "x[i] + 9"), (UNDER_WAY, "x[i] + 9"),
        ("mnb.compile(sys.argv[1] + '// new ' + str(os.getpid()))", "10"),
    ],
    ids=["before", "after", "a loop that can be stopped", "under way", "while it opens"],
)
def test_kernels_run_in_both_processes_after_a_fork(before: str, times: str) -> None:
    script = FORK.format(before=before)
    text = DEEP.replace("SIZE", "10").replace("BARRIER", "").replace("j < 100", f"j < {times}")
    command = [sys.executable, "-c", script, text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ran"


BESIDE_THREADS = """
import os, signal, sys, threading
import numpy as np
import metalnb as mnb
kernel = mnb.compile(sys.argv[1]).deep

def compute_once():
    kernel(np.ones(4, np.uint32))
    np.asarray(mnb.sin(mnb.arange(100)))

def compute():
    while True:
        compute_once()

compute_once()  # imports are over when the process is forked
for _ in range(2):
    threading.Thread(target=compute, daemon=True).start()
for _ in range(20):
    child = os.fork()
    if not child:
        signal.alarm(60)  # the bug this guards against was a hang
        compute_once()
        large = kernel(np.ones(1 << 16, np.uint32))
        threads = len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 2
        os._exit(threads == 1 and len(os.sched_getaffinity(0)) > 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
os._exit(0)
"""


@on_cpu
def test_kernels_run_on_all_cores_after_a_fork_beside_threads_that_compute() -> None:
    """The threads hold locks at that moment, of the arrays, of the kernel, or of the pool of workers."""
    text = DEEP.replace("SIZE", "12").replace("BARRIER", "")
    command = [sys.executable, "-c", BESIDE_THREADS, text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr


FORK_WITHIN = """
import os, signal
import numpy as np
import metalnb as mnb
text = "kernel void until(device uint* x, constant uint& n) { while (x[0] != n) x[0] = x[0] * 4 + 4; }"
x = mnb.zeros(1, dtype="uint32")
mnb.compile(text).until(x, np.uint32(7), grid=1)
child = os.fork()
if not child:
    signal.alarm(60)  # the bug this guards against was a hang
    try:
        np.asarray(x)
    except mnb.KernelFault as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.waitpid(child, 0)
"""


@on_cpu
def test_a_forked_process_does_not_wait_for_a_dispatch_of_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK_WITHIN], capture_output=True, text=True, check=False, timeout=200
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("until: this process was forked while the kernel ran")


def test_kernels_run_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALNB_CACHE", str(tmp_path))
    store = cache.store()

    def full(*_arguments: Any, **_named: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache.os, "fdopen", full)
    monkeypatch.setattr(Path, "replace", full)
    text = DEEP.replace("SIZE", "11").replace("BARRIER", "")
    assert (mnb.compile(text).deep(np.ones(4, np.uint32)) > 0).all()
    assert sum(u.entries for u in store.usage().values()) == 0
