"""Kernels that print: the output, its order, its limit, and formats that do not fit their values."""

from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.engine.base import Caps
from metalnb.engine.cpu.printed_lines import MAX_LINES
from metalnb.errors import CompileError

HEAD = "#include <metal_stdlib>\n#include <metal_logging>\nusing namespace metal;\n"


def compiled(body: Any, before: Any = "", engine: Any = "cpu", head: Any = HEAD) -> Any:
    return mnb.compile(
        f"{head}{before}\nkernel void k(device const float* x, device float* out, "
        f"uint2 p [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {{\n{body}\n"
        "out[p.x] = x[p.x]; }",
        engine=engine,
    ).k


def printed(capsys: pytest.CaptureFixture[str], kernel: Any, n: Any = 3, **call: Any) -> Any:
    kernel(np.arange(n, dtype=np.float32), **{"grid": n, **call})
    return capsys.readouterr().out.splitlines()


def test_each_line_begins_with_its_thread(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = compiled('os_log_default.log("x = %f", x[p.x]);')
    assert capsys.readouterr().out == ""
    assert printed(capsys, kernel) == [f"thread {i}: x = {i}.000000" for i in range(3)]


def test_output_is_sorted_by_thread_then_by_program_order(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = compiled(
        'for (uint k = 0; k < 2; ++k) { os_log_default.log("%u", k); threadgroup_barrier(mem_flags::mem_none); }'
    )
    lines = printed(capsys, kernel, 70, threadgroup=32)
    assert lines == [f"thread {i}: {k}" for i in range(70) for k in (0, 1)]


def test_in_a_grid_of_two_dimensions_the_position_has_two(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = compiled('os_log_default.log("here");')
    assert printed(capsys, kernel, 2, grid=(2, 2)) == [f"thread ({x}, {y}): here" for y in (0, 1) for x in (0, 1)]


@pytest.mark.parametrize(("format", "values", "text"), [
    ("%d %i %u", "-3, short(-4), 5u", "-3 -4 5"),
    ("%5.2f|%-6d|%+d|%06.1f", "1.5, 7, 7, 2.25", " 1.50|7     |+7|0002.2"),
    ("%x %X %o %c", "255, 255u, 8, 65", "ff FF 10 A"),
    ("%g %e %f", "half(0.5), 1e10f, bfloat(2)", "0.5 1.000000e+10 2.000000"),
    ("%v4f", "float4(1, 2, 3, 4)", "1.000000,2.000000,3.000000,4.000000"),
    ("%v2d %v3hu", "int2(-1, 2), ushort3(1, 2, 3)", "-1,2 1,2,3"),
    ("100%% %s", '"done"', "100% done"),
    ("%ld %lu", "long(-1) << 40, ulong(1) << 40", "-1099511627776 1099511627776"),
    ("%d %d", "true, uchar(200)", "1 200"),
    ("%u %lx %llx", "-1, long(-1), long(-2)", "4294967295 ffffffffffffffff fffffffffffffffe"),
    ("%hx %hhx %v2hhu %#o", "short(-1), char(-1), char2(-1, 1), 8", "ffff ff 255,1 010"),
    ("%c%c|%3c", "'%', '%', char(-23)", "%%|  é"),
    ("%a %A %9a|%a", "1.5f, 10.0f, 1.0f, 0.0f", "0x1.8p+0 0X1.4P+3    0x1p+0|0x0p+0"),
    ("%5s|%-5s|%.2s|%s", '"abc", "abc", "abc", "50%%"', "  abc|abc  |ab|50%%"),
])  # fmt: skip
def test_formats_are_cs_and_vectors(capsys: pytest.CaptureFixture[str], format: Any, values: Any, text: Any) -> None:
    kernel = compiled(f'if (t == 1) os_log_default.log_info("{format}", {values});')
    assert printed(capsys, kernel) == [f"thread 1: {text}"]


def test_printf_is_a_metalnb_extension_and_needs_ifdef_metalnb(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = compiled('#ifdef METALNB\nprintf("x = %f\\n", x[p.x]);\n#else\nno such thing\n#endif')
    assert printed(capsys, kernel, 1) == ["thread 0: x = 0.000000"]
    with pytest.raises(CompileError, match="'printf' does not exist in Metal") as caught:
        compiled('printf("x");')
    assert "behind #ifdef METALNB" in str(caught.value)


def test_helpers_macros_templates_and_user_defined_logs_print(capsys: pytest.CaptureFixture[str]) -> None:
    before = (
        'constant os_log mine("com.example", "kernels");\n'
        'template <class T> void tell(T v) { mine.log_debug("told %d", int(v)); }\n'
        "#define SAY(...) os_log_default.log(__VA_ARGS__)\n"
    )
    kernel = compiled('if (t == 0) { tell(x[p.x + 1]); SAY("%u", 7u); }', before)
    assert printed(capsys, kernel) == ["thread 0: told 1", "thread 0: 7"]


def test_without_an_output_the_kernel_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a Windows program without a console."""
    kernel = compiled('os_log_default.log("%u", p.x);')
    monkeypatch.setattr("sys.stdout", None)
    assert kernel(np.ones(3, np.float32), grid=3).tolist() == [1, 1, 1]


def test_truncated_entries_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = compiled('os_log_default.log("%u", p.x);')
    lines = printed(capsys, kernel, 40_000)
    assert lines[0] == "thread 0: 0"
    assert lines[MAX_LINES - 1] == f"thread {MAX_LINES - 1}: {MAX_LINES - 1}"
    assert lines[MAX_LINES:] == [f"… and {40_000 - MAX_LINES:,} more lines"]


def test_printing_does_not_change_results(capsys: pytest.CaptureFixture[str]) -> None:
    """In divergent loops and branches, beside SIMD functions and barriers, and with an argument that has an effect."""
    text = """#include <metal_stdlib>
#include <metal_logging>
using namespace metal;
kernel void k(device const uint* x, device uint* out, uint i [[thread_position_in_grid]],
              uint t [[thread_position_in_threadgroup]]) {
    threadgroup uint shared[64];
    uint n = x[i], sum = 0;
    for (uint k = 0; k < i % 3; ++k) { LOG("%u", n++); sum += simd_sum(n); }
    shared[t] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t & 1) LOG("%u", shared[t ^ 1]);
    out[i] = n * 1000003 + shared[t ^ 1];
}"""
    x = np.arange(128, dtype=np.uint32) * 7
    logging = mnb.compile(text.replace("LOG(", "os_log_default.log("), engine="cpu").k(x, threadgroup=64)
    lines = capsys.readouterr().out.splitlines()
    quiet = mnb.compile(text.replace('LOG("%u", ', "(void)("), engine="cpu").k(x, threadgroup=64)
    assert capsys.readouterr().out == ""
    assert np.array_equal(logging, quiet)
    shared = [[i for i in range(start, start + 32) if i % 3 > k] for start in range(0, 128, 32) for k in (0, 1)]
    sums = [0] * 128
    for place, lanes in enumerate(shared):
        for lane in lanes:
            sums[lane] += sum(7 * i + place % 2 + 1 for i in lanes)
    assert logging.tolist() == [(7 * i + i % 3) * 1000003 + sums[i ^ 1] & 0xFFFFFFFF for i in range(128)]
    own = [[7 * i + k for k in range(i % 3)] + ([sums[i ^ 1]] if i & 1 else []) for i in range(128)]
    assert lines == [f"thread {i}: {value}" for i, values in enumerate(own) for value in values]


@pytest.mark.parametrize(("call", "message", "at"), [
    ('log("%f", t)', "'%f' takes a float or half; this is uint", "t)"),
    ('log("%d", x[0])', "'%d' takes an integer; this is float", "x[0]"),
    ('log("%d %d", t)', "the format has 2 conversions, and 1 value follows", '"%d'),
    ('log("no", t)', "the format has no conversions, and 1 value follows", '"no'),
    ('log("%f", float2(1))', "'%f' takes a float or half; this is float2", "float2"),
    ('log("%v4f", float2(1))', "'%v4f' takes a vector of 4: each a float or half; this is float2", "float2"),
    ('log("%q", t)', "'%q' in the format is not a conversion", '"%q'),
])  # fmt: skip
def test_a_format_that_does_not_fit_is_an_error_at_its_place(call: Any, message: Any, at: Any) -> None:
    line = f"    os_log_default.{call};"
    with pytest.raises(CompileError) as caught:
        compiled(line)
    (found,) = caught.value.diagnostics
    assert found.message == message
    assert found.text == line
    assert found.column == line.index(at, line.index("log(")) + 1
    assert found.hint


def test_without_its_header_a_log_is_refused_with_the_cure() -> None:
    with pytest.raises(CompileError, match="'os_log_default' is declared in <metal_logging>"):
        compiled('os_log_default.log("x");', head="#include <metal_stdlib>\nusing namespace metal;\n")


def test_a_gpu_does_not_print(monkeypatch: pytest.MonkeyPatch) -> None:
    from metalnb.program.printing_check import refuse_unseen_prints

    class Gpu:
        name = "metal:metalcompute"
        caps = Caps("a GPU", {})

    class LoggingGpu(Gpu):
        caps = Caps("a GPU", {}, prints=True)

    def refused(body: str, engine: Any) -> list[Any]:
        try:
            refuse_unseen_prints({"k": compiled(body).unit}, engine)
        except CompileError as error:
            return error.diagnostics
        return []

    log, own = '  os_log_default.log("x");', '#ifdef METALNB\n  printf("x");\n#endif'
    (found,) = refused(f"uint z = 0;\n{log}\n(void)z;", Gpu())
    assert found.message == "the engine 'metal:metalcompute' cannot show what a kernel prints"
    assert found.text == log
    assert 'mnb.use("cpu")' in found.hint
    assert len(refused(own, Gpu())) == len(refused(own, LoggingGpu())) == 1  # Metal has no such function
    assert refused(log, LoggingGpu()) == []
    assert refused("", Gpu()) == []


def test_logarithm_is_not_mistaken_for_os_log(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = compiled("float y = log(x[p.x] + 1); (void)y;", engine="cpu")
    assert kernel.engine.name == "cpu"
    assert printed(capsys, kernel) == []
