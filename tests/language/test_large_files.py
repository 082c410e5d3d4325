"""Large files: the compiler gets only what a kernel needs, and only some of many instantiations are parsed."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.engine.base import compiled
from metalnb.library_kernels.launching import programs as library
from metalnb.msl.rewrite.scan import scan
from metalnb.msl.text.unused_functions import without_unused

reflection = importlib.import_module("metalnb.msl.analysis.reflect")
STD = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"


def generated(count: int) -> str:
    """Return a file of `count` kernels, each with its own helper, as generators write them."""
    lines = [STD, "constant float table[3] = {0.25f, 0.5f, 0.75f};", "inline float shared(float v) { return v / 2; }"]
    for k in range(count):
        lines += [
            f"inline float helper_{k}(float v) {{",
            f"    for (int j = 0; j < {k % 5 + 1}; ++j) v = shared(v) + table[{k % 3}];",
            "    return v;",
            "}",
            f"kernel void k_{k}(device float* x [[buffer(0)]], {ID}) {{ x[i] = helper_{k}(x[i]) + {k}; }}",
        ]
    return "\n".join(lines)


def expected(x: np.ndarray, k: int) -> np.ndarray:
    v = x.astype(np.float64)
    for _ in range(k % 5 + 1):
        v = v / 2 + (k % 3 + 1) / 4
    return v + k


def words(text: str, name: str) -> int:
    return sum(word.startswith(name) for word in text.replace("(", " ").split())


# Seconds, to find quadratic time; the next test compiles as many instantiations of a template.
@pytest.mark.long
def test_a_file_of_600_kernels() -> None:
    program = mnb.compile(generated(600), engine="cpu")
    assert len(program) == 600
    whole = program["k_0"].unit.cell.edited.text
    for k in (0, 7, 299, 598, 599):
        x = np.arange(40, dtype=np.float32)
        program[f"k_{k}"](x)
        np.testing.assert_allclose(x, expected(np.arange(40), k), rtol=1e-6)
        text = program[f"k_{k}"].unit.text
        assert [words(text, name) for name in ("k_", "helper_", "shared")] == [1, 2, 2]
        assert (text.count("\n"), len(text.encode())) == (whole.count("\n"), len(whole.encode()))
    idle = sum(k._binary is None for k in program.values())
    assert idle == 595


@pytest.mark.parametrize("macros", [False, True])
def test_a_template_file_of_600_instantiations_compiles_only_the_kernel_that_is_called(
    macros: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METALNB_CACHE", str(tmp_path))  # a file read before is not parsed again
    parsed: list[tuple[str, bool]] = []
    parse = reflection.parse

    def record_parse(*arguments: Any, with_instantiations: bool) -> Any:
        parsed.append((arguments[2], with_instantiations))
        return parse(*arguments, with_instantiations=with_instantiations)

    monkeypatch.setattr(reflection, "parse", record_parse)
    cell = STD + f"""
template <typename T, int N> [[kernel]] void scale(device T* x [[buffer(0)]], {ID}) {{ x[i] = x[i] * T(2) + T(N); }}
template <typename T, int N> [[kernel]] void shift(device T* x [[buffer(0)]], {ID}) {{ x[i] = x[i] + T(N); }}
#define made(name, ...) \\
    template [[host_name(name)]] [[kernel]] \\
    decltype(__VA_ARGS__) __VA_ARGS__;
"""
    for k in range(600):
        made = f"{'scale' if k < 599 else 'shift'}<{'float' if k % 2 else 'int'}, {k}>"
        template = f'template [[host_name("k_{k}")]] [[kernel]] decltype({made}) {made};'
        cell += f'made("k_{k}", {made})\n' if macros else template + "\n"
    program = mnb.compile(cell, engine="cpu")
    ((tail, read),) = parsed
    assert (len(program), read) == (600, False)
    assert tail.count("template decltype(") == reflection.MAX_CHECKED_INSTANTIATIONS
    assert "(::shift<float, 599>);" in tail  # at least one of each template
    assert "template decltype" not in program["k_5"].unit.text
    for k in (0, 5, 300, 599):
        x = np.arange(9, dtype=np.float32 if k % 2 else np.int32)
        program[f"k_{k}"](x)
        np.testing.assert_array_equal(x, np.arange(9) * (2 if k < 599 else 1) + k)


def test_a_mistake_in_an_instantiation_that_was_not_read() -> None:
    cell = STD + f"""template <typename T, int N> [[kernel]] void f(device T* x [[buffer(0)]], {ID}) {{
    static_assert(N != 590, "not this one");
    x[i] = N;
}}
"""
    made = [f"f<float, {k}>" for k in range(600)]
    cell += "".join(f'template [[host_name("k_{k}")]] [[kernel]] decltype({m}) {m};\n' for k, m in enumerate(made))
    program = mnb.compile(cell, engine="cpu")
    x = np.zeros(3, np.float32)
    program.k_589(x)
    assert x.tolist() == [589] * 3
    with pytest.raises(mnb.CompileError, match="not this one") as caught:
        program.k_590(x)
    assert caught.value.line == 4
    with pytest.raises(mnb.CompileError, match="not this one"):  # one that is parsed
        mnb.compile(cell.replace("N != 590", "N != 0"), engine="cpu")


# Each cell with a kernel `k`, and which parts of the source must be kept and removed.
NEEDED = {
    "calls, through others": (
        ("float a(float x) { return x; }\nfloat b(float x) { return a(x); }\nfloat c(float x) { return b(x); }\n"
        "kernel void k(device float* x) { *x = b(1); }"), ["a(float x)", "b(float x)"], ["c(float x)"],
    ),
    "overloads and templates of a name": (
        ("template <typename T> T a(T x) { return x; }\nint a(int x) { return x + 1; }\nint z(int x) { return x; }\n"
        "kernel void k(device int* x) { *x = a(1); }"), ["T a(", "int a("], ["int z("],
    ),
    "a macro's words, where it is used": (
        ("#define CALL(f) helper(f)\nint helper(int x) { return x; }\nint other(int x) { return x; }\n"
        "#define OTHER other\n"
        "kernel void k(device int* x) { *x = CALL(1); }"), ["int helper("], ["int other("],
    ),
    "names that a macro pastes": (
        ("#define CALL(f) help_##f\nint help_er(int x) { return x; }\nint other(int x) { return x; }\n"
        "kernel void k(device int* x) { *x = CALL(er)(1); }"), ["int help_er("], ["int other("],
    ),
    "names that a macro pastes of anything": (
        ("#define CALL(g, f) g##f\nint help_er(int x) { return x; }\n"
        "kernel void k(device int* x) { *x = CALL(help_, er)(1); }"), ["int help_er("], [],
    ),
    "operators, and what they call": (
        ("struct S { int v; };\nint twice(int x) { return 2 * x; }\n"
        "S operator+(S a, S b) { return {twice(a.v) + b.v}; }\n"
        "int z(int x) { return x; }\nkernel void k(device int* x) { S s = {1}; *x = (s + s).v; }"),
        ["int twice(", "operator+("], ["int z("],
    ),
    "members, and what they call": (
        ("int twice(int x) { return 2 * x; }\nstruct S { int v; int get() thread { return twice(v); } };\n"
        "int z(int x) { return x; }\nkernel void k(device int* x) { S s = {1}; *x = s.get(); }"),
        ["int twice("], ["int z("],
    ),
    "a range for": (
        ("struct R { int n; };\nthread int* begin(thread R& r) { return &r.n; }\nthread int* end(thread R& r) "
        "{ return &r.n + 1; }\nkernel void k(device int* x) { R r = {1}; for (int v : r) *x = v; }"),
        ["begin(", "end("], [],
    ),
    "a macro that makes heads": (
        ("#define PAIR(n) int n##_one(int x) { return x; } int\nPAIR(a) b(int x) { return x; }\n"
        "kernel void k(device int* x) { *x = a_one(1); }"), ["PAIR(a) b("], [],
    ),
    "a macro without arguments that makes heads": (
        ("#define FIRST int one(int x) { return x; }\nFIRST int b(int x) { return x; }\n"
        "kernel void k(device int* x) { *x = one(1); }"), ["FIRST int b("], [],
    ),
    "conditions around": (
        ("#if 1\nint a(int x) { return x; }\n#else\nint a(int x) { return 2 * x; }\n#endif\nint b(int x) {\n#if 1\n"
        "    return x;\n#endif\n}\nkernel void k(device int* x) { *x = a(1); }"), ["int a("], ["int b(", "void last("],
    ),
    "conditions across": (
        ("#if 1\nint b(int x) {\n#else\nint b(long x) {\n#endif\n    return x; }\n"
        "kernel void k(device int* x) { *x = 1; }"), ["int b(int x)"], [],
    ),
    "a macro defined inside": (
        "int b(int x) {\n#define ONE 1\n    return ONE; }\nkernel void k(device int* x) { *x = ONE; }", ["int b("], [],
    ),
    "namespaces": (
        ("namespace n { namespace m { int a(int x) { return x; }\nint z(int x) { return x; } } }\n"
        "kernel void k(device int* x) { *x = n::m::a(1); }"), ["int a("], ["int z("],
    ),
    "what is specialized": (
        ("template <typename T> T a(T x) { return x; }\ntemplate <> int a<int>(int x) { return x + 1; }\n"
        "kernel void k(device int* x) { *x = a(1); }"), ["T a(", "a<int>("], [],
    ),
    "a table of a function's values": (
        ("constexpr int a(int x) { return x; }\nconstant int t[1] = {a(1)};\nint z(int x) { return x; }\n"
        "kernel void k(device int* x) { *x = t[0]; }"), ["int a("], ["int z("],
    ),
    "letters of several bytes": (
        "int z(int x) { /* ü€𝄞 */ return x; } int y(int x) { return x; }\nkernel void k(device int* x) { *x = y(1); }",
        ["int y("], ["int z(", "ü"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NEEDED)
def test_a_kernel_keeps_the_declarations_that_it_needs(case: str) -> None:
    text, kept, lost = NEEDED[case]
    cell = scan(STD + text + "\nkernel void last(device int* x) { *x = 9; }")
    [found], whole = without_unused([cell], "::k"), cell.edited.text
    assert [part for part in kept if part not in found] == []
    assert [part for part in lost if part in found] == []
    for one, other in zip(found.encode().split(b"\n"), whole.encode().split(b"\n"), strict=True):
        assert len(one) == len(other)
    program = mnb.compile(STD + text, engine="cpu")
    assert not program.k.unit.whole
    x = np.zeros(1, np.float32 if "float* x)" in text else np.int32)
    program.k(x, grid=1)
    assert not program.k.binary.unit.whole  # all that it needs was there


def test_declarations_that_a_header_names_are_kept() -> None:
    headers = {"h.h": "int late(int x);\ninline int early(int x) { return late(x) + 1; }\n"}
    cell = STD + '#include "h.h"\nint late(int x) { return 3 * x; }\nint never(int x) { return x; }\n'
    program = mnb.compile(cell + "kernel void k(device int* x) { *x = early(*x); }", headers=headers, engine="cpu")
    x = np.array([5], np.int32)
    program.k(x, grid=1)
    assert x[0] == 16
    assert "late(int x)" in program.k.unit.text
    assert "never(int x)" not in program.k.unit.text


HEADERS = {
    "a.h": (
        "#define CALL(f) near_##f\n#define HEAD int more(int x) { return x; } int\n"
        "inline int idle_a(int x) { return x; } /* ü */\n"
    ),
    "b.h": (
        '#include "a.h"\nHEAD headed(int x) { return x; }\ninline int near_one(int x) { return far_one(x) + 1; }\n'
        "inline int idle_b(int x) { return idle_a(x); }\n"
    ),
}


def test_header_drops_functions_that_no_kernel_reaches() -> None:
    cell = STD + (
        'int far_one(int x);\n#include "b.h"\nint far_one(int x) { return 5 * x; }\n'
        "kernel void k(device int* x) { *x = CALL(one)(*x); }\nkernel void l(device int* x) { *x = idle_b(*x); }\n"
    )
    program = mnb.compile(cell, headers=HEADERS, engine="cpu")
    k, whole = program.k.unit.texts, {name: header.edited.text for name, header in program.k.unit.headers.items()}
    assert "near_one" in k["b.h"]
    assert "headed" in k["b.h"]  # its head is another file's macro, and it has its own function
    assert not [word for word in ("idle_a", "idle_b") if word in k["a.h"] + k["b.h"]]
    assert [len(k[name].encode()) for name in HEADERS] == [len(whole[name].encode()) for name in HEADERS]
    assert [k[name].count("\n") for name in HEADERS] == [whole[name].count("\n") for name in HEADERS]
    assert "idle_a" in program.l.unit.texts["a.h"]
    for kernel, right in ((program.k, 36), (program.l, 7)):
        x = np.array([7], np.int32)
        kernel(x, grid=1)
        assert x[0] == right
        assert not kernel.binary.unit.whole  # all that it needs was there


def test_failed_trimmed_text_falls_back_to_the_full_text(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = STD + "int a(int x) { return x; } // of all\nkernel void k(device int* x) { *x = a(4); }"
    program = mnb.compile(cell, engine="cpu")
    text = program.k.unit.cell.edited.text
    cut = text.replace("int a(int x) { return x; }", "")
    monkeypatch.setattr("metalnb.engine.unit.without_unused", lambda *_: [cut])
    binary = compiled(program.engine, program.k.unit)
    assert binary.unit.whole
    x = np.zeros(1, np.int32)
    program.k(x, grid=1)
    assert x[0] == 4


def test_library_templates_are_parsed_once() -> None:
    """All of a user's templates are parsed before any is called; the long tests do that with the library's, too."""
    cell = STD + f"""template <typename T, int N> [[kernel]] void f(device T* x [[buffer(0)]], {ID}) {{
    static_assert(N != 7, "not this one");
    x[i] = N;
}}
"""
    made = [f"f<float, {k}>" for k in range(9)]
    cell += "".join(f'template [[host_name("k_{k}")]] [[kernel]] decltype({m}) {m};\n' for k, m in enumerate(made))
    program = library.compile(cell, engine="cpu")
    x = np.zeros(3, np.float32)
    program.k_5(x)
    assert x.tolist() == [5] * 3
    for again in (program, pickle.loads(pickle.dumps(program)), program.on("cpu")):  # noqa: S301  (our own)
        with pytest.raises(mnb.CompileError, match="not this one"):
            again.k_7(x)
    with pytest.raises(mnb.CompileError, match="not this one"):
        mnb.compile(cell, engine="cpu", math="precise")
