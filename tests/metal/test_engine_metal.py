"""The engine `metal` on a strict double of PyObjC's module: its calls, and how it handles the results."""

import dataclasses
import itertools
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import metal_double
import numpy as np
import pytest
from doubled_engines import ADD, HEAD, PAGE, Calls, doubled, metal, pages
from metal_double import CONSTANTS, MetalAbortError
from metal_double.commands import MTLComputeCommandEncoder
from metal_double.compiler import MTLCompileOptions
from metal_double.device import MTLDevice
from metal_double.pipelines import MTLBinaryArchive, MTLComputePipelineState

import metalnb as mnb
from metalnb.display import nbytes
from metalnb.engine import engine_choice as engines
from metalnb.engine import metal as metal_package
from metalnb.engine.metal.libraries import constant_bytes
from metalnb.engine.metal.metal_engine import MetalEngine
from metalnb.magics.line import COMMANDS
from metalnb.magics.session import Session
from metalnb.msl.rewrite.scan import scan
from metalnb.timing.traffic import copy_notes

pytestmark = pytest.mark.usefixtures("engine")


# ---- Compiling -------------------------------------------------------------------------------------------------------


def test_metal_is_given_the_authors_own_text(calls: Calls) -> None:
    seen = calls.of(MTLDevice, "newLibraryWithSource_options_error_")
    source = "// as I wrote it\nkernel void f(device float*x,uint i[[thread_position_in_grid]]){x[i]=1;}"
    kernel = metal(source).f
    kernel(np.zeros(3, np.float32))
    assert [text for text, *_ in seen] == [HEAD + source]
    assert kernel.engine.text(kernel.unit) == HEAD + source


def test_header_cells_are_inserted_at_their_include() -> None:
    headers = {
        "ops.h": '#pragma once\n#include "more.h"\ninline float op(float x) { return more(x) * 2; }\n',
        "more.h": "#pragma once\ninline float more(float x) { return x + 1; }\n",
    }
    source = """#include "more.h"
#include "ops.h"
kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = op(x[i]) + more(0); }"""
    x = np.arange(9, dtype=np.float32)
    metal(source, headers=headers).f(x)
    np.testing.assert_array_equal(x, (np.arange(9) + 1) * 2 + 1)


def test_kernels_of_a_cell_share_a_library(calls: Calls) -> None:
    seen = calls.of(MTLDevice, "newLibraryWithSource_options_error_")
    program = metal("kernel void one(device float* x) { x[0] = 1; }\nkernel void two(device float* x) { x[0] = 2; }")
    x = np.zeros(1, np.float32)
    program.one(x)
    program.two(x)
    assert (len(seen), x[0]) == (1, 2)


@pytest.mark.parametrize(("math", "mode", "functions"), [("fast", 1, 0), ("precise", 0, 1)])
def test_the_math_mode(calls: Calls, math: str, mode: int, functions: int) -> None:
    modes = calls.of(MTLCompileOptions, "setMathMode_")
    of_functions = calls.of(MTLCompileOptions, "setMathFloatingPointFunctions_")
    _ = metal(ADD + f"// {math}", math=math).add.binary
    assert (modes, of_functions) == ([(mode,)], [(functions,)])


@pytest.mark.parametrize("math", ["fast", "precise"])
def test_before_macos_15_math_is_fast_or_not(monkeypatch: pytest.MonkeyPatch, calls: Calls, math: str) -> None:
    monkeypatch.delattr(MTLCompileOptions, "setMathMode_")
    seen = calls.of(MTLCompileOptions, "setFastMathEnabled_")
    _ = metal(ADD + f"// older, {math}", math=math).add.binary
    assert seen == [(math == "fast",)]


@pytest.mark.parametrize(
    ("macos", "newest"), [((13, 6), (3, 0)), ((14, 0), (3, 1)), ((15, 0), (3, 2)), ((26, 1), (3, 2))]
)
def test_the_language_is_the_newest_that_the_system_has(
    monkeypatch: pytest.MonkeyPatch, calls: Calls, macos: tuple[int, int], newest: tuple[int, int]
) -> None:
    monkeypatch.setattr(metal_double.objc, "macos", macos)
    seen = calls.of(MTLCompileOptions, "setLanguageVersion_")
    opened = metal_package.open_engine(module=metal_double)
    assert opened.caps.msl == newest
    assert (opened.caps.pointers, opened.caps.prints) == (True, newest >= (3, 2))
    opened.compile(metal(ADD).add.unit)
    assert seen[-1] == ((newest[0] << 16) + newest[1],)
    opened.compile(metal(ADD, msl="2.4").add.unit)
    assert seen[-1] == (0x20004,)


def test_word_newer_than_the_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metal_double.objc, "macos", (13, 6))
    unit = metal("kernel void f(device float* x) { x[0] = bfloat(x[0]); }").f.unit
    with pytest.raises(mnb.CompileError, match=r"'bfloat' needs MSL 3\.1; this macOS has MSL 3\.0") as caught:
        metal_package.open_engine(module=metal_double).compile(unit)
    assert (caught.value.line, caught.value.column) == (3, 41)


def test_a_cell_sees_the_systems_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metal_double.objc, "macos", (14, 0))
    monkeypatch.setitem(doubled(), "metal", metal_package.open_engine(module=metal_double))
    source = """
#if __METAL_VERSION__ >= 320
kernel void f(device int* x, constant int& a) { x[0] = a; }
#else
kernel void f(device int* x) { x[0] = __METAL_VERSION__; }
#endif"""
    x = np.zeros(1, np.int32)
    metal(source).f(x)
    assert x[0] == 310


def test_a_version_beyond_the_systems_is_not_read_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the arguments would come from a branch that this macOS does not compile."""
    monkeypatch.setattr(metal_double.objc, "macos", (13, 6))
    monkeypatch.setitem(doubled(), "metal", metal_package.open_engine(module=metal_double))
    source = """
#if __METAL_VERSION__ >= 310
typedef bfloat real;
#else
typedef float real;
#endif
kernel void f(device real* x, uint i [[thread_position_in_grid]]) { x[i] = 2; }"""
    x = np.zeros(3, np.float32)
    metal(source, msl="3.2").f(x)
    assert (x == 2).all()
    with pytest.raises(mnb.CompileError, match=r"'bfloat' needs MSL 3\.1; this macOS has MSL 3\.0"):
        metal("kernel void f(device float* x) { x[0] = bfloat(x[0]); } // no version was requested").f(x)


BRANCHES = """
#ifdef METALNB
kernel void f(device float* x, constant float& a, uint i [[thread_position_in_grid]]) { x[i] = a; }
#else
kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 1; }
#endif"""


def test_metal_compiles_the_branch_that_was_read(calls: Calls) -> None:
    macros = calls.of(MTLCompileOptions, "setPreprocessorMacros_")
    x = np.zeros(3, np.float32)
    metal(BRANCHES).f(x, 5)
    assert (x == 5).all()
    assert macros == [({"METALNB": "1"},)]


CONSTANT_TYPES = [
    ("bool", True), ("char", -5), ("uchar", 250), ("short", -300), ("ushort", 65000), ("int", -70000),
    ("uint", 4_000_000_000), ("long", -(2**40)), ("ulong", 2**63), ("half", 0.5), ("float", 1.25),
    ("float3", (1.0, 2.0, 4.0)), ("int2", (3, -4)), ("ushort4", (1, 2, 3, 4)), ("bool2", (True, False)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), CONSTANT_TYPES)
def test_function_constants_of_each_type(kind: str, value: Any) -> None:
    source = f"constant {kind} C [[function_constant(7)]];\n"
    parts = value if isinstance(value, tuple) else (value,)
    names = [f"C[{i}]" for i in range(len(parts))] if isinstance(value, tuple) else ["C"]
    out = "long" if "long" in kind else "float"
    body = " ".join(f"x[{i}] = {out}({name});" for i, name in enumerate(names))
    x = np.zeros(4, np.int64 if out == "long" else np.float32)
    metal(f"{source}kernel void f(device {out}* x) {{ {body} }}", constants={"C": value}).f(x, grid=1)
    assert x[: len(parts)].tolist() == [np.array(p).astype(x.dtype) for p in parts]


@pytest.mark.parametrize(("value", "bits"), [
    (1.0, 0x3F80), (-2.5, 0xC020), (float.fromhex("0x1.01p0"), 0x3F80), (float.fromhex("0x1.03p0"), 0x3F82),
    (float("inf"), 0x7F80),
])  # fmt: skip
def test_a_bfloat_is_rounded_to_the_nearest(value: float, bits: int) -> None:
    assert constant_bytes("bfloat", value) == ("BFloat", bits.to_bytes(2, "little"))
    assert constant_bytes("bfloat3", (value, 0.0, 0.0)) == ("BFloat3", bits.to_bytes(2, "little") + bytes(6))


def test_constants_without_a_value_and_parameters_that_one_removes() -> None:
    source = """
constant int N [[function_constant(0)]];
constant int more = is_function_constant_defined(N) ? N : -5;
constant bool wide [[function_constant(1)]];
kernel void f(device float* y, device const float* z [[buffer(3), function_constant(wide)]],
              uint i [[thread_position_in_grid]]) { y[i] = more; if (wide) y[i] += z[i]; }"""
    y, z = np.zeros(3, np.float32), np.ones(3, np.float32)
    program = metal(source, constants={"wide": False})
    program.f(y)
    assert y.tolist() == [-5, -5, -5]
    program.specialize(N=2, wide=True).f(y, z)
    assert y.tolist() == [3, 3, 3]


def test_missing_function_constant_is_undefined() -> None:
    source = """constant int N [[function_constant(0)]];
constant int more = is_function_constant_defined(N) ? N : -5;
kernel void f(device float* y, uint i [[thread_position_in_grid]]) { y[i] = more; }"""
    assert metal(source).f(shapes={"y": 2}, grid=2).tolist() == [-5, -5]


def test_templates_are_found_by_host_name() -> None:
    source = """template <class T> kernel void f(device T* x, uint i [[thread_position_in_grid]]) { x[i] = x[i] + 1; }
template [[host_name("of_int")]] [[kernel]] decltype(f<int>) f<int>;"""
    x = np.arange(4, dtype=np.int32)
    metal(source).of_int(x)
    assert x.tolist() == [1, 2, 3, 4]


def test_apples_errors_are_at_the_authors_line(engine: MetalEngine) -> None:
    headers = {"bad.h": "inline float bad(float x) {\n  return x;\n}\n"}
    source = '#include "bad.h"\nkernel void f(device float* x) { x[0] = bad(1); }'
    unit = metal(source, headers=headers).f.unit
    worse = scan(headers["bad.h"].replace("return x", "return y"), "bad.h")
    cell = scan(HEAD + source.replace("x[0]", "z[0]"), headers=frozenset(headers))
    with pytest.raises(mnb.CompileError) as caught:
        engine.compile(dataclasses.replace(unit, headers={"bad.h": worse}))
    (first,) = caught.value.diagnostics  # without a warning
    assert (first.file, first.line, first.column, first.text) == ("bad.h", 2, 10, "  return y;")
    with pytest.raises(mnb.CompileError) as caught:
        engine.compile(dataclasses.replace(unit, cell=cell))
    assert (caught.value.line, caught.value.column) == (4, 34)


def test_a_refusal_without_a_line_is_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "Compiler encountered an internal error\nwith more"
    refuse = metal_double.runtime.NSError(words, 2)
    monkeypatch.setattr(
        MTLBinaryArchive, "addComputePipelineFunctionsWithDescriptor_error_", lambda *_: (False, refuse)
    )
    monkeypatch.setattr(MTLDevice, "newComputePipelineStateWithFunction_error_", lambda *_: (None, refuse))
    with pytest.raises(mnb.CompileError, match="kernel 'add': Metal refused the kernel: Compiler encountered an in"):
        _ = metal(ADD + f"// refused {time.time_ns()}").add.binary  # which no archive has


# ---- Features of Metal only --------------------------------------------------------------------------------

LOGS = "#include <metal_logging>\nkernel void f(device float* x, uint i [[thread_position_in_grid]]) "
LOGS += "{{ {} x[i] += 1; }}"
ATOMIC = "kernel void f(device atomic_float* x, uint i [[thread_position_in_grid]]) "
ARGS = "struct Args { device float* x [[id(0)]]; float a [[id(1)]]; };\n"
BEYOND: dict[str, tuple[str, dict[str, Any], str]] = {
    "bfloat": ("kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = bfloat(x[i]) + 1; }", {},
               r"'bfloat' needs MSL 3\.1; engine 'metal:metalcompute' has MSL 2\.3"),
    "atomic_float": (
        ATOMIC + "{ atomic_fetch_add_explicit(x + i, 1.0f, memory_order_relaxed); }", {},
        r"'atomic_float' needs MSL 3\.0; engine 'metal:metalcompute' has MSL 2\.3"),
    "log": (LOGS.format('if (i == 1) os_log_default.log("x = %f", x[i]);'), {},
            "engine 'metal:metalcompute' cannot show what a kernel prints"),
    "precise": ("kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = exp(log(x[i])) + 1; }",
                {"math": "precise"}, "engine 'metal:metalcompute' supports only fast math"),
    "argument buffer": (
        ARGS + "kernel void f(constant Args& args, uint i [[thread_position_in_grid]]) { args.x[i] += args.a; }", {},
        "engine 'metal:metalcompute' has no argument buffers"),
    "lambda": ("""kernel void f(device float* x, uint i [[thread_position_in_grid]]) {
    auto more = [](float a) { return a + 1; };
    x[i] = more(x[i]);
}""", {},
        r"a lambda needs MSL 3\.2; the cell is read as MSL 2\.3"),
    "input at program scope": (
        "uint i [[thread_position_in_grid]];\nkernel void f(device float* x) { x[i] += 1; }", {},
        r"input 'i' at program scope needs MSL 3\.1"),
    "offset": (
        "kernel void f(device float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = x[i] + 1; }", {},
        r"f: an argument that it writes overlaps another in part; engine 'metal:metalcompute' copies each\. Pass a"),
}  # fmt: skip


def run(name: str, engine: str) -> np.ndarray:
    source, options, _ = BEYOND[name]
    kernel = mnb.compile(HEAD + source, engine=engine, **options).f
    x = mnb.array([1, 2, 3], dtype="float32", device=engine)
    if name == "offset":
        x = mnb.array([1, 2, 3, 0, 0, 0], dtype="float32", device=engine)
        kernel(x, x[3:], grid=3)
        return np.asarray(x)[3:]
    kernel({"x": x, "a": 1} if name == "argument buffer" else x, grid=3)
    return np.asarray(x)


@pytest.mark.parametrize("name", BEYOND)
def test_features_unknown_to_metalcompute_are_refused(name: str) -> None:
    with pytest.raises((mnb.CompileError, mnb.ArgumentError, mnb.LaunchError), match=BEYOND[name][2]):
        run(name, "metal:metalcompute")


@pytest.mark.parametrize("name", BEYOND)
def test_same_feature_works_on_metal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.testing.assert_allclose(run(name, "metal"), [2, 3, 4], rtol=1e-6)
    assert capsys.readouterr().out == ("x = 2.000000\n" if name == "log" else "")


def test_lines_beyond_a_thousand_are_counted(capsys: pytest.CaptureFixture[str], engine: MetalEngine) -> None:
    logs = engine._commands.logs
    for i in range(1003):
        logs._on_log(None, None, 3, f"line {i}")
    logs.show()
    assert capsys.readouterr().out.splitlines()[-2:] == ["line 999", "… and 3 more lines"]
    logs.show()
    assert capsys.readouterr().out == ""


def test_printf_of_metalnb_is_not_part_of_metal() -> None:
    source = '#ifdef METALNB\n#define SAY printf("x");\n#else\n#define SAY\n#endif\n'
    source += "kernel void f(device float* x) { SAY }"
    with pytest.raises(mnb.CompileError, match="the engine 'metal' cannot show what a kernel prints"):
        metal(source)


def test_a_pointer_in_a_struct_leads_to_the_engines_memory() -> None:
    kernel = metal(BEYOND["argument buffer"][0]).f
    words = r"f: argument 'args' \[\[buffer\(0\)\]\] is constant Args&: field 'x' is pointer"
    with pytest.raises(mnb.ArgumentError, match=f"{words}: it takes an array that lives on engine 'metal' or 'cp"):
        kernel({"x": np.zeros(3, np.float32), "a": 1}, grid=3)
    with pytest.raises(mnb.ArgumentError, match=f"{words}: the array is NumPy's memory"):
        kernel({"x": mnb.asarray(np.zeros(3, np.float32), device="metal"), "a": 1}, grid=3)
    with pytest.raises(mnb.ArgumentError, match="is an array on engine 'cpu', but the kernel is compiled for 'met"):
        kernel({"x": mnb.zeros(3, dtype="float32", device="cpu"), "a": 1}, grid=3)
    x = mnb.zeros((4, 3), dtype="float32", device="metal")
    kernel({"x": x[2], "a": 5}, grid=3)  # from the middle of its memory
    assert np.asarray(x).tolist() == [[0] * 3, [0] * 3, [5] * 3, [0] * 3]


def test_reading_an_array_behind_a_struct_pointer_waits() -> None:
    kernel = metal(BEYOND["argument buffer"][0]).f
    x = mnb.zeros(1 << 16, dtype="float32", device="metal")
    for _ in range(20):
        kernel({"x": x, "a": 1}, grid=1 << 16)
    assert set(np.asarray(x).tolist()) == {20.0}
    (held,) = kernel.prepare({"x": x, "a": 1}, grid=3).residents
    assert held is x


# ---- Binding ---------------------------------------------------------------------------------------------------------


def test_small_values_go_with_the_command_and_arrays_as_buffers(calls: Calls) -> None:
    add = metal(ADD).add
    x, y = (mnb.ones(2000, dtype="float32", device="metal") for _ in range(2))
    values = calls.of(MTLComputeCommandEncoder, "setBytes_length_atIndex_")
    buffers = calls.of(MTLComputeCommandEncoder, "setBuffer_offset_atIndex_")
    add(x, y, 2.5)
    assert [(length, index) for _, length, index in values] == [(4, 2)]
    assert [(offset, index) for _, offset, index in buffers] == [(0, 0), (0, 1)]
    assert np.asarray(y)[7] == 3.5


@pytest.mark.parametrize("nbytes", [4096, 4100])
def test_four_kilobytes_at_most_go_with_the_command(calls: Calls, nbytes: int) -> None:
    source = f"struct S {{ float v[{nbytes // 4}]; }};\n"
    source += "kernel void f(device float* y, constant S& s, uint i [[thread_position_in_grid]]) { y[i] = s.v[i]; }"
    v = np.arange(nbytes // 4, dtype=np.float32)
    y = mnb.zeros(nbytes // 4, dtype="float32", device="metal")
    values = calls.of(MTLComputeCommandEncoder, "setBytes_length_atIndex_")
    metal(source).f(y, {"v": v})
    assert np.array_equal(np.asarray(y), v)
    assert [length for _, length, _ in values] == ([4096] if nbytes == 4096 else [])


def test_an_array_that_is_written_as_well_is_one_buffer() -> None:
    source = """kernel void f(device const float* x, device float* y) {
        y[0] = 5; threadgroup_barrier(mem_flags::mem_device); y[1] = x[0]; }"""
    x = np.zeros(8, np.float32)
    metal(source).f(x, x, grid=1)
    assert x[:2].tolist() == [5, 5]


def test_the_engines_own_memory_is_bound_where_it_is(engine: MetalEngine, calls: Calls) -> None:
    buffers = calls.of(MTLComputeCommandEncoder, "setBuffer_offset_atIndex_")
    memory, other = engine.alloc(400), engine.alloc(400)
    x, y = np.frombuffer(memory, np.float32), np.frombuffer(other, np.float32)
    x[:] = np.arange(100)
    metal(ADD).add(x[10:30], y[50:70], 0)
    assert [(b, o) for b, o, _ in buffers] == [(memory.buffer, 40), (other.buffer, 200)]
    assert np.array_equal(y[50:70], x[10:30])


@pytest.mark.parametrize(("kind", "space", "start", "multiple"), [
    ("float4", "device const", 4, 16), ("uchar", "constant", 1, 4), ("uchar", "device const", 1, 0),
    ("float", "constant", 4, 0), ("half", "constant", 2, 4), ("float2", "device const", 8, 0),
])  # fmt: skip
def test_an_offset_is_refused_before_metal_would(kind: str, space: str, start: int, multiple: int) -> None:
    source = f"kernel void f({space} {kind}* x, device uchar* y, uint i [[thread_position_in_grid]]) "
    kernel = metal(source + f"{{ y[i] = uchar(x[0]{'.x' if kind[-1].isdigit() else ''}); }}").f
    memory = np.frombuffer(engines.named("metal").alloc(256), np.uint8)
    x = memory[start : start + 64].view(kernel._binder.slots[0].dtype)
    x = x.reshape(-1, *kernel._binder.slots[0].value_shape)
    y = np.zeros(1, np.uint8)
    if multiple:
        message = rf"'x' .* starts {start} bytes into its buffer, and Metal takes multiples of {multiple}\. Pass a copy"
        with pytest.raises(mnb.LaunchError, match=message):
            kernel(x, y, grid=1)
    else:
        kernel(x, y, grid=1)


def test_constant_memory_of_an_intel_mac_starts_at_multiples_of_32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MTLDevice, "supportsFamily_", lambda *_: False)
    opened = metal_package.open_engine(module=metal_double)
    monkeypatch.setitem(doubled(), "metal", opened)
    kernel = metal("kernel void f(constant float* x, device float* y) { y[0] = x[0]; } // intel").f
    memory = np.frombuffer(opened.alloc(256), np.float32)
    with pytest.raises(mnb.LaunchError, match="takes multiples of 32"):
        kernel(memory[1:], np.zeros(1, np.float32), grid=1)


def test_threadgroup_memory_is_rounded_and_bounded() -> None:
    source = """kernel void f(device float* x, threadgroup float* b [[threadgroup(2)]],
        uint i [[thread_position_in_threadgroup]]) {
        threadgroup float a[4200]; a[i] = b[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup);
        x[i] = a[i ^ 1] + b[i ^ 1]; }"""
    f = metal(source).f
    x = np.arange(62, dtype=np.float32)
    f(x, threadgroup=62)  # 248 bytes are 256
    np.testing.assert_array_equal(x, 2 * (np.arange(62) ^ 1))
    with pytest.raises(mnb.LaunchError, match="f: needs 33,184 bytes of threadgroup memory"):
        f(x, threadgroup=62, threadgroup_memory={"b": 16384})
    with pytest.raises(mnb.LaunchError, match=r"33,184 bytes of threadgroup memory \(16,800 declared, 16,384 passed"):
        f.engine.launch(f.binary, [x, 16384], (62, 1, 1), (62, 1, 1))


def test_thirty_one_buffers_fit_and_the_next_is_refused(engine: MetalEngine) -> None:
    def source(n: int) -> str:
        parameters = ", ".join(f"constant uint& a{k}" for k in range(n - 1))
        total = " + ".join(f"a{k}" for k in range(n - 1))
        parameters += ", device uint* out, uint i [[thread_position_in_grid]]"
        return f"kernel void f({parameters}) {{ out[i] = {total}; }}"

    out = metal(source(31)).f(*range(30), shapes={"out": 3}, grid=3)
    assert out.tolist() == [sum(range(30))] * 3
    unit = metal(ADD).add.unit
    beyond = tuple(dataclasses.replace(p, index=31) for p in unit.signature.params)
    with pytest.raises(mnb.CompileError, match=r"buffer\(31\)\]\]; Metal has \[\[buffer\(0\)\]\] to \[\[buffer\(30"):
        engine.compile(dataclasses.replace(unit, signature=dataclasses.replace(unit.signature, params=beyond)))


def test_a_kernel_of_many_registers_has_smaller_threadgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MTLComputePipelineState, "most", 96)
    add = metal(ADD + "// many registers").add
    x, y = np.ones(500, np.float32), np.zeros(500, np.float32)
    ready = add.prepare(x, y, 1)
    assert ready.threadgroup == (96, 1, 1)
    ready.run()
    assert (y == 2).all()
    with pytest.raises(mnb.LaunchError, match=r"\(128,\) is 128 threads; this kernel allows 96 \(this device"):
        add(x, y, 1, threadgroup=128)
    with pytest.raises(mnb.LaunchError, match="a threadgroup of 256 threads; this kernel allows 96 on this device"):
        add.engine.launch(add.binary, [x, y, b"\0\0\0\0"], (500, 1, 1), (256, 1, 1))


# ---- Memory ----------------------------------------------------------------------------------------------------------


def test_whole_pages_of_numpys_are_not_copied(calls: Calls, engine: MetalEngine) -> None:
    buffers = calls.of(MTLComputeCommandEncoder, "setBuffer_offset_atIndex_")
    x, y = pages(), pages(2)[: PAGE // 4]
    x[:] = 1
    metal(ADD).add(x, y, 2)
    assert [b.memory.ctypes.data for b, _, _ in buffers] == [x.ctypes.data, y.ctypes.data]
    assert (y == 3).all()
    short = pages(2)[: PAGE // 4 + 4]  # does not end at a page's end or start at its start
    for z in (short[:-8], short[4:]):
        metal(ADD).add(x[: z.size], z, 2)
        assert buffers[-1][0].memory.ctypes.data != z.ctypes.data
        assert (z == 3).all()


def test_the_same_pages_are_one_buffer_while_a_dispatch_works_on_them(calls: Calls) -> None:
    buffers = calls.of(MTLComputeCommandEncoder, "setBuffer_offset_atIndex_")
    add = metal(ADD).add
    x, y, z = pages(), pages(), pages()
    first = add.prepare(x, y, 1).launch()
    second = add.prepare(y, z, 1).launch()
    assert buffers[1][0] is buffers[2][0]  # Metal sees that the second dispatch reads what the first writes
    second.wait()
    first.wait()
    assert (z == 2).all()


def test_pages_that_overlap_in_part_wait_for_each_other() -> None:
    add = metal(ADD).add
    whole = pages(3)
    n = PAGE // 4
    for _ in range(5):
        one = add.prepare(whole[:n], whole[n : 2 * n], 1).launch()
        two = add.prepare(whole[n : 3 * n], whole[n : 3 * n], 1, grid=2 * n).launch()
        assert one.results == []  # it was waited for: Metal sees two buffers
        three = add.prepare(whole[n + 8 : n + 16].copy(), whole[:8], 0).launch()
        for ticket in (one, two, three):
            ticket.wait()
    assert whole[n + 100] == 2
    assert whole[2 * n] == 5


def test_buffer_that_turns_out_to_be_a_copy_is_not_used(engine: MetalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine._device, "copies", True)
    x, y = pages(), pages()
    metal(ADD).add(x, y, 2)
    assert (y == 2).all()


def test_pages_of_one_dispatch_may_overlap() -> None:
    whole = pages(3)
    n = PAGE // 4
    whole[: 2 * n] = 1
    metal("kernel void last(device const float* x, device float* y) { y[0] = x[0] + 1; }").last(
        whole[: 2 * n], whole[n:], grid=1
    )
    assert whole[n] == 2


def test_pages_live_as_long_as_the_dispatch(engine: MetalEngine) -> None:
    held = threading.Event()
    engine._commands._queue.run(held.wait)  # the GPU is busy
    ticket = metal(ADD).add.prepare(pages(), pages(), 2).launch()
    command = ticket._batch.command
    assert command.status() == CONSTANTS["MTLCommandBufferStatusCommitted"]
    threading.Timer(0.05, held.set).start()
    del ticket  # waits for it
    assert command.status() == CONSTANTS["MTLCommandBufferStatusCompleted"]


def test_a_result_that_is_still_to_be_copied_is_waited_for() -> None:
    add = metal(ADD).add
    a, b, c = (np.zeros(1 << 16, np.float32)[1:] for _ in range(3))
    first = add.prepare(a, b, 1).launch()
    add(b, c, 1)
    first.wait()
    assert (c == 2).all()
    small, out = np.zeros(8, np.float32), mnb.zeros(8, dtype="float32", device="metal")
    first = add.prepare(a[:8], small, 1).launch()
    add(small, out, 1)  # goes with the command
    assert np.asarray(out).tolist() == [2] * 8
    first.wait()


def test_copies_of_a_call_are_reported() -> None:
    """The measurement states the copies, because the GPU's clock does not count them."""
    add = metal(ADD).add
    x, within = pages(), pages(2)[1:][: PAGE // 4]
    there = f"{nbytes(PAGE)} to the device"
    said = "not counted: the call copies NumPy's arrays, {}; arrays of metalnb, mnb.array(x), stay on the device"
    assert copy_notes(add.prepare(x, pages(), 1)) == ()
    assert copy_notes(add.prepare(within, x, 1)) == (said.format(there),)
    assert copy_notes(add.prepare(x, within, 1)) == (said.format(f"{there} and {nbytes(PAGE)} back"),)
    held = mnb.array(within, device="metal")
    assert copy_notes(add.prepare(held, held, 1)) == ()
    assert copy_notes(add.prepare(mnb.asarray(within, device="metal"), held, 1)) == (said.format(there),)


def test_memory_sizes_beyond_metals_limit(engine: MetalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError, match="at most 17,179,869,184"):
        engine.alloc((1 << 34) + 1)
    monkeypatch.setattr(MTLDevice, "newBufferWithLength_options_", lambda *_: None)
    with pytest.raises(MemoryError, match="Metal has no 64 bytes"):
        engine.alloc(64)


def test_memory_of_no_bytes_is_memory(engine: MetalEngine) -> None:
    memory = engine.alloc(0)
    assert (memory.nbytes, memory.buffer.length()) == (0, 1)


# ---- Time and faults -------------------------------------------------------------------------------------------------


def test_time_is_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    times = itertools.count(1)
    add = metal(ADD).add
    x = mnb.ones(5, dtype="float32", device="metal")
    assert np.asarray(x)[0] == 1
    clock = SimpleNamespace(perf_counter=lambda: float(next(times)))
    monkeypatch.setattr(metal_double.commands, "time", clock)
    ticket = add.prepare(x, x, 1).launch()
    ticket.wait()
    assert ticket.elapsed() == 1.0


def test_more_runs_are_timed_than_one_batch_holds(engine: MetalEngine) -> None:
    add = metal(ADD).add
    x = mnb.zeros(5, dtype="float32", device="metal")
    bound = add.prepare(x, x, 1)
    seconds = engine.timed(bound.binary, bound.arguments, bound.grid, bound.threadgroup, 70)
    assert len(seconds) == 70
    assert min(seconds) > 0
    assert np.asarray(x)[0] == 70


@pytest.mark.parametrize(("word", "kind", "said"), [
    ("PageFault", "", "it accessed memory that it was not given"),
    ("Timeout", "stopped", "it ran longer than the system lets a GPU work"),
    ("OutOfMemory", "", "the GPU has no memory left"),
])  # fmt: skip
def test_a_command_buffer_that_fails_is_a_fault(engine: MetalEngine, word: str, kind: str, said: str) -> None:
    queue = engine._commands._queue
    queue.fails.append(CONSTANTS[f"MTLCommandBufferError{word}"])
    add = metal(ADD).add
    x = np.zeros(5, np.float32)
    ticket = add.prepare(x, x, 1).launch()
    for _ in range(2):
        with pytest.raises(mnb.KernelFault) as caught:
            ticket.wait()
    message = str(caught.value)
    assert message.startswith(f"add: the GPU did not finish it (MTLCommandBufferError{word}): {said}")
    assert message.endswith("(encoder 'add' faulted.) Metal: Caused GPU Address Fault Error (0000000b)")
    assert caught.value.kind == kind
    assert np.isnan(ticket.elapsed())
    assert (x == 0).all()
    add(x, x, 1)
    assert (x == 1).all()


def test_unknown_error_is_reported_by_number(engine: MetalEngine) -> None:
    engine._commands._queue.fails.append(77)
    x = np.zeros(5, np.float32)
    with pytest.raises(mnb.KernelFault, match=r"\(MTLCommandBufferError 77\): Metal does not say why"):
        metal(ADD).add(x, x, 1)


def test_a_fault_among_timed_runs(engine: MetalEngine) -> None:
    bound = metal(ADD).add.prepare(np.zeros(5, np.float32), np.zeros(5, np.float32), 1)
    engine._commands._queue.fails.append(3)
    with pytest.raises(mnb.KernelFault, match="PageFault"):
        engine.timed(bound.binary, bound.arguments, bound.grid, bound.threadgroup, 3)


# ---- Recordings ------------------------------------------------------------------------------------------------------


def test_a_recording_has_the_dispatches_of_its_block(tmp_path: Path) -> None:
    add = metal(ADD).add
    x = mnb.ones(5, dtype="float32", device="metal")
    add(x, x, 1)
    with mnb.capture(tmp_path / "f.gputrace", engine="metal") as path:
        add(x, x, 1)
        add(x, x, 1)
    add(x, x, 1)
    assert path.read_text("utf-8").split() == ["add", "add"]
    with pytest.raises(mnb.ArgumentError, match=r"capture: '.*f\.gputrace' exists"), mnb.capture(path, engine="metal"):
        pass


def test_a_recording_ends_where_its_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), mnb.capture(tmp_path / "f.gputrace", engine="metal"):
        _ = 1 / 0
    with mnb.capture(tmp_path / "g.gputrace", engine="metal"):
        pass


def test_why_nothing_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "f.gputrace"
    with pytest.raises(mnb.ArgumentError, match="engine 'cpu' makes no recordings"), mnb.capture(engine="cpu"):
        pass
    wrong = pytest.raises(mnb.ArgumentError, match=r"ends in \.gputrace; got 'f\.txt'")
    with wrong, mnb.capture("f.txt", engine="metal"):
        pass
    with (
        mnb.capture(where, engine="metal"),
        pytest.raises(mnb.EngineUnavailable, match="Capture is already in progress"),
        mnb.capture(tmp_path / "g.gputrace", engine="metal"),
    ):
        pass
    monkeypatch.setattr(metal_double.MTLCaptureManager, "enabled", False)
    unset = pytest.raises(mnb.EngineUnavailable, match="set MTL_CAPTURE_ENABLED=1 in the environment before")
    with unset, mnb.capture(tmp_path / "h.gputrace", engine="metal"):
        pass


def test_the_magic_records_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines, "_chosen", ["metal"])
    session = Session(None)
    run = COMMANDS["capture"].run
    assert run(session, None) == "recording to metalnb.gputrace, until %metal capture end"
    metal(ADD).add(np.zeros(3, np.float32), np.zeros(3, np.float32), 1)
    assert "Xcode" in run(session, "end")
    assert Path("metalnb.gputrace").read_text("utf-8") == "add"


def test_the_card_tells_the_most_threads_once_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MTLComputePipelineState, "most", 448)
    kernel = metal(ADD + "// on a card").add
    assert kernel.card.facts == []
    _ = kernel.binary
    assert kernel.card.facts == [("threads in a threadgroup", "at most 448"), ("threads of a SIMD-group", "32")]


# ---- Opening ---------------------------------------------------------------------------------------------------------


def test_what_it_says_of_itself(engine: MetalEngine) -> None:
    caps = engine.caps
    assert (caps.device, caps.clock, caps.msl) == ("Apple M0 (double)", "device", (3, 2))
    assert caps.precise
    assert caps.offsets
    assert caps.versions == {"PyObjC": "12.2 (double)", "MSL": "3.2"}


def test_the_second_device() -> None:
    second = metal_package.open_engine(1, module=metal_double)
    assert (second.name, second.caps.device) == ("metal:1", "Apple M0 (its second double)")
    with pytest.raises(mnb.EngineUnavailable, match="engine 'metal' has no device 2: this machine has 2 devices"):
        metal_package.open_engine(2, module=metal_double)


def test_where_there_is_no_metal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("METALNB_METAL", raising=False)
    for system in ("Linux", "Darwin"):  # where PyObjC is not installed
        monkeypatch.setattr("platform.system", lambda system=system: system)
        monkeypatch.setitem(sys.modules, "Metal", None)
        with pytest.raises(mnb.EngineUnavailable) as caught:
            metal_package.open_engine()
        assert str(caught.value) == "engine 'metal' needs macOS 13 and PyObjC: pip install pyobjc-framework-Metal"
    monkeypatch.setattr(metal_double, "MTLCreateSystemDefaultDevice", lambda: None)
    with pytest.raises(mnb.EngineUnavailable, match="engine 'metal' found no Metal device"):
        metal_package.open_engine(module=metal_double)


def test_without_pyobjc_metalcompute_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def only(name: str) -> Any:
        if name != "metal:metalcompute":
            raise mnb.EngineUnavailable(name)
        return doubled()[name]

    monkeypatch.setattr(engines, "_open", only)
    engines._default.cache_clear()
    try:
        assert engines._default() == "metal:metalcompute"
    finally:
        engines._default.cache_clear()


def test_double_is_used_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALNB_METAL", "metal_double")
    assert metal_package.open_engine().caps.device == "Apple M0 (double)"


def test_a_kernel_is_pickled_with_its_engine() -> None:
    again = pickle.loads(pickle.dumps(metal(ADD).add))  # noqa: S301  (our own bytes)
    assert again.engine.name == "metal"


# ---- Samples of other tests ------------------------------------------------------------------------------------------

OPS = ("exp-float32", "floor_divide-int32", "sum-float32", "cumulative_sum-int64", "sort-float32", "matmul-float32")


@pytest.mark.timeout(1800)  # two minutes on two idle cores
@pytest.mark.long(unless=lambda tests: len(tests) == len(OPS))  # The tests above launch cells; these run ops
@pytest.mark.parametrize("tests", [
    ("msl/test_groups.py", "msl/test_constants.py", "msl/test_threadgroup_arguments.py"),
    tuple(f"library/test_library.py::test_an_op_agrees_with_its_reference[{op}]" for op in OPS),
], ids=["msl", "ops"])  # fmt: skip
def test_a_sample_of_others_tests_passes(tests: tuple[str, ...]) -> None:
    """To run all of them: ``METALNB_ENGINE=metal METALNB_METAL=metal_double pytest tests/msl tests/library``."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    environment = {**os.environ, "METALNB_ENGINE": "metal", "METALNB_METAL": "metal_double"}
    folder = Path(__file__).parents[1]
    done = subprocess.run(
        [*command, *(f"{folder}/{test}" for test in tests)], capture_output=True, text=True, env=environment,
        check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


# ---- The double is strict --------------------------------------------------------------------------------------------


@pytest.fixture
def encoder(engine: MetalEngine) -> Any:
    with engine._bindings.pool():
        command = engine._commands._queue.commandBufferWithDescriptor_(metal_double.MTLCommandBufferDescriptor())
    encoder = command.computeCommandEncoder()
    encoder.command = command
    return encoder


SIZE = metal_double.MTLSize(1, 1, 1)


@pytest.mark.parametrize(("error", "misuse"), [
    (AttributeError, lambda e: e.setByte_length_atIndex_(b"", 0, 0)),
    (TypeError, lambda e: e.setBytes_length_atIndex_(b"1234", 4)),
    (ValueError, lambda e: e.setBytes_length_atIndex_("1234", 4, 0)),
    (ValueError, lambda e: e.setBytes_length_atIndex_(b"1234", np.int64(4), 0)),
    (ValueError, lambda e: e.setBuffer_offset_atIndex_(None, 0, 0)),
    (ValueError, lambda e: e.setThreadgroupMemoryLength_atIndex_(-16, 0)),
    (ValueError, lambda e: e.dispatchThreads_threadsPerThreadgroup_((1, 1, 1), SIZE)),
    (MetalAbortError, lambda e: e.dispatchThreads_threadsPerThreadgroup_(SIZE, SIZE)),
    (MetalAbortError, lambda e: e.setBytes_length_atIndex_(bytes(4097), 4097, 0)),
    (MetalAbortError, lambda e: e.setBytes_length_atIndex_(bytes(4), 4, 31)),
    (MetalAbortError, lambda e: e.setThreadgroupMemoryLength_atIndex_(8, 0)),
    (MetalAbortError, lambda e: e.command.commit()),
    (MetalAbortError, lambda e: e.command.waitUntilCompleted()),
    (MetalAbortError, lambda e: e.command.computeCommandEncoder()),
    (MetalAbortError, lambda e: (e.endEncoding(), e.endEncoding())),
])  # fmt: skip
def test_the_double_refuses_misuse(encoder: Any, error: type, misuse: Any) -> None:
    with pytest.raises(error):
        misuse(encoder)


def test_the_double_misses_a_buffer_that_is_not_bound(encoder: Any) -> None:
    encoder.setComputePipelineState_(metal(ADD).add.binary.pipeline.state)
    with pytest.raises(MetalAbortError, match="missing buffer binding at index 0 for x"):
        encoder.dispatchThreads_threadsPerThreadgroup_(SIZE, SIZE)


def test_the_double_wants_a_pool_and_a_place_for_the_error(engine: MetalEngine) -> None:
    with pytest.raises(MetalAbortError, match="autorelease pool"):
        engine._commands._queue.commandBufferWithDescriptor_(metal_double.MTLCommandBufferDescriptor())
    with pytest.raises(TypeError, match="Need 3 arguments, got 2"):
        engine._device.newLibraryWithSource_options_error_("", None)
    with pytest.raises(ValueError, match="depythonifying argument 2"):
        engine._device.newLibraryWithSource_options_error_("", None, "error")
