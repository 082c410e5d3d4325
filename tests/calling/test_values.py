"""Values for read-only references: arrays of one element, numbers of every type, arrays of structs in structs."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import metalnb as mnb
from metalnb.dtypes import SCALARS, numpy_dtype

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
_SPACES = ("device const", "constant")

# An array of one element ----------------------------------------------------------------------------------------------

_PAIR = "struct Pair { float a; uint b; };\n"
_PAIR_DTYPE = np.dtype([("a", "<f4"), ("b", "<u4")])
_ONE = {  # the type, and the dtype and axes of one element
    **{name: (numpy_dtype(name), ()) for name in SCALARS},
    "float2": (np.dtype("f4"), (2,)), "int3": (np.dtype("i4"), (4,)), "half4": (np.dtype("f2"), (4,)),
    "bfloat4": (numpy_dtype("bfloat"), (4,)), "packed_char3": (np.dtype("i1"), (3,)),
    "float2x4": (np.dtype("f4"), (2, 4)), "Pair": (_PAIR_DTYPE, ()),
}  # fmt: skip
_ARRAYS = {"float": (np.dtype("f4"), (3,)), "Pair": (_PAIR_DTYPE, (3,))}


def _numbers(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return distinct numbers, as bools where required."""
    if dtype.names:
        made = np.zeros(shape, dtype)
        for k, name in enumerate(dtype.names):
            made[name] = _numbers(dtype[name], shape) + k
        return made
    return (np.arange(1, 1 + int(np.prod(shape))) % (2 if dtype.kind == "b" else 100)).astype(dtype).reshape(shape)


@pytest.mark.parametrize("space", _SPACES)
def test_a_read_only_reference_takes_an_array_of_one_element(space: str) -> None:
    cell = [f"kernel void k_{t}({space} {t}& x, device {t}& y) {{ y = x; }}" for t in _ONE]
    cell += [
        f"kernel void all_{t}({space} {t} (&x)[3], device {t}* y) {{ for (int i = 0; i < 3; ++i) y[i] = x[i]; }}"
        for t in _ARRAYS
    ]
    program = mnb.compile(_HEAD + _PAIR + "\n".join(cell), engine="cpu")
    cases = [(f"k_{t}", *one) for t, one in _ONE.items()] + [(f"all_{t}", *one) for t, one in _ARRAYS.items()]
    for name, dtype, axes in cases:
        value = _numbers(dtype, axes)
        for outer in ((), (1,), (1, 1)):
            y = np.zeros(axes or (1,), dtype)
            program[name](value.reshape(outer + axes), y, grid=1)
            assert y.tobytes() == value.tobytes(), (name, outer)


def test_the_array_of_one_element_may_live_on_the_engine() -> None:
    cell = "kernel void k(constant float& x, device const float& z, device float& y) { y = x + z; }"
    kernel = mnb.compile(_HEAD + cell, engine="cpu").k
    three, four = (mnb.asarray(np.array([n], np.float32), device="cpu") for n in (3, 4))
    assert kernel(three, four, grid=1) == 7
    fields = "kernel void f(constant Pair& p, constant float2& v, device float& y) { y = p.a + v.x; }"
    assert mnb.compile(f"{_HEAD}{_PAIR}{fields}", engine="cpu").f({"a": three[0], "b": 1}, [four[0], 0], grid=1) == 7


@pytest.mark.parametrize("space", _SPACES)
def test_other_arrays_are_refused_and_the_message_describes_them(space: str) -> None:
    head = f"kernel void k({space} float& x, {space} float4& v, {space} Pair& p, device float& y)"
    kernel = mnb.compile(f"{_HEAD}{_PAIR}{head} {{ y = x + v.x + p.a; }}").k
    one, four, pair = np.ones(1, np.float32), np.ones((1, 4), np.float32), np.ones(1, _PAIR_DTYPE)
    assert kernel(one, four, pair, grid=1) == 3
    masked = np.ma.masked_array([1.0], [True], np.float32)
    for given, told in (
        ((np.ones(2, np.float32), four, pair), "got an array of float32, shape (2,). Pass one number."),
        ((np.ones(1), four, pair), "got an array of float64, shape (1,). Pass one number."),
        ((np.ones(0, np.float32), four, pair), "got an array of float32, shape (0,). Pass one number."),
        ((masked, four, pair), "got a masked array of float32, shape (1,). Pass x.filled(…)"),
        ((one, four.T, pair), "got an array of float32, shape (4, 1). Pass 4 numbers."),
        ((one, np.ones((2, 4), np.float32), pair), "got an array of float32, shape (2, 4). Pass 4 numbers."),
        ((one, four, np.ones(2, _PAIR_DTYPE)), "got an array of records, shape (2,). Pass a dict"),
    ):
        with pytest.raises(mnb.ArgumentError, match=re.escape(told)):
            kernel(*given, grid=1)


# One number -----------------------------------------------------------------------------------------------------------

_NUMPY = [
    *(numpy_dtype(name).type for name in SCALARS), np.float64, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ml_dtypes.int4,
]  # fmt: skip


def test_a_number_of_every_type_goes_to_every_scalar() -> None:
    cell = "\n".join(f"kernel void k_{t}(constant {t}& x, device {t}& y) {{ y = x; }}" for t in SCALARS)
    program = mnb.compile(_HEAD + cell, engine="cpu")
    for t in SCALARS:
        for number in (1, 1.0, True, *(kind(1) for kind in _NUMPY), *(np.array(1, kind) for kind in _NUMPY)):
            y = np.zeros(1, numpy_dtype(t))
            program[f"k_{t}"](number, y, grid=1)
            assert y.astype(float).tolist() == [1], (t, repr(number))


def test_a_bfloat_number_keeps_its_value_wherever_it_goes() -> None:
    a, b = ml_dtypes.bfloat16(-2.5), ml_dtypes.bfloat16(3.140625)
    kernel = mnb.compile(_HEAD + """
struct S { bfloat a; float b; bfloat2 c; float d[2]; };
constant bfloat N [[function_constant(0)]];
kernel void k(constant bfloat& x, constant float2& v, constant S& s, device float* y) {
    float all[] = {x, v.x, v.y, s.a, s.b, s.c.x, s.c.y, s.d[0], s.d[1], N};
    for (int i = 0; i < 10; ++i) y[i] = all[i];
}""", engine="cpu", constants={"N": b}).k  # fmt: skip
    y = np.zeros(10, np.float32)
    kernel(a, [a, b], {"a": a, "b": b, "c": (b, a), "d": [a, b]}, y, grid=1)
    assert y.tolist() == [float(n) for n in (a, a, b, a, b, b, a, a, b, b)]


def test_a_bfloat_number_that_does_not_fit_is_refused() -> None:
    cell = "kernel void k(constant int& n, constant half& h, device float& y) { y = n + h; }"
    kernel = mnb.compile(_HEAD + cell).k
    with pytest.raises(mnb.ArgumentError, match=r"'n' .* is constant int&; got 1.5. Pass a whole number."):
        kernel(ml_dtypes.bfloat16(1.5), 1, grid=1)
    with pytest.raises(mnb.ArgumentError, match=r"'h' .* is constant half&, which holds -65504 to 65504; got 70144.0"):
        kernel(1, ml_dtypes.bfloat16(70000), grid=1)


# A struct's member that is an array of structs ------------------------------------------------------------------------

_NESTED = _HEAD + _PAIR + """
struct Row { Pair pairs[2]; float3 at; };
struct All { uint n; Pair few[3]; Pair grid[2][3]; Row rows[2]; array<Pair, 2> both; array<array<float, 2>, 2> m; };
float sum(Pair p) { return p.a + 100 * p.b; }
kernel void k(SPACE All& s, device float* y) {
    int i = 0;
    y[i++] = s.n;
    for (int k = 0; k < 3; ++k) y[i++] = sum(s.few[k]);
    for (int k = 0; k < 6; ++k) y[i++] = sum(s.grid[k / 3][k % 3]);
    for (int k = 0; k < 2; ++k) {
        for (int j = 0; j < 2; ++j) y[i++] = sum(s.rows[k].pairs[j]);
        y[i++] = s.rows[k].at.z;
    }
    for (int k = 0; k < 2; ++k) y[i++] = sum(s.both[k]);
    for (int k = 0; k < 4; ++k) y[i++] = s.m[k / 2][k % 2];
}
kernel void of_pairs(SPACE Pair (&s)[2][2], device float* y) {
    for (int k = 0; k < 4; ++k) y[k] = sum(s[k / 2][k % 2]);
}
"""  # fmt: skip


@dataclasses.dataclass
class _Pair:
    a: float
    b: int


def _dict(k: int) -> Any:
    return {"a": k, "b": k + 1}


def _record(k: int) -> Any:
    return np.array([(k, k + 1)], _PAIR_DTYPE)[0]


def _other_record(k: int) -> Any:
    return np.array([(k + 1, k)], [("b", "i8"), ("a", "f8")])[0]


_FORMS = {
    "dicts": (_dict, list), "dataclasses": (lambda k: _Pair(k, k + 1), tuple), "records": (_record, list),
    "records of other types": (_other_record, list), "an array": (_record, lambda each: np.array(list(each))),
    "an array of other types": (_other_record, lambda each: np.array(list(each))),
    "an array of dicts": (_dict, lambda each: np.array(list(each), object)),
}  # fmt: skip


def _all(one: Any, many: Any) -> dict[str, Any]:
    rows = [{"pairs": many([one(20 + 2 * k), one(21 + 2 * k)]), "at": (0, 0, 7 + k)} for k in range(2)]
    return {
        "n": 3, "few": many(one(k) for k in range(3)),
        "grid": many(many(one(10 + 3 * k + j) for j in range(3)) for k in range(2)),
        "rows": rows, "both": many(one(30 + k) for k in range(2)), "m": many(many([1.5 + k, 2.5 + k]) for k in (0, 2)),
    }  # fmt: skip


def _told(k: int) -> int:
    return k + 100 * (k + 1)


_READ = [
    3, *map(_told, (0, 1, 2, 10, 11, 12, 13, 14, 15, 20, 21)), 7, *map(_told, (22, 23)), 8, *map(_told, (30, 31)),
    1.5, 2.5, 3.5, 4.5,
]  # fmt: skip


@pytest.mark.parametrize("space", _SPACES)
def test_elements_of_an_array_of_structs_accept_every_form_of_a_struct(space: str) -> None:
    program = mnb.compile(_NESTED.replace("SPACE", space), engine="cpu")
    for form, (one, many) in _FORMS.items():
        y = np.zeros(len(_READ), np.float32)
        program.k(_all(one, many), y, grid=1)
        assert y.tolist() == _READ, form
        program.of_pairs(many(many(one(2 * k + j) for j in range(2)) for k in range(2)), y, grid=1)
        assert y[:4].tolist() == list(map(_told, range(4))), form


def _with(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return the fields of all elements with one replaced."""
    whole = _all(_dict, list)
    inner: Any = whole
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return whole


_WRONG = {
    "one too few": (("few",), [_dict(1)] * 2,
        "field 'few' is Pair[3]; got a list of 2. Pass a list of 3 dicts, dataclasses or NumPy records."),
    "a lone dict": (("few",), _dict(1),
        "field 'few' is Pair[3]; got dict {'a': 1, 'b': 2}. Pass a list of 3 dicts, dataclasses or NumPy records."),
    "too short an array": (("few",), np.zeros(2, _PAIR_DTYPE),
        "field 'few' is Pair[3]; got an array of records, shape (2,). Pass a list of 3 dicts"),
    "text": (("few",), "abc", "field 'few' is Pair[3]; got str 'abc'. Pass a list of 3 dicts"),
    "a 0-d array": (("few",), np.array(1), "field 'few' is Pair[3]; got an array of int64, shape ()."),
    "a number among them": (("few", 1), 3,
        "field 'few' is Pair[3]: element [1] is Pair; got int 3. Pass a dict {'a': …, 'b': …}, a dataclass or a"),
    "a field missing": (("few", 2), {"a": 1},
        "field 'few' is Pair[3]: element [2] is Pair; field 'b' is missing; its fields are a, b."),
    "a field too many": (("few", 0, "c"), 1,
        "field 'few' is Pair[3]: element [0] is Pair; there is no field 'c'; its fields are a, b."),
    "out of range": (("few", 1, "b"), -1,
        "field 'few' is Pair[3]: element [1] is Pair: field 'b' is uint, which holds 0 to 4294967295; got -1."),
    "too few rows": (("grid",), [[_dict(1)] * 3],
        "field 'grid' is Pair[2][3]; got a list of 1. Pass a list of 2 lists."),
    "a row too short": (("grid", 1), (_dict(1),),
        "field 'grid' is Pair[2][3]: element [1] is Pair[3]; got a tuple of 1. Pass a list of 3 dicts"),
    "wrong in a row": (("grid", 1, 2, "a"), "x",
        "field 'grid' is Pair[2][3]: element [1][2] is Pair: field 'a' is float; got str 'x'. Pass one number."),
    "wrong further in": (("rows", 1, "pairs", 0, "b"), 0.5,
        "field 'rows' is Row[2]: element [1] is Row: field 'pairs' is Pair[2]: element [0] is Pair: field 'b' is"),
    "one too few in array<T, N>": (("both",), [_dict(1)],
        "field 'both' is array<Pair, 2>: field 'data' is Pair[2]; got a list of 1. Pass a list of 2 dicts"),
    "wrong in array<T, N>": (("both", 1, "b"), 1e10, "field 'data' is Pair[2]: element [1] is Pair: field 'b' is uint"),
}  # fmt: skip


@pytest.mark.parametrize("what", _WRONG)
def test_an_error_in_an_array_of_structs_names_the_index(what: str) -> None:
    path, value, told = _WRONG[what]
    kernel = mnb.compile(_NESTED.replace("SPACE", "constant")).k
    with pytest.raises(mnb.ArgumentError, match=re.escape(told)) as caught:
        kernel(_with(path, value), grid=1, shapes={"y": len(_READ)})
    assert str(caught.value).startswith("k: argument 's' [[buffer(0)]] is constant All&: field ")


def test_arrays_that_structs_in_an_array_point_at_are_kept_and_found() -> None:
    kernel = mnb.compile(_HEAD + """
struct Leaf { device const float* x; uint n; };
struct Tree { Leaf leaves[2]; };
kernel void k(constant Tree& t, device float* y, uint i [[thread_position_in_grid]]) {
    y[i] = t.leaves[0].x[i] * t.leaves[0].n + t.leaves[1].x[i] * t.leaves[1].n;
}""", engine="cpu").k  # fmt: skip
    leaves = [{"x": mnb.asarray(np.arange(4, dtype=np.float32) + k, device="cpu"), "n": k + 1} for k in range(2)]
    y = np.zeros(4, np.float32)
    kernel({"leaves": leaves}, y, grid=4)
    assert y.tolist() == [2, 5, 8, 11]
    wrong = [leaves[0], {**leaves[1], "x": np.zeros(4, np.float32)}]
    with pytest.raises(mnb.ArgumentError, match=r"element \[1\] is Leaf: field 'x' is pointer: it takes an array that"):
        kernel({"leaves": wrong}, y, grid=4)


# A struct's members that its bases or unnamed members declare ---------------------------------------------------------

_INHERITED = """struct None {}; struct A { char a; float hidden; }; struct X { short x; };
struct B : A { float c; char b; }; struct S : None, X, B { int d; short hidden; };
"""
_UNNAMED = "struct S { int q; union { float x; struct { uchar y, z; }; }; };\n"


@pytest.mark.parametrize(
    ("structs", "names", "statements", "offsets"),
    [
        (_INHERITED, "x a hidden c b d", "s->x = 1; s->a = 2; s->hidden = 3; s->c = 4; s->b = 5; s->d = 6;", None),
        (_UNNAMED, "q x y z", "s->q = 1; s->x = 0; s->y = 3; s->z = 4;", [0, 4, 4, 5]),
    ],
    ids=["inherited", "unnamed"],
)
def test_a_struct_has_the_members_of_its_bases_and_unnamed_members(
    structs: str, names: str, statements: str, offsets: list[int] | None,
) -> None:  # fmt: skip
    program = mnb.compile(f"{_HEAD}{structs}kernel void f(device S* s) {{ {statements} }}", engine="cpu")
    dtype = program.dtype("S")
    assert dtype.names == tuple(names.split())
    values = np.zeros(1, dtype)
    program.f(values)
    written = {name: int(value) for name, value in re.findall(r"s->(\w+) = ([1-9])", statements)}
    assert {name: values[name][0] for name in written} == written
    fields = dtype.fields or {}
    assert offsets is None or [fields[name][1] for name in names.split()] == offsets


def test_a_struct_with_a_base_is_passed_as_a_dict() -> None:
    text = f"{_HEAD}struct A {{ float a; }}; struct S : A {{ int b; }};\n"
    k = mnb.compile(f"{text}kernel void f(device float* o, constant S& s) {{ o[0] = s.a + s.b; }}", engine="cpu").f
    o = np.zeros(1, np.float32)
    k(o, {"a": 1.5, "b": 2})
    assert o[0] == 3.5


def test_of_members_that_share_memory_one_is_passed() -> None:
    structs = """union U { float f; uint u; };
struct S { int n; union { float f; struct { ushort low, high; }; }; U us[2]; };
"""
    body = "y[0] = s.n; y[1] = s.f; y[2] = s.us[0].f; y[3] = s.us[1].f;"
    k = mnb.compile(f"{_HEAD}{structs}kernel void k(constant S& s, device float* y) {{ {body} }}", engine="cpu").k

    def call(value: Any) -> list[float]:
        y = np.zeros(4, np.float32)
        k(value, y, grid=1)
        return list(map(float, y))

    us = [{"f": 2.5}, {"u": 0x3FC00000}]
    assert call({"n": 1, "f": 0.5, "us": us}) == [1, 0.5, 2.5, 1.5]
    assert call({"n": 1, "low": 0, "high": 0x3F00, "us": us}) == [1, 0.5, 2.5, 1.5]
    record = np.zeros(1, k.program.dtype("S"))
    record["n"], record["f"], record["us"]["f"] = 1, 0.5, [2.5, 1.5]
    assert call(record) == [1, 0.5, 2.5, 1.5]
    with pytest.raises(mnb.ArgumentError, match=r"; fields 'f' and 'high' share memory\. Pass one"):
        call({"n": 1, "f": 0.5, "high": 1, "us": us})
    with pytest.raises(mnb.ArgumentError, match=r"element \[1\] is U; fields 'f', 'u' are missing"):
        call({"n": 1, "f": 0.5, "us": [{"f": 1}, {}]})
    with pytest.raises(mnb.ArgumentError, match="; field 'high' is missing; its fields are n, f, low, high, us"):
        call({"n": 1, "low": 0, "us": us})
