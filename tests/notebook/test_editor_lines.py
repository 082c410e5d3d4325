"""Every tool names a cell's line by the number that the editor shows beside it."""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import metalnb as mnb
from metalnb.engine import current
from metalnb.magics.inspection import FINDINGS, MISTAKES, inspector
from metalnb.magics.session import Session

CELL = """%%metal OPTIONS
#include <metal_stdlib>
using namespace metal;
kernel void walk(device const float* x, device float* o, constant int& far, constant int& end,
                 uint i [[thread_position_in_grid]]) {
    int k = 0;
    while (k != end) { ++k; o[i] += 1; } // endless
    // before
    o[i] = x[i + far]; // access
    WRONG
}
"""
ABOVE = ("", "\n", "\n  \n\n")
Cell = Callable[..., tuple[Any, dict[str, int]]]

x, o = np.zeros(8, np.float32), np.zeros(8, np.float32)


@pytest.fixture(params=ABOVE, ids=["first", "below an empty line", "below three"])
def run(shell: InteractiveShell, request: pytest.FixtureRequest) -> Cell:
    """Run the cell; return its kernel or error, and the lines that its comments mark."""

    def run(wrong: str = "// wrong", options: str = "--quiet") -> tuple[Any, dict[str, int]]:
        cell = request.param + CELL.replace("OPTIONS", options).replace("WRONG", wrong)
        at = {line.split("// ")[1]: n for n, line in enumerate(cell.split("\n"), 1) if "// " in line}
        done = shell.run_cell(cell, store_history=True)
        return done.error_in_exec or shell.user_ns["walk"], at

    return run


def test_errors_and_warnings_have_the_editors_line(run: Cell, capsys: pytest.CaptureFixture[str]) -> None:
    error, at = run("o[i] = undeclared; // wrong")
    assert isinstance(error, mnb.CompileError)
    assert [d.line for d in error.diagnostics] == [at["wrong"]]
    capsys.readouterr()
    _, at = run("if (i < 3) threadgroup_barrier(mem_flags::mem_device); // wrong")
    output = capsys.readouterr()
    assert f"cell:{at['wrong']}:" in output.out + output.err


def test_error_of_the_whole_cell_is_at_its_first_line_of_code(shell: InteractiveShell) -> None:
    error = shell.run_cell("\n%%metal --quiet\n\nfloat f() { return 1; }", store_history=True).error_in_exec
    assert isinstance(error, mnb.CompileError)
    (found,) = error.diagnostics
    assert (found.line, found.column, found.text) == (4, 1, "float f() { return 1; }")


def test_device_compiler_errors_have_the_editors_line(run: Cell) -> None:
    kernel, at = run("o[i] += __LINE__; // wrong")
    kernel(x, o, 0, 0)
    assert o.tolist() == [at["wrong"]] * 8


@pytest.mark.skipif(current().name != "cpu", reason="the engine cpu checks accesses")
def test_faults_have_the_editors_line(run: Cell) -> None:
    kernel, at = run()
    with pytest.raises(mnb.KernelFault) as beyond:
        kernel(x, o, 1 << 20, 0)
    assert beyond.value.line == at["access"]
    assert f"cell:{at['access']}:" in str(beyond.value)
    assert f"\n  {at['access']} | " in str(beyond.value)
    with pytest.raises(mnb.KernelFault, match="stopped") as stopped:
        kernel(x, o, 0, -1, timeout=0.05)
    assert stopped.value.line == at["endless"]


@pytest.mark.skipif(sys.platform != "linux", reason="the validated build runs under Linux")
def test_validation_findings_have_the_editors_line(run: Cell, capsys: pytest.CaptureFixture[str]) -> None:
    kernel, at = run()
    report = mnb.validate(kernel, x, o, 1, 0)
    assert [f.line for f in report.findings if f.kind == "beyond"] == [at["access"]]
    assert f"line {at['access']}: " in repr(report)
    endless = mnb.validate(kernel, x, o, 0, -1, seconds=0.2)
    assert {f.line for f in endless.findings if f.kind == "endless"} == {at["endless"]}
    differs = mnb.validate(kernel, x, o, 0, 0, expected=lambda x: x + 1)
    assert [d.line for d in differs.differences] == [at["access"]]
    kernel, at = run("// wrong", "--quiet --check")
    capsys.readouterr()
    with pytest.raises(mnb.KernelFault, match=f"line {at['access']}: "):
        kernel(x, o, 1, 0)
    assert f"line {at['access']}: " in capsys.readouterr().out


def test_traced_steps_have_the_editors_line(run: Cell) -> None:
    kernel, at = run()
    trace = mnb.trace(kernel, x, o, 0, 2, thread=3)
    lines = [step.line for step in trace.threads[3]]
    assert lines[-2 if trace.threads[3][-1].end else -1] == at["access"]
    assert at["endless"] in lines
    source = trace.source.split("\n")
    assert source[at["access"] - 1].strip().endswith("// access")
    shown = json.loads(trace._repr_html_().rpartition("metalnbStepper(")[2].partition(",")[2].partition(");")[0])
    assert at["access"] in {place[0] for place in shown["places"]}
    assert "access" in shown["source"][at["access"] - 1]
    assert f" {at['access']}  o[i] = x[i + far];" in repr(trace)


def test_mistakes_are_marked_at_the_editors_lines(
    run: Cell, shell: InteractiveShell, request: pytest.FixtureRequest
) -> None:
    above = request.node.callspec.params["run"]
    cell = above + CELL.replace("OPTIONS", "").replace("WRONG", "o[i] = undeclared; // wrong")
    error, at = run("o[i] = undeclared; // wrong")
    assert isinstance(error, mnb.CompileError)
    marks = inspector(Session.of(shell), lambda *_: {})(cell, 0, FINDINGS)["data"][MISTAKES]
    assert [mark["line"] for mark in marks] == [at["wrong"]]


def test_error_in_a_header_cell_has_that_cells_line(shell: InteractiveShell) -> None:
    header = """
%%metal --header taken.h --quiet

inline float taken(device const float* x, int k) {
  return x[k]; // here
}
"""
    line = 5
    shell.run_cell(header, store_history=True).raise_error()
    user = """%%metal --quiet
#include "taken.h"
kernel void f(device const float* x, device float* o, constant int& k) {
    o[0] = taken(x, k);
}"""
    shell.run_cell(user, store_history=True).raise_error()
    kernel = shell.user_ns["f"]
    if sys.platform == "linux":
        (found,) = mnb.validate(kernel, x, o, 100, grid=1).findings[:1]
        assert (found.line, found.source.strip()) == (line, "return x[k]; // here")
    if current().name == "cpu":
        with pytest.raises(mnb.KernelFault, match=f"taken.h:{line}:"):
            kernel(x, o, 100, grid=1)
    wrong = header.replace("x[k]", "y[k]")
    error = shell.run_cell(wrong, store_history=True).error_in_exec
    assert isinstance(error, mnb.CompileError)
    assert [(d.file, d.line) for d in error.diagnostics] == [("taken.h", line)]


def test_text_and_cell_share_tuning_results(run: Cell) -> None:
    """Its lines have other numbers, so it is another program, but both share what `tune` found."""
    kernel, _ = run()
    text = kernel.source
    assert text.startswith("#include")
    plain = mnb.compile(text)
    assert plain is not kernel.program
    assert plain.recipe.content == kernel.program.recipe.content


def test_a_text_in_python_counts_its_own_lines() -> None:
    with pytest.raises(mnb.CompileError) as error:
        mnb.compile("kernel void f(device float* o) {\n  o[0] = undeclared;\n}")
    assert error.value.diagnostics[0].line == 2
