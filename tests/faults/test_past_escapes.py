"""Kernels that once escaped the checks: each faults, stops or computes as it must."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import metalnb as mnb

HEAD = """#include <metal_stdlib>
using namespace metal;
static_assert(sizeof(int) == 4, "see https://developer.apple.com");
"""


class Escape(NamedTuple):
    """A kernel's parameters and body, its arguments, and what its fault's message contains."""

    parameters: str
    body: str
    arguments: tuple[Any, ...]
    fault: str


def words(*values: int, dtype: type = np.uint32) -> np.ndarray:
    return np.array(values, dtype)


FAULTS = {
    "a search for a zero, which clang takes for strlen": Escape(
        "device const char* p, device int* y", "int n = 0; while (p[n] != 0) n++; y[0] = n;",
        (np.ones(64, np.int8), words(0, dtype=np.int32)), r"reads p\[64\]; p has 64 elements",
    ),
    "the same of words, for wcslen": Escape(
        "device const int* p, device int* y", "device const int* q = p; while (*q) ++q; y[0] = q - p;",
        (np.ones(64, np.int32), words(0, dtype=np.int32)), r"reads p\[64\]; p has 64 elements",
    ),
    "an index whose bits are disjoint only where it is used": Escape(
        "device float* y, device const uint* s",
        "uint n = s[1]; for (uint j = s[0]; j != n; j++) if ((j & 64) == 0) y[j | 64] = 7;",
        (np.zeros(188, np.float32), words(64, 188)), r"writes y\[192\]; y has 188 elements",
    ),
    "a distance above 2^31 from an index of 32 bits": Escape(
        "device float* y, device const int* s", "long j = s[0]; y[j + 4000000000l] = 7;",
        (np.zeros(16, np.float32), words(294967301, dtype=np.int32)), r"writes y\[4294967301\]; y has 16 elements",
    ),
}  # fmt: skip


@pytest.mark.parametrize("escape", FAULTS)
def test_an_access_out_of_bounds_is_a_fault(escape: str) -> None:
    parameters, body, arguments, fault = FAULTS[escape]
    kernel = mnb.compile(f"{HEAD}kernel void f({parameters}) {{ {body} }}", engine="cpu").f
    with pytest.raises(mnb.KernelFault, match=fault):
        kernel(*arguments, grid=1)


STOPPED = {
    "an iteration that clang takes for memset": Escape(
        "device uint* y", "for (uint k = 0; k < 200000; k++) { for (uint j = 0; j < 1000000; j++) y[j] = 0; "
        "y[k & 1023] += k; }", (np.zeros(1000000, np.uint32),), "stopped after",
    ),
    "a loop that is endless only if another was stopped": Escape(
        "device atomic_uint* flag, device uint* y, constant uint& n, constant uint& skip, "
        "uint t [[thread_position_in_grid]]",
        "uint v = 1, c = 0; if (skip == 0) do { v = atomic_load_explicit(flag, memory_order_relaxed) & 7; } "
        "while (v == 0); for (uint j = t; j < n; j += v) c += y[j]; y[t] = c;",
        (words(0), np.zeros(64, np.uint32), 64, 0), "stopped after",
    ),
}  # fmt: skip


@pytest.mark.parametrize("escape", STOPPED)
def test_a_loop_that_does_not_end_in_time_is_stopped(escape: str) -> None:
    parameters, body, arguments, fault = STOPPED[escape]
    kernel, grid = mnb.compile(f"{HEAD}kernel void f({parameters}) {{ {body} }}", engine="cpu").f, 64
    with pytest.raises(mnb.KernelFault, match=fault):
        kernel(*arguments, grid=grid, timeout=0.2)


@pytest.mark.parametrize("loop", [
    "threadgroup float s[64]; for (uint j = t; j < 64; j++) s[j] = 0; y[t] = s[t];",
    "uint end = e[t]; for (uint j = t; j < end; j++) y[j] = 0;",
    "float q[64]; uint end = e[t]; for (uint j = 0; j < end; j++) q[j] = 0; y[t] = end > t ? q[t] : 0.0f;",
])  # fmt: skip
def test_zeros_of_a_computed_number_are_in_bounds(loop: str) -> None:
    kernel = mnb.compile(f"""{HEAD}
kernel void f(device float* y, device const uint* e, uint t [[thread_position_in_threadgroup]]) {{ {loop} }}""",
                         engine="cpu").f  # fmt: skip
    y = np.ones(64, np.float32)
    kernel(y, np.full(64, 64, np.uint32), grid=64, threadgroup=64)
    assert not y.any()


def test_division_after_a_string_with_slashes_cannot_trap() -> None:
    kernel = mnb.compile(
        f'{HEAD}kernel void f(device long* y) {{ static_assert(sizeof(y) > 1, "//"); y[0] = y[1] / y[2]; }}',
        engine="cpu",
    ).f
    y = words(0, 5, 0, dtype=np.int64)
    kernel(y, grid=1)
    assert y[0] == 5  # as if the divisor were 1


def test_a_call_through_a_pointer_is_not_checked_silently() -> None:
    text = HEAD + """
void f1(device float* y, int i) { y[i] = 1; }
void f2(device float* y, int i) { y[i + 1] = 2; }
kernel void f(device float* y, device const int* s) { auto g = s[0] > 3 ? &f1 : &f2; g(y, s[0]); }"""
    with pytest.warns(mnb.MetalnbWarning, match="call through a pointer"):
        mnb.compile(text, engine="cpu").f(np.zeros(16, np.float32), words(2, dtype=np.int32), grid=1)


def test_pointers_of_a_struct_in_a_threads_array_are_not_taken_for_other_buffers() -> None:
    """Accesses through them are not checked, as those through the struct itself are not."""
    kernel = mnb.compile(HEAD + """
struct Pair { device float* p; device float* r; };
kernel void f(constant Pair& pair, device float* y, device const uint* s, uint t [[thread_position_in_grid]]) {
    device float* q[4];
    for (uint k = 0; k < 4; k++) q[k] = ((k + s[k]) & 1) ? pair.p : pair.r;
    y[t] = q[s[t] & 3][t];
}""", engine="cpu").f  # fmt: skip
    p, r = np.arange(4, dtype=np.float32), np.arange(10, 14, dtype=np.float32)
    y, s = np.zeros(4, np.float32), words(0, 1, 2, 3)
    kernel({"p": mnb.asarray(p), "r": mnb.asarray(r)}, y, s, grid=4)
    chosen = [(k + s[k]) & 1 for k in range(4)]
    assert y.tolist() == [(p if chosen[s[t] & 3] else r)[t] for t in range(4)]
