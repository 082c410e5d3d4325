"""The measuring magics in a real IPython."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import metalnb as mnb
from metalnb.magics.line_calls import split
from metalnb.timing import sampling

CELL = """%%metal
kernel void add(device float* x, constant float& a, uint i [[thread_position_in_grid]]) {{ x[i] += {}; }}
"""
Run = Callable[[str], Any]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a few milliseconds; the figures do not matter here."""
    monkeypatch.setattr(sampling, "TOTAL", 0.005)
    monkeypatch.setattr(sampling, "BATCH", 0.001)


@pytest.fixture
def run(shell: InteractiveShell) -> Run:
    """Run a cell that must succeed; return its value."""

    def run_cell(cell: str) -> Any:
        result = shell.run_cell(cell)
        result.raise_error()
        return result.result

    run_cell(CELL.format("a"))
    run_cell("import numpy as np, metalnb as mnb; x = np.zeros(1000, np.float32)")
    return run_cell


def refused(shell: InteractiveShell, line: str) -> str:
    result = shell.run_cell(line)
    assert isinstance(result.error_in_exec, UsageError)
    return str(result.error_in_exec)


def test_a_call_is_measured_and_not_made(shell: InteractiveShell, run: Run) -> None:
    timing = run("%metal_time add(x, a=2.0)")
    assert isinstance(timing, mnb.Timing)
    assert (timing.kernel, timing.grid, timing.bytes, timing.cold) == ("add", (1000,), 8000, None)
    assert timing.arguments == {"x": "float32 (1000,)", "a": "2"}
    assert timing.flops == 1000  # counted by a run on a copy
    assert not shell.user_ns["x"].any()


def test_flops_and_bytes_may_be_expressions(run: Run) -> None:
    timing = run("""%metal_time --flops "1 * x.size" --bytes=4*x.size add(x, 1.0, grid=(len(x),));""")
    assert (timing.flops, timing.bytes) == (1000, 4000)


@pytest.mark.parametrize("options", [
    '--bytes="4 * x.size" --flops=7', "--flops 7 --bytes '4 * x.size'", '--flops="3 + 4" --bytes=4*x.size',
])  # fmt: skip
def test_a_quoted_option_may_follow_an_equals_sign(run: Run, options: str) -> None:
    timing = run(f"%metal_time {options} add(x, 1.0)")
    assert (timing.flops, timing.bytes) == (7, 4000)


def test_text_that_looks_like_an_option_is_text(run: Run) -> None:
    assert run("%metal_time len('a --cold b')").kernel == "len"
    assert run("%metal_time x --x").kernel == "x --x"


def test_a_cell_is_timed_by_the_wall_clock(shell: InteractiveShell, run: Run) -> None:
    timing = run("%%metal_time\ny = x[:10]\nadd(y, 1.0)\n")
    assert (timing.kernel, timing.clock) == ("cell", "wall")
    assert shell.user_ns["y"][0] == shell.user_ns["x"][9] > 5  # it ran, many times


def test_versions_of_a_kernel_are_kept(shell: InteractiveShell, run: Run) -> None:
    run(CELL.format("a + 1"))
    run(CELL.format("a"))  # back to the first
    run(CELL.format("a + 1"))
    timing = run("%metal_time add@2(x, 1.0)")
    assert timing.kernel == "add"
    found = run("%metal_compare add@1 add@2")  # with the arguments of the last magic
    assert isinstance(found, mnb.Comparison)
    assert found.names == ("add@1", "add@2")
    assert run("%metal_compare add@1(x, 1.0) add@2").names == ("add@1", "add@2")
    assert not shell.user_ns["x"].any()
    assert refused(shell, "%metal_time add@3(x, 1.0)") == "add@3: there are add@1 to add@2"
    assert refused(shell, "%metal_time other@1(x)") == "other@1: no cell has bound a kernel 'other'"


def test_python_functions_are_compared_too(run: Run) -> None:
    assert run("%metal_compare np.sum(x) np.sort(x)").clock == "wall"


@pytest.mark.usefixtures("second_engine")
def test_a_kernel_is_compared_on_several_engines(shell: InteractiveShell, run: Run) -> None:
    mnb.use("cpu")
    run(CELL.format("a + 1"))
    found = run("%metal_compare add@cpu(x, 1.0) add@cuda add@1@cuda np.sort(x)")
    assert found.names == ("add@cpu", "add@cuda", "add@1@cuda", "np.sort")
    assert (found.clock, found.unclocked) == ("wall", "add@cuda")
    assert [seconds is None for seconds in found.device_seconds] == [False, True, True, True]
    assert found.device_seconds[0] < np.median(found.seconds[0])
    assert not shell.user_ns["x"].any()
    assert run("%metal_compare add@cuda add@1").names == ("add@cuda", "add@1 on cpu")


def test_any_number_of_kernels_are_compared(run: Run) -> None:
    found = run("""%metal_compare add(x, 1.0) np.sort(x) "x + x" mnb.add(x, x) 'np.exp(x)'""")
    assert found.names == ("add", "np.sort", "x + x", "mnb.add", "np.exp")
    assert len(found.seconds) == 5
    assert len({len(times) for times in found.seconds}) == 1
    assert run("%metal_compare add(x, 1.0) add(x, 2.0) add(x, 3.0)").names == ("add (1)", "add (2)", "add (3)")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("add(x, 1.0) np.sort(x)", ("add", "np.sort")), ("x + x np.sort(x)[0]", ("x + x", "np.sort(x)[0]")),
        ("x @ x, (x + 1)", ("x @ x", "(x + 1)")), ("(lambda: x + x) (lambda: np.sort(x))",
                                                   ("lambda: x + x", "lambda: np.sort(x)")),
        ("lambda: (x + x), lambda: x @ x", ("lambda: (x + x)", "lambda: x @ x")),
        ("-x, add@1(x, 1.0)", ("-x", "add@1")),
        ("(x, 2)[1] + x, [v for v in x][:2]", ("(x, 2)[1] + x", "[v for v in x][:2]")),
    ],
)  # fmt: skip
def test_any_expressions_are_compared_by_the_wall_clock(run: Run, line: str, names: tuple[str, str]) -> None:
    found = run(f"%metal_compare {line}")
    assert (found.names, found.clock) == (names, "wall")


def test_an_expression_is_measured(run: Run) -> None:
    assert run("%metal_time x @ x + 1").kernel == "x @ x + 1"
    assert run("%metal_time lambda: x + 1").kernel == "lambda: x + 1"


@pytest.mark.parametrize("literal", [
    "'twice@1'", '"a b@cpu"', "'x@1' 'y@cpu@1'", 'r"\\add@1"', '"""it\'s "add@1"."""', "b'add@2'", "f'1add@1'",
])  # fmt: skip
def test_versions_in_strings_are_text(run: Run, literal: str) -> None:
    run("said = []\ndef echo(kernel, text): said.append((kernel.name, text))")
    assert run(f"%metal_time echo(add@1, {literal})").kernel == "echo"
    assert set(run("said")) == {("add", run(literal))}
    assert run(f"%metal_compare len({literal}) add@1(x, 1.0)").names == ("len", "add@1")


def test_library_ops_report_their_bytes(run: Run) -> None:
    run("import metalnb as mnb; a = mnb.array(x)")
    timing = run("%metal_time mnb.add(a, a)")
    assert (timing.kernel, timing.bytes) == ("add", 3 * 4000)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%metal_time add(x, z)", "%metal_time: 'add(x, z)': name 'z' is not defined"),
        ("%metal_time add(x,", "%metal_time: 'add(x,' is not a call"),
        ("%metal_time 1 +", "%metal_time: '1 +' is not a call or an expression: invalid syntax. Write %metal_time"),
        ("%metal_time", "is not a call"),
        ("%metal_time add", "%metal_time: 'add' has no arguments. Write them once: add(…)"),
        ("%metal_time --flops nope add(x, 1.0)", "--flops nope: NameError: name 'nope' is not defined"),
        ("%metal_time add(x, 1.0) --cold", "options come before the call; got '--cold' after it. Write "),
        ("%metal_time --cold add(x, 1.0) --flops=2", "Write %metal_time --cold --flops=2 add(x, 1.0)"),
        ("%metal_profile add(x, 1.0) --banks 16", "%metal_profile: options come before the call; got '--banks 16'"),
        ("%metal_time x(1)", "ndarray is not a kernel, and cannot be called"),
        ("%metal_compare add(x, 1.0)", "takes two calls or more, like a(x) b(x), or a(x), x + y; got 1"),
        ("%metal_compare x@cpu y@cpu(x)", "x@cpu: takes a kernel to an engine; 'x' is of type ndarray. Write a"),
        ("%metal_compare add@7@cpu add(x, 1.0)", "add@7: there are add@1 to add@1"),
        ("%metal_compare add@1 add@2", "has no arguments"),
        ("%%metal_time add(x, 1.0)\npass", "%%metal_time: takes its options on the line"),
    ],
)
def test_non_calls_are_refused(shell: InteractiveShell, run: Run, line: str, said: str) -> None:
    assert said in refused(shell, line)


def test_an_error_in_the_timed_call_is_raised_unchanged(shell: InteractiveShell, run: Run) -> None:
    with pytest.raises(mnb.ArgumentError, match="got float64"):
        run("%metal_time add(x.astype(np.float64), 1.0)")
    with pytest.raises(ZeroDivisionError):
        run("%metal_time add(x, 1 / 0)")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("a(x) b(x)", ["a(x)", "b(x)"]),
        ("a(x), b(x)", ["a(x)", "b(x)"]),
        ("p.a(x[1:2], 'b c') q['k'](y)", ["p.a(x[1:2], 'b c')", "q['k'](y)"]),
        ("a(x), (x + y)", ["a(x)", "(x + y)"]),
        ("a(x) lambda: b(x)", ["a(x)", "lambda: b(x)"]),
        ("(lambda: a) (lambda: b)", ["(lambda: a)", "(lambda: b)"]),
        ("x @ y b(x)", ["x @ y", "b(x)"]),
        ("a(x) 2*x+y 1.5 + x", ["a(x)", "2*x+y", "1.5 + x"]),
        ("f@1 f@2 (x, y)", ["f@1", "f@2 (x, y)"]),
        ("f@cpu f@2@metal:metalcompute (x, y)", ["f@cpu", "f@2@metal:metalcompute (x, y)"]),
        ("f(x) 'a b' \"c\" g(x)", ["f(x)", "'a b'", '"c"', "g(x)"]),
        ("a(x if y else z) b(not x)", ["a(x if y else z)", "b(not x)"]),
        ("a((x) ", ["a((x)"]),
    ],
)
def test_expressions_on_a_line_are_split(line: str, parts: list[str]) -> None:
    assert split(line) == parts


def test_a_call_is_profiled_and_not_made(shell: InteractiveShell, run: Run) -> None:
    found = run("%metal_profile add(x, a=2.0)")
    assert isinstance(found, mnb.Profile)
    assert (found.kernel, found.flops, found.bytes, found.banks) == ("add", 1000, 8000, 32)
    assert not shell.user_ns["x"].any()
    again = run('%metal_profile --banks 16 --seconds 0.5 --device "M4 Max" add')  # with the arguments of the last magic
    assert (again.banks, again.devices) == (16, ("M4 Max",))
    assert "on an M4 Max, estimate" in repr(again)
    assert refused(shell, "%metal_profile np.sum(x)") == "%metal_profile: takes a call of a kernel; got 'np.sum(x)'"
