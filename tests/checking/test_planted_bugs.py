"""Planted bugs are found, by line and thread; correct kernels raise no findings."""

import sys
from typing import Any

import numpy as np
import pytest
from checking.planted_bugs import BARRIER, BUGS, HEAD, HELPER_OF, HELPERS, INPUTS, ONE_OF_EACH_KIND, STRUCTS
from checking.right_kernels import RIGHT

import metalnb as mnb
from metalnb import engine as engines
from metalnb import puzzles
from metalnb.engine.cpu.validated.validated_run import run_validated
from metalnb.validation.access_report import NOTES
from metalnb.validation.judgment import Judge

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the validated build runs under Linux")


@pytest.fixture(scope="module", autouse=True)
def engine_is_here() -> None:
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def seen(body: str, before: str = "", threads: int = 128, threadgroup: int = 64) -> mnb.Validation:
    program = mnb.compile(f"{HEAD}{before}\nkernel void f({INPUTS}) {{\n{body}\n}}")
    x = np.arange(threads, dtype=np.float32)
    return mnb.validate(
        program.f, x, np.zeros(threads, np.float32), np.zeros(4, np.uint32), grid=threads, threadgroup=threadgroup,
        seconds=1.0,
    )


@pytest.mark.long(unless=lambda name: name in {*[*BUGS][::4], *ONE_OF_EACH_KIND})  # A quarter of them, of every kind
@pytest.mark.filterwarnings("ignore::metalnb.MetalnbWarning")
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    body, (kind, thread, buffer, index) = BUGS[name]
    helpers = HELPERS.splitlines()
    before = helpers[HELPER_OF[name]] if name in HELPER_OF else STRUCTS if " struct" in name else ""
    text = f"{HEAD}{before}\nkernel void f({INPUTS}) {{\n{body}\n}}".splitlines()
    (line,) = [n for n, words in enumerate(text, 1) if words.endswith("// !")] or [0]
    found = seen(body, before)
    assert found.ok == (kind in NOTES)
    first = next(f for f in found.findings if f.kind == kind)
    assert (first.line, first.thread, first.name, first.index) == (line, thread, buffer, index), found
    if line:
        assert 1 <= first.column <= len(text[line - 1])
        assert first.source == text[line - 1]
        assert f"line {line}: " in repr(found)


# A third remains; the puzzles' solutions and the library's kernels, below, are right kernels, too.
@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_left_alone(name: str) -> None:
    found = seen(RIGHT[name])
    assert found.ok, found
    assert "written twice" not in {f.kind for f in found.findings}, found
    assert found.accesses > 0
    assert "no fault, " in repr(found)


def test_a_short_group_lacks_lanes_that_a_reduction_takes_from() -> None:
    """Right for 32 lanes; but of 20 lanes, lane 4 takes from lane 20, and lane 0's sum then contains that value."""
    body = "float v = x[i];\nfor (uint k = 16; k; k /= 2) v += simd_shuffle_down(v, k);\no[i] = v;"
    found = seen(body, threads=52, threadgroup=52)
    assert (found.ok, [(f.kind, f.line, f.thread, f.index, f.size) for f in found.findings]) == (
        False, [("lane", 7, 32 + 4, 20, 20)],
    )  # fmt: skip
    assert "takes a value from lane 20 of its SIMD-group, which has 20 lanes: the value is undefined" in repr(found)
    assert seen(body, threads=64, threadgroup=64).ok


def test_the_other_party_of_a_race_is_named() -> None:
    """Threads run one after another: the first 32 read unwritten elements, which the others write afterwards."""
    found = seen("threadgroup float s[64];\ns[t] = 1;\no[i] = s[63 - t];")
    unwritten, race, *more = found.findings
    assert (unwritten.kind, unwritten.line, unwritten.thread, unwritten.index) == ("never written", 8, 0, 63)
    assert race.other
    assert (race.kind, race.line, race.written) == ("race", 7, True)
    assert (race.other.line, race.other.thread, race.other.written) == (8, 31, False)
    assert [(f.line, f.other.line, f.other.written) for f in more if f.other] == [(8, 7, True)]
    assert (race.value, more[0].value) == (1, 1)
    assert f"writes s[32] = 1, which thread 31 read as {race.other.value:g} on line 8: put a barrier" in repr(found)
    assert "metalnb-finding" in found._repr_html_()


OVERLAPS = {
    "one array": 0, "the end of one is the start of the other": 64, "two elements": 126, "beside each other": 128,
}  # fmt: skip


@pytest.mark.parametrize("name", OVERLAPS)
def test_arguments_that_overlap_overlap_in_the_copies(name: str) -> None:
    """As in the call, another thread's writes through one argument are visible through the other."""
    start = OVERLAPS[name]
    reverse = mnb.compile(f"""{HEAD}kernel void f(device const float* x, device float* o,
        uint i [[thread_position_in_grid]]) {{ o[i] = x[127 - i]; }}""").f
    a = np.arange(256, dtype=np.float32)
    report = mnb.validate(reverse, a[:128], a[start : start + 128], threadgroup=64)
    assert report.missed == 0
    assert a.tolist() == list(range(256))
    if start == 128:
        assert (report.ok, [b.others for b in report.buffers]) == (True, [(), ()])
        assert {(e.buffer, e.index) for e in report.events} == {(b, i) for b in "xo" for i in range(128)}
        return
    assert [b.others for b in report.buffers] == [("o",), ("x",)]
    assert "in the memory of x" in repr(report)
    races = [f for f in report.findings if f.kind == "race"]
    assert races
    assert repr(report).count(" too; pass a copy of one") == len(races)
    for race in races:  # of an element that one thread writes and the other reads
        assert race.other
        assert race.index is not None
        place = race.index + (start if race.name == "o" else 0)
        assert {race.thread, race.other.thread} == {place - start, 127 - place}


def test_overlap_counts_elements_of_each_type() -> None:
    words = mnb.compile(f"""{HEAD}kernel void f(device const uchar* b, device float4* v,
        uint i [[thread_position_in_grid]]) {{ float s = b[i + 496]; v[i + 1] = float4(s); }}""").f
    memory = np.zeros(512, np.uint8)
    report = mnb.validate(words, memory, memory[256:].view(np.float32).reshape(16, 4), grid=17)
    beyond = [(f.name, f.thread, f.index, f.size) for f in report.findings if f.kind == "beyond"]
    assert beyond == [("v", 15, 16, 16), ("b", 16, 512, 512)]


def test_outputs_in_the_memory_of_an_input_are_compared() -> None:
    doubled = mnb.compile(f"""{HEAD}kernel void f(device const float* x, device float* o,
        uint i [[thread_position_in_grid]]) {{ o[i] = 2 * x[i]; }}""").f
    a = np.arange(64, dtype=np.float32)
    assert mnb.validate(doubled, a, a, expected=lambda x: 2 * x).ok
    assert not mnb.validate(doubled, a, a, expected=lambda x: 3 * x).ok


def test_validation_runs_on_copies() -> None:
    kernel = mnb.compile(f"{HEAD}kernel void f(device float* x, uint i [[thread_position_in_grid]]) {{ x[i] = 1; }}").f
    x = np.zeros(1 << 12, np.float32)
    report = mnb.validate(kernel, x, threadgroup=64)
    assert (report.ok, report.left_out) == (True, 0)
    assert not x.any()
    with pytest.raises(mnb.ArgumentError, match="validate: takes a kernel"):
        mnb.validate(3)


def test_nan_input_is_not_reported_as_uninitialized() -> None:
    kernel = mnb.compile(
        f"{HEAD}kernel void f(device const float* x, device float* o, uint i [[thread_position_in_grid]])"
        "{ o[i] = x[i] * 2; }"
    ).f
    assert mnb.validate(kernel, np.full(8, 0xFFFFFFFF, np.uint32).view(np.float32)).ok


# ---- The puzzles: right solutions, and common mistakes ---------------------------------------------------


def of_puzzle(name: str, old: str = "", new: str = "") -> list[mnb.Validation]:
    """Return a solution with one change, at each size that the puzzle is checked at."""
    text = str(puzzles.solution(name))
    assert old in text
    puzzle = puzzles.puzzle(name)
    kernel = mnb.compile(text.replace(old, new) if old else text)[name]
    found = []
    for n in puzzle.sizes:
        inputs = puzzle.given(np.random.default_rng(1), n)
        out = np.zeros(np.shape(puzzle.spec(**inputs)), puzzle.dtype)
        arguments = {p.name: {**inputs, puzzle.out: out}[p.name] for p in kernel.signature.buffers}
        found.append(mnb.validate(kernel, **arguments, **puzzle.launch(n)))
    return found


@pytest.mark.long(every=3)  # test_puzzles runs all solutions, without validation
@pytest.mark.parametrize("name", puzzles.PUZZLES)
def test_a_puzzles_solution_is_left_alone(name: str) -> None:
    for found in of_puzzle(name):
        assert found.ok, found


@pytest.mark.long(every=3)  # test_puzzles covers mistakes of this kind, too
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


# ---- The library's own kernels.


class _Watch:
    """Repeats each of the engine's dispatches in the validated build before starting it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, Any]] = []
        engine = engines.named("cpu")
        launch = type(engine).launch

        def watched(own: Any, binary: Any, arguments: Any, grid: Any, threadgroup: Any) -> Any:
            if 0 not in grid:
                facts = run_validated(binary.unit, arguments, grid, threadgroup, 60.0)
                before = {
                    p.name: np.frombuffer(a, np.uint8).copy()
                    for p, a in zip(binary.unit.signature.params, arguments, strict=True)
                    if a is not None and not isinstance(a, int)
                }
                judge = Judge(binary.unit, grid, threadgroup, facts, before, complete=True)
                self.seen.append((binary.unit.signature.name, [f for f in judge.findings() if f.is_fault]))
            return launch(own, binary, arguments, grid, threadgroup)

        monkeypatch.setattr(type(engine), "launch", watched)


LIBRARY = {
    "sum": lambda a, b: mnb.sum(a, axis=1),
    "sum of all": lambda a, b: mnb.sum(a),
    "largest": lambda a, b: mnb.max(a, axis=0),
    "where the largest is": lambda a, b: mnb.argmax(a, axis=1),
    "cumulative": lambda a, b: mnb.cumulative_sum(a, axis=1),
    "sort": lambda a, b: mnb.sort(a, axis=1),
    "argsort": lambda a, b: mnb.argsort(a, axis=1),
    "product": lambda a, b: a @ b,
    "add": lambda a, b: a + b.T,
    "exp": lambda a, b: mnb.exp(a),
    "take": lambda a, b: mnb.take(a, mnb.asarray(np.array([3, 1, 2]), device="cpu"), axis=1),
    "where": lambda a, b: mnb.where(a > 0.5, a, 0.0),
    "mean": lambda a, b: mnb.mean(a, axis=1),
    "deviation": lambda a, b: mnb.std(a),
    "joined": lambda a, b: mnb.concat([a, b.T]),
    "turned": lambda a, b: mnb.flip(a, axis=0) + 1,
    "unique": lambda a, b: mnb.unique_values(mnb.floor(a * 5)),
    "searched": lambda a, b: mnb.searchsorted(mnb.sort(mnb.reshape(a, (-1,))), mnb.reshape(b, (-1,))),
}


# Each takes a second; the right kernels and the puzzles above run through the same code.
@pytest.mark.long(every=4)
@pytest.mark.parametrize("name", LIBRARY)
def test_a_kernel_of_the_library_is_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    a, b = (mnb.asarray(rng.random(s, np.float32), device="cpu") for s in ((37, 70), (70, 37)))
    mnb.synchronize()
    watch = _Watch(monkeypatch)
    LIBRARY[name](a, b)
    mnb.synchronize()
    assert watch.seen
    assert [(kernel, faults) for kernel, faults in watch.seen if faults] == []
