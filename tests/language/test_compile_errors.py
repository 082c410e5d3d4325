"""A wrong cell raises an error at its own line and column, in Metal's terms, with the fix; "Run All" stops there.

In each source the sign ¦ marks the position that the error must name; it is removed first.
"""

# ruff: noqa: E501  (tables of MSL, one source per line)

import re
from typing import Any, NamedTuple

import pytest

import metalnb as mnb
from metalnb.errors import Diagnostic
from metalnb.msl.libclang import parse

STD = "#include <metal_stdlib>\nusing namespace metal;\n"
K = "kernel void k(device float* y, uint i [[thread_position_in_grid]]) "


class Wrong(NamedTuple):
    """A wrong source, its error message, and part of the hint."""

    text: str
    message: str
    hint: str = ""


WRONG = {
    "missing semicolon": Wrong(STD + K + "{\n    y[i] = 1¦\n}", "expected ';' after expression", "add the missing ';'"),
    "vectors of two address spaces chosen between": Wrong(
        STD + K + "{ threadgroup float4 t[2]; y[i] = ¦i < 3 ? t[0] : t[1]; }",
        "assigning to 'float' from incompatible type 'float4'",
    ),
    "such a choice in a choice": Wrong(
        STD + K + "{ float2 v; int ¦w = i < 3 ? i < 2 ? v : v + 1 : v; }",
        "no viable conversion from 'float2' to 'int'",
    ),
    "a bit-field in a buffer": Wrong(
        "struct P { uint a; uint ¦id : 24; };\nkernel void k(device P* p) { p[0].id = 1; }",
        "'id' is a bit-field, which NumPy lacks: 'P' cannot be a buffer's element type",
        "pass whole integers, and take them apart with extract_bits (MSL 6.3)",
    ),
    "an atomic that is added to": Wrong(
        STD + "kernel void k(device atomic_float* s) { *s ¦+= 1; }", "no viable overloaded '+='",
        "the two sides have no such operator; an atomic is changed by functions alone: "
        "atomic_store_explicit, atomic_fetch_add_explicit (MSL 6.15)",
    ),
    "an atomic that is read": Wrong(
        STD + "kernel void k(device atomic_uint* s, device uint* y) { uint ¦z = s[0]; y[0] = z; }",
        "no viable conversion from 'device atomic_uint' to 'uint'",
        "an atomic is read by atomic_load_explicit(&a, memory_order_relaxed) and changed only by functions: "
        "atomic_fetch_add_explicit(&a, 1, memory_order_relaxed) (MSL 6.15)",
    ),
    "an atomic that is counted on": Wrong(
        STD + "kernel void k(device atomic_uint* s) { s[0]¦++; }", "cannot increment value of type 'device atomic_uint'",
        "an atomic is read by atomic_load_explicit(&a, memory_order_relaxed) and changed only by functions: "
        "atomic_fetch_add_explicit(&a, 1, memory_order_relaxed) (MSL 6.15)",
    ),
    "another instantiation's type": Wrong(
        STD + "template <class T> kernel void k(device T* x) {}\ntypedef decltype(k<float>) kt;\n"
        'template [[host_name("kh")]] kernel kt ¦k<half>;',
        "explicit instantiation of 'k' does not refer to a function template, variable template, member function, "
        "member class, or static data member",
        "the declaration does not match template 'k': repeat its parameters with these arguments substituted, or write "
        "decltype(k<T>) k<T>",
    ),
    "a half without a point": Wrong(
        STD + K + "{ half h = 3¦h; y[i] = h; }", "invalid suffix 'h' on an integer", "add a decimal point: 3.0h (MSL 2.1)",
    ),
    "a choice with nothing": Wrong(
        "void f() { }\n" + K + "{ y[i] = i < 3 ?¦ f() : 2; }", "an operand of ?: has no value: it is of type 'void'",
        "write if and else",
    ),
    "a choice with a list": Wrong(
        STD + K + "{ float2 v; v = i < 3 ?¦ {1, 2} : v; }", "an initializer list cannot be an operand of ?:",
        "name its type, as in float2{1, 2}",
    ),
    "a kernel named as a type": Wrong(
        STD + "kernel void ¦half(device float* y, uint i [[thread_position_in_grid]]) { y[i] *= 2; }",
        "cannot combine with previous 'void' declaration specifier", "such as half, cannot be used",
    ),
    "undeclared name": Wrong(STD + K + "{\n    y[i] = ¦scale * 2;\n}", "use of undeclared identifier 'scale'"),
    "misspelled name": Wrong(
        STD + "constant float scale = 2;\n" + K + "{ y[i] = ¦scal * 2; }",
        "use of undeclared identifier 'scal'; did you mean 'scale'?",
        "did you mean 'scale'?",
    ),
    "wrong type": Wrong(
        STD + "struct S { float a; };\n" + K + "{\n\tS s;\n\tfloat ¦f = s;\n}",
        "no viable conversion from 'S' to 'float'",
    ),
    "two types where one is meant": Wrong(
        STD + K + "{\n    y[i] = ¦max(y[i], 0);\n}", "call to 'max' is ambiguous",
        "max(float, float) and max(int, int) fit equally: write float(…) for argument 2",
    ),
    "a vector for an index": Wrong(
        STD + "kernel void k(device float* y, uint2 p [[thread_position_in_grid]]) {\n    y¦[p] = 1;\n}",
        "an index is one number, not a vector or a struct",
        "p.y * width + p.x",
    ),
    "a vector for a number": Wrong(
        STD + "kernel void k(device const float2* x, device float* y) {\n    y[0] = ¦x[0];\n}",
        "assigning to 'float' from incompatible type 'const device float2'",
        "take a component",
    ),
    "a vector of another width": Wrong(
        STD + "kernel void k(device const float2* x, device float* y) {\n    float3 ¦v = x[0]; y[0] = v.x;\n}",
        "no viable conversion from 'const device float2' to 'float3'",
        "float3(v, 0)",
    ),
    "not ASCII before it": Wrong(
        STD + K + "{\n    /* größe 漢字 😀 */ y[i] = ¦scale;\n}", "use of undeclared identifier 'scale'"
    ),
    "after an edit": Wrong(
        STD
        + "kernel void k(device float* y [[buffer(0)]], uint i [[thread_position_in_grid]]) { threadgroup float a[4], b; y[i] = a[0] + ¦c; }",
        "use of undeclared identifier 'c'",
    ),
    "windows line ends": Wrong(
        (STD + K + "{\n    y[i] = ¦scale;\n}").replace("\n", "\r\n"), "use of undeclared identifier 'scale'"
    ),
    "no using namespace": Wrong(
        "#include <metal_stdlib>\n" + K + "{ y[i] = ¦clamp(1.0f, 0.0f, 2.0f); }",
        "use of undeclared identifier 'clamp'",
        "using namespace metal;",
    ),
    "no include": Wrong(
        "kernel void k(device float* y, device ¦float4x4* v) { y[0] = 1; }",
        "unknown type name 'float4x4'",
        "using namespace metal;",
    ),
    "no include for metal::": Wrong(
        K + "{ y[i] = metal::¦max(y[i], 2.0f); }",
        "no member named 'max' in namespace 'metal'",
        "start the cell with: #include <metal_stdlib>",
    ),
    "no semicolon after using namespace": Wrong(
        "#include <metal_stdlib>\nusing namespace metal¦\n\nkernel void k(device float* y) { y[0] = 1; }",
        "expected ';' after namespace name",
        "add the missing ';'",
    ),
    "the words of CUDA": Wrong(
        STD + "kernel void k(device float* y) { y[¦threadIdx.x] = 1; }",
        "use of undeclared identifier 'threadIdx'",
        "add a parameter uint3 t [[thread_position_in_threadgroup]]",
    ),
    "unknown type": Wrong(
        STD + "kernel void k(device ¦flaot* y) { y[0] = 1; }", "unknown type name 'flaot'", "did you mean 'float'?"
    ),
    "unbalanced brace": Wrong(
        STD + K + "{\n    if (i > 0) {\n        y[i] = 1;\n}¦\n", "expected '}'", "a bracket is not closed"
    ),
    "surplus brace": Wrong(STD + K + "{ y[i] = 1; }\n¦}", "extraneous closing brace ('}')"),
    "too few arguments": Wrong(
        STD + "float f(float a, float b) { return a + b; }\n" + K + "{ y[i] = ¦f(1); }",
        "no matching function for call to 'f'",
        "check the number and types of the arguments of 'f'",
    ),
    "too few arguments of Metal's": Wrong(
        STD + K + "{ y[i] = ¦simd_shuffle_up(y[i]); }", "no matching function for call to 'simd_shuffle_up'",
        "it is declared T simd_shuffle_up(T data, ushort delta), T: a number of at most 32 bits or a vector of such (MSL 6.9.2)",
    ),
    "too few arguments of one of several": Wrong(
        STD + K + "{ simdgroup_float8x8 m; ¦simdgroup_load(m); }", "no matching function for call to 'simdgroup_load'",
        "one of its declarations is void simdgroup_load(thread simdgroup_matrix<T, 8, 8>& d, const device T* src, ",
    ),
    "a ballot as a number": Wrong(
        STD + K + "{ uint ¦votes = simd_ballot(i > 3); y[i] = votes; }", "no viable conversion from 'simd_vote' to 'uint'",
        "read the votes as bits, one per lane: uint(simd_vote::vote_t(vote)) (MSL 6.9.2)",
    ),
    "Python's power": Wrong(
        STD + K + "{ y[i] = i *¦* 2; }", "indirection requires pointer operand ('int' invalid)",
        "*p dereferences a pointer; for a power write x * x or pow(x, y), since there is no **",
    ),
    "Python's loop": Wrong(
        STD + K + "{ for ¦i in 4: y[i] = 1; }", "expected '(' after 'for'", "write for (uint k = 0; k < n; ++k) { … }"
    ),
    "Python's condition": Wrong(
        STD + K + "{ if ¦i > 3: y[i] = 1; }", "expected '(' after 'if'",
        "write if (i < n) { … }; to choose between two values write i < n ? a : b",
    ),
    "Python's while": Wrong(STD + K + "{ while ¦i > 3: y[i] = 1; }", "expected '(' after 'while'", "write while (i < n) { … }"),
    "NumPy's function": Wrong(
        STD + K + "{ y[i] = ¦np.exp(y[i]); }", "use of undeclared identifier 'np'",
        "drop the prefix: write exp(x) for np.exp(x)",
    ),
    "NumPy's type": Wrong(STD + K + "{ ¦uint32 n = 3; y[i] = n; }", "unknown type name 'uint32'", "in Metal, write uint"),
    "a buffer's length": Wrong(
        STD + K + "{ y[i] = y¦.size(); }", "member reference base type 'device float *' is not a structure or union",
        "a pointer has elements, p[i], but no members; pass a buffer's length as a parameter: constant uint& n",
    ),
    "declared, not defined": Wrong(
        STD + "float f(float a);\n" + K + "{ y[i] = ¦f(1); }", "function 'f' is called but never defined"
    ),
    "assignment to constant": Wrong(
        STD + "kernel void k(device float* y, constant float& a) {\n    a ¦= 2;\n}",
        "cannot assign to variable 'a' with const-qualified type 'constant float&'",
        "it is read-only",
    ),
    "assignment to const": Wrong(
        STD + "kernel void k(device const float* x) {\n    x[0] ¦= 2;\n}",
        "read-only variable is not assignable",
        "it is read-only",
    ),
    "kernel with a result": Wrong(
        STD + "kernel float ¦k(device float* y) { return y[0]; }", "kernel 'k' returns float; a kernel returns void"
    ),
    "two kernels of one name": Wrong(
        STD + "kernel void k(device float* y) { y[0] = 1; }\nkernel void ¦k(device int* y) { y[0] = 1; }",
        "two kernels are named 'k' (the other is on line 3)",
        "rename one",
    ),
    "two instantiations of one name": Wrong(
        STD
        + "template <typename T> kernel void k(device T* y) { y[0] = 1; }\n\n"
        + 'template [[host_name("named")]] kernel void k<float>(device float*);\n'
        + 'template [[host_name("¦named")]] kernel void k<int>(device int*);',
        "two kernels are named 'named' (the other is on line 5)",
        "rename one",
    ),
    "one kernel twice": Wrong(
        STD + "kernel void k(device float* y) { y[0] = 1; }\nkernel void ¦k(device float* y) { y[0] = 1; }",
        "redefinition of 'k'",
    ),
    "buffer index twice": Wrong(
        STD + "kernel void k(device float* x [[buffer(1)]], device float* ¦y [[buffer(1)]]) { y[0] = 1; }",
        "[[buffer(1)]] is given to both 'x' and 'y'",
        "its own index",
    ),
    "buffer index over 30": Wrong(
        STD + "kernel void k(device float* ¦y [[buffer(31)]]) { y[0] = 1; }",
        "'y' [[buffer(31)]]: Metal has indices 0 to 30",
    ),
    "bad attribute": Wrong(
        STD + "kernel void k(device float* y [[¦bogus(0)]]) { y[0] = 1; }", "unknown attribute 'bogus'", "section 5.2"
    ),
    "misspelled attribute": Wrong(
        STD + "kernel void k(device float* y, uint i [[¦thread_position_in_gird]]) { y[i] = 1; }",
        "unknown attribute 'thread_position_in_gird'",
        "did you mean [[thread_position_in_grid]]?",
    ),
    "attribute of another name": Wrong(
        STD + "kernel void k(device float* y, uint i [[¦thread_id]]) { y[i] = 1; }",
        "unknown attribute 'thread_id'",
        "did you mean [[thread_position_in_grid]]?",
    ),
    "attribute without argument": Wrong(
        STD + "kernel void k(device float* y [[¦buffer]]) { y[0] = 1; }",
        "attribute 'buffer' needs an argument: [[buffer(…)]]",
    ),
    "attribute with an argument": Wrong(
        STD + "kernel void k(device float* y, uint i [[¦thread_position_in_grid(0)]]) { y[i] = 1; }",
        "attribute 'thread_position_in_grid' takes no argument: [[thread_position_in_grid]]",
    ),
    "negative index": Wrong(
        STD + "kernel void k(device float* y [[¦buffer(-1)]]) { y[0] = 1; }",
        "'buffer' needs a constant integer that is not negative",
    ),
    "missing address space": Wrong(
        STD + "kernel void k(float* ¦y) { y[0] = 1; }",
        "kernel parameter 'y' has no address space",
        "write device or constant",
    ),
    "neither buffer nor input": Wrong(
        STD + "kernel void k(device float* y, uint ¦n) { y[0] = n; }",
        "kernel parameter 'n' of type 'uint' is neither a buffer nor an input",
        "constant uint& n",
    ),
    "double": Wrong(STD + K + "{ ¦double d = 1; y[i] = d; }", "'double' is not supported in Metal"),
    "no kernel": Wrong(
        "¦" + STD + "void k(device float* y) { y[0] = 1; }",
        "no kernel in this cell",
        "mark a function with kernel void",
    ),
    "address spaces": Wrong(
        STD + "kernel void k(device float* y) { threadgroup float t[4]; device float* ¦p = t; y[0] = *p; }",
        "cannot initialize a variable of type 'device float *' with an lvalue of type 'threadgroup float[4]'",
    ),
    "static_assert": Wrong(
        STD + 'static_assert(¦sizeof(float3) == 12, "packed?");\n' + K + "{ y[i] = 1; }",
        "static assertion failed due to requirement 'sizeof(float3) == 12': packed?",
    ),
    "error directive": Wrong(STD + "#¦error not yet\n" + K + "{ y[i] = 1; }", "not yet"),
    "in a template": Wrong(
        STD
        + "template <typename T> T twice(T x) { return x.¦missing; }\n"
        + K
        + "{ float2 v = 1; y[i] = twice(v).x; }",
        "no member named 'missing' in 'float2'",
    ),
    "inside a header": Wrong(
        STD + "struct S { int a; };\n" + K + "{ S s; y[i] = ¦max(s, s).a; }", "no matching function for call to 'max'"
    ),
    "in a macro": Wrong(
        STD + "#define SET(v) y[i] = v * missing\n" + K + "{\n    ¦SET(2);\n}",
        "use of undeclared identifier 'missing' (in the macro SET, line 3)",
    ),
    "in continued lines": Wrong(
        STD + "#define A 1 + \\\n  2\n" + K + "{\n  y[i] = A + ¦b;\n}", "use of undeclared identifier 'b'"
    ),
    "host_name of no kernel": Wrong(
        STD
        + 'template <typename T> void f(device T* y) { y[0] = 1; }\n¦template [[host_name("k")]] [[kernel]] decltype(f<int>) f<int>;',
        "host_name \"k\": 'f' is not a kernel template",
    ),
    "host_name of a wrong type": Wrong(
        STD
        + 'template <typename T> kernel void f(device T* y) { y[0] = 1; }\ntemplate [[host_name("k")]] [[kernel]] decltype(f<¦nothing>) f<nothing>;',
        "use of undeclared identifier 'nothing'",
    ),
    "include of a file": Wrong(
        'int a;\n  ¦#include "/etc/passwd"\n' + K + "{ y[i] = 1; }",
        '#include "/etc/passwd": a cell cannot include files',
        "MSL's own headers",
    ),
    "include of a misspelled header": Wrong(
        "¦#include <metal_stdlob>\n" + K + "{ y[i] = 1; }",
        "#include <metal_stdlob>: a cell cannot include files",
        "did you mean 'metal_stdlib'?",
    ),
    "unterminated comment": Wrong(STD + K + "{ y[i] = 1; }\n  ¦/* and so on", "unterminated /* comment"),
    "empty cell": Wrong("¦", "no kernel in this cell"),
}


def place(text: str) -> tuple[str, int, int]:
    """Remove the sign; return the source, and the sign's line and column."""
    before, after = text.split("¦")
    lines = before.replace("\r\n", "\n").split("\n")
    return before + after, len(lines), len(lines[-1]) + 1


@pytest.mark.parametrize("name", WRONG)
def test_error_has_position_message_and_hint(name: str) -> None:
    wrong = WRONG[name]
    text, line, column = place(wrong.text)
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(text).k.binary  # noqa: B018  (compiles for the device)
    error = caught.value
    assert (error.message, error.line, error.column) == (wrong.message, line, column), str(error)
    assert wrong.hint in error.hint
    first = error.diagnostics[0]
    assert first.text == text.replace("\r\n", "\n").split("\n")[line - 1]
    if not first.text:
        return
    caret = str(error).split("\n")[2]
    assert caret.index("^") - caret.index("|") - 2 == column - 1
    assert caret.replace("|", " ").replace("^", " ").isspace()


def test_failing_instantiation_is_reported_at_its_own_line() -> None:
    """A query to libclang, appended to the cell's source, repeats the author's errors."""
    made = 'template [[host_name("k_int")]] [[kernel]] decltype(k<int, 3>) k<int, 3>;'
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(f"template <class T> kernel void k(device T* x) {{ }}\n{made}")
    columns = {made.index("k<int") + 1, made.rindex("k<int") + 1}
    assert {(d.line, d.column) for d in caught.value.diagnostics} == {(2, c) for c in columns}


@pytest.fixture(scope="module")
def executed() -> dict[str, Any]:
    """Run a notebook to its end in one kernel, with each wrong source in its own cell."""
    import nbclient  # imported here: it takes seconds, and every worker collects this file
    import nbformat

    names = [n for n in WRONG if place(WRONG[n].text)[0].strip()]
    cells = [nbformat.v4.new_code_cell("%load_ext metalnb")]
    cells += [nbformat.v4.new_code_cell("%%metal\n" + place(WRONG[n].text)[0]) for n in names]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, allow_errors=True).execute()
    return dict(zip(names, notebook.cells[1:], strict=True))


@pytest.mark.parametrize("name", [n for n in WRONG if place(WRONG[n].text)[0].strip()])
def test_a_notebook_cell_ends_in_the_caret_line(name: str, executed: dict[str, Any]) -> None:
    text, line, column = place(WRONG[name].text)
    output = executed[name].outputs[-1]
    assert output.output_type == "error"
    assert output.ename == "CompileError"
    shown = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback))
    written = text.replace("\r\n", "\n").split("\n")[line - 1]
    indent = "".join("\t" if c == "\t" else " " for c in written[: column - 1])
    assert f" | {written}\n" in shown
    assert f" | {indent}^" in shown
    assert "metalnb/" not in shown  # only the author's frames


def test_run_all_stops_at_a_wrong_cell() -> None:
    import nbclient
    import nbformat

    cells = ["%load_ext metalnb", "%%metal\nkernel void k(device float* y) { y[0] = }", "reached = True"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="expected expression"):
        nbclient.NotebookClient(notebook, timeout=120).execute()
    assert notebook.cells[2].execution_count is None


def test_a_hint_that_the_message_gives_already_is_not_repeated() -> None:
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(f"{STD}kernel void k(device flaot* y) {{ y[0] = 1; }}")
    assert caught.value.hint == "did you mean 'float'?"
    assert "hint: did you mean 'float'?" in str(caught.value)  # the message does not contain it
    named = Diagnostic(1, 1, "no 'lenght'; did you mean 'length'?", "lenght(x)", hint="did you mean 'length'?")
    assert str(named).count("did you mean") == 1


@pytest.mark.parametrize(("wrong", "times"), [("y[i] = float2(1);", 1), ("y[i] = mising;", 2)])
def test_the_library_is_read_from_its_text_only_for_names(
    wrong: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing the library's text takes ten times as long as parsing the cell; only suggestions for names need it."""
    parsed, seen = parse._parse_files, []
    monkeypatch.setattr(parse, "_parse_files", lambda *given, **how: seen.append(how) or parsed(*given, **how))
    with pytest.raises(mnb.CompileError):
        mnb.compile(f"{STD}kernel void k(device float* y, uint i [[thread_position_in_grid]]) {{ {wrong} }}")
    assert [how["library"] for how in seen] == [True, False][:times]
