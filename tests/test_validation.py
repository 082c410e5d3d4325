"""Validation sees each access: beyond an end, of two threads at one element, of none; and it changes nothing."""

import doctest
import itertools
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb import engine as engines
from metalnb.validation import access_log, run

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
kernel void looked(device const float* x, device float* o, uint i [[thread_position_in_grid]],
                   uint n [[threads_per_grid]]) {
    o[i] = x[i];
    if (i == n - 1) o[i] += o[0];
}
kernel void far(device const float* x, device float* o, uint i [[thread_position_in_grid]],
                uint n [[threads_per_grid]]) {
    o[i] = x[i + n] + (i == n - 1 ? o[n] : 0.0f);
}
kernel void halves(device const float* x, device float* o, uint2 at [[thread_position_in_grid]],
                   uint2 size [[threads_per_grid]]) {
    o[at.y / 2 * size.x + at.x] = x[at.y * size.x + at.x];
}
kernel void nobody(device float* o) { o[0] = 1; }
struct Element { float value; };
kernel void halved(device const float* x, device float* Output, uint i [[thread_position_in_grid]]) {
    Output[i] = Element{x[i] / 2}.value;
}
template <typename T> kernel void typed(device T* x, uint i [[thread_position_in_grid]]) { x[i] = T(i); }
template [[host_name("typed_int")]] kernel void typed<int>(device int*, uint);
"""

LONG = """
#include <metal_stdlib>
using namespace metal;
kernel void most(device const uint* x, device atomic_ulong* most, uint i [[thread_position_in_grid]]) {
    atomic_max_explicit(&most[x[i]], ~0ul, memory_order_relaxed);
}"""


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(CELL)


def test_a_right_kernel_passes(program: mnb.Program, rng: np.random.Generator) -> None:
    x = rng.random((5, 7), np.float32)
    seen = mnb.validate(program.flat, x)
    assert seen.ok
    assert (seen.beyond, seen.conflicts, seen.unwritten) == ([], [], {"out": []})
    assert sorted((e.thread, e.buffer, e.written, e.index) for e in seen.events) == sorted(
        itertools.chain.from_iterable(((i, "x", False, i), (i, "out", True, i)) for i in range(35))
    )
    assert repr(seen).endswith("No access beyond an end, and no two threads at one element.")
    assert "7 × 5 threads, 70 accesses" in repr(seen)


@pytest.mark.parametrize("n", [1, 31, 33, 257])
def test_a_read_beyond_the_end_is_told(program: mnb.Program, n: int) -> None:
    seen = mnb.validate(program.steps, np.zeros(n, np.float32))
    (event,) = seen.beyond
    assert (event.thread, event.buffer, event.written, event.index) == (n - 1, "x", False, n)
    assert event in seen.events
    assert not seen.ok
    assert f"thread {n - 1} reads x[{n}], beyond the end: x has {n} elements." in repr(seen)


def test_a_write_before_the_start_is_told_and_not_made(program: mnb.Program) -> None:
    seen = mnb.validate(program.shifted, np.zeros(9, np.float32), by=-2)
    assert [(e.thread, e.index, e.written) for e in seen.beyond] == [(0, -2, True), (1, -1, True)]
    assert seen.unwritten == {"out": [7, 8]}
    assert "thread 0 writes out[-2], before the start." in repr(seen)
    assert "out: 2 of 9 elements are never written, the first is [7]." in repr(seen)


def test_an_index_that_wrapped_is_explained_and_elements_are_the_parameters(program: mnb.Program) -> None:
    seen = mnb.validate(program.before, np.zeros((3, 4), np.float32))
    assert [b.size for b in seen.buffers] == [3, 3]
    assert "thread 0 reads x[4294967295] (which is -1 as a uint), beyond the end: x has 3 elements." in repr(seen)


def test_threads_that_meet_at_an_element_are_told_by_their_threadgroups(program: mnb.Program) -> None:
    x = np.array([0, 1, 1, 1], np.uint32)
    apart = mnb.validate(program.count, x, np.zeros(2, np.uint32), grid=4, threadgroup=2)
    (conflict,) = apart.conflicts
    assert (conflict.buffer, conflict.index, conflict.writers, conflict.across) == ("bins", 1, (1, 2, 3), True)
    assert not apart.ok
    assert "bins[1] is written by threads 1, 2, 3, and they are in different threadgroups" in repr(apart)
    together = mnb.validate(program.turned, np.arange(64, dtype=np.float32), threadgroup=32)
    assert {c.across for c in together.conflicts} == {False}
    assert len(together.conflicts) == 64
    assert together.ok
    assert "correct only with a threadgroup_barrier between them. Else use an atomic." in repr(together)
    assert "Likewise 63 more of its elements." in repr(together)


def test_atomics_are_watched_and_threads_may_meet_there(program: mnb.Program) -> None:
    seen = mnb.validate(program.tally, np.array([1, 1, 2], np.uint32), np.zeros(4, np.uint32), grid=3)
    assert (seen.ok, seen.unwatched, seen.unwritten) == (True, (), {})
    assert sorted(e.index for e in seen.events if e.buffer == "bins") == [1, 1, 2]
    assert "bins  4 elements, 3 atomic operations" in repr(seen)


def test_names_of_the_authors_own_are_no_trouble(program: mnb.Program) -> None:
    assert mnb.validate(program.halved, np.ones(4, np.float32)).ok


@pytest.mark.parametrize("name", ["tally_handed_on", "tally_volatile"])
def test_atomics_that_cannot_be_followed_are_not_said_to_be_watched(program: mnb.Program, name: str) -> None:
    seen = mnb.validate(program[name], np.zeros(3, np.uint32), np.zeros(4, np.uint32), grid=3)
    assert seen.unwatched == ("bins",)


def test_an_atomic_of_eight_bytes_beyond_an_end_stays_within_the_log() -> None:
    if engines.current().caps.msl < (2, 4):
        pytest.skip("an atomic_ulong is of MSL 2.4")
    seen = mnb.validate(mnb.compile(LONG).most, np.full(3, 9, np.uint32), np.zeros(4, np.uint64), grid=3)
    assert [(e.buffer, e.index) for e in seen.beyond] == [("most", 9)] * 3
    assert len(seen.events) == 6


@pytest.mark.parametrize("name", ["tally", "tally_by_sum", "tally_in_full"])
def test_atomics_beyond_an_end_are_told_and_not_made(program: mnb.Program, name: str) -> None:
    seen = mnb.validate(program[name], np.full(3, 0x40000000, np.uint32), np.zeros(4, np.uint32), grid=3)
    assert {(e.thread, e.buffer, e.written) for e in seen.beyond} == {(i, "bins", True) for i in range(3)}
    assert not seen.ok


def test_a_write_beside_what_is_not_watched_harms_nothing_and_is_told(program: mnb.Program) -> None:
    if program.engine.name != "cpu":
        pytest.skip("the device has memory of its own")
    with pytest.raises(mnb.KernelFault, match=r"updates bins\[5\]; bins has 4 elements"):
        mnb.validate(program.tally_moved, np.full(3, 5, np.uint32), np.zeros(4, np.uint32), grid=3)
    seen = mnb.validate(program.tally_moved, np.full(3, 3, np.uint32), np.zeros(4, np.uint32), grid=3)
    assert (seen.spoiled, seen.ok) == ((), True)
    assert "Not watched: bins (constant memory, volatile, or not used by indices alone)." in repr(seen)


def test_nothing_given_is_changed_and_arrays_are_waited_for(program: mnb.Program) -> None:
    out = np.full(4, 7, np.float32)
    mnb.validate(program.steps, np.zeros(4, np.float32), out)
    assert out.tolist() == [7] * 4
    a = mnb.zeros(1000)
    for _ in range(20):
        a += 1
    assert mnb.validate(program.steps, a, mnb.zeros(1000)).count("x", written=False) == 1999
    assert a.tolist() == [20] * 1000


LARGE = (600_000, 2_000_000)  # 1,048,576 accesses are kept


@pytest.mark.parametrize("n", LARGE)
def test_a_right_kernel_passes_whatever_its_size(program: mnb.Program, n: int) -> None:
    seen = mnb.validate(program.copied, np.zeros(n, np.float32))
    assert (seen.ok, seen.beyond, seen.conflicts, seen.unwritten) == (True, [], [], {"o": []})
    assert (seen.count("x", written=False), seen.count("o", written=True)) == (n, n)
    assert (len(seen.log), seen.accesses) == (1 << 20, 2 * n)
    partial = (
        f"All {2 * n:,} accesses are counted and judged, but {2 * n - (1 << 20):,} are not in .events: use a smaller"
    )
    for said in seen._repr_mimebundle_().values():
        assert "No access beyond an end, and no two threads at one element." in said
        assert partial in said
        assert "never written" not in said


@pytest.mark.parametrize("n", LARGE)
def test_a_read_beyond_the_end_is_found_whatever_the_size(program: mnb.Program, n: int) -> None:
    seen = mnb.validate(program.next, np.zeros(n, np.float32))
    (event,) = seen.beyond
    assert (event.thread, event.buffer, event.written, event.index) == (n - 1, "x", False, n)
    assert (seen.ok, seen.unwritten) == (False, {"o": []})
    assert f"thread {n - 1} reads x[{n}], beyond the end: x has {n:,} elements." in repr(seen)


@pytest.mark.parametrize("n", LARGE)
def test_two_threads_at_one_element_are_found_whatever_the_size(program: mnb.Program, n: int) -> None:
    start = n - 1024  # a multiple of neither: the first of a threadgroup of 128, and the last before it
    start -= start % 128
    seen = mnb.validate(program.late, np.zeros(n, np.float32), threadgroup=128, **{"from": start})
    (conflict,) = seen.conflicts
    assert (conflict.index, conflict.writers, conflict.readers) == (start - 1, (start - 1, start), ())
    assert (conflict.across, seen.ok, seen.unwritten) == (True, False, {"o": [n - 1]})
    told = f"o[{start - 1}] is written by threads {start - 1}, {start}, and they are in different threadgroups"
    assert told in repr(seen)
    assert "and more threads may be involved than those named: use a smaller grid" in repr(seen)
    within = mnb.validate(program.late, np.zeros(n, np.float32), threadgroup=128, **{"from": start + 1})
    assert ([c.across for c in within.conflicts], within.ok) == ([False], True)
    looked = mnb.validate(program.looked, np.zeros(n, np.float32))
    (conflict,) = looked.conflicts
    assert (conflict.index, conflict.writers, conflict.readers, looked.ok) == (0, (0,), (n - 1,), False)


def test_four_million_elements_that_threads_meet_at_are_told_in_a_line(program: mnb.Program) -> None:
    """And across is by threadgroups, not by the threads' order in the grid: rows of 2 × 2 threadgroups interleave."""
    x = np.zeros((2000, 2000), np.float32)
    seen = mnb.validate(program.halves, x, threadgroup=(2, 2))
    assert (seen.ok, len(seen.unwritten["o"])) == (True, 2_000_000)
    assert "Likewise 1,999,999 more of its elements." in repr(seen)
    (last,) = seen.conflicts_of("o", seen.met["o"].of([-1]))
    assert (last.index, last.writers) == (1_999_999, (3_997_999, 3_999_999))
    assert "o: 2,000,000 of 4,000,000 elements are never written, the first is [2000000]." in repr(seen)
    apart = mnb.validate(program.halves, x, threadgroup=(4, 1))
    assert not apart.ok
    assert "o[0] is written by threads 0, 2000, and they are in different threadgroups" in repr(apart)


def test_every_buffer_that_is_left_is_named_however_many_the_accesses(program: mnb.Program) -> None:
    n = 100_000
    seen = mnb.validate(program.far, np.zeros(n, np.float32))
    assert [(b.name, b.beyond) for b in seen.buffers] == [("x", n), ("o", 1)]
    assert {(e.buffer, e.thread) for e in seen.beyond} > {("o", n - 1)}
    assert (len(seen.beyond), seen.missed) == ((1 << 14) + 1, n - (1 << 14))
    assert f"… and {n - 3:,} more accesses beyond an end." in repr(seen)


def test_more_accesses_than_are_kept_are_counted(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "_EVENTS", 10)
    seen = mnb.validate(program.flat, np.zeros((4, 4), np.float32))
    assert (len(seen.events), seen.missed, seen.ok) == (10, 22, True)
    assert "All 32 accesses are counted and judged, but 22 are not in .events: use a smaller grid" in repr(seen)
    met = mnb.validate(program.count, np.zeros(64, np.uint32), np.zeros(2, np.uint32), grid=64, threadgroup=32)
    (conflict,) = met.conflicts
    assert {0, 63} <= {*conflict.writers} & {*conflict.readers}
    assert (conflict.across, met.ok) == (True, False)


def test_counts_go_beyond_32_bits(program: mnb.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a product of large matrices; here they begin just below."""

    class Late(access_log.AccessLog):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.words[0] = (1 << 32) - 4
            for start, _ in self._starts:
                self.words[start : start + 6 : 2] = (1 << 32) - 4

    monkeypatch.setattr(run, "AccessLog", Late)
    seen = mnb.validate(program.next, np.zeros(40, np.float32))
    assert [(b.reads, b.writes, b.beyond) for b in seen.buffers] == [
        ((1 << 32) + 35, (1 << 32) - 4, (1 << 32) - 3),
        ((1 << 32) - 4, (1 << 32) + 36, (1 << 32) - 4),
    ]
    assert not seen.log.any()  # a full log is not written over


def test_a_thread_is_told_by_its_place_in_the_grid(program: mnb.Program) -> None:
    seen = mnb.validate(program.flat, np.zeros((5, 7), np.float32), threadgroup=(4, 2))
    assert {(e.thread, e.index) for e in seen.events} == {(i, i) for i in range(35)}
    met = mnb.validate(program.nobody, np.zeros(2, np.float32), grid=(1, 3), threadgroup=1)
    assert [(c.index, c.writers) for c in met.conflicts] == [(0, (0, 1, 2))]


def test_an_empty_grid_does_nothing(program: mnb.Program) -> None:
    seen = mnb.validate(program.flat, np.zeros((0, 3), np.float32))
    assert (seen.events, seen.ok) == ([], True)


def test_what_cannot_be_watched_is_refused_with_the_cure(program: mnb.Program) -> None:
    for name, arguments in (("pointed", (np.zeros(4, np.float32),)), ("typed_int", (np.zeros(4, np.int32),))):
        with pytest.raises(mnb.ArgumentError, match=rf"{name} cannot be watched: .* Index the buffers themselves"):
            mnb.validate(program[name], *arguments)
    with pytest.raises(mnb.ArgumentError, match="takes a kernel and the arguments of its call; got int"):
        mnb.validate(3)
    with pytest.raises(mnb.ArgumentError, match="float64"):
        mnb.validate(program.steps, np.zeros(4))


def test_a_warning_of_the_kernel_is_not_given_again(rng: np.random.Generator) -> None:
    text = CELL.replace("    float mine = a[i];", "    if (t > 99) return;\n    float mine = a[i];")
    with pytest.warns(mnb.MetalnbWarning, match="never reach"):
        kernel = mnb.compile(text).turned
    mnb.validate(kernel, rng.random(64, np.float32), threadgroup=32)  # a warning would be an error here


def test_the_card_says_what_the_text_says(program: mnb.Program) -> None:
    seen = mnb.validate(program.steps, np.zeros(4, np.float32))
    html = seen._repr_mimebundle_()["text/html"]
    for part in ("<b>steps</b>", "4 threads, 12 accesses", "thread 3 reads x[4], beyond the end", "metalnb-finding"):
        assert part in html
    well = mnb.validate(program.flat, np.zeros((2, 2), np.float32))._repr_mimebundle_()["text/html"]
    assert "metalnb-finding" not in well.split("</style>")[1]


def test_the_example_of_the_documentation() -> None:
    found = doctest.DocTestFinder().find(run.validate, globs={})
    assert [doctest.DocTestRunner().run(test).failed for test in found] == [0]


@pytest.mark.parametrize("comment", ["// void steps(x", "/* void steps(float x) { */", "// (", "/* ) { */"])
def test_what_a_comment_says_is_no_kernel(comment: str) -> None:
    steps = mnb.compile(f"""{comment}
kernel void steps(device const float* x, {comment}
                  device unsigned int* out, uint i [[thread_position_in_grid]]) {{ {comment}
    out[i] = x[i + 1] - x[i];
}}""").steps
    seen = mnb.validate(steps, np.zeros(9, np.float32))
    assert [(e.thread, e.index) for e in seen.beyond] == [(8, 9)]


def test_the_twin_computes_with_the_kernel_s_own_math() -> None:
    made = run._twin(mnb.compile(CELL, math="precise").steps, ["x", "out"])
    assert made is not None
    assert made[0].program.math == "precise"
