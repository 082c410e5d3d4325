"""clang's warnings reach the author at their position in the cell; correct code causes none.

A line that begins with a brace is the body of a kernel, and gets its head; ``§`` marks the position a warning must
name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from msl.cells import place, program

import metalnb as mnb
from metalnb.errors import Diagnostic
from metalnb.msl.libclang.author_warnings import cautions
from metalnb.program import compiled as programs

# Name, source, message, hint. The message's position is marked.
WARNED = (
    ("a path without a return", "float f(float x) { if (x > 2) return x; §}\n{ y[i] = f(i); }",
     "non-void function does not return a value in all control paths",
     "end every path with a return: without one the value is undefined"),
    ("no return in a template", "template <class T> T f(T x) { §}\n{ y[i] = f(y[i]) + f(i); }",
     "non-void function does not return a value",
     "end every path with a return: without one the value is undefined"),
    ("= for ==", "{ if (i §= 3) y[i] = 1; }",
     "using the result of an assignment as a condition without parentheses",
     "write == to compare, or one more pair of parentheses to assign"),
    ("== for =", "{ y[i] §== 1; }", "equality comparison result unused", "write = to assign"),
    ("an index of two numbers", "{ y[i] = y[§i, 0]; }", "left operand of comma operator has no effect",
     "x[row, column] is x[column] here: write x[row * columns + column]"),
    ("an index past the end", "{ float w[4]; w[0] = 1; y[i] = §w[7] + w[0]; }",
     "array index 7 is past the end of the array (that has type 'float[4]')",
     ""),
    ("an index past the end of threadgroup memory", "{ threadgroup float w[4]; y[i] = §w[7]; }",
     "array index 7 is past the end of the array (that has type 'threadgroup float[4]')",
     ""),
    ("no value", "{ float w; y[i] = §w; }", "variable 'w' is uninitialized when used here",
     "give 'w' a value where it is declared"),
    ("division by zero", "{ y[i] = i §/ 0; }", "division by zero is undefined", ""),
    ("a local variable's address", "thread float* f(float x) { float z = x; return &§z; }\n{ y[i] = *f(i); }",
     "address of stack memory associated with local variable 'z' returned",
     ""),
    ("#warning", "#§warning not yet\n{ y[i] = 1; }", "not yet", ""),
    ("a shift by more bits than there are", "{ y[i] = 1 << §40; }",
     "shift count >= width of type, which has 32 bits",
     "shift a long or ulong, which has 64 bits (MSL 2.1)"),
    ("a shift by as many bits", "{ uint u = i; u >>= (§32); y[i] = u; }",
     "shift count >= width of type, which has 32 bits",
     "shift a long or ulong, which has 64 bits (MSL 2.1)"),
    ("a shift by more bits than a long has", "{ y[i] = 1 << §70; }",
     "shift count >= width of type, which has 32 bits", ""),
    ("a shift of a long", "{ y[i] = 1L << §64; }", "shift count >= width of type, which has 64 bits", ""),
    ("a loop that counts down to nothing", "{ for (uint k = i; §k >= 0; --k) y[k] = 1; }",
     "this loop cannot end: 'k' is unsigned, so it is always >= 0",
     "make it an int, or count down by for (uint k = n; k-- > 0;)"),
    ("a loop while 0 is at most", "{ ushort k = 3; do { y[k] = 1; --k; } while (§0 <= k); }",
     "this loop cannot end: 'k' is unsigned, so it is always >= 0",
     "make it an int, or count down by for (uint k = n; k-- > 0;)"),
    ("after an edit of ours", "{ threadgroup float a[4]; a[0] = 1.0; y[i] = a[0] + §a[9]; }",
     "array index 9 is past the end of the array (that has type 'threadgroup float[4]')",
     ""),
    ("not ASCII before it", "{ /* größe 漢字 😀 */ y[i] = i §/ 0; }", "division by zero is undefined", ""),
    ("in a macro", "#define FILL(v) float w[4]; \\\n  w[v] = 1; y[i] = w[0];\n{ §FILL(7) }",
     "array index 7 is past the end of the array (that has type 'float[4]') (in the macro FILL, line 4)",
     ""),
)  # fmt: skip

# Name, source. All of these are Metal, and mean what they say.
SILENT = (
    ("every path returns", "float f(float x) { if (x > 2) return x; else return 2; }\n{ y[i] = f(i); }"),
    ("a loop that only a return ends", "int f(int n) { while (true) { if (n-- < 2) return n; } }\n{ y[i] = f(i); }"),
    ("a switch with a return in each case",
     "enum E { a, b };\nint f(E e) { switch (e) { case a: return 1; case b: return 2; } }\n{ y[i] = f(a); }"),
    ("an assignment that is meant", "{ uint j; if ((j = i / 2)) y[i] = j; }"),
    ("a last element", "{ float w[4]; for (int j = 0; j < 4; ++j) w[j] = j; y[i] = w[3]; }"),
    ("elements given a value one by one", "{ float w[2]; w[0] = 1; w[1] = i; y[i] = w[0] + w[1]; }"),
    ("a value given in both branches", "{ float w; if (i > 2) w = 1; else w = 2; y[i] = w; }"),
    ("a value from a function", "void f(thread float& x) { x = 1; }\n{ float w; f(w); y[i] = w; }"),
    ("division by zero of floats", "{ y[i] = 1.0 / 0.0; }"),
    ("a loop without a body", "{ uint j = 0; while (j++ < i); y[i] = j; }"),
    ("an int that counts down", "{ for (int k = i; k >= 0; --k) y[k] = 1; }"),
    ("an unsigned loop up to 0", "{ for (uint k = 0; k <= 0; ++k) y[k] = 1; for (uint j = i; 0 >= j; ++j) y[j] = 1; }"),
    ("an unsigned loop with a way out", "{ for (uint k = i; k >= 0; --k) { y[k] = 1; if (k == 0) break; } }"),
    ("an unsigned loop down to 1", "{ for (uint k = i; k >= 1; --k) y[k] = 1; }"),
    ("the widest shifts", "{ y[i] = (1u << 31) + (1L << 63) + (i >> 31); ulong u = 1; u <<= 63; }"),
    ("shifts of a narrow type, done in int", "{ uchar c = i; c <<= 9; y[i] = c << 31; }"),
    ("a shift in a template", "template <class T> T f(T x) { return x << 40; }\n{ y[i] = f(ulong(i)); }"),
    ("a shift by what a template says", "template <int N> ulong f(ulong x) { return x << N; }\n{ y[i] = f<40>(i); }"),
    ("a shift of a vector", "{ y[i] = (ulong2(i) << 40).x; }"),
    ("what the author silences", '#pragma clang diagnostic ignored "-Wdivision-by-zero"\n{ y[i] = i / 0; }'),
    ("what is compiled for another version",
     "#if __METAL_VERSION__ < 200\n#warning old\nint f() { }\n#endif\n{ y[i] = 1; }"),
    ("the kernel library's own", "#include <metalnb/reduce.metal>\n{ y[i] = 1; }"),
)  # fmt: skip


def warned(compiled: Callable[[], object]) -> list[str]:
    """Compile something; return the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled()
    assert all(w.category is mnb.MetalnbWarning and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(("text", "message", "hint"), [w[1:] for w in WARNED], ids=[w[0] for w in WARNED])
def test_dubious_code_warns_at_its_position(text: str, message: str, hint: str) -> None:
    source, line, column = place(program(text))
    found = Diagnostic(line, column, message, source.split("\n")[line - 1], "cell", hint, "warning")
    assert warned(lambda: mnb.compile(source)) == [found.report()]


@pytest.mark.parametrize("text", [s[1] for s in SILENT], ids=[s[0] for s in SILENT])
def test_similar_right_code_gives_no_warning(text: str) -> None:
    source = program(text)
    assert warned(lambda: mnb.compile(source)) == []


def test_each_place_is_warned_of_once_in_the_order_of_the_text() -> None:
    text = "template <class T> T f(T x) { }\n{ y[i] = f(1) + f(1.0) + f(1u) + (1 << 40); y[i] == i / 0; }"
    found = warned(lambda: mnb.compile(program(text)))
    assert [f.split(" ")[0] for f in found] == ["cell:3:31:", "cell:4:107:", "cell:4:117:", "cell:4:122:"]


def test_a_warning_in_a_header_cell_names_the_header_cell() -> None:
    headers = {"helper": "inline float half_of(float x) {\n  x == 2;\n  return x / 2;\n}\n"}
    found = warned(lambda: mnb.compile(program('#include "helper"\n{ y[i] = half_of(i); }'), headers=headers))
    assert [f.split("\n")[0] for f in found] == ["helper:2:5: warning: equality comparison result unused"]


def test_a_warning_in_the_kernel_library_is_not_for_the_author() -> None:
    headers = {"metalnb/ours.h": "inline float half_of(float x) {\n  x == 2;\n  return x / 2;\n}\n"}
    source = program("#include <metalnb/ours.h>\n{ y[i] = half_of(i) / (3 / 0); }")
    found = warned(lambda: mnb.compile(source, headers=headers))
    assert [f.split("\n")[0] for f in found] == ["cell:4:93: warning: division by zero is undefined"]


def test_warnings_in_the_library_headers_are_not_shown() -> None:
    found = SimpleNamespace(severity=2, option="-Wreturn-type", location=None)
    parsed: Any = SimpleNamespace(
        unit=SimpleNamespace(diagnostics=[found]),
        cell=SimpleNamespace(name="cell"),
        owner=lambda _location: None,
        finding=lambda *_found, **_options: Diagnostic(1, 1, "no return"),
    )
    assert cautions(parsed) == ()


def test_cached_warnings_are_shown_again() -> None:
    source = program("{ y[i] = i / 0; }")
    first = warned(lambda: mnb.compile(source, math="precise"))
    programs._programs.clear()
    assert warned(lambda: mnb.compile(source, math="precise")) == first != []


def test_a_cell_that_was_changed_elsewhere_is_warned_of_again() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", mnb.MetalnbWarning)
        for kernel in ("one", "two"):
            mnb.compile(f"kernel void {kernel}(device int* y) {{\n  y[0] = 2 / 0;\n}}")
    assert [str(w.message).split("\n")[0] for w in caught] == ["cell:2:12: warning: division by zero is undefined"] * 2


def test_a_cell_with_an_error_is_refused_and_not_warned_of_besides() -> None:
    def refused() -> None:
        with pytest.raises(mnb.CompileError) as caught:
            mnb.compile(program("{ y[i] = i / 0; y[i] = missing; }"))
        assert [d.severity for d in caught.value.diagnostics] == ["error"]

    assert warned(refused) == []
