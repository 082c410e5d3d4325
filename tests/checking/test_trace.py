"""`mnb.trace`: one threadgroup's lines, variables, memory and lockstep, compared with NumPy and the source."""

import json
from typing import Any

import numpy as np
import pytest
from checking.traced_build import TRACED

import metalnb as mnb
from metalnb.errors import ArgumentError

pytestmark = TRACED


PLAIN = "device const float* x, device float* out"


def compiled(body: str, before: str = "", params: str = PLAIN, **options: Any) -> Any:
    text = f"""#include <metal_stdlib>
using namespace metal;
{before}
kernel void k({params}, uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {{
{body}
}}"""
    program = mnb.compile(text, **options)
    return program.k, text.split("\n").index(body.split("\n", maxsplit=1)[0]) + 1


def steps(trace: Any, thread: Any = 0) -> Any:
    return trace.threads[thread]


def lines(trace: Any, first: Any, thread: Any = 0) -> Any:
    """Return the lines that a thread executed, counted from the kernel's first statement."""
    return [s.line - first for s in steps(trace, thread)]


X = np.arange(64, dtype=np.float32)


def test_each_statement_of_a_plain_kernel_is_a_step_with_the_variables_before_it() -> None:
    kernel, first = compiled("float a = x[i];\nfloat b = a * 2, c;\nc = b + 1;\na += c;\nout[i] = a;")
    stepper = mnb.trace(kernel, X, np.zeros(64, np.float32), thread=5, threadgroup=32)
    assert stepper.thread == 5
    assert lines(stepper, first, 5) == [0, 1, 2, 3, 4, 5]
    values = [{k: v for k, v in s.variables.items() if k in {"a", "b", "i"}} for s in steps(stepper, 5)]
    assert values == [{"i": 5}, {"i": 5, "a": 5}, *[{"i": 5, "a": 5, "b": 10}] * 2, *[{"i": 5, "a": 16, "b": 10}] * 2]
    assert steps(stepper, 5)[2].variables.keys() - steps(stepper, 5)[1].variables.keys() == {"b", "c"}


def test_a_division_by_0_does_not_end_the_process() -> None:
    kernel, _ = compiled("int a = 7 / int(x[i]);\nout[i] = a;")
    stepper = mnb.trace(kernel, X, np.zeros(64, np.float32), threadgroup=2)
    assert [steps(stepper, thread)[1].variables["a"] for thread in (0, 1)] == [7, 7]


def test_loops_and_branches_without_braces_are_traced_per_iteration() -> None:
    kernel, first = compiled(
        "float s = 0;\nfor (uint k = 0; k < 3; ++k)\nif (k % 2 == 0)\ns += k;\nelse\ns -= 1;\nout[i] = s;"
    )
    stepper = mnb.trace(kernel, X, np.zeros(64, np.float32), threadgroup=1)
    assert lines(stepper, first) == [0, 1, 2, 3, 1, 2, 5, 1, 2, 3, 1, 6, 7]
    assert [s.variables["k"] for s in steps(stepper) if s.line - first == 1] == [0, 1, 2, 3]
    assert steps(stepper)[-1].variables["s"] == 1
    assert "k" not in steps(stepper)[-1].variables


@pytest.mark.parametrize(("loop", "expected"), [
    ("while (s < 2)\ns += 1;", [0, 1, 2, 1, 2, 1, 3, 4]),
    ("do\ns += 1;\nwhile (s < 2);", [0, 2, 3, 2, 3, 4, 5]),
    ("for (;;) {\nif (s > 1) break;\ns += 1; }", [0, 1, 2, 1 + 2, 1, 2, 3, 1, 2, 2, 4, 5]),
    ("for (int j = 0; int k = 2 - j; ++j) {\ns += k; }", [0, 1, 2, 1, 2, 3, 4]),
    ("#pragma unroll\nfor (int j = 0; j < 2; ++j)\ns += 1;", [0, 2, 3, 2, 3, 2, 4, 5]),
    ("if (s < 1)\n#pragma unroll\nfor (int j = 0; j < 1; ++j)\ns += 1;", [0, 1, 3, 4, 3, 5, 6]),
    ("#pragma unroll\nwhile (int j = 1 - int(s)) {\ns += j; }", [0, 2, 3, 4, 5]),
    ("if (s < 1) [[likely]] {\ns += 1;\n}", [0, 1, 2, 4, 5]),
    ("switch (uint(s)) {\ncase 0: s = 4; break;\ndefault: s = 7; }", [0, 1, 2, 2, 4, 5]),
])  # fmt: skip
def test_every_kind_of_statement_is_traced_line_by_line(loop: Any, expected: Any) -> None:
    kernel, first = compiled(f"float s = 0;\n{loop}\nout[i] = s;")
    assert lines(mnb.trace(kernel, X, np.zeros(64, np.float32), threadgroup=1), first) == expected


def test_helpers_templates_references_and_lambdas_are_entered() -> None:
    before = (
        "template <class T> T twice(T v) { T w = v; return w + w; }\n"
        "void bump(thread float& v, constant float& by) { v += by; }\n"
    )
    kernel, first = compiled(
        "float a = x[i];\na = twice(a);\nbump(a, by);\nauto f = [&](float q) { return q * a; };\nout[i] = f(2);",
        before, "device const float* x, device float* out, constant float& by",
    )  # fmt: skip
    stepper = mnb.trace(kernel, X, np.zeros(64, np.float32), 10, thread=3, threadgroup=32)
    own = steps(stepper, 3)
    assert [s.function for s in own if s.function != "k"] == ["twice", "twice", "bump", "bump", "lambda"]
    inside = [s for s in own if s.function == "twice"]
    assert [s.variables for s in inside] == [{"v": 3}, {"v": 3, "w": 3}]
    assert {own[s.caller].line - first for s in inside} == {1}
    assert [s.variables["v"] for s in own if s.function == "bump"] == [6, 16]
    assert own[-1].touched == ()
    assert stepper.at(stepper.ticks, "out")[0][3] == 32


def test_structs_vectors_arrays_and_pointers_have_their_values() -> None:
    kernel, _ = compiled(
        "P p = {float2(1, 2), {1, 2, 3}};\nfloat3 v = float3(i, 1, 2);\nhalf h = 0.5h;\nbool b = true;\n"
        "device const float* q = x + 7;\nint m[2][2] = {{1, 2}, {3, 4}};\nfloat2x2 f = float2x2(1);\np.k[1] = -9;\n"
        "out[i] = p.a.x + v.y + h + b + *q + m[1][1] + f[0][0] + p.k[1];",
        "struct P { float2 a; int k[3]; };",
    )  # fmt: skip
    stepper = mnb.trace(kernel, X, np.zeros(64, np.float32), thread=2, threadgroup=32)
    last = steps(stepper, 2)[-1].variables
    assert last["p"] == {"a": (1, 2), "k": (1, -9, 3)}
    assert (last["v"], last["h"], last["b"], last["q"]) == ((2, 1, 2), 0.5, True, "&x[7]")
    assert (last["m"], last["f"]) == (((1, 2), (3, 4)), ((1, 0), (0, 1)))


def test_a_struct_has_the_fields_of_its_bases() -> None:
    kernel, _ = compiled(
        "Q q;\nq.a = 1;\nq.b = 2;\nq.c = 3;\nout[i] = q.a + q.b + q.c;",
        "struct A { int a; };\nstruct B { short b; };\nstruct Q : A, B { float c; };",
    )
    stepper = mnb.trace(kernel, X, np.zeros(64, np.float32), threadgroup=1)
    assert steps(stepper)[-1].variables["q"] == {"a": 1, "b": 2, "c": 3}


TREE = """threadgroup float part[64];
part[t] = x[i];
threadgroup_barrier(mem_flags::mem_threadgroup);
for (uint gap = 32; gap > 0; gap /= 2) {
if (t < gap)
part[t] += part[t + gap];
threadgroup_barrier(mem_flags::mem_threadgroup);
}
if (t == 0) out[0] = part[0];"""


def test_threadgroup_memory_and_its_writers_at_each_barrier_are_numpys() -> None:
    kernel, _ = compiled(TREE)
    x = np.random.default_rng(4).integers(0, 9, 64).astype(np.float32)
    stepper = mnb.trace(kernel, x, np.zeros(1, np.float32), grid=64, threadgroup=64)
    barriers = sorted({s.tick for own in stepper.threads for s in own if s.barrier})
    assert len(barriers) == 7
    part = x.copy()
    for barrier, gap in zip(barriers, (0, 32, 16, 8, 4, 2, 1), strict=True):
        part[:gap] += part[gap : 2 * gap]
        values, writers = stepper.at(barrier, "part")
        assert values == part.tolist()
        assert writers == list(range(64))
    assert stepper.at(0, "part")[0] == [None] * 64
    assert stepper.at(stepper.ticks, "out") == ([x.sum()], [0])


def test_statement_shows_its_reads_and_writes() -> None:
    kernel, first = compiled(TREE)
    stepper = mnb.trace(kernel, np.ones(64, np.float32), np.zeros(1, np.float32), grid=64, threadgroup=64)
    step = next(s for s in steps(stepper, 1) if s.line - first == 5)
    names = [(stepper.memory[t.memory].name, t.first, t.written, t.values) for t in step.touched]
    assert sorted(names) == [("part", 1, False, (1,)), ("part", 1, True, (2,)), ("part", 33, False, (1,))]


def test_fields_of_an_element_are_listed_once() -> None:
    kernel, _ = compiled(
        "device P& p = ps[i];\nfloat3 a = p.a;\np.a = a + 1;\nps[i].b += p.a.x;",
        "struct P { packed_float3 a; float b; };", "device P* ps",
    )  # fmt: skip
    ps = np.zeros(4, kernel.program.dtype("P"))
    ps["a"] = np.arange(12).reshape(4, 3)
    stepper = mnb.trace(kernel, ps, thread=1, threadgroup=4)
    told = [line.strip() for line in str(stepper).split("\n")]
    assert told.count("reads ps[1] = {a: (3, 4, 5), b: 0}") == 1
    assert told.count("ps[1] → {a: (4, 5, 6), b: 0}") == 1
    assert [line for line in told if "→" in line] == ["ps[1] → {a: (4, 5, 6), b: 0}", "ps[1] → {a: (4, 5, 6), b: 4}"]
    page = stepper._repr_html_()
    rows = json.JSONDecoder().raw_decode(page, page.index('{"', page.rindex("metalnbStepper(")))[0]
    assert [len(step) for step in rows["touches"]["1"]] == [0, 1, 1, 2, 0]


def test_simdgroup_steps_in_lockstep_and_diverges_at_a_branch() -> None:
    kernel, first = compiled("float a = 0;\nif (t < 2) {\na = 1;\na = 2;\n}\nelse\na = 3;\nout[i] = a;")
    stepper = mnb.trace(kernel, X, np.zeros(64, np.float32), threadgroup=4)
    ticks = [{s.line - first: s.tick for s in own} for own in stepper.threads]
    assert ticks[0] == ticks[1] == {0: 0, 1: 1, 2: 2, 3: 3, 7: 5, 8: 6}
    assert ticks[2] == ticks[3] == {0: 0, 1: 1, 6: 4, 7: 5, 8: 6}


def test_lanes_converge_in_each_iteration_despite_continue() -> None:
    kernel, first = compiled(
        "float a = 0;\nfor (uint k = 0; k < 3; ++k) {\nif (t == k) continue;\na += 1;\n}\nout[i] = a;"
    )
    stepper = mnb.trace(kernel, X, np.zeros(64, np.float32), threadgroup=4)
    ticks = [[s.tick for s in own if s.line - first == 1] for own in stepper.threads]
    assert ticks[0] == ticks[1] == ticks[2] == ticks[3]
    assert len(ticks[0]) == 4


def test_a_thread_that_returns_early_ends_there() -> None:
    kernel, first = compiled("if (t > 1) return;\nout[i] = x[i];")
    stepper = mnb.trace(kernel, X, np.zeros(64, np.float32), threadgroup=4)
    assert [lines(stepper, first, t) for t in range(4)] == [[0, 1, 2], [0, 1, 2], [0, 0], [0, 0]]


def test_the_threadgroup_of_a_thread_runs_and_no_other() -> None:
    kernel, _ = compiled("out[i] = t;")
    out = np.full(70, -1, np.float32)
    stepper = mnb.trace(kernel, np.zeros(70, np.float32), out, thread=66, threadgroup=32)
    assert (stepper.group, stepper.size, stepper.thread) == ((2, 0, 0), (6, 1, 1), 2)
    assert stepper.at(stepper.ticks, "out")[0] == [-1] * 64 + [0, 1, 2, 3, 4, 5]
    assert (out == -1).all()
    assert mnb.trace(kernel, np.zeros(70, np.float32), out, group=1, threadgroup=32).group == (1, 0, 0)


def test_of_a_large_threadgroup_one_simdgroup_has_its_variables() -> None:
    kernel, _ = compiled("out[i] = x[i];")
    stepper = mnb.trace(kernel, np.ones(512, np.float32), np.zeros(512, np.float32), thread=70, threadgroup=512)
    assert [t for t, own in enumerate(stepper.threads) if own[0].variables] == list(range(64, 96))
    assert stepper.at(stepper.ticks, "out")[1] == list(range(512))


# Filling the trace takes seconds; test_validation covers how an access far outside ends a run.
@pytest.mark.long
def test_endless_loop_and_access_out_of_range_end_the_trace() -> None:
    kernel, _ = compiled("uint k = 0;\nwhile (x[0] == 0) ++k;\nout[i] = k;")
    stepper = mnb.trace(kernel, np.zeros(4, np.float32), np.zeros(4, np.float32), threadgroup=4)
    assert stepper.full
    assert "later steps are missing" in str(stepper)
    kernel, _ = compiled("device float* p = out + 100000000000ul * (t == 1);\n*p = 1;")
    stepper = mnb.trace(kernel, X[:4], np.zeros(4, np.float32), threadgroup=4)
    assert stepper.lost == (1,)


@pytest.mark.parametrize(("call", "message"), [
    ({"thread": 64}, "thread= is a position among"), ({"group": (0, 1)}, "group= is a position among"),
    ({"thread": 1, "group": 1}, "got both"), ({"thread": "a"}, "got 'a'"),
])  # fmt: skip
def test_untraceable_kernels_say_so(call: Any, message: Any) -> None:
    kernel, _ = compiled("out[i] = x[i];")
    with pytest.raises(ArgumentError, match=message):
        mnb.trace(kernel, X, np.zeros(64, np.float32), **call)
    with pytest.raises(ArgumentError, match="takes a kernel"):
        mnb.trace(3)
    with pytest.raises(mnb.LaunchError, match=r"trace: k: grid \(0, 1, 1\) is empty"):
        mnb.trace(kernel, X, np.zeros(64, np.float32), grid=0)


def test_text_and_html_show_the_same_steps() -> None:
    kernel, _ = compiled(TREE)
    stepper = mnb.trace(kernel, np.ones(64, np.float32), np.zeros(1, np.float32), grid=64, threadgroup=64)
    text = str(stepper)
    assert text.startswith("k: thread (0) of threadgroup (0), 64 threads")
    assert "part[0] → 64" in text
    assert "waits for the threadgroup" in text
    html = stepper._repr_html_()
    assert "part[0] → 64" in html.partition("<script>")[0]  # where no script runs


def test_head_has_a_coordinate_for_each_dimension_of_the_grid() -> None:
    kernel = mnb.compile("kernel void k(device float *x, uint2 i [[thread_position_in_grid]]) { x[0] = 1; }")["k"]
    for y in (0, 1):
        seen = mnb.trace(kernel, np.zeros(64, np.float32), group=(1, y), grid=(4, 2), threadgroup=(2, 1))
        assert str(seen).startswith(f"k: thread (0, 0) of threadgroup (1, {y}), 2 threads")


def test_a_kernel_written_by_a_macro_states_why_there_are_no_steps() -> None:
    head = "kernel void name(device float* out, uint i [[thread_position_in_grid]])"
    text = f"#define KERNEL(name) {head} {{ out[i] = 1; }}\nKERNEL(k)"
    stepper = mnb.trace(mnb.compile(text).k, np.zeros(4, np.float32))
    assert stepper.threads == ((), (), (), ())
    assert "No statement was recorded" in str(stepper)
    assert "No statement was recorded" in stepper._repr_html_()
    assert stepper.at(stepper.ticks, "out") == ([0] * 4, [-1] * 4)


def test_a_struct_of_the_caller_and_its_fields_keep_their_values() -> None:
    kernel, _ = compiled(
        "device P& q = p[i];\nq.b.y = i;\nout[i] = q.a + q.b.x;", "struct P { float a; float2 b; };",
        "device P* p, device float* out",
    )  # fmt: skip
    data = np.zeros(2, kernel.program.dtype("P"))
    data["a"] = 3
    stepper = mnb.trace(kernel, data, np.zeros(2, np.float32), grid=2, threadgroup=2)
    values, writers = stepper.at(stepper.ticks, "p")
    assert values == [{"a": 3, "b": (0, 0)}, {"a": 3, "b": (0, 1)}]
    assert writers == [0, 1]


MATMUL = """threadgroup float a[16][16];
a[t / 16][t % 16] = x[t];
threadgroup_barrier(mem_flags::mem_threadgroup);
float s = 0;
for (uint k = 0; k < 16; ++k)
s += a[t / 16][k] * a[k][t % 16];
out[i] = s;"""


def test_a_matrix_keeps_its_shape() -> None:
    kernel, _ = compiled(MATMUL)
    x = np.random.default_rng(5).integers(0, 5, (16, 16)).astype(np.float32)
    stepper = mnb.trace(kernel, x, np.zeros(256, np.float32), grid=256, threadgroup=256, thread=37)
    tile = next(m for m in stepper.memory if m.name == "a")
    assert (tile.shape, tile.type, tile.space) == ((16, 16), "float", "threadgroup")
    assert steps(stepper, 37)[-1].variables["s"] == (x @ x)[2, 5]
