"""The puzzles: every solution passes, and each common mistake has its own message."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import metalnb as mnb
from metalnb import puzzles
from metalnb.puzzles import checker

NAMES = list(puzzles.PUZZLES)
NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"

# For each puzzle: a learner's mistake in place of the solution's code, and the message that must follow.
WRONG = {
    "add_ten": (
        ("a[i] + 10", "a[i]", "expected"),
        ("out[i] =", "out[0] =", "never written"),
        ("a[i] + 10", "a[i + 1] + 10", "beyond the end"),
    ),
    "zip_add": (
        ("a[i] + b[i]", "a[i] + a[i]", "expected"),
        ("b[i]", "b[i - 1]", "reads b[4294967295]"),
        ("out[i]", "out[i / 2]", "never written"),
    ),
    "guarded": (
        ("if (i < n) ", "", "beyond the end"),
        ("i < n", "i <= n", "beyond the end"),
        ("i < n", "i + 1 < n", "never written"),
    ),
    "map_2d": (
        ("p.x < n && p.y < n", "p.y < n", "beyond the end"),
        ("out[p.y * n + p.x]", "out[p.x * n + p.y]", "expected"),
        ("p.x < n && p.y < n", "p.x < n && p.y < n - 1", "never written"),
    ),
    "broadcast": (
        ("a[p.x] + b[p.y]", "a[p.y] + b[p.x]", "a[1], beyond the end"),
        ("p.y * n + p.x", "p.y + p.x", "never written"),
        ("a[p.x] + b[p.y]", "a[p.x] * b[p.y]", "expected"),
    ),
    "in_groups": (
        ("group * size + t", "t", "never written"),
        ("group * size + t", "group * 8", "never written"),
        ("group * size + t", "t * size + group", "beyond the end"),
    ),
    "mirrored": (
        ("tile[7 - t]", "tile[t]", "expected"),
        ("a[i];", "a[t];", "expected"),
        ("tile[7 - t]", "tile[8 - t]", "reads tile[8]"),
    ),
    "pooled": (
        ("if (i >= 1) ", "", "reads a[4294967295]"),
        ("if (i >= 2) sum += a[i - 2];", "", "expected"),
        ("sum += a[i - 1]", "sum = a[i - 1]", "expected"),
    ),
    "dot": (
        ("t < n ? a[t] * b[t] : 0", "a[t] * b[t]", "beyond the end"),
        ("step = 128", "step = 64", "expected"),
        ("if (t == 0) out[0] = partial[0];", "out[0] = partial[t];", "written by 256 threads (0, 1, 2, 3, 4, 5, …): "),
        ("if (t == 0) out", "if (t < 3) out", "written by 3 threads (0, 1, 2): "),
    ),
    "convolved": (
        (" && i + j < n", "", "beyond the end"),
        ("i + j < n", "i + j < n - 1", "expected"),
        ("a[i + j]", "a[i]", "expected"),
    ),
    "running_sum": (
        ("step < 256", "step < 16", "expected"),
        ("if (t < n) out[t]", "out[t]", "beyond the end"),
        ("t >= step ?", "t > step ?", "expected"),
        (f"        {BARRIER}\n        sums[t] +=", "        sums[t] +=", "put a barrier between them"),
        (f"        {BARRIER}\n        float before", "        float before", "put a barrier between them"),
    ),
    "row_sums": (
        ("i < n", "i < 32", "beyond the end"),
        ("a[row * n + i]", "a[i]", "expected"),
        ("out[row]", "out[0]", "never written"),
    ),
    "simd_dot": (
        ("i < n", "i < 32", "beyond the end"),
        ("sum = simd_sum(sum);", "", "expected"),
        ("if (lane == 0) ", "", "written by 32 threads"),
    ),
    "product": (
        ("if (p.x < n && p.y < n) ", "", "beyond the end"),
        ("p.y < n && first + t.x < n ? a[p.y * n + first + t.x] : 0", "a[p.y * n + first + t.x]", "beyond the end"),
        ("tile_b[k][t.x]", "tile_b[t.x][k]", "expected"),
    ),
    "histogram": (
        ("&counts[a[i]], 1", "&counts[a[i]], a[i]", "expected"),
        ("&counts[a[i]]", "&counts[i % 16]", "expected"),
        ("counts[a[i]]", "counts[a[i] + 16]", "beyond the end: counts has 16 elements"),
    ),
    "transposed": (
        ("if (x < rows && y < columns) ", "", "beyond the end"),
        ("tile[t.x][r]", "tile[r][t.x]", "expected"),
        ("out[y * rows + x]", "out[y * columns + x]", "beyond the end"),
    ),
    "softmaxed": (
        ("largest = simd_max(largest);", "largest = 0;", "expected"),
        ("largest = simd_max(largest);", "largest = a[first];", "rows that go from -150 to 150: out[0, "),
        ("largest = simd_max(largest);", "largest = a[first + n - 1];", "rows that go from -150 to 150: out[2, "),
        ("float largest = -INFINITY;", "float largest = 0;", "out[1, 0] is nan, expected 1"),
        ("sum = simd_sum(sum);", "", "expected"),
        ("uint first = row * n;", "uint first = 0;", "never written"),
    ),
    "first_largest": (
        ("best = a[i];", "best = i;", "expected"),
        ("-INFINITY;\n    uint where = 0xFFFFFFFF", "0;\n    uint where = 0", "all far below zero: out[0]"),
        ("a[i] > best", "a[i] >= best", "expected"),
        ("simd_min", "simd_max", "expected"),
        ("if (lane == 0) ", "", "written by 32 threads"),
    ),
    "smoothed": (
        ("if (p.x < columns && p.y < rows) ", "", "beyond the end"),
        (" && y >= 0", "", "reads a[-"),
        ("i += 64", "i += 100", "tile[64], which no thread of its threadgroup has written"),
        ("sum / 9", "sum", "expected"),
    ),
    "turned_round": (
        ("31 - lane", "lane", "out[0] is"),
        ("31 - lane", "lane ^ 1", "out[0] is"),
        ("simd_shuffle(a[i], 31 - lane)", "a[i + 31 - 2 * lane]", "right, but no SIMD-group function is called"),
    ),
    "block_sums": (
        ("i < n ? a[i] : 0", "a[i]", "beyond the end"),
        ("lane == 0 && i < n", "lane == 0", "writes out[1], beyond the end"),
        ("lane == 0 && i < n", "lane == 31 && i < n", "out[0] never written"),
        ("lane == 0 && i < n", "i < n", "written by 8 threads"),
        ("out[i / 32]", "out[i % 128 / 32]", "never written"),
    ),
    "differences": (
        ("if (lane == 31 && i + 1 < n) next = a[i + 1];", "", "out[31] is"),
        ("lane == 31 && i + 1 < n", "lane == 31", "thread 31 reads a[32], beyond the end"),
        ("simd_shuffle_down(own, 1)", "i + 1 < n ? a[i + 1] : simd_sum(0)", "where 1.1 would do"),
        ("i + 1 < n ? next - own : 0", "next - own", "expected 0"),
        ("simd_shuffle_down", "simd_shuffle_up", "expected"),
    ),
    "farthest": (
        ("gap = 16", "gap = 8", "expected"),
        ("abs(other) > abs(best)", "other > best", "expected"),
        ("lane == 0", "lane == 31", "expected"),
        ("simd_shuffle_down(best, gap);", "lane < gap ? simd_shuffle_down(best, gap) : 0;", "which takes no part"),
        ("if (abs(other) > abs(best)) best = other", "best = max(abs(other), abs(best))", "expected -"),
    ),
    "in_order": (
        ("own <= next", "own < next", "out[0] is 0, expected 1"),
        ("simd_all", "simd_any", "expected 0"),
        ("simd_shuffle_down(own, 1)", "a[i + 1]", "beyond the end"),
        ("own <= next", "lane == 30 || own <= next", "only a[31]"),
        ("simd_shuffle_down(own, 1)", "lane < 30 ? simd_shuffle_down(own, 1) : own", "which takes no part"),
    ),
    "partitioned": (
        ("(1u << lane) - 1", "(2u << lane) - 1", "beyond the end"),
        ("own > 0", "own >= 0", "expected"),
        ("popcount(votes) + lane - before", "popcount(votes) + lane", "beyond the end"),
        ("out[i - lane + place]", "out[place]", "never written"),
    ),
    "polynomial": (
        ("simd_broadcast(mine, k)", "c[k] + 0 * simd_sum(mine)", "where 12 would do"),
        ("simd_broadcast(mine, k)", "mine", "expected"),
        ("k = 32;", "k = 31;", "expected"),
        ("    float mine", "    if (i >= n) return;\n    float mine", "of its SIMD-group, which takes no part"),
    ),
    "scanned": (
        (BARRIER, "", "put a barrier between them"),
        ("simd_prefix_inclusive_sum", "simd_prefix_exclusive_sum", "expected"),
        ("lane < simd ? totals[lane] : 0", "lane <= simd ? totals[lane] : 0", "expected"),
        ("lane == 31", "lane == 0", "expected"),
        (BARRIER, f"{BARRIER} {BARRIER}", "passes 2 barriers, where 1 would do"),
    ),
    "segmented": (
        ("lane >= start + gap", "lane >= gap", "expected"),
        (" | 1;", ";", "expected"),
        ("(0xFFFFFFFF >> (31 - lane))", "0xFFFFFFFF", "expected"),
        ("lane >= start + gap", "lane > start + gap", "expected"),
    ),
    "window_sums": (
        (BARRIER, "", "Do all wait at a barrier before they read?"),
        ("at >= 0 && ", "", "reads a[-8], before the start"),
        ("for (uint k = t; k < 80; k += 64) {", "{ uint k = t;", "which no thread of its threadgroup has written"),
        ("k < 17", "k < 16", "expected"),
        ("tile[t + k]", "(i + k >= 8 && i + k < n + 8 ? a[i + k - 8] : 0)", "where 1.25 would do"),
    ),
    "free_of_conflicts": (
        ("tile[32][33]", "tile[32][32]", "reads tile in 32 passes over the banks"),
        ("tile[32][33]", "tile[32][34]", "reads tile in 2 passes over the banks"),
        ("tile[t.x][r]", "tile[r][t.x]", "expected"),
        ("tile[t.x][r]", "a[(group.y * 32 + t.x) * n + group.x * 32 + r]", "reads 32 sectors of a, where 4 would do"),
        (BARRIER, "", "Do all wait at a barrier before they read?"),
    ),
    "blocked": (
        (f"        {BARRIER}\n    }}", "    }", "put a barrier between them"),
        ("e += 64", "e += 256", "which no thread of its threadgroup has written"),
        ("b1 = tile_b[k][t.x + 8]", "b1 = tile_b[k][t.x + 1]", "expected"),
        ("if (y + 8 < n && x < n) ", "", "beyond the end"),
        ("column + c < n ?", "column < n ?", "beyond the end"),
    ),
    "double_buffered": (
        ("now = 1 - now;", "", "put a barrier between them"),
        (BARRIER, "", "Do all wait at a barrier before they read?"),
        ("now = 1 - now;", f"{BARRIER}", "passes 10 barriers, where 6 would do"),
        ("tile_a[now][t.y][k]", "tile_a[1 - now][t.y][k]", "which no thread of its threadgroup has written"),
        ("if (p.x < n && p.y < n) ", "", "beyond the end"),
    ),
    "online": (
        ("s * exp(m - larger) + exp(v - larger)", "s + exp(v - larger)", "expected"),
        ("simd_sum(s * exp(m - largest))", "simd_sum(s)", "expected"),
        ("m = larger;", "", "expected"),
        ("float larger = max(m, v);", "float larger = max(m, v) + 0 * a[first];", "where 2 would do"),
    ),
    "private_bins": (
        ("if (t < 16) atomic_store_explicit(&own[t], 0, memory_order_relaxed);", "", "expected"),
        ("k += 256", "k += 64", "expected"),
        ("&own[a[k]]", "&counts[a[k]]", "atomic updates of device memory, where 16 would do"),
        ("if (t < 16) {", "{", "beyond the end"),
    ),
}
CASES = [(name, *wrong) for name in NAMES for wrong in WRONG[name]]


def solved(name: str, old: str = "", new: str = "") -> mnb.Kernel:
    text = str(puzzles.solution(name))
    assert old in text, f"{old!r} does not stand in the solution"
    return mnb.compile(text.replace(old, new) if old else text)[name]


def test_every_puzzle_has_three_mistakes_or_more() -> None:
    assert WRONG.keys() == set(NAMES)
    assert [name for name, wrong in WRONG.items() if len(wrong) < 3] == []


def test_every_puzzle_is_in_a_notebook_once_in_the_order_of_its_number() -> None:
    asked: list[str] = []
    titles: list[str] = []
    for path in (NOTEBOOKS / "08_puzzles.ipynb", NOTEBOOKS / "18_more_puzzles.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"])
            titles += re.findall(r"^### (\d+ · .+)$", source, re.MULTILINE)
            asked += re.findall(r"^puzzles\.check\((\w+)\)$", source, re.MULTILINE)
    assert titles == [puzzle.title for puzzle in puzzles.PUZZLES.values()]
    assert [int(title.partition(" ")[0]) for title in titles] == [*range(1, len(NAMES) + 1)]
    assert asked == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_solution_passes_and_is_drawn(name: str) -> None:
    kernel = solved(name)
    verdict = puzzles.check(kernel)
    assert verdict, verdict
    drawn = puzzles.show(kernel)
    assert drawn.svg.startswith("<svg")
    assert "thread 0: reads" in drawn.text


@pytest.mark.long(every=3)  # The solutions compile all heads
@pytest.mark.parametrize("name", NAMES)
def test_starter_compiles_but_fails(name: str) -> None:
    asked = puzzles.puzzle(name)
    verdict = puzzles.check(mnb.compile(str(asked.cell))[name])
    assert not verdict
    assert asked.hints


@pytest.mark.long(every=5)  # Each puzzle has several, so most puzzles are still covered
@pytest.mark.parametrize(("name", "old", "new", "told"), CASES)
def test_mistake_is_named_and_drawn(name: str, old: str, new: str, told: str) -> None:
    kernel = solved(name, old, new)
    verdict = puzzles.check(kernel, seed=7)
    assert not verdict
    assert told in verdict.message, verdict
    assert puzzles.show(kernel).svg.startswith("<svg")  # also for threads beyond the end


IN_THREADGROUP_MEMORY = """#include <metal_stdlib>
using namespace metal;
kernel void turned_round(device const float* a, device float* out, uint i [[thread_position_in_grid]],
                         uint t [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float tile[64];
    tile[t] = a[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = tile[t - lane + 31 - lane];
}
"""


def four_walks() -> str:
    """Return the blocked product in which each of a thread's four elements reads the tiles separately."""
    text = str(puzzles.solution("blocked"))
    start = text.index("        for (uint k = 0")
    walks = "".join(
        f"for (uint k = 0; k < 16; ++k) s{y}{x} += tile_a[t.y + {8 * y}][k] * tile_b[k][t.x + {8 * x}];\n"
        for y in (0, 1) for x in (0, 1)
    )  # fmt: skip
    return text[:start] + walks + text[text.index("        threadgroup_barrier", start) :]


@pytest.mark.parametrize(("name", "text", "told"), [
    ("blocked", four_walks(), "right, but 2 values are read from threadgroup memory per multiply-add; 1.05"),
    ("online", str(puzzles.solution("softmaxed")).replace("softmaxed", "online"),
     "right, but each element of a is read 3 times on average, where 2 would do."),
    ("turned_round", IN_THREADGROUP_MEMORY, "right, but line 6 uses threadgroup memory. Here the lanes' registers are"),
    ("turned_round", str(puzzles.solution("turned_round")).replace("    out", f"    {BARRIER}\n    out"),
     "right, but line 7 waits at a barrier. The lanes of a SIMD-group need none."),
    ("scanned", str(puzzles.solution("running_sum")).replace("running_sum", "scanned"),
     "right, but each threadgroup passes 16 barriers, where 1 would do."),
])  # fmt: skip
def test_correct_but_expensive_solution_is_rejected(name: str, text: str, told: str) -> None:
    verdict = puzzles.check(mnb.compile(text)[name])
    assert not verdict
    assert told in verdict.message, verdict


@pytest.mark.parametrize(("name", "old", "new"), [
    ("block_sums", "float sum = simd_sum(i < n ? a[i] : 0);", "if (i >= n) return;\n    float sum = simd_sum(a[i]);"),
    ("segmented", "simd_shuffle_up(sum, gap)", "simd_shuffle(sum, ushort(max(int(lane) - int(gap), 0)))"),
    ("polynomial", "simd_broadcast(mine, k)", "simd_shuffle(mine, k)"),
    ("free_of_conflicts", "tile[32][33]", "tile[32][37]"),
])  # fmt: skip
def test_other_solutions_than_ours_pass(name: str, old: str, new: str) -> None:
    verdict = puzzles.check(solved(name, old, new))
    assert verdict, verdict


def test_tile_with_rotated_rows_has_no_conflicts() -> None:
    text = str(puzzles.solution("free_of_conflicts")).replace("[32][33]", "[32][32]")
    text = text.replace("tile[r][t.x]", "tile[r][(t.x + r) % 32]").replace("tile[t.x][r]", "tile[t.x][(r + t.x) % 32]")
    assert puzzles.check(mnb.compile(text).free_of_conflicts)


def test_threads_past_the_end_are_reported_and_drawn() -> None:
    """A call refuses a kernel in which each thread takes the element at its own index; a puzzle shows why."""
    asked = puzzles.puzzle("guarded")
    kernel = mnb.compile("""kernel void guarded(device const float* a, device float* out, constant uint& n,
        uint i [[thread_position_in_grid]]) { out[i] = a[i] + 10; }""").guarded
    threads, n = asked.launch(asked.shown)["grid"], asked.given(np.random.default_rng(0), asked.shown)["a"].size
    assert threads > n
    with pytest.raises(mnb.ArgumentError, match="or guard a"):
        kernel(np.zeros(n, np.float32), np.zeros(n, np.float32), n, **asked.launch(asked.shown))
    assert "beyond the end: a has" in puzzles.check(kernel).message
    drawn = puzzles.show(kernel)
    for thread in range(threads):
        line = f"  thread {thread}: reads a[{thread}]; writes out[{thread}]"
        assert f"{line}{' (beyond the end)' if thread >= n else ''}\n" in f"{drawn.text}\n"
    assert drawn.svg.count('stroke="#ef4444" stroke-opacity') == 2 * (threads - n)
    for array in ("a", "out"):
        assert f"<title>{array}[{threads - 1}]</title>" in drawn.svg


def test_endless_loop_is_stopped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_PATIENCE", 0.2)
    monkeypatch.setattr(checker, "_watch", lambda _: None)  # it has its own limit, of some seconds
    with pytest.warns(mnb.MetalnbWarning, match="this loop cannot end"):
        kernel = solved("add_ten", "out[i] = ", "for (uint k = 3; k >= 0; --k) out[i] = k + ")
    assert "stopped after 0.2 s in the loop" in puzzles.check(kernel).message


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("device const float* a, device float* result", "the kernel has a parameter 'result', but"),
        ("device float* a", "the kernel has no parameter 'out'"),
    ],
)
def test_kernel_with_other_parameters_is_not_drawn(head: str, problem: str) -> None:
    kernel = mnb.compile(f"kernel void add_ten({head}, uint i [[thread_position_in_grid]]) {{}}").add_ten
    with pytest.raises(mnb.ArgumentError, match=f"show: add_ten: {problem}"):
        puzzles.show(kernel)
    assert not puzzles.check(kernel)


def test_caret_of_a_verdict_is_below_its_place_on_a_page() -> None:
    kernel = solved("mirrored", "tile[7 - t]", "tile[8 - t]")
    verdict = puzzles.check(kernel)
    html = verdict._repr_mimebundle_()["text/html"]
    code = html.partition("<pre")[2].partition(">")[2].partition("</pre>")[0]
    assert code
    assert code in verdict.message
    assert code.split("\n")[1].endswith("^")


def test_threads_that_touch_nothing_are_named() -> None:
    """In the guarded kernel two of eight threads have no element; in the map every thread has one."""
    assert puzzles.show(solved("guarded")).text.endswith("\n  threads 6, 7: nothing")
    assert "nothing" not in puzzles.show(solved("add_ten")).text


def test_the_hard_cases_do_not_depend_on_chance() -> None:
    cases = puzzles.puzzle("first_largest").cases
    assert [np.argmax(c.inputs["a"]) for c in cases] == [27, 0, 5, 40]


def test_the_hard_cases_survive_a_kernel_that_changes_its_inputs() -> None:
    cases = puzzles.PUZZLES["first_largest"].cases
    before = [case.inputs["a"].copy() for case in cases]
    solution = str(puzzles.solution("first_largest")).replace("device const float* a", "device float* a")
    changed = solution.replace("out[0] = first;", "{ out[0] = first; a[0] = 1e30f; }")
    assert changed.count("a[0] =") == 1
    assert puzzles.check(mnb.compile(changed).first_largest)
    for case, a in zip(cases, before, strict=True):
        np.testing.assert_array_equal(case.inputs["a"], a)


def test_size_and_seed_are_reported_for_reproduction() -> None:
    verdict = puzzles.check(solved("first_largest", "0xFFFFFFFF);", "0xFFFFFFFF) + 4000000000u;"), seed=7)
    assert verdict.message.startswith("with a of 1 element: out[0] is 4000000000, expected 0 ")
    assert puzzles.check(solved("map_2d", "+ 10", "")).message.startswith("with a of shape (1, 1): ")
    assert puzzles.check(solved("zip_add", "+ b[i]", "")).message.startswith("with a of 1 element and b of 1 element: ")


def test_non_kernels_and_unknown_puzzles_are_refused() -> None:
    with pytest.raises(mnb.ArgumentError, match="needs a kernel"):
        puzzles.check(abs)  # type: ignore[arg-type]
    with pytest.raises(mnb.ArgumentError, match=r"no puzzle \[1\]"):
        puzzles.puzzle([1])  # type: ignore[arg-type]
    with pytest.raises(mnb.ArgumentError, match="no puzzle 'saxpy'"):
        puzzles.puzzle("saxpy")


def test_each_hint_call_gives_the_next_hint() -> None:
    first = puzzles.hint("mirrored")
    assert puzzles.hint("mirrored") != first
