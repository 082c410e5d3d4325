"""SIMD functions on an exit path of a loop run with the lanes that leave in that iteration."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb
from metalnb.engine.clang.loop_exits import add_back_paths

HEAD = """#include <metal_stdlib>
using namespace metal;
uint total(uint x) { return simd_sum(x); }
bool served(uint id, uint x, thread uint& s) {
    if (id != simd_broadcast_first(id)) return false;
    s = simd_sum(x);
    return true;
}
uint own(device const uint* id, device const uint* v, uint i) {
    while (true) if (id[i] == simd_broadcast_first(id[i])) return simd_sum(v[i]);
}
device uint& own_reference(device uint& s, device const uint* id, device const uint* v, uint i) {
    for (uint k = 0;; ++k) if (id[i] == k) return s = simd_sum(v[i]), s;
}
template <class T> inline vec<T, 2> own_list(device const T* id, device const T* v, uint i) {
    for (uint k = 0;; ++k) if (id[i] == k) return {k, simd_sum(v[i])};
}
void set(device uint* out, uint x) { *out = simd_sum(x); }
void own_void(device uint* out, device const uint* id, device const uint* v, uint i) {
    for (uint k = 0; k < 4; ++k) if (id[i] == k) return set(out + i, v[i]);
}
kernel void k(device uint* out, device const uint* id, device const uint* v, uint i [[thread_position_in_grid]]) {
"""
# Each lane should get the sum over the four lanes of its SIMD-group with the same id.
LOOPS = {
    "break": "for (;;) { uint f = simd_broadcast_first(id[i]); if (id[i] == f) { out[i] = simd_sum(v[i]); break; } }",
    "a value": "uint s; while (true) { if (id[i] == simd_broadcast_first(id[i])) { s = simd_sum(v[i]); break; } } "
               "out[i] = s;",
    "return": "while (true) if (id[i] == simd_broadcast_first(id[i])) { out[i] = simd_sum(v[i]); return; }",
    "a flag": "bool done = false; uint s = 0; while (!done) { uint f = simd_broadcast_first(id[i]); "
              "if (id[i] == f) { s = simd_sum(v[i]); done = true; } } out[i] = s;",
    "do": "bool more = true; uint s = 0; do { uint f = simd_broadcast_first(id[i]); "
          "if (id[i] == f) { s = simd_sum(v[i]); more = false; } } while (more); out[i] = s;",
    "a flag of a counted loop": "bool done = false; uint s = 0; for (uint k = 0; k < 9 && !done; ++k) "
                                "if (id[i] == k) { s = simd_sum(v[i]); done = true; } out[i] = s;",
    "counted": "uint s = 0; for (uint k = 0; k < 4; ++k) { if (id[i] == k) { s = simd_sum(v[i]); break; } } "
               "out[i] = s;",
    "counted, return": "for (uint k = 0; k < 4; ++k) { if (id[i] == k) { out[i] = simd_sum(v[i]); return; } }",
    "continue before it": "for (uint k = 0;; ++k) { if (id[i] != k) continue; out[i] = simd_sum(v[i]); break; }",
    "switch": "for (uint k = 0; k < 4; ++k) { switch (id[i] ^ k) { case 0: out[i] = simd_sum(v[i]); return; "
              "default: break; } }",
    "else": "for (uint k = 0; k < 4; ++k) if (id[i] != k) { } else { out[i] = simd_sum(v[i]); break; }",
    "a loop in a loop": "for (uint q = 0; q < 2; ++q) for (uint k = q; k < 4; k += 2) "
                        "if (id[i] == k) { out[i] = simd_sum(v[i]); return; }",
    "out of two loops": "for (uint k = 0; k < 4; ++k) if (id[i] == k) { uint s = simd_sum(v[i]); "
                        "for (uint q = 0; q < 9; ++q) if (s < 100000) { out[i] = s; return; } }",
    "in a branch": "if (i < 1000) { for (uint k = 0; k < 4; ++k) { if (id[i] == k) { out[i] = simd_sum(v[i]); "
                   "return; } } }",
    "a branch in a branch": "for (uint k = 0; k < 4; ++k) { if (id[i] == k) { uint s = simd_sum(v[i]); "
                            "if (s < 100000) { out[i] = s; return; } } }",
    "a function": "for (uint k = 0; k < 4; ++k) { if (id[i] == k) { out[i] = total(v[i]); break; } }",
    "two loops": "uint id_1 = (id[i] + i) & 1, s = 0; "
                 "for (;;) { if (id_1 == simd_broadcast_first(id_1)) { s = simd_sum(v[i]); break; } } "
                 "for (;;) if (id[i] == simd_broadcast_first(id[i])) { out[i] = simd_sum(v[i] + (s >> 31)); break; }",
    "a function that returns the sum": "out[i] = own(id, v, i);",
    "a function that returns a list": "out[i] = own_list<uint>(id, v, i).y;",
    "a function that returns a reference": "own_reference(out[i], id, v, i) += 0;",
    "a function that returns what is void": "own_void(out, id, v, i);",
    "a function that says so": "uint s = 0; while (true) { if (served(id[i], v[i], s)) break; } out[i] = s;",
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 7, 32, 33, 64, 100])
@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())
def test_lanes_take_turns_in_a_loop(loop: str, math: str, size: int) -> None:
    check_turns(mnb.compile(f"{HEAD}{loop} }}", math=math).k, size)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())
def test_lanes_take_turns_in_the_loops_of_a_macro_and_of_a_header(loop: str) -> None:
    declared, _, kernel = HEAD.partition("kernel")
    kernel = f"kernel{kernel}"
    check_turns(mnb.compile(f"{declared}#define LOOP {loop}\n{kernel} LOOP }}").k, 64)
    include = '#include "header"\n'
    check_turns(mnb.compile(f"{include}{kernel}{loop} }}", headers={"header": declared}).k, 64)
    parameters = "device uint* out, device const uint* id, device const uint* v, uint i"
    header = f"{declared} void loop({parameters}) {{ {loop} }}"
    check_turns(mnb.compile(f"{include}{kernel} loop(out, id, v, i); }}", headers={"header": header}).k, 64)


def test_the_loop_of_a_macro_may_end_where_the_macro_ends() -> None:
    loop = "while (true) if (id[i] == simd_broadcast_first(id[i])) return simd_sum(v)"
    function = "uint summed(device const uint* id, uint v, uint i) { LOOP; }\nkernel"
    head = HEAD.replace("kernel", f"#define LOOP {loop}\n{function}")
    check_turns(mnb.compile(f"{head} out[i] = summed(id, v[i], i); }}").k, 64)


def check_turns(kernel: mnb.Kernel, size: int) -> None:
    dice = np.random.default_rng(size)
    ids, v = dice.integers(0, 4, 100).astype(np.uint32), dice.integers(0, 1000, 100).astype(np.uint32)
    out = np.zeros(100, np.uint32)
    kernel(out, ids, v, grid=100, threadgroup=size)
    for start in range(0, 100, size):
        for first in range(start, min(start + size, 100), 32):
            lanes = slice(first, min(first + 32, start + size, 100))
            mine = ids[lanes]
            assert out[lanes].tolist() == [int(v[lanes][mine == one].sum()) for one in mine]


def test_added_marker_keeps_a_condition_with_commas_intact() -> None:
    """A loop's condition is put in parentheses, so that a comma or an `or` in it stays one expression."""
    out = np.zeros(32, np.uint32)
    loop = "uint k = 0; bool a = true; while (++k, a || k < i) { if (k > 2) { out[i] = simd_sum(k); a = false; } }"
    assert "$never() || (++k, a || k < i)" in add_back_paths(f"{HEAD}{loop} }}")
    mnb.compile(f"{HEAD}{loop} }}").k(out, out, out, grid=32)
    # All lanes converge at k = 3. Afterwards lane i stays until k = i - 1, with the lanes above it.
    assert out.tolist() == [3 * 32 if i < 5 else (i - 1) * (32 - i) for i in range(32)]


def test_a_lambda_in_a_loop_is_left_alone() -> None:
    out = np.zeros(32, np.uint32)
    body = "auto f = [&](uint x) { if (x) return simd_sum(x); return 0u; }; out[i] += f((i + k) % 3);"
    loop = f"for (uint k = 0; k < 4; ++k) {{ {body} }}"
    assert add_back_paths(f"{HEAD}{loop} }}").endswith(f"{loop} }}")
    mnb.compile(f"{HEAD}{loop} }}").k(out, out, out, grid=32)
    lanes = np.arange(32)
    passed = [(lanes + k) % 3 for k in range(4)]
    assert out.tolist() == sum(np.where(x, x.sum(), 0) for x in passed).tolist()
