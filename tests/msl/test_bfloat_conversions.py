"""bfloat converted (MSL 2.1): as an operand of ``?:``, to each number, and from a class that converts to bool."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

import metalnb as mnb

STD = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"

B = np.array([-2.5, -1, 0, 0.5, 1, 2.25, 3, 40], bfloat16)
F = B.astype(np.float32)
EXPRESSIONS = {
    "v > 0 ? v : m * (exp(v) - 1)": np.where(F > 0, F, 3 * (np.exp(F) - 1)),
    "i % 2 ? v : 0": np.where(np.arange(8) % 2, F, 0),
    "i % 2 ? 1 : v": np.where(np.arange(8) % 2, 1, F),
    "i % 2 ? v : 0.25f": np.where(np.arange(8) % 2, F, 0.25),
    "i % 2 ? v : i": np.where(np.arange(8) % 2, F, np.arange(8)),
    "max(i % 2 ? v : w, w)": np.maximum(np.where(np.arange(8) % 2, F, F + 1), F + 1),
    "twice(i % 2 ? v : w, w)": np.where(np.arange(8) % 2, F, F + 1) + F + 1,
    "as_type<ushort>(i % 2 ? v : w) == as_type<ushort>(i % 2 ? v : w)": np.ones(8),
    "vec_elements<float2>::value > 1 ? v < w ? v : w : w": np.minimum(F, F + 1),
    "max(v > 0 ? 1 : v < 0 ? -1 : v == 0 ? 0 : v, w)": np.maximum(np.sign(F), F + 1),
    "(i % 2 ? v : w) * w": np.where(np.arange(8) % 2, F, F + 1) * (F + 1),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_bfloat_may_be_an_operand_of_a_condition(expression: str) -> None:
    cell = STD + f"""template <class T> T twice(T a, T b) {{ return a + b; }}
kernel void k(device bfloat* x, constant float& m, {ID}) {{ bfloat v = x[i], w = v + 1;
    x[i] = static_cast<bfloat>({expression}); }}"""
    x = B.copy()
    mnb.compile(cell, engine="cpu", math="precise").k(x, 3.0)
    expected = EXPRESSIONS[expression].astype(bfloat16).astype(np.float32)
    np.testing.assert_allclose(x.astype(np.float32), expected, rtol=2**-8)


@pytest.mark.parametrize("kind", ["int", "uint", "long", "short", "float", "half"])
def test_bfloat_turns_into_every_number(kind: str) -> None:
    cell = STD + f"""kernel void k(device {kind}* o, device const bfloat* x, {ID}) {{
    threadgroup bfloat t[8];
    t[i] = x[i];
    {kind} a = x[i], b = 0;
    bfloat v = t[i];
    b = v;
    o[i] = a + b + t[i];
}}"""
    given = np.abs(B)
    o = np.zeros(8, {"int": "i4", "uint": "u4", "long": "i8", "short": "i2", "float": "f4", "half": "f2"}[kind])
    mnb.compile(cell, engine="cpu").k(o, given)
    whole = given.astype(np.float32).astype(o.dtype).astype(np.float64)
    expected = whole * 2 + given.astype(np.float64)  # an integer plus a bfloat adds as bfloat
    rounded = expected.astype(bfloat16).astype(np.float64) if kind not in {"float", "half"} else expected
    np.testing.assert_array_equal(o, rounded.astype(o.dtype))


def test_bfloat_is_made_from_a_class_that_converts_to_bool() -> None:
    cell = STD + f"""
struct NoMask {{ char c; constexpr operator bool() {{ return true; }} constexpr operator bool() const device {{
    return c > 0; }} }};
template <typename T> void f(device T* o, const device NoMask* m, uint i) {{ NoMask n; o[i] = T(n) * T(m[i]); }}
kernel void k(device bfloat* o, const device NoMask* m, {ID}) {{ f(o, m, i); }}
kernel void k_float(device float* o, const device NoMask* m, {ID}) {{ f(o, m, i); }}"""
    program = mnb.compile(cell, engine="cpu")
    m = np.array([1, 0, 0, 1], np.int8).view(program.dtype("NoMask"))
    o, of = np.zeros(4, bfloat16), np.zeros(4, np.float32)
    program.k(o, m)
    program.k_float(of, m)
    assert o.tolist() == of.tolist() == [1, 0, 0, 1]
