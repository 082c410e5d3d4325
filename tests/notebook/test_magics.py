"""The magics in a real IPython: what a cell binds, shows, prints and raises."""

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from nbclient.exceptions import CellExecutionError

import metalnb as mnb
from metalnb.display import nbytes
from metalnb.engine import current
from metalnb.magics.card_answers import latest_call
from metalnb.magics.session import Session

ANSI = re.compile(r"\x1b\[[0-9;]*m")
TWICE = "kernel void twice(device float* x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }\n"
FILL = """\
constant int N [[function_constant(0)]];
kernel void fill(device int* x, uint i [[thread_position_in_grid]]) { x[i] = N; }
"""
BAD = "kernel void bad(device float* x, uint i [[thread_position_in_grid]]) {\n    x[i] = undeclared;\n}\n"
HEADER = "inline float cube(float x) { return x * x * x; }\n"
CUBES = """\
#include "cube.h"
kernel void cubes(device float* x, uint i [[thread_position_in_grid]]) { x[i] = cube(x[i]); }
"""

ENGINE = current().name  # this machine's engine

Run = Callable[[str], ExecutionResult]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(shell: InteractiveShell) -> Run:
    """Run a cell that must succeed."""

    def run_cell(cell: str) -> ExecutionResult:
        result = shell.run_cell(dedent(cell))
        result.raise_error()
        return result

    return run_cell


def failure(shell: InteractiveShell, cell: str) -> BaseException:
    result = shell.run_cell(cell)
    assert result.error_in_exec is not None
    return result.error_in_exec


def says(shell: InteractiveShell, cell: str, capsys: Capture) -> str:
    """Return what IPython shows for a failing cell, without colors."""
    failure(shell, cell)
    captured = capsys.readouterr()
    return ANSI.sub("", captured.out + captured.err)


def shown(shell: InteractiveShell, value: object) -> str:
    data, _ = shell.display_formatter.format(value)
    return str(data["text/html"])


def test_a_card_below_its_cell_does_not_repeat_the_cell(shell: InteractiveShell, run: Run) -> None:
    cell = f"%%metal\n{TWICE}"
    html = []
    shell.display_formatter.active_types = ["text/plain", "text/html"]
    show = shell.displayhook.compute_format_data

    def seen(result: object) -> tuple[dict[str, str], dict[str, str]]:
        data = show(result)
        html.append(data[0]["text/html"])
        return data

    shell.displayhook.compute_format_data = seen
    program = shell.run_cell(cell, store_history=True).result
    shell.run_cell("twice.program", store_history=True)
    assert ["Metal source" in text for text in html] == [False, True]
    assert ["metalnb-call" in text for text in html] == [True, True]
    shell.extension_manager.unload_extension("metalnb")
    assert "Metal source" in shown(shell, program)


@pytest.mark.parametrize(
    ("cells", "call"),
    [
        ([], ""),
        (["twice(a)", "twice(b, grid=2)"], "twice(b, grid=2)"),
        (["y = twice(a) + twice(c)", "# twice(d)", "twice(", "other(twice)"], "twice(c)"),
        (["%metal_time twice(a, grid=3)"], "twice(a, grid=3)"),
        (["twice(b)", "mnb.validate(twice, a, expected=np.ones(4), grid=2)"], "twice(a, grid=2)"),
        (["validate(twice)"], "twice()"),
        (["twice.check(a, expected=lambda x: x, seconds=1)"], "twice(a)"),
        (["twice(b)", "twice.prepare(a)", "mnb.trace(twice, a)", "len(twice)"], "twice(b)"),
        (["%%metal\nkernel void twice(device float* x) {}"], ""),
    ],
)
def test_the_buttons_ask_for_the_latest_call(shell: InteractiveShell, run: Run, cells: list[str], call: str) -> None:
    run(f"%%metal --quiet\n{TWICE}")
    run("import numpy as np; a = np.ones(4, np.float32)")
    for cell in cells:
        shell.run_cell(cell, store_history=True)
    assert latest_call(Session.of(shell), "twice") == call


def test_a_cell_binds_its_kernels_and_shows_their_cards(shell: InteractiveShell, run: Run) -> None:
    program = run(f"%%metal\n{TWICE}").result
    assert isinstance(program, mnb.Program)
    assert shell.user_ns["twice"] is program.twice
    x = np.arange(5, dtype=np.float32)
    shell.user_ns["twice"](x)
    np.testing.assert_array_equal(x, 2 * np.arange(5))
    data, _ = shell.display_formatter.format(program)
    assert "kernel twice" in data["text/plain"]
    assert "<table>" in data["text/html"]


def test_a_changed_cell_binds_the_new_kernel(shell: InteractiveShell, run: Run) -> None:
    run(f"%%metal\n{TWICE}")
    run(f"%%metal\n{TWICE.replace('*= 2', '*= 3')}")
    x = np.ones(3, np.float32)
    shell.user_ns["twice"](x)
    np.testing.assert_array_equal(x, [3, 3, 3])


def test_quiet_shows_nothing_and_still_binds(shell: InteractiveShell, run: Run) -> None:
    assert run(f"%%metal --quiet\n{TWICE}").result is None
    assert "twice" in shell.user_ns


def test_a_constant_is_an_expression_of_the_notebook(shell: InteractiveShell, run: Run) -> None:
    run("tiles = 6")
    run(f"%%metal --constant N=tiles*7\n{FILL}")
    np.testing.assert_array_equal(shell.user_ns["fill"](grid=2), [42, 42])
    run(f"%%metal --constant 'N = -3 + 1'\n{FILL}")
    np.testing.assert_array_equal(shell.user_ns["fill"](grid=2), [-2, -2])


@pytest.mark.parametrize("word", ["True", "true", "1"])
def test_booleans_may_be_spelled_as_in_metal(shell: InteractiveShell, run: Run, word: str) -> None:
    cell = FILL.replace("= N", "= NEGATE ? -N : N")
    run(f"%%metal --constant N=5 --constant NEGATE={word}\nconstant bool NEGATE [[function_constant(1)]];\n{cell}")
    np.testing.assert_array_equal(shell.user_ns["fill"](grid=1), [-5])


def test_several_constants_may_be_given(shell: InteractiveShell, run: Run) -> None:
    cell = FILL.replace("= N", "= NEGATE ? -N : N")
    run(f"%%metal --constant N=5 --constant NEGATE=True\nconstant bool NEGATE [[function_constant(1)]];\n{cell}")
    np.testing.assert_array_equal(shell.user_ns["fill"](grid=1), [-5])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--constant N=unheard_of", "--constant N=unheard_of: NameError"),
        ("--constant N", "'N' is not of the form NAME=VALUE, like TILE=16"),
        ("--math sloppy", "invalid choice: 'sloppy'"),
        ("--name 2fast", "'2fast' is not a Python name"),
        ("--name class", "'class' is not a Python name"),
        ("--header h --name prog", "--name and --constant belong to the cells that include it"),
        ("--header h --constant N=1", "--name and --constant belong to the cells that include it"),
        ("--grid 3", "unrecognized arguments: --grid 3"),
        ("--save no/such/folder/x.metal --constant N=1", "--save no/such/folder/x.metal: No such file or directory"),
    ],
)
def test_a_wrong_option_is_a_usage_error(
    shell: InteractiveShell, option: str, message: str, capsys: Capture,
) -> None:  # fmt: skip
    text = says(shell, f"%%metal {option}\n{FILL}", capsys)
    assert text.startswith("UsageError: ")
    assert message in text


def test_a_missing_constant_is_named(shell: InteractiveShell) -> None:
    error = failure(shell, f"%%metal\n{FILL}")
    assert isinstance(error, mnb.ArgumentError)
    assert "write %%metal --constant N=…, or pass" in str(error)


def test_a_cell_is_checked_unless_it_opts_out(run: Run) -> None:
    cell = "kernel void f(device float* y, constant uint& at) { y[at] = 1; }"
    asked, plain = (run(f"%%metal --engine cpu {option}\n{cell}").result.f for option in ("", "--unchecked"))
    assert not plain.unit.checked
    y = np.zeros(8, np.float32)
    with pytest.raises(mnb.KernelFault, match=r"writes y\[5\]; y has 4 elements"):
        asked(y[:4], 5, grid=1)
    assert not y.any()


def test_math_and_engine_reach_the_compiler(run: Run) -> None:
    program = run(f"%%metal --math precise --engine {ENGINE}\n{TWICE}").result
    assert (program.math, program.engine.name) == ("precise", ENGINE)
    assert run(f"%%metal\n{TWICE}").result.math == "fast"


def test_an_unknown_engine_raises(shell: InteractiveShell) -> None:
    error = failure(shell, f"%%metal --engine abacus\n{TWICE}")
    assert isinstance(error, mnb.EngineUnavailable)
    assert "twice" not in shell.user_ns


def test_the_program_has_a_name(shell: InteractiveShell, run: Run) -> None:
    run(f"%%metal --quiet --name doubling\n{TWICE}")
    assert shell.user_ns["doubling"].twice is shell.user_ns["twice"]


def test_a_header_cell_serves_later_cells(shell: InteractiveShell, run: Run) -> None:
    result = run(f"%%metal --header cube.h\n{HEADER}").result
    assert repr(result) == 'header "cube.h", 1 line: #include "cube.h" in a later cell'
    run(f"%%metal\n{CUBES}")
    x = np.array([1, 2, 3], np.float32)
    shell.user_ns["cubes"](x)
    np.testing.assert_array_equal(x, [1, 8, 27])


def test_a_changed_header_reaches_the_cells_run_after_it(shell: InteractiveShell, run: Run) -> None:
    run(f"%%metal --header cube.h\n{HEADER}")
    run(f"%%metal\n{CUBES}")
    run(f"%%metal --header cube.h\n{HEADER.replace('x * x * x', '-x')}")
    run(f"%%metal\n{CUBES}")
    x = np.array([1, 2], np.float32)
    shell.user_ns["cubes"](x)
    np.testing.assert_array_equal(x, [-1, -2])


def test_a_header_named_from_above_replaces_the_one_of_its_plain_name(shell: InteractiveShell, run: Run) -> None:
    run(f"%%metal --header ../cube.h\n{HEADER.replace('x * x * x', '-x')}")
    run(f"%%metal --header cube.h\n{HEADER}")
    run(f"%%metal --header ./cube.h\n{HEADER.replace('x * x * x', '2 * x')}")
    assert list(run("%metal headers").result) == ["cube.h"]
    for include in ("cube.h", "../cube.h"):
        run(f"%%metal\n{CUBES.replace('cube.h', include)}")
        x = np.array([1, 2], np.float32)
        shell.user_ns["cubes"](x)
        np.testing.assert_array_equal(x, [2, 4])


def test_a_header_is_checked_at_once_and_a_bad_one_is_not_kept(shell: InteractiveShell, run: Run) -> None:
    run(f"%%metal --header cube.h\n{HEADER}")
    error = failure(shell, "%%metal --header cube.h\ninline float cube(float x) {\n    return y;\n}\n")
    assert isinstance(error, mnb.CompileError)
    assert (error.diagnostics[0].file, error.line, error.column) == ("cube.h", 3, 12)
    run(f"%%metal\n{CUBES}")


def test_a_header_may_include_another(run: Run) -> None:
    run(f"%%metal --header cube.h\n{HEADER}")
    run('%%metal --header ninth.h\n#include "cube.h"\ninline float ninth(float x) { return cube(cube(x)); }\n')
    kept = run("%metal headers").result
    assert list(kept) == ["cube.h", "ninth.h"]
    assert kept["cube.h"] == HEADER


def test_save_writes_the_cell_when_it_compiles(shell: InteractiveShell, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "my kernels.metal"
    failure(shell, f"%%metal --save '{path}'\n{BAD}")
    assert not path.exists()
    run(f"%%metal --quiet --save '{path}'\n{TWICE}")
    assert path.read_text("utf-8") == TWICE
    x = np.ones(2, np.float32)
    mnb.load(path, "twice")(x)
    np.testing.assert_array_equal(x, [2, 2])


def test_hidden_builtin_or_variable_is_noted(run: Run, capsys: Capture) -> None:
    run("weights = [1, 2]")
    run(f"%%metal --quiet\n{TWICE.replace('twice', 'sum')}{TWICE.replace('twice', 'weights')}")
    assert capsys.readouterr().out.splitlines() == [
        "note: kernel 'sum' hides Python's own 'sum' in this notebook; `del sum` brings it back",
        "note: kernel 'weights' replaces the variable 'weights', of type list",
    ]
    run(f"%%metal --quiet\n{TWICE.replace('twice', 'sum')}")
    assert capsys.readouterr().out == ""  # a kernel that replaces a kernel needs no note


def test_a_warning_shows_the_cell_and_no_place_in_ipython(run: Run, capsys: Capture) -> None:
    plain, during = warnings.formatwarning, []

    def show(*given: Any) -> None:
        during.append(warnings.formatwarning)
        sys.stderr.write(warnings.formatwarning(*given[:4]))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        run("%%metal --quiet\nkernel void k(device float* o) {\n    int i = 0;\n    if (i = 3) o[0] = 2;\n}")
        run("import warnings\nwarnings.warn('another', stacklevel=1)")
    first, *more = capsys.readouterr().err.splitlines()
    assert first.startswith("cell:4: MetalnbWarning: cell:4:11: warning: using the result of an assignment")
    assert more[0] == "  4 |     if (i = 3) o[0] = 2;"
    assert any(line.endswith("UserWarning: another") for line in more)
    assert set(during) == {plain}  # which other threads use


def test_hidden_name_of_a_program_is_noted(run: Run, capsys: Capture) -> None:
    run("y = [1, 2]")
    run(f"%%metal --quiet --name y\n{TWICE}")
    assert capsys.readouterr().out == "note: program 'y' replaces the variable 'y', of type list\n"
    run(f"%%metal --quiet --name y\n{TWICE}")
    assert capsys.readouterr().out == ""
    run(f"%%metal --quiet --name twice\n{TWICE}")
    assert capsys.readouterr().out == "note: program 'twice' hides the kernel 'twice': call it as twice['twice']\n"


def test_reloading_keeps_headers_and_versions(shell: InteractiveShell, run: Run, capsys: Capture) -> None:
    run("%%metal --header kept.h\ninline float doubled(float x) { return 2 * x; }")
    run(f"%%metal --quiet\n{TWICE}")
    for again in ("%reload_ext metalnb", "%unload_ext metalnb\n%load_ext metalnb"):
        run(again)
        capsys.readouterr()
        session = Session.of(shell)
        assert list(session.headers) == ["kept.h"]
        assert len(session.versions["twice"]) == 1
        run('%%metal --quiet\n#include "kept.h"\nkernel void k(device float* y) { y[0] = doubled(2); }')
        assert run("k(grid=1)").result.tolist() == [4]


def test_unbindable_host_name_is_reported(shell: InteractiveShell, run: Run, capsys: Capture) -> None:
    cell = """\
    template <typename T> kernel void copy(device T* x, uint i [[thread_position_in_grid]]) { x[i] = i; }
    template [[host_name("copy.float")]] kernel void copy<float>(device float*, uint);
    """
    program = run(f"%%metal\n{dedent(cell)}").result
    told = "kernel 'copy.float' is not a Python name: call it as program['copy.float'] with %%metal --name program"
    assert told in capsys.readouterr().out
    run(f"%%metal --quiet --name made\n{dedent(cell)}")
    assert "is not a Python name: call it as made['copy.float']\n" in capsys.readouterr().out
    np.testing.assert_array_equal(program["copy.float"](grid=3), [0, 1, 2])


def test_a_compile_error_shows_the_cell_and_no_frame(shell: InteractiveShell, capsys: Capture) -> None:
    assert says(shell, f"%%metal\n{BAD}", capsys) == dedent("""\
        CompileError: cell:3:12: error: use of undeclared identifier 'undeclared'
          3 |     x[i] = undeclared;
            |            ^
        """)


def test_a_compile_error_is_colored(shell: InteractiveShell, capsys: Capture) -> None:
    failure(shell, f"%%metal\n{BAD}")
    text = capsys.readouterr().out
    assert "\x1b[1;31merror:\x1b[0m" in text
    assert "\x1b[1;31m^\x1b[0m" in text
    shell.colors = "nocolor"
    failure(shell, f"%%metal\n{BAD}")
    assert "\x1b" not in capsys.readouterr().out


def test_a_wrong_call_shows_the_authors_line_alone(shell: InteractiveShell, run: Run, capsys: Capture) -> None:
    run(f"%%metal --quiet\n{TWICE}")
    text = says(shell, "def caller():\n    twice([1, 2])\n\ncaller()", capsys)
    assert "----> 2     twice([1, 2])" in text
    assert "----> 4 caller()" in text
    assert "kernel.py" not in text
    assert text.rstrip().splitlines()[-1].startswith("ArgumentError: twice: argument 'x' [[buffer(0)]]")


def test_the_causes_of_an_error_are_not_shown(shell: InteractiveShell, run: Run, capsys: Capture) -> None:
    run("import metalnb as mnb")
    text = says(shell, "try:\n    1 / 0\nexcept Exception as e:\n    raise mnb.LaunchError('no grid') from e", capsys)
    assert "ZeroDivisionError" not in text
    assert text.rstrip().endswith("LaunchError: no grid")


def test_help_shows_every_option(shell: InteractiveShell) -> None:
    text = shell.find_magic("metal", "cell").__doc__
    assert "%%metal [--engine ENGINE]" in text
    for option in ("--engine", "--math", "--constant", "--name", "--header", "--save", "--quiet"):
        assert re.search(rf"^  {option}\b", text, re.MULTILINE), option
    assert "(default: fast)" in text


def test_line_help_shows_every_command(shell: InteractiveShell) -> None:
    text = shell.find_magic("metal", "line").__doc__
    for command in ("engines", "use NAME", "kernels", "source [KERNEL]", "headers", "cache [clear]"):
        assert f"%metal {command}" in text


@pytest.mark.parametrize("line", ["%metal", "%metal engines", f"%metal use {ENGINE}", "%metal use default"])
def test_engines_are_a_table(shell: InteractiveShell, run: Run, line: str) -> None:
    result = run(line).result
    assert result == mnb.engines()
    assert result[ENGINE].available
    assert re.search(rf"^{ENGINE} +in use", repr(result), re.MULTILINE)
    assert "<table>" in shell.display_formatter.format(result)[0]["text/html"]


def test_use_chooses_the_engine_and_an_unknown_one_changes_nothing(shell: InteractiveShell, run: Run) -> None:
    run(f"%metal use {ENGINE}")
    assert isinstance(failure(shell, "%metal use abacus"), mnb.EngineUnavailable)
    assert run(f"%%metal\n{TWICE}").result.engine.name == ENGINE


def test_kernels_are_listed_with_parameters_engine_and_summary(shell: InteractiveShell, run: Run) -> None:
    assert repr(run("%metal kernels").result) == "no kernels yet: a %%metal cell binds them"
    run(f"%%metal --quiet\n/// Doubles.\n{TWICE}")
    result = run("%metal kernels").result
    assert dict(result) == {"twice": shell.user_ns["twice"]}
    assert re.search(rf"^twice +x +{ENGINE} +Doubles\.$", repr(result), re.MULTILINE)


def test_source_is_the_authors_and_lowered_is_what_the_compiler_is_given(
    shell: InteractiveShell, run: Run, capsys: Capture,
) -> None:  # fmt: skip
    run(f"%%metal --quiet\n{TWICE}")
    thrice = TWICE.replace("twice", "thrice")
    run(f"%%metal --quiet\n{thrice}")
    assert run("%metal source").result == thrice
    assert run("%metal source twice").result == TWICE
    for last in (run("%metal source --lowered").result, run("%metal source thrice --lowered").result):
        assert "thrice(" in last
        assert "metalnb_thread" in last
    assert "thrice(" not in run("%metal source --lowered twice").result
    assert "--lowered belongs to %metal source" in says(shell, "%metal kernels --lowered", capsys)


def test_source_without_a_cell_or_of_no_kernel_is_a_usage_error(
    shell: InteractiveShell, capsys: Capture,
) -> None:  # fmt: skip
    assert "run a %%metal cell first" in says(shell, "%metal source", capsys)
    assert "no kernel 'nothing'" in says(shell, "%metal source nothing", capsys)


def test_unknown_command_lists_the_commands(shell: InteractiveShell, capsys: Capture) -> None:
    text = says(shell, "%metal kernles", capsys)
    assert "UsageError: unknown command 'kernles'" in text
    assert "%metal cache [clear]" in text
    assert "takes no further argument; got 'all'" in says(shell, "%metal kernels all", capsys)
    assert "unknown word 'empty'" in says(shell, "%metal cache empty", capsys)


def test_the_cache_is_shown_and_cleared_and_nothing_else_is_touched(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("METALNB_CACHE", str(tmp_path))
    keep = tmp_path / "cpu-text" / "ab" / "a file of the user's"
    keep.parent.mkdir(parents=True)
    keep.write_text("precious")
    run(f"%%metal --quiet\n{TWICE.replace('twice', 'cached')}")
    run("import numpy as np; cached(np.ones(1, np.float32))")
    result = run("%metal cache").result
    assert result["cpu-lanes"].entries == 1
    assert result["cpu-library"].nbytes > 0
    assert f"{tmp_path}: {nbytes(sum(u.nbytes for u in result.values()))} of at most 1.0 GB" in repr(result)
    monkeypatch.setenv("METALNB_CACHE_SIZE", "0")
    assert re.search(rf"{tmp_path}: [\d.]+ [kM]B, no limit", repr(run("%metal cache").result))
    assert run("%metal cache clear").result == result
    assert run("%metal cache").result == {}
    assert keep.read_text() == "precious"


def test_kernels_work_from_threads_and_coroutines(run: Run) -> None:
    run(f"%%metal --quiet\n{TWICE}")
    run("""
    import asyncio
    import numpy as np

    async def one(i):
        x = np.full(1000, i, np.float32)
        await asyncio.to_thread(twice, x)
        return x

    found = await asyncio.gather(*map(one, range(20)))
    assert [float(x.max()) for x in found] == [2.0 * i for i in range(20)]
    assert [float(x.min()) for x in found] == [2.0 * i for i in range(20)]
    """)


def test_unloading_takes_the_magics_and_leaves_the_kernels(shell: InteractiveShell, run: Run) -> None:
    run(f"%%metal --quiet\n{TWICE}")
    run("%unload_ext metalnb")
    assert shell.find_magic("metal", "cell") is None
    assert shell.find_magic("metal", "line") is None
    assert callable(shell.user_ns["twice"])
    run("%load_ext metalnb")
    run(f"%%metal --quiet\n{TWICE}")


def test_a_compile_error_ends_a_notebook_and_its_output_holds_the_caret(
    tmp_path: Path, execute_notebook: Callable[[Any, Path], None]
) -> None:
    import nbformat

    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(s) for s in ("%load_ext metalnb", f"%%metal\n{BAD}", "print('not reached')")],
    )
    with pytest.raises(CellExecutionError, match="undeclared"):
        execute_notebook(notebook, tmp_path)
    loaded, failed, unreached = notebook.cells
    assert not loaded.outputs
    assert not unreached.outputs
    (output,) = failed.outputs
    assert (output.output_type, output.ename) == ("error", "CompileError")
    shown = "\n".join(output.traceback)
    assert set(re.findall(r"\x1b\[([0-9;]*)m", shown)) == {"1", "0"}  # no color or inverse video
    assert "\x1b[1m^\x1b[0m" in shown
    text = ANSI.sub("", shown)
    assert text.splitlines() == [
        "CompileError: cell:3:12: error: use of undeclared identifier 'undeclared'",  # as in the editor's gutter
        "  3 |     x[i] = undeclared;",
        "    |            ^",
    ]


def test_the_package_imports_ipython_only_when_loaded(empty_cache: dict[str, str]) -> None:
    code = "import sys, metalnb.magics; sys.exit('IPython' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=empty_cache, check=False).returncode == 0


def test_a_cell_that_does_not_compile_binds_nothing(shell: InteractiveShell) -> None:
    failure(shell, f"%%metal --name prog\n{TWICE}{BAD}")
    assert not {"twice", "bad", "prog"} & shell.user_ns.keys()


def test_a_cell_asks_for_a_version_of_the_language(run: Run, shell: InteractiveShell) -> None:
    told = "kernel void told(device int* x, uint i [[thread_position_in_grid]]) { x[i] = __METAL_VERSION__; }\n"
    run("%%metal --msl 2.3 --quiet --engine cpu\n" + told)
    x = np.zeros(1, np.int32)
    shell.user_ns["told"](x)
    assert x[0] == 230
    brain = told.replace("x[i] = __METAL_VERSION__", "bfloat b = x[i]; x[i] = b")
    result = shell.run_cell("%%metal --msl 2.3 --engine cpu\n#include <metal_stdlib>\n" + brain)
    assert "'bfloat' needs MSL 3.1; the cell requests MSL 2.3" in str(result.error_in_exec)


# ---- Checked calls.

STEPS = """kernel void steps(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    out[i] = x[i + 1] - x[i];
}
"""


@pytest.fixture
def checked() -> None:
    if sys.platform != "linux":
        pytest.skip("the validated build runs under Linux")


@pytest.mark.usefixtures("checked")
def test_the_first_call_of_a_cell_that_asks_is_checked(shell: InteractiveShell, run: Run, capsys: Capture) -> None:
    run("import numpy as np")
    run(f"%%metal --check --quiet\n{TWICE}")
    run("x = np.ones(100, np.float32); twice(x); assert x[0] == 2")
    assert "note: twice: no fault in 200 accesses" in capsys.readouterr().out
    run("twice(x); assert x[0] == 4")
    assert "note" not in capsys.readouterr().out


@pytest.mark.usefixtures("checked")
def test_a_call_that_leaves_its_arrays_is_not_made(shell: InteractiveShell, run: Run, capsys: Capture) -> None:
    run("import numpy as np; out = np.full(50, 7, np.float32)")
    run(f"%%metal --check --quiet\n{STEPS}")
    for _ in range(2):  # nor the next time
        told = says(shell, "steps(np.ones(50, np.float32), out)", capsys)
        assert "line 3: thread 49 reads x[50], beyond the end: x has 50 elements." in told  # %%metal is the first
        assert "KernelFault" in told
        assert "The call was not made" in told
    assert shell.user_ns["out"].tolist() == [7] * 50
    assert run("%metal check off").result == "off"
    run("steps(np.ones(50, np.float32)[:50], np.zeros(50, np.float32), grid=49)")


@pytest.mark.usefixtures("checked")
def test_a_reference_on_the_line_checks_the_kernel(shell: InteractiveShell, run: Run, capsys: Capture) -> None:
    run("import numpy as np\ndef doubled(x): return x * 2\ndef tripled(x): return x * 3")
    run(f"%%metal --quiet --check doubled\n{TWICE}")
    run("twice(np.ones(100, np.float32))")
    assert "note: twice: no fault in 200 accesses, x as expected" in capsys.readouterr().out
    run(f"%%metal --check tripled --quiet\n{TWICE}")
    run("x = np.ones(100, np.float32); twice(x); assert x[0] == 2")  # it is wrong and does no harm
    assert "x[0] is 2, expected 3; thread 0 wrote it on line 2" in capsys.readouterr().out
    told = says(shell, f"%%metal --check nobody\n{TWICE}", capsys)
    assert "--check nobody: NameError" in told
    told = says(shell, f"%%metal --check doubled\n{TWICE}{STEPS}", capsys)
    assert "the cell has 2 kernels (twice, steps): pass a dict of references by kernel" in told


@pytest.mark.usefixtures("checked")
def test_checks_can_be_on_for_the_whole_notebook(shell: InteractiveShell, run: Run, capsys: Capture) -> None:
    run("import numpy as np; x = np.ones(10, np.float32)")
    run("%metal check on")
    run(f"%%metal --quiet\n{TWICE}// every one\n")
    run("twice(x); twice(x)")
    assert capsys.readouterr().out.count("no fault") == 2
    run("%metal check first")
    run("twice(x); twice(x)")
    assert capsys.readouterr().out.count("no fault") == 1
    run(f"%%metal --quiet\n{TWICE}// every one\n")  # this version was checked before
    run("twice(x)")
    assert "no fault" not in capsys.readouterr().out
    assert "unknown word 'never'; write %metal check on|off|first" in says(shell, "%metal check never", capsys)
