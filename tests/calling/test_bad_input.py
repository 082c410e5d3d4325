"""Every misuse raises before anything runs, and names the kernel, the argument, the requirement, the value and the fix.

The messages are golden: `TEXTS` holds each one in full, so that a change of wording is seen and reviewed.
"""

# ruff: noqa: E501  (a table of texts, one per line)

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened_engines import open_only

import metalnb as mnb

f4 = np.float32
i4 = np.int32

SOURCE = """#include <metal_stdlib>
using namespace metal;
struct Inner { float2 at; int id; };
struct Settings { float gain; Inner inner; half weights[3]; };
kernel void saxpy(device const float* x, device const float* y, device float* out, constant float& a,
                  uint i [[thread_position_in_grid]]) { out[i] = a * x[i] + y[i]; }
kernel void blur(device float* image, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    image[at.y * size.x + at.x] = 1;
}
kernel void scalars(device float* out, constant bool& flag, constant uchar& byte, constant int& count, constant ulong& big,
                    constant half& small, constant float& real) { out[0] = flag + byte + count + big + small + real; }
kernel void vectors(device float4* out, device const float3* loose, device const packed_float3* tight, constant uint2& size,
                    constant float2x3& m, uint i [[thread_position_in_grid]]) {
    out[i] = float4(loose[i] + float3(tight[i]), size.x + m[0][0]);
}
kernel void configure(device float* out, constant Settings& settings) { out[0] = settings.gain; }
kernel void particles(device Inner* p, uint i [[thread_position_in_grid]]) { p[i].id = i; }
kernel void total(device const float* x, device float& sum) { sum = x[0]; }
kernel void waiting(device float* out, constant float& timeout) { out[0] = timeout; }
kernel void raw(device void* bytes) { *(device int*)bytes = 1; }
kernel void shared(device float* out, threadgroup float4* scratch [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
    scratch[0] = 1; out[i] = scratch[0].x;
}
[[max_total_threads_per_threadgroup(64)]] kernel void small(device float* out, uint i [[thread_position_in_grid]]) { out[i] = 1; }
kernel void bigger(device float* out, threadgroup float* scratch [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
    threadgroup float tile[4096]; tile[i] = i; scratch[i] = i; out[i] = tile[0] + scratch[0];
}
"""
CONSTANTS = """
constant int count [[function_constant(0)]];
constant bool wide [[function_constant(1)]];
kernel void k(device int* y) { y[0] = count + wide; }
"""


@dataclasses.dataclass
class Inner:
    at: tuple[float, float]
    name: str


def ones(*shape: int, dtype: Any = f4) -> np.ndarray[Any, Any]:
    return np.ones(shape, dtype)


def locked(*shape: int) -> np.ndarray[Any, Any]:
    array = ones(*shape)
    array.flags.writeable = False
    return array


def kernel(name: str) -> mnb.Kernel:
    return mnb.compile(SOURCE)[name]


def scalars(**given: Any) -> Callable[[], Any]:
    values = {"flag": 1, "byte": 1, "count": 1, "big": 1, "small": 1, "real": 1, **given}
    return lambda: kernel("scalars")(**values, grid=1)


def configure(settings: Any) -> Callable[[], Any]:
    return lambda: kernel("configure")(settings=settings, grid=1)


def call(name: str, *args: Any, **named: Any) -> Callable[[], Any]:
    return lambda: kernel(name)(*args, **named)


SETTINGS = {"gain": 1, "inner": {"at": (1, 2), "id": 3}, "weights": [1, 2, 3]}
x5, y5 = ones(5), ones(5)
grid1 = {"grid": 1}

CASES: dict[str, Callable[[], Any]] = {
    # Arrays
    "wrong dtype": call("saxpy", x5, ones(8, dtype=np.float64), a=2),
    "wrong byte order": call("saxpy", x5, ones(5, dtype=">f4"), a=2),
    "wrong dtype of bool": call("saxpy", x5, np.ones(5, bool), a=2),
    "dates": call("saxpy", x5, np.zeros(5, "M8[s]"), a=2),
    "list": call("saxpy", [1.0, 2.0], y5, a=2),
    "scalar for an array": call("saxpy", 3.0, y5, a=2),
    "text for an array": call("saxpy", "x" * 60, y5, a=2),
    "None": call("saxpy", None, y5, a=2),
    "None for an output": call("saxpy", x5, y5, None, 2),
    "masked": call("saxpy", np.ma.masked_less(ones(5), 0), y5, a=2),
    "strided input": call("saxpy", ones(10)[::2], y5, a=2),
    "strided output": call("saxpy", x5, y5, ones(10)[::2], 2),
    "Fortran order": call("blur", np.asfortranarray(ones(4, 5))),
    "read-only output": call("saxpy", x5, y5, locked(5), 2),
    "short input": call("saxpy", ones(4), y5, ones(5), 2),
    "short output": call("saxpy", x5, y5, ones(3), 2, grid=5),
    "short for the grid": call("saxpy", x5, y5, a=2, grid=6),
    "too many axes": call("blur", ones(2, 3, 4)),
    "components that do not fit": call(
        "vectors", out=ones(6), loose=ones(2, 4), tight=ones(2, 3), size=(1, 2), m=np.eye(2, 3)
    ),
    "float3 of 3 components": call("vectors", loose=ones(2, 3), tight=ones(2, 3), size=(1, 2), m=np.eye(2, 3)),
    "packed_float3 of 4": call("vectors", loose=ones(2, 4), tight=ones(2, 4), size=(1, 2), m=np.eye(2, 3)),
    "array of structs from numbers": call("particles", ones(4, 3)),
    "empty array under a grid": call("total", ones(0), grid=1),
    "two elements for a reference": call("total", ones(3), ones(2), grid=1),
    "number for a device reference": call("total", ones(3), 1.0, grid=1),
    "void output left out": call("raw", grid=1),
    "objects for void": call("raw", np.array([None, "text"]), grid=1),
    # Names and numbers of arguments
    "missing": call("saxpy", x5, y5),
    "missing by name": call("saxpy", y=y5, a=2),
    "missing under an option's name": call("waiting", y5, timeout=2),
    "surplus": call("total", ones(3), ones(1), 3, 4),
    "unknown name": call("saxpy", x5, y5, scale=2),
    "misspelled name": call("configure", setings=SETTINGS, grid=1),
    "given twice": call("saxpy", x5, y5, x=x5, a=2),
    "shapes of no output": call("saxpy", x5, y5, a=2, shapes={"x": 5}),
    "shapes of an output given": call("saxpy", x5, y5, ones(5), 2, shapes={"out": 5}),
    "shapes of one element": call("total", ones(3), shapes={"sum": (2, 3)}),
    "shapes that are none": call("saxpy", x5, y5, a=2, shapes={"out": "five"}),
    "shapes below zero": call("saxpy", x5, y5, a=2, shapes={"out": (2, -1)}),
    "shapes of bytes": call("saxpy", x5, y5, a=2, shapes={"out": b"12"}),
    "shapes without an order": call("saxpy", x5, y5, a=2, shapes={"out": {5: 1}}),
    "shapes that are digits": call("saxpy", x5, y5, a=2, shapes={"out": "12"}),
    "shapes with a fraction": call("saxpy", x5, y5, a=2, shapes={"out": 2.9}),
    "shapes beyond memory": call("saxpy", x5, y5, a=2, shapes={"out": 2**62}),
    # Scalars
    "int for bool": scalars(flag=2),
    "below a uchar": scalars(byte=-1),
    "beyond a uchar": scalars(byte=256),
    "beyond an int": scalars(count=2**31),
    "fraction for an int": scalars(count=1.5),
    "NaN for an int": scalars(count=float("nan")),
    "below a ulong": scalars(big=-1),
    "beyond a ulong": scalars(big=2**64),
    "far beyond a ulong": scalars(big=10**60),
    "beyond a half": scalars(small=65520),
    "beyond a float": scalars(real=1e39),
    "far beyond a float": scalars(real=-(10**400)),
    "complex": scalars(real=1j),
    "text for a scalar": scalars(real="1.0"),
    "None for a scalar": scalars(real=None),
    "array for a scalar": scalars(real=ones(2)),
    "list for a scalar": scalars(real=[1.0]),
    # Vectors and matrices
    "short vector": call("vectors", loose=ones(2, 4), tight=ones(2, 3), size=(1,), m=np.eye(2, 3)),
    "scalar for a vector": call("vectors", loose=ones(2, 4), tight=ones(2, 3), size=1, m=np.eye(2, 3)),
    "vector that does not fit": call("vectors", loose=ones(2, 4), tight=ones(2, 3), size=(1, -1), m=np.eye(2, 3)),
    "matrix turned": call("vectors", loose=ones(2, 4), tight=ones(2, 3), size=(1, 2), m=np.eye(3, 2)),
    "ragged matrix": call("vectors", loose=ones(2, 4), tight=ones(2, 3), size=(1, 2), m=[[1, 2, 3], [4]]),
    # Structs
    "number for a struct": configure(3),
    "missing field": configure({"gain": 1, "weights": [1, 2, 3]}),
    "missing fields": configure({"gain": 1}),
    "unknown field": configure({**SETTINGS, "gian": 1}),
    "nested unknown field": configure({**SETTINGS, "inner": Inner((1, 2), "a")}),
    "field that does not fit": configure({**SETTINGS, "inner": {"at": (1, 2), "id": 2**40}}),
    "field of too few": configure({**SETTINGS, "weights": [1, 2]}),
    "record of other fields": configure(np.zeros((), [("gain", "f4"), ("other", "i4")])),
    "two records": configure(np.zeros(2, [("gain", "f4")])),
    # Grid and threadgroup
    "no grid": call("configure", settings=SETTINGS),
    "grid of text": call("blur", grid="4"),
    "grid of bytes": call("blur", grid=b"\x04\x04"),
    "grid without an order": call("blur", grid={4}),
    "grid of fractions": call("blur", grid=(4.0, 2)),
    "grid of four": call("blur", grid=(1, 2, 3, 4)),
    "grid below zero": call("blur", grid=(4, -2)),
    "grid beyond 32 bits": call("blur", grid=2**32),
    "grid of none": call("blur", grid=()),
    "grid deeper than the kernel": call("blur", grid=(4, 4, 2)),
    "threadgroup over 1024": call("blur", ones(4, 4), threadgroup=(32, 32, 2)),
    "threadgroup over the kernel's": call("small", ones(100), threadgroup=65),
    "threadgroup of zero": call("small", ones(100), threadgroup=0),
    "threadgroup of text": call("small", ones(100), threadgroup="all"),
    # Threadgroup memory
    "threadgroup memory declared": lambda: mnb.compile(
        "kernel void big(device float* out) {\n    threadgroup float tile[8193]; out[0] = tile[0];\n}"
    ),
    "threadgroup memory in all": call("bigger", ones(10), threadgroup_memory={"scratch": 16400}),
    "threadgroup memory by default": call(
        "shared", ones(10000), threadgroup=1024, threadgroup_memory={"scratch": 32784}
    ),
    "threadgroup memory by name": call("shared", ones(10), scratch=10),
    "misspelled option": call("saxpy", ones(10), ones(10), ones(10), 1.0, thread_group=10),
    "threadgroup memory of no name": call("shared", ones(10), threadgroup_memory={"scrtch": 16}),
    "threadgroup memory of none": call("saxpy", x5, y5, a=1, threadgroup_memory={"scratch": 16}),
    "threadgroup memory too small": call("shared", ones(10), threadgroup_memory={"scratch": 15}),
    "threadgroup memory of text": call("shared", ones(10), threadgroup_memory={"scratch": "16"}),
    # Function constants
    "function constant missing": lambda: mnb.compile(CONSTANTS, constants={"count": 1}),
    "function constant unknown": lambda: mnb.compile(CONSTANTS, constants={"count": 1, "wide": True, "deep": 1}),
    "function constant that does not fit": lambda: mnb.compile(CONSTANTS, constants={"count": 2**31, "wide": True}),
    "function constant of text": lambda: mnb.compile(CONSTANTS, constants={"count": 1, "wide": "yes"}),
    # Programs and engines
    "unknown engine": lambda: mnb.compile(SOURCE, engine="gpu"),
    "unknown engine in use": lambda: mnb.use("gpu"),
    "unknown math": lambda: mnb.compile(SOURCE, math="exact"),  # type: ignore[arg-type]
    "bytes for a source": lambda: mnb.compile(b"kernel"),  # type: ignore[arg-type]
    "lone surrogate": lambda: mnb.compile("// a\n// b \ud800"),
    "header named as the cell": lambda: mnb.compile(SOURCE, headers={"cell": ""}),
    "header named as one of MSL's": lambda: mnb.compile(SOURCE, headers={"metal_stdlib": ""}),
    "header with a bad name": lambda: mnb.compile(SOURCE, headers={"x y": ""}),
}
TEXTS: dict[str, tuple[type[mnb.MetalnbError], str]] = {
    "wrong dtype": (
        mnb.ArgumentError,
        "saxpy: argument 'y' [[buffer(1)]] is device const float*; got float64, shape (8,). Pass y.astype(np.float32).",
    ),
    "wrong byte order": (
        mnb.ArgumentError,
        "saxpy: argument 'y' [[buffer(1)]] is device const float*; got >f4, shape (5,). Pass y.astype(np.float32).",
    ),
    "wrong dtype of bool": (
        mnb.ArgumentError,
        "saxpy: argument 'y' [[buffer(1)]] is device const float*; got bool, shape (5,). Pass y.astype(np.float32).",
    ),
    "dates": (
        mnb.ArgumentError,
        "saxpy: argument 'y' [[buffer(1)]] is device const float*; got datetime64[s], shape (5,). Pass y.astype(np.float32).",
    ),
    "list": (
        mnb.ArgumentError,
        "saxpy: argument 'x' [[buffer(0)]] is device const float*; got list [1.0, 2.0]. Pass np.array(x, np.float32).",
    ),
    "scalar for an array": (
        mnb.ArgumentError,
        "saxpy: argument 'x' [[buffer(0)]] is device const float*; got float 3.0. Pass a NumPy array.",
    ),
    "text for an array": (
        mnb.ArgumentError,
        "saxpy: argument 'x' [[buffer(0)]] is device const float*; got str 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'. Pass a NumPy array.",
    ),
    "None": (
        mnb.ArgumentError,
        "saxpy: argument 'x' [[buffer(0)]] is device const float*; got None. Pass a NumPy array.",
    ),
    "None for an output": (
        mnb.ArgumentError,
        "saxpy: argument 'out' [[buffer(2)]] is device float*; got None. Pass a NumPy array, or leave it out and name the arguments after it.",
    ),
    "masked": (
        mnb.ArgumentError,
        "saxpy: argument 'x' [[buffer(0)]] is device const float*; got a masked array of float32, shape (5,). Pass x.filled(…): kernels do not support masks.",
    ),
    "strided input": (
        mnb.ArgumentError,
        "saxpy: argument 'x' [[buffer(0)]] is device const float*; got an array that is not C-contiguous, shape (5,), strides (8,). Pass np.ascontiguousarray(x).",
    ),
    "strided output": (
        mnb.ArgumentError,
        "saxpy: argument 'out' [[buffer(2)]] is device float*; got an array that is not C-contiguous, shape (5,), strides (8,). Pass a C-contiguous array: the kernel writes in place.",
    ),
    "Fortran order": (
        mnb.ArgumentError,
        "blur: argument 'image' [[buffer(0)]] is device float*; got an array that is not C-contiguous, shape (4, 5), strides (4, 16). Pass a C-contiguous array: the kernel writes in place.",
    ),
    "read-only output": (
        mnb.ArgumentError,
        "saxpy: argument 'out' [[buffer(2)]] is device float*; the kernel writes to it; got a read-only array. Pass a writable array.",
    ),
    "short input": (
        mnb.ArgumentError,
        "saxpy: argument 'x' [[buffer(0)]] is device const float*; each of the grid's 5 threads accesses the element at its own position; got 4. Pass at least 5 elements, or grid=4, or guard x[…] in the kernel.",
    ),
    "short output": (
        mnb.ArgumentError,
        "saxpy: argument 'out' [[buffer(2)]] is device float*; each of the grid's 5 threads accesses the element at its own position; got 3. Pass at least 5 elements, or grid=3, or guard out[…] in the kernel.",
    ),
    "short for the grid": (
        mnb.ArgumentError,
        "saxpy: argument 'x' [[buffer(0)]] is device const float*; each of the grid's 6 threads accesses the element at its own position; got 5. Pass at least 6 elements, or grid=5, or guard x[…] in the kernel.",
    ),
    "too many axes": (
        mnb.LaunchError,
        "blur: an array of shape (2, 3, 4) has 3 axes, but the kernel's positions have 2. Pass grid=(…), x first.",
    ),
    "components that do not fit": (
        mnb.ArgumentError,
        "vectors: argument 'out' [[buffer(0)]] is device float4*; got shape (6,). Pass shape (…, 4).",
    ),
    "float3 of 3 components": (
        mnb.ArgumentError,
        "vectors: argument 'loose' [[buffer(1)]] is device const float3*; got shape (2, 3). Pass shape (…, 4): 3 numbers occupy the memory of 4 (MSL 2.2); or declare it packed_float3, which takes (…, 3).",
    ),
    "packed_float3 of 4": (
        mnb.ArgumentError,
        "vectors: argument 'tight' [[buffer(2)]] is device const packed_float3*; got shape (2, 4). Pass shape (…, 3).",
    ),
    "array of structs from numbers": (
        mnb.ArgumentError,
        "particles: argument 'p' [[buffer(0)]] is device Inner*; got float32, shape (4, 3). Make it with dtype particles.program.dtype('Inner').",
    ),
    "empty array under a grid": (
        mnb.ArgumentError,
        "total: argument 'x' [[buffer(0)]] is device const float*; got an empty array, but the grid is not empty. Pass at least one element.",
    ),
    "two elements for a reference": (
        mnb.ArgumentError,
        "total: argument 'sum' [[buffer(1)]] is device float&; got shape (2,). Pass an array of one element.",
    ),
    "number for a device reference": (
        mnb.ArgumentError,
        "total: argument 'sum' [[buffer(1)]] is device float&; got float 1.0. Pass an array of one element, or leave it out and name the arguments after it.",
    ),
    "void output left out": (
        mnb.ArgumentError,
        "raw: argument 'bytes' [[buffer(0)]] is device void*; it was left out. Its size is unknown: pass an array.",
    ),
    "objects for void": (
        mnb.ArgumentError,
        "raw: argument 'bytes' [[buffer(0)]] is device void*; got an array of object, shape (2,). Pass numbers: an element of it is an address of Python's.",
    ),
    "missing": (
        mnb.ArgumentError,
        "saxpy: argument 'a' [[buffer(3)]] is constant float&; it is missing. Call saxpy(x, y, out, a).",
    ),
    "missing by name": (
        mnb.ArgumentError,
        "saxpy: argument 'x' [[buffer(0)]] is device const float*; it is missing. Call saxpy(x, y, out, a).",
    ),
    "missing under an option's name": (
        mnb.ArgumentError,
        "waiting: argument 'timeout' [[buffer(1)]] is constant float&; it is missing. By name, timeout=… is an option of the call: pass the argument by position. Call waiting(out, timeout).",
    ),
    "surplus": (mnb.ArgumentError, "total: takes 2 arguments; got 4 by position. Call total(x, sum)."),
    "unknown name": (mnb.ArgumentError, "saxpy: has no argument 'scale'. Call saxpy(x, y, out, a)."),
    "misspelled name": (
        mnb.ArgumentError,
        "configure: has no argument 'setings'. Did you mean 'settings'? Call configure(out, settings).",
    ),
    "given twice": (
        mnb.ArgumentError,
        "saxpy: argument 'x' is passed twice, by position and by name. Call saxpy(x, y, out, a).",
    ),
    "shapes of no output": (mnb.ArgumentError, "saxpy: shapes['x'] must name a buffer that was left out of the call (left out: out)."),
    "shapes of an output given": (
        mnb.ArgumentError,
        "saxpy: shapes['out'] must name a buffer that was left out of the call (left out: none).",
    ),
    "shapes of one element": (
        mnb.ArgumentError,
        "total: argument 'sum' [[buffer(1)]] is device float&, one element; got shapes['sum']=(2, 3). Leave it out.",
    ),
    "shapes that are none": (mnb.ArgumentError, "saxpy: shapes['out'] is a tuple of whole numbers, each 0 or more; got 'five'."),
    "shapes below zero": (mnb.ArgumentError, "saxpy: shapes['out'] is a tuple of whole numbers, each 0 or more; got (2, -1)."),
    "shapes of bytes": (mnb.ArgumentError, "saxpy: shapes['out'] is a tuple of whole numbers, each 0 or more; got b'12'."),
    "shapes without an order": (mnb.ArgumentError, "saxpy: shapes['out'] is a tuple of whole numbers, each 0 or more; got {5: 1}."),
    "shapes that are digits": (mnb.ArgumentError, "saxpy: shapes['out'] is a tuple of whole numbers, each 0 or more; got '12'."),
    "shapes with a fraction": (mnb.ArgumentError, "saxpy: shapes['out'] is a tuple of whole numbers, each 0 or more; got 2.9."),
    "shapes beyond memory": (
        mnb.ArgumentError,
        "saxpy: argument 'out' [[buffer(2)]] is device float*; no memory for an output of shape (4611686018427387904,) (18,446,744,073,709,551,616 bytes). Pass a smaller shape.",
    ),
    "int for bool": (
        mnb.ArgumentError,
        "scalars: argument 'flag' [[buffer(1)]] is constant bool&; got 2. Pass True or False.",
    ),
    "below a uchar": (
        mnb.ArgumentError,
        "scalars: argument 'byte' [[buffer(2)]] is constant uchar&, which holds 0 to 255; got -1.",
    ),
    "beyond a uchar": (
        mnb.ArgumentError,
        "scalars: argument 'byte' [[buffer(2)]] is constant uchar&, which holds 0 to 255; got 256.",
    ),
    "beyond an int": (
        mnb.ArgumentError,
        "scalars: argument 'count' [[buffer(3)]] is constant int&, which holds -2147483648 to 2147483647; got 2147483648.",
    ),
    "fraction for an int": (
        mnb.ArgumentError,
        "scalars: argument 'count' [[buffer(3)]] is constant int&; got 1.5. Pass a whole number.",
    ),
    "NaN for an int": (
        mnb.ArgumentError,
        "scalars: argument 'count' [[buffer(3)]] is constant int&; got nan. Pass a whole number.",
    ),
    "below a ulong": (
        mnb.ArgumentError,
        "scalars: argument 'big' [[buffer(4)]] is constant ulong&, which holds 0 to 18446744073709551615; got -1.",
    ),
    "beyond a ulong": (
        mnb.ArgumentError,
        "scalars: argument 'big' [[buffer(4)]] is constant ulong&, which holds 0 to 18446744073709551615; got 18446744073709551616.",
    ),
    "far beyond a ulong": (
        mnb.ArgumentError,
        "scalars: argument 'big' [[buffer(4)]] is constant ulong&, which holds 0 to 18446744073709551615; got 1000000000000000000000000000000000000….",
    ),
    "beyond a half": (
        mnb.ArgumentError,
        "scalars: argument 'small' [[buffer(5)]] is constant half&, which holds -65504 to 65504; got 65520.",
    ),
    "beyond a float": (
        mnb.ArgumentError,
        "scalars: argument 'real' [[buffer(6)]] is constant float&, which holds -3.4028235e+38 to 3.4028235e+38; got 1e+39.",
    ),
    "far beyond a float": (
        mnb.ArgumentError,
        "scalars: argument 'real' [[buffer(6)]] is constant float&, which holds -3.4028235e+38 to 3.4028235e+38; got -100000000000000000000000000000000000….",
    ),
    "complex": (
        mnb.ArgumentError,
        "scalars: argument 'real' [[buffer(6)]] is constant float&; got complex 1j. Pass a real number.",
    ),
    "text for a scalar": (
        mnb.ArgumentError,
        "scalars: argument 'real' [[buffer(6)]] is constant float&; got str '1.0'. Pass one number.",
    ),
    "None for a scalar": (
        mnb.ArgumentError,
        "scalars: argument 'real' [[buffer(6)]] is constant float&; got None. Pass one number.",
    ),
    "array for a scalar": (
        mnb.ArgumentError,
        "scalars: argument 'real' [[buffer(6)]] is constant float&; got an array of float32, shape (2,). Pass one number.",
    ),
    "list for a scalar": (
        mnb.ArgumentError,
        "scalars: argument 'real' [[buffer(6)]] is constant float&; got list [1.0]. Pass one number.",
    ),
    "short vector": (
        mnb.ArgumentError,
        "vectors: argument 'size' [[buffer(3)]] is constant uint2&; got tuple (1,). Pass 2 numbers.",
    ),
    "scalar for a vector": (
        mnb.ArgumentError,
        "vectors: argument 'size' [[buffer(3)]] is constant uint2&; got int 1. Pass 2 numbers.",
    ),
    "vector that does not fit": (
        mnb.ArgumentError,
        "vectors: argument 'size' [[buffer(3)]] is constant uint2&, which holds 0 to 4294967295; got -1.",
    ),
    "matrix turned": (
        mnb.ArgumentError,
        "vectors: argument 'm' [[buffer(4)]] is constant float2x3&; got an array of float64, shape (3, 2). Pass numbers of shape (2, 3).",
    ),
    "ragged matrix": (
        mnb.ArgumentError,
        "vectors: argument 'm' [[buffer(4)]] is constant float2x3&; got list [[1, 2, 3], [4]]. Pass numbers of shape (2, 3).",
    ),
    "number for a struct": (
        mnb.ArgumentError,
        "configure: argument 'settings' [[buffer(1)]] is constant Settings&; got int 3. Pass a dict {'gain': …, 'inner': …, 'weights': …}, a dataclass or a NumPy record.",
    ),
    "missing field": (
        mnb.ArgumentError,
        "configure: argument 'settings' [[buffer(1)]] is constant Settings&; field 'inner' is missing; its fields are gain, inner, weights.",
    ),
    "missing fields": (
        mnb.ArgumentError,
        "configure: argument 'settings' [[buffer(1)]] is constant Settings&; fields 'inner', 'weights' are missing; its fields are gain, inner, weights.",
    ),
    "unknown field": (
        mnb.ArgumentError,
        "configure: argument 'settings' [[buffer(1)]] is constant Settings&; there is no field 'gian'; its fields are gain, inner, weights.",
    ),
    "nested unknown field": (
        mnb.ArgumentError,
        "configure: argument 'settings' [[buffer(1)]] is constant Settings&: field 'inner' is Inner; field 'id' is missing and there is no field 'name'; its fields are at, id.",
    ),
    "field that does not fit": (
        mnb.ArgumentError,
        "configure: argument 'settings' [[buffer(1)]] is constant Settings&: field 'inner' is Inner: field 'id' is int, which holds -2147483648 to 2147483647; got 1099511627776.",
    ),
    "field of too few": (
        mnb.ArgumentError,
        "configure: argument 'settings' [[buffer(1)]] is constant Settings&: field 'weights' is half[3]; got list [1, 2]. Pass 3 numbers.",
    ),
    "record of other fields": (
        mnb.ArgumentError,
        "configure: argument 'settings' [[buffer(1)]] is constant Settings&; fields 'inner', 'weights' are missing and there is no field 'other'; its fields are gain, inner, weights.",
    ),
    "two records": (
        mnb.ArgumentError,
        "configure: argument 'settings' [[buffer(1)]] is constant Settings&; got an array of records, shape (2,). Pass a dict {'gain': …, 'inner': …, 'weights': …}, a dataclass or a NumPy record.",
    ),
    "no grid": (mnb.LaunchError, "configure: no array determines the grid. Pass grid=(…): the number of threads, x first."),
    "grid of text": (
        mnb.LaunchError,
        "blur: grid is 1 to 3 whole numbers of threads, x first, each not negative and below 2^32; got '4'.",
    ),
    "grid of bytes": (
        mnb.LaunchError,
        "blur: grid is 1 to 3 whole numbers of threads, x first, each not negative and below 2^32; got b'\\x04\\x04'.",
    ),
    "grid without an order": (
        mnb.LaunchError,
        "blur: grid is 1 to 3 whole numbers of threads, x first, each not negative and below 2^32; got {4}.",
    ),
    "grid of fractions": (
        mnb.LaunchError,
        "blur: grid is 1 to 3 whole numbers of threads, x first, each not negative and below 2^32; got (4.0, 2).",
    ),
    "grid of four": (
        mnb.LaunchError,
        "blur: grid is 1 to 3 whole numbers of threads, x first, each not negative and below 2^32; got (1, 2, 3, 4).",
    ),
    "grid below zero": (
        mnb.LaunchError,
        "blur: grid is 1 to 3 whole numbers of threads, x first, each not negative and below 2^32; got (4, -2).",
    ),
    "grid beyond 32 bits": (
        mnb.LaunchError,
        "blur: grid is 1 to 3 whole numbers of threads, x first, each not negative and below 2^32; got 4294967296.",
    ),
    "grid of none": (
        mnb.LaunchError,
        "blur: grid is 1 to 3 whole numbers of threads, x first, each not negative and below 2^32; got ().",
    ),
    "grid deeper than the kernel": (
        mnb.LaunchError,
        "blur: grid (4, 4, 2) has 3 dimensions, but the kernel's position has only 2: 'at' [[thread_position_in_grid]] is uint2. Declare it uint3, or pass a grid of 2.",
    ),
    "threadgroup over 1024": (mnb.LaunchError, "blur: threadgroup (32, 32, 2) is 2048 threads; Metal allows 1024."),
    "threadgroup over the kernel's": (
        mnb.LaunchError,
        "small: threadgroup (65,) is 65 threads; this kernel allows 64 ([[max_total_threads_per_threadgroup]]).",
    ),
    "threadgroup of zero": (
        mnb.LaunchError,
        "small: threadgroup is 1 to 3 whole numbers of threads, x first, each at least 1 and below 2^32; got 0.",
    ),
    "threadgroup of text": (
        mnb.LaunchError,
        "small: threadgroup is 1 to 3 whole numbers of threads, x first, each at least 1 and below 2^32; got 'all'.",
    ),
    "threadgroup memory declared": (
        mnb.CompileError,
        "cell:2:23: error: kernel 'big' declares 32,772 bytes of threadgroup memory, including 'tile'; Metal allows 32,768\n  2 |     threadgroup float tile[8193]; out[0] = tile[0];\n    |                       ^\n    = hint: make its threadgroup variables smaller",
    ),
    "threadgroup memory in all": (
        mnb.LaunchError,
        "bigger: needs 32,784 bytes of threadgroup memory (16,384 declared, 16,400 by arguments); Metal allows 32,768.",
    ),
    "threadgroup memory by default": (
        mnb.LaunchError,
        "shared: needs 32,784 bytes of threadgroup memory (0 declared, 32,784 by arguments); Metal allows 32,768.",
    ),
    "threadgroup memory by name": (
        mnb.ArgumentError,
        "shared: argument 'scratch' [[threadgroup(0)]] is threadgroup float4*; the launch allocates it. Leave it out, or pass its size: threadgroup_memory={'scratch': bytes}.",
    ),
    "misspelled option": (
        mnb.ArgumentError,
        "saxpy: has no argument 'thread_group'. Did you mean 'threadgroup'? Call saxpy(x, y, out, a).",
    ),
    "threadgroup memory of no name": (
        mnb.LaunchError,
        "shared: has no threadgroup parameter 'scrtch'; it has: scratch.",
    ),
    "threadgroup memory of none": (mnb.LaunchError, "saxpy: has no threadgroup parameter 'scratch'; it has: none."),
    "threadgroup memory too small": (
        mnb.LaunchError,
        "shared: threadgroup_memory['scratch'] is a number of bytes, at least 16; got 15.",
    ),
    "threadgroup memory of text": (
        mnb.LaunchError,
        "shared: threadgroup_memory['scratch'] is a number of bytes, at least 16; got '16'.",
    ),
    "function constant missing": (
        mnb.ArgumentError,
        "constants: the cell needs a value for bool wide [[function_constant(1)]]; write %%metal --constant wide=…, or pass constants={'wide': …}.",
    ),
    "function constant unknown": (
        mnb.ArgumentError,
        "constants: the cell has no function constant 'deep'; it has: count, wide.",
    ),
    "function constant that does not fit": (
        mnb.ArgumentError,
        "constants: 'count' [[function_constant(0)]] is int, which holds -2147483648 to 2147483647; got 2147483648.",
    ),
    "function constant of text": (
        mnb.ArgumentError,
        "constants: 'wide' [[function_constant(1)]] is bool; got str 'yes'. Pass True or False.",
    ),
    "unknown engine": (mnb.EngineUnavailable, "unknown engine 'gpu'; there are: metal, metal:metalcompute, cuda, cpu."),
    "unknown engine in use": (
        mnb.EngineUnavailable, "unknown engine 'gpu'; there are: metal, metal:metalcompute, cuda, cpu.",
    ),
    "unknown math": (mnb.ArgumentError, "compile: math is 'fast' or 'precise'; got 'exact'."),
    "bytes for a source": (mnb.ArgumentError, "compile: source is a str of MSL; got bytes."),
    "lone surrogate": (
        mnb.CompileError,
        "cell:2:6: error: the text is not valid Unicode: a lone surrogate\n  2 | // b ?\n    |      ^\n    = hint: save it as UTF-8",
    ),
    "header named as the cell": (
        mnb.ArgumentError,
        "headers: 'cell' is the name of the cell itself. Choose another name.",
    ),
    "header named as one of MSL's": (
        mnb.ArgumentError,
        "headers: 'metal_stdlib' is the name of one of MSL's own headers. Choose another name.",
    ),
    "header with a bad name": (
        mnb.ArgumentError,
        "headers: a name has letters, digits and '_', '-', '.', '/' for folders; got 'x y'.",
    ),
}


def test_every_case_has_its_text() -> None:
    assert list(CASES) == list(TEXTS)


@pytest.mark.parametrize("name", CASES)
def test_bad_input_raises_its_message_before_the_kernel_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, text = TEXTS[name]

    def launch(*_: Any) -> None:
        pytest.fail("the kernel was run")

    monkeypatch.setattr(type(mnb.compile(SOURCE).engine), "launch", launch)
    before = x5.copy(), y5.copy()
    with pytest.raises(mnb.MetalnbError) as caught:
        CASES[name]()
    assert (type(caught.value), str(caught.value)) == (kind, text)
    assert all(map(np.array_equal, (x5, y5), before))


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (mnb.ArgumentError, (TypeError, ValueError)),
        (mnb.LaunchError, (ValueError,)),
        (mnb.CompileError, (ValueError,)),
        (mnb.EngineUnavailable, (RuntimeError,)),
        (mnb.KernelFault, (RuntimeError,)),
    ],
)
def test_each_error_is_one_of_pythons_too(error: type[mnb.MetalnbError], also: tuple[type[Exception], ...]) -> None:
    assert all(issubclass(error, a) for a in (mnb.MetalnbError, *also))


def test_file_that_is_not_utf8_is_refused_with_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "bad.metal"
    path.write_bytes("// größe\n// naïve ".encode() + b"\xff\xfe\n")
    with pytest.raises(mnb.CompileError) as caught:
        mnb.load(path)
    assert str(caught.value) == (
        "bad.metal:2:10: error: the file is not UTF-8: byte 0xff\n"
        "  2 | // naïve \ufffd\ufffd\n"
        "    |          ^\n"
        "    = hint: save it as UTF-8"
    )


def test_a_file_is_loaded_whole_or_by_kernel(tmp_path: Path) -> None:
    path = tmp_path / 'a "good" one.metal'
    path.write_text(
        "\ufeffkernel void k(device int* y) { y[0] = 7; }\nkernel void j(device int* y) { y[0] = 8; }", encoding="utf-8"
    )
    assert list(mnb.load(path)) == ["k", "j"]
    assert mnb.load(str(path), "j")(grid=1, shapes={"y": 1}).tolist() == [8]
    with pytest.raises(KeyError, match=r"no kernel 'x' in this program; it has: k, j"):
        mnb.load(path, "x")
    with pytest.raises(AttributeError, match=r"no kernel 'x' in this program; it has: k, j"):
        mnb.load(path).x  # noqa: B018
    path.write_text("kernel void k(device int* y) { y[0] = z; }", encoding="utf-8")
    with pytest.raises(mnb.CompileError, match=r'^a "good" one\.metal:1:39: error: use of undeclared identifier'):
        mnb.load(path)


def test_without_any_engine_each_ones_reason_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    open_only(monkeypatch, problem="engine {name!r} needs something: pip install something")
    with pytest.raises(mnb.EngineUnavailable) as caught:
        mnb.compile("kernel void nowhere(device int* y) { y[0] = 7; }")
    assert str(caught.value) == (
        "no engine can run on this machine:\n"
        "  engine 'metal' needs something: pip install something\n"
        "  engine 'metal:metalcompute' needs something: pip install something\n"
        "  engine 'cuda' needs something: pip install something\n"
        "  engine 'cpu' needs something: pip install something"
    )
    shown = mnb.engines()
    assert not any(s.available for s in shown.values())
    assert str(shown["cpu"]) == "cpu: not here: engine 'cpu' needs something: pip install something"
