"""The engine ``metal:metalcompute``: on real Metal where metalcompute can be imported, otherwise on its double."""

import pickle

import numpy as np
import pytest
from metal.doubled_engines import HEADERS, INCLUDING, sum_of_scalars
from metal.metalcompute_cells import compile_cell, compiled_sizes

import metalnb as mnb
from metalnb.engine.metal.metalcompute_path import open_engine
from metalnb.engine.metal.metalcompute_path.metalcompute_engine import MetalcomputeEngine

pytestmark = pytest.mark.usefixtures("metal_engine")


COUNT = {
    1: """kernel void count(device atomic_uint* seen, uint p [[thread_position_in_grid]]) {
        atomic_fetch_add_explicit(&seen[p], 1u, memory_order_relaxed); }""",
    2: """kernel void count(device atomic_uint* seen, ushort2 p [[thread_position_in_grid]],
                            ushort2 n [[threads_per_grid]]) {
        atomic_fetch_add_explicit(&seen[p.y * n.x + p.x], 1u, memory_order_relaxed); }""",
    3: """kernel void count(device atomic_uint* seen, uint3 p [[thread_position_in_grid]],
                            uint3 n [[threads_per_grid]]) {
        atomic_fetch_add_explicit(&seen[(p.z * n.y + p.y) * n.x + p.x], 1u, memory_order_relaxed); }""",
}


@pytest.mark.long(every=3)  # 3 is coprime to 2: with and without a barrier
@pytest.mark.parametrize("barrier", [False, True], ids=["", "barrier"])
@pytest.mark.parametrize(
    ("grid", "threadgroup"),
    [
        ((1,), (1,)),
        ((1000,), (32,)),
        ((1000,), (256,)),
        ((1025,), (1024,)),
        ((77,), (7,)),
        ((37, 13), (8, 4)),
        ((37, 13), (33, 5)),
        ((5, 3), (16, 16)),
        ((7, 5, 3), (2, 2, 2)),
        ((19, 9, 4), (8, 4, 3)),
    ],
)
def test_a_grid_that_no_threadgroup_divides_runs_each_thread_once(
    grid: tuple, threadgroup: tuple, barrier: bool
) -> None:
    source = COUNT[len(grid)]
    if barrier:
        source = source.replace("{", "{ threadgroup_barrier(mem_flags::mem_none);", 1)
    seen = np.zeros(grid[::-1], np.uint32)
    compile_cell(source).count(seen, grid=grid, threadgroup=threadgroup)
    assert (seen == 1).all()


INPUTS = """
struct Place { uint3 at, in, group, size, grid, groups, nominal; uint i, lane, simd, simds, width; };
kernel void place(device Place* out [[buffer(0)]],
    uint3 at [[thread_position_in_grid]], uint3 in [[thread_position_in_threadgroup]],
    uint3 group [[threadgroup_position_in_grid]], uint3 size [[threads_per_threadgroup]],
    uint3 grid [[threads_per_grid]], uint3 groups [[threadgroups_per_grid]],
    uint3 nominal [[dispatch_threads_per_threadgroup]],
    uint i [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
    uint simd [[simdgroup_index_in_threadgroup]], uint simds [[simdgroups_per_threadgroup]],
    uint width [[threads_per_simdgroup]])
{
    uint here = (at.z * grid.y + at.y) * grid.x + at.x;
    out[here] = {at, in, group, size, grid, groups, nominal, i, lane, simd, simds, width};
}"""


def expected_places(dtype: np.dtype, grid: tuple, threadgroup: tuple) -> np.ndarray:
    out = np.zeros(grid[::-1], dtype)
    for z, y, x in np.ndindex(grid[::-1]):
        at = np.array((x, y, z))
        group, local = at // threadgroup, at % threadgroup
        size = np.minimum(threadgroup, np.array(grid) - group * threadgroup)
        i = (local[2] * size[1] + local[1]) * size[0] + local[0]
        groups = -(-np.array(grid) // threadgroup)
        simds = -(-size.prod() // 32)
        out[z, y, x] = (at, local, group, size, grid, groups, threadgroup, i, i % 32, i // 32, simds, 32)
    return out


@pytest.mark.parametrize("barrier", [False, True], ids=["", "barrier"])
def test_every_input_is_metals_own(barrier: bool) -> None:
    """A smaller threadgroup at the grid's edge has the first threads in order, and SIMD-groups consist of those."""
    source = INPUTS.replace("{\n", "{ threadgroup_barrier(mem_flags::mem_none);\n", 1) if barrier else INPUTS
    program = compile_cell(source)
    grid, threadgroup = (19, 7, 3), (8, 5, 2)
    out = np.zeros(grid[::-1], program.dtype("Place"))
    program.place(out, grid=grid, threadgroup=threadgroup)
    expected = expected_places(out.dtype, grid, threadgroup)
    for name in out.dtype.names:
        np.testing.assert_array_equal(out[name], expected[name], name)


def test_inputs_are_the_kernels_own_variables() -> None:
    """A kernel may modify its inputs or declare them const, in any order with the buffers."""
    source = """kernel void f(const ushort lane [[thread_position_in_threadgroup]], device uint* out,
        uint i [[thread_position_in_grid]], uint) { for (; i < 100; i += 40) out[i] = i + lane * 1000; }"""
    out = np.zeros(100, np.uint32)
    with pytest.raises(mnb.CompileError):
        compile_cell(source)
    compile_cell(source.replace(", uint)", ")")).f(out, grid=40, threadgroup=40)
    i = np.arange(100)
    np.testing.assert_array_equal(out, i + i % 40 * 1000)


def test_buffers_in_any_order_and_with_gaps() -> None:
    source = """kernel void f(device float* out [[buffer(7)]], uint i [[thread_position_in_grid]],
        constant float& a [[buffer(2)]], device const float* x [[buffer(0)]], constant int2& b [[buffer(30)]])
    { out[i] = a * x[i] + b.x - b.y; }"""
    x = np.arange(77, dtype=np.float32)
    np.testing.assert_array_equal(compile_cell(source).f(x, 2.5, b=(7, 3)), 2.5 * x + 4)


def test_pointers_and_references_to_arrays_are_bound() -> None:
    source = """kernel void f(device float (*rows)[4], constant float (&row)[4], uint i [[thread_position_in_grid]]) {
        for (int k = 0; k < 4; ++k) rows[i][k] = row[k] * i; }"""
    rows = np.zeros((10, 4), np.float32)
    compile_cell(source).f(rows, [1, 2, 3, 4], grid=10)
    np.testing.assert_array_equal(rows, np.outer(np.arange(10), [1, 2, 3, 4]))


def test_structs_are_bound_by_reference() -> None:
    source = """
struct Body { float3 position; packed_float3 velocity; half mass; };
kernel void f(constant Body& body, device Body* bodies, device atomic_uint& count, uint i [[thread_position_in_grid]]) {
    bodies[i].position = body.position * float(i);
    bodies[i].velocity = body.velocity;
    bodies[i].mass = body.mass + half(i);
    atomic_fetch_add_explicit(&count, 1u, memory_order_relaxed);
}"""
    program = compile_cell(source)
    bodies = np.zeros(50, program.dtype("Body"))
    count = np.zeros(1, np.uint32)
    program.f({"position": (1, 2, 3), "velocity": (4, 5, 6), "mass": 0.5}, bodies, count)
    i = np.arange(50)
    np.testing.assert_array_equal(bodies["position"], i[:, None] * [1, 2, 3])
    np.testing.assert_array_equal(bodies["velocity"], np.tile([4, 5, 6], (50, 1)))
    np.testing.assert_array_equal(bodies["mass"], i + 0.5)
    assert count[0] == 50


def test_an_array_may_be_input_and_output_and_passed_twice() -> None:
    source = """kernel void f(device const uchar* x, device uchar* y, uint i [[thread_position_in_grid]]) {
        y[i] = x[i] + 2; }"""
    add = compile_cell(source).f
    x = np.arange(1000, dtype=np.uint8)
    expected = x + np.uint8(2)
    add(x, x)
    np.testing.assert_array_equal(x, expected)


def test_arguments_that_overlap_in_part_are_refused() -> None:
    source = """kernel void f(device const float* x, device float* y, uint i [[thread_position_in_grid]]) {
        y[i] = x[i]; }"""
    x = np.zeros(20, np.float32)
    with pytest.raises(mnb.LaunchError, match=r"^f: an argument that it writes overlaps another in part"):
        compile_cell(source).f(x[:10], x[5:15])
    compile_cell(source).f(x[:10], x[10:])


def test_arguments_from_one_arrays_start_are_bound_where_they_are() -> None:
    """Such arguments may overlap, as none is copied; a view that starts later is copied, so it must not overlap."""
    source = "kernel void f(device float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = x[i] + 1; }"
    f = compile_cell(source).f
    x = mnb.zeros(8, dtype="float32", device="metal:metalcompute")
    f(x[:4], x, grid=4)
    f(x[:4], x[4:], grid=4)
    assert np.asarray(x).tolist() == [1] * 4 + [2] * 4
    reads = compile_cell(source.replace("device float* x", "device const float* x")).f
    for kernel in (f, reads):
        with pytest.raises(mnb.LaunchError, match="overlaps another in part"):
            kernel(x, x[4:], grid=4)


def test_memory_of_the_engine_is_not_copied(metal_engine: MetalcomputeEngine) -> None:
    source = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] += i; }"
    x = np.frombuffer(metal_engine.alloc(400), np.float32)
    f = compile_cell(source).f
    f(x)
    f(x)
    np.testing.assert_array_equal(x, 2 * np.arange(100))
    assert metal_engine._staging.bind("f", [(True, x)])[1] == []
    tail = x[50:]  # metalcompute binds buffers only at their start
    f(tail)
    np.testing.assert_array_equal(tail, 2 * np.arange(50, 100) + np.arange(50))


def test_a_dispatch_waits_for_the_one_whose_results_it_reads() -> None:
    source = """kernel void f(device const float* x, device float* y, uint i [[thread_position_in_grid]]) {
        y[i] = x[i] + 1; }"""
    f = compile_cell(source).f
    a, b, c = (np.zeros(1 << 20, np.float32) for _ in range(3))
    first = f.prepare(a, b).launch()
    second = f.prepare(b, c).launch()
    second.wait()
    first.wait()
    assert (c == 2).all()


def test_an_empty_grid_runs_nothing() -> None:
    source = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 1; }"
    x = np.zeros(0, np.float32)
    assert compile_cell(source).f(x) is None


def test_thirty_buffers_fit_and_thirty_one_do_not() -> None:
    out = compile_cell(sum_of_scalars(30)).f(*range(29), shapes={"out": 3}, grid=3)
    assert out.tolist() == [sum(range(29))] * 3
    with pytest.raises(mnb.CompileError, match="31 buffers; engine 'metal:metalcompute' needs the last of M"):
        compile_cell(sum_of_scalars(31)).f(*range(30), shapes={"out": 3}, grid=3)


TREE = """
kernel void total(device const float* x, device float* sums, uint i [[thread_position_in_grid]],
    uint l [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]],
    uint g [[threadgroup_position_in_grid]]%s)
{
    %s
    part[l] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = 128; step > 0; step /= 2) {
        if (l < step && l + step < n) part[l] += part[l + step];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (l == 0) sums[g] = part[0];
}"""
TREES = {
    "declared": TREE % ("", "threadgroup float part[256];"),
    "argument": TREE % (",\n    threadgroup float* part [[threadgroup(0)]]", ""),
    "reference": TREE % (",\n    threadgroup array<float, 256>& part [[threadgroup(3)]]", ""),
    "simd": """
kernel void total(device const float* x, device float* sums, uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
    uint simds [[simdgroups_per_threadgroup]], uint l [[thread_index_in_threadgroup]],
    uint g [[threadgroup_position_in_grid]])
{
    threadgroup float part[32];
    float sum = simd_sum(x[i]);
    if (lane == 0) part[simd] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simd == 0) {
        float all = simd_sum(lane < simds ? part[lane] : 0.0f);
        if (l == 0) sums[g] = all;
    }
}""",
}


@pytest.mark.long(every=3)  # 3 divides neither count: each kind and each length is among them
@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("n", [1, 31, 32, 33, 255, 256, 257, 1_000_003])
def test_a_reduction_in_threadgroups_of_256_gives_the_sum(kind: str, n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n, np.float32)
    groups = -(-n // 256)
    sums = compile_cell(TREES[kind]).total(x, grid=n, threadgroup=256, shapes={"sums": groups})
    padded = np.zeros(groups * 256)
    padded[:n] = x
    np.testing.assert_allclose(sums, padded.reshape(-1, 256).sum(1), rtol=0, atol=2e-4)


def test_threadgroup_memory_has_the_size_of_the_call() -> None:
    source = """kernel void f(device uint* out, threadgroup uint4* a [[threadgroup(1)]],
        threadgroup uchar* b [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]],
        uint n [[threads_per_threadgroup]]) {
        for (uint k = i; k < 64; k += n) { a[k] = k; b[k] = k; }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = a[63 - i].w * 1000 + b[63 - i]; }"""
    out = np.zeros(50, np.uint32)
    compile_cell(source).f(out, grid=50, threadgroup=50, threadgroup_memory={"a": 1024, "b": 64})
    np.testing.assert_array_equal(out, (63 - np.arange(50)) * 1001)


def test_a_cell_without_the_standard_library_runs() -> None:
    source = """kernel void f(device float* out, threadgroup float* m [[threadgroup(0)]],
        uint i [[thread_index_in_threadgroup]]) { m[i] = i; out[i] = m[i] * 2; }"""
    out = np.zeros(40, np.float32)
    mnb.compile(source, engine="metal:metalcompute").f(out, threadgroup=40)
    np.testing.assert_array_equal(out, 2 * np.arange(40))


def test_too_much_threadgroup_memory_is_refused() -> None:
    source = """kernel void f(device float* x, threadgroup float* b, uint i [[thread_position_in_threadgroup]]) {
        threadgroup float a[4200]; a[i] = b[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup);
        x[i] = a[i ^ 1] + b[i ^ 1]; }"""
    f = compile_cell(source).f
    x = np.arange(64, dtype=np.float32)
    f(x, threadgroup=64)
    np.testing.assert_array_equal(x, 2 * (np.arange(64) ^ 1))
    with pytest.raises((mnb.LaunchError, mnb.CompileError), match="threadgroup memory"):
        f(x, threadgroup=64, threadgroup_memory={"b": 16384})
    with pytest.raises(mnb.LaunchError, match="f: needs 32,784 bytes of threadgroup memory"):
        f(x, threadgroup=64, threadgroup_memory={"b": 32784})


def test_function_constants_set_values_and_optional_arguments() -> None:
    source = """
constant int N [[function_constant(0)]];
constant float scale [[function_constant(1)]];
constant bool twice [[function_constant(2)]];
constant short extra [[ function_constant(3) ]];
constant short more = is_function_constant_defined(extra) ? extra : short(-5);
kernel void f(device const float* x, device float* y [[buffer(1)]],
              device const float* z [[buffer(2), function_constant(twice)]], uint i [[thread_position_in_grid]])
{ y[i] = x[i] * scale + N + more; if (twice) y[i] += z[i]; }
kernel void g(device float* y, device const float* z [[function_constant(twice)]]) { y[0] = twice ? z[0] : 1; }
"""
    x = np.arange(40, dtype=np.float32)
    arguments = {"N": -3, "scale": 0.25, "twice": False}
    np.testing.assert_array_equal(compile_cell(source, constants=arguments).f(x), x * 0.25 - 8)
    arguments |= {"twice": True, "extra": 100}
    np.testing.assert_array_equal(compile_cell(source, constants=arguments).f(x, z=x), x * 0.25 + 97 + x)


STYLES = """
template <typename T, int N>
[[kernel, max_total_threads_per_threadgroup(512)]] void plus(device const T* x [[buffer(0)]], device T* y [[buffer(1)]],
    uint i [[thread_position_in_grid]])
{
    y[i] = x[i] + T(N);
}
template [[host_name("plus_float")]] [[kernel]] decltype(plus<float, 1>) plus<float, 1>;
typedef decltype(plus<int, 2>) plus_t;
template [[host_name("plus_int")]] [[kernel]] plus_t plus<int, 2>;
template [[host_name("plus_uchar")]] [[kernel]] void plus<uchar, 3>(device const uchar* x [[buffer(0)]],
    device uchar* y [[buffer(1)]], uint i [[thread_position_in_grid]]);
#define PLUS(name, T, N) \\
    template [[host_name("plus_" #name)]] [[kernel]] \\
    decltype(plus<T, N>) plus<T, N>;
PLUS(half, half, 4)
#define RESTATED(name, T, N)                                                  \\
    template [[host_name("plus_" #name)]]                                     \\
    kernel void plus<T, N>(device const T* x [[buffer(0)]], /* many           \\
        lines */ device T* y [[buffer(1)]],                                   \\
        uint i [[thread_position_in_grid]]);
RESTATED(short, short, 5)
"""


@pytest.mark.parametrize(("name", "n"), [("float32", 1), ("int32", 2), ("uint8", 3), ("float16", 4), ("int16", 5)])
def test_host_name_templates_in_every_style(name: str, n: int) -> None:
    kernels = {"float32": "plus_float", "int32": "plus_int", "uint8": "plus_uchar", "float16": "plus_half"}
    kernel = kernels.get(name, "plus_short")
    x = np.arange(70).astype(name)
    np.testing.assert_array_equal(compile_cell(STYLES)[kernel](x), x + np.array(n, name))


def test_kernels_made_by_a_macro_compile_and_run() -> None:
    source = """
#define UNARY(name, expression)                                            \\
    kernel void name(device const float* x [[buffer(0)]],                  \\
                     device float* y [[buffer(1)]],                        \\
                     uint i [[thread_position_in_grid]]) {                 \\
        float v = x[i];                                                    \\
        y[i] = expression;                                                 \\
    }
UNARY(half_of, v / 2)
UNARY(square, v * v)
"""
    x = np.arange(50, dtype=np.float32)
    program = compile_cell(source)
    np.testing.assert_array_equal(program.half_of(x), x / 2)
    np.testing.assert_array_equal(program.square(x), x * x)


def test_macros_with_everyday_names_do_not_reach_our_code() -> None:
    source = """
#define size 4
#define threads [
#define at [
#define local ]
#define group [
#define grid ]
#define uint2 ushort2
kernel void f(device float* x, uint2 p [[thread_position_in_grid]], uint2 n [[threads_per_grid]])
{ x[p.y * n.x + p.x] = size; }"""
    x = np.zeros((5, 3), np.float32)
    compile_cell(source).f(x)
    assert (x == 4).all()


def test_a_kernel_whose_parameters_a_macro_hides_is_refused() -> None:
    source = """#define ARGS device float* x, uint i [[thread_position_in_grid]]
kernel void f(ARGS) { x[i] = 1; }"""
    with pytest.raises(mnb.CompileError, match="'f' cannot be rewritten for metalcompute: its parameters are not in"):
        compile_cell(source).f(np.zeros(8, np.float32))


def test_a_kernel_with_inputs_at_program_scope_is_refused() -> None:
    """MSL 2.3 has none. This engine computes a thread's position itself and does not pass it on to functions."""
    source = """uint i [[thread_position_in_grid]];
float f() { return i; }
kernel void k(device float* x) { x[i] = f(); }"""
    with pytest.raises(mnb.CompileError, match=r"input 'i' at program scope needs MSL 3\.1"):
        compile_cell(source).k(np.zeros(9, np.float32))


def test_header_cells_are_included_once() -> None:
    x = np.arange(9, dtype=np.float32)
    compile_cell(INCLUDING, headers=HEADERS).f(x)
    np.testing.assert_array_equal(x, (np.arange(9) + 1) * 2 + 1)


def test_comments_and_lines_in_a_parameter_list() -> None:
    source = """
/// Adds.
[[ max_total_threads_per_threadgroup( 64 ) ]]
kernel void f(
    device float* x // the values, one by one
    [[buffer(0)]],
    constant float & a /* and , this ( */,
    uint i
        [[thread_position_in_grid]]
)
{ x[i] += a; }"""
    x = np.zeros(100, np.float32)
    f = compile_cell(source).f
    f(x, 2)
    assert (x == 2).all()
    with pytest.raises(mnb.LaunchError, match="this kernel allows 64"):
        f(x, 2, threadgroup=65)


def test_dispatches_that_metalcompute_supports_are_passed_through_unchanged() -> None:
    source = """[[max_total_threads_per_threadgroup(64)]] kernel void f(device const float* x [[buffer(0)]],
        device float* y [[buffer(1)]], uint i [[thread_position_in_grid]], uint n [[threads_per_threadgroup]])
    { y[i] = x[i] + n; }"""
    f = compile_cell(source).f
    x = np.arange(640, dtype=np.float32)
    np.testing.assert_array_equal(f(x, threadgroup=64), x + 64)
    assert compiled_sizes(f) == {"as written"}
    np.testing.assert_array_equal(f(x[:-1], threadgroup=64)[:-63], x[:-64] + 64)
    np.testing.assert_array_equal(f(x, threadgroup=32), x + 32)
    assert compiled_sizes(f) == {"as written", 64, 32}


def test_a_kernel_is_pickled_with_its_engine() -> None:
    source = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = i; }"
    again = pickle.loads(pickle.dumps(compile_cell(source).f))  # noqa: S301
    assert again.engine.name == "metal:metalcompute"
    x = np.zeros(5, np.float32)
    again(x)
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_capabilities_are_those_of_metalcompute(metal_engine: MetalcomputeEngine) -> None:
    caps = metal_engine.caps
    assert (caps.msl, caps.clock, caps.threadgroup_memory) == ((2, 3), "wall", 32768)
    assert caps.versions["metalcompute"].startswith("0.2.")
    assert caps.device


def test_missing_metal_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("METALNB_METALCOMPUTE", raising=False)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with pytest.raises(mnb.EngineUnavailable) as caught:
        open_engine()
    assert str(caught.value) == "engine 'metal:metalcompute' needs macOS 14 and metalcompute: pip install metalcompute"


def test_double_is_used_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALNB_METALCOMPUTE", "double")
    assert open_engine().caps.versions == {"metalcompute": "0.2.9 (double)"}
