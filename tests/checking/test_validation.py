"""Validation sees every access, reports errors, compares outputs with a reference, and changes nothing."""

import doctest
import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from interrupts import interrupted

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.cpu.validated import validated_run
from metalnb.program.host_visible import require_host_visible
from metalnb.validation import run
from metalnb.validation.twin import twin_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the validated build runs under Linux")

CELL = """
#include <metal_stdlib>
using namespace metal;

kernel void steps(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    out[i] = x[i + 1] - x[i];
}
kernel void shifted(device const float* x, device float* out, constant int& by, uint i [[thread_position_in_grid]]) {
    out[int(i) + by] = x[i];
}
kernel void before(device const float4* x, device float4* out, uint i [[thread_position_in_grid]]) {
    out[i] = x[i - 1];
}
kernel void count(device const uint* x, device uint* bins, uint i [[thread_position_in_grid]]) { bins[x[i]] += 1; }
kernel void tally(device const uint* x, device atomic_uint* bins, uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&bins[x[i]], 1u, memory_order_relaxed);
}
kernel void tally_by_sum(device const uint* x, device atomic_uint* bins, uint i [[thread_position_in_grid]]) {
    atomic_fetch_max_explicit(bins + x[i], 1u, memory_order_relaxed);
}
kernel void tally_volatile(device const uint* x, volatile device atomic_uint* bins,
                           uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&bins[x[i]], 1u, memory_order_relaxed);
}
inline void bump(device atomic_uint* b, uint k) { atomic_fetch_add_explicit(&b[k], 1u, memory_order_relaxed); }
kernel void tally_handed_on(device const uint* x, device atomic_uint* bins, uint i [[thread_position_in_grid]]) {
    bump(&bins[0], x[i]);
}
kernel void tally_in_full(device const uint* x, device metal::atomic_uint* bins, uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&bins[x[i]], 1u, memory_order_relaxed);
}
kernel void tally_moved(device const uint* x, device atomic_uint* bins, uint i [[thread_position_in_grid]]) {
    bins += x[i];
    atomic_fetch_add_explicit(bins, 1u, memory_order_relaxed);
}
kernel void turned(device float* a, uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                   uint n [[threads_per_threadgroup]]) {
    float mine = a[i];
    threadgroup_barrier(mem_flags::mem_device);
    a[i - t + n - 1 - t] = mine;
}
kernel void flat(device const float* x, device float* out, uint2 at [[thread_position_in_grid]],
                 uint2 size [[threads_per_grid]]) {
    out[at.y * size.x + at.x] = x[at.y * size.x + at.x];
}
kernel void pointed(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    device const float* p = &x[i];
    out[i] = *p;
}
kernel void copied(device const float* x, device float* o, uint i [[thread_position_in_grid]]) { o[i] = x[i]; }
kernel void next(device const float* x, device float* o, uint i [[thread_position_in_grid]]) { o[i] = x[i + 1]; }
kernel void late(device const float* x, device float* o, constant uint& from, uint i [[thread_position_in_grid]]) {
    o[i < from ? i : i - 1] = x[i];
}
struct Element { float value; };
kernel void halved(device const float* x, device float* Output, uint i [[thread_position_in_grid]]) {
    Output[i] = Element{x[i] / 2}.value;
}
template <typename T> kernel void typed(device T* x, uint i [[thread_position_in_grid]]) { x[i] = T(i); }
template [[host_name("typed_int")]] kernel void typed<int>(device int*, uint);
"""


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    return mnb.compile(CELL)


def test_a_right_kernel_passes(program: mnb.Program, rng: np.random.Generator) -> None:
    x = rng.random((5, 7), np.float32)
    report = mnb.validate(program.flat, x)
    assert (report.ok, report.findings, report.beyond, report.unwritten) == (True, (), [], {})
    assert sorted((e.thread, e.buffer, e.written, e.index) for e in report.events) == sorted(
        itertools.chain.from_iterable(((i, "x", False, i), (i, "out", True, i)) for i in range(35))
    )
    assert repr(report).startswith("flat: no fault, 7 × 5 threads, 70 accesses\n")


@pytest.mark.parametrize("n", [1, 31, 33, 257])
def test_read_past_the_end_is_reported(program: mnb.Program, n: int) -> None:
    report = mnb.validate(program.steps, np.zeros(n, np.float32))
    (event,) = report.beyond
    assert (event.thread, event.buffer, event.written, event.index) == (n - 1, "x", False, n)
    assert event in report.events
    (found,) = report.findings
    assert (found.kind, found.line, found.thread, found.name, found.index) == ("beyond", 6, n - 1, "x", n)
    has = "1 element" if n == 1 else f"{n} elements"
    assert f"line 6: thread {n - 1} reads x[{n}], beyond the end: x has {has}." in repr(report)


def test_arrays_too_short_for_the_grid_are_tried(program: mnb.Program) -> None:
    """A call refuses them if each thread takes the element at its own index; validate names the threads beyond."""
    x, out = np.zeros(30, np.float32), np.zeros(30, np.float32)
    with pytest.raises(mnb.ArgumentError, match="each of the grid's 32 threads"):
        program.copied(x, out, grid=32)
    for found in (mnb.validate(program.copied, x, out, grid=32),
                  mnb.validate(program.copied, x, out, grid=32, expected=lambda x: x)):  # fmt: skip
        assert [(f.kind, f.thread, f.name, f.index) for f in found.findings] == [
            ("beyond", 30, "x", 30), ("beyond", 30, "o", 30),
        ]  # fmt: skip
    with pytest.raises(mnb.ArgumentError, match="got an empty array"):
        mnb.validate(program.copied, x[:0], out, grid=2)


def test_write_before_the_start_is_reported_and_suppressed(program: mnb.Program) -> None:
    report = mnb.validate(program.shifted, np.zeros(9, np.float32), by=-2)
    assert [(e.thread, e.index, e.written) for e in report.beyond] == [(0, -2, True), (1, -1, True)]
    assert report.unwritten == {"out": [7, 8]}
    assert "thread 0 writes out[-2], before the start (2 times in all)." in repr(report)
    assert "out: 2 of 9 elements are never written, the first is [7]." in repr(report)


def test_an_index_that_wrapped_is_explained_and_elements_are_the_parameters(program: mnb.Program) -> None:
    report = mnb.validate(program.before, np.zeros((3, 4), np.float32))
    assert [b.size for b in report.buffers] == [3, 3]
    told = "thread 0 reads x[4294967295] (which is -1 as a uint: it went below 0), beyond the end: x has 3 elements."
    assert told in repr(report)


def test_whole_numbers_have_all_their_digits_and_a_long_index_has_not_wrapped() -> None:
    source = """
kernel void last(device uint* out, uint i [[thread_position_in_grid]]) { out[0] = 4000000000u + i; }
kernel void cut(device const float* x, device int* out, uint i [[thread_position_in_grid]]) { out[i] = int(x[i]); }
kernel void far(device const float* x, device float* out, constant ulong& n, uint i [[thread_position_in_grid]]) {
    out[i] = x[n];
}"""
    program = mnb.compile(source)
    told = "thread 1 writes out[0] = 4000000001, which thread 0 wrote as 4000000000"
    assert told in repr(mnb.validate(program.last, np.zeros(1, np.uint32), grid=2))
    x = np.full(1, 2**31, np.float32)
    assert "converts 2147483648 to an integer" in repr(mnb.validate(program.cut, x, np.zeros(1, np.int32)))
    found = repr(mnb.validate(program.far, x, np.zeros(1, np.float32), 5_000_000_000))
    assert "thread 0 reads x[5000000000], beyond the end: x has 1 element." in found


def test_threads_racing_for_an_element_are_named_with_threadgroups(program: mnb.Program) -> None:
    x = np.array([0, 1, 1, 1], np.uint32)
    apart = mnb.validate(program.count, x, np.zeros(2, np.uint32), grid=4, threadgroup=2)
    races = [f for f in apart.findings if f.kind == "race"]
    assert {(f.name, f.index) for f in races} == {("bins", 1)}
    assert {f.other.threadgroup != f.threadgroup for f in races if f.other} == {True}
    assert "nothing orders threadgroups; use an atomic, or give each thread its own element" in repr(apart)
    together = mnb.validate(program.turned, np.arange(64, dtype=np.float32), threadgroup=32)
    assert together.ok  # a barrier comes between


BARRIERS = """#include <metal_stdlib>
using namespace metal;
kernel void f(device int* x, device int* y, uint i [[thread_position_in_threadgroup]]) {
    threadgroup int s[64];
    s[i] = i;
    BODY
    y[i] = s[i];
}"""


@pytest.mark.parametrize(("body", "told"), [
    ("threadgroup_barrier(mem_flags::mem_none);\n int t = s[63 - i]; y[i] = t;",
     "which thread 63 wrote on line 5: the barrier between them orders no memory: use mem_flags::mem_threadgroup"),
    ("x[i] = i; threadgroup_barrier(mem_flags::mem_none);\n y[i] = x[63 - i];", "use mem_flags::mem_device"),
    ("threadgroup_barrier(mem_flags::mem_texture);\n s[63 - i] = 3;", "the barrier between them orders no memory"),
    ("int t = s[63 - i]; threadgroup_barrier(mem_flags::mem_none);\n y[i] = t;", "put a barrier between them"),
    ("threadgroup_barrier(mem_flags::mem_none);\n threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = s[63 - i];",
     ""),
    # The reads are over before the barrier is passed.
    ("BARRIER; int t = s[63 - i];\n threadgroup_barrier(mem_flags::mem_none); s[i] = t;", ""),
    ("threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device); y[i] = s[63 - i];", ""),
])  # fmt: skip
def test_a_barrier_with_mem_none_orders_no_memory(body: str, told: str) -> None:
    body = body.replace("BARRIER", "threadgroup_barrier(mem_flags::mem_threadgroup)")
    kernel = mnb.compile(BARRIERS.replace("BODY", body)).f
    x, y = np.zeros((2, 64), np.int32)
    report = mnb.validate(kernel, x, y, grid=64, threadgroup=64)
    assert report.ok == (not told)
    assert told in repr(report)


def test_concurrent_atomics_in_helpers_are_no_race(program: mnb.Program) -> None:
    for name in ("tally", "tally_by_sum", "tally_volatile", "tally_handed_on", "tally_in_full", "tally_moved"):
        report = mnb.validate(program[name], np.array([1, 1, 2], np.uint32), np.zeros(4, np.uint32), grid=3)
        assert (report.ok, report.unwritten) == (True, {}), report
        assert sorted(e.index for e in report.events if e.buffer == "bins") == [1, 1, 2]
        assert "bins  4 elements, 3 atomic operations" in repr(report)
        far = mnb.validate(program[name], np.full(3, 0x40000000, np.uint32), np.zeros(4, np.uint32), grid=3)
        assert {(e.thread, e.buffer, e.written) for e in far.beyond} == {(i, "bins", True) for i in range(3)}
        assert not far.ok


@pytest.mark.parametrize("name", ["pointed", "halved", "copied"])
def test_pointers_and_structs_pass_unchanged(program: mnb.Program, name: str) -> None:
    assert mnb.validate(program[name], np.ones(4, np.float32)).ok


def test_a_threadgroup_variable_has_its_own_name_beside_another_kernels() -> None:
    """Only the kernel that runs is compiled, so its variables are numbered from 0."""
    second = mnb.compile("""
kernel void first(device float* out, uint i [[thread_index_in_threadgroup]]) {
    threadgroup float alpha[64];
    alpha[i] = i;
    out[i] = alpha[i];
}
kernel void second(device float* out, uint i [[thread_index_in_threadgroup]]) {
    threadgroup float beta[64];
    beta[i] = i;
    out[i] = beta[63 - i];
}""").second
    report = mnb.validate(second, np.zeros(64, np.float32), threadgroup=64)
    assert {f.name for f in report.findings} == {"beta"}


def test_arrays_in_a_devices_memory_are_refused(program: mnb.Program) -> None:
    dispatch = program.steps.prepare(mnb.zeros(5), mnb.zeros(4))
    elsewhere = SimpleNamespace(name="gpu", caps=SimpleNamespace(shared=False))
    dispatch = dispatch._replace(kernel=SimpleNamespace(name="steps", engine=elsewhere))
    with pytest.raises(mnb.ArgumentError, match=r"trace: steps runs on engine 'gpu', which has its own memory\. Pass"):
        require_host_visible(dispatch, "trace")


def test_a_kernel_of_a_template_is_watched(program: mnb.Program) -> None:
    assert mnb.validate(program["typed_int"], np.zeros(4, np.int32)).ok


def test_nothing_given_is_changed_and_arrays_are_waited_for(program: mnb.Program) -> None:
    out = np.full(4, 7, np.float32)
    mnb.validate(program.steps, np.zeros(4, np.float32), out)
    assert out.tolist() == [7] * 4
    a = mnb.zeros(1000)
    for _ in range(20):
        a += 1
    assert mnb.validate(program.steps, a, mnb.zeros(1000)).count("x", written=False) == 1999
    assert a.tolist() == [20] * 1000


@pytest.mark.parametrize("n", [300_000, 1_000_000])
def test_log_size_changes_only_the_log(program: mnb.Program, n: int) -> None:
    right = mnb.validate(program.copied, np.zeros(n, np.float32), seconds=100)
    assert (right.ok, right.unwritten, right.left_out) == (True, {}, 0)
    assert (right.count("x", written=False), right.count("o", written=True)) == (n, n)
    assert (len(right.log), right.missed) == (1 << 16, 2 * n - (1 << 16))
    beyond = mnb.validate(program.next, np.zeros(n, np.float32), seconds=100)
    assert [(f.thread, f.index) for f in beyond.findings] == [(n - 1, n)]
    start = n - 1024 - (n - 1024) % 128
    met = mnb.validate(program.late, np.zeros(n, np.float32), threadgroup=128, seconds=100, **{"from": start})
    (race, note) = met.findings
    assert race.other
    assert (race.kind, race.thread, race.index, race.other.thread) == ("race", start, start - 1, start - 1)
    assert (note.kind, note.index, note.count) == ("missing write", n - 1, 1)


def test_of_very_many_faults_the_first_256_are_kept() -> None:
    lines = "\n".join(f"if (i == 0) y[n + {k}] = 1;" for k in range(260))
    head = "kernel void f(device float* y, constant uint& n, uint i [[thread_position_in_grid]]) {\n"
    report = mnb.validate(mnb.compile(f"{head}{lines}\ny[i] = i; }}").f, np.zeros(8, np.float32), 8, grid=8)
    assert not report.ok
    assert [(f.line, f.index) for f in report.findings] == [(2 + k, 8 + k) for k in range(256)]
    assert "260 beyond" in repr(report), "the others are counted"


def test_skipped_checks_are_reported(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validated_run, "_MAX_ACCESSES", 1 << 16)
    n = 1 << 18
    report = mnb.validate(program.next, np.zeros(n, np.float32), threadgroup=64)
    assert 0 < report.left_out < n // 64
    assert [(f.thread, f.index) for f in report.findings] == [(n - 1, n)]  # the sample includes the last threadgroup
    assert f"{report.left_out:,} of 4,096 threadgroups were not run to completion" in repr(report)
    assert max(e.thread for e in report.events) == n - 1


def test_thread_is_identified_by_its_position_in_the_grid(program: mnb.Program) -> None:
    report = mnb.validate(program.flat, np.zeros((5, 7), np.float32), threadgroup=(4, 2))
    assert {(e.thread, e.index) for e in report.events} == {(i, i) for i in range(35)}


def test_an_empty_grid_does_nothing(program: mnb.Program) -> None:
    report = mnb.validate(program.flat, np.zeros((0, 3), np.float32))
    assert (report.events, report.ok) == ([], True)


def test_non_kernels_are_refused(program: mnb.Program) -> None:
    with pytest.raises(mnb.ArgumentError, match="takes a kernel and the arguments of its call; got int"):
        mnb.validate(3)
    with pytest.raises(mnb.ArgumentError, match="float64"):
        mnb.validate(program.steps, np.zeros(4))


def test_the_card_says_what_the_text_says_and_marks_the_line(program: mnb.Program) -> None:
    report = mnb.validate(program.steps, np.zeros(4, np.float32))
    html = report._repr_mimebundle_()["text/html"]
    for part in ("<b>steps</b>", "4 threads, 12 accesses", "thread 3 reads x[4], beyond the end", "metalnb-finding"):
        assert part in html
    assert '<mark>x[i + <span class="m">1</span>]</mark>' in html
    well = mnb.validate(program.flat, np.zeros((2, 2), np.float32))._repr_mimebundle_()["text/html"]
    assert "metalnb-finding" not in well.split("</style>")[1]


# ---- Comparison with a reference.


def test_places_after_letters_of_several_bytes_are_marked() -> None:
    line = "    y[i] = /* größe → π */ x[i + 1];"
    kernel = mnb.compile(f"""kernel void shifted(device const float* x, device float* y,
        uint i [[thread_position_in_grid]]) {{
{line}
}}""").shifted
    x = np.ones(8, np.float32)
    column = line.index("x[i") + 1
    report = mnb.validate(kernel, x, x.copy())
    assert report.findings[0].column == column
    assert f"{line}\n{' ' * (column - 1)}^" in repr(report)
    assert "<mark>x[i + " in report._repr_html_()
    assert [a.column for a in mnb.profile(kernel, x, x[:7].copy(), grid=6).accesses if a.name == "x"] == [column]


def test_correct_kernel_passes_at_other_sizes(program: mnb.Program, rng: np.random.Generator) -> None:
    report = program.copied.check(rng.random(512, np.float32), expected=lambda x: x, threadgroup=128)
    assert (report.ok, report.compared, report.tried) == (True, ("o",), ("511", "65", "1"))
    assert "o is as expected, also with 511, 65, 1 threads." in repr(report)


def test_difference_names_the_writing_thread(program: mnb.Program) -> None:
    x = np.arange(100, dtype=np.float32)
    right = np.where(x >= 40, x + 1, x)
    report = program.copied.check(x, expected=right)
    (differs,) = report.differences
    assert not report.ok
    assert (differs.name, differs.index, differs.got, differs.expected) == ("o", (40,), 40.0, 41.0)
    assert (differs.thread, differs.line) == (40, CELL[: CELL.index("void copied")].count("\n") + 1)
    assert differs.wrong.tolist() == (x >= 40).tolist()
    assert differs.ulp == np.max(1 / np.spacing(right[40:]))
    assert "o[40] is 40, expected 41; thread 40 wrote it on line" in repr(report)
    assert "    " + "." * 40 + "x" * 24 in repr(report)
    assert report._repr_html_().count('class="w2"') == 61


def test_an_image_has_a_cell_for_each_pixel() -> None:
    dark = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void dark(device const uchar4* x, device uchar4* y, uint2 i [[thread_position_in_grid]]) {
        y[i.y * 5 + i.x] = x[i.y * 5 + i.x] / 2;
    }""").dark
    right = np.full((3, 5, 4), 4, np.uint8)
    right[1, 2, 3] = 5
    report = dark.check(np.full((3, 5, 4), 8, np.uint8), expected=right, grid=(5, 3))
    assert "    .....\n    ..x..\n    .....\n" in repr(report)


def test_the_padding_of_a_vector_of_three_is_not_compared() -> None:
    source = "kernel void f(device float3* out, uint i [[thread_position_in_grid]]) { out[i] = float3(i); }"
    kernel = mnb.compile(source).f
    right = np.zeros((4, 4), np.float32)
    right[:, :3] = np.arange(4)[:, None]
    out = np.full((4, 4), 7, np.float32)
    assert mnb.validate(kernel, out, grid=4, expected=right).ok
    right[2, 1] = 5
    (differs,) = mnb.validate(kernel, out, grid=4, expected=right).differences
    assert (differs.index, int(differs.wrong.sum())) == ((2, 1), 1)


def test_unwritten_elements_are_shown_distinctly(program: mnb.Program) -> None:
    report = mnb.validate(program.shifted, np.ones(8, np.float32), by=2, expected=lambda x: x)
    (differs,) = report.differences
    assert (differs.thread, differs.unwritten.tolist()) == (-1, [True, True] + 6 * [False])
    assert "no thread wrote it" in repr(report)
    assert "__......" in repr(report)


def test_a_size_that_the_threadgroup_does_not_divide_is_tried(program: mnb.Program) -> None:
    kernel = mnb.compile("""
kernel void mirrored(device const float* x, device float* o, uint t [[thread_position_in_threadgroup]],
                     uint i [[thread_position_in_grid]], uint n [[dispatch_threads_per_threadgroup]]) {
    o[i] = x[i - t + n - 1 - t];
}""").mirrored
    x = np.arange(256, dtype=np.float32)
    report = kernel.check(x, threadgroup=64, expected=lambda x: x)
    assert report.differences[0].case == ""
    turned = mnb.validate(kernel, x, threadgroup=64, expected=lambda x: np.concatenate(
        [part[::-1] for part in np.split(x, range(64, x.size, 64))]
    ))  # fmt: skip
    assert (turned.ok, turned.differences[0].case, turned.findings[0].case) == (False, "255", "255")
    assert "with 255 threads" in repr(turned)


def test_a_reference_may_write_in_place_and_take_the_names_that_it_likes(program: mnb.Program) -> None:
    def in_place(x: np.ndarray, out: np.ndarray) -> None:
        out[:-1] = x[1:] - x[:-1]

    x = np.array([1, 4, 9, 16], np.float32)
    report = program.steps.check(x, np.zeros(4, np.float32), expected=in_place)
    assert [d.index for d in report.differences] == [(3,)]
    assert program.copied.check(x, expected=np.positive).ok
    assert program.copied.check(x, expected={"o": x}).ok
    with pytest.raises(mnb.ArgumentError, match="no output 'y'; there are o"):
        program.copied.check(x, expected={"y": x})
    with pytest.raises(mnb.ArgumentError, match=r"'o' has shape \(4,\); expected has shape \(3,\)"):
        program.copied.check(x, expected=x[:3])


def test_examples_in_the_docstrings_run_as_shown() -> None:
    for documented in (run.validate, mnb.Kernel.check):
        found = doctest.DocTestFinder().find(documented, globs={})
        assert [doctest.DocTestRunner().run(test).failed for test in found] == [0]


def test_validation_can_be_interrupted_and_keeps_its_time_limit(program: mnb.Program) -> None:
    kernel = mnb.compile("""
kernel void slow(device const float* x, device float* o, uint i [[thread_position_in_grid]]) {
    float s = 0;
    for (uint k = 0; k < 4000000; ++k) s += x[k % 64];
    o[i] = s;
}""").slow
    x = np.ones(64, np.float32)
    mnb.validate(kernel, x, np.zeros(1, np.float32), seconds=0.01)  # compiled: the interrupt must not hit that
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: mnb.validate(kernel, x, np.zeros(1 << 16, np.float32), grid=1 << 16, seconds=1e6))
    report = mnb.validate(kernel, x, np.zeros(1 << 16, np.float32), grid=1 << 16, threadgroup=1, seconds=1.0)
    assert report.left_out >= (1 << 16) - 64
    assert not [f for f in report.findings if f.kind != "endless"]


def test_a_result_keeps_none_of_the_memory_that_was_watched(program: mnb.Program) -> None:
    report = mnb.validate(program.copied, np.ones(100, np.float32))
    arrays = [c.cell_contents for c in report.make_log.__closure__ or () if isinstance(c.cell_contents, np.ndarray)]
    assert [a.nbytes for a in arrays] == [16 * 200]
    assert all(a.base is None for a in arrays)


def test_a_twin_is_of_the_same_version_of_the_language() -> None:
    source = "kernel void f(device int* x) { x[0] = __METAL_VERSION__; }"
    twin = twin_of(mnb.compile(source, msl="2.4").f, f"{source} // rewritten")
    x = np.zeros(1, np.int32)
    assert twin is not None
    twin(x)
    assert x[0] == 240
