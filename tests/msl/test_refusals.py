"""Code that Apple's compiler refuses is refused here, at the right position, with a cure; similar valid code is not.

A line that begins with a brace is the body of a kernel, and gets its head; ``§`` marks the position that a message must
name. Both tables cover the rules in ``metalnb/msl/analysis/rules`` and ``metalnb/msl/libclang/hints.py``.
"""

import pytest
from msl.accepted_cells import ACCEPTED
from msl.cells import place, program
from msl.refused_cells import REFUSED, REFUSED_BY_CLANG

import metalnb as mnb


@pytest.mark.parametrize(
    ("text", "message", "hint"), [pytest.param(*row[1:], id=row[0]) for row in (*REFUSED, *REFUSED_BY_CLANG)]
)
def test_refused_code_gets_its_message_hint_and_position(text: str, message: str, hint: str) -> None:
    source, line, column = place(program(text))
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    error = caught.value
    assert (error.message, error.hint) == (message, hint)
    assert (error.line, error.column) == (line, column)
    assert error.diagnostics[0].text == source.split("\n")[line - 1]
    assert [d.message for d in error.diagnostics] == [message]  # reported once, without consequential errors


@pytest.mark.parametrize("text", [pytest.param(row[1], id=row[0]) for row in ACCEPTED])
def test_most_similar_right_code_compiles(text: str) -> None:
    constants = {"on": True} if "function_constant" in text else {}
    assert mnb.compile(program(text), constants=constants).kernels


def test_a_macro_of_a_header_cell_is_named_with_it() -> None:
    headers = {"helper": "#define HALF(x) \\\n  (undefd * x)\n"}
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program('#include "helper"\n{ y[i] = HALF(i); }'), headers=headers)
    assert caught.value.message == "use of undeclared identifier 'undefd' (in the macro HALF, helper line 2)"


def test_the_instantiation_that_is_advised_makes_a_kernel() -> None:
    text = "template <typename T, int N, bool b>\nkernel void fill(device T* o) { o[0] = b ? N : 0; }"
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program(text))
    advice = caught.value.hint.removeprefix("write after it: ").removesuffix(" (MSL 5.1)")
    assert list(mnb.compile(program(f"{text}\n{advice}"))) == ["fill_float_1_1"]


def test_a_rule_broken_in_a_header_cell_names_the_header_cell() -> None:
    helper = "float twice(float* x) { return 2 * *x; }\n"
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program('#include "helper"\n{ y[i] = 1; }'), headers={"helper": helper})
    found = caught.value.diagnostics[0]
    assert (found.file, found.line, found.column) == ("helper", 1, helper.index("x)") + 1)


def test_all_violations_are_reported_in_source_order() -> None:
    text = "float a = 1;\nfloat f(float* p) { return f(p); }\n{ goto end; end: y[i] = a; }"
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(program(text))
    assert [d.line for d in caught.value.diagnostics] == [3, 4, 4, 5]
