"""Planted bugs are found, by line and thread; right kernels are left alone."""

import doctest
import sys
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb import engine as engines
from metalnb import puzzles
from metalnb.validation import run as module

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the checked build runs under Linux")

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
INPUTS = """device float* x, device float* o, device atomic_uint* n, uint i [[thread_position_in_grid]],
    uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]"""
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


@pytest.fixture(scope="module", autouse=True)
def native() -> None:
    try:
        engines.named("native")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def seen(body: str, before: str = "", threads: int = 128, threadgroup: int = 64) -> mnb.Validation:
    program = mnb.compile(f"{HEAD}{before}\nkernel void f({INPUTS}) {{\n{body}\n}}")
    x = np.arange(threads, dtype=np.float32)
    return mnb.validate(
        program.f, x, np.zeros(threads, np.float32), np.zeros(4, np.uint32), grid=threads, threadgroup=threadgroup
    )


# The line with the mark is the one that the fault must name; then its kind, thread, name and index.
BUGS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "read beyond": ("o[i] = x[i + 1]; // !", ("beyond", 127, "x", 128)),
    "read before": ("o[i] = x[int(i) - 1]; // !", ("beyond", 0, "x", -1)),
    "index wrapped around": ("o[i] = x[i - 1]; // !", ("beyond", 0, "x", 4294967295)),
    "write beyond": ("o[2 * i] = 1; // !", ("beyond", 64, "o", 128)),
    "through a pointer": ("device float* p = x + i;\np += 100;\no[i] = *p; // !", ("beyond", 28, "x", 128)),
    "through a reference": ("device float& r = o[i + 5];\nr = 1; // !", ("beyond", 123, "o", 128)),
    "in a helper": ("o[i] = third(x, i);", ("beyond", 126, "x", 128)),
    "by a method": ("Row r{x};\no[i] = r.at(i + 1);", ("beyond", 127, "x", 128)),
    "in a lambda": ("auto at = [=](uint k) {\nreturn x[k]; // !\n};\no[i] = at(i + 2);", ("beyond", 126, "x", 128)),
    "a vector of a row": ("device float4* v = (device float4*)x;\no[i] = v[i].y; // !", ("beyond", 32, "x", 129)),
    "atomic beyond": ("atomic_fetch_add_explicit(n + t, 1u, memory_order_relaxed); // !", ("beyond", 4, "n", 4)),
    "threadgroup array": ("threadgroup float s[64];\ns[t] = 1;\n" + BARRIER + "\no[i] = s[t + 1]; // !",
                          ("beyond", 63, "", 64)),
    "threadgroup array by a pointer": (
        "threadgroup float s[64];\nthreadgroup float* p = s;\np[t + 1] = 1; // !\n" + BARRIER + "\no[i] = p[1];",
        ("beyond", 63, "s", 64)),
    "a thread's own array": ("float own[8];\nfor (int k = 0; k < 8; ++k) own[k] = k;\no[i] = own[t]; // !",
                             ("beyond", 8, "", 8)),
    "race in a threadgroup": ("threadgroup float s[64];\ns[t] = 1; // !\no[i] = s[63 - t];", ("race", 32, "s", 32)),
    "race in a SIMD-group": ("threadgroup float s[64];\ns[t] = t; // !\nif (t % 2 == 0) s[t + 1] += s[t];",
                             ("race", 1, "s", 1)),
    "race of writers": ("threadgroup float s[1];\ns[0] = t; // !\n" + BARRIER + "\no[i] = s[0];", ("race", 1, "s", 0)),
    "race of threadgroups": ("o[t] = i; // !", ("race", 64, "o", 0)),
    "an atomic and a plain write": (
        "atomic_fetch_add_explicit(n, 1u, memory_order_relaxed); // !\n*(device uint*)n = 1;", ("race", 1, "n", 0)),
    "never written": ("threadgroup float s[64];\no[i] = s[t]; // !", ("never written", 0, "s", 0)),
    "written by half": ("threadgroup float s[64];\nif (t < 32) s[t] = 1;\n" + BARRIER + "\no[i] = s[t]; // !",
                        ("never written", 32, "s", 32)),
    "a barrier that some miss": ("threadgroup float s[64];\ns[t] = 1;\nif (t < 40)\n" + BARRIER + " // !\no[i] = 1;",
                                 ("barrier", 40, "", None)),
    "does not fit": ("o[i] = int(x[i] * 1e9f); // !", ("conversion", 3, "", None)),
}  # fmt: skip
HELPERS = """static float third(device const float* a, uint k) { return a[k + 2]; } // !
struct Row { device const float* a; float at(uint k) const { return a[k]; } }; // !"""


@pytest.mark.filterwarnings("ignore::metalnb.MetalnbWarning")
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    body, (kind, thread, buffer, index) = BUGS[name]
    helpers = HELPERS.splitlines()
    before = {"in a helper": helpers[0], "by a method": helpers[1]}.get(name, "")
    text = f"{HEAD}{before}\nkernel void f({INPUTS}) {{\n{body}\n}}".splitlines()
    (line,) = [n for n, words in enumerate(text, 1) if words.endswith("// !")]
    found = seen(body, before)
    assert not found.ok
    first = next(f for f in found.findings if f.kind == kind)
    assert (first.line, first.thread, first.name, first.index) == (line, thread, buffer, index), found
    assert 1 <= first.column <= len(text[line - 1])
    assert first.source == text[line - 1]
    assert f"line {line}: " in repr(found)


RIGHT = {
    "elementwise": "o[i] = x[i] * 2;",
    "guarded": "if (i + 1 < 128) o[i] = x[i + 1];",
    "in place": "x[i] = x[i] + 1;",
    "reduction": f"""threadgroup float s[64];
        s[t] = x[i];
        {BARRIER}
        for (uint k = 32; k; k /= 2) {{ if (t < k) s[t] += s[t + k]; {BARRIER} }}
        if (t == 0) o[g] = s[0];""",
    "reduction by SIMD-groups": f"""threadgroup float s[2];
        float v = simd_sum(x[i]);
        if (t % 32 == 0) s[t / 32] = v;
        {BARRIER}
        if (t == 0) o[g] = s[0] + s[1];""",
    "exchange in a SIMD-group": """threadgroup float s[64];
        s[t] = x[i];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        float there = s[t ^ 1];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        s[t] = there; o[i] = s[t];""",
    "atomics": "atomic_fetch_add_explicit(n + i % 4, 1u, memory_order_relaxed); o[i] = 1;",
    "atomics in a threadgroup": f"""threadgroup atomic_uint c;
        if (t == 0) atomic_store_explicit(&c, 0u, memory_order_relaxed);
        {BARRIER}
        atomic_fetch_add_explicit(&c, t, memory_order_relaxed);
        {BARRIER}
        o[i] = atomic_load_explicit(&c, memory_order_relaxed);""",
    "turned": f"""threadgroup float s[64];
        s[t] = x[i];
        {BARRIER}
        o[i] = s[63 - t];
        {BARRIER}
        s[t] = o[i];""",
    "vectors and own arrays": """float4 v = ((device float4*)x)[i / 4]; float own[4];
        for (int k = 0; k < 4; ++k) own[k] = v[k];
        o[i] = own[i % 4];""",
    "divergent": "float s = 0; for (uint k = 0; k < t % 5; ++k) if (t % 3 == k) s += simd_sum(1.0f); o[i] = s;",
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_left_alone(name: str) -> None:
    found = seen(RIGHT[name])
    assert found.ok, found
    assert found.accesses > 0
    assert "no fault, " in repr(found)


def test_the_other_party_of_a_race_is_named() -> None:
    """Threads run one after the other: the first 32 read what nobody has written, the others write what was read."""
    found = seen("threadgroup float s[64];\ns[t] = 1;\no[i] = s[63 - t];")
    unwritten, race, *more = found.findings
    assert (unwritten.kind, unwritten.line, unwritten.thread, unwritten.index) == ("never written", 8, 0, 63)
    assert race.other
    assert (race.kind, race.line, race.written) == ("race", 7, True)
    assert (race.other.line, race.other.thread, race.other.written) == (8, 31, False)
    assert [(f.line, f.other.line, f.other.written) for f in more if f.other] == [(8, 7, True)]
    assert "writes s[32], which thread 31 read on line 8: put a barrier between them" in repr(found)
    assert "metalnb-finding" in found._repr_html_()


def test_it_runs_on_copies() -> None:
    kernel = mnb.compile(f"{HEAD}kernel void f(device float* x, uint i [[thread_position_in_grid]]) {{ x[i] = 1; }}").f
    x = np.zeros(1 << 12, np.float32)
    found = mnb.validate(kernel, x, threadgroup=64)
    assert (found.ok, found.left_out) == (True, 0)
    assert not x.any()
    with pytest.raises(mnb.ArgumentError, match="validate: takes a kernel"):
        mnb.validate(3)


# ---- The puzzles: right solutions, and what learners write instead ---------------------------------------------------


def of_puzzle(name: str, old: str = "", new: str = "") -> list[mnb.Validation]:
    """A solution with one thing changed, at each size that the puzzle is checked at."""
    text = str(puzzles.solution(name))
    assert old in text
    puzzle = puzzles.puzzle(name)
    kernel = mnb.compile(text.replace(old, new) if old else text)[name]
    found = []
    for n in puzzle.sizes:
        inputs = puzzle.given(np.random.default_rng(1), n)
        out = np.zeros(np.shape(puzzle.spec(**inputs)), puzzle.dtype)
        given = {p.name: {**inputs, puzzle.out: out}[p.name] for p in kernel.signature.buffers}
        found.append(mnb.validate(kernel, **given, **puzzle.launch(n)))
    return found


@pytest.mark.parametrize("name", puzzles.PUZZLES)
def test_a_puzzles_solution_is_left_alone(name: str) -> None:
    for found in of_puzzle(name):
        assert found.ok, found


@pytest.mark.filterwarnings("ignore::metalnb.MetalnbWarning")
@pytest.mark.parametrize(("name", "old", "new", "kind"), [
    ("add_ten", "a[i] + 10", "a[i + 1] + 10", "beyond"),
    ("add_ten", "out[i] =", "out[0] =", "race"),
    ("zip_add", "b[i]", "b[i - 1]", "beyond"),
    ("zip_add", "out[i]", "out[i / 2]", "race"),
    ("guarded", "if (i < n) ", "", "beyond"),
    ("guarded", "i < n", "i <= n", "beyond"),
    ("map_2d", "p.x < n && p.y < n", "p.y < n", "beyond"),
    ("broadcast", "p.y * n + p.x", "p.y + p.x", "race"),
    ("in_groups", "group * size + t", "t", "race"),
    ("mirrored", "tile[7 - t]", "tile[8 - t]", "beyond"),
    ("pooled", "if (i >= 1) ", "", "beyond"),
    ("dot", "t < n ? a[t] * b[t] : 0", "a[t] * b[t]", "beyond"),
    ("dot", "if (t == 0) out[0] = partial[0];", "out[0] = partial[t];", "race"),
    ("dot", "if (t == 0) out", "if (t < 3) out", "race"),
    ("convolved", " && i + j < n", "", "beyond"),
    ("running_sum", "if (t < n) out[t]", "out[t]", "beyond"),
    ("running_sum", f"        {BARRIER}\n        float before", "        float before", "race"),
    ("row_sums", "i < n", "i < 32", "beyond"),
    ("row_sums", "out[row]", "out[0]", "race"),
    ("smoothed", "if (p.x < columns && p.y < rows) ", "", "beyond"),
    ("smoothed", " && y >= 0", "", "beyond"),
])  # fmt: skip
def test_a_learners_mistake_is_found(name: str, old: str, new: str, kind: str) -> None:
    found = of_puzzle(name, old, new)
    assert kind in {f.kind for each in found for f in each.findings}, found


def test_its_example() -> None:
    assert not doctest.testmod(module).failed
