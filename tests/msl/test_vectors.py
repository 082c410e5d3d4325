"""Vectors (MSL 2.2, 2.2.1, 2.2.2, 3.1): constructors, components, operators, on objects of every address space."""

from __future__ import annotations

import numpy as np
import pytest
from msl.rows import SPACES, Table, rows

import metalnb as mnb

_OBJECTS = {
    "w": ("float4", "float4(1, 2, 3, 4)"),
    "w3": ("float3", "float3(5, 6, 7)"),
    "w2": ("float2", "float2(8, 9)"),
    "n": ("int4", "int4(10, 20, -30, 40)"),
    "u": ("uint2", "uint2(7, 0xffffffff)"),
    "h": ("half4", "half4(0.5, 1.5, 2.5, 3.5)"),
    "c": ("uchar4", "uchar4(250, 1, 2, 255)"),
    "t": ("bool4", "bool4(true, false, true, false)"),
    "p": ("packed_float3", "packed_float3(5, 6, 7)"),
    "q": ("packed_uchar4", "packed_uchar4(9, 8, 7, 6)"),
    "b": ("bfloat2", "bfloat2(1.5, -2)"),
    "x": ("float", "2"),
    "i": ("int", "3"),
}

_READS = Table(rows(
    # constructors: one scalar, one per element, any parts that add up
    ("float4", "float4(x)", [2, 2, 2, 2]), ("float4", "float4(x, i, 5, 6u)", [2, 3, 5, 6]),
    ("float4", "float4(w2, x, 1)", [8, 9, 2, 1]), ("float4", "float4(x, w2, 1)", [2, 8, 9, 1]),
    ("float4", "float4(x, 1, w2)", [2, 1, 8, 9]), ("float4", "float4(w2, w.zw)", [8, 9, 3, 4]),
    ("float4", "float4(w.xyz, 1)", [1, 2, 3, 1]), ("float4", "float4(x, w3)", [2, 5, 6, 7]),
    ("float4", "float4(p, 1)", [5, 6, 7, 1]), ("float3", "float3(w2, x)", [8, 9, 2]),
    ("float3", "float3(x, w2)", [2, 8, 9]), ("float3", "float3(p)", [5, 6, 7]), ("float2", "float2(x, 1)", [2, 1]),
    ("float4", "float4(w)", [1, 2, 3, 4]), ("float4", "float4 v = {1, 2, 3, x}; v", [1, 2, 3, 2]),
    ("float4", "float4 v = {}; v", [0, 0, 0, 0]), ("float4", "float4 v{x}; v", [2, 2, 2, 2]),
    ("float4", "float4 v = i; v", [3, 3, 3, 3]), ("half3", "half3 v = x; v", [2, 2, 2]),
    ("float3", "make<float3>(1, 2, x)", [1, 2, 2]), ("uchar2", "make<uchar2>(1, 300)", [1, 44]),
    ("float3", "float3 v = p; v", [5, 6, 7]), ("packed_float3", "packed_float3 v = w3; v", [5, 6, 7]),
    ("packed_float3", "packed_float3(w2, 1)", [8, 9, 1]),
    ("packed_float3", "packed_float3 v = {1, x, 3}; v", [1, 2, 3]), ("packed_uchar2", "packed_uchar2(q[0])", [9, 9]),
    # conversions between element types are explicit
    ("int4", "int4(float4(1.9, -1.9, 2, -0.5))", [1, -1, 2, 0]), ("float4", "float4(n)", [10, 20, -30, 40]),
    ("float4", "float4(t)", [1, 0, 1, 0]), ("bool4", "bool4(h - 0.5h)", [0, 1, 1, 1]),
    ("bool4", "bool4(n - 20)", [1, 0, 1, 1]), ("uint4", "uint4(t)", [1, 0, 1, 0]),
    ("char4", "char4(c)", [-6, 1, 2, -1]), ("uchar4", "uchar4(n)", [10, 20, 226, 40]),
    ("float4", "float4(h)", [0.5, 1.5, 2.5, 3.5]), ("half2", "half2(float2(2049, 65504))", [2048, 65504]),
    ("bfloat2", "bfloat2(float2(257, 1.5))", [256, 1.5]), ("float2", "float2(b)", [1.5, -2]),
    ("uchar4", "uchar4(q)", [9, 8, 7, 6]), ("float4", "float4(q)", [9, 8, 7, 6]),
    ("int2", "static_cast<int2>(w2)", [8, 9]), ("long2", "(long2)u", [7, 0xFFFFFFFF]),
    # components
    ("float", "w.x", 1), ("float", "w.y", 2), ("float", "w.z", 3), ("float", "w.w", 4), ("float", "w.r", 1),
    ("float", "w.g", 2), ("float", "w.b", 3), ("float", "w.a", 4), ("float2", "w.xy", [1, 2]),
    ("float2", "w.zy", [3, 2]), ("float2", "w.ww", [4, 4]), ("float2", "w.ba", [3, 4]),
    ("float3", "w.xyz", [1, 2, 3]), ("float3", "w.zzx", [3, 3, 1]), ("float3", "w.bgr", [3, 2, 1]),
    ("float4", "w.wzyx", [4, 3, 2, 1]), ("float4", "w.xxyy", [1, 1, 2, 2]), ("float4", "w.bgra", [3, 2, 1, 4]),
    ("float4", "w2.xyxy", [8, 9, 8, 9]), ("float3", "w2.ggr", [9, 9, 8]), ("float4", "w3.zxyz", [7, 5, 6, 7]),
    ("float", "w.wzyx.yz.x", 3), ("bool", "t.z", 1), ("bool2", "t.yz", [0, 1]), ("half2", "h.wx", [3.5, 0.5]),
    ("uchar", "c.w", 255), ("bfloat", "b.y", -2), ("bfloat4", "b.xyxy", [1.5, -2, 1.5, -2]), ("float", "p.y", 6),
    ("float2", "p.zx", [7, 5]), ("uchar3", "q.bgr", [7, 8, 9]), ("float", "w[2]", 3), ("float", "w[i]", 4),
    ("int", "n[uint(i) - 1]", -30), ("bool", "t[0]", 1), ("float", "p[2]", 7), ("uchar", "q[i]", 6),
    ("bfloat", "b[1]", -2), ("float", "(w + w)[1]", 4), ("float", "(w + w).w", 8),
    ("float2", "float4(1, 2, 3, 4).yx", [2, 1]), ("float2", "auto v = w.xy; v", [1, 2]),
    ("float2", "auto v = w.xy; v.x = 7; v", [7, 2]), ("float", "first(w.zw)", 3), ("int", "length_of(w.xyz)", 3),
    ("float", "larger(w.x, w.y)", 2), ("float", "larger(w.x, 1.5f)", 1.5), ("ulong", "ulong(sizeof(w.xyz))", 16),
    ("ulong", "ulong(sizeof(w.x))", 4),
    # arithmetic; a scalar is converted to the vector's element type and splatted
    ("float4", "w + w", [2, 4, 6, 8]), ("float4", "w - 1", [0, 1, 2, 3]), ("float4", "2 * w", [2, 4, 6, 8]),
    ("float4", "w * 2.5", [2.5, 5, 7.5, 10]), ("float4", "12 / w", [12, 6, 4, 3]), ("float4", "-w", [-1, -2, -3, -4]),
    ("float4", "+w", [1, 2, 3, 4]), ("half4", "h * 2.0f", [1, 3, 5, 7]), ("half4", "h * 2", [1, 3, 5, 7]),
    ("float4", "w * h.x", [0.5, 1, 1.5, 2]), ("float4", "w * t.x", [1, 2, 3, 4]), ("float4", "w + w.x", [2, 3, 4, 5]),
    ("int4", "n + 1", [11, 21, -29, 41]), ("int4", "n / 7", [1, 2, -4, 5]), ("int4", "n % 7", [3, 6, -2, 5]),
    ("int4", "n * n", [100, 400, 900, 1600]), ("int4", "~n", [-11, -21, 29, -41]),
    ("int4", "-n", [-10, -20, 30, -40]), ("int4", "n & 6", [2, 4, 2, 0]), ("int4", "n | 1", [11, 21, -29, 41]),
    ("int4", "n ^ n", [0, 0, 0, 0]), ("int4", "n << 2", [40, 80, -120, 160]), ("int4", "n >> 1", [5, 10, -15, 20]),
    ("int2", "n.xy << u.xx", [1280, 2560]), ("int4", "1 << (n & 3)", [4, 1, 4, 1]), ("uint2", "u + 1", [8, 0]),
    ("uint2", "u >> 1", [3, 0x7FFFFFFF]), ("uchar4", "c + c", [244, 2, 4, 254]),
    ("uchar4", "c * 2", [244, 2, 4, 254]), ("uchar4", "c >> 1", [125, 0, 1, 127]), ("float3", "p + p", [10, 12, 14]),
    ("float3", "p * 2", [10, 12, 14]), ("float3", "p * w3", [25, 36, 49]), ("float3", "-p", [-5, -6, -7]),
    ("uchar4", "q + c", [3, 9, 9, 5]), ("bfloat2", "b + 1", [2.5, -1]), ("bfloat2", "b * b", [2.25, 4]),
    ("bfloat2", "-b", [-1.5, 2]), ("bfloat2", "b * 0.5f", [0.75, -1]), ("float4", "w * b.x", [1.5, 3, 4.5, 6]),
    # comparisons and logic
    ("bool4", "w == w", [1, 1, 1, 1]), ("bool4", "w < 3", [1, 1, 0, 0]), ("bool4", "w >= w.wzyx", [0, 0, 1, 1]),
    ("bool4", "2 != w", [1, 0, 1, 1]), ("bool4", "n > 15", [0, 1, 0, 1]), ("bool4", "c <= 2", [0, 1, 1, 0]),
    ("bool2", "u > 100u", [0, 1]), ("bool4", "h < 2", [1, 1, 0, 0]), ("bool2", "b < 0", [0, 1]),
    ("bool3", "p == w3", [1, 1, 1]), ("bool4", "!t", [0, 1, 0, 1]), ("bool4", "t && t.yyzz", [0, 0, 1, 0]),
    ("bool4", "t || (w < 2.5)", [1, 1, 1, 0]), ("bool4", "t == true", [1, 0, 1, 0]),
    ("bool4", "t != t.wzyx", [1, 1, 1, 1]), ("bool4", "t & true", [1, 0, 1, 0]),
    ("bool4", "t ^ t.xxxx", [0, 1, 0, 1]), ("bool4", "float4(as_type<float>(0x7fc00000)) == w", [0, 0, 0, 0]),
    ("bool", "t.x && !t.y", 1),
    # a scalar condition chooses between vectors
    ("float4", "i > 2 ? w : w.wzyx", [1, 2, 3, 4]), ("float4", "i > 3 ? w : 0", [0, 0, 0, 0]),
    ("float4", "i < 2 ? float4(0) : w", [1, 2, 3, 4]), ("float4", "i > 2 ? w3.xyzz : float4(0)", [5, 6, 7, 7]),
    ("float4", "i > 2 ? 1.5f : w", [1.5] * 4), ("float2", "i > 2 ? w.xy : w.zw", [1, 2]),
    ("float", "i > 2 ? w.x : 0", 1), ("bfloat", "i > 2 ? b.x : 0", 1.5),
    # tables at program scope
    ("float4", "table[i]", [9, 8, 7, 6]), ("float4", "table[2]", [2, 2, 2, 2]), ("float", "table[1].y", 2),
    ("uchar3", "entries[i - 2].color", [4, 5, 6]), ("float3", "entries[i - 3].place * 2", [2, 4, 6]),
    ("int", "sum", 10),
), """
constant float4 table[] = {float4(0), {1, 2, 3, 4}, 2, float4(9, 8, 7, 6), float4(float2(1), float2(2))};
struct Entry { packed_float3 place; uchar3 color; };
constant Entry entries[] = {{{1, 2, 3}, uchar3(1)}, {packed_float3(4), {4, 5, 6}}};
constexpr constant float4 fixed_vector(1, 2, 3, 4);
constexpr constant int sum = int((fixed_vector + 0).x + fixed_vector.wzyx.x + fixed_vector[1] + fixed_vector.z);
static_assert(sum == 10 && (fixed_vector < 3).y && int3(float3(1, 2, 3)).z == 3, "vectors in constant expressions");
template <class V, class... S> V make(S... s) { return V(s...); }
template <class T, int N> T first(vec<T, N> v) { return v[0]; }
template <class T, int N> int length_of(vec<T, N>) { return N; }
template <class T> T larger(T a, T b) { return a > b ? a : b; }
""", _OBJECTS, SPACES)  # fmt: skip

_WRITES = Table(rows(
    ("float4", "w.x = 7; w", [7, 2, 3, 4]), ("float4", "w.w = i; w", [1, 2, 3, 3]),
    ("float4", "w.g = 7; w", [1, 7, 3, 4]), ("float4", "w.xy = w.yx; w", [2, 1, 3, 4]),
    ("float4", "w.wx = w2; w", [9, 2, 3, 8]), ("float4", "w.zyx = w.xyz; w", [3, 2, 1, 4]),
    ("float4", "w.wzyx = w; w", [4, 3, 2, 1]), ("float4", "w.xyz = w3; w", [5, 6, 7, 4]),
    ("float4", "w.rgb = 1; w", [1, 1, 1, 4]), ("float4", "w.ra = w2; w", [8, 2, 3, 9]),
    ("float4", "w.xy += w.zw; w", [4, 6, 3, 4]), ("float4", "w.yz *= 2; w", [1, 4, 6, 4]),
    ("float4", "w.x += 1; w", [2, 2, 3, 4]), ("float4", "w.x++; ++w.y; w.z--; --w.w; w", [2, 3, 2, 3]),
    ("float", "w.x++", 1), ("float", "++w.x", 2), ("float4", "w.x = w.y = w.z = 9; w", [9, 9, 9, 4]),
    ("int4", "n.xw <<= 1; n.y |= 1; n", [20, 21, -30, 80]), ("float4", "w[1] = 7; w[i] += 1; w", [1, 7, 3, 5]),
    ("float4", "for (int k = 0; k < 4; k++) w[k] *= k; w", [0, 2, 6, 12]),
    ("bool4", "t.y = true; t[0] = i < 3; t", [0, 1, 1, 0]), ("half4", "h.xy = half2(w.zw); h", [3, 4, 2.5, 3.5]),
    ("bfloat2", "b[0] = 3; b.y += 1; b", [3, -1]), ("uchar4", "c.x += 10; c.yz -= 2; c", [4, 255, 0, 255]),
    ("packed_float3", "p.x = 1; p[1] = 2; p.z += 3; p", [1, 2, 10]), ("packed_float3", "p.zx = w2; p", [9, 6, 8]),
    ("packed_float3", "p += 1; p *= w3; p", [30, 42, 56]), ("packed_float3", "p = w3 * 2; p", [10, 12, 14]),
    ("packed_uchar4", "q.wzyx = c; q++; q", [0, 3, 2, 251]), ("float4", "w = 2; w", [2, 2, 2, 2]),
    ("float4", "w = {4, 3, 2, 1}; w", [4, 3, 2, 1]), ("float4", "w += w; w -= 1; w", [1, 3, 5, 7]),
    ("float4", "w *= 2; w /= 4; w", [0.5, 1, 1.5, 2]), ("float4", "float4 v = w++; v - w", [-1] * 4),
    ("float4", "--w; w", [0, 1, 2, 3]), ("int4", "n %= 7; n ^= 1; n", [2, 7, -1, 4]),
    ("int4", "n &= 0xff; n >>= 1; n", [5, 10, 113, 20]), ("bool4", "t |= true; t", [1] * 4),
    ("bfloat2", "b *= 2; b", [3, -4]),
), "", _OBJECTS, SPACES[:3])  # fmt: skip

_DTYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "long": "i8",
           "ulong": "u8", "half": "f2", "float": "f4"}  # fmt: skip
_BINARY = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_INTEGER = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift}
_COMPARE = {"==": np.equal, "!=": np.not_equal, "<": np.less, ">": np.greater, "<=": np.less_equal,
            ">=": np.greater_equal}  # fmt: skip


def _operands(dtype: np.dtype, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of either sign, 16 rows of equal ones, and for integers the extremes; no quotient overflows."""
    rng = np.random.default_rng(dtype.num)
    if dtype.kind == "f":
        a, b = rng.uniform(-8, 8, shape).astype(dtype), rng.uniform(1, 8, shape).astype(dtype)
        b[::2] *= -1
        b[:16] = a[:16]
        return a, b
    info = np.iinfo(dtype)
    a, b = rng.integers(info.min, info.max, (2, *shape), dtype, endpoint=True)
    b[32:64] >>= dtype.type(info.bits // 2)  # large quotients
    b[:16] = a[:16]
    a[16:20], b[16] = [[info.min], [info.max], [0], [1]], info.max
    b[(b == 0) | ((a == info.min) & (b == dtype.type(-1 if info.min else 0)))] = 1
    return a, b


def _expected(op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if op in _COMPARE:
        return _COMPARE[op](a, b).astype(a.dtype)
    if op in _INTEGER:  # a shift uses only the low bits of its count
        return _INTEGER[op](a, b % a.dtype.type(8 * a.itemsize) if op in ("<<", ">>") else b)
    if op in _BINARY and (op != "/" or a.dtype.kind == "f"):
        return _BINARY[op](a, b)
    pairs = [(int(x), int(y)) for x, y in zip(a.flat, b.flat, strict=True)]
    quotient = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]  # rounded towards zero
    found = quotient if op == "/" else [x - q * y for q, (x, y) in zip(quotient, pairs, strict=True)]
    return np.array(found, a.dtype).reshape(a.shape)


@pytest.mark.long(every=4)  # All dtypes share one source; three of them suffice
@pytest.mark.parametrize("name", _DTYPES)
def test_operators_on_random_vectors_match_numpy(name: str) -> None:
    dtype, n = np.dtype(_DTYPES[name]), 256
    ops = [*_BINARY, *_COMPARE, *(["%", *_INTEGER] if dtype.kind != "f" else [])]
    a, b = _operands(dtype, (n, 4))
    body = "".join(f"o[{len(ops)} * i + {k}] = {name}4(a[i] {op} b[i]);" for k, op in enumerate(ops))
    program = mnb.compile(f"""
        #include <metal_stdlib>
        using namespace metal;
        kernel void f(device const {name}4* a, device const {name}4* b, device {name}4* o,
                      uint i [[thread_position_in_grid]]) {{
            {body}
        }}""", math="precise")  # fmt: skip
    out = np.zeros((n * len(ops), 4), dtype)
    program.f(a, b, out, grid=(n,))
    for k, op in enumerate(ops):
        found, expected = out.reshape(n, len(ops), 4)[:, k], _expected(op, a, b)
        if dtype.kind == "f":
            np.testing.assert_array_max_ulp(found, expected, 2 if op == "/" else 0)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=f"{name}4 {op}")


@pytest.mark.parametrize(("space", "index"), _READS.params)
def test_reads(space: str, index: int) -> None:
    _READS.check(space, index)


@pytest.mark.parametrize(("space", "index"), _WRITES.params)
def test_vectors_are_written_as_specified(space: str, index: int) -> None:
    _WRITES.check(space, index)


def test_vector_function_near_a_loop_with_several_exits_is_right() -> None:
    """The function was once compiled to a loop in memory that returned the last element for every lane."""
    kernel = mnb.compile("""#include <metal_stdlib>
        using namespace metal;
        inline uint bits(ushort x) { return x; }
        inline uint bits(ushort2 x) { return bits(x.x) * 7u + bits(x.y); }
        kernel void k(device uint* out, uint i [[thread_position_in_grid]]) {
            ushort2 v = ushort2(3, 1);
            char c = 1;
            switch (i & 3) {
                case 0: break;
                case 1:
                    for (uint j = 0; j <= 1; j++)
                        for (uint k = 0; k < i; k++) {
                            if (char(1) >= c) continue;
                            v.x = ushort(clz(ushort(c)));
                            if (c > 0) c = char(char(k) % c);
                        }
                    break;
                default: v = max(ushort2(1, 9), ushort2(2, 1));
            }
            out[i] = bits(v);
        }""", math="precise").k  # fmt: skip
    out = np.zeros(100, np.uint32)
    kernel(out, threadgroup=64)
    assert out.tolist() == [22, 22, 23, 23] * 25
