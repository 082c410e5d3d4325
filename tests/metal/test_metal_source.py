"""The input of Metal's compiler (source, options, language version, constants) and its errors."""

import dataclasses
import time
from typing import Any

import metal_double
import numpy as np
import pytest
from metal.beyond_metalcompute import BEYOND
from metal.doubled_engines import ADD, HEAD, HEADERS, INCLUDING, Calls, doubled, metal
from metal_double.compiler import MTLCompileOptions
from metal_double.device import MTLDevice
from metal_double.pipelines import MTLBinaryArchive

import metalnb as mnb
from metalnb.engine import metal as metal_package
from metalnb.engine.metal import libraries
from metalnb.engine.metal.libraries import constant_bytes
from metalnb.engine.metal.metal_engine import MetalEngine
from metalnb.msl.rewrite.scan import scan

pytestmark = pytest.mark.usefixtures("engine")


def test_metal_is_given_the_authors_own_text(calls: Calls) -> None:
    seen = calls.of(MTLDevice, "newLibraryWithSource_options_error_")
    source = "// as I wrote it\nkernel void f(device float*x,uint i[[thread_position_in_grid]]){x[i]=1;}"
    kernel = metal(source).f
    kernel(np.zeros(3, np.float32))
    assert [text for text, *_ in seen] == [HEAD + source]
    assert kernel.engine.text(kernel.unit) == HEAD + source


def test_header_cells_are_inserted_at_their_include() -> None:
    x = np.arange(9, dtype=np.float32)
    metal(INCLUDING, headers=HEADERS).f(x)
    np.testing.assert_array_equal(x, (np.arange(9) + 1) * 2 + 1)


def test_kernels_of_a_cell_share_a_library(calls: Calls) -> None:
    seen = calls.of(MTLDevice, "newLibraryWithSource_options_error_")
    program = metal("kernel void one(device float* x) { x[0] = 1; }\nkernel void two(device float* x) { x[0] = 2; }")
    x = np.zeros(1, np.float32)
    program.one(x)
    program.two(x)
    assert (len(seen), x[0]) == (1, 2)


def test_libraries_are_bounded_and_an_evicted_one_is_compiled_again(
    engine: MetalEngine, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "_MAX_LIBRARIES", 2)
    monkeypatch.setattr(engine._libraries, "_libraries", {})
    compiled = calls.of(MTLDevice, "newLibraryWithSource_options_error_")
    kernels = [metal(f"kernel void f(device float* x) {{ x[0] = {n}; }}").f for n in range(4)]

    def result(n: int) -> float:
        x = np.zeros(1, np.float32)
        engine.launch(engine.compile(kernels[n].unit), [x], (1, 1, 1), (1, 1, 1)).wait()
        assert len(engine._libraries._libraries) <= 2
        return float(x[0])

    assert [result(n) for n in range(4)] == [0, 1, 2, 3]
    assert [result(n) for n in (3, 2)] == [3, 2]
    assert len(compiled) == 4
    assert [result(n) for n in (0, 1)] == [0, 1]
    assert len(compiled) == 6


@pytest.mark.parametrize(("math", "mode", "functions"), [("fast", 1, 0), ("precise", 0, 1)])
def test_math_option_sets_metals_math_mode(calls: Calls, math: str, mode: int, functions: int) -> None:
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
def test_function_constants_of_each_type_reach_metal(kind: str, value: Any) -> None:
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


def test_constants_without_a_value_remove_their_parameters() -> None:
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
