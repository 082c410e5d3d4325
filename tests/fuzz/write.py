"""Print a program: as a Metal kernel, and as C++ that runs a threadgroup of it on the host, thread after thread.

A program whose threads meet is printed for the host in lockstep: each statement runs for every thread that is active
before the next one begins, with a mask for each block. That is what SIMD functions and barriers mean, spelled out.
"""

from __future__ import annotations

from collections.abc import Iterable

from .tree import SIGNED, SLOTS, VECTORS, WIDTH, Expr, Helper, Program, Stmt, element, lanes, unsigned

__all__ = ["LARGEST", "host", "metal"]

LARGEST = 256  # threads in a threadgroup
_PLAIN = {"add": "+", "sub": "-", "mul": "*"}
_BITS = {"and": "&", "or": "|", "xor": "^"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_CALLS = frozenset({"min", "max", "absdiff", "mulhi", "abs", "popcount", "clz", "ctz", "median3", "clamp"})
_FLOAT_CALLS = {"fmin": "fmin", "fmax": "fmax", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc"}
_VECTOR = {"vadd": "+", "vsub": "-", "vand": "&", "vor": "|", "vxor": "^"}
_SUFFIX = {"uint": "u", "long": "l", "ulong": "ul"}

_SHARED = "".join(
    f"inline uint bits({v} x) {{ return bits(x.x) * 7u + bits(x.y){''.join(f' * 5u + bits(x.{c})' for c in 'zw'[: lanes(v) - 2])}; }}\n"
    for v in VECTORS
)
_TOOLS = """
template <class T> inline T safe_div(T a, T b) { return b == T(0) || b == T(-1) ? a : T(a / b); }
template <class T> inline T safe_rem(T a, T b) { return b == T(0) || b == T(-1) ? a : T(a % b); }
template <class T> inline T whole(float x) { return x != x ? T(0) : x > 1.0e6f ? T(1) : x < -1.0e6f ? T(2) : T(int(x)); }
inline uint bits(char x) { return uint(uchar(x)); }
inline uint bits(uchar x) { return x; }
inline uint bits(short x) { return uint(ushort(x)); }
inline uint bits(ushort x) { return x; }
inline uint bits(int x) { return uint(x); }
inline uint bits(uint x) { return x; }
inline uint bits(ulong x) { return uint(x) ^ uint(x >> 32) * 3u; }
inline uint bits(long x) { return bits(ulong(x)); }
inline uint bits(float x) { return x != x ? 0x7fc00000u : x == 0.0f ? 0u : AS_UINT(x); }
inline uint bits(half x) { return bits(float(x)); }
"""
# A product that no compiler can contract into a sum: its bits pass through a word that only the caller knows to be 0.
METAL_PRELUDE = (
    """#include <metal_stdlib>
using namespace metal;
#define AS_UINT(x) as_type<uint>(x)
inline float K(float x, uint zero) { return as_type<float>(as_type<uint>(x) ^ zero); }
inline half K(half x, uint zero) { return as_type<half>(ushort(as_type<ushort>(x) ^ ushort(zero))); }
"""
    + _TOOLS + _SHARED
)  # fmt: skip

_HOST_VECTORS = "".join(
    f"typedef {element(v)} {v} __attribute__((ext_vector_type({lanes(v)})));\n"
    f"inline {v} make_{v}({', '.join(f'{element(v)} {c}' for c in 'xyzw'[: lanes(v)])}) "
    f"{{ {v} r; {' '.join(f'r.{c} = {c};' for c in 'xyzw'[: lanes(v)])} return r; }}\n"
    + (
        ""
        if element(v) == "float"
        else "".join(
            f"inline {v} {name}({v} a, {v} b) {{ {v} r; for (int i = 0; i < {lanes(v)}; ++i) r[i] = a[i] {sign} b[i] ? a[i] : b[i]; return r; }}\n"
            for name, sign in (("min", "<"), ("max", ">"))
        )
    )
    for v in VECTORS
)
HOST_PRELUDE = (
    """typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned uint; typedef unsigned long ulong;
typedef _Float16 half;
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define AS_UINT(x) __builtin_bit_cast(uint, x)
extern "C" void* memset(void* to, int value, ulong count) { for (ulong i = 0; i < count; ++i) ((volatile char*)to)[i] = value; return to; }
extern "C" void* memcpy(void* to, const void* from, ulong count) {
    for (ulong i = 0; i < count; ++i) ((volatile char*)to)[i] = ((const char*)from)[i]; return to; }
inline float K(float x, uint) { return x; }
inline half K(half x, uint) { return x; }
template <class T> struct wide_of { typedef __int128 type; };
template <> struct wide_of<ulong> { typedef unsigned __int128 type; };
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }
template <class T> inline T clamp(T x, T low, T high) { return min(max(x, low), high); }
template <class T> inline T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }
template <class T> inline T absdiff(T a, T b) { return T(a < b ? ulong(b) - ulong(a) : ulong(a) - ulong(b)); }
template <class T> inline T abs(T a) { return a < T(0) ? T(0 - ulong(a)) : a; }
template <class T> inline T mulhi(T a, T b) { typedef typename wide_of<T>::type W; return T((W(a) * W(b)) >> (8 * sizeof(T))); }
template <class T> inline T popcount(T a) { T n = 0; for (uint i = 0; i < 8 * sizeof(T); ++i) n += (ulong(a) >> i) & 1; return n; }
template <class T> inline T clz(T a) { T n = 0; for (int i = 8 * sizeof(T) - 1; i >= 0 && !((ulong(a) >> i) & 1); --i) ++n; return n; }
template <class T> inline T ctz(T a) { T n = 0; for (uint i = 0; i < 8 * sizeof(T) && !((ulong(a) >> i) & 1); ++i) ++n; return n; }
template <class T> inline T fmin(T a, T b) { return a != a ? b : b != b ? a : b < a ? b : a; }
template <class T> inline T fmax(T a, T b) { return a != a ? b : b != b ? a : a < b ? b : a; }
template <class T> inline T fabs(T a) { return a < T(0) ? T(-a) : a; }
template <class T> inline T trunc(T a) { return a != a || fabs(a) >= T(sizeof(T) == 2 ? 2048 : 8388608) ? a : T(int(a)); }
template <class T> inline T floor(T a) { T w = trunc(a); return w > a ? T(w - T(1)) : w; }
template <class T> inline T ceil(T a) { T w = trunc(a); return w < a ? T(w + T(1)) : w; }
"""
    + _TOOLS + _HOST_VECTORS + _SHARED
)  # fmt: skip


class _Writer:
    """What both printers share: expressions, and the statements of one thread."""

    metal = True

    def name(self, name: str) -> str:
        """Write a variable."""
        return name

    def expr(self, e: Expr) -> str:  # noqa: C901, PLR0911, PLR0912  (a table, written as cases)
        """Write an expression; its type in the text is the type in the tree."""
        kind, op = e.type, e.op
        a = [self.expr(x) for x in e.args]
        if op == "const":
            return self._literal(kind, e.text)
        if op == "var":
            return self.name(e.text)
        if op in {"component", "swizzle"}:
            name, parts = e.text.split(".")
            return f"{self.name(name)}.{parts}"
        if op in _PLAIN:
            if kind in {"uint", "ulong"}:
                return f"({a[0]} {_PLAIN[op]} {a[1]})"
            u = unsigned(kind)
            return f"{kind}({u}({a[0]}) {_PLAIN[op]} {u}({a[1]}))"
        if op in _BITS:
            return self._cast(kind, f"{a[0]} {_BITS[op]} {a[1]}")
        if op in {"rawdiv", "rawrem", "rawand"}:
            return self._cast(kind, f"{a[0]} {dict(rawdiv='/', rawrem='%', rawand='&')[op]} {a[1]}")
        if op == "shl":
            u = unsigned(kind)
            return f"{kind}({u}({a[0]}) << ({u}({a[1]}) & {WIDTH[kind] - 1}))"
        if op == "shr":
            return f"{kind}({a[0]} >> ({unsigned(kind)}({a[1]}) & {WIDTH[kind] - 1}))"
        if op == "not":
            return self._cast(kind, f"~{a[0]}")
        if op == "neg":
            return f"{kind}(0 - {unsigned(kind)}({a[0]}))"
        if op in {"div", "rem"}:
            return f"safe_{op}<{kind}>({a[0]}, {a[1]})"
        if op == "abs" and kind in SIGNED:  # of the least number: itself
            return f"{kind}({a[0]} < 0 ? 0 - {unsigned(kind)}({a[0]}) : {unsigned(kind)}({a[0]}))"
        if op == "clamp":
            return f"{kind}(clamp({a[0]}, min({a[1]}, {a[2]}), max({a[1]}, {a[2]})))"
        if op in _CALLS:
            return f"{kind}({op}({', '.join(a)}))"
        if op in _COMPARE:
            return f"({a[0]} {_COMPARE[op]} {a[1]})"
        if op in {"both", "either"}:
            return f"({a[0]} {'&&' if op == 'both' else '||'} {a[1]})"
        if op == "choose":
            return f"({a[0]} ? {a[1]} : {a[2]})"
        if op == "cast" or op in {"tohalf", "tofloat"}:
            return f"{kind}({a[0]})"
        if op == "truncated":
            return f"whole<{kind}>({a[0]})"
        if op in {"fadd", "fsub"}:
            return f"{kind}({a[0]} {'+' if op == 'fadd' else '-'} {a[1]})"
        if op == "fmul":
            return f"K({kind}({a[0]} * {a[1]}), zero)"
        if op == "fneg":
            return f"{kind}(-{a[0]})"
        if op in _FLOAT_CALLS:
            return f"{kind}({_FLOAT_CALLS[op]}({', '.join(a)}))"
        if op in _VECTOR:
            return self._vector(kind, _VECTOR[op], a)
        if op in {"vmin", "vmax"}:
            return f"{op[1:]}({a[0]}, {a[1]})"
        if op == "make":
            return f"{kind if self.metal else f'make_{kind}'}({', '.join(a)})"
        if op == "load":
            return f"{e.text}[{a[0]} & 63]"
        if op == "take":
            return f"{self.name(e.text)}[{a[0]} & 7]"
        if op == "bits":
            return f"bits({a[0]})"
        if op == "mix":
            text = a[0]
            for more in a[1:]:
                text = f"({text}) * 31u + {more}"
            return text
        assert op == "call", op
        return f"{e.text}({', '.join([*a, 'zero'])})"

    def _cast(self, kind: str, text: str) -> str:
        return f"{kind}({text})" if WIDTH[kind] < 32 else f"({text})"

    def _literal(self, kind: str, text: str) -> str:
        if kind in {"float", "half"}:
            return f"({text})" if text.startswith("-") else text
        whole = f"{text}{_SUFFIX.get(kind, '')}"
        return f"{kind}({whole})" if WIDTH[kind] < 32 else f"({whole})" if text.startswith("-") else whole

    def _vector(self, kind: str, sign: str, a: list[str]) -> str:
        one = element(kind)
        if one in {"int", "long"} and sign in "+-":
            u = f"u{kind}"
            if self.metal:
                return f"{kind}({u}({a[0]}) {sign} {u}({a[1]}))"
        return f"({a[0]} {sign} {a[1]})"

    # The statements of one thread ------------------------------------------------------------------

    def block(self, body: Iterable[Stmt], pad: str) -> str:
        """Write statements, each on lines of its own."""
        return "".join(self.stmt(s, pad) for s in body)

    def stmt(self, s: Stmt, pad: str) -> str:  # noqa: C901, PLR0911, PLR0912  (a table, written as cases)
        """Write a statement."""
        x = [self.expr(e) for e in s.exprs]
        inner = pad + "  "
        if s.kind == "declare":
            return f"{pad}{s.type} {s.text} = {x[0]};\n"
        if s.kind == "array":
            u = unsigned(s.type)
            return f"{pad}{s.type} {s.text}[8]; for (uint j = 0; j < 8; ++j) {s.text}[j] = {s.type}({u}({x[0]}) + j);\n"
        if s.kind == "put":
            return f"{pad}{s.text}[{x[0]} & 7] = {x[1]};\n"
        if s.kind in {"assign", "component"}:
            return f"{pad}{s.text} {s.type if s.kind == 'assign' else '='} {x[0]};\n"
        if s.kind == "divide":
            return f"{pad}if ({x[0]}) {s.text} = {x[1]};\n"
        if s.kind == "lane":
            return f"{pad}{s.text}[{x[0]} & {lanes(s.type) - 1}] = {x[1]};\n"
        if s.kind == "move":
            way = "for (int j = 7; j > 0; j--) W[j] = W[j - 1];" if s.type == "up" else "for (int j = 0; j < 7; j++) W[j] = W[j + 1];"
            return f"{pad}{way.replace('W', s.text)}\n"
        if s.kind == "if":
            text = f"{pad}if ({x[0]}) {{\n{self.block(s.bodies[0], inner)}{pad}}}"
            return f"{text} else {{\n{self.block(s.bodies[1], inner)}{pad}}}\n" if len(s.bodies) > 1 else f"{text}\n"
        if s.kind == "for":
            start, test, step = loop(s, x[0], s.text)
            return f"{pad}for ({s.type.split()[0]} {s.text} = {start}; {test}; {step}) {{\n{self.block(s.bodies[0], inner)}{pad}}}\n"
        if s.kind == "while":
            return f"{pad}uint {s.text} = 0;\n{pad}while ({x[0]} && {s.text}++ < {x[1]}) {{\n{self.block(s.bodies[0], inner)}{pad}}}\n"
        if s.kind == "do":
            return f"{pad}uint {s.text} = 0;\n{pad}do {{\n{self.block(s.bodies[0], inner)}{pad}}} while ({x[0]} && ++{s.text} < {x[1]});\n"
        if s.kind == "switch":
            return self._switch(s, x[0], pad)
        if s.kind in {"break", "continue"}:
            return f"{pad}{s.kind};\n"
        if s.kind == "return":
            return f"{pad}return {x[0]};\n"
        if s.kind == "stop":
            return f"{pad}return;\n"
        if s.kind == "store":
            return f"{pad}out[i * {SLOTS} + {x[0]}] = {x[1]};\n"
        assert s.kind == "exchange", s.kind
        meet = "threadgroup_barrier(mem_flags::mem_threadgroup);"
        return (
            f"{pad}shared[lid] = {x[0]};\n{pad}{meet}\n"
            f"{pad}uint {s.text} = shared[{x[1]} % size];\n{pad}{meet}\n"
        )  # fmt: skip

    def _switch(self, s: Stmt, value: str, pad: str) -> str:
        text = f"{pad}switch ({unsigned(s.type)}({value}) % {len(s.bodies)}) {{\n"
        for i, body in enumerate(s.bodies):
            label = f"case {i}:" if i < len(s.bodies) - 1 else "default:"
            text += f"{pad}  {label} {{\n{self.block(body, pad + '    ')}{pad}  }}{' break;' if s.text[i] == 'b' else ''}\n"
        return f"{text}{pad}}}\n"

    def helper(self, h: Helper) -> str:
        """Write a function."""
        thread = "thread " if self.metal else ""
        params = [f"{f'{thread}{kind}&' if reference else kind} {name}" for kind, name, reference in h.params]
        return f"static {h.type} {h.name}({', '.join([*params, 'uint zero'])}) {{\n{self.block(h.body, '  ')}}}\n"


def loop(s: Stmt, bound: str, name: str) -> tuple[str, str, str]:
    """Return a for's first value, its test and its step."""
    kind, way = s.type.split()
    step = s.exprs[1].text
    if way == "down":
        return bound, f"{name} >= {step}", f"{name} -= {step}"
    by = f"{name}++" if step == "1" else f"{name} += {step}"
    return "0", f"{name} {'<=' if way == 'le' else '<'} {bound}", by


class _Metal(_Writer):
    """MSL: SIMD functions are functions."""

    def expr(self, e: Expr) -> str:
        if not e.op.startswith("simd_"):
            return super().expr(e)
        a = [self.expr(x) for x in e.args]
        if e.op == "simd_ballot":
            return f"uint(simd_vote::vote_t(simd_ballot({a[0]})))"
        if e.op == "simd_shuffle":
            return f"simd_shuffle({a[0]}, ushort({a[1]} % width))"
        return f"{e.type}({e.op}({a[0]}))"


class _Host(_Writer):
    metal = False


class _Lockstep(_Host):
    """The host's C++ for a whole threadgroup: every variable has a place for each thread."""

    def __init__(self) -> None:
        self.count = 0
        self.active = "!gone[t]"
        self.leaving = ""  # what ends an iteration early, where a loop is around

    def name(self, name: str) -> str:
        return name if name in {"n", "zero"} else f"{name}[t]"

    def each(self, text: str, pad: str, active: str = "") -> str:
        """Do something for every active thread."""
        return f"{pad}for (uint t = 0; t < size; ++t) if ({active or self.active}) {{ {text} }}\n"

    def stmt(self, s: Stmt, pad: str) -> str:  # noqa: C901, PLR0911, PLR0912  (a table, written as cases)
        x = [self.expr(e) if not e.op.startswith("simd_") else "" for e in s.exprs]
        if s.kind == "declare" and s.exprs[0].op.startswith("simd_"):
            return self._simd(s, pad)
        if s.kind == "declare":
            return f"{pad}{s.type} {s.text}[{LARGEST}];\n" + self.each(f"{s.text}[t] = {x[0]};", pad)
        if s.kind == "array":
            u = unsigned(s.type)
            return f"{pad}{s.type} {s.text}[{LARGEST}][8];\n" + self.each(
                f"for (uint j = 0; j < 8; ++j) {s.text}[t][j] = {s.type}({u}({x[0]}) + j);", pad
            )
        if s.kind == "component":
            name, part = s.text.split(".")
            return self.each(f"{name}[t].{part} = {x[0]};", pad)
        if s.kind in {"put", "assign", "divide", "lane", "move"}:
            there = Stmt(s.kind, s.exprs, s.bodies, f"{s.text}[t]", s.type)
            return self.each(super().stmt(there, "").strip(), pad)
        if s.kind == "if":
            return self._if(s, x[0], pad)
        if s.kind in {"for", "while", "do"}:
            return self._loop(s, x, pad)
        if s.kind == "switch":
            return self._choose(s, x[0], pad)
        if s.kind in {"break", "continue"}:
            return self.each(f"{s.kind}{self.leaving}[t] = true;", pad)
        if s.kind == "stop":
            return self.each("gone[t] = true;", pad)
        if s.kind == "store":
            return self.each(f"out[i[t] * {SLOTS} + {x[0]}] = {x[1]};", pad)
        assert s.kind == "exchange", s.kind
        put, take = self.each(f"shared[t] = {x[0]};", pad), self.each(f"{s.text}[t] = shared[{x[1]} % size];", pad)
        return f"{pad}uint {s.text}[{LARGEST}];\n{put}{take}"

    def _mask(self, name: str) -> str:
        left = f" && !break{self.leaving}[t] && !continue{self.leaving}[t]" if self.leaving else ""
        return f"{name}[t] && !gone[t]{left}"

    def _fresh(self) -> str:
        self.count += 1
        return str(self.count)

    def _inside(self, mask: str, body: Iterable[Stmt], pad: str) -> str:
        outer, self.active = self.active, self._mask(mask)
        text = self.block(body, pad)
        self.active = outer
        return text

    def _if(self, s: Stmt, condition: str, pad: str) -> str:
        n = self._fresh()
        text = f"{pad}bool yes{n}[{LARGEST}] = {{}}, no{n}[{LARGEST}] = {{}};\n"
        text += self.each(f"if ({condition}) yes{n}[t] = true; else no{n}[t] = true;", pad)
        text += self._inside(f"yes{n}", s.bodies[0], pad)
        return text + (self._inside(f"no{n}", s.bodies[1], pad) if len(s.bodies) > 1 else "")

    def _loop(self, s: Stmt, x: list[str], pad: str) -> str:
        n = self._fresh()
        kind = s.type.split()[0] if s.kind == "for" else "uint"
        start, test, step = loop(s, x[0], f"{s.text}[t]") if s.kind == "for" else ("0", "", "")
        if s.kind == "while":
            test = f"({x[0]} && {s.text}[t]++ < {x[1]})"
        again = f"({x[0]} && ++{s.text}[t] < {x[1]})"
        inner = pad + "  "
        text = f"{pad}{kind} {s.text}[{LARGEST}]; bool in{n}[{LARGEST}] = {{}}, break{n}[{LARGEST}] = {{}};\n"
        text += self.each(f"{s.text}[t] = {start}; in{n}[t] = true;", pad)
        text += f"{pad}for (;;) {{\n{inner}bool any = false, continue{n}[{LARGEST}] = {{}};\n"
        alive = f"in{n}[t] && !gone[t] && !break{n}[t]"
        text += self.each(f"in{n}[t] = {test or 'true'}; any = any || in{n}[t];", inner, alive)
        text += f"{inner}if (!any) break;\n"
        outer, self.leaving = self.leaving, n
        text += self._inside(f"in{n}", s.bodies[0], inner)
        self.leaving = outer
        after = f"in{n}[t] = {again};" if s.kind == "do" else f"{step};" if s.kind == "for" else ""
        return text + (self.each(after, inner, alive) if after else "") + f"{pad}}}\n"

    def _choose(self, s: Stmt, value: str, pad: str) -> str:
        n = self._fresh()
        text = f"{pad}uint to{n}[{LARGEST}]; bool in{n}[{LARGEST}] = {{}}, chosen{n}[{LARGEST}] = {{}};\n"
        choice = f"{unsigned(s.type)}({value}) % {len(s.bodies)}"
        text += self.each(f"to{n}[t] = {choice}; chosen{n}[t] = true;", pad)
        for i, body in enumerate(s.bodies):
            text += f"{pad}for (uint t = 0; t < size; ++t) if (chosen{n}[t] && to{n}[t] == {i}) in{n}[t] = true;\n"
            text += self._inside(f"in{n}", body, pad)
            if s.text[i] == "b":
                text += f"{pad}for (uint t = 0; t < size; ++t) in{n}[t] = false;\n"
        return text

    def _simd(self, s: Stmt, pad: str) -> str:
        e = s.exprs[0]
        a = [self.expr(x) for x in e.args]
        n = self._fresh()
        kind = "uint" if e.args[0].type == "bool" else e.type
        text = f"{pad}{s.type} {s.text}[{LARGEST}]; {kind} given{n}[{LARGEST}]; bool on{n}[{LARGEST}] = {{}};\n"
        text += self.each(f"given{n}[t] = {a[0]}; on{n}[t] = true;", pad)
        if e.op == "simd_shuffle":
            return text + self.each(f"{s.text}[t] = given{n}[t / 32 * 32 + {a[1]} % width[t]];", pad)
        return text + f"{pad}{e.op}(given{n}, on{n}, {s.text}, size);\n"


_SIMD = "".join(
    f"""template <class T, class R> void {name}(const T* given, const bool* on, R* out, uint size) {{
  for (uint first = 0; first < size; first += 32) {{
    bool some = false; R all = 0;
    for (uint t = first; t < first + 32 && t < size; ++t) if (on[t]) {{ T x = given[t]; uint lane = t - first; {step} some = true; }}
    for (uint t = first; t < first + 32 && t < size; ++t) if (on[t]) out[t] = all;
  }}
}}
"""
    for name, step in {
        "simd_sum": "all = R(ulong(all) + ulong(x));",
        "simd_min": "all = !some || x < all ? x : all;",
        "simd_max": "all = !some || x > all ? x : all;",
        "simd_and": "all = some ? R(all & x) : R(x);",
        "simd_or": "all = R(all | x);",
        "simd_xor": "all = R(all ^ x);",
        "simd_broadcast_first": "all = some ? all : R(x);",
        "simd_ballot": "all = all | R(x ? 1u << lane : 0u);",
        "simd_any": "all = all | R(x != 0);",
        "simd_all": "all = some ? R(all & R(x != 0)) : R(x != 0);",
    }.items()
) + """template <class T> void simd_prefix_exclusive_sum(const T* given, const bool* on, T* out, uint size) {
  for (uint first = 0; first < size; first += 32) {
    T all = 0;
    for (uint t = first; t < first + 32 && t < size; ++t) if (on[t]) { out[t] = all; all = T(ulong(all) + ulong(given[t])); }
  }
}
"""
HOST_PRELUDE += _SIMD
_INPUTS = "{0} uint* a, {0} int* s, {0} long* b, {0} float* f, {0} uchar* c"


def metal(program: Program, name: str) -> str:
    """Write a program as a kernel, without the prelude; its helpers stand in a namespace of its name."""
    writer = _Metal()
    inputs = _INPUTS.format("device const")
    shared = f"  threadgroup uint shared[{LARGEST}];\n" if _meets(program.body) else ""
    return (
        f"namespace ns_{name} {{\n{''.join(writer.helper(h) for h in program.helpers)}}}\n"
        f"kernel void {name}(device uint* out, {inputs}, constant uint& zero, constant uint& n,\n"
        "    uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]],\n"
        "    uint size [[threads_per_threadgroup]]) {\n"
        f"  using namespace ns_{name};\n{shared}  uint width = min(32u, size - lid / 32 * 32);\n"
        f"{writer.block(program.body, '  ')}}}\n"
    )


def _meets(body: Iterable[Stmt]) -> bool:
    return any(s.kind == "exchange" or any(map(_meets, s.bodies)) for s in body)


def host(program: Program, name: str) -> str:
    """Write a program as C++ that runs one threadgroup: ``first`` is its first thread, ``size`` its number of threads."""
    threadgroup = f'extern "C" void {name}(uint* out, {_INPUTS.format("const")}, uint zero, uint n, uint first, uint size) {{\n'
    if not program.together:
        writer: _Writer = _Host()
        inputs = _INPUTS.format("const")
        text = "".join(writer.helper(h) for h in program.helpers)
        text += f"static void thread(uint* out, {inputs}, uint zero, uint n, uint i, uint lid, uint size) {{\n"
        text += f"{writer.block(program.body, '  ')}}}\n"
        call = "thread(out, a, s, b, f, c, zero, n, first + t, t, size);"
        return f"namespace ns_{name} {{\n{text}{threadgroup}  for (uint t = 0; t < size; ++t) {call}\n}}\n}}\n"
    lockstep = _Lockstep()
    helpers = "".join(_Host().helper(h) for h in program.helpers)
    return (
        f"namespace ns_{name} {{\n{helpers}{threadgroup}"
        f"  uint i[{LARGEST}], lid[{LARGEST}], width[{LARGEST}], shared[{LARGEST}]; bool gone[{LARGEST}] = {{}};\n"
        "  for (uint t = 0; t < size; ++t) { i[t] = first + t; lid[t] = t; width[t] = min(32u, size - t / 32 * 32); }\n"
        f"{lockstep.block(program.body, '  ')}}}\n}}\n"
    )
