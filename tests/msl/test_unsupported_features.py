"""Unsupported features are refused by name, with the reason and an alternative."""

from __future__ import annotations

import numpy as np
import pytest
from msl.cells import place, program

import metalnb as mnb
from metalnb.msl.language.attributes import ATTRIBUTES, INPUTS
from metalnb.msl.language.unsupported import UNSUPPORTED, Unsupported

QUALIFIERS = {"threadgroup_imageblock", "ray_data", "object_data", "coherent"}
NAMESPACES = {"raytracing", "mpp"}
LEFT_OUT = {"vertex", "fragment", "mesh", "object", "intersection"}  # their functions are left out, with a warning
GRAPHICS = [a for a in ATTRIBUTES.values() if a.use == "graphics"]


def uses(name: str) -> list[str]:
    """Use a name in the ways that cells do, one per line."""
    if name in QUALIFIERS:
        return [f"void f_{name}({name} device float* y) {{ }}"]
    bodies = [f"{name}::thing x;"] if name in NAMESPACES else [f"{name}<float> x;", f"y[0] = {name}(y[0]);"]
    return [f"kernel void k{n}_{name}(device float* y) {{ {body} }}" for n, body in enumerate(bodies)]


@pytest.mark.parametrize("group", UNSUPPORTED, ids=[g.title for g in UNSUPPORTED])
def test_a_name_is_refused_with_its_reason(group: Unsupported) -> None:
    lines = [(name, line) for name in group.names for line in uses(name)]
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program("\n".join(line for _, line in lines)))
    found = {d.line: (d.message, d.hint) for d in reversed(caught.value.diagnostics)}  # the first on each line
    for k, (name, line) in enumerate(lines, start=3):  # after the prelude's lines
        assert found[k] == (f"'{name}' is not available: {group.reason}", group.cure), line


def test_a_cell_may_define_such_a_name_itself() -> None:
    names = [n for g in UNSUPPORTED for n in g.names if n not in NAMESPACES]
    functions = "\n".join(f"float {name}(float x) {{ return 2 * x; }}" for name in names)
    cell = program(f"{functions}\n{{ y[i] = {' + '.join(f'{name}(y[i])' for name in names)}; }}")
    (kernel,) = mnb.compile(cell).kernels.values()
    y = np.arange(4, dtype=np.float32)
    kernel(y)
    assert y.tolist() == [2 * len(names) * k for k in range(4)]


def test_attributes_of_other_stages_are_refused_on_parameters_and_functions() -> None:
    lines = []
    for k, attribute in enumerate(GRAPHICS):
        text = f"[[{attribute.name}{'(0)' if attribute.argument else ''}]]"
        lines.append(f"kernel void p{k}(device float* y {text}) {{ }}")
        whole = f"{text} kernel void f{k}(device float* y) {{ }}"
        lines.append(lines[-1].replace(f"p{k}", f"q{k}") if attribute.name in LEFT_OUT else whole)
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program("\n".join(lines)))
    found = {d.line: d.message for d in caught.value.diagnostics}
    for k, line in enumerate(lines):
        name = GRAPHICS[k // 2].name
        message = found[k + 3]
        assert f"attribute '{name}'" in message or f"is a {name} function" in message, line
        assert "metalnb runs compute kernels" in message


def test_words_of_the_pipeline_need_no_declaration() -> None:
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program("[[patch(quad, 16)]] kernel void k(device float* y) { }"))
    assert caught.value.message == "'k' has the attribute 'patch': metalnb runs compute kernels"


_INPUT_FORMS = (
    "constant uint V", "static uint V", "extern uint V", "uint aV[2], V", "uint aV, V", "uint bV = 1, V",
    "namespace n { namespace m { static uint V", "template <class T> T V", "thread const uint& V", "uint* V",
)  # fmt: skip
_ARGUMENT_FORMS = (
    "device float* V", "const device float* V", "constant float* V", "constant float& V", "device float& V",
    "constant float V", "constant float* constant V", "constant float (&V)[4]", "threadgroup float* V",
    "threadgroup float V[4]", "constant float V[2][2]",
)  # fmt: skip


@pytest.mark.long(every=2)  # One rule refuses all of them; half of the forms remain
@pytest.mark.parametrize("form", [*_INPUT_FORMS, *_ARGUMENT_FORMS])
def test_inputs_and_arguments_at_program_scope_are_refused(form: str) -> None:
    argument = "threadgroup(0)" if form.startswith("threadgroup") else "buffer(3)"
    names = [*INPUTS] if form in _INPUT_FORMS else [argument]
    ends = " }" * form.count("{")
    lines = [f"{form.replace('V', f'v{k}')} [[{name}]];{ends}" for k, name in enumerate(names)]
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program("\n".join(lines)))
    found = {d.line: d for d in reversed(caught.value.diagnostics)}
    for k, (line, name) in enumerate(zip(lines, names, strict=True), start=3):
        of_input = f"that is not declared as uint3 name [[{name}]];"
        of_argument = "metalnb supports it only on a parameter of a kernel"
        assert found[k].message == f"[[{name}]] on a program-scope variable" + (
            f" {of_input}" if form in _INPUT_FORMS else f": {of_argument}"
        )
        assert found[k].column == line.index(f"{name}]]") + 1
        assert found[k].hint == (
            "declare each input separately, with no word before its type except const (MSL 5.9)"
            if form in _INPUT_FORMS
            else "declare it as a parameter of the kernel, and pass it to the functions that use it (MSL 5.9)"
        )


def test_a_macro_may_open_the_parameters() -> None:
    source = program("""#define KERNEL(name) kernel void name(
#define HEAD device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]
KERNEL(k) device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = i; }
kernel void l(HEAD) { y[i] = i; }""")
    made = mnb.compile(source)
    assert made.k(grid=3).tolist() == made.l(grid=3).tolist() == [0, 1, 2]


def test_an_input_in_a_function_is_refused() -> None:
    source, line, column = place(program("{ if (i) { uint l [[§thread_index_in_threadgroup]]; y[i] = l; } }"))
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    assert caught.value.message == "[[thread_index_in_threadgroup]] on a variable in a function"
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("name", ["math_mode(safe)", "contract(off)"])
def test_pragmas_of_floating_point_are_ignored(name: str) -> None:
    (kernel,) = mnb.compile(program(f"#pragma METAL fp {name}\n{{ y[i] = i + 1; }}")).kernels.values()
    y = np.zeros(4, np.float32)
    kernel(y)
    assert y.tolist() == [1, 2, 3, 4]


_TEXTURE = "'texture2d' is not available: metalnb runs compute kernels on buffers"
_SAMPLER = "'sampler' is not available: metalnb runs compute kernels on buffers"


@pytest.mark.parametrize(("text", "messages"), [
    ("kernel void t(§texture2d<float, access::read> a [[texture(0)]], uint i [[thread_position_in_grid]]) { }",
     [_TEXTURE]),
    ("kernel void t(array<§texture2d<float,\n  access::write>, 4> a) { a[0].write(1, 2); }", [_TEXTURE]),
    ("struct A { §texture2d<half, access::sample> a [[id(0)]]; };\n{ }", [_TEXTURE]),
    ("/* größe 漢字 */ constexpr §sampler q(filter::linear);\n{ y[i] = 1; }", [_SAMPLER]),
    ("{ constexpr §sampler q(coord::normalized, address::clamp_to_edge, filter::linear); }", [_SAMPLER]),
    ("kernel void t(§texture2d<float, access::sample> a, sampler s) { }", [_TEXTURE, _SAMPLER]),
    ("kernel void t(§texture2d<float, access::read> a,\n              texture3d<float, access::write> b) { }",
     [_TEXTURE, _TEXTURE.replace("2d", "3d")]),
])  # fmt: skip
def test_words_that_accompany_a_texture_or_sampler_are_not_reported(text: str, messages: list[str]) -> None:
    source, line, column = place(program(text))
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    assert [d.message for d in caught.value.diagnostics] == messages
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.hint == "pass the pixels in a device or constant buffer"


@pytest.mark.parametrize("text", [
    "{ y[i] = §filter; }", "{ float my_sampler = §filter; }",
    "kernel void t(device float* sampler_of) { sampler_of[0] = §address; }",
    "{ texture2d<float> t; y[i] = 1; }\nfloat f() { return §filter; }",
])  # fmt: skip
def test_unqualified_word_is_an_undeclared_identifier(text: str) -> None:
    source, line, column = place(program(text))
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    found = caught.value.diagnostics[-1]
    assert found.message.startswith("use of undeclared identifier")
    assert (found.line, found.column) == (line, column)
