"""The table of the passes that edit a cell, for code that the specification allows and clang rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..text.bracket_tree import Outline
from ..text.edits import Edit, Omission, Refusal
from .attribute_annotations import attribute_annotations
from .compound_assignments import compound_assignments
from .conditional_operands import conditional_operands
from .constexpr_tables import constexpr_tables
from .double_type import double_type
from .float_literals import float_literals
from .function_heads.array_deduction import array_deduction
from .function_heads.constructor_spaces import constructor_spaces
from .function_heads.function_pointers import function_pointers
from .function_heads.member_spaces import member_spaces
from .function_heads.render_functions import render_functions
from .function_heads.thread_deduction import thread_deduction
from .input_declarations import input_declarations
from .own_printf import own_printf
from .string_literals import string_literals
from .threadgroup_storage import threadgroup_storage

__all__ = ["PASSES", "Pass"]


class Pass(NamedTuple):
    """A pass, which sees the author's text and not the edits of other passes.

    Attributes
    ----------
    section : str
        The section of the Metal Shading Language specification.
    edits : callable
        Maps the text's trees to edits.
    cell, edited : str
        The golden cell, and the result of this pass alone.
    """

    section: str
    edits: Callable[[Outline], Iterable[Edit | Refusal | Omission]]
    cell: str
    edited: str


PASSES = (
    Pass("5.2.1, 5.8.1", attribute_annotations,
         "constant int N [[function_constant(0)]]; void k(device float* a [[buffer(0)]]);",
         'constant int N [[$attribute("function_constant", 0)]] $initial(N); '
         'void k(device float* a [[$attribute("buffer", 0)]]);'),
    Pass("5.1", render_functions,
         "vertex float4 v() { return 0; } kernel void k() {}",
         " kernel void k() {}"),
    Pass("5.9", input_declarations, "uint3 gid [[thread_position_in_grid]];", "struct gid;"),
    Pass("2.1", double_type, "double x;", "$refused x;"),
    Pass("2.1", float_literals, "a = 1.0; b = 1.0h; c = 1.0bf;", "a = 1.0f; b = 1.0h; c = bfloat(1.0f);"),
    Pass("3.1", conditional_operands,
         "y = i < n ? x[i] : float4(0);",
         "y = i < n ? $either()->* x[i] : $either()->* float4(0);"),
    Pass("3.1", compound_assignments,
         "template <class T> void f(T v) { v.x += a; p += a; }",
         "template <class T> void f(T v) { v.x = v . x + ( a); $advance(p , a); }"),
    Pass("4", member_spaces,
         "struct S { int get() const device; };",
         "struct S { int get() const __global; };"),
    Pass("4", constructor_spaces,
         "struct S { S(int x); S(int x) device : a(x) {} };",
         "struct S { S(int x); S($nothing<0>, int x)  : a(x) {} };"),
    Pass("4", thread_deduction,
         "template <class T> void f(thread T& a, T b);",
         "template <class T> void f(thread typename $thread_type<T>::type& a, T b);"),
    Pass("4.3", array_deduction,
         "template <int N> float f(thread const float (&a)[N]);",
         "template <int N, class $E_0, typename $thread_element<$E_0, float>::type = 0> "
         "float f(thread const $E_0 (&a)[N]);"),
    Pass("4.2", constexpr_tables,
         "constexpr constant float table[2] = {1, 2}; void f() { x = table[i]; }",
         "constexpr constant float table[2] = {1, 2}; void f() { x = (*&table)[i]; }"),
    Pass("4.2", string_literals, 'print("text");', 'print("text"_metalnb_text);'),
    Pass("6.19", own_printf, "#ifdef METALNB\n printf(form, x);\n#endif", "#ifdef METALNB\n $printf(form, x);\n#endif"),
    Pass("4.4", threadgroup_storage,
         "threadgroup T tile[N];",
         "threadgroup T (&tile)[N] = $threadgroup_storage<__COUNTER__>();"),
    Pass("1.5.4", function_pointers,
         "template <void (*f)(int)> void g(); using F = void (*)(int);",
         "template <void (&f)(int)> void g(); using F = void (&)(int);"),
)  # fmt: skip
