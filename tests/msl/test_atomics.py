"""Atomic functions and barriers (MSL 6.9.1, 6.15), in device and threadgroup memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import metalnb as mnb

THREADS = 1000
GROUP = 256


@dataclass(frozen=True, slots=True)
class Modify:
    """A read-modify-write function: its operation, and each thread's operand as MSL."""

    name: str
    operate: Callable[[int, int], int]
    start: int
    operand: str = "int(i * 7919 % 1009)"
    types: tuple[str, ...] = ("int", "uint")


MODIFY = [
    Modify("add", lambda a, b: a + b, 5),
    Modify("sub", lambda a, b: a - b, 2**30),
    Modify("and", lambda a, b: a & b, -1 & 0x7FFFFFFF, "int(0x7fffffff ^ (1 << i % 20))"),
    Modify("or", lambda a, b: a | b, 0),
    Modify("xor", lambda a, b: a ^ b, 12345),
    Modify("min", min, 500, "int(i * 7919 % 1009) - 3"),
    Modify("max", max, 5, "int(i * 7919 % 1009)"),
]
SPACES = {
    "device": "device atomic<T>* a = (device atomic<T>*)memory;",
    "threadgroup": "threadgroup atomic<T> t; if (l == 0) atomic_store_explicit(&t, memory[0], memory_order_relaxed);"
    " threadgroup_barrier(mem_flags::mem_threadgroup); threadgroup atomic<T>* a = &t;",
}


def operands(row: Modify, count: int) -> list[int]:
    python = row.operand.replace("1 << i % 20", "1 << (i % 20)")
    i = np.arange(count)
    return {
        "int(i * 7919 % 1009)": i * 7919 % 1009,
        "int(i * 7919 % 1009) - 3": i * 7919 % 1009 - 3,
    }.get(python, 0x7FFFFFFF ^ (1 << (i % 20))).tolist()


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", ["int", "uint"])
def test_every_modification_happens_once(kind: str, space: str) -> None:
    rows = MODIFY if kind == "int" else [row for row in MODIFY if row.name != "min"]
    count = THREADS if space == "device" else GROUP
    body = "".join(
        f"kernel void {row.name}_(device T* memory, device T* old, uint i [[thread_position_in_grid]],"
        f" uint l [[thread_index_in_threadgroup]]) {{ {SPACES[space]}"
        f" old[i] = atomic_fetch_{row.name}_explicit(a, {row.operand}, memory_order_relaxed);"
        " threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"
        f" if (l == 0) memory[0] = atomic_load_explicit(a, memory_order_relaxed); }}\n"
        for row in rows
    )
    program = mnb.compile(f"#include <metal_stdlib>\nusing namespace metal;\ntypedef {kind} T;\n{body}")
    for row in rows:
        dtype = np.dtype(kind + "32" if kind == "int" else "uint32")
        memory = np.array([row.start], dtype)
        old = np.zeros(count, dtype)
        program[f"{row.name}_"](memory, old, grid=(count,), threadgroup=(GROUP,))
        given = operands(row, count)
        assert memory[0] == functools.reduce(row.operate, given, row.start), row.name
        # Some order of the modifications explains every old value: each is the initial value or another thread's
        # result.
        made = np.array([row.operate(int(o), g) for o, g in zip(old, given, strict=True)])
        assert set(old.tolist()) <= {row.start, *made.tolist()}, row.name


def test_floats_are_added_and_subtracted() -> None:
    program = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void add(device atomic_float* a, device atomic_float& b, uint i [[thread_position_in_grid]]) {
        atomic_fetch_add_explicit(a, 0.5f, memory_order_relaxed);
        atomic_fetch_sub_explicit(&b, float(i), memory_order_relaxed);
    }
    kernel void in_group(device float* out, uint i [[thread_position_in_grid]]) {
        threadgroup atomic_float sum;
        if (i == 0) atomic_store_explicit(&sum, 1.0f, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        atomic_fetch_add_explicit(&sum, 2, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = atomic_load_explicit(&sum, memory_order_relaxed);
    }""")
    a, b, out = np.ones(1, np.float32), np.zeros(1, np.float32), np.zeros(100, np.float32)
    program["add"](a, b, grid=(1000,), threadgroup=(256,))
    program["in_group"](out, grid=(100,), threadgroup=(100,))
    assert (a[0], b[0]) == (501, -1000 * 999 // 2)
    assert set(out.tolist()) == {201}


@pytest.mark.parametrize("kind", ["int", "uint", "float", "bool"])
def test_exchange_and_compare(kind: str) -> None:
    program = mnb.compile(
        """
    #include <metal_stdlib>
    using namespace metal;
    kernel void each(device int* out) {
        threadgroup atomic<T> a;
        atomic_store_explicit(&a, T(1), memory_order_relaxed);
        out[0] = int(atomic_exchange_explicit(&a, T(0), memory_order_relaxed));
        T expected = T(1);
        out[1] = atomic_compare_exchange_weak_explicit(&a, &expected, T(1), memory_order_relaxed, memory_order_relaxed);
        out[2] = int(expected);
        out[3] = atomic_compare_exchange_weak_explicit(&a, &expected, T(1), memory_order_relaxed, memory_order_relaxed);
        out[4] = int(expected);
        out[5] = int(atomic_load_explicit(&a, memory_order_relaxed));
    }""".replace("using namespace metal;", f"using namespace metal; typedef {kind} T;")
    )
    out = np.full(6, -1, np.int32)
    program["each"](out, grid=(1,))
    assert out.tolist() == [1, 0, 0, 1, 0, 1]


def test_a_lock_free_stack_of_compare_exchanges_loses_nothing() -> None:
    program = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void largest(device atomic_uint* best, device const float* x, uint i [[thread_position_in_grid]]) {
        uint seen = atomic_load_explicit(best, memory_order_relaxed);
        while (as_type<float>(seen) < x[i] &&
               !atomic_compare_exchange_weak_explicit(best, &seen, as_type<uint>(x[i]), memory_order_relaxed,
                                                      memory_order_relaxed)) {}
    }""")
    x = np.random.default_rng(0).random(100_003, np.float32)
    best = np.zeros(1, np.uint32)
    program["largest"](best, x, grid=(len(x),))
    assert best.view(np.float32)[0] == x.max()


def test_ulong_minimum_and_maximum() -> None:
    program = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void each(device atomic_ulong* a, uint i [[thread_position_in_grid]]) {
        atomic_max_explicit(a, (ulong(i) << 40) + 3, memory_order_relaxed);
        atomic_min_explicit(a + 1, ~(ulong(i) << 40), memory_order_relaxed);
    }""")
    a = np.array([7, 2**64 - 1], np.uint64)
    program["each"](a, grid=(1000,))
    assert a.tolist() == [(999 << 40) + 3, 2**64 - 1 - (999 << 40)]


def test_a_histogram_in_threadgroup_memory() -> None:
    program = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void histogram(device const uchar* x, device atomic_uint* bins, constant uint& n,
                          uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]],
                          uint size [[threads_per_threadgroup]]) {
        threadgroup atomic_uint counts[256];
        for (uint k = l; k < 256; k += size) atomic_store_explicit(&counts[k], 0, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        atomic_fetch_add_explicit(&counts[x[i]], 1, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = l; k < 256; k += size)
            atomic_fetch_add_explicit(&bins[k], atomic_load_explicit(&counts[k], memory_order_relaxed),
                                      memory_order_relaxed);
    }""")
    x = (np.random.default_rng(0).random(70_001) ** 3 * 256).astype(np.uint8)
    bins = np.zeros(256, np.uint32)
    program["histogram"](x, bins, len(x), grid=(len(x),), threadgroup=(192,))
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=256))


def test_a_barrier_makes_writes_visible_to_the_group() -> None:
    program = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void turned(device int* x, uint l [[thread_position_in_threadgroup]],
                       uint g [[threadgroup_position_in_grid]],
                       uint n [[threads_per_threadgroup]]) {
        threadgroup int tile[256];
        device int* mine = x + g * 256;
        for (int round = 0; round < 3; ++round) {
            tile[l] = mine[l];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            int there = tile[n - 1 - l];
            threadgroup_barrier(mem_flags::mem_none);
            mine[l] = there + 1;
            threadgroup_barrier(mem_flags::mem_device);
        }
    }""")
    x = np.arange(1000, dtype=np.int32)
    got = x.copy()
    program["turned"](got, grid=(1000,), threadgroup=(256,))
    expected = np.concatenate([x[k : k + 256][::-1] + 3 for k in range(0, 1000, 256)])
    np.testing.assert_array_equal(got, expected)
