"""Memory in profiles, compared with values worked out by hand: bank conflicts, sectors, lines, atomics."""

import numpy as np
import pytest
from measuring.profiling.profiled_kernels import access, kernel

import metalnb as mnb

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
def test_passes_over_the_banks_of_a_tile_are_exact(
    rows: int, wide: int, threads: tuple[int, int], written: int, read: int
) -> None:
    x, y = ("i.x % 8", "i.y % 8") if rows == 8 else ("i.x", "i.y")
    text = TILE.format(rows=rows, wide=wide, x=x, y=y)
    profile = mnb.profile(kernel(text), grid=threads, threadgroup=threads, shapes={"out": threads[::-1]})
    groups = threads[0] * threads[1] // 32
    stores, loads = access(profile, "t", "write"), access(profile, "t")
    assert (stores.runs, stores.passes, stores.least) == (groups, groups * written, groups)
    assert (loads.runs, loads.passes, loads.least) == (groups, groups * read, groups)
    assert profile.conflicts == groups * (written + read - 2)
    assert profile.threadgroup_bytes == 4 * rows * wide


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
    profile = mnb.profile(kernel(text), np.zeros(32 * 4, np.float32).view(_dtype(kind)), grid=32, threadgroup=32)
    read = access(profile, "t")
    assert (read.passes, read.least) == (passes, least)


def _dtype(kind: str) -> type[np.generic]:
    return np.uint8 if kind == "uchar" else np.float32


def test_the_number_of_banks_is_a_parameter() -> None:
    text = TILE.format(rows=32, wide=32, x="i.x", y="i.y")
    profile = mnb.profile(kernel(text), grid=(32, 1), threadgroup=(32, 1), shapes={"out": (32,)}, banks=16)
    assert (profile.banks, access(profile, "t", "write").passes, access(profile, "t").passes) == (16, 2, 32)


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
    profile = mnb.profile(
        kernel(text), np.zeros((1 << 17, *wide), dtype), np.zeros((32, *wide), dtype), grid=32, threadgroup=32
    )
    read = [a for a in profile.accesses if a.name == "x"]
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
    x, out = np.zeros((512, 4), np.uint32), np.zeros(128, np.uint32)
    profile = mnb.profile(kernel(text), x, out, grid=128, threadgroup=64)
    (read,) = [a for a in profile.accesses if a.name == "x"]
    assert (read.size, read.runs, read.sectors) == (size, runs, runs * sectors)
    assert read.stride == (64 if "4 * i" in loop else 16)


# 5 divides no count: each type, each loop and each use remain.
@pytest.mark.long(every=5)
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
    profile = mnb.profile(kernel(text), np.zeros((512, parts + parts % 2), dtype), np.zeros(128, np.float32), grid=128)
    read = access(profile, "x")
    whole = dtype.itemsize * (4 if parts == 3 else parts)
    rounds = 16 if "for" in loop else 4
    assert (read.size, read.runs) == (whole if used == "all" else dtype.itemsize, rounds)
    assert read.sectors == rounds * max(1, 32 * whole // 32)


@pytest.mark.parametrize("kind", ["uchar4", "short4"])
def test_a_division_elsewhere_does_not_split_the_read_of_a_vector(kind: str) -> None:
    text = f"""kernel void f(device const {kind}* x, device int* out, constant uint& n,
        uint i [[thread_position_in_grid]]) {{ out[i] = x[i].x * 3 + x[i].y * 7 + int(n % 7u); }}"""
    x = np.zeros((128, 4), np.uint8 if kind == "uchar4" else np.int16)
    assert access(mnb.profile(kernel(text), x, np.zeros(128, np.int32), 5, grid=128), "x").size == 4 * x.itemsize


@pytest.mark.parametrize("kind", ["float2", "half3", "half4"])
@pytest.mark.parametrize(
    "value", ["clamp(x[i], T(0), T(1))", "swapped(x[i])", "changed(x[i])", "selected(x[i], x + i)"]
)  # fmt: skip
def test_a_vector_that_a_function_returns_is_no_thread_array(kind: str, value: str) -> None:
    text = f"""typedef {kind} T;
        T swapped(T a) {{ T r = a; r.x = a.y + a.x; r.y = a.x - a.y; return r; }}
        T changed(T a) {{ T r = a; r[0] += a[1]; r[1] = a[0] * a[1]; return r; }}
        T selected(T a, device const T* b) {{ if (a.x > 1) return *b; T r = a; r.x *= a.y; return r; }}
        kernel void f(device const T* x, device T* out, uint i [[thread_position_in_grid]]) {{ out[i] = {value}; }}"""
    parts, dtype = int(kind[-1]), np.float32 if kind == "float2" else np.float16
    x = np.linspace(-1, 3, 128 * 4).reshape(128, 4)[:, : parts + parts % 2].astype(dtype)
    out = np.zeros_like(x)
    assert not any(line.private for line in mnb.profile(kernel(text), x, out, grid=128).lines)
    kernel(text)(x, out, grid=128)
    expected = x.copy()
    if "clamp" in value:
        expected = np.clip(x, 0, 1)
    elif "selected" in value:
        expected[:, 0] = np.where(x[:, 0] > 1, x[:, 0], x[:, 0] * x[:, 1])
    elif "swapped" in value:
        expected[:, :2] = np.stack([x[:, 1] + x[:, 0], x[:, 0] - x[:, 1]], 1)
    else:
        expected[:, 0] = x[:, 0] + x[:, 1]
        expected[:, 1] = x[:, 0] * x[:, 1]
    np.testing.assert_array_equal(out[:, :parts], expected[:, :parts])


def test_sectors_depend_on_where_a_row_begins() -> None:
    text = """kernel void f(device const float* x, device float* out, constant uint& n,
        uint i [[thread_position_in_grid]]) {
        float s = 0;
        for (uint k = 0; k < n; ++k) s += x[k * 33 + i];
        out[i] = s;
    }"""
    profile = mnb.profile(kernel(text), np.zeros(33 * 16, np.float32), np.zeros(32, np.float32), 16, grid=32)
    # Each row begins 4 bytes later, so every eighth one begins at a sector's border.
    assert (access(profile, "x").runs, access(profile, "x").sectors) == (16, 2 * 4 + 14 * 5)


def test_a_transpose_reads_rows_and_writes_columns() -> None:
    text = """kernel void f(device const float* x, device float* out, uint2 g [[thread_position_in_grid]]) {
        out[g.x * 64 + g.y] = x[g.y * 64 + g.x];
    }"""
    x = np.zeros((64, 64), np.float32)
    profile = mnb.profile(kernel(text), x, np.zeros_like(x), threadgroup=(32, 8))
    assert (access(profile, "x").runs, access(profile, "x").sectors) == (128, 128 * 4)
    assert (access(profile, "out", "write").sectors, access(profile, "out", "write").stride) == (128 * 32, 256)
    assert (profile.asked, profile.traveled, profile.bytes) == (2 * 16384, 16384 + 128 * 32 * 32, 2 * 16384)


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
def test_a_gather_has_the_sectors_that_its_indices_have(
    kind: str, read: str, size: int, step: int, some: int, rng: np.random.Generator
) -> None:
    text = f"""kernel void f(device const {kind}* x, device const uint* at, device float* out,
        uint i [[thread_position_in_grid]]) {{
        if (at[i] % {some} == 0) out[i] = {read};
    }}"""
    at = rng.integers(0, 1 << 14, 1024, np.uint32)
    x = np.zeros(1 << 18, np.uint8 if size == 1 else np.float32)
    profile = mnb.profile(kernel(text), x, at, np.zeros(1024, np.float32), threadgroup=256)
    groups = [step * group[group % some == 0].astype(np.int64) for group in at.reshape(-1, 32)]
    touched = [(group[:, None] + np.arange(size)).ravel() for group in groups]
    one = access(profile, "x")
    assert (one.size, one.lanes) == (size, sum(map(len, groups)))
    assert one.sectors == sum(len(np.unique(places // 32)) for places in touched)
    assert one.lines == sum(len(np.unique(places // 128)) for places in touched)
    assert one.used == size * sum(len(np.unique(group)) for group in groups)
    every = np.unique(np.concatenate(touched))
    (buffer,) = [b for b in profile.buffers if b.name == "x"]
    assert (buffer.distinct, buffer.read) == (len(every), 32 * len(np.unique(every // 32)))


def test_inactive_lanes_request_no_memory() -> None:
    text = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
        if (i % 4 == 0) out[i] = x[i] * 2;
    }"""
    profile = mnb.profile(kernel(text), np.zeros(1024, np.float32), np.zeros(1024, np.float32), threadgroup=128)
    read = access(profile, "x")
    assert (read.runs, read.lanes, read.sectors, read.used) == (32, 256, 128, 1024)
    assert read.sample[:5] == (0, None, None, None, 16)
    assert profile.flops == 256
    assert [(b.name, b.distinct) for b in profile.buffers] == [("x", 1024), ("out", 1024)]


def test_constants_do_not_travel() -> None:
    text = """kernel void f(constant float* x, constant float& a, device float* out,
        uint i [[thread_position_in_grid]]) {
        out[i] = x[i] * a;
    }"""
    profile = mnb.profile(kernel(text), np.zeros(64, np.float32), 2.0, grid=64)
    assert {a.name: (a.space, a.sectors) for a in profile.accesses if a.kind == "read"} == {
        "x": ("constant", 0), "a": ("constant", 0),
    }  # fmt: skip
    assert profile.bytes == 256  # only the bytes written


@pytest.mark.parametrize(("bins", "contended", "repeated"), [(1, 31, 32), (32, 0, 1), (8, 24, 4)])
def test_atomics_at_one_address_take_a_pass_each(bins: int, contended: int, repeated: int) -> None:
    text = f"""kernel void f(device atomic_uint* h, uint i [[thread_position_in_grid]]) {{
        atomic_fetch_add_explicit(&h[i % {bins}], 1, memory_order_relaxed);
    }}"""
    profile = mnb.profile(kernel(text), np.zeros(32, np.uint32), grid=512, threadgroup=64)
    one = access(profile, "h", "atomic")
    assert (one.runs, one.lanes, one.contended, one.repeated) == (16, 512, 16 * contended, repeated)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("bins", [7, 100, 2000])
def test_atomics_at_random_addresses_take_as_many_passes_as_collide(
    bins: int, rng: np.random.Generator, *, shared: bool
) -> None:
    text = f"""kernel void f(device const uint* x, device atomic_uint* o, uint i [[thread_position_in_grid]]) {{
        {"threadgroup atomic_uint h[2000];" if shared else "device atomic_uint* h = o;"}
        atomic_fetch_add_explicit(&h[x[i]], 1, memory_order_relaxed);
    }}"""
    x = rng.integers(0, bins, 1024, np.uint32)
    profile = mnb.profile(kernel(text), x, np.zeros(2000, np.uint32), grid=1024, threadgroup=64)
    (one,) = [a for a in profile.accesses if a.kind == "atomic"]
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
    profile = mnb.profile(kernel(text), x, np.zeros(64, np.uint32), grid=64, threadgroup=32)
    lanes = {(a.line, a.lanes) for a in profile.accesses if a.name == "h"}
    assert lanes == {(7, 16), (9, 48)}
