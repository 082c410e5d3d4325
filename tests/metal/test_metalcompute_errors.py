"""Errors of the engine `metal:metalcompute`: their lines, language versions, pipelines and GPUs that fail."""

import pickle
import re
from types import ModuleType

import numpy as np
import pytest
from metal.metalcompute_cells import compile_cell, compiled_sizes
from opened_engines import open_as

import metalnb as mnb
from metalnb.engine.metal.assembled_source import Assembly
from metalnb.engine.metal.metalcompute_path import open_engine
from metalnb.msl.language.versions import newer_words
from metalnb.msl.rewrite.scan import scan

pytestmark = pytest.mark.usefixtures("metal_engine")


def test_an_error_that_only_the_target_finds_is_at_the_authors_line() -> None:
    source = """
template <typename T> T twice(T x) {
    return x.missing + x;
}
template <typename T>
kernel void f(device T* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    x[i] = twice(x[i]);
}
template [[host_name("g")]] [[kernel]] decltype(f<float>) f<float>;
"""
    with pytest.raises(mnb.CompileError) as caught:
        compile_cell(source).g(np.zeros(8, np.float32))
    assert (caught.value.line, caught.value.column) == (5, 13)
    assert "return x.missing + x;" in str(caught.value)


def test_a_column_on_the_line_that_was_rewritten() -> None:
    source = """template <class T> kernel void f(device T* x, uint i [[thread_position_in_grid]]) { x[i] = x[i].gone; }
template [[host_name("g")]] [[kernel]] decltype(f<float>) f<float>;"""
    with pytest.raises(mnb.CompileError) as caught:
        compile_cell(source).g(np.zeros(8, np.float32))
    assert caught.value.line == 3
    assert source.splitlines()[0][caught.value.column - 1 :].startswith((".gone", "gone"))


def test_an_error_in_a_header_cell_names_that_cell() -> None:
    header = "template <typename T> T bad(T x) {\n  return x.nothing;\n}\n"
    source = """#include "bad.h"
template <typename T> kernel void f(device T* x, uint i [[thread_position_in_grid]]) { x[i] = bad(x[i]); }
template [[host_name("g")]] [[kernel]] decltype(f<float>) f<float>;"""
    with pytest.raises(mnb.CompileError) as caught:
        compile_cell(source, headers={"bad.h": header}).g(np.zeros(8, np.float32))
    first = caught.value.diagnostics[0]
    assert (first.file, first.line) == ("bad.h", 2)


def test_report_of_apples_compiler_points_at_the_cells_lines() -> None:
    """In Apple's wording, with warnings and notes in between, a position in metalnb's source, and the author's line."""
    cell = scan("kernel void f() {\n  oops;\n}")
    text = Assembly({})
    text.add_own_lines("struct ours {};\n")
    text.add_cell(cell)
    report = (
        "Compilation failed: \n\nprogram_source:2:6: warning: no previous prototype for function 'f'\n"
        "program_source:3:3: error: use of undeclared identifier 'oops'\n  oops;\n  ^\n"
        "program_source:1:1: note: declared here\nprogram_source:1:8: error: of ours\n"
    )
    assert [(d.line, d.column, d.message, d.text) for d in text.finish().diagnostics(report)] == [
        (2, 3, "use of undeclared identifier 'oops'", "  oops;"),
    ]


def test_newer_language_than_msl_2_3_is_refused_at_its_position() -> None:
    source = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = bfloat(x[i]); }"
    words = r"'bfloat' needs MSL 3\.1; engine 'metal:metalcompute' has MSL 2\.3"
    with pytest.raises(mnb.CompileError, match=words) as caught:
        compile_cell(source).f.binary  # noqa: B018
    assert (caught.value.line, caught.value.column) == (3, 77)


def test_a_newer_word_that_is_guarded() -> None:
    source = """
#if __METAL_VERSION__ >= 990
typedef bfloat real;
#else
typedef float real;
#endif
// bfloat
kernel void f(device real* x, uint i [[thread_position_in_grid]]) { x[i] = 2; }"""
    x = np.zeros(3, np.float32)
    compile_cell(source).f(x)
    assert (x == 2).all()


def test_the_branch_of_the_version_that_metalcompute_compiles_is_the_one_that_is_read() -> None:
    source = """
#if __METAL_VERSION__ >= 310
typedef bfloat real;
#else
typedef float real;
#endif
kernel void f(device real* x, uint i [[thread_position_in_grid]]) { x[i] = __METAL_VERSION__; }"""
    x = np.zeros(3, np.float32)
    program = compile_cell(source, msl="3.2")
    program.f(x)
    assert (x == 230).all()
    assert pickle.loads(pickle.dumps(program)) is program  # noqa: S301
    assert program.on("cpu").f.signature.buffers[0].type.name == "bfloat"


def test_metalcompute_compiles_the_branch_for_metalnb() -> None:
    """The branch is compiled even if the kernel could be compiled unchanged."""
    source = """
#ifdef METALNB
[[max_total_threads_per_threadgroup(32)]] kernel void f(device float* x, device const float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) { x[i] = y[i]; }
#else
kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 1; }
#endif"""
    f = compile_cell(source).f
    x, y = np.zeros(64, np.float32), np.full(64, 5, np.float32)
    f(x, y, threadgroup=32)
    assert (x == 5).all()
    assert compiled_sizes(f) == {32}
    assert compile_cell(source).lowered_text("f").startswith("#define METALNB 1\n")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("device bfloat4* x; atomic_float a; bfloat4 y;", ["bfloat4", "atomic_float"]),
        ("#define REAL bfloat", ["bfloat"]),
        (
            "#if A\n#if __METAL_VERSION__ > 300\nbfloat a;\n#else\natomic_float b;\n#endif\natomic_ulong c;\n#endif",
            ["atomic_ulong"],
        ),
        ("struct atomic_float { float x; }; atomic_float a;", []),
        ("// bfloat\nfloat x = y.bfloat; /* bfloat */", []),
    ],
)
def test_words_newer_than_msl_2_3_are_found(source: str, words: list) -> None:
    assert [word for word, _, _ in newer_words(scan(source), (2, 3))] == words


def test_precise_math_is_refused() -> None:
    source = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 1 / x[i]; }"
    with pytest.raises(mnb.CompileError, match="kernel 'f': engine 'metal:metalcompute' supports only fast math"):
        compile_cell(source, math="precise").f(np.ones(3, np.float32))


class _Broken:
    """A metalcompute whose GPU does not run kernels, or runs them in threadgroups of another size."""

    def __init__(self, module: ModuleType, damage: object) -> None:
        self.error, self.__name__, self._module, self._damage = module.error, "broken", module, damage

    def Device(self) -> object:  # noqa: N802
        device = self._module.Device()
        outer = self

        class Device:
            buffer = staticmethod(device.buffer)

            @staticmethod
            def kernel(text: str) -> object:
                return device.kernel(outer._damage(text))

        return Device()


def test_failed_pipeline_is_reported(metalcompute: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metalcompute creates it in every call, and reports a failure with the wrong error code."""

    class Refusing:
        def function(self, name: str) -> object:
            def call(*_: object) -> None:
                raise metalcompute.error("Cannot create command encoder")

            return call

    broken = open_engine(module=_Broken(metalcompute, lambda text: text))
    monkeypatch.setattr(broken._device, "kernel", lambda text: Refusing())
    open_as(monkeypatch, {"metal:metalcompute": broken})
    refused = compile_cell("kernel void refused(device float* x) { x[0] = 1; }").refused
    with pytest.raises(mnb.LaunchError) as caught:
        refused(np.zeros(100, np.float32), threadgroup=40)
    assert str(caught.value) == (
        "refused: Metal cannot run it in threadgroups of 64 threads (metalcompute: Cannot create command encoder). "
        "It needs too much threadgroup memory (Metal allows 32,768 bytes) or too many registers: "
        "choose a smaller threadgroup."
    )


def _no_launch(text: str) -> str:
    return text.replace("metalnb_l.seen_ = metalnb_n", "metalnb_l.seen_ = 0")


def _small_threadgroups(text: str) -> str:
    return re.sub(r"max_total_threads_per_threadgroup\(64\)", "max_total_threads_per_threadgroup(32)", text)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_no_launch, "f: the GPU did not run it"),
        (_small_threadgroups, "f: the GPU ran threadgroups of 32 threads where 64 were requested"),
    ],
)
def test_results_of_a_failing_gpu_are_not_trusted(
    metalcompute: ModuleType, monkeypatch: pytest.MonkeyPatch, damage: object, message: str,
) -> None:  # fmt: skip
    broken = open_engine(module=_Broken(metalcompute, damage))
    open_as(monkeypatch, {"metal:metalcompute": broken})
    source = f"kernel void f(device float* x, uint i [[thread_position_in_grid]]) {{ x[i] = 1; }} // {message}"
    kernel = compile_cell(source).f
    with pytest.raises(mnb.KernelFault, match=message):
        kernel(np.zeros(100, np.float32), threadgroup=64)
    x = mnb.array(np.zeros(100, np.float32), device="metal:metalcompute")
    kernel(x, threadgroup=64)
    for _ in range(2):  # not only the first time that it is read
        with pytest.raises(mnb.KernelFault, match=message):
            x.read()
