"""Shift-Tab and ``name?`` for a name in a cell: Metal's names come from one table, the author's from the cell."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from ipykernel.ipkernel import IPythonKernel
from IPython.core.interactiveshell import InteractiveShell

from metalnb.display.descriptions import bundle
from metalnb.magics.inspection import FINDINGS, MISTAKES
from metalnb.msl.editor import name_description as module
from metalnb.msl.editor.name_description import Description, describe, describe_name
from metalnb.msl.language.reference import entries

CELL = """\
#include <metal_stdlib>
#include "shared.h"
using namespace metal;
#define TILE 32
constant uint WIDTH [[function_constant(0)]];
/// A particle.
struct Particle {
    float3 position;  ///< in metres
    float mass;
    /// How far it gets in a second.
    float speed(float t) const device { return mass * t; }
};
/// How much a particle weighs.
float weight(device const Particle& p,
             float k) { return p.mass * k; }
template <class T> T twice(T x) { return x + x; }
float clamp(float x) { return x; }

/** Moves them. */
kernel void forces(device Particle* particles [[buffer(0)]], device float* out,
                   uint i [[thread_position_in_grid]]) {
    float4 velocity = float4(1.0), other = 2;
    threadgroup float tile[TILE];
    float mine = weight(particles[i], 2.0) + twice(3.0f) + particles[i].mass + particles[i].speed(1) + clamp(0.5f);
    other.x = velocity.y + WIDTH * simd_sum(tile[i]) + cube(2) + min(tile[0], 1.0f);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = as_type<float>(abs(1)) + other.x
}
"""
HEADERS = {"shared.h": "// A cube's volume.\ninline float cube(float x) { return x * x * x; }\n"}


def about(before: str, text: str = CELL) -> tuple[Description, ...]:
    """Return the inspection at the end of the first occurrence of `before`."""
    return describe(text, text.index(before) + len(before), HEADERS)


# Metal's own ------------------------------------------------------------------------------------------------------


def test_a_function_of_metals_shows_signature_section_and_a_line() -> None:
    (found,) = about("simd_s")
    assert found.signatures == ("T simd_sum(T data)",)
    assert found.where == "MSL 6.9.2, SIMD-group functions"
    assert found.summary == "The sum of data over the active threads."
    assert str(found).splitlines()[:2] == ["T simd_sum(T data)", "    The sum of data over the active threads."]


def test_a_name_of_two_chapters_shows_both() -> None:
    assert [d.where for d in about("+ mi", CELL)] == ["MSL 6.3, Integer functions", "MSL 6.5, Math functions"]


@pytest.mark.parametrize(
    ("before", "signature", "section"),
    [
        ("[[buf", "[[buffer(n)]]", "5.2.1"),
        ("[[thread_pos", "uint3 name [[thread_position_in_grid]]", "5.2.3.6"),
        ("[[function_c", "[[function_constant(n)]]", "5.8.1"),
        ("kern", "kernel", "5.1"),
        ("void forces(devi", "device", "4"),
        ("\n    threadgr", "threadgroup", "4"),
        ("\nfloa", "float", "2.1"),
        ("\n    floa", "float3", "2.2"),
        ("as_ty", "T as_type<T>(U x)", "2.22"),
        ("mem_flags::mem_thr", "mem_threadgroup", "6.9.1"),
    ],
)
def test_words_types_and_attributes(before: str, signature: str, section: str) -> None:
    found = about(before)[0]
    assert found.signatures == (signature,)
    assert found.where.startswith(f"MSL {section}, ")


def test_inside_parentheses_the_call_is_meant_until_a_word_is_entered() -> None:
    assert about("simd_sum(")[0].name == "simd_sum"
    assert about("simd_sum(ti")[0].name == "tile"
    assert about("min(tile[0], ")[0].name == "min"
    assert about("threadgroup_barrier(")[0].name == "threadgroup_barrier"


def test_every_reference_entry_renders() -> None:
    for entry in entries():
        for name in entry.names:
            assert any(entry.summary in str(d) and entry.section in str(d) for d in describe_name(name)), name
        assert entry.summary.endswith((".", ":")), entry
        assert entry.summary[0] != " "
        if entry.kind == "function":
            assert all(name in " ".join(entry.signatures) for name in entry.names)


# The author's own -------------------------------------------------------------------------------------------------


WEIGHT = """\
float weight(device const Particle& p,
             float k)"""
FORCES = """\
kernel void forces(device Particle* particles [[buffer(0)]], device float* out,
                   uint i [[thread_position_in_grid]])"""


@pytest.mark.parametrize(
    ("before", "signature", "summary", "where"),
    [
        ("= weig", WEIGHT, "How much a particle weighs.", "14"),
        ("+ twi", "template <class T> T twice(T x)", "", "16"),
        ("+ clam", "float clamp(float x)", "", "17"),
        ("kernel void for", FORCES, "Moves them.", "20"),
        ("].ma", "float mass", "", "9"),
        ("].spe", "float speed(float t) const device", "How far it gets in a second.", "11"),
        ("* simd_sum(ti", "threadgroup float tile[TILE]", "", "23"),
        ("\n    ou", "device float* out", "", "20"),
        ("velocity.y + WI", "constant uint WIDTH [[function_constant(0)]]", "", "5"),
        ("tile[TI", "#define TILE 32", "", "4"),
        ("+ other", "float4 velocity = float4(1.0), other = 2", "", "22"),
    ],
)  # fmt: skip
def test_the_authors_names_are_shown_as_written(before: str, signature: str, summary: str, where: str) -> None:
    (found,) = about(before)
    assert found.signatures == (signature,)
    assert found.summary == summary
    assert found.where.removeprefix("line ").split(" ")[0] == where


def test_a_struct_is_shown_whole() -> None:
    (found,) = about("device Parti")
    assert found.signatures[0].startswith("struct Particle {\n    float3 position;")
    assert found.signatures[0].endswith("}")
    assert found.summary == "A particle."
    assert about("].mas")[0].where == "line 9 of this cell, in Particle"


def test_a_header_cells_function_says_where_it_is() -> None:
    (found,) = about("+ cub")
    assert found.signatures == ("inline float cube(float x)",)
    assert found.where == 'line 2 of "shared.h"'


def test_a_header_cell_has_lines_of_its_own() -> None:
    text = (
        "// Twice.\ninline float twice(float x) { return x + x; }\ninline float four() { return twice(simd_sum(2)); }"
    )
    (found,) = describe(text, text.index("return tw") + 9, {}, "twice.h")
    assert (found.summary, found.where) == ("Twice.", "line 2 of this cell")


def test_long_values_are_truncated() -> None:
    fields = "\n".join(f"    float field{i};" for i in range(400))
    (found,) = about("Lon", f"struct Long {{\n{fields}\n}};\n")
    assert found.signatures[0].count("\n") < 20
    assert found.signatures[0].endswith("…")


def test_nothing_is_reported_without_evidence() -> None:
    assert about("    // not", CELL.replace("    float4 velocity", "    // nothing here\n    float4 velocity")) == ()
    assert about("struct Particle {") == ()
    assert describe("unknown", 3) == ()
    assert describe("", 0) == ()


def test_every_offset_describes_the_word_before_it_even_in_a_truncated_cell() -> None:
    """In the arguments of a call that is not complete, it may be of the function instead."""
    in_calls = [CELL.index(text) + len(text) for text in ("weight(particles", "simd_sum(tile", "as_type<float>(abs")]
    for offset in (*range(0, len(CELL), 97), *in_calls):
        for text in (CELL, CELL[:offset]):
            word = re.search(r"\w*$", text[:offset])
            assert word
            found = describe(text, offset, HEADERS)
            assert found or offset not in in_calls
            for each in found if word[0] else ():
                called = text != CELL and f"{each.name}(" in text
                assert each.name.startswith(word[0]) or called, (offset, each.name)


def test_hanging_parser_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.0)
    assert about("= weig") == ()
    assert about("simd_s")[0].name == "simd_sum"


def test_text_and_html_say_the_same() -> None:
    (found,) = about("= weig")
    shown = bundle([found])
    assert "<pre" in shown["text/html"]
    body = re.sub(r"<style.*?</style>|<[^>]+>", " ", shown["text/html"], flags=re.DOTALL)
    assert set(re.findall(r"\w+", shown["text/plain"])) <= set(re.findall(r"\w+", body))
    assert "&amp;" in shown["text/html"]


# IPython and Jupyter ----------------------------------------------------------------------------------------------


def said(shell: InteractiveShell, cell: str, capsys: pytest.CaptureFixture[str]) -> str:
    shell.run_cell(cell)
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


def test_question_mark_describes_metal_names_unknown_to_python(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "MSL 6.9.2" in said(shell, "simd_sum?", capsys)
    assert "MSL 6.9.2" in said(shell, "simd_sum??", capsys)
    assert "MSL 5.2.3.6" in said(shell, "thread_position_in_grid?", capsys)
    assert "not found" in said(shell, "nonesuch?", capsys)
    python = said(shell, "abs?", capsys)
    assert "absolute value" in python
    assert "MSL" not in python
    shell.push({"simd_sum": 3})
    assert "MSL" not in said(shell, "simd_sum?", capsys)
    shell.drop_by_id({"simd_sum": shell.user_ns["simd_sum"]})


class Kernel:
    """The part of a Jupyter kernel that inspection needs."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    do_inspect = IPythonKernel.do_inspect


@pytest.fixture
def kernel(shell: InteractiveShell) -> Iterator[Any]:
    kernel = Kernel(shell)
    shell.kernel = kernel  # type: ignore[attr-defined]
    shell.extension_manager.reload_extension("metalnb")
    yield kernel
    shell.extension_manager.unload_extension("metalnb")
    assert not vars(kernel).keys() & {"do_inspect"}
    del shell.kernel  # type: ignore[attr-defined]
    shell.extension_manager.load_extension("metalnb")


def test_shift_tab_answers_only_in_metal_cells(kernel: Any) -> None:
    cell = f"%%metal --quiet\n{CELL}"
    reply = kernel.do_inspect(cell, cell.index("simd_sum") + 3, detail_level=0, omit_sections=())
    assert reply["found"]
    assert reply["data"]["text/plain"].startswith("T simd_sum(T data)\n")
    assert set(reply["data"]) == {"text/plain", "text/html"}
    assert not kernel.do_inspect("%%metal\n// nothing\nprint", len("%%metal\n// nothing\nprint"))["found"]
    python = kernel.do_inspect("abs(-1)", 2)
    assert "absolute value" in python["data"]["text/plain"]
    assert not kernel.do_inspect("simd_sum", 4)["found"]
    assert "%metal" in kernel.do_inspect(cell, 4)["data"]["text/plain"]  # the magic itself


def test_mistakes_are_reported_at_editor_lines(kernel: Any) -> None:
    def marks(code: str) -> list[dict[str, Any]]:
        return list(kernel.do_inspect(code, 0, FINDINGS)["data"][MISTAKES])

    head = "#include <metal_stdlib>\nusing namespace metal;\n"
    (wrong,) = marks(f"\n%%metal --quiet\n{head}kernel void f(device float* x) {{ x[0] = lenght(float2(1)); }}")
    assert (wrong["line"], wrong["column"], wrong["length"]) == (5, 41, 6)
    assert (wrong["severity"], wrong["meant"]) == ("error", "length")
    (doubt,) = marks("%%metal\nkernel void k(device float* o) {\n    int i = 0;\n    if (i = 3) o[0] = 2;\n}")
    assert (doubt["line"], doubt["severity"], doubt["meant"]) == (4, "warning", "")
    (own,) = marks("%%metal --header own.h\ninline float cube(float x) { return y; }")
    assert (own["line"], own["column"]) == (2, 37)
    assert marks("%%metal\n") == marks("%%metal") == marks("print(1)") == []
    assert marks(f"%%metal\n{head}kernel void f(device float* x) {{ x[0] = length(float2(1)); }}") == []


def test_the_editor_knows_the_packages_own_headers(kernel: Any) -> None:
    head = "%%metal\n#include <metal_stdlib>\nusing namespace metal;\n#include <metalnb/storage.h>\n"
    cell = head + "kernel void f(device memory_of<float>* x) { x[0] = 1; }"
    assert kernel.do_inspect(cell, 0, FINDINGS)["data"][MISTAKES] == []
    assert kernel.do_inspect(cell, cell.index("memory_of") + 3)["found"]


def test_internal_error_shows_nothing(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr("metalnb.magics.inspection.describe", broken)
    assert kernel.do_inspect("%%metal\nfloat", 10) == {"status": "ok", "found": False, "data": {}, "metadata": {}}
