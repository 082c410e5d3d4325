"""A pointer or a value keeps its address space in templates, too (MSL 4)."""

from __future__ import annotations

import pytest
from msl.cells import place

import metalnb as mnb

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
# Each pair of address spaces that clang converts and Metal does not.
_PAIRS = [("device", "constant"), *((moved, "thread") for moved in ("device", "constant", "threadgroup"))]
_DECLARED = """float pointer(TO const float* a) { return *a; }
float reference(TO const float& a) { return a; }
template <class U> float deduced(TO const U* a) { return *a; }
struct S {
    float member(TO const float* a) const { return *a; }
    template <class U> float made(TO const U* a) const { return *a; }
    static float shared(TO const float* a) { return *a; }
    float operator()(TO const float* a) const { return *a; }
};
template <class T> struct C {
    float v;
    C() {}
    C(TO const T* a) : v(*a) {}
    float member(TO const T* a) const { return *a; }
};
float chosen(TO const float* a) { return 1; }
float chosen(FROM const float* a) { return 2; }
float chosen(TO const float& a) { return 1; }
float chosen(FROM const float& a) { return 2; }
"""
# Bodies that use `p`, a pointer to FROM memory.
_CONVERTED = {
    "a pointer": "return pointer(p);",
    "a place in an array": "return pointer(p + 1);",
    "an address": "return pointer(&p[1]);",
    "a reference to an element": "return reference(p[1]);",
    "a reference to a target": "return reference(*p);",
    "a template's argument": "return deduced(p);",
    "a template's argument, by its type": "return deduced<T>(p);",
    "a member's argument": "return S().member(p);",
    "a member template's argument": "return S().made(p);",
    "a static member's argument": "return S::shared(p);",
    "an operator's argument": "return S()(p);",
    "a class template's member": "return C<T>().member(p);",
    "a class template's constructor": "return C<T>(p).v;",
    "a variable": "TO const T* q = p; return *q;",
    "assignment": "TO const T* q = nullptr; q = p; return *q;",
    "a choice": "return pointer(true ? p : p + 1);",
}  # fmt: skip
_KEPT = {"a pointer": "return chosen(p);", "an element": "return chosen(p[1]);", "a value": "T q = p[1]; return q;"}
# Contexts of the body.
_BODIES = {
    "a function": "template <class T> float f(FROM const T* p) { BODY }",
    "a function that another calls": "template <class T> float g(FROM const T* p) { BODY }\n"
                                     "template <class T> float f(FROM const T* p) { return g(p); }",
    "a member": "template <class T> struct M { float g(FROM const T* p) const { BODY } };\n"
                "template <class T> float f(FROM const T* p) { return M<T>().g(p); }",
    "a member template": "struct M { template <class T> float g(FROM const T* p) const { BODY } };\n"
                         "float f(FROM const float* p) { return M().g<float>(p); }",
    "a specialization": "template <class T> float f(FROM const T* p) { return 0; }\n"
                        "template <> float f<float>(FROM const float* p) { typedef float T; BODY }",
}  # fmt: skip
_PARAMETERS = {"device": "device float* y, device const float* x", "constant": "device float* y, constant float* x",
               "threadgroup": "device float* y, threadgroup float* x [[threadgroup(0)]]"}  # fmt: skip


def _cell(pair: tuple[str, str], where: str, body: str) -> str:
    moved, into = pair
    text = _DECLARED + _BODIES[where].replace("BODY", f"\n{body}\n")
    text = text.replace("FROM", moved).replace("TO", into).replace("constant const", "constant")
    return f"{_HEAD}{text}\nkernel void k({_PARAMETERS[moved]}) {{ y[0] = f(x); }}"


@pytest.mark.long(every=3)  # Each body and four of the pairs of spaces remain; one rule refuses all of them
@pytest.mark.parametrize("pair", _PAIRS, ids="-".join)
@pytest.mark.parametrize("where", _BODIES)
def test_no_template_changes_an_address_space(where: str, pair: tuple[str, str]) -> None:
    for what, body in _CONVERTED.items():
        source = _cell(pair, where, body)
        with pytest.raises(mnb.CompileError) as caught:
            pytest.fail(f"{what} is taken: {mnb.compile(source)}")
        written = body.replace("TO", pair[1]).replace("constant const", "constant")
        assert source.split("\n")[caught.value.line - 1] == written
        assert pair[0] in caught.value.message, what
        assert pair[1] in caught.value.message, what


@pytest.mark.parametrize("pair", _PAIRS, ids="-".join)
@pytest.mark.parametrize("where", _BODIES)
@pytest.mark.parametrize("what", _KEPT)
def test_templates_that_keep_the_address_space_compile(what: str, where: str, pair: tuple[str, str]) -> None:
    assert mnb.compile(_cell(pair, where, _KEPT[what])).kernels


@pytest.mark.parametrize("statement", ["kernel decltype(t<float>) t<float>;", "kernel void t<float>(device float*);"])
def test_kernel_template_does_not_change_an_address_space(statement: str) -> None:
    source, line, _ = place(f"""{_HEAD}float pointer(constant float* a) {{ return *a; }}
template <class T> kernel void t(device T* y) {{ y[0] = §pointer(y); }}
template [[host_name("k")]] {statement}""")
    with pytest.raises(mnb.CompileError, match="a device pointer is used as a constant pointer") as caught:
        mnb.compile(source)
    assert caught.value.line == line


def test_uninstantiated_templates_are_not_checked() -> None:
    """A compiler does not look at it either, because the types are unknown."""
    source = f"""{_HEAD}float pointer(constant float* a) {{ return *a; }}
template <class P> float f(P p) {{ return pointer(p); }}
kernel void k(device float* y, constant float* x) {{ y[0] = f(x); }}"""
    assert mnb.compile(source).kernels
