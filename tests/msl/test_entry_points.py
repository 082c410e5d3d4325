"""Kernels and their declarations: inputs, function constants, instantiations, buffers, headers (MSL 5)."""

import itertools
import time

import numpy as np
import pytest
from msl.cells import HEAD, PRELUDE, outcome, program

import metalnb as mnb
from metalnb.msl.language.attributes import INPUTS
from metalnb.msl.text.includes import INCLUDE

# Inputs (MSL 5.2.3.6) -------------------------------------------------------------------------------------------------

GRID, GROUP = (7, 5, 3), (4, 2, 2)
NOMINAL = 16  # threads in a complete threadgroup
KINDS = ("uint", "ushort", "uint2", "ushort2", "uint3", "ushort3")


def expected_inputs() -> dict[str, np.ndarray]:
    """Return each input's value for every thread of GRID, as an array of shape (threads, 3)."""
    rows = {name: [] for name in INPUTS}
    for z, y, x in itertools.product(*(range(n) for n in reversed(GRID))):
        at = np.array([x, y, z])
        group, local = np.divmod(at, GROUP)
        size = np.minimum(np.array(GRID) - group * GROUP, GROUP)
        index = int(local[0] + size[0] * (local[1] + size[1] * local[2]))
        threads = int(size.prod())
        values = {
            "thread_position_in_grid": at,
            "thread_position_in_threadgroup": local,
            "threadgroup_position_in_grid": group,
            "threads_per_grid": GRID,
            "grid_size": GRID,
            "grid_origin": (0, 0, 0),
            "threads_per_threadgroup": size,
            "dispatch_threads_per_threadgroup": GROUP,
            "threadgroups_per_grid": -(-np.array(GRID) // GROUP),
            "thread_index_in_threadgroup": index,
            "thread_index_in_simdgroup": index % 32,
            "simdgroup_index_in_threadgroup": index // 32,
            "threads_per_simdgroup": 32,
            "thread_execution_width": 32,
            "simdgroups_per_threadgroup": -(-threads // 32),
            "dispatch_simdgroups_per_threadgroup": -(-NOMINAL // 32),
            "thread_index_in_quadgroup": index % 4,
            "quadgroup_index_in_threadgroup": index // 4,
            "quadgroups_per_threadgroup": -(-threads // 4),
            "dispatch_quadgroups_per_threadgroup": -(-NOMINAL // 4),
        }
        for name, value in values.items():
            rows[name].append(np.broadcast_to(value, 3))
    return {name: np.array(values) for name, values in rows.items()}


EXPECTED = expected_inputs()


@pytest.mark.parametrize("other", ["thread_execution_width", "threads_per_simdgroup"])  # no kernel has both
@pytest.mark.parametrize("kind", KINDS)
def test_every_input_of_every_type(kind: str, other: str) -> None:
    width = int(kind[-1]) if kind[-1].isdigit() else 1
    names = [name for name, known in INPUTS.items() if width in known.widths and name != other]
    inputs = ", ".join(f"{kind} v{n} [[{name}]]" for n, name in enumerate(names))
    part = [f"v{n}" if width == 1 else f"v{n}[{c}]" for n in range(len(names)) for c in range(width)]
    text = f"kernel void k(device uint* y, uint3 at [[thread_position_in_grid]], {inputs}) {{\n"
    text += f"  uint i = at.x + {GRID[0]} * (at.y + {GRID[1]} * at.z);\n"
    text += "".join(f"  y[i * {len(part)} + {n}] = {p};\n" for n, p in enumerate(part)) + "}"
    y = np.zeros((np.prod(GRID), len(names), width), np.uint32)
    mnb.compile(PRELUDE + text).k(y, grid=GRID, threadgroup=GROUP)
    for n, name in enumerate(names):
        np.testing.assert_array_equal(y[:, n], EXPECTED[name][:, :width], err_msg=name)


def test_inputs_stand_anywhere_in_the_list_and_twice() -> None:
    text = """
    kernel void k(const uint i [[thread_position_in_grid]], device float* y [[buffer(1)]],
                  ushort s [[thread_index_in_simdgroup]], constant float& a [[buffer(0)]],
                  uint2 j [[thread_position_in_grid]]) { y[i] = a * i + s + j.x; }"""
    y = np.zeros(3, np.float32)
    mnb.compile(PRELUDE + text).k(a=10, y=y)
    np.testing.assert_array_equal(y, [0, 12, 24])


# Function constants (MSL 5.8) -----------------------------------------------------------------------------------------

CONSTANTS = [
    ("bool", True), ("bool", False), ("char", -128), ("uchar", 255), ("short", -32768), ("ushort", 65535),
    ("int", -(2**31)), ("uint", 2**32 - 1), ("long", -(2**63)), ("ulong", 2**64 - 1), ("half", 0.5), ("half", 65504),
    ("float", 0.1), ("float", -np.inf), ("bfloat", 1.5), ("float2", (1, 2.5)), ("half3", (1, 2, 3)),
    ("int4", (1, -2, 3, -4)), ("bool2", (True, False)), ("uchar4", (1, 2, 3, 255)), ("ulong2", (2**64 - 1, 0)),
]  # fmt: skip

DTYPES = {
    "bool": "?", "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "long": "i8",
    "ulong": "u8", "half": "f2", "float": "f4", "bfloat": "u2",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), CONSTANTS)
def test_a_function_constant_of_every_type(kind: str, value: object) -> None:
    text = f"constant {kind} c [[function_constant(3)]];\nkernel void k(device {kind}* y) {{ y[0] = c; }}"
    components = value if isinstance(value, tuple) else (value,)
    scalar = kind.rstrip("234")
    if scalar == "bfloat":  # compare bits, since NumPy has no bfloat
        text = text.replace("device bfloat* y", "device ushort* y").replace("= c", "= as_type<ushort>(c)")
        components = (np.float32(value).view(np.uint32) >> 16,)
    y = np.zeros((1, *((4 if len(components) == 3 else len(components),) if kind != scalar else ())), DTYPES[scalar])
    mnb.compile(PRELUDE + text, constants={"c": value}).k(y, grid=1)
    np.testing.assert_array_equal(y.ravel()[: len(components)], np.array(components, y.dtype))


def test_function_constants_make_others_and_choose_code() -> None:
    text = """
    constant int n [[function_constant(0)]];
    constant bool quick [[function_constant(1)]];
    constant int twice = n * 2;
    constant bool both = quick && n > 2;
    { if (both) y[i] = twice; else y[i] = -n; }"""
    assert outcome(text.replace("\n    ", "\n"), 1, constants={"n": 3, "quick": True})[0] == 6
    assert outcome(text.replace("\n    ", "\n"), 1, constants={"n": 3, "quick": False})[0] == -3


SPECIALIZED = """
constant float FACTOR [[function_constant(0)]];
constant uint SHIFT [[function_constant(1)]];
kernel void scale(device float* x, uint i [[thread_position_in_grid]]) { x[i] = x[i] * FACTOR + SHIFT; }
"""


def test_kernel_can_be_specialized_again() -> None:
    program = mnb.compile(SPECIALIZED, constants={"FACTOR": 2, "SHIFT": 1}, math="precise")
    once = program.scale.specialize(FACTOR=0.5)
    assert once.program.constants == {"FACTOR": 0.5, "SHIFT": 1}
    assert (once.program.math, once.program.name) == ("precise", program.name)
    assert program.constants == {"FACTOR": 2, "SHIFT": 1}
    x = np.array([2, 4], np.float32)
    once(x)
    assert x.tolist() == [2, 3]
    program.scale(x)
    assert x.tolist() == [5, 7]
    assert program.scale.specialize() is program.scale
    assert program.specialize(FACTOR=0.5)["scale"] is once
    with pytest.raises(mnb.ArgumentError, match="'FACTR'"):
        program.specialize(FACTR=1)
    with pytest.raises(mnb.ArgumentError, match=r"'SHIFT' .* is uint"):
        program.scale.specialize(SHIFT=-1)


def test_an_optional_function_constant() -> None:
    text = """constant float w [[function_constant(0)]];
constant float weight = is_function_constant_defined(w) ? w : 5;
{ y[i] = weight; }"""
    assert outcome(text, 1)[0] == 5
    assert outcome(text, 1, constants={"w": 7})[0] == 7


def test_a_function_constant_gates_an_argument() -> None:
    text = """
    constant bool has_bias [[function_constant(0)]];
    kernel void k(device float* y, device const float* bias [[buffer(1), function_constant(has_bias)]],
                  uint i [[thread_position_in_grid]]) { y[i] = has_bias ? bias[i] : -1; }"""
    y = np.zeros(2, np.float32)
    mnb.compile(PRELUDE + text, constants={"has_bias": True}).k(y, np.array([3, 4], np.float32))
    np.testing.assert_array_equal(y, [3, 4])
    mnb.compile(PRELUDE + text, constants={"has_bias": False}).k(y)
    np.testing.assert_array_equal(y, [-1, -1])


GATED = """
constant bool has_bias [[function_constant(0)]];
constant int rows [[function_constant(1)]];
constant bool several = rows * 2 >= 6 && !(rows & 1);
constant bool biased = is_function_constant_defined(has_bias) ? has_bias : false;
constant bool gate = GATE;
kernel void k(device float* y, device const float* bias [[buffer(1), function_constant(gate)]],
              uint i [[thread_position_in_grid]]) { y[i] = -1; if (gate) y[i] = bias[i]; }
"""
GATES = {
    "biased": ({"has_bias": True}, {"has_bias": False}, {}),
    "is_function_constant_defined(has_bias) && has_bias": ({"has_bias": True}, {"has_bias": False}, {}),
    "several": ({"rows": 4, "has_bias": False}, {"rows": 3}, {"rows": 2}),
    "several || rows == 1": ({"rows": 1}, {"rows": 5}, {"rows": 0}),
    "biased && bool(rows)": ({"rows": 1, "has_bias": True}, {"rows": 0, "has_bias": True}, {"rows": 3}),
    "(uint)rows % 4 == (1u << 1) && rows / 4 != 0 ? true : rows == -7": ({"rows": 6}, {"rows": 2}, {"rows": 7}),
    "rows - 1 > 0x0F ? has_bias : static_cast<bool>(rows - 2)": ({"rows": 3}, {"rows": 2}, {"rows": 17}),
}


@pytest.mark.parametrize("gate", GATES)
def test_a_constant_made_of_function_constants_gates_an_argument(gate: str) -> None:
    there, *away = GATES[gate]
    # A constant without a value is tested with is_function_constant_defined, and so is optional.
    text = PRELUDE + GATED.replace("GATE", f"({gate}) && (is_function_constant_defined(rows) || true)")
    y = np.zeros(2, np.float32)
    mnb.compile(text, constants={"rows": 0, **there}).k(y, np.array([3, 4], np.float32))
    np.testing.assert_array_equal(y, [3, 4])
    for constants in away:
        kernel = mnb.compile(text, constants={"rows": 0, **constants}).k
        kernel(y)
        np.testing.assert_array_equal(y, [-1, -1])
        with pytest.raises(mnb.ArgumentError, match=r"'bias' \[\[buffer\(1\)\]\] does not exist: gate is false"):
            kernel(y, bias=y)
    kernel = kernel.specialize(**there)  # another program, and another signature
    kernel(y, np.array([5, 6], np.float32))
    np.testing.assert_array_equal(y, [5, 6])


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("nothing", "'nothing' is not a function constant"),
        ("floating", "'floating' must be made of function constants and numbers: metalnb cannot read 'sqrt'"),
    ],
)
def test_unevaluable_function_constant_condition_is_refused(gate: str, message: str) -> None:
    text = f"""
    constant int rows [[function_constant(0)]];
    constant bool floating = sqrt(4.0f) > rows;
    kernel void k(device float* y [[function_constant({gate})]], device float* z) {{ z[0] = 1; }}"""
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(PRELUDE + text, constants={"rows": 1})
    assert message in str(caught.value)
    assert caught.value.line == 6


@pytest.mark.parametrize(
    "parameter",
    ["constant float (&x)[3] [[buffer(0)]]", "device const float x[] [[buffer(0)]]",
     "constant float x[3] [[ buffer(0) ]]",
     "constant float\n(&x)[3]\n[[buffer(0)]]", "constant float x[1][3] [[buffer(0), function_constant(ON)]]"],
)  # fmt: skip
def test_attributes_behind_an_arrays_extents_are_the_parameters(parameter: str) -> None:
    element = "x[0][i]" if "[1]" in parameter else "x[i]"
    text = f"""constant bool ON [[function_constant(0)]];
    kernel void k(device float* y [[buffer(1)]], {parameter}, threadgroup float (&t)[4] [[threadgroup(0)]],
                  uint i [[thread_position_in_grid]]) {{ t[i] = {element}; y[i] = ON ? 2 * t[i] : 0; }}"""
    made = mnb.compile(PRELUDE + text, constants={"ON": True})
    y = np.zeros(3, np.float32)
    x = np.array([1, 2, 4], np.float32)
    made.k(x.reshape(1, 3) if "[1]" in parameter else x, y, grid=3, threadgroup=3, threadgroup_memory={"t": 16})
    np.testing.assert_array_equal(y, [2, 4, 8])


def test_a_function_constant_that_nothing_uses_needs_no_value() -> None:
    text = """
    constant int rows [[function_constant(0)]];  // rows: nobody asks
    constant int used [[function_constant(1)]];
    kernel void k(device float* y) { y[0] = used; }"""
    y = np.zeros(1, np.float32)
    mnb.compile(PRELUDE + text, constants={"used": 3}).k(y)
    assert y[0] == 3
    with pytest.raises(mnb.ArgumentError, match=r"needs a value for int used \[\[function_constant\(1\)\]\]; write"):
        mnb.compile(PRELUDE + text)


# Kernels declared in other ways ---------------------------------------------------------------------------------------

SCALE = """
template <typename T, int N> [[kernel]] void scale(device T* y, uint i [[thread_position_in_grid]]) { y[i] = T(i) * N; }
"""
STYLES = {
    "decltype": """
template [[host_name("k")]] [[kernel]] decltype(scale<float, 3>) scale<float, 3>;
""",
    "typedef": """
typedef decltype(scale<float, 3>) scale_t;
template [[host_name("k")]] kernel scale_t scale<float, 3>;
""",
    "signature": """
template [[host_name("k")]] [[kernel]] void scale<float, 3>(
    device float* y, uint i [[thread_position_in_grid]]);
""",
    "macro": """
#define MAKE(name, T, N) template [[host_name(#name)]] [[kernel]] decltype(scale<T, N>) scale<T, N>;
MAKE(k, float, 3)
""",
    "macro of macros": """
#define MAKE(name, T, N) template [[host_name("k" name)]] [[kernel]] void scale<T, N>(device T*, uint);
#define ALL(T) MAKE("", T, 3) MAKE("_" #T "_2", T, 2)
ALL(float)
""",
    "in a namespace": """
namespace a {
template <int N> kernel void f(device float* y, uint i [[thread_position_in_grid]]) { y[i] = i * N; }
template [[host_name("k")]] kernel decltype(f<3>) f<3>;
}
""",
    "defaulted parameters": """
template <typename T = float, int N = 3, bool up = true>
kernel void g(device T* y, uint i [[thread_position_in_grid]]) { y[i] = up ? T(i) * N : 0; }
template [[host_name("k")]] kernel decltype(g<>) g<>;
""",
    "function parameter": """
struct B { float v; };
void deq(device const B* b, thread float& x) { x = b->v; }
template <typename T, void (*f)(device const T*, thread float&)>
kernel void g(device float* y, uint i [[thread_position_in_grid]]) {
    y[i] = i;
    float x;
    f((device T*)y + i, x);
    y[i] = 3 * x;
}
template [[host_name("k")]] kernel decltype(g<B, deq>) g<B, deq>;
""",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in STYLES.items()])
def test_instantiations(text: str) -> None:
    np.testing.assert_array_equal(outcome(SCALE + text, 4), [0, 3, 6, 9])


def test_two_instantiations_do_not_share_threadgroup_memory_sizes() -> None:
    text = """
    template <typename T, int N> kernel void rev(device T* y, uint i [[thread_position_in_grid]]) {
        threadgroup T t[N]; t[i] = y[i]; threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = t[N - 1 - i]; }
    template [[host_name("a")]] kernel decltype(rev<float, 8>) rev<float, 8>;
    template [[host_name("b")]] kernel decltype(rev<uchar, 64>) rev<uchar, 64>;"""
    made = mnb.compile(PRELUDE + text)
    a, b = np.arange(8, dtype=np.float32), np.arange(64, dtype=np.uint8)
    made.a(a)
    made.b(b)
    np.testing.assert_array_equal(a, np.arange(8)[::-1])
    np.testing.assert_array_equal(b, np.arange(64)[::-1])


def test_kernels_made_by_macros_compile_and_run() -> None:
    text = """
    #define UNARY(name, T, expression) \\
        kernel void name##_##T(device const T* x [[buffer(0)]], device T* y [[buffer(1)]], \\
                               uint i [[thread_position_in_grid]]) { T a = x[i]; y[i] = expression; }
    #define BOTH(name, expression) UNARY(name, float, expression) UNARY(name, int, expression)
    BOTH(square, a * a)
    BOTH(negate, -a)
    """
    made = mnb.compile(PRELUDE + text)
    assert sorted(made.kernels) == ["negate_float", "negate_int", "square_float", "square_int"]
    np.testing.assert_array_equal(made.square_int(np.arange(4, dtype=np.int32)), [0, 1, 4, 9])
    np.testing.assert_array_equal(made.negate_float(np.arange(3, dtype=np.float32)), [0, -1, -2])


def test_kernel_takes_31_buffers() -> None:
    params = ", ".join(f"device const int* b{n}" for n in range(30))
    text = f"kernel void k({params}, device int* y, uint i [[thread_position_in_grid]]) {{ y[i] = "
    text += " + ".join(f"{n + 1} * b{n}[i]" for n in range(30)) + "; }"
    y = np.zeros(5, np.int32)
    buffers = [np.arange(5, dtype=np.int32) + n for n in range(30)]
    mnb.compile(PRELUDE + text).k(*buffers, y)
    np.testing.assert_array_equal(y, sum((n + 1) * b for n, b in enumerate(buffers)))


# Headers and long sources ---------------------------------------------------------------------------------------------

HEADERS = sorted(f.name for f in INCLUDE.iterdir() if f.name.startswith("metal_"))


@pytest.mark.parametrize("end", ["", ";", "  // the library"])
def test_every_public_header_can_be_included(end: str) -> None:
    assert {"metal_stdlib", "metal_math", "metal_atomic", "metal_simdgroup_matrix"} <= set(HEADERS)
    text = "".join(f"#include <{name}>{end}\n" for name in HEADERS)
    y = np.zeros(1, np.float32)
    mnb.compile(text + "using namespace metal;\n" + program("{ y[i] = fma(2.0, 3.0, 1.0); }")).k(y)
    assert y[0] == 7


@pytest.mark.long(every=4)  # test_headers reads each of ours separately
@pytest.mark.parametrize("name", HEADERS)
def test_a_named_header_compiles_alone(name: str) -> None:
    y = np.zeros(2, np.float32)
    mnb.compile(f"#include <{name}>\n" + HEAD + "{ y[i] = metal::float2(3).x; }").k(y)
    assert (y == 3).all()


@pytest.mark.long  # 15 s in the compiler; test_large_files compiles 600 instantiations
def test_a_kernel_of_13000_lines_computes_right() -> None:
    lines = 13_000
    body = "\n".join(
        f"    a{n % 7} = fma(a{n * 3 % 7}, x[{n % 97}], a{(n + 1) % 7} * 0.5f) + 1.0f;" for n in range(lines)
    )  # fmt: skip
    names = ", ".join(f"a{n} = {n}" for n in range(7))
    text = f"kernel void k(device const float* x, device float* y) {{\n    float {names};\n{body}\n    y[0] = a0; }}"
    x = np.linspace(-0.4, 0.4, 97).astype(np.float32)
    a = [float(n) for n in range(7)]
    for n in range(lines):
        a[n % 7] = a[n * 3 % 7] * float(x[n % 97]) + a[(n + 1) % 7] * 0.5 + 1
    start = time.perf_counter()
    kernel = mnb.compile(PRELUDE + text, math="precise").k
    read = time.perf_counter()
    y = np.zeros(1, np.float32)
    kernel(x, y, grid=1)
    print(f"{lines} lines: read in {read - start:.2f} s, compiled and run in {time.perf_counter() - read:.2f} s")
    assert abs(a[0]) > 1
    np.testing.assert_allclose(y[0], a[0], rtol=1e-5)


def test_constants_of_constants_that_grow_without_bound_are_refused_at_once() -> None:
    """Each contains the previous one twice: expanded, the last one has 2^40 words."""
    chain = "".join(f"constant bool A{k} = A{k - 1} && A{k - 1};\n" for k in range(1, 41))
    source = f"""constant bool A0 [[function_constant(0)]];
    {chain}
    kernel void k(device float* x [[buffer(0)]],
                  device float* y [[buffer(1), function_constant(A40)]]) {{ x[0] = 1; }}"""
    with pytest.raises(mnb.CompileError, match="'A40' must be made of function constants and numbers"):
        mnb.compile(source, constants={"A0": True})


def test_a_constants_shift_by_more_than_there_are_bits_is_refused() -> None:
    source = """constant int N [[function_constant(0)]];
    constant bool ON = (1 << 4000000000 * N) != 0;
    kernel void k(device float* x [[buffer(0)]], device float* y [[buffer(1), function_constant(ON)]]) { x[0] = 1; }"""
    with pytest.raises(mnb.CompileError, match="'ON' must be made of function constants and numbers"):
        mnb.compile(source, constants={"N": 1})
