"""The contract of a call: binding of arguments, allocated and returned outputs, a kernel's description of itself."""

# ruff: noqa: E501  (MSL)

import dataclasses
import importlib.metadata
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
import uuid
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.call.argument_binding import Binder
from metalnb.engine import engine_choice as engines
from metalnb.package_versions import version_of

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
f4 = np.float32

SAXPY = HEAD + """
/// Scale and add.
///
/// One thread for each element.
kernel void saxpy(device const float* x, device const float* y, device float* out, constant float& a,
                  uint i [[thread_position_in_grid]]) { out[i] = a * x[i] + y[i]; }
kernel void both(device const float* x, device float* up, device int* at, uint i [[thread_position_in_grid]]) { up[i] = x[i] + 1; at[i] = i; }
"""  # fmt: skip


@pytest.fixture(scope="module")
def saxpy() -> mnb.Kernel:
    return mnb.compile(SAXPY).saxpy


x, y = np.array([1, 2, 3], f4), np.array([10, 20, 30], f4)
ANSWER = [12, 24, 36]


# Arguments, outputs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((x, y), {"a": 2}),
        ((x,), {"y": y, "a": 2}),
        ((), {"a": 2, "y": y, "x": x}),
        ((x, y), {"a": 2, "shapes": {"out": 3}}),
        ((x, y), {"a": 2, "grid": 3}),
        ((x, y), {"a": 2, "grid": (3,), "threadgroup": (2,)}),
        ((x, y), {"a": 2, "grid": np.int64(3), "threadgroup": np.array([1, 1, 1])}),
    ],
)
def test_an_output_left_out_is_made_and_returned(
    saxpy: mnb.Kernel, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    out = saxpy(*args, **named)
    assert (out.tolist(), out.dtype, out.shape) == (ANSWER, f4, (3,))


@pytest.mark.parametrize("by_name", [False, True])
def test_an_output_given_is_written_in_place(saxpy: mnb.Kernel, by_name: bool) -> None:
    out = np.full(3, -1, f4)
    result = saxpy(x, y, out=out, a=2) if by_name else saxpy(x, y, out, 2)
    assert result is None
    assert out.tolist() == ANSWER


def test_part_of_an_array_is_written_and_no_more(saxpy: mnb.Kernel) -> None:
    whole = np.full((3, 3), -1, f4)
    saxpy(x, y, whole[1], 2)
    assert whole.tolist() == [[-1] * 3, ANSWER, [-1] * 3]


def test_several_outputs_come_as_a_tuple_in_buffer_order() -> None:
    both = mnb.compile(SAXPY).both
    up, at = both(x)
    assert (up.tolist(), up.dtype, at.tolist(), at.dtype) == ([2, 3, 4], f4, [0, 1, 2], np.int32)
    given = np.zeros(3, np.int32)
    assert both(x, at=given).tolist() == [2, 3, 4]
    assert given.tolist() == [0, 1, 2]


def test_an_array_may_be_input_and_output(saxpy: mnb.Kernel) -> None:
    z = x.copy()
    saxpy(z, z, z, 2)
    assert z.tolist() == [3, 6, 9]


def test_inputs_that_cannot_be_written_are_read() -> None:
    saxpy = mnb.compile(SAXPY).saxpy
    locked = x.copy()
    locked.flags.writeable = False
    frozen = np.frombuffer(y.tobytes(), f4)
    assert saxpy(locked, frozen, a=2).tolist() == ANSWER
    assert saxpy(np.broadcast_to(f4(1), (1,)), locked[:1], a=2).tolist() == [3]
    assert not locked.flags.writeable
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(f4)  # not aligned
    assert saxpy(odd, y, a=2).tolist() == ANSWER


def test_parameters_without_a_name_and_with_the_names_of_options() -> None:
    kernel = mnb.compile(
        HEAD
        + """
    kernel void k(device int* grid, device const int*, constant int& shapes, uint i [[thread_position_in_grid]]) { grid[i] = shapes; }"""
    ).k
    out = np.zeros(2, np.int32)
    kernel(out, np.zeros(1, np.int32), 7)
    assert out.tolist() == [7, 7]
    with pytest.raises(
        mnb.ArgumentError, match=r"argument 'argument1' \[\[buffer\(1\)\]\] .* Call k\(grid, argument1, shapes\)"
    ):
        kernel(out)


def test_memory_is_shared_not_copied(saxpy: mnb.Kernel, tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "x", f4, "w+", shape=3)
    saxpy(x, y, mapped, 2)
    mapped.flush()
    assert np.fromfile(tmp_path / "x", f4).tolist() == ANSWER


# Scalars, vectors, structs --------------------------------------------------------------------------------------------

SCALARS = HEAD + "\n".join(
    f"kernel void take_{t}(device {t}* out, constant {t}& value, device const {t}& again) {{ out[0] = value; out[1] = again; }}"
    for t in ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float")
)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bool", [True, False, 1, 0, 1.0, np.bool_(1), np.array(True), np.uint8(1)]),
        ("char", [-128, 127, -1.0, np.int64(-5), np.float64(7), np.array(3, np.uint16), True]),
        ("uchar", [0, 255, np.int8(7)]),
        ("short", [-(2**15), 2**15 - 1]),
        ("ushort", [0, 2**16 - 1]),
        ("int", [-(2**31), 2**31 - 1, 5.0, np.uint32(7), np.int64(-1), np.float32(3), np.array(-2)]),
        ("uint", [0, 2**32 - 1, np.int64(2**31)]),
        ("long", [-(2**63), 2**63 - 1, np.int64(-1)]),
        ("ulong", [0, 2**64 - 1, np.uint64(2**64 - 1), float(2**63)]),
        ("half", [0, -0.0, 0.1, 65504, 65519, np.float16(0.1), np.inf, -np.inf, np.nan, 3, True]),
        (
            "float",
            [
                0,
                -0.0,
                0.1,
                1e-45,
                3.4028235e38,
                np.float64(0.1),
                np.float16(0.1),
                np.int8(-3),
                np.inf,
                -np.inf,
                np.nan,
                2**24 + 1,
                True,
            ],
        ),
    ],
)
def test_scalars_of_every_kind_arrive_unchanged(kind: str, values: list[Any]) -> None:
    kernel = mnb.compile(SCALARS)[f"take_{kind}"]
    for value in values:
        out = kernel(value=value, again=value, grid=1, shapes={"out": 2})
        expected = np.array([value, value]).astype(out.dtype)
        assert out.tobytes() == expected.tobytes(), repr(value)


def test_vectors_and_matrices_from_lists_tuples_and_arrays() -> None:
    kernel = mnb.compile(HEAD + """
    kernel void take(device float* out, constant float3& v, constant packed_uchar4& c, constant float2x3& m, constant bool2& b, constant half4& h) {
        out[0] = v.z; out[1] = c[3]; out[2] = m[1][2]; out[3] = m[0][1]; out[4] = b.x; out[5] = b.y; out[6] = h.w;
    }""").take  # fmt: skip
    expected = [3, 255, 6, 2, 1, 0, 0.5]
    for make in (list, tuple, np.array, lambda v: np.array(v, float), lambda v: np.array(v)[::1]):
        out = kernel(
            v=make([1, 2, 3]),
            c=[1, 2, 3, 255],
            m=make([[1, 2, 3], [4, 5, 6]]),
            b=(True, 0),
            h=make([0, 0, 0, 0.5]),
            grid=1,
            shapes={"out": 7},
        )
        assert out.tolist() == expected


STRUCTS = (
    HEAD
    + """
enum class Mode : ushort { add, multiply };
struct Inner { float3 v; packed_float3 p; int n; };
struct Outer {
    float gain; Inner inner; half h[3]; float2 xy[2]; float3 tri[2]; bool flag; float4x4 m; uchar4 c; Mode mode; short grid[2][3]; Inner many[2];
};
kernel void read(constant Outer& s, device float* out) {
    float values[] = {s.gain, s.inner.v.x, s.inner.v.z, s.inner.p[2], float(s.inner.n), s.h[2], s.xy[1].y, s.tri[1].z, float(s.flag), s.m[1][2],
                      float(s.c.w), float(s.mode == Mode::multiply), float(s.grid[1][2]), s.many[1].p[1]};
    for (int i = 0; i < 14; ++i) out[i] = values[i];
}
kernel void fill(device Inner* p, uint i [[thread_position_in_grid]]) { p[i].v = float3(i); p[i].p = packed_float3(float3(10 * i)); p[i].n = i; }
kernel void sum(device const Inner* p, device float* out, uint i [[thread_position_in_grid]]) { out[i] = p[i].v.y + p[i].p[0] + p[i].n; }
"""
)


def inner(k: float) -> dict[str, Any]:
    return {"v": (k + 1, k + 2, k + 3), "p": [k + 4, k + 5, k + 6], "n": k + 7}


FIELDS = {
    "gain": 0.5, "inner": inner(0), "h": [1, 2, 3], "xy": [[1, 2], [3, 4]], "tri": [[1, 2, 3], [4, 5, 6]], "flag": True,
    "m": np.arange(16).reshape(4, 4), "c": (1, 2, 3, 255), "mode": 1, "grid": [[1, 2, 3], [4, 5, 6]],
}  # fmt: skip
READ = [0.5, 1, 3, 6, 7, 3, 4, 6, 1, 6, 255, 1, 6, 15]


def test_a_record_is_passed_as_a_struct() -> None:
    program = mnb.compile(STRUCTS)
    record = np.zeros((), program.dtype("Outer"))
    for name, value in FIELDS.items():
        if name == "inner":
            for k, v in inner(0).items():
                record["inner"][k] = v
        elif name == "tri":
            record["tri"][:, :3] = value
        else:
            record[name] = value
    record["many"]["p"][1] = [14, 15, 16]
    for given in (record, record[()], record.reshape(1), np.ascontiguousarray(record)):
        assert program.read(given, grid=1, shapes={"out": 14}).tolist() == READ


@pytest.mark.parametrize("form", ["dict", "dataclass", "record in a dict"])
def test_structs_from_dicts_dataclasses_and_records(form: str) -> None:
    text = STRUCTS.replace(" Inner many[2];", "").replace(", s.many[1].p[1]", "").replace("14", "13")
    program = mnb.compile(text)
    fields = dict(FIELDS)
    if form == "dataclass":
        inner_class = dataclasses.make_dataclass("InnerLike", ["v", "p", "n"])
        fields["inner"] = inner_class(**inner(0))
        outer = dataclasses.make_dataclass("OuterLike", list(fields))
        given: Any = outer(**fields)
    else:
        given = fields
        if form == "record in a dict":
            record = np.zeros((), program.dtype("Inner"))
            record["v"], record["p"], record["n"] = (1, 2, 3), (4, 5, 6), 7
            fields["inner"] = record[()]
    assert program.read(s=given, grid=1, shapes={"out": 13}).tolist() == READ[:13]


PLAIN = """
#include <metal_stdlib>
using namespace metal;
struct S { uchar a; float b; short c; ulong d; half e; };
kernel void read(constant S& s, device float* out) {
    out[0] = s.a; out[1] = s.b; out[2] = s.c; out[3] = s.d; out[4] = s.e;
}
"""


def test_a_dict_is_passed_as_a_struct() -> None:
    """Dicts take a faster path, which passes the same values, in any order, and refuses the same mistakes."""
    program = mnb.compile(PLAIN)
    fields = {"e": 1.5, "a": 3, "b": 2.25, "c": -7, "d": 1 << 40}
    record = np.zeros((), program.dtype("S"))
    for name, value in fields.items():
        record[name] = value
    for given in (fields, {**fields, "a": np.int32(3)}, {**fields, "a": 3.0}, dict(sorted(fields.items())), record):
        assert program.read(given, grid=1, shapes={"out": 5}).tolist() == [3, 2.25, -7, 1 << 40, 1.5]
    for wrong, told in (
        ({"a": 300}, "field 'a' is uchar, which holds 0 to 255; got 300"),
        ({"a": 1.5}, "field 'a' is uchar; got 1.5. Pass a whole number"),
        ({"b": 1e39}, "field 'b' is float, which holds .*; got 1e.39"),
        ({"e": 1e6}, "field 'e' is half, which holds -65504 to 65504"),
        ({"z": 1}, "there is no field 'z'; its fields are a, b, c, d, e"),
    ):
        with pytest.raises(mnb.ArgumentError, match=told):
            program.read({**fields, **wrong}, grid=1, shapes={"out": 5})
    with pytest.raises(mnb.ArgumentError, match="fields 'b', 'c', 'd', 'e' are missing"):
        program.read({"a": 1}, grid=1, shapes={"out": 5})


def test_the_layout_of_a_struct_is_the_compilers() -> None:
    dtype = mnb.compile(STRUCTS).dtype("Inner")
    assert {n: dtype.fields[n][1] for n in dtype.names} == {"v": 0, "p": 16, "n": 28}
    assert (dtype.itemsize, dtype["v"].shape, dtype["p"].shape) == (32, (3,), (3,))
    with pytest.raises(
        KeyError, match=r"no struct 'None_'.*there are: Outer, Inner|no struct 'None_'.*there are: Inner, Outer"
    ):
        mnb.compile(STRUCTS).dtype("None_")


def test_structs_go_in_and_come_out_as_records() -> None:
    program = mnb.compile(STRUCTS)
    made = program.fill(grid=3)
    assert (made.dtype, made.shape, made["n"].tolist()) == (program.dtype("Inner"), (3,), [0, 1, 2])
    assert program.sum(made).tolist() == [0, 12, 24]


def test_a_list_of_numbers_fills_an_array_reference() -> None:
    kernel = mnb.compile(
        HEAD
        + """
    kernel void k(device float* out, constant float (&w)[3], constant float2 (&v)[2]) { out[0] = w[0] + w[2]; out[1] = v[1].x; }"""
    ).k
    assert kernel(w=[1, 2, 3], v=np.array([[1, 2], [3, 4]]), grid=1, shapes={"out": 2}).tolist() == [4, 3]


# Arrays of every element ----------------------------------------------------------------------------------------------

ARRAYS = (
    HEAD
    + """
kernel void four(device const float4* a, device float4* out, uint i [[thread_position_in_grid]]) { out[i] = a[i] * 2; }
kernel void three(device const float3* a, device packed_float3* out, uint i [[thread_position_in_grid]]) { out[i] = packed_float3(a[i] * 2); }
kernel void flip(device const bool* a, device bool* out, uint i [[thread_position_in_grid]]) { out[i] = !a[i]; }
kernel void halve(device const half* a, device half* out, uint i [[thread_position_in_grid]]) { out[i] = a[i] / 2; }
kernel void columns(device const float2x2* a, device float2* out, uint i [[thread_position_in_grid]]) { out[i] = a[i][1]; }
kernel void total(device const float* a, device float& sum, constant uint& n) { float s = 0; for (uint i = 0; i < n; ++i) s += a[i]; sum = s; }
kernel void image(device uchar4* out, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) { out[at.y * size.x + at.x] = uchar4(at.x, at.y, 0, 255); }
kernel void scratch(device float* out, threadgroup float* a [[threadgroup(0)]], threadgroup float2& b [[threadgroup(1)]], uint t [[thread_index_in_threadgroup]],
                    uint i [[thread_position_in_grid]], uint n [[threads_per_threadgroup]]) {
    a[t] = i; b = float2(1, 2);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = a[n - 1 - t] + b.y;
}
kernel void shared_bytes(device float* out, threadgroup char* a [[threadgroup(0)]]) { for (int i = 0; i < 4096; ++i) a[i] = i; out[0] = a[100]; }
kernel void cast(device void* p, device const void* q, uint i [[thread_position_in_grid]]) { ((device int*)p)[i] = ((device const int*)q)[i] + 1; }
"""
)


ROWS = """
#include <metal_stdlib>
using namespace metal;
#define DOUBLED(name, T) kernel void name(device const T* x, device T* o, uint i [[thread_position_in_grid]]) { \\
    T v = x[i]; o[i] = v + v; }
DOUBLED(floats, float4) DOUBLED(bytes, uchar4) DOUBLED(halves, half2) DOUBLED(packed, packed_int2)
DOUBLED(whole, float2x2) DOUBLED(padded, float3)
"""


@pytest.mark.parametrize("shape", [(48,), (1, 48), (4, 12), (3, 16), (2, 2, 12), (1, 1, 48), (12, 4), (4, 3, 4)])
def test_rows_of_numbers_are_rows_of_vectors(shape: tuple[int, ...]) -> None:
    """The last axis holds complete elements, so the memory is the same."""
    try:
        rows = mnb.compile(ROWS, engine="cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    for name, dtype, inner in (("floats", np.float32, (4,)), ("bytes", np.uint8, (4,)), ("halves", np.float16, (2,)),
                               ("packed", np.int32, (2,)), ("whole", np.float32, (2, 2))):  # fmt: skip
        x = np.arange(48).reshape(shape).astype(dtype)
        out = rows[name](x)
        elements = () if shape[-1:] == inner else (shape[-1] // int(np.prod(inner)),)
        assert out.shape == (*shape[:-1], *elements, *inner)
        np.testing.assert_array_equal(out.reshape(-1), (x + x).reshape(-1))
        given = np.zeros(shape, dtype)
        rows[name](x, given)
        np.testing.assert_array_equal(given, x + x)


def test_rows_that_hold_no_whole_vectors_are_refused() -> None:
    rows = mnb.compile(ROWS)
    with pytest.raises(mnb.ArgumentError, match=r"got shape \(8, 6\). Pass shape \(…, 4\), as x.reshape\(-1, 4\) has"):
        rows.floats(np.zeros((8, 6), np.float32))
    with pytest.raises(mnb.ArgumentError, match=r"got shape \(4, 2\). .* as x.reshape\(-1, 2, 2\) has"):
        rows.whole(np.zeros((4, 2), np.float32))
    for shape in ((4, 12), (8, 3)):  # 3 numbers per element, or 4?
        with pytest.raises(mnb.ArgumentError, match="3 numbers occupy the memory of 4"):
            rows.padded(np.zeros(shape, np.float32))


def test_last_axis_is_a_vectors_components() -> None:
    program = mnb.compile(ARRAYS)
    flat = np.arange(8, dtype=f4)
    assert program.four(flat.reshape(2, 4)).tolist() == (flat * 2).reshape(2, 4).tolist()
    assert program.four(flat).shape == (2, 4)
    assert program.four(flat.reshape(1, 2, 4)).shape == (1, 2, 4)
    out = np.zeros(8, f4)
    program.four(flat, out)
    assert out.tolist() == (flat * 2).tolist()
    assert program.three(np.array([[1, 2, 3, 9], [4, 5, 6, 9]], f4)).tolist() == [[2, 4, 6], [8, 10, 12]]
    assert program.columns(np.arange(8, dtype=f4).reshape(2, 2, 2)).tolist() == [[2, 3], [6, 7]]
    picture = program.image(grid=(3, 2))
    assert picture.shape == (2, 3, 4)
    assert picture[1, 2].tolist() == [2, 1, 0, 255]


def test_arrays_of_bool_half_and_void_are_bound() -> None:
    program = mnb.compile(ARRAYS)
    assert program.flip(np.array([True, False])).tolist() == [False, True]
    out = program.halve(np.array([1, 3], np.float16))
    assert (out.tolist(), out.dtype) == ([0.5, 1.5], np.float16)
    p = np.zeros(3, np.int32)
    program.cast(p, np.arange(3, dtype=np.int32), grid=3)
    assert p.tolist() == [1, 2, 3]


def test_a_device_reference_takes_and_gives_one_element() -> None:
    total = mnb.compile(ARRAYS).total
    out = total(x, n=3, grid=1)
    assert (out.shape, out) == ((), 6)
    for shape in [(), (1,), (1, 1)]:
        given = np.zeros(shape, f4)
        assert total(x, given, 3, grid=1) is None
        assert given.item() == 6


def test_threadgroup_memory_is_sized_by_the_launch() -> None:
    program = mnb.compile(ARRAYS)
    expected = [7.0 - i + 2 for i in range(8)] + [17 - i + 2 for i in range(2)]
    expected[8:] = [9 + 2, 8 + 2]
    assert program.scratch(grid=10, threadgroup=8).tolist() == expected
    assert program.scratch(grid=10, threadgroup=8, threadgroup_memory={"a": 400, "b": 8}).tolist() == expected
    for nbytes in (4096, np.int64(4096)):
        memory = {"a": nbytes}
        assert program.shared_bytes(grid=1, shapes={"out": 1}, threadgroup_memory=memory).tolist() == [100]


def test_empty_arrays_give_empty_results() -> None:
    program = mnb.compile(ARRAYS)
    assert program.halve(np.zeros(0, np.float16)).shape == (0,)
    assert program.halve(np.zeros((3, 0), np.float16)).shape == (3, 0)
    assert program.four(np.zeros((0, 4), f4)).shape == (0, 4)
    assert program.image(grid=(0, 5)).shape == (5, 0, 4)
    assert program.halve(np.ones(3, np.float16), grid=0).shape == (0,)


def test_threadgroup_left_out_is_chosen_from_grid_and_kernel() -> None:
    program = mnb.compile(
        HEAD
        + """
kernel void one(device uint* out, uint i [[thread_position_in_grid]], uint n [[dispatch_threads_per_threadgroup]]) { out[i] = n; }
kernel void two(device uint2* out, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]], uint2 n [[dispatch_threads_per_threadgroup]]) { out[at.y * size.x + at.x] = n; }
[[max_total_threads_per_threadgroup(64)]] kernel void narrow(device uint* out, uint i [[thread_position_in_grid]], uint n [[dispatch_threads_per_threadgroup]]) { out[i] = n; }
"""
    )
    assert set(program.one(grid=1000).tolist()) == {256}
    assert set(program.one(grid=5).tolist()) == {5}
    assert set(program.narrow(grid=1000).tolist()) == {64}
    assert np.unique(program.two(grid=(100, 100)).reshape(-1, 2), axis=0).tolist() == [[32, 8]]
    assert np.unique(program.two(grid=(7, 100)).reshape(-1, 2), axis=0)[0].prod() <= 1024


# What a kernel tells of itself ----------------------------------------------------------------------------------------


def test_repr_of_a_kernel_shows_its_signature_and_engine(saxpy: mnb.Kernel) -> None:
    spelled = "saxpy(device const float* x, device const float* y, device float* out, constant float& a)"
    assert repr(saxpy) == f"<metalnb.Kernel {spelled} on {saxpy.engine.name}>"
    assert saxpy.__name__ == saxpy.__qualname__ == "saxpy"
    assert (saxpy.source, saxpy.name) == (SAXPY, "saxpy")
    assert str(saxpy.signature) == spelled
    assert [i.attribute for i in saxpy.signature.inputs] == ["thread_position_in_grid"]
    assert saxpy.signature.line == SAXPY.split("\n").index("/// Scale and add.") + 4
    assert inspect.getdoc(saxpy).startswith("Scale and add.\n\nOne thread for each element.\n\nParameters\n")
    shown = pydoc.render_doc(saxpy, renderer=pydoc.plaintext)
    assert "x : device const float* [[buffer(0)]]" in shown
    assert "i : uint [[thread_position_in_grid]]" in shown


def test_repr_of_a_program_lists_its_kernels() -> None:
    program = mnb.compile(SAXPY, math="precise", name="mine")
    assert (list(program), len(program), "both" in program) == (["saxpy", "both"], 2, True)
    assert {"saxpy", "both", "kernels", "source"} <= set(dir(program))
    assert (program.source, program.math, program.name, program.constants) == (SAXPY, "precise", "mine", {})
    assert repr(program) == f"<metalnb.Program saxpy, both on {program.engine.name}>"
    assert program.saxpy is program["saxpy"] is program.kernels["saxpy"]
    assert program == program.saxpy.program
    with pytest.raises(TypeError):
        program.kernels["other"] = program.saxpy  # type: ignore[index]
    assert "metalnb_thread" in program.lowered_text("saxpy")


def test_prepared_call_runs_repeatedly(saxpy: mnb.Kernel) -> None:
    a, out = x.copy(), np.zeros(3, f4)
    ready = saxpy.prepare(a, y, out, 2)
    assert (ready.grid, ready.threadgroup, ready.outputs) == ((3, 1, 1), (3, 1, 1), [])
    assert out.tolist() == [0, 0, 0]
    ready.run()
    assert out.tolist() == ANSWER
    a[:] = 0
    ticket = ready.launch()
    ticket.wait()
    assert out.tolist() == [10, 20, 30]


def test_the_same_text_gives_the_same_program_and_another_text_another() -> None:
    assert mnb.compile(SAXPY) is mnb.compile(SAXPY)
    assert mnb.compile(SAXPY) is not mnb.compile(SAXPY, math="precise")
    changed = mnb.compile(SAXPY.replace("a * x[i]", "a * x[i] + 100"))
    assert changed.saxpy(x, y, a=2).tolist() == [112, 124, 136]
    assert mnb.compile(SAXPY).saxpy(x, y, a=2).tolist() == ANSWER


def test_kernels_and_programs_can_be_pickled() -> None:
    source = (
        '#include "add.h"\n'
        + HEAD
        + """
constant int n [[function_constant(0)]];
constant float f [[function_constant(1)]];
struct S { int a; };
kernel void k(device float* out, constant S& s) { out[0] = add(n, s.a) + f; }"""
    )
    program = mnb.compile(
        source,
        constants={"n": 3, "f": np.float32(0.5)},
        headers={"add.h": "inline int add(int a, int b) { return a + b; }"},
        math="precise",
    )
    assert program.k(s={"a": 4}, grid=1, shapes={"out": 1}).tolist() == [7.5]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(program, protocol)) is program  # noqa: S301  (our own bytes)
        assert pickle.loads(pickle.dumps(program.k, protocol)) is program.k  # noqa: S301
    code = (
        "import pickle, sys\n"
        "kernel = pickle.load(sys.stdin.buffer)\n"
        "print(kernel(s={'a': 4}, grid=1, shapes={'out': 1}).tolist(), kernel.unit.math)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(program.k), capture_output=True, check=False)
    assert (done.stdout.decode().strip(), done.stderr.decode()) == ("[7.5] precise", "")


# Engines --------------------------------------------------------------------------------------------------------------


def test_the_engine_in_use_is_the_first_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_chosen", [])
    monkeypatch.delenv("METALNB_ENGINE", raising=False)
    status = mnb.engines()
    assert next(iter(status)) == "metal"
    assert status["cpu"].available
    assert str(status["cpu"]).startswith("cpu: ")
    assert mnb.use("cpu").name == "cpu"
    monkeypatch.setenv("METALNB_ENGINE", "nonsense")
    assert mnb.compile(SAXPY).engine.name == "cpu"  # `use` takes precedence over the environment
    with pytest.raises(mnb.EngineUnavailable, match="unknown engine 'nonsense'; there are: "):
        mnb.use(None)
    with pytest.raises(mnb.EngineUnavailable, match="unknown engine 'nonsense'"):
        mnb.compile(SAXPY)
    monkeypatch.setenv("METALNB_ENGINE", "cpu")
    assert mnb.compile(SAXPY).engine.name == "cpu"
    assert mnb.compile(SAXPY, engine="cpu") is mnb.compile(SAXPY)


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac may have the metal engine")
def test_unavailable_engine_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_chosen", ["cpu"])
    with pytest.raises(mnb.EngineUnavailable, match="engine 'metal' needs"):
        mnb.use("metal")
    assert mnb.compile(SAXPY).engine.name == "cpu"


def test_importing_and_compiling_from_the_cache_load_only_needed_modules() -> None:
    code = (
        "import sys, metalnb as mnb\n"
        "heavy = {'clang', 'clang.cindex', 'matplotlib', 'ipywidgets', 'IPython'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "mnb.compile(sys.stdin.read(), engine='cpu')\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    mnb.compile(SAXPY, engine="cpu")
    done = subprocess.run(
        [sys.executable, "-c", code], input=SAXPY, capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]


def test_a_first_call_loads_none_of_the_slow_modules_that_few_calls_need() -> None:
    """In a script's first cell, masked arrays, package metadata and suggestions took a fifth of our own time."""
    code = (
        "import sys, numpy as np\n"
        "before, x = set(sys.modules), np.ones(5, np.float32)\n"
        "import metalnb as mnb\n"
        "y = mnb.compile(sys.stdin.read(), engine='cpu').saxpy(x, x, a=2.0)\n"
        "slow = {'numpy.ma', 'importlib.metadata', 'difflib', 'metalnb.engine.cpu.call_sites'}\n"
        "print(y.tolist(), sorted(slow & set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, input=f"{SAXPY}// {uuid.uuid4()}", capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[3.0, 3.0, 3.0, 3.0, 3.0] []\n", "")


def test_a_version_is_that_of_the_packages_description() -> None:
    for distribution, module in (("ziglang", "ziglang"), ("libclang", "clang"), ("numpy", "numpy")):
        assert version_of(distribution, module) == importlib.metadata.version(distribution)
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        version_of("no-such-package", "json")


def test_a_call_compiles_then_binds_then_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The phases are reported in order. A second call compiles nothing, and a call that cannot be bound is not launched."""
    kernel = mnb.compile("kernel void order(device int* y, uint i [[thread_position_in_grid]]) { y[i] = 7 + i; }").order
    steps: list[str] = []

    def noted(owner: type, name: str) -> None:
        method = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: steps.append(name) or method(*args))

    for owner, name in ((type(kernel.engine), "compile"), (Binder, "bind"), (type(kernel.engine), "launch")):
        noted(owner, name)
    ready = kernel.prepare(np.zeros(3, np.int32))
    assert steps == ["compile", "bind"]
    ready.run()
    kernel(np.zeros(3, np.int32))
    assert steps == ["compile", "bind", "launch", "bind", "launch"]
    with pytest.raises(mnb.ArgumentError):
        kernel(np.zeros(3))
    assert steps[5:] == ["bind"]
    assert ready.binary is kernel.binary


def test_repeated_call_with_another_grid_uses_that_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call with the same grid is not checked again; one with another grid or another type of grid is."""
    kernel = mnb.compile("kernel void k(device uint* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }").k
    x = np.zeros(8, np.uint32)
    checked = []
    whole = type(kernel).prepare
    monkeypatch.setattr(type(kernel), "prepare", lambda *a, **named: (checked.append(named), whole(*a, **named))[1])
    for options in ({"grid": 8}, {"grid": 8}, {"grid": (8,)}, {"grid": 8, "threadgroup": 4}, {"grid": 8, "threadgroup": 4}):
        kernel(x, **options)
    assert checked == [{"grid": 8}, {"grid": (8,)}, {"grid": 8, "threadgroup": 4}]
    assert x.tolist() == [5] * 8
    kernel(x[:1], grid=1)
    with pytest.raises(mnb.MetalnbError, match="grid"):
        kernel(x[:1], grid=1.0)  # equal to the known grid
    assert x.tolist() == [6, *[5] * 7]
