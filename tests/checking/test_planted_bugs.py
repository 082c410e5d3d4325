"""Planted bugs are found, by line and thread; correct kernels raise no findings."""

import sys
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb import engine as engines
from metalnb import puzzles
from metalnb.engine.cpu.validated.validated_run import run_validated
from metalnb.validation.access_report import NOTES
from metalnb.validation.judgment import Judge

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the validated build runs under Linux")

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
INPUTS = """device float* x, device float* o, device atomic_uint* n, uint i [[thread_position_in_grid]],
    uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]"""
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


@pytest.fixture(scope="module", autouse=True)
def engine_is_here() -> None:
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def seen(body: str, before: str = "", threads: int = 128, threadgroup: int = 64) -> mnb.Validation:
    program = mnb.compile(f"{HEAD}{before}\nkernel void f({INPUTS}) {{\n{body}\n}}")
    x = np.arange(threads, dtype=np.float32)
    return mnb.validate(
        program.f, x, np.zeros(threads, np.float32), np.zeros(4, np.uint32), grid=threads, threadgroup=threadgroup,
        seconds=1.0,
    )


FENCE = "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);"
MESSAGE = """if (i == 40) { o[1] = 5; FIRST atomic_store_explicit(n, 1u, memory_order_relaxed); }
if (i == 0) {
while (atomic_load_explicit(n, memory_order_relaxed) == 0) { }
SECOND
o[0] = o[1]; // !
}"""
ACROSS = """if (i == 0) { o[1] = 5; FENCE atomic_store_explicit(n, 1u, memory_order_relaxed); }
if (i == 64) {
if (atomic_load_explicit(n, memory_order_relaxed) == 1) {
FENCE
o[0] = o[1]; // !
} }"""
# Every atomic operation reads before it writes, and threadgroup memory holds nothing before a thread writes it.
UPDATES = [
    *(("atomic_uint", f"atomic_fetch_{how}_explicit(s + t, 1u, memory_order_relaxed)")
      for how in ("add", "sub", "max", "min", "and", "or", "xor")),
    *((kind, "atomic_fetch_add_explicit(s + t, 1, memory_order_relaxed)") for kind in ("atomic_int", "atomic_float")),
    ("atomic_uint", "o[i] = atomic_exchange_explicit(s + t, 1u, memory_order_relaxed)"),
    ("atomic_uint", "uint was = 0; ORDERED(s + t, &was, 1u, RELAXED, RELAXED)"
     .replace("ORDERED", "atomic_compare_exchange_weak_explicit").replace("RELAXED", "memory_order_relaxed")),
]  # fmt: skip
# The fault must name the marked line; then come its kind, thread, name and index.
BUGS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "read beyond": ("o[i] = x[i + 1]; // !", ("beyond", 127, "x", 128)),
    "read before": ("o[i] = x[int(i) - 1]; // !", ("beyond", 0, "x", -1)),
    "index wrapped around": ("o[i] = x[i - 1]; // !", ("beyond", 0, "x", 4294967295)),
    "write beyond": ("o[2 * i] = 1; // !", ("beyond", 64, "o", 128)),
    "through a pointer": ("device float* p = x + i;\np += 100;\no[i] = *p; // !", ("beyond", 28, "x", 128)),
    "through a reference": ("device float& r = o[i + 5];\nr = 1; // !", ("beyond", 123, "o", 128)),
    "in a helper": ("o[i] = third(x, i);", ("beyond", 126, "x", 128)),
    "by a method": ("Row r{x};\no[i] = r.at(i + 1);", ("beyond", 127, "x", 128)),
    "in a lambda": ("auto at = [=](uint k) {\nreturn x[k]; // !\n};\no[i] = at(i + 2);", ("beyond", 126, "x", 128)),
    "a vector of a row": ("device float4* v = (device float4*)x;\no[i] = v[i].y; // !", ("beyond", 32, "x", 129)),
    "atomic beyond": ("atomic_fetch_add_explicit(n + t, 1u, memory_order_relaxed); // !", ("beyond", 4, "n", 4)),
    "threadgroup array": ("threadgroup float s[64];\ns[t] = 1;\n" + BARRIER + "\no[i] = s[t + 1]; // !",
                          ("beyond", 63, "", 64)),
    "threadgroup array by a pointer": (
        "threadgroup float s[64];\nthreadgroup float* p = s;\np[t + 1] = 1; // !\n" + BARRIER + "\no[i] = p[1];",
        ("beyond", 63, "s", 64)),
    "a thread's own array": ("float own[8];\nfor (int k = 0; k < 8; ++k) own[k] = k;\no[i] = own[t]; // !",
                             ("beyond", 8, "", 8)),
    "race in a threadgroup": ("threadgroup float s[64];\ns[t] = 1; // !\no[i] = s[63 - t];", ("race", 32, "s", 32)),
    "race in a SIMD-group": ("threadgroup float s[64];\ns[t] = t; // !\nif (t % 2 == 0) s[t + 1] += s[t];",
                             ("race", 1, "s", 1)),
    "race of writers": ("threadgroup float s[1];\ns[0] = t; // !\n" + BARRIER + "\no[i] = s[0];", ("race", 1, "s", 0)),
    "race of threadgroups": ("o[t] = i; // !", ("race", 64, "o", 0)),
    "an atomic and a plain write": (
        "atomic_fetch_add_explicit(n, 1u, memory_order_relaxed); // !\n*(device uint*)n = 1;", ("race", 1, "n", 0)),
    "never written": ("threadgroup float s[64];\no[i] = s[t]; // !", ("never written", 0, "s", 0)),
    "written by half": ("threadgroup float s[64];\nif (t < 32) s[t] = 1;\n" + BARRIER + "\no[i] = s[t]; // !",
                        ("never written", 32, "s", 32)),
    "a barrier that some miss": ("threadgroup float s[64];\ns[t] = 1;\nif (t < 40)\n" + BARRIER + " // !\no[i] = 1;",
                                 ("barrier", 40, "", None)),
    "does not fit": ("o[i] = int(x[i] * 1e9f); // !", ("conversion", 3, "", None)),
    "does not fit a uint": ("o[i] = uint(3 - x[i]); // !", ("conversion", 4, "", None)),
    "a half that does not fit": ("half h = half(x[i]) * 1000;\no[i] = short(h); // !", ("conversion", 33, "", None)),
    "divided by zero": ("float d = x[i] - 5;\no[i] = 1 / d; // !", ("infinity", 5, "o", 5)),
    "zero by zero": ("o[i] = x[i] / x[i]; // !", ("nan", 0, "o", 0)),
    "the root of less than zero": ("float d = 100 - x[i];\no[i] = sqrt(d); // !", ("nan", 101, "o", 101)),
    "the logarithm of zero": ("float d = log(x[i]); // !\no[i] = d + 1;", ("infinity", 0, "o", 0)),
    "an exponential too large": ("o[i] = exp(x[i]); // !", ("infinity", 89, "o", 89)),
    "infinities that cancel": ("float e = exp(x[i]);\no[i] = e / (1 + e); // !", ("nan", 89, "o", 89)),
    "half that overflows": ("half h = half(x[i] * 1000); // !\no[i] = float(h);", ("infinity", 66, "o", 66)),
    "a lane of a vector": ("float4 v = 1 / float4(1, 2, x[i], 4); // !\no[i] = v.z;", ("infinity", 0, "o", 0)),
    "NaN in a helper": ("o[i] = ratio(x[i], x[0]);", ("nan", 0, "o", 0)),
    "NaN that another thread writes": (
        "threadgroup float s[64];\ns[t] = sqrt(x[i] - 1); // !\n" + BARRIER + "\no[i] = s[63 - t];",
        ("nan", 0, "o", 63)),
    "shifted too far": ("o[i] = float(1u << t); // !", ("shift", 32, "", None)),
    "shifted to the right by less than zero": ("int k = 3 - int(i);\no[i] = float(1024 >> k); // !",
                                               ("shift", 4, "", None)),
    "divided by 0": ("o[i] = float(100 / (int(i) - 5)); // !", ("division", 5, "", None)),
    "the rest of a division by 0": ("uint k = t % 8;\no[i] = float(i % k); // !", ("division", 0, "", None)),
    "a vector divided by 0": ("int2 v = int2(7, 8) / int2(1, int(x[i])); // !\no[i] = v.y;",
                              ("division", 0, "", None)),
    "a vector shifted": ("uint2 v = uint2(1, 2) << uint2(t, 1); // !\no[i] = v.x;", ("shift", 32, "", None)),
    "a lane on another path": (
        "float v = x[i];\nif (t % 32 < 16) v += simd_shuffle_down(v, 16); // !\no[i] = v;", ("lane", 0, "", 16)),
    "a lane that has ended": ("if (i == 5) return;\no[i] = simd_shuffle_xor(x[i], 1); // !", ("lane", 4, "", 5)),
    "a lane of two bits' distance": ("if (i == 7) return;\no[i] = simd_shuffle_xor(x[i], 3); // !", ("lane", 4, "", 7)),
    "a lane above": ("if (i == 5) return;\no[i] = simd_shuffle_up(x[i], 2); // !", ("lane", 7, "", 5)),
    "a lane around the end": (
        "if (i == 64) return;\no[i] = simd_shuffle_rotate_down(x[i], 2); // !", ("lane", 94, "", 0)),
    "a lane of what fills": (
        "if (i == 66) return;\no[i] = simd_shuffle_and_fill_down(x[i], 1.0f, 30); // !", ("lane", 68, "", 2)),
    "a lane that no SIMD-group has": ("o[i] = simd_broadcast(x[i], 40); // !", ("lane", 0, "", 40)),
    "a lane of a vector's": (
        "float2 v = simd_shuffle(float2(x[i]), ushort(33)); // !\no[i] = v.x;", ("lane", 0, "", 33)),
    "a lane of a quad-group": ("if (i == 70) return;\no[i] = quad_broadcast(x[i], 2); // !", ("lane", 68, "", 6)),
    "a float4 at an odd place": ("float4 v = *(device float4*)(x + min(i, 123u)); // !\no[i] = v.x;",
                                 ("misaligned", 1, "x", 1)),
    "an int of bytes": ("device uchar* b = (device uchar*)x;\no[i] = *(device int*)(b + min(i, 500u)); // !",
                        ("misaligned", 1, "x", 0)),
    "a loop that counts down": ("float s = 0;\nif (i == 70)\nfor (uint k = 3; k >= 0; --k) // !\ns += k;\no[i] = s;",
                                ("endless", 70, "", None)),
    "a loop that waits": ("if (i == 3)\nwhile (atomic_load_explicit(n, memory_order_relaxed) == 0) { } // !\no[i] = 1;",
                          ("endless", 3, "", None)),
    "never set": ("float s;\nfor (uint k = 0; k < 3; ++k)\ns += x[k]; // !\no[i] = s;",
                  ("never written", 0, "s", None)),
    "set in one branch": ("float s;\nif (i > 100) s = 1;\no[i] = s; // !", ("never written", 0, "", None)),
    "an element of its own array never set": (
        "float own[4];\nfor (int k = 0; k < 3; ++k) own[k] = k;\no[i] = own[i % 4]; // !",
        ("never written", 3, "", None)),
    "an integer never set": ("int s;\nfor (uint k = 0; k < 3; ++k)\ns += int(x[k]); // !\no[i] = s;",
                             ("never written", 0, "s", None)),
    "an integer set in one branch": ("uint last;\nif (i > 5) last = 3;\no[i] = last * 2; // !",
                                     ("never written", 0, "last", None)),
    "an integer of its own array never set": (
        "uint own[4];\nfor (int k = 0; k < 3; ++k) own[k] = k;\no[i] = own[i % 4]; // !",
        ("never written", 3, "own", None)),
    "a truth never set": ("bool found;\nif (x[i] > 100) found = true;\nif (found) o[i] = 1; // !",
                          ("never written", 0, "found", None)),
    "a member never set": ("struct { int a; float c; } both;\nboth.c = x[i];\no[i] = both.a; // !",
                           ("never written", 0, "both", None)),
    "a message without fences": (
        MESSAGE.replace("FIRST", "").replace("SECOND", ""), ("race", 0, "o", 1)),
    "a message whose reader has no fence": (MESSAGE.replace("FIRST", FENCE).replace("SECOND", ""), ("race", 0, "o", 1)),
    "a message whose writer has no fence": (MESSAGE.replace("FIRST", "").replace("SECOND", FENCE), ("race", 0, "o", 1)),
    "a message between threadgroups, fenced for one": (
        ACROSS.replace("FENCE", "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, "
                       "thread_scope_threadgroup);"), ("race", 64, "o", 1)),
    "a message of memory that the fence is not for": (
        ACROSS.replace("FENCE", "atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst);"),
        ("race", 64, "o", 1)),
    "a component never set": ("float2 v;\nv.x = x[i];\nfloat s = v.x + v.y; // !\no[i] = s;",
                              ("never written", 0, "", None)),
    "a struct's member beyond": ("device Pair* q = (device Pair*)x;\no[i] = q[i].b; // !", ("beyond", 64, "x", 129)),
    "a reference handed on": ("bump(o[i * 2]);", ("beyond", 64, "o", 128)),
    "a template": ("o[i] = taken<4>(x, i);", ("beyond", 124, "x", 128)),
    "packed": ("device packed_float3* q = (device packed_float3*)x;\nfloat3 v = q[i]; // !\no[i] = v.z;",
               ("beyond", 42, "x", 128)),
    "a maximum beyond": ("atomic_fetch_max_explicit(n + t, 1u, memory_order_relaxed); // !", ("beyond", 4, "n", 4)),
    "a row of a matrix": ("threadgroup float m[8][8];\nm[t / 8][t % 8] = 1;\n" + BARRIER
                          + "\nthreadgroup float* row = m[7];\no[i] = row[t]; // !", ("beyond", 8, "m", 64)),
    "a race in a helper": ("mark(o, g);", ("race", 1, "o", 0)),
    "a barrier too few in a loop": (
        "threadgroup float s[64];\nfor (uint k = 0; k < 2; ++k) {\ns[t] = x[i] + k;\n" + BARRIER
        + "\no[i] = s[63 - t]; // !\n}", ("race", 32, "s", 31)),
    "a barrier of the wrong group": (
        "threadgroup float s[64];\ns[t] = 1;\nsimdgroup_barrier(mem_flags::mem_threadgroup);\no[i] = s[t ^ 32]; // !",
        ("never written", 0, "s", 32)),
    "returned before the barrier": (
        "threadgroup float s[64];\ns[t] = 1;\nif (i == 100) return;\n" + BARRIER + " // !\no[i] = s[t];",
        ("barrier", 100, "", None)),
    **{f"unset {name}: {call}": (
        f"threadgroup {name} s[64];\n{call}; // !\n{BARRIER}\no[i] = 1;", ("never written", 0, "s", 0))
       for name, call in UPDATES},
    "an update of a word that another word's store leaves unset": (
        "threadgroup atomic_uint s[64];\nif (t != 9) atomic_store_explicit(s + t, 0u, memory_order_relaxed);\n"
        + BARRIER + "\natomic_fetch_add_explicit(s + t, 1u, memory_order_relaxed); // !", ("never written", 9, "s", 9)),
    "an array that ends a struct": ("o[i] = ((device Last*)x)[i % 8].v[t]; // !", ("beyond", 4, "", 4)),
    "an array that begins a struct": ("o[i] = ((device First*)x)[i % 8].v[t]; // !", ("beyond", 4, "", 4)),
    "an array of arrays in a struct": ("o[i] = ((device Rows*)x)[i % 8].v[1][t]; // !", ("beyond", 3, "", 3)),
    "a written array of a struct": ("((device Last*)o)[i % 8].v[t] = 1; // !", ("beyond", 4, "", 4)),
    "an array of a struct of its own": ("Last own = ((device Last*)x)[i % 8];\no[i] = own.v[t]; // !",
                                        ("beyond", 4, "", 4)),
    "an array of a struct of a threadgroup's": (
        "threadgroup Last s;\nif (t < 5) ((threadgroup float*)&s)[t] = 1;\n" + BARRIER + "\no[i] = s.v[t]; // !",
        ("beyond", 4, "", 4)),
    "a component of a vector of a struct": ("o[i] = ((device Mixed*)x)[i % 4].w[t]; // !", ("beyond", 4, "", 4)),
    "a component of a packed vector of a struct": ("o[i] = ((device Mixed*)x)[i % 4].p[t]; // !", ("beyond", 3, "", 3)),
    "a component of a vector of its own": ("float2 v = float2(x[i]);\no[i] = v[t]; // !", ("beyond", 2, "", 2)),
    "a component that is written": ("float3 v = float3(x[i]);\nv[t] = 1; // !\no[i] = v.x;", ("beyond", 3, "", 3)),
    "a column of a matrix of a struct": ("o[i] = ((device Mixed*)x)[i % 4].m[t].x; // !", ("beyond", 2, "", 2)),
    "an array<T, n> of a struct": ("o[i] = ((device Mixed*)x)[i % 4].a[t]; // !", ("beyond", 3, "", 3)),
    "some elements": ("if (i % 3) o[i] = 1;", ("missing write", -1, "o", 0)),
    "written again": ("o[i] = 1;\nthreadgroup_barrier(mem_flags::mem_device);\no[i ^ 1] = x[i]; // !",
                      ("written twice", 0, "o", 1)),
}  # fmt: skip
STRUCTS = """struct Last { float a; float v[4]; }; struct First { float v[4]; float a; };
struct Rows { float v[2][3]; }; struct Mixed { float4 w; float2x2 m; array<float, 3> a; packed_float3 p; };"""
HELPERS = """static float ratio(float a, float b) { return a / b; } // !
struct Pair { float a, b; };
static void bump(device float& r) { r = r + 1; } // !
template <int k> float taken(device const float* a, uint j) { return a[j + k]; } // !
static void mark(device float* a, uint g) { a[g] = 2; } // !
static float third(device const float* a, uint k) { return a[k + 2]; } // !
struct Row { device const float* a; float at(uint k) const { return a[k]; } }; // !"""
_HELPER = {
    "NaN in a helper": 0, "a struct's member beyond": 1, "a reference handed on": 2, "a template": 3,
    "a race in a helper": 4, "in a helper": 5, "by a method": 6,
}  # fmt: skip


ONE_OF_EACH_KIND = {kind: name for name, (_, (kind, *_)) in reversed(BUGS.items())}.values()


@pytest.mark.long(unless=lambda name: name in {*[*BUGS][::4], *ONE_OF_EACH_KIND})  # A quarter of them, of every kind
@pytest.mark.filterwarnings("ignore::metalnb.MetalnbWarning")
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    body, (kind, thread, buffer, index) = BUGS[name]
    helpers = HELPERS.splitlines()
    before = helpers[_HELPER[name]] if name in _HELPER else STRUCTS if " struct" in name else ""
    text = f"{HEAD}{before}\nkernel void f({INPUTS}) {{\n{body}\n}}".splitlines()
    (line,) = [n for n, words in enumerate(text, 1) if words.endswith("// !")] or [0]
    found = seen(body, before)
    assert found.ok == (kind in NOTES)
    first = next(f for f in found.findings if f.kind == kind)
    assert (first.line, first.thread, first.name, first.index) == (line, thread, buffer, index), found
    if line:
        assert 1 <= first.column <= len(text[line - 1])
        assert first.source == text[line - 1]
        assert f"line {line}: " in repr(found)


RIGHT = {
    "elementwise": "o[i] = x[i] * 2;",
    "guarded": "if (i + 1 < 128) o[i] = x[i + 1];",
    "in place": "x[i] = x[i] + 1;",
    "reduction": f"""threadgroup float s[64];
        s[t] = x[i];
        {BARRIER}
        for (uint k = 32; k; k /= 2) {{ if (t < k) s[t] += s[t + k]; {BARRIER} }}
        if (t == 0) o[g] = s[0];""",
    "reduction by SIMD-groups": f"""threadgroup float s[2];
        float v = simd_sum(x[i]);
        if (t % 32 == 0) s[t / 32] = v;
        {BARRIER}
        if (t == 0) o[g] = s[0] + s[1];""",
    "exchange in a SIMD-group": """threadgroup float s[64];
        s[t] = x[i];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        float there = s[t ^ 1];
        simdgroup_barrier(mem_flags::mem_threadgroup);
        s[t] = there; o[i] = s[t];""",
    "atomics": "atomic_fetch_add_explicit(n + i % 4, 1u, memory_order_relaxed); o[i] = 1;",
    "atomics set by an exchange": f"""threadgroup atomic_uint c[64];
        atomic_exchange_explicit(c + t, 0u, memory_order_relaxed);
        {BARRIER}
        o[i] = atomic_fetch_add_explicit(c + t, 1u, memory_order_relaxed);""",
    "atomics in a threadgroup": f"""threadgroup atomic_uint c;
        if (t == 0) atomic_store_explicit(&c, 0u, memory_order_relaxed);
        {BARRIER}
        atomic_fetch_add_explicit(&c, t, memory_order_relaxed);
        {BARRIER}
        o[i] = atomic_load_explicit(&c, memory_order_relaxed);""",
    "turned": f"""threadgroup float s[64];
        s[t] = x[i];
        {BARRIER}
        o[i] = s[63 - t];
        {BARRIER}
        s[t] = o[i];""",
    "vectors and own arrays": """float4 v = ((device float4*)x)[i / 4]; float own[4];
        for (int k = 0; k < 4; ++k) own[k] = v[k];
        o[i] = own[i % 4];""",
    "infinities on purpose": "float m = -INFINITY; for (uint k = 0; k <= t; ++k) m = max(m, x[k]); o[i] = m;",
    "an infinity that was given back": "float big = exp(x[i]); o[i] = isinf(big) ? 1.0f : big / (1 + big);",
    "NaN told apart": "float v = x[i] / x[i]; o[i] = isnan(v) ? 0.0f : v;",
    "counted down": "float s = 0; for (uint k = t + 1; k-- > 0;) s += x[k]; o[i] = s;",
    "wrapped on purpose": "uint h = i * 2654435761u; h ^= h >> 15; h -= 0x9e3779b9u; o[i] = float(h & 127);",
    "index by an unsigned difference": "uint k = i - 1; o[i] = k < 128 ? x[k] : 0.0f;",
    "shifted by nearly all": "o[i] = float((1u << (t % 32)) >> (t % 32));",
    "divided": "int k = int(i) - 3; o[i] = k ? float(100 / k + 7 % k) : 0.0f;",
    "rotated": "o[i] = float(rotate(0x80000001u, t) & 1u);",
    "bits extracted": "o[i] = float(extract_bits(i, 0u, 32u) + insert_bits(0u, i, 31u, 1u) % 2);",
    "saturated": "o[i] = float(uchar(clamp(x[i] * 4, 0.0f, 255.0f)));",
    "packed and plain vectors": "device packed_float3* q = (device packed_float3*)x; o[i] = float3(q[i % 42]).y;",
    "bytes": "device uchar* b = (device uchar*)x; uint s = 0; for (int k = 0; k < 4; ++k) s += b[4 * i + k]; o[i] = s;",
    "structs": """struct Row { device float* at; float sum(uint k) const { return at[k] + at[(k + 1) % 128]; } };
        Row r{x}; o[i] = r.sum(i);""",
    "lambdas": "auto f = [=](uint k) { return x[k] * 2; }; o[i] = f(i) + f(127 - i);",
    "references": "device float& r = o[i]; r = 1; r += x[i];",
    "half": "half h = half(x[i]); h = h * 2 + 1; o[i] = float(h);",
    "matrices": "float2x2 m = float2x2(1, 2, 3, 4); float2 v = m * float2(x[i], 1); o[i] = v.x + determinant(m);",
    "scanned": f"""threadgroup float s[64];
        s[t] = x[i];
        {BARRIER}
        for (uint k = 1; k < 64; k *= 2) {{
            float before = t >= k ? s[t - k] : 0;
            {BARRIER}
            s[t] += before;
            {BARRIER}
        }}
        o[i] = s[t];""",
    "prefix in a SIMD-group": "o[i] = simd_prefix_inclusive_sum(x[i]) + simd_prefix_exclusive_sum(1.0f);",
    "shuffled": "float v = x[i]; for (uint k = 16; k; k /= 2) v += simd_shuffle_xor(v, k); o[i] = v;",
    "reduced by shuffles down": "float v = x[i]; for (uint k = 16; k; k /= 2) v += simd_shuffle_down(v, k); o[i] = v;",
    "shuffled within what there is": """float v = x[i];
        if (t % 32 < 16) v += simd_shuffle_xor(v, 8) + simd_broadcast_first(v) + simd_product(min(v, 1.0f));
        if (t % 4 < 2) v += quad_shuffle_xor(v, 1) + quad_sum(v) + quad_shuffle(v, 1) + quad_max(v);
        v += simd_shuffle_up(v, 31) + simd_shuffle_and_fill_up(v, 2.0f, 7) + simd_shuffle_rotate_up(v, 9);
        v += quad_shuffle_down(v, 3) + quad_shuffle_rotate_down(v, 3) + simd_prefix_exclusive_product(min(v, 1.0f));
        o[i] = v;""",
    "voted": "o[i] = simd_any(t == 3) + simd_all(t < 64) + popcount((uint)(simd_vote::vote_t)simd_ballot(t % 2 == 0));",
    "a float added atomically": """device atomic_float* a = (device atomic_float*)o;
        atomic_fetch_add_explicit(a + i % 4, 1.0f, memory_order_relaxed);""",
    "compared and exchanged": """uint old = atomic_load_explicit(n, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(n, &old, old + i, memory_order_relaxed, memory_order_relaxed)) { }
        o[i] = 1;""",
    "largest atomically": "atomic_fetch_max_explicit(n, i, memory_order_relaxed); o[i] = 1;",
    "early end": "if (i >= 100) return; o[i] = simd_sum(x[i]);",
    "switched": "switch (t % 3) { case 0: o[i] = 1; break; case 1: o[i] = 2; break; default: o[i] = x[i]; }",
    "transposed in a tile": f"""threadgroup float tile[8][9];
        tile[t / 8][t % 8] = x[i];
        {BARRIER}
        o[i] = tile[t % 8][t / 8];""",
    "two buffers in turn": f"""threadgroup float s[2][64];
        s[0][t] = x[i];
        uint now = 0;
        for (uint k = 1; k < 64; k *= 2) {{
            {BARRIER}
            s[1 - now][t] = s[now][t] + (t >= k ? s[now][t - k] : 0);
            now = 1 - now;
        }}
        o[i] = s[now][t];""",
    "three halves": f"""threadgroup half3 one;
        half3 own = half3(2);
        if (t == 0) one = own;
        {BARRIER}
        half3 taken = one;
        o[i] = i % 2 ? x[i] : float(taken.x + taken.y + taken.z);""",
    "read in between": """o[i] = x[i];
        threadgroup_barrier(mem_flags::mem_device);
        float there = o[i ^ 1];
        threadgroup_barrier(mem_flags::mem_device);
        o[i ^ 1] = there * 2;""",
    "grid-stride": "for (uint k = i; k < 128; k += 128) o[k] = x[k] * 2;",
    "one thread for all": "if (i == 0) for (uint k = 0; k < 128; ++k) o[k] = x[k];",
    "a message within a threadgroup": MESSAGE.replace("FIRST", FENCE).replace("SECOND", FENCE),
    "a message to another threadgroup": ACROSS.replace("FENCE", FENCE),
    "a message behind barriers": f"""threadgroup uint last;
        o[i] = x[i];
        threadgroup_barrier(mem_flags::mem_device);
        if (t == 0) {{
            {FENCE}
            last = atomic_fetch_add_explicit(n, 1u, memory_order_relaxed);
            {FENCE}
        }}
        {BARRIER}
        if (last == 1) x[i] = o[127 - i % 128] + o[0];""",
    "messages handed on": f"""if (t == 0) {{
            if (g > 0) while (atomic_load_explicit(n + g - 1, memory_order_relaxed) == 0) {{ }}
            {FENCE}
            o[g] = x[g] + (g > 0 ? o[g - 1] : 0) + (g > 1 ? o[g - 2] : 0);
            {FENCE}
            atomic_store_explicit(n + g, 1u, memory_order_relaxed);
        }}""",
    "a lock that is spun on": f"""threadgroup atomic_uint lock;
        threadgroup uint sum;
        if (t == 0) {{ atomic_store_explicit(&lock, 0u, memory_order_relaxed); sum = 0; }}
        {BARRIER}
        if (t % 32 == 0) {{
            while (atomic_exchange_explicit(&lock, 1u, memory_order_relaxed) != 0) {{ }}
            atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup);
            sum += t;
            atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup);
            atomic_store_explicit(&lock, 0u, memory_order_relaxed);
        }}
        {BARRIER}
        o[i] = sum;""",
    "set in each branch": """int s; if (i > 3) s = 1; else s = 2;
        uint own[4]; for (uint k = 0; k < 4; ++k) own[k] = k;
        int q; switch (i % 3) { case 0: q = 1; break; default: q = 2; }
        bool any = false; for (uint k = 0; k < 4; ++k) any |= own[k] == 2;
        uint left; bool has = i > 7; if (has) left = 3; if (has) s += left;
        o[i] = s + int(own[i % 4]) + q + any;""",
    "set by a helper": """struct Two { uint a, b; };
        auto fill = [](thread uint& a, thread Two& two) { a = 1; two.a = 2; two.b = 3; };
        uint a; Two two; fill(a, two); Two other = two; o[i] = a + other.b;""",
    "divergent": "float s = 0; for (uint k = 0; k < t % 5; ++k) if (t % 3 == k) s += simd_sum(1.0f); o[i] = s;",
}


@pytest.mark.long(every=3)  # Right kernels alternate
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_left_alone(name: str) -> None:
    found = seen(RIGHT[name])
    assert found.ok, found
    assert "written twice" not in {f.kind for f in found.findings}, found
    assert found.accesses > 0
    assert "no fault, " in repr(found)


def test_a_short_group_lacks_lanes_that_a_reduction_takes_from() -> None:
    """Right for 32 lanes; but of 20 lanes, lane 4 takes from lane 20, and lane 0's sum then contains that value."""
    body = "float v = x[i];\nfor (uint k = 16; k; k /= 2) v += simd_shuffle_down(v, k);\no[i] = v;"
    found = seen(body, threads=52, threadgroup=52)
    assert (found.ok, [(f.kind, f.line, f.thread, f.index, f.size) for f in found.findings]) == (
        False, [("lane", 7, 32 + 4, 20, 20)],
    )  # fmt: skip
    assert "takes a value from lane 20 of its SIMD-group, which has 20 lanes: the value is undefined" in repr(found)
    assert seen(body, threads=64, threadgroup=64).ok


def test_the_other_party_of_a_race_is_named() -> None:
    """Threads run one after another: the first 32 read unwritten elements, which the others write afterwards."""
    found = seen("threadgroup float s[64];\ns[t] = 1;\no[i] = s[63 - t];")
    unwritten, race, *more = found.findings
    assert (unwritten.kind, unwritten.line, unwritten.thread, unwritten.index) == ("never written", 8, 0, 63)
    assert race.other
    assert (race.kind, race.line, race.written) == ("race", 7, True)
    assert (race.other.line, race.other.thread, race.other.written) == (8, 31, False)
    assert [(f.line, f.other.line, f.other.written) for f in more if f.other] == [(8, 7, True)]
    assert (race.value, more[0].value) == (1, 1)
    assert f"writes s[32] = 1, which thread 31 read as {race.other.value:g} on line 8: put a barrier" in repr(found)
    assert "metalnb-finding" in found._repr_html_()


OVERLAPS = {
    "one array": 0, "the end of one is the start of the other": 64, "two elements": 126, "beside each other": 128,
}  # fmt: skip


@pytest.mark.parametrize("name", OVERLAPS)
def test_arguments_that_overlap_overlap_in_the_copies(name: str) -> None:
    """As in the call, another thread's writes through one argument are visible through the other."""
    start = OVERLAPS[name]
    reverse = mnb.compile(f"""{HEAD}kernel void f(device const float* x, device float* o,
        uint i [[thread_position_in_grid]]) {{ o[i] = x[127 - i]; }}""").f
    a = np.arange(256, dtype=np.float32)
    found = mnb.validate(reverse, a[:128], a[start : start + 128], threadgroup=64)
    assert found.missed == 0
    assert a.tolist() == list(range(256))
    if start == 128:
        assert (found.ok, [b.others for b in found.buffers]) == (True, [(), ()])
        assert {(e.buffer, e.index) for e in found.events} == {(b, i) for b in "xo" for i in range(128)}
        return
    assert [b.others for b in found.buffers] == [("o",), ("x",)]
    assert "in the memory of x" in repr(found)
    races = [f for f in found.findings if f.kind == "race"]
    assert races
    assert repr(found).count(" too; pass a copy of one") == len(races)
    for race in races:  # of an element that one thread writes and the other reads
        assert race.other
        assert race.index is not None
        place = race.index + (start if race.name == "o" else 0)
        assert {race.thread, race.other.thread} == {place - start, 127 - place}


def test_overlap_counts_elements_of_each_type() -> None:
    words = mnb.compile(f"""{HEAD}kernel void f(device const uchar* b, device float4* v,
        uint i [[thread_position_in_grid]]) {{ float s = b[i + 496]; v[i + 1] = float4(s); }}""").f
    memory = np.zeros(512, np.uint8)
    found = mnb.validate(words, memory, memory[256:].view(np.float32).reshape(16, 4), grid=17)
    beyond = [(f.name, f.thread, f.index, f.size) for f in found.findings if f.kind == "beyond"]
    assert beyond == [("v", 15, 16, 16), ("b", 16, 512, 512)]


def test_outputs_in_the_memory_of_an_input_are_compared() -> None:
    doubled = mnb.compile(f"""{HEAD}kernel void f(device const float* x, device float* o,
        uint i [[thread_position_in_grid]]) {{ o[i] = 2 * x[i]; }}""").f
    a = np.arange(64, dtype=np.float32)
    assert mnb.validate(doubled, a, a, expected=lambda x: 2 * x).ok
    assert not mnb.validate(doubled, a, a, expected=lambda x: 3 * x).ok


def test_it_runs_on_copies() -> None:
    kernel = mnb.compile(f"{HEAD}kernel void f(device float* x, uint i [[thread_position_in_grid]]) {{ x[i] = 1; }}").f
    x = np.zeros(1 << 12, np.float32)
    found = mnb.validate(kernel, x, threadgroup=64)
    assert (found.ok, found.left_out) == (True, 0)
    assert not x.any()
    with pytest.raises(mnb.ArgumentError, match="validate: takes a kernel"):
        mnb.validate(3)


def test_nan_input_is_not_reported_as_uninitialized() -> None:
    kernel = mnb.compile(
        f"{HEAD}kernel void f(device const float* x, device float* o, uint i [[thread_position_in_grid]])"
        "{ o[i] = x[i] * 2; }"
    ).f
    assert mnb.validate(kernel, np.full(8, 0xFFFFFFFF, np.uint32).view(np.float32)).ok


# ---- The puzzles: right solutions, and common mistakes ---------------------------------------------------


def of_puzzle(name: str, old: str = "", new: str = "") -> list[mnb.Validation]:
    """Return a solution with one change, at each size that the puzzle is checked at."""
    text = str(puzzles.solution(name))
    assert old in text
    puzzle = puzzles.puzzle(name)
    kernel = mnb.compile(text.replace(old, new) if old else text)[name]
    found = []
    for n in puzzle.sizes:
        inputs = puzzle.given(np.random.default_rng(1), n)
        out = np.zeros(np.shape(puzzle.spec(**inputs)), puzzle.dtype)
        given = {p.name: {**inputs, puzzle.out: out}[p.name] for p in kernel.signature.buffers}
        found.append(mnb.validate(kernel, **given, **puzzle.launch(n)))
    return found


@pytest.mark.long(every=3)  # test_puzzles runs all solutions, without validation
@pytest.mark.parametrize("name", puzzles.PUZZLES)
def test_a_puzzles_solution_is_left_alone(name: str) -> None:
    for found in of_puzzle(name):
        assert found.ok, found


@pytest.mark.long(every=3)  # test_puzzles covers mistakes of this kind, too
@pytest.mark.filterwarnings("ignore::metalnb.MetalnbWarning")
@pytest.mark.parametrize(("name", "old", "new", "kind"), [
    ("add_ten", "a[i] + 10", "a[i + 1] + 10", "beyond"),
    ("add_ten", "out[i] =", "out[0] =", "race"),
    ("zip_add", "b[i]", "b[i - 1]", "beyond"),
    ("zip_add", "out[i]", "out[i / 2]", "race"),
    ("guarded", "if (i < n) ", "", "beyond"),
    ("guarded", "i < n", "i <= n", "beyond"),
    ("map_2d", "p.x < n && p.y < n", "p.y < n", "beyond"),
    ("broadcast", "p.y * n + p.x", "p.y + p.x", "race"),
    ("in_groups", "group * size + t", "t", "race"),
    ("mirrored", "tile[7 - t]", "tile[8 - t]", "beyond"),
    ("pooled", "if (i >= 1) ", "", "beyond"),
    ("dot", "t < n ? a[t] * b[t] : 0", "a[t] * b[t]", "beyond"),
    ("dot", "if (t == 0) out[0] = partial[0];", "out[0] = partial[t];", "race"),
    ("dot", "if (t == 0) out", "if (t < 3) out", "race"),
    ("convolved", " && i + j < n", "", "beyond"),
    ("running_sum", "if (t < n) out[t]", "out[t]", "beyond"),
    ("running_sum", f"        {BARRIER}\n        float before", "        float before", "race"),
    ("row_sums", "i < n", "i < 32", "beyond"),
    ("row_sums", "out[row]", "out[0]", "race"),
    ("smoothed", "if (p.x < columns && p.y < rows) ", "", "beyond"),
    ("smoothed", " && y >= 0", "", "beyond"),
])  # fmt: skip
def test_a_learners_mistake_is_found(name: str, old: str, new: str, kind: str) -> None:
    found = of_puzzle(name, old, new)
    assert kind in {f.kind for each in found for f in each.findings}, found


# ---- The library's own kernels.


class _Watch:
    """Repeats each of the engine's dispatches in the validated build before starting it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, Any]] = []
        engine = engines.named("cpu")
        launch = type(engine).launch

        def watched(own: Any, binary: Any, arguments: Any, grid: Any, threadgroup: Any) -> Any:
            if 0 not in grid:
                facts = run_validated(binary.unit, arguments, grid, threadgroup, 60.0)
                before = {
                    p.name: np.frombuffer(a, np.uint8).copy()
                    for p, a in zip(binary.unit.signature.params, arguments, strict=True)
                    if a is not None and not isinstance(a, int)
                }
                judge = Judge(binary.unit, grid, threadgroup, facts, before, complete=True)
                self.seen.append((binary.unit.signature.name, [f for f in judge.findings() if f.is_fault]))
            return launch(own, binary, arguments, grid, threadgroup)

        monkeypatch.setattr(type(engine), "launch", watched)


LIBRARY = {
    "sum": lambda a, b: mnb.sum(a, axis=1),
    "sum of all": lambda a, b: mnb.sum(a),
    "largest": lambda a, b: mnb.max(a, axis=0),
    "where the largest is": lambda a, b: mnb.argmax(a, axis=1),
    "cumulative": lambda a, b: mnb.cumulative_sum(a, axis=1),
    "sort": lambda a, b: mnb.sort(a, axis=1),
    "argsort": lambda a, b: mnb.argsort(a, axis=1),
    "product": lambda a, b: a @ b,
    "add": lambda a, b: a + b.T,
    "exp": lambda a, b: mnb.exp(a),
    "take": lambda a, b: mnb.take(a, mnb.asarray(np.array([3, 1, 2]), device="cpu"), axis=1),
    "where": lambda a, b: mnb.where(a > 0.5, a, 0.0),
    "mean": lambda a, b: mnb.mean(a, axis=1),
    "deviation": lambda a, b: mnb.std(a),
    "joined": lambda a, b: mnb.concat([a, b.T]),
    "turned": lambda a, b: mnb.flip(a, axis=0) + 1,
    "unique": lambda a, b: mnb.unique_values(mnb.floor(a * 5)),
    "searched": lambda a, b: mnb.searchsorted(mnb.sort(mnb.reshape(a, (-1,))), mnb.reshape(b, (-1,))),
}


# Each takes a second; the right kernels and the puzzles above run through the same code.
@pytest.mark.long(every=4)
@pytest.mark.parametrize("name", LIBRARY)
def test_a_kernel_of_the_library_is_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    a, b = (mnb.asarray(rng.random(s, np.float32), device="cpu") for s in ((37, 70), (70, 37)))
    mnb.synchronize()
    watch = _Watch(monkeypatch)
    LIBRARY[name](a, b)
    mnb.synchronize()
    assert watch.seen
    assert [(kernel, faults) for kernel, faults in watch.seen if faults] == []
