"""A device pointer or value where a constant one is required (MSL 4.2): refused at its position, with the fix."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

STD = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"
N = 64  # threads
X = np.arange(N, dtype=np.float32) - 20

BOUND, USED = "a device value is bound to a constant reference", "a device pointer is used as a constant pointer"
CONSTANT = {
    "constant float* q = §x; x[i] = q[0];": "a device pointer is used as a constant pointer",
    "x[i] = f(§x + 1);": "a device pointer is used as a constant pointer",
    "x[i] = g(§x[i]);": "a device value is passed to 'g', which takes a constant reference",
    "constant float& r = §x[i]; x[i] = r;": BOUND,
    "constant float& r = §(x[i]); x[i] = r;": BOUND,
    "constant float& r{§x[i]}; x[i] = r;": BOUND,
    "constant const float& r = §*x; x[i] = r;": BOUND,
    "constant float& r = §i > 1 ? x[0] : x[1]; x[i] = r;": BOUND,
    "auto h = [&]() -> constant float& { return §x[i]; }; x[i] = h();": BOUND,
    "R r(§x[i]); x[i] = r.v;": "a device value is passed to 'R', which takes a constant reference",
    "M m = {§x[i]}; x[i] = m.v;": BOUND,
    "P p = {§x}; x[i] = *p.v;": USED,
}
CLASSES = """struct R { float v; R(constant float& p) : v(p) {} };
struct M { constant float& v; };
struct P { constant float* v; };
"""


@pytest.mark.parametrize("body", CONSTANT)
def test_device_pointer_does_not_convert_to_constant(body: str) -> None:
    cell = STD + "float f(constant float* p) { return p[0]; }\nfloat g(constant float& p) { return p; }\n"
    cell += CLASSES + f"kernel void k(device float* x, constant float* c, {ID}) {{ {body} }}"
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(cell.replace("§", ""), engine="cpu")
    found = caught.value.diagnostics[0]
    assert (found.message, found.line, found.column) == (CONSTANT[body], 8, cell.split("\n")[7].index("§") + 1)
    assert "MSL 4.2" in found.hint
    good = cell.replace("§i > 1 ? x[0] : x[1]", "i > 1 ? c[0] : c[1]").replace("§x[i]", "c[i]").replace("§(x", "(c")
    good = good.replace("§x + 1", "c + 1").replace("§*x", "*c").replace("§x", "c")
    x = X.copy()
    mnb.compile(good, engine="cpu").k(x, np.full(N, 7, np.float32))
    np.testing.assert_array_equal(x, np.full(N, 7))


TEMPLATES = {
    "template <class T> T f(device T* p) { constant T& r = §p[0]; return r; }": BOUND,
    "template <class T> T f(device T* p) { constant T& r = §*p; return r; }": BOUND,
    "template <class T> T f(device T* p) { constant T* r = §p; return *r; }": USED,
    "constant float& g(device float* p) { return §*p; }\nfloat f(device float* p) { return g(p); }": BOUND,
    "struct S { constant float& v; S(device float* p) : v(§*p) {} };\n"
    "float f(device float* p) { return S(p).v; }": BOUND,
    "struct S { float v; };\nfloat operator+(constant S& a, float b) { return a.v + b; }\n"
    "float f(device float* p) { return §*(device S*)p + 1.0f; }":
        "a device value is passed to 'operator+', which takes a constant reference",
}  # fmt: skip


@pytest.mark.parametrize("helper", TEMPLATES)
def test_device_value_does_not_convert_to_constant_in_a_helper(helper: str) -> None:
    cell = STD + helper.replace("§", "") + f"\nkernel void k(device float* x, {ID}) {{ x[i] = f(x); }}"
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(cell, engine="cpu")
    found, lines = caught.value.diagnostics[0], helper.split("\n")
    line = next(n for n, text in enumerate(lines) if "§" in text)
    assert (found.message, found.line, found.column) == (TEMPLATES[helper], line + 3, lines[line].index("§") + 1)
    assert "MSL 4.2" in found.hint
    x = np.arange(3, dtype=np.float32)
    good = STD + helper.replace("§", "").replace("constant", "device const")
    mnb.compile(good + f"\nkernel void k(device float* x, {ID}) {{ if (i) x[i] = f(x); }}", engine="cpu").k(x)
    assert x.tolist() == ([0, 0, 0] if "+" not in helper else [0, 1, 1])
