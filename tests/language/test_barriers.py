"""A kernel whose threads may miss a barrier compiles with a warning."""

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


@pytest.mark.parametrize("line", [
    "if (i >= n) return;",
    "if (l > 7 || i >= n) { x[i] = 0; return; }",
    "uint row = i; if (row >= n) return;",
    "uint row; row = i + 1; if (row >= n) return;",
    "uint2 at = uint2(i, 0); if (at.x >= n) return;",
    "bool last = false; if (i >= n) last = true; if (last) return;",
    "if (i < n) x[i] = 1; else return;",
])  # fmt: skip
def test_a_return_before_a_barrier_warns(line: str) -> None:
    match = r"cell:6:\d+: warning: k: threads that return here never reach the threadgroup_barrier on line 7"
    with pytest.warns(mnb.MetalnbWarning, match=match):
        mnb.compile(f"{HEAD}    {line}\n    s[l] = x[i]; {SYNC} x[i] = s[0];\n}}")


@pytest.mark.parametrize("body", [
    f"if (l < 128) {{\n s[l] = x[i]; {SYNC} }} x[i] = s[0];",
    f"if (l < 128) {{ s[l] = 0; }} else {{\n {SYNC} }} x[i] = s[0];",
    f"if (i < n) {{ for (uint r = 0; r < 4; ++r) {{\n {SYNC} }} }}",
])  # fmt: skip
def test_a_barrier_in_a_branch_warns(body: str) -> None:
    with pytest.warns(mnb.MetalnbWarning, match=r"cell:7:\d+: warning: k: this threadgroup_barrier is in a branch"):
        mnb.compile(f"{HEAD}    {body}\n}}")


@pytest.mark.parametrize("body", [
    f"s[l] = x[i]; {SYNC} if (i >= n) return; x[i] = s[0];",
    f"if (g >= n) return; s[l] = x[i]; {SYNC} x[i] = s[0];",
    f"if (i < n) s[l] = x[i]; {SYNC} if (i < n) x[i] = s[0];",
    "if (i >= n) return; x[i] = 1;",
    f"if (l == 0) {{ s[0] = 1; }} {SYNC} x[i] = s[0];",
    f"if (g < n) {{ {SYNC} }} x[i] = 1;",
    f"auto f = [=](uint v) {{ if (v >= n || i > 2) return 1; return 2; }}; s[l] = f(i); {SYNC} x[i] = s[0];",
    f"uint row = i; row = g; if (g >= n) return; s[l] = row; {SYNC} x[i] = s[0];",
    f"s[l] = x[i]; {SYNC} float first = s[0]; if (first > 2) return; {SYNC} x[i] = first;",
])  # fmt: skip
def test_uniform_control_flow_is_not_reported(body: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mnb.compile(f"{HEAD}    {body}\n}}")


def test_a_template_s_kernel_is_warned_of_once() -> None:
    cell = HEAD.replace("kernel void k(device float* x", "template <class T> kernel void k(device T* x")
    made = "".join(f'template [[host_name("{t}s")]] [[kernel]] decltype(k<{t}>) k<{t}>;\n' for t in ("float", "int"))
    with pytest.warns(mnb.MetalnbWarning, match="never reach") as caught:
        mnb.compile(f"{cell}    if (i >= n) return;\n    s[l] = x[i]; {SYNC} x[i] = s[0];\n}}\n{made}")
    assert len(caught) == 1


def test_a_barrier_after_a_branch_of_the_same_macro_is_not_reported() -> None:
    """All that a macro writes has the position of its use."""
    body = f"s[l] = x[i]; if (l < 128) s[l] += 1; {SYNC} x[i] = s[255 - l]; }}"
    cell = " ".join(HEAD.partition("kernel")[2].split())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mnb.compile(f"#include <metal_stdlib>\nusing namespace metal;\n#define K kernel {cell} {body}\nK\n")
