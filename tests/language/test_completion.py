"""Completion of MSL: what libclang offers at a position, what of it is shown, and IPython's part."""

from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from msl.specification import CHAPTERS

from metalnb.msl.editor import complete as module
from metalnb.msl.editor.class_members import methods
from metalnb.msl.editor.complete import Completion, complete
from metalnb.msl.editor.draft import read_draft
from metalnb.msl.language.attributes import ATTRIBUTES
from metalnb.msl.language.reference import KEYWORDS, entries, lookup
from metalnb.msl.text.edits import Edit, EditedText

CELL = """\
#include <metal_stdlib>
using namespace metal;
#include "shared.h"
#define TILE 32
constant uint WIDTH [[function_constant(0)]];
struct Body { int id() const { return 1; } };
struct Particle : Body {
    float3 position;
    float mass;
    float speed(float t) const device { return mass * t; }
};
template <class T> class Pair { T hidden; public: T first() const { return hidden; } T second; private: void no(); };
float weight(device const Particle& p, float k) { return p.mass * k; }

kernel void forces(device Particle* particles [[buffer(0)]], device float* out,
                   uint i [[thread_position_in_grid]]) {
    float4 velocity = float4(1.0);
    threadgroup float tile[TILE];
"""
HEADERS = {"shared.h": "struct Box { float3 low, high; };\ninline float cube(float x) { return x * x * x; }\n"}


def at(typed: str, rest: str = "\n}\n") -> list[str]:
    """Return the completions after `typed`, which is appended to the cell."""
    text = CELL + typed
    word, found = complete(text + rest, len(text), HEADERS)
    assert all(name.text.lower().startswith(word.lower()) for name in found)
    return [name.text for name in found]


# What is offered where --------------------------------------------------------------------------------------------


def test_a_prefix_finds_metals_functions() -> None:
    assert at("    float s = simd_s")[-1] == "simd_sum"
    assert at("    a = precise::ex") == ["exp", "exp10", "exp2"]
    assert at("    metal::atomic_fetch_a") == ["atomic_fetch_add_explicit", "atomic_fetch_and_explicit"]
    assert at("    out[i] = M_PI_F") == ["M_PI_F"]


def test_the_nearest_names_come_first() -> None:
    names = at("    ")
    order = [names.index(n) for n in ("velocity", "weight", "abs", "INFINITY", "return")]
    assert order == sorted(order)
    assert names[:5] == ["i", "out", "particles", "tile", "velocity"]
    assert {"WIDTH", "TILE", "Particle", "Pair", "forces", "cube", "Box"} <= set(names)
    assert at("    w") == ["weight", "WIDTH", "while"]


@pytest.mark.parametrize(
    ("typed", "members"),
    [
        ("particles[i].", ["id", "mass", "position", "speed"]),
        ("particles->po", ["position"]),
        ("Pair<float> p; p.", ["first", "second"]),
        ("Box b; b.", ["high", "low"]),
        ("simdgroup_float8x8 m; m.", ["thread_elements"]),
        ("simd_ballot(true).", ["all", "any"]),
        ("particles[i].position.yx.", ["x", "y", "r", "g", "xy", "rg"]),
        ("tile[0].", []),
        ("unknown.", []),
    ],
)
def test_members_follow_a_dot(typed: str, members: list[str]) -> None:
    assert at(f"    {typed}") == members


def test_swizzles_are_runs_at_first_and_all_once_a_letter_is_there() -> None:
    runs = at("    velocity.")
    assert runs[:8] == list("xyzwrgba")
    assert {"xy", "zw", "xyz", "xyzw", "rgb", "rgba"} <= set(runs)
    assert len(runs) == 20
    assert len(at("    velocity.z")) == 1 + 4 + 16 + 64
    assert at("    velocity.zyx")[0] == "zyx"


def test_attributes_follow_two_brackets() -> None:
    typed = "}\nkernel void other(device float* x [["
    assert at(typed)[:2] == ["buffer", "threadgroup"]
    assert at(f"{typed}buffer(0)]], uint g [[thread_pos") == [
        "thread_position_in_grid", "thread_position_in_threadgroup",
    ]  # fmt: skip
    assert at("}\n[[max") == ["max_total_threads_per_threadgroup"]
    assert at("}\ntemplate [[host_") == ["host_name"]
    assert not [a for a in at(typed) if ATTRIBUTES[a].use == "graphics"]


def test_directives_above_the_cursor_do_not_matter() -> None:
    assert at("#ifdef TILE\n#else\n#include <metal\n#endif\n    velocity.w") == ["w", *at("    velocity.w")[1:]]


def test_completion_in_a_header_cell_knows_the_library() -> None:
    text = "struct Mine { float a; };\ninline float half_sum(Mine m) {\n    return simd_sum(m."
    assert complete(text, len(text), HEADERS, "mine.h") == ("", [Completion("a", "field")])
    assert [c.text for c in complete(f"{text}a) + cub", len(text) + 8, HEADERS, "mine.h")[1]] == []
    included = f'#include "shared.h"\n{text}a) + cub'
    assert [c.text for c in complete(included, len(included), HEADERS, "mine.h")[1]] == ["cube"]
    assert [c.text for c in complete(text[:-4], len(text) - 4, HEADERS, "mine.h")[1]] == ["simd_sum"]


def test_headers_and_directives_are_completed() -> None:
    assert at("}\n#include <")[0] == "metal_stdlib"
    assert "simd/simd.h" in at("}\n#include <simd/")
    assert at('}\n#include "sh') == ["shared.h"]
    assert at("}\n#inc") == ["include"]


@pytest.mark.parametrize("typed", ["// vel", "/* vel", 'f("vel', "1.", "0x1", "1.0f", "[[buffer(0"])
def test_nothing_is_offered_in_comments_texts_and_numbers(typed: str) -> None:
    assert at(f"    {typed}") == []


@pytest.mark.parametrize(
    "broken",
    [
        "unknown(;",
        "out[i] = weight(particles[i;",
        "double d = 1;",
        "float x = undeclared + ;",
        'float x = "text;',
        "for (uint k = 0; k < 3; ++k) g(;",
        "auto f = [](float a) { return h(a; };",
        "if (i > 3) {",
        "[[bogus]] int q;",
    ],
)
def test_an_error_before_the_cursor_hides_no_completions(broken: str) -> None:
    assert at(f"    {broken}\n    particles[i].") == ["id", "mass", "position", "speed"]


@pytest.mark.parametrize(("typed", "name"), [
    ("    float value = out[i]\n    value", "value"),
    ("    float value = out[i]\n    float more = 2\n    valu", "value"),
    ("    float value = 1\n    particles[i].", "mass"),
    ("    float value = 1\n    ", "value"),
    ("    if (i > 0)\n        tile", "tile"),
    ("    float value = 1 +\n        velo", "velocity"),
])  # fmt: skip
def test_a_line_without_its_semicolon_hides_nothing(typed: str, name: str) -> None:
    assert name in at(typed)


def test_an_error_behind_the_cursor_does_not_matter() -> None:
    assert at("    particles[i].", ";\n    @ $ ( \n") == ["id", "mass", "position", "speed"]


def test_a_cell_without_the_header_is_offered_no_function_of_it() -> None:
    text = "kernel void f() {\n    simd_"
    assert complete(text, len(text)) == ("simd_", [])


def test_incomplete_instantiation_does_not_stop_completion() -> None:
    text = '#include <metal_stdlib>\ntemplate [[host_name("x")]] kernel void;\nvoid f() {\n    metal::simd_su'
    assert complete(text, len(text)) == ("simd_su", [Completion("simd_sum", "function")])


# All of Metal, and nothing else -------------------------------------------------------------------------------------


def test_every_name_of_the_specification_is_explained_under_its_section() -> None:
    for chapter in CHAPTERS:
        sections = set(chapter.section.split(", "))
        words = (n for e in chapter.entries if not e.lack for n in e.names if ";" not in n)  # no declarations
        for name in words:
            assert sections & {e.section for e in lookup(name)}, f"{name} is not under {chapter.section}"
    told = {n for chapter in CHAPTERS for e in chapter.entries for n in e.names}
    assert {n for e in entries() for n in e.names} <= told


def test_every_attribute_has_its_section_from_the_one_table() -> None:
    explained = {e.names[0]: e.section for e in entries() if e.kind == "attribute"}
    assert explained == {a.name: a.section for a in ATTRIBUTES.values() if a.use != "graphics"} | {
        "host_name": "5.1.10", "kernel": "5.1.3", "max_total_threads_per_threadgroup": "5.1.3",
    }  # fmt: skip


def test_every_name_of_metals_is_offered() -> None:
    scoped = {"vote_t", "mem_none", "mem_device", "mem_threadgroup", "mem_texture", "mem_threadgroup_imageblock",
              "mem_object_data"}  # fmt: skip
    known = {n for e in entries() if e.kind != "attribute" for n in e.names} - scoped
    assert known - set(at("    ")) == set()
    assert set(at("    mem_flags::")) == scoped - {"vote_t"}


def test_nothing_else_is_offered() -> None:
    names = at("    ")
    own = {"i", "out", "particles", "tile", "velocity", "weight", "Particle", "Body", "Pair", "Box", "cube", "forces",
           "WIDTH", "TILE"}  # fmt: skip
    others = {n for n in names if not lookup(n)} - KEYWORDS - own
    # The remaining names are from <metal_type_traits>, <metal_limits> and the like, which not every source includes.
    assert {"is_same_v", "enable_if_t", "numeric_limits", "FLT_MAX", "METAL_FUNC"} <= others
    assert others.isdisjoint(module._beneath())
    assert not [n for n in names if n.startswith(("$", "_")) and not lookup(n)]
    opencl = {"get_global_id", "sub_group_reduce_add", "barrier", "event_t", "image2d_t", "printf", "global", "local"}
    assert opencl.isdisjoint(names)
    assert len(names) == len(set(names))


# Speed, and what must not happen ---------------------------------------------------------------------------------


def test_after_the_first_an_answer_needs_no_new_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept translation unit answers in about 50 ms, a new one in 300 ms."""
    at("    simd_s")
    made = []
    monkeypatch.setattr(module, "_unit", made.append)
    assert "simd_sum" in at("    simd_s")
    assert not made


def test_hanging_parser_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.0)
    assert at("    particles[i].") == []
    monkeypatch.undo()
    assert at("    particles[i].") == ["id", "mass", "position", "speed"]


def test_no_place_of_a_cell_raises() -> None:
    text = CELL + '    v.x += simd_sum(tile[i] * 0x1p-3f); /* é */ f("é\\n", \'"\');\n}\n'
    for end in range(0, len(text), 37):
        complete(text[:end], end, HEADERS)
        complete(text, end, HEADERS)


@pytest.mark.parametrize(
    "text", ["", "\n", "(", ")))", "\ufeffvoid f", "a\r\nb.", "\0", "template <", '#include "', "'"]
)
def test_completing_any_text_raises_nothing(text: str) -> None:
    for offset in range(len(text) + 1):
        complete(text, offset)


# The pieces -------------------------------------------------------------------------------------------------------


def test_positions_map_to_the_edited_text() -> None:
    edited = EditedText("abc def\nghi", [Edit(0, 3, "x"), Edit(4, 4, "++"), Edit(8, 9, "GGG")])
    assert edited.text == "x ++def\nGGGhi"
    assert [edited.edited_offset(i) for i in range(12)] == [0, 0, 0, 1, 4, 5, 6, 7, 8, 11, 12, 13]


def test_only_unfinished_statements_are_completed() -> None:
    whole = "for (int i = 0; i < 3; ++i) f([](int a) { return g(a); }, x[i]);\n"
    for before, mended in {"f(a; g(b": "f(a); g(b", "x[f(a; ": "x[f(a)]; ", whole: whole}.items():
        draft = read_draft(before + "!", len(before), {})
        assert draft.source == mended + "!"
        assert draft.offset == len(mended)


def test_methods_are_read_off_the_text() -> None:
    text = """
    struct A { int f(int x) const; float g; A(int); ~A(); A operator+(A); static A* h() { return k(); } };
    class B : A { int f(); public: template <class T> T t(T x); private: int u(); };
    struct C;
    """
    assert methods(text) == {"A": ("f", "h"), "B": ("t",)}


@pytest.mark.parametrize("attribute", ["alignas(16)", "[[deprecated]]", "__attribute__((packed)) alignas(4)"])
def test_methods_are_read_off_a_class_with_attributes(attribute: str) -> None:
    text = f"class {attribute} A {{ int f(); public: int g(); }}; struct {attribute} B {{ int h(); }};"
    assert methods(text) == {"A": ("g",), "B": ("h",)}
    assert methods(f"class {attribute} A;") == {}
    assert methods(f"class {attribute}") == {}


# IPython ----------------------------------------------------------------------------------------------------------


def offered(shell: InteractiveShell, text: str) -> list[Any]:
    """Return IPython's completions at the end of a cell's source, as a Jupyter kernel requests them."""
    with provisionalcompleter():
        return list(shell.Completer.completions(text, len(text)))


def names(shell: InteractiveShell, text: str) -> list[str]:
    return [c.text for c in offered(shell, text)]


METAL = f"%%metal --quiet\n{CELL}"


def test_ipython_answers_with_metal_alone(shell: InteractiveShell) -> None:
    found = offered(shell, f"{METAL}    simd_s")
    assert found[-1].text == "simd_sum"
    assert (found[-1].type, found[-1].end - found[-1].start) == ("function", len("simd_s"))
    kinds = [c.type for c in offered(shell, f"{METAL}    particles[i].")]
    assert kinds == ["function", "property", "property", "function"]
    for nothing in ("    prin", "    // prin", "    np.ar", "    zzz"):
        assert names(shell, METAL + nothing) == []


def test_ipython_keeps_python_for_python(shell: InteractiveShell) -> None:
    assert "print" in names(shell, "prin")
    assert "print" in names(shell, "x = '''\n%%metal\n'''\nprin")
    assert "print" in names(shell, "%%time\nprin")
    assert "%%metal" in names(shell, "%%met")
    assert "simd_sum" not in names(shell, "simd_s")


def test_header_cells_are_read(shell: InteractiveShell) -> None:
    shell.run_cell(f"%%metal --header shared.h --quiet\n{HEADERS['shared.h']}").raise_error()
    assert names(shell, f"{METAL}    cub") == ["cube"]
    assert names(shell, '%%metal\n#include "') == ["shared.h"]
    assert names(shell, "%%metal --header more.h\ninline float f(float x) { return simd_su") == ["simd_sum"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%%metal --he", ["--header"]),
        ("%%metal --math ", ["fast", "precise"]),
        ("%%metal --math=p", ["precise"]),
        ("%%metal --engine c", ["cuda", "cpu"]),
        ("%%metal --quiet --na", ["--name"]),
        ("%%metal --quiet --qu", []),
        ("%metal us", ["use"]),
        ("%metal use ", ["metal", "metal:metalcompute", "cuda", "cpu", "default"]),
        ("%metal cache ", ["clear"]),
        ("%metal cache clear ", []),
    ],
)
def test_the_magics_own_words(shell: InteractiveShell, line: str, words: list[str]) -> None:
    assert names(shell, line) == words


def test_function_constants_are_offered_by_name(shell: InteractiveShell) -> None:
    first, body = "%%metal --constant ", METAL.partition("\n")[2]
    with provisionalcompleter():
        found = [c.text for c in shell.Completer.completions(f"{first}\n{body}", len(first))]
    assert found == ["WIDTH="]


def test_kernels_are_offered_to_percent_metal_source(shell: InteractiveShell) -> None:
    shell.run_cell("%%metal --quiet\nkernel void only(device float* x) { *x = 1; }").raise_error()
    assert names(shell, "%metal source on") == ["only"]
    del shell.user_ns["only"]


def test_internal_error_does_not_reach_the_editor(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr("metalnb.magics.completer.complete", broken)
    names(shell, f"{METAL}    simd_s")
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_loading_twice_adds_one_matcher_and_unloading_removes_it(shell: InteractiveShell) -> None:
    def ours() -> int:
        return sum(getattr(m, "matcher_identifier", "") == "metalnb" for m in shell.Completer.custom_matchers)

    usual = shell.magics_manager.registry["NamespaceMagics"].pinfo
    shell.extension_manager.reload_extension("metalnb")
    assert ours() == 1
    assert shell.magics_manager.magics["line"]["pinfo"] != usual
    shell.extension_manager.unload_extension("metalnb")
    assert ours() == 0
    assert shell.magics_manager.magics["line"]["pinfo"] == usual
    shell.extension_manager.load_extension("metalnb")
