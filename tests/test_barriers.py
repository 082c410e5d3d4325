"""A kernel whose threads may miss a barrier compiles, and its author is warned."""

from __future__ import annotations

import warnings

import pytest

import metalnb as mnb

HEAD = """#include <metal_stdlib>
using namespace metal;
kernel void k(device float* x, constant uint& n, uint i [[thread_position_in_grid]],
              uint l [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
    threadgroup float s[256];
"""
SYNC = "threadgroup_barrier(mem_flags::mem_threadgroup);"


@pytest.mark.parametrize("line", ["if (i >= n) return;", "if (l > 7 || i >= n) { x[i] = 0; return; }"])
def test_a_return_before_a_barrier_is_warned_of(line: str) -> None:
    with pytest.warns(mnb.MetalnbWarning, match="k: threads that return on line 6 never reach the threadgroup_barrier"):
        mnb.compile(f"{HEAD}    {line}\n    s[l] = x[i]; {SYNC} x[i] = s[0];\n}}")


@pytest.mark.parametrize("body", [
    f"if (l < 128) {{\n s[l] = x[i]; {SYNC} }} x[i] = s[0];",
    f"if (l < 128) {{ s[l] = 0; }} else {{\n {SYNC} }} x[i] = s[0];",
    f"if (i < n) {{ for (uint r = 0; r < 4; ++r) {{\n {SYNC} }} }}",
])  # fmt: skip
def test_a_barrier_in_a_branch_is_warned_of(body: str) -> None:
    with pytest.warns(mnb.MetalnbWarning, match="k: the threadgroup_barrier on line 7 is in a branch"):
        mnb.compile(f"{HEAD}    {body}\n}}")


@pytest.mark.parametrize("body", [
    f"s[l] = x[i]; {SYNC} if (i >= n) return; x[i] = s[0];",
    f"if (g >= n) return; s[l] = x[i]; {SYNC} x[i] = s[0];",
    f"if (i < n) s[l] = x[i]; {SYNC} if (i < n) x[i] = s[0];",
    "if (i >= n) return; x[i] = 1;",
    f"if (l == 0) {{ s[0] = 1; }} {SYNC} x[i] = s[0];",
    f"if (g < n) {{ {SYNC} }} x[i] = 1;",
])  # fmt: skip
def test_what_all_threads_do_alike_is_not(body: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mnb.compile(f"{HEAD}    {body}\n}}")
