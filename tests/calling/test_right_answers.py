"""Programs that once silently gave wrong results, compared with NumPy for all threadgroup sizes and math modes."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
THREADS = 300
GROUPS = (1, 8, 31, 32, 33, 64, 256)

pytestmark = pytest.mark.parametrize("math", ["fast", "precise"])


def run(body: str, out: np.ndarray, math: mnb.program.Math, group: int, *arrays: object, params: str = "") -> None:
    """Run a kernel with one output over a grid of `THREADS` threads."""
    kind = {"f": "float", "e": "half", "i": "int", "I": "uint", "l": "long", "L": "ulong"}[out.dtype.char]
    source = f"kernel void k(device {kind}* y{params}, uint i [[thread_position_in_grid]],\n"
    source += "    uint lid [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {\n"
    mnb.compile(f"{HEAD}{source}{body}\n}}", math=math, engine="cpu").k(out, *arrays, grid=THREADS, threadgroup=group)


# Inner loops whose trip count is cut to a power of two: clang narrowed it to that many bits. -------------------

CUTS = [f"c % {n}" for n in (4, 8, 16, 32, 64)] + [f"c & {n}" for n in (3, 7, 15, 31, 63)]


# 3 divides none of the counts, so each bound, each threadgroup and each math mode remains.
@pytest.mark.long(every=3)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("cut", CUTS)
def test_inner_loops_of_a_power_of_two_run_as_often_as_written(cut: str, group: int, math: mnb.program.Math) -> None:
    y = np.zeros(THREADS, np.uint32)
    loops = f"for (uint c = 0; c < i; c++) for (uint q = 0; q < ({cut}); q++)"
    run(f"uint s = 0; {loops} s += 1; y[i] = s;", y, math, group)
    steps = [eval(cut, {"c": c}) for c in range(THREADS)]  # noqa: S307  (from the list above)
    np.testing.assert_array_equal(y, np.concatenate([[0], np.cumsum(steps)[:-1]]))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("outer", ["i", "100"])
@pytest.mark.parametrize("kind", ["float", "uint"])
def test_an_inner_loops_bound_may_depend_on_the_outer_counter(
    kind: str, outer: str, group: int, math: mnb.program.Math
) -> None:
    y = np.zeros(THREADS, np.float32 if kind == "float" else np.uint32)
    loops = f"for (uint c = 0; c < {outer}; c++) for (uint q = 0; q < c % 4; q++)"
    run(f"{kind} s = 0; {loops} s += 1; y[i] = s;", y, math, group)
    sums = np.concatenate([[0], np.cumsum(np.arange(THREADS) % 4)])
    np.testing.assert_array_equal(y, sums[np.arange(THREADS)] if outer == "i" else np.full(THREADS, sums[100]))


# A value combined with its complement. ----------------------------------------------------------------------------


def bits_of(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.itemsize}")


COMPLEMENTS = {
    "min(x[i], ~x[i])": lambda x: np.minimum(x, ~x),
    "max(x[i], T(-1) - x[i])": lambda x: np.maximum(x, ~x),
    "max(x[i], ~x[i])": lambda x: np.maximum(x, ~x),
    "median3(T(5), x[i], T(~x[i]))": lambda x: np.clip(x.dtype.type(5), np.minimum(x, ~x), np.maximum(x, ~x)),
    "absdiff(x[i], T(~x[i]))": lambda x: bits_of(np.maximum(x, ~x)) - bits_of(np.minimum(x, ~x)),
}  # fmt: skip


@pytest.mark.long(every=3)  # As above: each expression, each dtype and each threadgroup remains
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("text", COMPLEMENTS)
def test_a_value_and_its_complement_combine_as_in_numpy(
    text: str, kind: type, group: int, math: mnb.program.Math, rng: np.random.Generator
) -> None:
    limits, name = np.iinfo(kind), {"i": "int", "u": "uint"}[np.dtype(kind).kind]
    name = name if np.dtype(kind).itemsize == 4 else {"int": "long", "uint": "ulong"}[name]
    x = rng.integers(limits.min, limits.max, THREADS, kind, endpoint=True)
    x[:5] = [0, 1, limits.max, limits.min, 5]
    y = np.zeros(THREADS, kind)
    run(f"typedef {name} T; y[i] = T({text});", y, math, group, x, params=f", device const {name}* x")
    np.testing.assert_array_equal(y, COMPLEMENTS[text](x).astype(kind))


@pytest.mark.long(every=3)  # As above: each expression, each dtype and each threadgroup remains
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("other", ["min", "max"])
def test_uniform_bounds_of_a_range_are_exact(
    other: str, kind: type, group: int, math: mnb.program.Math, rng: np.random.Generator
) -> None:
    limits, name = np.iinfo(kind), {"i": "int", "I": "uint", "l": "long", "L": "ulong"}[np.dtype(kind).char]
    x = rng.integers(limits.min, limits.max, THREADS, kind, endpoint=True)
    text = "min(x[1], max(x[size & 63], ~x[1]))" if other == "max" else "max(x[1], min(x[size & 63], ~x[1]))"
    y = np.zeros(THREADS, kind)
    run(f"y[i] = {text};", y, math, group, x, params=f", device const {name}* x")
    last = THREADS // group * group  # from here on a threadgroup has fewer threads
    at = x[np.where(np.arange(THREADS) < last, group, THREADS - last) & 63]
    expected = np.minimum(x[1], np.maximum(at, ~x[1])) if other == "max" else np.maximum(x[1], np.minimum(at, ~x[1]))
    np.testing.assert_array_equal(y, expected)


# Sums of 64-bit counters: their closed form has 65 bits. -----------------------------------------------------


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", [np.uint64, np.int64, np.uint32])
def test_a_sum_of_counters_has_its_closed_form(kind: type, group: int, math: mnb.program.Math) -> None:
    name = {"L": "ulong", "l": "long", "I": "uint"}[np.dtype(kind).char]
    y = np.zeros(THREADS, kind)
    text = f"{name} s = 0; for ({name} q = 0; q < n + i; q++) s += q; y[i] = s;"
    run(text, y, math, group, kind(100), params=f", constant {name}& n")
    ends = np.arange(THREADS) + 100
    np.testing.assert_array_equal(y, ends * (ends - 1) // 2)


# Sums that rounding stops: the order of additions is the author's. -------------------------------------------


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("kind", "start", "want"), [(np.float16, "0.0h", 2048), (np.float32, "16777190.0f", 2**24)])
def test_adding_ones_stops_where_the_type_has_no_next_integer(
    kind: type, start: str, want: float, group: int, math: mnb.program.Math
) -> None:
    name = "half" if kind is np.float16 else "float"
    y = np.zeros(THREADS, kind)
    run(f"{name} s = {start}; for (int k = 0; k < 3000; ++k) s += {name}(1); y[i] = s;", y, math, group)
    np.testing.assert_array_equal(y, np.full(THREADS, want, kind))


# A guarded division, in loops with several exits. -----------------------------------------------------


@pytest.mark.parametrize("group", GROUPS)
def test_a_guarded_division_in_nested_loops_never_divides_by_zero(group: int, math: mnb.program.Math) -> None:
    y = np.zeros(THREADS, np.uint32)
    body = """
    uint v = 1, w = 1;
    for (uint k = 0; k < i % 5; k++) {
        uint z = 0;
        do {
            if (lid != 0) v = (w << 1) / lid;
        } while (1 >= k && ++z < 20);
        for (uchar q = 0; q < 10; q++) w ^= uint(w < (lid == 0 ? 0 : 9 % lid));
    }
    y[i] = v;"""
    run(body, y, math, group)
    np.testing.assert_array_equal(y, [_divided(i, i % group) for i in range(THREADS)])


# A branch on the high half of a product of constants. --------------------------------------------------------


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("kind", "x"), [(np.int64, -2734970573724549926), (np.int64, 77), (np.uint64, 2**64 - 1)])
def test_a_branch_on_a_product_of_constants_is_taken_right(
    kind: type, x: int, group: int, math: mnb.program.Math
) -> None:
    name, suffix = ("long", "l") if kind is np.int64 else ("ulong", "ul")
    text = f"""
    {name} v = 127;
    if (mulhi({name}({x}{suffix}), {name}(3)) != {name}(71)) y[i] = mulhi({name}({x}{suffix}), {name}(3));
    else v = mulhi(b[lid & 63], {name}(1));
    y[i] += v;"""
    y = np.zeros(THREADS, kind)
    run(text, y, math, group, np.arange(64).astype(kind), params=f", device const {name}* b")
    np.testing.assert_array_equal(y, np.full(THREADS, (x * 3 >> 64) + 127, kind))


# The high half of a product of long, in code that no thread reaches. --------------------------------------------------


@pytest.mark.parametrize("group", GROUPS)
def test_high_product_in_a_dead_branch_changes_nothing(group: int, math: mnb.program.Math) -> None:
    """The device's mul_hi of long, in a branch that its compiler proves dead, disabled the entire kernel."""
    body = """
    uint width = min(32u, size - lid / 32 * 32);
    ushort one = simd_shuffle(ushort(1), ushort(1u % width)), seven = simd_shuffle(ushort(7), ushort(8u % width));
    y[i] = 5;
    if (min(one, ushort(~one)) == seven && mulhi(b[lid & 63], 3l) >= 1) y[i] = 6;"""
    y = np.zeros(THREADS, np.uint32)
    run(body, y, math, group, np.arange(64), params=", device const long* b")
    np.testing.assert_array_equal(y, np.full(THREADS, 5, np.uint32))


# A value that is uniform within a loop and varying after it. ------------------------------


@pytest.mark.parametrize("group", GROUPS)
def test_a_loop_that_ends_on_one_of_two_conditions(group: int, math: mnb.program.Math) -> None:
    follow = np.roll(np.arange(64, dtype=np.uint32), -7)
    x = np.where(np.arange(64) % 5 == 0, 0, np.linspace(-1, 1, 64)).astype(np.float32)
    body = """
    uint v = 1, k = 0;
    char t = char(-127);
    do {
        v = a[v & 63];
        t &= char(~(x[i & 63] <= 6e-8f ? char(size) : t));
    } while (t < 0 && ++k < 12);
    y[i] = v;"""
    y = np.zeros(THREADS, np.uint32)
    run(body, y, math, group, follow, x, params=", device const uint* a, device const float* x")
    last = THREADS // group * group
    sizes = np.where(np.arange(THREADS) < last, group, THREADS - last)
    expected = [_followed(follow, x[i & 63], int(sizes[i])) for i in range(THREADS)]
    np.testing.assert_array_equal(y, expected)


def _followed(follow: np.ndarray, x: float, size: int) -> int:
    v, t = 1, np.int8(-127)
    for _ in range(12):
        v = int(follow[v & 63])
        t &= ~(np.array(size).astype(np.int8) if x <= np.float32(6e-8) else t)
        if t >= 0:
            break
    return v


def _divided(i: int, lid: int) -> int:
    v = w = 1
    for k in range(i % 5):
        for _ in range(20 if k <= 1 else 1):
            v = (w << 1) // lid if lid else v
        for _ in range(10):
            w ^= int(w < (9 % lid if lid else 0))
    return v


# Loops with a barrier in them, whose counter halves or doubles. ------------------------------------------------------

COUNTERS = {
    "halved": ("size / 2", "step > 0", "step /= 2", "t < step"),
    "shifted": ("size / 2", "step != 0", "step >>= 1", "t < step"),
    "from a number": ("128", "step > 0", "step /= 2", "t < step && t + step < size"),
    "doubled": ("1", "step < size", "step *= 2", "t % (2 * step) == 0"),
    "doubled to a number": ("1", "step < 256", "step *= 2", "t % (2 * step) == 0 && t + step < size"),
}


# 3 divides none of the counts, so each counter, each order and each threadgroup remains.
@pytest.mark.long(every=3)
@pytest.mark.parametrize("group", [1, 8, 32, 64, 256])
@pytest.mark.parametrize("barrier_side", ["before", "after"])
@pytest.mark.parametrize("counter", COUNTERS)
def test_tree_reductions_of_every_counter_give_the_sum(
    counter: str, barrier_side: str, group: int, math: mnb.program.Math, rng: np.random.Generator
) -> None:
    start, test, step, mine = COUNTERS[counter]
    barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
    source = f"""
    kernel void tree(const device float* x, device float* sums, constant uint& n, uint i [[thread_position_in_grid]],
                     uint t [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]],
                     uint size [[threads_per_threadgroup]]) {{
        threadgroup float tile[256];
        tile[t] = i < n ? x[i] : 0;
        {barrier if barrier_side == "after" else ""}
        for (uint step = {start}; {test}; {step}) {{
            {barrier if barrier_side == "before" else ""}
            if ({mine}) tile[t] += tile[t + step];
            {barrier if barrier_side == "after" else ""}
        }}
        if (t == 0) sums[group] = tile[0];
    }}"""
    x, sums = rng.integers(1, 9, 512).astype(np.float32), np.zeros(512 // group, np.float32)
    mnb.compile(HEAD + source, math=math, engine="cpu").tree(x, sums, 500, grid=512, threadgroup=group)
    x[500:] = 0
    np.testing.assert_array_equal(sums, x.reshape(-1, group).sum(1))


# An atomic operation on a constant index of a threadgroup array: clang's backend took bytes for elements. ---------

COUNTED = HEAD + """
kernel void count(device uint* out, uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]],
                  uint size [[threads_per_threadgroup]]) {
    threadgroup atomic_uint held[12];
    for (uint k = lid; k < 12; k += size) atomic_store_explicit(&held[k], k, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&held[8], 2, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = atomic_load_explicit(&held[8], memory_order_relaxed);
}"""


@pytest.mark.parametrize("group", [1, 8, 31, 32, 50, 100])
def test_an_atomic_operation_at_a_constant_address_counts_every_lane(group: int, math: mnb.program.Math) -> None:
    out = np.zeros(2 * group, np.uint32)
    mnb.compile(COUNTED, math=math, engine="cpu").count(out, grid=2 * group, threadgroup=group)
    np.testing.assert_array_equal(out, np.full(2 * group, 8 + 2 * group))


# A choice between two thread variables, one passed by reference. -----------------------

CHOSEN = HEAD + """
static int chosen(thread int& p) {
    int v = 7 > p;
    return 1 <= p ? 1 : (p == v ? v : p);
}
kernel void k(device const int* x, device int* out, uint i [[thread_position_in_grid]]) {
    int v = x[i];
    out[i] = chosen(v);
}"""


@pytest.mark.parametrize("group", GROUPS)
def test_a_choice_between_a_reference_and_a_variable_is_right(group: int, math: mnb.program.Math) -> None:
    x = np.arange(-20, 20, dtype=np.int32)
    out = mnb.compile(CHOSEN, math=math, engine="cpu").k(x, threadgroup=group)
    np.testing.assert_array_equal(out, np.where(x >= 1, 1, x))


# A sort whose threads may leave before the first barrier. ----------------------------------------------------


def test_a_bitonic_sort_with_an_early_return(math: mnb.program.Math, rng: np.random.Generator) -> None:
    source = """
    kernel void argsort(device const float* x, device int* order, threadgroup float* s [[threadgroup(0)]],
                        uint lid [[thread_position_in_threadgroup]]) {
        if (lid >= 256) return;
        threadgroup int* at = (threadgroup int*)(s + 256);
        s[lid] = x[lid]; at[lid] = int(lid);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 2; k <= 256; k <<= 1) for (uint j = k >> 1; j > 0; j >>= 1) {
            const uint o = lid ^ j;
            if (o > lid) {
                const bool wrong = (lid & k) == 0 ? s[at[lid]] > s[at[o]] : s[at[lid]] < s[at[o]];
                if (wrong) { const int t = at[lid]; at[lid] = at[o]; at[o] = t; }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        order[lid] = at[lid];
    }"""
    with pytest.warns(mnb.MetalnbWarning, match="return"):
        kernel = mnb.compile(HEAD + source, math=math, engine="cpu").argsort
    x = rng.permutation(256).astype(np.float32)
    order = np.zeros(256, np.int32)
    kernel(x, order, grid=256, threadgroup=256, threadgroup_memory={"s": 256 * 8})
    np.testing.assert_array_equal(order, np.argsort(x))


# Reductions whose steps are constants: clang unrolls the loop. -----------------------------------------------


@pytest.mark.parametrize("group", [32, 64, 256, 1024])
def test_a_reduction_with_constant_steps_gives_the_sum(
    group: int, math: mnb.program.Math, rng: np.random.Generator
) -> None:
    """The last step, which clang puts into a separate block, counts too."""
    source = f"""kernel void k(device const float* x, device float* y, constant uint& n,
                     uint t [[thread_position_in_threadgroup]]) {{
        threadgroup float part[{group}];
        part[t] = t < n ? x[t] : 0;
        for (uint step = {group // 2}; step > 0; step /= 2) {{
            threadgroup_barrier(mem_flags::mem_threadgroup);
            if (t < step) part[t] += part[t + step];
        }}
        if (t == 0) y[0] = part[0];
    }}"""
    kernel = mnb.compile(HEAD + source, math=math, engine="cpu").k
    x = rng.integers(0, 100, group).astype(np.float32)
    for n in (1, 8, group - 1, group):
        y = np.zeros(1, np.float32)
        kernel(x, y, n, grid=group, threadgroup=group)
        assert y[0] == x[:n].sum(), n


# Values that increase from thread to thread, beside a branch that no thread takes. ------------------------------------


@pytest.mark.parametrize("group", GROUPS)
def test_a_position_used_near_a_dead_branch_is_right(group: int, math: mnb.program.Math) -> None:
    """When a threadgroup's SIMD-groups reach it one after another, all but the first used to get the first one's."""
    source = """kernel void k(device uint* y, device atomic_uint* seen, uint i [[thread_position_in_grid]],
                     uint t [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
        uint3 before = uint3(t, 1, 1) - uint3(1);
        if (t == size) {
            y[i * 2] = before.x * 7 + before.y + before.z;
            atomic_fetch_and_explicit(seen, 1u, memory_order_relaxed);
        }
        y[i * 2 + 1] = before.x * 7 + before.y + before.z;
    }"""
    y, seen = np.zeros((300, 2), np.uint32), np.zeros(1, np.uint32)
    mnb.compile(HEAD + source, math=math, engine="cpu").k(y, seen, grid=300, threadgroup=group)
    np.testing.assert_array_equal(y[:, 1], ((np.arange(300) % group - 1) * 7).astype(np.uint32))
    assert not y[:, 0].any()
    assert not seen.any()


# A bool that clang treats as a signed one-bit number. ----------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "half", "float2"])
def test_a_bool_converted_to_minus_one_or_zero_is_right(kind: str, math: mnb.program.Math) -> None:
    """Clang's backend wrote 1."""
    source = f"""kernel void k(device float* y, constant uint& n, uint i [[thread_position_in_grid]]) {{
        {kind} v = {kind}(i < n ? -1 : 0);
        y[i] = float(v{".x" if kind == "float2" else ""});
    }}"""
    kernel = mnb.compile(HEAD + source, math=math, engine="cpu").k
    for group in GROUPS:
        y = np.ones(100, np.float32)
        kernel(y, 41, grid=100, threadgroup=group)
        np.testing.assert_array_equal(y, np.where(np.arange(100) < 41, -1.0, 0.0))
