"""Kernels with one bug each, and what validation reports: the kind, the thread, the buffer and the index.

The line of the bug ends in `// !`.
"""

from typing import Any

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
INPUTS = """device float* x, device float* o, device atomic_uint* n, uint i [[thread_position_in_grid]],
    uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]"""
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"

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
HELPER_OF = {
    "NaN in a helper": 0, "a struct's member beyond": 1, "a reference handed on": 2, "a template": 3,
    "a race in a helper": 4, "in a helper": 5, "by a method": 6,
}  # fmt: skip

ONE_OF_EACH_KIND = {kind: name for name, (_, (kind, *_)) in reversed(BUGS.items())}.values()
