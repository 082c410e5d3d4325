"""A user's expression becomes an op like the library's (`metalnb.elementwise`)."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from oracle import expected, held, laid, layouts

import metalnb as mnb
from metalnb.library_kernels.elementwise.custom_elementwise import free_names


def test_an_expression_is_an_op(rng: np.random.Generator) -> None:
    """An op made from an expression has samples, so one with a reference can be tested like the library's rows."""
    mish = mnb.elementwise("x * tanh(log(1 + exp(x)))", reference=lambda x: x * np.tanh(np.log1p(np.exp(x))), ulp=8)
    x = rng.uniform(-5, 20, (33, 40)).astype(np.float32)
    reference, wide = expected(mish, (x,), {}, np.dtype(np.float32))
    for layout in layouts((x,)):
        got = mish(laid(x, layout))
        np.testing.assert_allclose(got.read(), reference, rtol=1e-4, atol=1e-7)
    positive = mish(laid(x + 6))
    reference, wide = expected(mish, (x + 6,), {}, positive.dtype)
    held(mish, positive, reference, wide)


def test_dtypes_broadcasting_out_and_parameters_are_the_librarys() -> None:
    leak = mnb.elementwise("x > 0 ? x : slope * x + y", slope=0.5, name="leak")
    x, y = mnb.asarray(np.array([[-2], [3]], np.int8)), mnb.asarray(np.array([0, 1], np.float16))
    assert leak(x, y).dtype == np.float16
    assert leak(x, y).tolist() == [[-1, 0], [3, 3]]
    assert leak(x, y, slope=0.25).tolist() == leak(x, y, 0.25).tolist() == [[-0.5, 0.5], [3, 3]]
    out = mnb.asarray(np.zeros((2, 2), np.float32))
    assert leak(x, y, out=out) is out
    assert repr(leak) == "<metalnb.leak(x, y, /, slope=0.5, *, out=None): x > 0 ? x : slope * x + y>"
    assert "integers" in mnb.elementwise("(x ^ y) & 0xFF", kinds="iu").__doc__
    assert mnb.elementwise("x < y", kinds="iuf", result="bool")(x, y).tolist() == [[True, True], [False, False]]


def test_a_preamble_may_define_functions_and_constants() -> None:
    preamble = """constant float WIDTH = 2;
#define TWICE(v) (2 * (v))
inline float bell(float v) { return exp(-v * v / WIDTH); }"""
    op = mnb.elementwise("TWICE(bell(t - r)) * M_PI_F / WIDTH", preamble=preamble)
    assert str(op.__signature__) == "(t, r, /, *, out=None)"
    assert op(mnb.asarray([0.0, 1.0]), 0.0).tolist() == pytest.approx([np.pi, np.pi * np.exp(-0.5)])


def test_an_elementwise_op_can_be_pickled() -> None:
    kept = pickle.dumps(mnb.elementwise("a * x + b", operands=("x",), a=2, b=1, name="line"))
    op = pickle.loads(kept)  # noqa: S301  (written on the line above)
    assert op(mnb.asarray([1, 2]), b=0).tolist() == [2, 4]
    assert op.name == "line"


def test_an_expression_may_have_comments() -> None:
    op = mnb.elementwise("x * 2 // doubled\n+ /* and */ one", one=1)
    assert op(mnb.asarray([1, 2])).tolist() == [3, 5]
    assert repr(op) == "<metalnb.elementwise(x, /, one=1, *, out=None): x * 2 + one>"


def test_a_pickled_op_leaves_out_its_reference() -> None:
    kept = pickle.dumps(mnb.elementwise("x + 1", reference=lambda x: x + 1))
    op = pickle.loads(kept)  # noqa: S301  (written on the line above)
    assert op(mnb.asarray([1, 2])).tolist() == [2, 3]
    with pytest.raises(TypeError, match="has no reference"):
        op.row.reference(1)


@pytest.mark.parametrize(("expression", "names"), [
    ("x * tanh(y)", ("x", "y")), ("t + M_PI_F * INFINITY - FLT_MAX", ("t",)), ("v.x + metal::exp(w)", ("v", "w")),
    ("T(q) < 3 ? q : float(k)", ("q", "k")), ("fast::exp(b) + a + b", ("b", "a")),
    ("x * slope + LOSS", ("x", "LOSS")),
    ("uint(p) & 0xffu", ("p",)), ("1.5e3f + l", ("l",)),
])  # fmt: skip
def test_free_names_of_an_expression_are_operands(expression: str, names: tuple[str, ...]) -> None:
    assert free_names(expression, "", {"slope": 1}) == names


@pytest.mark.parametrize(("expression", "options", "message"), [
    ("x + nosuch(x)", {},
     "elementwise:1:5: error: use of undeclared identifier 'nosuch'\n  1 | x + nosuch(x)\n    |     ^"),
    ("x +* 2", {"name": "mine"}, "mine:1:4: error: indirection requires pointer operand"),
    ("x *\n double(2)", {}, "elementwise:1:6: error: 'double' is not supported in Metal"),
    ("f(x)", {"preamble": "float f(float v) {\n    return w; }"}, "elementwise preamble:2:12: error: use of"),
    ("x + // nosuch\n  nosuch(x)", {}, "elementwise:1:17: error: use of undeclared identifier 'nosuch'"),
    ("x % 2", {}, "elementwise:1:3: error: invalid operands to binary expression"),
])  # fmt: skip
def test_error_marks_the_expression(expression: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(mnb.CompileError) as caught:
        mnb.elementwise(expression, **options)
    assert str(caught.value).startswith(message)
    assert len(caught.value.diagnostics) == 1


@pytest.mark.parametrize(("expression", "options", "message"), [
    ("1 + 2", {}, "has no operand"), ("x + out", {}, "'out' is reserved for the kernel"),
    ("x", {"kinds": "fx"}, "kinds must be distinct letters of 'b', 'i', 'u', 'f'; got 'fx'"),
    ("x + y", {"operands": ("x", "y", "x")}, "'x' appears twice"),
    ("x", {"result": "int"}, "result must be 'same' or 'bool'; got 'int'"),
    ("a + b + c + d + e + g", {}, "at most 5 operands"), ("x", {"name": "my op"}, "'my op' is not an identifier"),
    ("x", {"name": "while"}, "'while' is a keyword"), ("x + out", {"name": "out"}, "'out' is reserved for the kernel"),
    ("x * x_", {}, "'x_' is reserved"), ("x * k_", {"k_": 1.0}, "'k_' is reserved"),
    ("x * x_s", {}, "'x_s' is reserved"), ("x + xStep", {}, "'xStep' is reserved"),
    ("x * k", {"k": "a"}, "parameter 'k' must be a number; got str"),
    ("x", {"operands": [1]}, "names must be strings; got 1"), ("x", {"name": 3}, "names must be strings; got 3"),
    ("x +\n#define Y 1\nY", {}, "has a preprocessor directive. Move it to the preamble"),
])  # fmt: skip
def test_invalid_names_are_refused(expression: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(mnb.ArgumentError, match=message):
        mnb.elementwise(expression, **options)


def test_an_op_without_a_reference_says_so() -> None:
    with pytest.raises(TypeError, match="has no reference"):
        mnb.elementwise("x + 1").row.reference(1)
