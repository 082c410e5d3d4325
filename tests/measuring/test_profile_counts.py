"""Counts of small kernels, compared with values worked out by hand: sectors, conflicts, lanes, operations."""

import numpy as np
import pytest

import metalnb as mnb
from metalnb.profiling.cost_records import AccessCost
from metalnb.profiling.profile_record import Profile

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def kernel(text: str, name: str = "f") -> mnb.Kernel:
    return mnb.compile(HEAD + text)[name]


def access(found: Profile, name: str, kind: str = "read") -> AccessCost:
    (one,) = [a for a in found.accesses if a.name == name and a.kind == kind]
    return one


# ---- Threadgroup memory: passes over 32 banks of 4 bytes. A tile is written row by row and read column by column.

TILE = """kernel void f(device float* out, uint2 i [[thread_position_in_threadgroup]],
    uint l [[thread_index_in_threadgroup]]) {{
    threadgroup float t[{rows}][{wide}];
    t[{y}][{x}] = l;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[l] = t[{x}][{y}];
}}"""


@pytest.mark.parametrize(
    ("rows", "wide", "threads", "written", "read"),
    [
        # 8x8 threads: a SIMD-group is four rows of eight. Rows of 8 words fill the 32 banks; in a column the words of x
        # and x + 4 are 32 apart, in one bank.
        (8, 8, (8, 8), 1, 2),
        # Rows of 9 words: 9 y + x reaches 34, so that words 32 to 34 are in the banks of 0 to 2. Padding does not help.
        (8, 9, (8, 8), 2, 2),
        # Rows of 32 words: four rows share the same eight banks; a column's eight words share one.
        (32, 32, (8, 8), 4, 8),
        # Rows of 33: bank y + x, shared by at most four lanes.
        (32, 33, (8, 8), 4, 4),
        # 32x8 threads: a SIMD-group is one row. Modulo 8 its lanes share eight words; down a column they are 8 apart,
        # so 0 and 32, 8 and 40, ... share a bank.
        (8, 8, (32, 8), 1, 2),
        (8, 9, (32, 8), 1, 1),
        (32, 32, (32, 8), 1, 32),
        (32, 33, (32, 8), 1, 1),
    ],
)
def test_passes_over_the_banks_of_a_tile(
    rows: int, wide: int, threads: tuple[int, int], written: int, read: int
) -> None:
    x, y = ("i.x % 8", "i.y % 8") if rows == 8 else ("i.x", "i.y")
    text = TILE.format(rows=rows, wide=wide, x=x, y=y)
    found = mnb.profile(kernel(text), grid=threads, threadgroup=threads, shapes={"out": threads[::-1]})
    groups = threads[0] * threads[1] // 32
    stores, loads = access(found, "t", "write"), access(found, "t")
    assert (stores.runs, stores.passes, stores.least) == (groups, groups * written, groups)
    assert (loads.runs, loads.passes, loads.least) == (groups, groups * read, groups)
    assert found.conflicts == groups * (written + read - 2)
    assert found.threadgroup_bytes == 4 * rows * wide


@pytest.mark.parametrize(
    ("kind", "index", "passes", "least"),
    [
        ("float", "l", 1, 1),
        ("float", "0", 1, 1),  # all lanes read one word
        ("float", "l / 2", 1, 1),
        ("float", "l * 2", 2, 2 - 1),
        ("float", "31 - l", 1, 1),
        ("uchar", "l", 1, 1),  # four lanes share a word
        ("uchar", "l * 128", 32, 1),
        ("float2", "l", 2, 2),  # 8 bytes: half the lanes at a time
        ("float2", "l * 16", 32, 2),
        ("float4", "l", 4, 4),  # 16 bytes: a quarter
    ],
)  # fmt: skip
def test_passes_by_the_size_of_an_access(kind: str, index: str, passes: int, least: int) -> None:
    text = f"""kernel void f(device {kind}* out, uint l [[thread_index_in_threadgroup]]) {{
        threadgroup {kind} t[{4096 if kind == "uchar" else 512}];
        t[l] = {kind}(l);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[l] = t[{index}];
    }}"""
    found = mnb.profile(kernel(text), np.zeros(32 * 4, np.float32).view(_dtype(kind)), grid=32, threadgroup=32)
    read = access(found, "t")
    assert (read.passes, read.least) == (passes, least)


def _dtype(kind: str) -> type[np.generic]:
    return np.uint8 if kind == "uchar" else np.float32


def test_the_number_of_banks_is_a_parameter() -> None:
    text = TILE.format(rows=32, wide=32, x="i.x", y="i.y")
    found = mnb.profile(kernel(text), grid=(32, 1), threadgroup=(32, 1), shapes={"out": (32,)}, banks=16)
    assert (found.banks, access(found, "t", "write").passes, access(found, "t").passes) == (16, 2, 32)


# ---- Device memory: sectors of 32 bytes and lines of 128, for each SIMD-group.


@pytest.mark.parametrize(
    ("kind", "index", "sectors", "lines", "used"),
    [
        ("float", "i", 4, 1, 128),
        ("float", "i + 1", 5, 2, 128),  # bytes 4 to 131
        ("float", "i * 2", 8, 2, 128),
        ("float", "i * 8", 32, 8, 128),
        ("float", "i * 32", 32, 32, 128),
        ("float", "0", 1, 1, 4),
        ("float", "i / 2", 2, 1, 64),
        ("float", "31 - i", 4, 1, 128),
        ("float", "(i * 5) % 32", 4, 1, 128),  # in another order
        ("float", "i % 2 ? i : i + 1024", 8, 2, 128),
        ("char", "i", 1, 1, 32),
        ("char", "i * 4096", 32, 32, 32),
        ("half", "i", 2, 1, 64),
        ("float4", "i", 16, 4, 512),
        ("packed_float3", "i", 12, 3, 384),
    ],
)
def test_sectors_and_lines_of_an_access(kind: str, index: str, sectors: int, lines: int, used: int) -> None:
    whole = "float3" if kind == "packed_float3" else kind
    text = f"""kernel void f(device const {kind}* x, device {kind}* out, uint i [[thread_position_in_grid]]) {{
        {whole} v = x[{index}];
        out[i] = v;
    }}"""
    dtype, wide = {
        "char": (np.int8, ()), "half": (np.float16, ()), "packed_float3": (np.float32, (3,)),
        "float4": (np.float32, (4,)),
    }.get(kind, (np.float32, ()))  # fmt: skip
    found = mnb.profile(
        kernel(text), np.zeros((1 << 17, *wide), dtype), np.zeros((32, *wide), dtype), grid=32, threadgroup=32
    )
    read = [a for a in found.accesses if a.name == "x"]
    total = [sum(getattr(a, n) for a in read) for n in ("sectors", "lines", "used")]
    times = 3 if kind == "packed_float3" else 1  # component by component, each over all sectors
    assert total == [times * sectors, times * lines, used]
    assert sum(a.runs for a in read) == times


@pytest.mark.parametrize(
    ("loop", "size", "runs", "sectors"),
    [
        ("uint4 v = x[i]; for (uint j = 0; j < 4; ++j) s += v[j];", 16, 4, 16),  # split by clang, one read
        ("uint4 v = x[i]; for (uint j = 0; j < 2; ++j) s += v[j];", 4, 8, 16),  # of half a vector
        ("for (uint j = 0; j < 4; ++j) s += x[4 * i + j].x;", 4, 16, 32),  # four reads
    ],
)
def test_a_vector_that_is_picked_from_in_a_loop_is_read_once(loop: str, size: int, runs: int, sectors: int) -> None:
    text = f"""kernel void f(device const uint4* x, device uint* out, uint i [[thread_position_in_grid]]) {{
        uint s = 0;
        {loop}
        out[i] = s;
    }}"""
    found = mnb.profile(kernel(text), np.zeros((512, 4), np.uint32), np.zeros(128, np.uint32), grid=128, threadgroup=64)
    (read,) = [a for a in found.accesses if a.name == "x"]
    assert (read.size, read.runs, read.sectors) == (size, runs, runs * sectors)
    assert read.stride == (64 if "4 * i" in loop else 16)


@pytest.mark.parametrize("kind", ["char4", "short4", "ushort2", "half4", "float4", "char3"])
@pytest.mark.parametrize("loop", ["uint j = i;", "for (uint j = i; j < 512; j += 128)"])
@pytest.mark.parametrize("used", ["x", "y", "all"])
def test_a_vector_is_read_at_once_or_one_component_of_it(kind: str, loop: str, used: str) -> None:
    parts = int(kind[-1])
    each = " + ".join(f"float(v.{c}) * {n + 2}" for n, c in enumerate("xyzw"[:parts]))
    text = f"""kernel void f(device const {kind}* x, device float* out, uint i [[thread_position_in_grid]]) {{
        float s = 0;
        {loop} {{ {kind} v = x[j]; s += {each if used == "all" else f"v.{used}"}; }}
        out[i] = s;
    }}"""
    dtype = np.dtype({"c": np.int8, "s": np.int16, "u": np.uint16, "h": np.float16, "f": np.float32}[kind[0]])
    found = mnb.profile(kernel(text), np.zeros((512, parts + parts % 2), dtype), np.zeros(128, np.float32), grid=128)
    read = access(found, "x")
    whole = dtype.itemsize * (4 if parts == 3 else parts)
    rounds = 16 if "for" in loop else 4
    assert (read.size, read.runs) == (whole if used == "all" else dtype.itemsize, rounds)
    assert read.sectors == rounds * max(1, 32 * whole // 32)


def test_sectors_depend_on_where_a_row_begins() -> None:
    text = """kernel void f(device const float* x, device float* out, constant uint& n,
        uint i [[thread_position_in_grid]]) {
        float s = 0;
        for (uint k = 0; k < n; ++k) s += x[k * 33 + i];
        out[i] = s;
    }"""
    found = mnb.profile(kernel(text), np.zeros(33 * 16, np.float32), np.zeros(32, np.float32), 16, grid=32)
    # Each row begins 4 bytes later, so every eighth one begins at a sector's border.
    assert (access(found, "x").runs, access(found, "x").sectors) == (16, 2 * 4 + 14 * 5)


def test_a_transpose_reads_rows_and_writes_columns() -> None:
    text = """kernel void f(device const float* x, device float* out, uint2 g [[thread_position_in_grid]]) {
        out[g.x * 64 + g.y] = x[g.y * 64 + g.x];
    }"""
    x = np.zeros((64, 64), np.float32)
    found = mnb.profile(kernel(text), x, np.zeros_like(x), threadgroup=(32, 8))
    assert (access(found, "x").runs, access(found, "x").sectors) == (128, 128 * 4)
    assert (access(found, "out", "write").sectors, access(found, "out", "write").stride) == (128 * 32, 256)
    assert (found.asked, found.traveled, found.bytes) == (2 * 16384, 16384 + 128 * 32 * 32, 2 * 16384)


@pytest.mark.parametrize("some", [1, 3])
@pytest.mark.parametrize(
    ("kind", "read", "size", "step"),
    [
        ("uchar", "x[at[i]]", 1, 1),
        ("float", "x[at[i]]", 4, 4),
        ("float4", "dot(x[at[i]], 1)", 16, 16),
        ("float", "float(*(device const ulong*)(x + 3 * at[i]))", 8, 12),  # some lie in two sectors
    ],
)
def test_a_gather_has_the_sectors_that_its_indices_have(kind: str, read: str, size: int, step: int, some: int) -> None:
    text = f"""kernel void f(device const {kind}* x, device const uint* at, device float* out,
        uint i [[thread_position_in_grid]]) {{
        if (at[i] % {some} == 0) out[i] = {read};
    }}"""
    at = np.random.default_rng().integers(0, 1 << 14, 1024, np.uint32)
    x = np.zeros(1 << 18, np.uint8 if size == 1 else np.float32)
    found = mnb.profile(kernel(text), x, at, np.zeros(1024, np.float32), threadgroup=256)
    groups = [step * group[group % some == 0].astype(np.int64) for group in at.reshape(-1, 32)]
    touched = [(group[:, None] + np.arange(size)).ravel() for group in groups]
    one = access(found, "x")
    assert (one.size, one.lanes) == (size, sum(map(len, groups)))
    assert one.sectors == sum(len(np.unique(places // 32)) for places in touched)
    assert one.lines == sum(len(np.unique(places // 128)) for places in touched)
    assert one.used == size * sum(len(np.unique(group)) for group in groups)
    every = np.unique(np.concatenate(touched))
    (buffer,) = [b for b in found.buffers if b.name == "x"]
    assert (buffer.distinct, buffer.read) == (len(every), 32 * len(np.unique(every // 32)))


def test_inactive_lanes_request_no_memory() -> None:
    text = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
        if (i % 4 == 0) out[i] = x[i] * 2;
    }"""
    found = mnb.profile(kernel(text), np.zeros(1024, np.float32), np.zeros(1024, np.float32), threadgroup=128)
    read = access(found, "x")
    assert (read.runs, read.lanes, read.sectors, read.used) == (32, 256, 128, 1024)
    assert read.sample[:5] == (0, None, None, None, 16)
    assert found.flops == 256
    assert [(b.name, b.distinct) for b in found.buffers] == [("x", 1024), ("out", 1024)]


def test_constants_do_not_travel() -> None:
    text = """kernel void f(constant float* x, constant float& a, device float* out,
        uint i [[thread_position_in_grid]]) {
        out[i] = x[i] * a;
    }"""
    found = mnb.profile(kernel(text), np.zeros(64, np.float32), 2.0, grid=64)
    assert {a.name: (a.space, a.sectors) for a in found.accesses if a.kind == "read"} == {
        "x": ("constant", 0), "a": ("constant", 0),
    }  # fmt: skip
    assert found.bytes == 256  # only what is written


# ---- Atomics, branches, barriers.


@pytest.mark.parametrize(("bins", "contended", "repeated"), [(1, 31, 32), (32, 0, 1), (8, 24, 4)])
def test_atomics_that_meet_at_an_address(bins: int, contended: int, repeated: int) -> None:
    text = f"""kernel void f(device atomic_uint* h, uint i [[thread_position_in_grid]]) {{
        atomic_fetch_add_explicit(&h[i % {bins}], 1, memory_order_relaxed);
    }}"""
    found = mnb.profile(kernel(text), np.zeros(32, np.uint32), grid=512, threadgroup=64)
    one = access(found, "h", "atomic")
    assert (one.runs, one.lanes, one.contended, one.repeated) == (16, 512, 16 * contended, repeated)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("bins", [7, 100, 2000])
def test_random_atomics_that_meet(bins: int, *, shared: bool) -> None:
    text = f"""kernel void f(device const uint* x, device atomic_uint* o, uint i [[thread_position_in_grid]]) {{
        {"threadgroup atomic_uint h[2000];" if shared else "device atomic_uint* h = o;"}
        atomic_fetch_add_explicit(&h[x[i]], 1, memory_order_relaxed);
    }}"""
    x = np.random.default_rng().integers(0, bins, 1024, np.uint32)
    found = mnb.profile(kernel(text), x, np.zeros(2000, np.uint32), grid=1024, threadgroup=64)
    (one,) = [a for a in found.accesses if a.kind == "atomic"]
    counts = [np.unique(group, return_counts=True)[1] for group in x.reshape(-1, 32)]
    assert one.contended == sum(32 - len(count) for count in counts)
    assert one.repeated == max(count.max() for count in counts)
    if shared:
        banks = [np.bincount(np.unique(group) % 32).max() for group in x.reshape(-1, 32)]
        assert one.passes == sum(banks)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("atomic_fetch_add_explicit(&h[3], 1, R);", "atomic_fetch_add_explicit(&h[3], 1, R);"),
        ("atomic_fetch_add_explicit(&h[3], 1, R);", "atomic_fetch_add_explicit(&h[3], 2, R);"),
        ("atomic_fetch_max_explicit(&h[x[i] / 2], i, R);", "atomic_fetch_max_explicit(&h[x[i] / 3], i, R);"),
        ("atomic_store_explicit(&h[3], 1, R);", "atomic_store_explicit(&h[4], 2, R);"),
        ("s = atomic_load_explicit(&h[3], R);", "s = atomic_load_explicit(&h[4], R);"),
        ("s = atomic_exchange_explicit(&h[3], i, R);", "s = atomic_exchange_explicit(&h[4], i, R);"),
        ("atomic_compare_exchange_weak_explicit(&h[3], &s, i, R, R);",
         "atomic_compare_exchange_weak_explicit(&h[4], &s, i, R, R);"),
    ],
)  # fmt: skip
def test_atomics_in_two_branches_keep_their_own_lines(one: str, other: str) -> None:
    """The compiler would merge the two into one without a line."""
    text = f"""#define R memory_order_relaxed
    kernel void f(device const uint* x, device atomic_uint* h, device uint* out, uint i [[thread_position_in_grid]]) {{
        uint s = 0;
        if (x[i] % 4 == 0) {{
            {one}
        }} else {{
            {other}
        }}
        out[i] = s;
    }}"""
    x = np.arange(64, dtype=np.uint32)
    found = mnb.profile(kernel(text), x, np.zeros(64, np.uint32), grid=64, threadgroup=32)
    lanes = {(a.line, a.lanes) for a in found.accesses if a.name == "h"}
    assert lanes == {(7, 16), (9, 48)}


def test_branches_at_which_lanes_part() -> None:
    text = """kernel void f(device const float* x, device const uint* n, device float* out,
        uint i [[thread_position_in_grid]]) {
        float s = 0;
        if (i / 32 % 2) {
            for (uint k = 0; k < n[i]; ++k) s += x[k];
        }
        out[i] = s;
    }"""
    times = np.arange(256, dtype=np.uint32) % 8
    found = mnb.profile(kernel(text), np.zeros(8, np.float32), times, np.zeros(256, np.float32), threadgroup=64)
    by_line = {line.line: line for line in found.lines}
    assert (by_line[6].branches, by_line[6].divergent) == (8, 0)  # an entire SIMD-group takes one path
    # In each group of eight lanes, one does not enter the loop, and one more leaves after each iteration. So the branch
    # before the first iteration diverges, and those of iterations 1 to 6 do; the last one's does not.
    assert (by_line[7].branches, by_line[7].divergent) == (4 * 8, 4 * 7)
    assert by_line[7].flops == 4 * 4 * sum(range(8))


def test_lanes_are_a_mean_over_what_a_line_executes() -> None:
    text = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
        float s = x[i];
        if (i % 2)
            for (int k = 0; k < 64; ++k) s = s * s + 1.0f;
        out[i] = s;
    }"""
    found = mnb.profile(kernel(text), np.zeros(256, np.float32), np.zeros(256, np.float32), threadgroup=64)
    by_line = {line.line: line for line in found.lines}
    assert by_line[6].lanes == 16
    assert by_line[4].lanes == by_line[7].lanes == 32
    assert by_line[6].flops == 128 * 64 * 2


def test_a_threadgroup_that_fills_no_simd_group() -> None:
    text = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
        out[i] = x[i] + 1;
    }"""
    found = mnb.profile(kernel(text), np.zeros(100, np.float32), np.zeros(100, np.float32), threadgroup=20)
    assert access(found, "x").lanes == 100
    assert access(found, "x").runs == 5
    assert found.flops == 100


def test_barrier_shows_waiting_threads() -> None:
    text = """kernel void f(device const float* x, device float* out, uint l [[thread_index_in_threadgroup]]) {
        threadgroup float t[64];
        float s = x[l];
        if (l >= 32)
            for (int k = 0; k < 1000; ++k) s = s * s + 1.0f;
        t[l] = s;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[l] = t[63 - l];
    }"""
    found = mnb.profile(kernel(text), np.zeros(64, np.float32), np.zeros(64, np.float32), grid=64, threadgroup=64)
    (barrier,) = found.barriers
    assert (barrier.line, barrier.rounds, barrier.slowest) == (9, 1, 1)
    assert 0.45 < barrier.waited < 0.5  # one of two SIMD-groups waits nearly all the time


def test_waiting_threads_are_listed_per_barrier() -> None:
    text = """kernel void f(device const float* x, device float* out, uint l [[thread_index_in_threadgroup]]) {
        threadgroup float t[64];
        float s = x[l];
        if (l >= 32)
            for (int k = 0; k < 1000; ++k) s = s * s + 1.0f;
        t[l] = s;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < 1000; ++k) s = s * s + t[63 - l];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        t[l] = s;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[l] = t[63 - l];
    }"""
    found = mnb.profile(kernel(text), np.zeros(64, np.float32), np.zeros(64, np.float32), grid=64, threadgroup=64)
    assert [(b.line, b.waited > 0.1) for b in found.barriers] == [(9, True), (11, False), (13, False)]


def test_branch_without_active_lanes_is_skipped() -> None:
    text = """kernel void f(device const float* x, device float* out, uint l [[thread_index_in_threadgroup]]) {
        if (x[l] > 0)
            out[l] = 2;
    }"""
    x = np.repeat([1, 0, 1, 0], 64).astype(np.float32)
    found = mnb.profile(kernel(text), x, np.zeros(256, np.float32), grid=256, threadgroup=256)
    by_line = {line.line: line for line in found.lines}
    assert (by_line[4].runs, by_line[5].runs, by_line[5].lanes) == (8, 4, 32)


def test_registers_grow_with_what_is_alive() -> None:
    found = []
    for count in (2, 30):
        text = f"""kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {{
            float a[{count}];
            for (int k = 0; k < {count}; ++k) a[k] = x[i * {count} + k];
            threadgroup_barrier(mem_flags::mem_device);
            for (int k = 0; k < {count}; ++k) out[i * {count} + k] = a[{count - 1} - k];
        }}"""
        x = np.zeros(32 * count, np.float32)
        found.append(mnb.profile(kernel(text), x, np.zeros_like(x), grid=32).registers)
    few, many = found
    assert 2 + 4 < few < 16
    assert 28 <= many - few < 36  # 28 more values, and some addresses


# ---- Operations.


@pytest.mark.parametrize(
    ("body", "flops", "special"),
    [
        ("out[i] = 2 * a + b;", 2, 0),
        ("out[i] = fma(a, b, a);", 2, 0),
        ("out[i] = a / b;", 1, 1),
        ("out[i] = 1 / b;", 0, 1),
        ("out[i] = sqrt(a);", 0, 1),
        ("out[i] = exp(a) + sin(b);", 1, 2),
        ("out[i] = pow(a, b);", 0, 1),
        ("float s = b; for (int k = 0; k < 5; ++k) s = exp(s) * 3; out[i] = s;", 5, 5),  # which clang unrolls
        ("float c; out[i] = sincos(a, c) + c;", 1, 2),
        ("out[i] = half(tanh(half(a)));", 0, 1),
        ("float4 v = log(float4(a, b, a, b) + 1); out[i] = v.x + v.y;", 2 + 1, 2),  # two of four are used
        ("out[i] = ldexp(a, 3) + nextafter(a, b);", 1, 2),
        ("out[i] = exp(0.5f) * a;", 1, 0),
        ("out[i] = rsqrt(a);", 0, 1),
        ("out[i] = fast::rsqrt(a) + precise::rsqrt(b);", 1, 2),
        ("out[i] = mix(a, b, 0.25f);", 3, 0),
        ("out[i] = max(a, b);", 0, 0),
        ("float4 v = float4(a, b, a, b); out[i] = dot(v, v.wzyx);", 7, 0),
        ("float s = b; for (int k = 0; k < 10; ++k) s = s * a + b; out[i] = s;", 20, 0),
        ("float3 v = float3(a, b, a), w = v * b; out[i] = w.x + dot(v, v);", 1 + 5 + 1, 0),
        ("out[i] = as_type<int>(a) * 3 + as_type<int>(b);", 0, 0),
    ],
)
def test_operations(body: str, flops: int, special: int) -> None:
    text = f"""kernel void f(device const float* x, device const float* y, device float* out,
        uint i [[thread_position_in_grid]]) {{
        float a = x[i], b = y[i];
        {body}
    }}"""
    x = np.ones(64, np.float32)
    found = mnb.profile(mnb.compile(HEAD + text, math="precise").f, x, x.copy(), np.zeros_like(x))
    assert (found.flops, found.special) == (64 * flops, 64 * special)


def test_operations_of_fast_math() -> None:
    text = """kernel void f(device const float4* p, device float4* o, constant uint& n,
        uint i [[thread_position_in_grid]]) {
        float3 a = 0, own = p[i].xyz;
        for (uint k = 0; k < n; ++k) {
            float4 other = p[k];
            float3 d = other.xyz - own;
            float r = rsqrt(dot(d, d) + 0.01f);
            a += d * (other.w * r * r * r);
        }
        o[i] = float4(a, 0);
    }"""
    found = mnb.profile(kernel(text), np.ones((64, 4), np.float32), np.zeros((64, 4), np.float32), 64, grid=64)
    # The difference takes 3, its square 5, the softening 1, the weight 3, the sum 6; the reciprocal root is one
    # function. clang computes full vectors of four, some of whose components are unused.
    assert (found.flops, found.special) == (64 * 64 * 18, 64 * 64)


def test_a_product_has_two_operations_for_each_term() -> None:
    text = """kernel void f(device const float* a, device const float* b, device float* c, constant uint& n,
        uint2 g [[thread_position_in_grid]], uint2 l [[thread_position_in_threadgroup]]) {
        threadgroup float ta[16][16], tb[16][16];
        float s = 0;
        for (uint k = 0; k < n; k += 16) {
            ta[l.y][l.x] = a[g.y * n + k + l.x];
            tb[l.y][l.x] = b[(k + l.y) * n + g.x];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint j = 0; j < 16; ++j) s += ta[l.y][j] * tb[j][l.x];
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        c[g.y * n + g.x] = s;
    }"""
    a, b, c = (np.ones((64, 64), np.float32) for _ in range(3))
    found = mnb.profile(kernel(text), a, b, c, 64, threadgroup=(16, 16))
    assert found.flops == 2 * 64**3
    assert access(found, "a").asked == access(found, "b").asked == 4 * 64**3 // 16
    assert (access(found, "ta").passes, access(found, "tb").passes) == (64**3 // 32, 64**3 // 32)
    assert (c == 1).all()  # it ran on a copy
    assert found.sampled == found.groups == 16


# ---- Sampling.


def test_of_a_large_dispatch_a_sample_runs() -> None:
    text = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
        float s = x[i];
        for (int k = 0; k < 20000; ++k) s = s * s + 1.0f;
        out[i] = s;
    }"""
    x = np.zeros(1 << 20, np.float32)
    found = mnb.profile(kernel(text), x, np.zeros_like(x), threadgroup=256, seconds=0.05)
    assert found.sampled < found.groups == 4096
    assert found.flops == x.size * 40000
    assert access(found, "x").sectors == x.size // 8


def test_threadgroups_that_wait_for_those_before_them_run_in_order() -> None:
    text = """kernel void f(device const float* x, device atomic_uint* ready, device float* out,
        uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]],
        uint q [[threadgroup_position_in_grid]]) {
        if (l == 0 && q > 0)
            while (atomic_load_explicit(&ready[q - 1], memory_order_relaxed) == 0) {}
        threadgroup_barrier(mem_flags::mem_device);
        out[i] = x[i] + 1;
        threadgroup_barrier(mem_flags::mem_device);
        if (l == 0) atomic_store_explicit(&ready[q], 1, memory_order_relaxed);
    }"""
    x = np.zeros(2048, np.float32)
    found = mnb.profile(kernel(text), x, np.zeros(32, np.uint32), np.zeros_like(x), grid=2048, threadgroup=64)
    assert (found.sampled, found.flops) == (32, 2048)


def test_interrupt_ends_a_profile_and_leaves_nothing_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    from metalnb.engine.cpu.profiled import counted_run

    text = "kernel void f(device float* out, uint i [[thread_position_in_grid]]) { out[i] = i * 2.0f; }"
    asked = kernel(text)
    mnb.profile(asked, grid=1 << 10)

    def interrupt(_part: float) -> None:
        raise KeyboardInterrupt

    dispatch = asked.prepare(grid=1 << 10)
    with pytest.raises(KeyboardInterrupt):
        counted_run.run_counted(
            dispatch.kernel.unit, dispatch.arguments, dispatch.grid, dispatch.threadgroup, 1.0, progress=interrupt
        )
    assert mnb.profile(asked, grid=1 << 10).flops == 1 << 10  # nothing is left locked


# ---- Refusals.


def test_a_kernel_that_does_not_run_in_vector_registers_is_refused_with_the_reason() -> None:
    text = """kernel void f(device float* out, uint i [[thread_position_in_grid]]) {
        float own[16384];
        for (uint k = 0; k < 16384; ++k) own[k] = out[k];
        out[i] = own[as_type<uint>(out[i]) % 16384];
    }"""
    with pytest.raises(mnb.CompileError, match=r"cannot be counted.*its own variables take"):
        mnb.profile(kernel(text), np.zeros(16384, np.float32))


def products(number: int) -> str:
    """Return a kernel of `number` products of SIMD-group matrices in one block."""
    return f"""kernel void f(device float* c, constant uint& n) {{
        simdgroup_float8x8 x, sum;
        simdgroup_load(x, c, 8);
        sum = x;
        {"simdgroup_multiply_accumulate(sum, x, x, sum);" * number}
        simdgroup_store(sum, c, 8);
        if (n == 1) c[0] = 1 / n;  // a division: the IR of one thread is then compiled in two steps
    }}"""


def test_products_of_matrices_are_counted_beyond_the_length_of_a_plain_kernel() -> None:
    profile = mnb.profile(kernel(products(48)), np.zeros(64, np.float32), 2, grid=32, threadgroup=32)
    assert profile.flops == 48 * 1024


def test_a_kernel_of_too_many_products_is_refused_with_the_reason() -> None:
    with pytest.raises(mnb.CompileError, match="as its products of matrices become operations of lanes: it is long"):
        mnb.profile(kernel(products(100)), np.zeros(64, np.float32), 2, grid=32, threadgroup=32)


def test_arguments_that_cannot_be() -> None:
    asked = kernel("kernel void f(device float* out, uint i [[thread_position_in_grid]]) { out[i] = i; }")
    with pytest.raises(mnb.ArgumentError, match="banks= is a number from 1 to 64; got 0"):
        mnb.profile(asked, grid=4, banks=0)
    with pytest.raises(mnb.ArgumentError, match="seconds= is a time"):
        mnb.profile(asked, grid=4, seconds=-1)
    with pytest.raises(mnb.ArgumentError, match="takes a kernel"):
        mnb.profile(np.sum)
    with pytest.raises(mnb.LaunchError, match="empty"):
        mnb.profile(asked, np.zeros(0, np.float32), grid=0)
