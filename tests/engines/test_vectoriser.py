"""The vectoriser: LLVM's text as it is read, shapes, forms, and the kernels that it once got wrong.

That whole kernels are right in vector registers is what the tests of the language and of the ops show on the engine
`native`, and the random kernels of tests/fuzz.
"""

import ctypes
import re
from collections.abc import Callable

import numpy as np
import pytest

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.llvm.llvm_lines import lines_of
from metalnb.engine.llvm.llvm_reader import read
from metalnb.engine.llvm.llvm_types import MemoryLayout, UnreadText, type_of
from metalnb.engine.native import toolchain
from metalnb.engine.native.lanes import vector_build
from metalnb.engine.native.native_engine import NativeBinary
from metalnb.engine.vectoriser.shape_analysis.reducible_flow import ControlFlow
from metalnb.engine.vectoriser.simd_forms import SimdForm, form_for
from metalnb.engine.vectoriser.vectorise import asks_for_simdgroup, vectorise

HEAD = "#include <metal_stdlib>\n#include <metal_logging>\nusing namespace metal;\n"
ROW = SimdForm(32, flat=False, full=True, grid_even=True, index_even=True)


@pytest.fixture(scope="module", autouse=True)
def native() -> None:
    try:
        engines.named("native")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def kernel(body: str, given: str = "device const float* x, device float* o", math: str = "fast") -> mnb.Kernel:
    text = f"""{HEAD}kernel void f({given}, uint i [[thread_position_in_grid]],
        uint t [[thread_position_in_threadgroup]], uint l [[thread_index_in_simdgroup]]) {{ {body} }}"""
    return mnb.compile(text, engine="native", math=math)["f"]


# ---- LLVM's text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [
    "  %1 = frobnicate i32 0, 1", "  %1 = add i32 0", "  %1 = load <4 y float>, ptr %0", "  switch i32 0, nowhere",
])  # fmt: skip
def test_a_line_that_is_not_understood_is_named(line: str) -> None:
    with pytest.raises(UnreadText, match=f"not understood: {line.strip().split(' ')[0]}"):
        read(f"define void @f(ptr %0) {{\n{line}\n  ret void\n}}\n")


def test_instructions_have_named_operands() -> None:
    text = """%"struct.S" = type { i8, <3 x float>, [2 x i16] }
define hidden void @f(ptr noundef readonly captures(none) %0, i32 noundef range(i32 0, 32) %1) local_unnamed_addr #0 {
  %3 = getelementptr inbounds nuw %"struct.S", ptr %0, i64 0, i32 2, i64 1
  %4 = load atomic i32, ptr %3 syncscope("agent") monotonic, align 4, !tbaa !3
  %5 = tail call nsz noundef float @llvm.fmuladd.f32(float 1.0, float noundef 2.0, float -0.0) #4, !dbg !9
  switch i32 %1, label %6 [
    i32 0, label %7
    i32 -3, label %6
  ]

6:                                                ; preds = %2, %2
  br label %7

7:                                                ; preds = %6, %2
  %8 = phi i32 [ %4, %2 ], [ undef, %6 ]
  ret void
}
"""
    function = read(text).functions["f"]
    first, load, call, switch = function.blocks["%2"]
    assert [p.text for p in function.parameters] == ["%0", "%1"]
    assert (first.element and first.element.text, len(first.operands)) == ('%"struct.S"', 4)
    assert (load.ordering, load.alignment, load.pointer.text) == ("monotonic", 4, "%3")
    assert (call.word, call.place) == ("llvm.fmuladd.f32", "!dbg !9")
    assert [o.text for o in call.operands] == ["1.0", "2.0", "-0.0"]
    assert (switch.cases, switch.targets) == (["0", "-3"], ["%6", "%7", "%6"])
    assert function.blocks["%7"][0].targets == ["%2", "%6"]


def test_a_text_is_read_for_some_instructions_alone() -> None:
    lines = [
        '@s = constant [9 x i8] c"  sdiv i32"', "define void @f(i32 %0) {", "  %1 = frobnicate i32 0, 1",
        '  %"a = sdiv" = udiv exact <2 x i32> %x, splat (i32 3), !nosanitize !{}, !dbg !7', "  %2 = sdivided i32 %0",
        "  switch i32 %0, label %3 [", "    i32 0, label %3", "  ]", "  %4 = tail call i32 @sdiv(i32 %0) #2", "}",
    ]  # fmt: skip
    found = list(lines_of("\n".join(lines), frozenset({"sdiv", "udiv"})))
    assert [line for line, _ in found] == lines
    (made,) = [made for _, made in found if made]
    assert (made.result, made.opcode, made.flags, str(made.type)) == ('%"a = sdiv"', "udiv", ("exact",), "<2 x i32>")
    assert [o.text for o in made.operands] == ["%x", "splat (i32 3)"]
    assert (made.metadata, made.beside) == (", !nosanitize !{}, !dbg !7", ", !dbg !7")
    with pytest.raises(UnreadText, match="not understood: %1 = sdiv i32 %0"):
        list(lines_of("  %1 = sdiv i32 %0", frozenset({"sdiv"})))


def test_a_layout_is_cs() -> None:
    class Inner(ctypes.Structure):
        _fields_ = [("a", ctypes.c_uint8), ("b", ctypes.c_uint64), ("c", ctypes.c_uint16)]

    class Outer(ctypes.Structure):
        _fields_ = [("x", ctypes.c_uint16), ("y", Inner * 3), ("z", ctypes.c_float)]

    layout = MemoryLayout({"%Inner": type_of("{ i8, i64, i16 }")})
    outer = type_of("{ i16, [3 x %Inner], float }")
    assert layout.size(outer) == ctypes.sizeof(Outer)
    assert [layout.field(outer, i)[0] for i in range(3)] == [Outer.x.offset, Outer.y.offset, Outer.z.offset]
    assert layout.field(type_of("<{ i8, i32 }>"), 1)[0] == 1
    assert [layout.size(type_of(t)) for t in ("<3 x float>", "<4 x i1>", "i1", "[5 x <2 x half>]")] == [16, 1, 1, 20]


# ---- Shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "gathers"), [
    ("o[i] = x[i];", 0),
    ("o[i] = x[i + 1] + x[i - 1];", 0),  # under a guard: the index may wrap
    ("o[i] = x[2 * i + 1];", 0),
    ("o[i] = x[i & 63];", 0),
    ("o[i] = x[i / 32] + x[i % 4096];", 0),
    ("o[i] = x[int(i) - 7];", 0),
    ("o[i] = x[as_type<uint>(x[0]) + i];", 0),
    ("o[i] = t < 64 ? x[i] : x[i + 1];", 0),
    ("o[i] = x[i & 15];", 1),
    ("o[i] = x[8 * i];", 1),
    ("o[as_type<uint>(x[i])] = 1;", 1),
    ("for (uint k = 0; k < i; ++k) o[i] += x[k];", 0),
    ("uint k = 0; while (x[k] > i) ++k; o[k] = 1;", 1),  # lanes leave the loop at different iterations
    ("float own[8]; for (int k = 0; k < 8; ++k) own[k] = x[k + i]; o[i] = own[int(x[i]) & 7];", 1),
])  # fmt: skip
def test_only_what_is_apart_is_gathered(body: str, gathers: int) -> None:
    module = read(vector_build.thread_text(kernel(body).unit))
    assert len(vectorise(module, ROW, vector_build.machine()).gathers) == gathers


@pytest.mark.parametrize(("body", "math", "used"), [
    ("o[i] = rsqrt(x[i]);", "fast", "rsqrt14.ps.512"),
    ("o[i] = x[i + 1] / sqrt(x[i]);", "fast", "rsqrt14.ps.512"),
    ("o[i] = x[i + 1] / sqrt(x[i]);", "precise", ""),
    ("o[i] = uint(x[i]) / uint(x[i + 1]);", "precise", "rcp14.pd.512"),
    ("o[i] = uint(x[i]) / uint(x[0]);", "fast", ""),  # one scalar division
])  # fmt: skip
@pytest.mark.parametrize("march", ["x86-64-v4", "x86-64-v3"])
def test_a_processors_estimates_are_used_where_they_are_good(body: str, math: str, used: str, march: str) -> None:
    flags = (*toolchain.flags_for("x86_64-linux-gnu"), f"-march={march}")
    unit = kernel(body, math=math).unit
    made = vector_build.vectorised(read(vector_build.thread_text(unit, flags=flags)), ROW, flags)
    assert set(re.findall(r"@llvm\.x86\.avx512\.(\S+?)\(", made.text)) == {used if march == "x86-64-v4" else ""} - {""}
    assert vector_build.object_of(made, unit, flags)


# ---- Forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("grid", "threadgroup", "simd", "width", "flat", "full"), [
    ((1024, 1, 1), (256, 1, 1), True, 32, False, True),
    ((1000, 1, 1), (256, 1, 1), True, 32, False, False),
    ((77, 1, 1), (77, 1, 1), True, 32, False, False),
    ((64, 64, 1), (16, 16, 1), False, 16, False, True),
    ((64, 64, 1), (16, 16, 1), True, 32, True, True),
    ((60, 60, 1), (16, 16, 1), True, 32, True, False),
    ((512, 256, 1), (32, 8, 1), True, 32, False, True),
    ((500, 256, 1), (32, 8, 1), True, 32, True, False),
    ((8, 8, 8), (4, 4, 4), False, 32, True, True),
    ((48, 48, 1), (24, 4, 1), False, 8, False, True),
    ((1, 1, 1), (1, 1, 1), False, 8, False, False),
])  # fmt: skip
def test_rows_are_taken_as_they_are(
    grid: tuple, threadgroup: tuple, simd: bool, width: int, flat: bool, full: bool,
) -> None:  # fmt: skip
    form = form_for(grid, threadgroup, simd=simd)
    assert (form.width, form.flat, form.full) == (width, flat, full)


@pytest.mark.parametrize("threadgroup", [(32, 4), (16, 16), (7, 5), (64, 2), (3, 40), (10, 1), (1, 33), (24, 3)])
@pytest.mark.parametrize("grid", [(64, 16), (50, 33), (1, 1)])
@pytest.mark.parametrize("simd", [True, False])
def test_every_thread_stands_where_it_should(grid: tuple, threadgroup: tuple, simd: bool) -> None:
    program = mnb.compile(f"""{HEAD}
        kernel void f(device uint* o, uint2 p [[thread_position_in_grid]], uint2 n [[threads_per_grid]],
                      uint2 t [[thread_position_in_threadgroup]], uint i [[thread_index_in_threadgroup]],
                      uint l [[thread_index_in_simdgroup]], uint2 s [[threads_per_threadgroup]]) {{
            o[p.y * n.x + p.x] = t.x + 100 * t.y + (i == t.y * s.x + t.x ? 0 : 7777777)
                + 100000 * ({"simd_sum(1u) + 100 * (l != i % 32)" if simd else "1"});
        }}""", engine="native")  # fmt: skip
    out = np.zeros((grid[1], grid[0]), np.uint32)
    program.f(out, grid=grid, threadgroup=threadgroup)
    y, x = np.indices(out.shape)
    want = x % threadgroup[0] + 100 * (y % threadgroup[1])
    active = 1
    if simd:
        across = np.minimum(threadgroup[0], grid[0] - x // threadgroup[0] * threadgroup[0])
        down = np.minimum(threadgroup[1], grid[1] - y // threadgroup[1] * threadgroup[1])
        index = y % threadgroup[1] * across + x % threadgroup[0]
        active = np.minimum(32, across * down - index // 32 * 32)
    assert np.array_equal(out, want + 100000 * active)


# ---- Kernels that were wrong once, each from a random kernel ---------------------------------------------------------

LONGS = np.random.default_rng(1).integers(-5, 5, 64)
LONGS[1] = 3
ARGUMENTS = """device uint* out, device const long* b, device const float* f, device const uchar* c,
    uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]"""

# The kernels to which the reducer of tests/fuzz brought random ones: what was wrong, the body, what thread i writes.
WRONG_ONCE: dict[str, tuple[str, Callable[[int], int]]] = {
    "lanes that leave an inner loop one by one for the outer loop's next iteration": ("""
        half v1 = half(0);
        uint z14 = 0;
        while (((2l > b[1u & 63]) || (1l < b[lid & 63])) && z14++ < 7u) {
            for (uint k4 = 0; k4 < (lid % 16u); k4 += 3) {
                if ((((b[1u & 63] <= 1l) ? half(1) : v1) != half(1))) v1 = half(1024);
                if ((half(1) >= v1)) return;
            }
        }
        out[i] = 1u;""", lambda _: 1),
    "a value that is uniform after the inner loop and varying after the outer": ("""
        ushort v11 = ushort(127);
        for (ushort k16 = 0; k16 < ushort(lid); k16 += 2)
            for (uint k17 = 0; k17 <= 1u; k17++) if (1.0f <= f[1u & 63]) v11 = ushort(1);
        out[i] = v11;""", lambda lane: 1 if lane else 127),
    "a component that nobody set, in a word with others": ("""
        uchar3 v15 = (uchar3(uchar(1), uchar(1), c[i & 63]) - uchar3(uchar(31), uchar(127), uchar(127)));
        v15.x = uchar(1);
        out[i] = v15.x * 7u + v15.y * 5u + v15.z;""", lambda lane: 7 + (1 - 127) % 256 * 5 + (lane - 127) % 256),
    "the low bits of a number that falls from lane to lane": ("""
        ushort2 v6 = ushort2(ushort(40229), ushort(32767));
        v6.y = ushort(~ushort(0));
        ushort v9 = v6.y;
        v9 ^= ushort(uint(v6.y) + uint(ushort(i)));
        out[i] = v9;""", lambda lane: 0xFFFF ^ (0xFFFF + lane) & 0xFFFF),
    "an array of a thread's own, by its lane": ("""
        ushort w24[8];
        for (uint j = 0; j < 8; ++j) w24[j] = ushort(uint(ushort(1)) + j);
        out[i] = w24[lid & 7];""", lambda lane: 1 + lane % 8),
    "an alignment for which the type has too few bits": ("""
        ushort v2 = ushort(uint(ushort(lid)) << 15);
        ushort v4 = ushort(simd_max(v2));
        v4 = ushort(uint(v4) - uint(v2));
        out[i] = v4;""", lambda lane: 0 if lane % 2 else 32768),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_ONCE)
@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("threads", [64, 7])
def test_what_was_wrong_once(name: str, math: str, threads: int) -> None:
    body, want = WRONG_ONCE[name]
    text = f"{HEAD}kernel void k({ARGUMENTS}) {{ {body} }}"
    out = np.zeros(threads, np.uint32)
    given = (LONGS, np.full(64, 2, np.float32), np.arange(64, dtype=np.uint8))
    mnb.compile(text, engine="native", math=math).k(out, *given, grid=threads, threadgroup=threads)
    assert out.tolist() == [want(i) for i in range(threads)]


def test_a_block_without_active_lanes_sets_no_scalar() -> None:
    """It did so where it was so short that jumping over it did not pay: the last predecessor's value was taken."""
    add = mnb.compile(f"""{HEAD}
        kernel void f(device const float* x, constant uint& n, device atomic_uint* cells,
                      uint size [[threads_per_threadgroup]]) {{
            float v = x[1];
            atomic_fetch_add_explicit(&cells[n & 1],
                uint((((half(v) != half(6.0e-8f)) && (x[size & 63] >= 1.0f)) ? 1u : n)), memory_order_relaxed);
        }}""", engine="native").f  # fmt: skip
    for second, edge, each in ((0, 2, 1), (0, 0, 3), (6.0e-8, 2, 3)):
        x, cells = np.full(64, edge, np.float32), np.zeros(2, np.uint32)
        x[1] = second
        add(x, np.uint32(3), cells, grid=100, threadgroup=64)
        assert cells.tolist() == [0, 100 * each]


def test_an_inner_loop_may_lead_back_into_another() -> None:
    """Where lanes go on from its exit is where they leave the other; postdominators were looked for in a circle."""
    text = """define void @metalnb_thread(i1 %0, i1 %1) {
  br label %a
a:
  br label %b
b:
  br i1 %1, label %c, label %e
c:
  br i1 %0, label %c, label %b
e:
  br i1 %0, label %a, label %f
f:
  ret void
}
"""
    flow = ControlFlow(read(text).functions["metalnb_thread"])
    assert {label: flow.equivalent(label) for label in ("%b", "%c", "%e", "%f")} == {
        "%b": "%a", "%c": None, "%e": "%a", "%f": "%2",
    }  # fmt: skip


# ---- What runs a thread at a time ------------------------------------------------------------------------------------


INTO_A_LOOP = """int k = int(x[i]);
    switch (k & 3) { case 0: do { o[i] += 1; case 1: o[i] += 2; case 2: o[i] *= 3; } while (--k > 0); }"""


@pytest.mark.parametrize(("body", "reason"), [
    ("float own[20000]; for (int k = 0; k < 20000; ++k) own[(k * 7 + i) % 20000] = k; o[i] = own[i];",
     "its own variables take 80000 bytes of a thread"),
    ('os_log_default.log("%f", x[i]); o[i] = 1;', "a call of metalnb_print"),
    (INTO_A_LOOP, "irreducible"),
])  # fmt: skip
def test_what_is_not_vectorised_says_why(body: str, reason: str) -> None:
    binary = engines.named("native").compile(kernel(body).unit)
    assert isinstance(binary, NativeBinary)
    assert reason in binary.reason


def test_a_card_says_how_a_kernel_runs() -> None:
    program = mnb.compile(f"""{HEAD}
        float pick(device const float* x, uint k) {{
            return x[k * 7]; }}
        kernel void f(device const float* x, device float* o, uint i [[thread_position_in_grid]]) {{
            o[i] = pick(x, i) +
                x[uint(x[i])]; }}
        kernel void g(device const float* x, device float* o, uint i [[thread_position_in_grid]]) {{
            {INTO_A_LOOP} }}""", engine="native")  # fmt: skip
    x, out = np.ones(224, np.float32), np.zeros(32, np.float32)
    for name, told in {
        "f": [("runs", "32 threads in vector registers"), ("gathers", "2: line 6, line 9")],
        "g": [("runs", "a thread at a time: its control flow is irreducible: a loop with two entries, line 12")],
    }.items():
        assert not {label for label, _ in program[name].card.facts} & {"runs", "gathers"}  # nothing is compiled yet
        program[name](x, out, grid=32)
        assert program[name].card.facts == told


def test_irreducible_flow_is_right_all_the_same() -> None:
    x = np.arange(40, dtype=np.float32) % 9
    out = np.zeros(40, np.float32)
    kernel(INTO_A_LOOP)(x, out, grid=40)

    def ran(k: int) -> np.float32:
        o, at = np.float32(0), k & 3
        if at == 3:
            return o
        while True:
            o = np.float32(o + 1) if at == 0 else o
            o = np.float32(o + 2) if at <= 1 else o
            o, at, k = np.float32(o * 3), 0, k - 1
            if k <= 0:
                return o

    assert out.tolist() == [ran(int(k)) for k in x]


def test_only_kernels_that_name_their_simdgroup_need_32_lanes() -> None:
    for body, asks in (("o[i] = x[t];", False), ("o[i] = x[l];", True), ("o[i] = simd_max(x[i]);", True)):
        assert asks_for_simdgroup(read(vector_build.thread_text(kernel(body).unit))) == asks
