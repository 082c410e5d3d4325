"""Scalar types, layout, conversions, as_type, numeric_limits, type traits and array (MSL 2.1 to 2.4, 2.12, 2.18)."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msl.rows import Table, rows

import metalnb as mnb

_SIZES = {"bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8,
          "half": 2, "bfloat": 2, "float": 4}  # fmt: skip
_VECTORS = [(f"{t}{n}", s * m, s * m) for t, s in _SIZES.items() for n, m in ((2, 2), (3, 4), (4, 4))]
_PACKED = [(f"packed_{t}{n}", s * n, s) for t, s in _SIZES.items() if t != "bool" for n in (2, 3, 4)]
_OTHERS = [
    ("int8_t", 1, 1), ("uint8_t", 1, 1), ("int16_t", 2, 2), ("uint16_t", 2, 2), ("int32_t", 4, 4), ("uint32_t", 4, 4),
    ("int64_t", 8, 8), ("uint64_t", 8, 8), ("size_t", 8, 8), ("ptrdiff_t", 8, 8), ("device int*", 8, 8),
    ("Mixed", 80, 16), ("Bits", 16, 16), ("float3[2]", 32, 16), ("packed_float3[2]", 24, 4),
]  # fmt: skip

_LAYOUT = Table(
    rows(*(("ulong2", f"ulong2(sizeof({name}), alignof({name}))", [size, align])
           for name, size, align in [*((t, s, s) for t, s in _SIZES.items()), *_VECTORS, *_PACKED, *_OTHERS])),
    """
struct Mixed { packed_float3 a; float b; uchar3 c; half3 d; bool2 e; float3 f; packed_half2 g; };
union Bits { float4 f; uint u[4]; packed_half4 h; };
""",
)  # fmt: skip

_VALUES = Table(rows(
    # literals and the types of operations
    ("float", "1.0", 1), ("float", "1e-3", np.float32(1e-3)), ("float", "1.f", 1), ("half", "1.0h", 1),
    ("half", "16.h", 16), ("half", ".5H", 0.5), ("uint", "1u", 1), ("long", "1l", 1), ("ulong", "1ul", 1),
    ("int", "0x7fffffff", 0x7FFFFFFF), ("uint", "0xffffffff", 0xFFFFFFFF),
    ("float", "one / 3", np.float32(1) / np.float32(3)), ("half", "1.0h + i", 4), ("float", "1.0h + one", 2),
    ("half", "1.0h / 3.0h", np.float16(1) / np.float16(3)), ("int", "uc + uc", 400), ("uint", "u - 4", 0xFFFFFFFF),
    ("int", "-i / 2", -1), ("int", "-i % 2", -1), ("long", "l + i", (1 << 40) + 3), ("int", "true + true", 2),
    ("bool", "bool(0.5f)", 1), ("bool", "bool(i - 3)", 0), ("int", "(1 << (i + 30)) ", 2),
    # narrowing wraps, floating point truncates, integers round to the nearest
    ("uchar", "uchar(i + 297)", 44), ("char", "char(uc)", -56), ("short", "short(l + 70000)", 4464),
    ("int", "int(l + 5)", 5), ("int", "int(one * 2.9f)", 2), ("int", "int(one * -2.9f)", -2),
    ("uint", "uint(one * 3e9f)", 3000000000), ("long", "long(one * -3e9f)", -3000000000),
    ("uchar", "uchar(one * 254.9f)", 254), ("char", "char(-one)", -1), ("int", "int(1.75h * i)", 5),
    ("float", "float(i + 16777214)", 16777216), ("float", "float(i + 16777216)", 16777220),
    ("half", "half(i + 2046)", 2048), ("half", "half(i + 2048)", 2052), ("half", "half(one * 65519.0f)", 65504),
    ("half", "half(one * 65520.0f)", np.inf), ("half", "half(one * 6e-8f)", 2.0**-24),
    ("bfloat", "bfloat(i + 254)", 256), ("bfloat", "bfloat(one * 259)", 260), ("half", "half(bfloat(one))", 1),
    ("float", "float v = bfloat(i); v", 3), ("int", "int(bfloat(one * 2.5f))", 2),
    ("bfloat", "bfloat v = 1; v += one / 2; v++; v", 2.5), ("bfloat", "-bfloat(one)", -1),
    ("bfloat", "bfloat(one) / 3", 0.333984375), ("float", "bfloat(one) + one", 2), ("bfloat", "bfloat(one) * i", 3),
    ("bool", "bfloat(one) < 2 && bfloat(one) == one && 1.5h > bfloat(one)", 1),
    ("bfloat", "i > 2 ? bfloat(one) : 0", 1),
    # as_type
    ("uint", "as_type<uint>(one)", 0x3F800000), ("float", "as_type<float>(0x40490fdb)", np.float32(np.pi)),
    ("half2", "as_type<half2>(0x3c004000)", [2, 1]), ("uint", "as_type<uint>(half2(one, 2))", 0x40003C00),
    ("uchar4", "as_type<uchar4>(0x04030201)", [1, 2, 3, 4]), ("ulong", "as_type<ulong>(uint2(1, u))", (3 << 32) + 1),
    ("int4", "as_type<int4>(float4(one, 2, -0.0f, 0))", [0x3F800000, 0x40000000, -(1 << 31), 0]),
    ("float3", "as_type<float3>(float4(one, 2, 3, 4))", [1, 2, 3]), ("bfloat", "as_type<bfloat>(ushort(0x4040))", 3),
    ("ushort", "as_type<ushort>(half(one))", 0x3C00), ("char", "as_type<char>(uc)", -56),
    ("packed_half2", "as_type<packed_half2>(0x3c004000)", [2, 1]),
    ("float2", "as_type<float2>(float2(one, 2).yx)", [2, 1]),
    # array and utility
    ("array<int, 3>", "array<int, 3> a = {1, 2}; a[2] = i; a", [1, 2, 3]), ("ulong", "array<float4, 3>().size()", 3),
    ("int", "array<int, 3> a = {1, 2, 3}; auto b = a; b[0] = 5; int t = 0; for (auto x : b) t += x; t", 10),
    ("int", "primes[i]", 7), ("int", "total(make_index_sequence<5>())", 10),
    ("float", "float v = one; metal::move(v)", 1),
), """
constant array<int, 4> primes = {2, 3, 5, 7};
template <size_t... I> int total(index_sequence<I...>) { return (0 + ... + int(I)); }
""", {"one": ("float", "1"), "i": ("int", "3"), "u": ("uint", "3"), "uc": ("uchar", "200"), "l": ("long", "1l << 40")},
)  # fmt: skip

_TRUE = """
is_same_v<float, float>; !is_same_v<float, half>; !is_same_v<device float, float>; is_same<int, int32_t>::value
is_same_v<remove_reference_t<device float&>, device float>; is_same_v<remove_cv_t<const volatile int>, int>
is_same_v<remove_pointer_t<device float*>, device float>; is_same_v<decay_t<const device float&>, float>
is_same_v<decltype(local), float>; is_same_v<remove_reference_t<decltype((local))>, float>
is_same_v<decay_t<int[3]>, int*>
is_floating_point_v<float> && is_floating_point_v<half2> && is_floating_point_v<bfloat> && !is_floating_point_v<int>
is_integral_v<const uint> && is_integral_v<char4> && is_integral_v<bool> && !is_integral_v<half>
is_integral<short>::value; is_arithmetic_v<bfloat4> && !is_arithmetic_v<Base>
is_scalar_v<bfloat> && is_scalar_v<device int*> && !is_scalar_v<float4>
is_signed_v<int4> && is_signed_v<float> && !is_signed_v<uint>; is_unsigned_v<uchar> && is_unsigned_v<bool>
is_same_v<make_signed_t<uint4>, int4>; is_same_v<make_unsigned_t<char>, uchar>
is_same_v<underlying_type_t<Small>, uchar>; is_same_v<common_type_t<int, float>, float>
is_same_v<common_type_t<half, float, int>, float>; is_same_v<conditional_t<true, int, float>, int>
is_same_v<enable_if_t<true, half>, half>
is_convertible_v<int, float> && is_convertible_v<float, float4> && is_convertible_v<bfloat, float>
!is_convertible_v<float4, int4> && !is_convertible_v<float2, float> && !is_convertible_v<int4, uint4>
is_constructible_v<float4, int4> && is_constructible_v<float4, float2, float2>
!is_constructible_v<float4, float2, float>
is_constructible_v<float3, packed_float3>; !is_convertible_v<float, float2x2>
is_base_of_v<Base, Derived> && !is_base_of_v<Derived, Base>
is_class_v<Derived> && !is_class_v<float4> && is_union_v<Either>
is_trivial_v<float4> && is_trivial_v<packed_float3> && is_trivial_v<bfloat> && is_trivial_v<float4x4>
is_trivial_v<bool3>; is_standard_layout_v<float4> && is_trivially_copyable_v<packed_half3>
is_void_v<void> && !is_void_v<int>
is_pointer_v<device int*> && is_array_v<int[2]> && is_enum_v<Small> && is_reference_v<int&> && is_const_v<const int>
extent_v<int[2][3], 1> == 3 && rank_v<int[2][3]> == 2; alignment_of_v<float3> == 16
is_integral_v<integral_constant<int, 3>>; conjunction_v<is_integral<int>, is_same<int, int>>
!disjunction_v<is_void<int>, is_same<int, half>>; negation<false_type>()
is_same_v<typename pointed<device const float*>::type, float>
is_same_v<typename pointed<threadgroup half*>::type, half>
integral_constant<int, 3>() == 3 && bool_constant<true>::value; is_same_v<typename of_reference<float>::type, float>
ALLOWED(int4, int, a + b) && !ALLOWED(int4, float, a + b) && !ALLOWED(int4, uint4, a + b)
!ALLOWED(float4, int4, a * b)
!ALLOWED(float2, float3, a + b) && !ALLOWED(float4, float4, a % b) && !ALLOWED(float4, int, a & b)
ALLOWED(half4, float, a * b)
!ALLOWED(int4, float, a < b) && !ALLOWED(float4, float4, a && b) && ALLOWED(bool4, bool, a && b)
!ALLOWED(bool4, bool4, a + b)
"""
_TRAITS = Table(
    rows(*(("bool", f"float local = 0; bool({c.strip()})", 1) for c in _TRUE.replace(";", "\n").strip().split("\n"))),
    """
struct Base {}; struct Derived : Base { float x; }; union Either { int i; float f; }; enum class Small : uchar { a };
#define ALLOWED(A, B, ...) allowed<A, B>([](auto a, auto b) -> decltype(__VA_ARGS__) { return __VA_ARGS__; }, 0)
template <class A, class B, class F> constexpr auto allowed(F f, int) -> decltype(f(A(), B()), true) { return true; }
template <class A, class B, class F> constexpr bool allowed(F, long) { return false; }
template <class T> struct of_reference { typedef remove_cv_t<remove_reference_t<const thread T&>> type; };
// As public code does it: new traits in the library's own namespace, and its traits specialized there.
namespace metal {
template <class T> struct is_empty : metal::bool_constant<__is_empty(T)> {};
template <class... T> struct make_void { typedef void type; };
template <class... T> using void_t = typename make_void<T...>::type;
template <class T, T v> struct is_integral<integral_constant<T, v>> : true_type {};
}
template <class T> struct pointed {};
template <class T> struct pointed<device T*> { using type = remove_cv_t<T>; };
template <class T> struct pointed<constant T*> { using type = remove_cv_t<T>; };
template <class T> struct pointed<threadgroup T*> { using type = remove_cv_t<T>; };
""",
)  # fmt: skip


def _limits() -> list[tuple[str, str, object]]:
    """List the limits of NumPy's types, and of bfloat, which NumPy lacks."""
    found: list[tuple[str, str, object]] = []
    for name, code in zip(("char", "uchar", "short", "ushort", "int", "uint", "long"), "bBhHiIq", strict=True):
        info = np.iinfo(code)
        digits = info.bits - (info.min < 0)
        found += [
            (name, f"numeric_limits<{name}>::max()", info.max),
            (name, f"numeric_limits<{name}>::lowest()", info.min),
            ("int", f"numeric_limits<{name}>::digits + 0", digits),
            ("int", f"numeric_limits<{name}>::digits10 + 0", len(str(2**digits)) - 1),
        ]
    for name, finfo in (("half", np.finfo("e")), ("float", np.finfo("f"))):
        values = {"max": finfo.max, "min": finfo.tiny, "lowest": finfo.min, "epsilon": finfo.eps, "infinity": np.inf,
                  "denorm_min": finfo.smallest_subnormal, "round_error": 0.5, "quiet_NaN": np.nan}  # fmt: skip
        counts = {"digits": finfo.nmant + 1, "max_exponent": finfo.maxexp, "min_exponent": finfo.minexp + 1,
                  "digits10": finfo.precision}  # fmt: skip
        found += [(name, f"numeric_limits<{name}>::{member}()", value) for member, value in values.items()]
        found += [("int", f"numeric_limits<{name}>::{member} + 0", value) for member, value in counts.items()]
    largest = (2 - 2.0**-7) * 2.0**127
    values = {"max": largest, "min": 2.0**-126, "lowest": -largest, "epsilon": 2.0**-7, "infinity": np.inf,
              "denorm_min": 2.0**-133, "quiet_NaN": np.nan}  # fmt: skip
    found += [("bfloat", f"numeric_limits<bfloat>::{member}()", value) for member, value in values.items()]
    return [
        *found,
        ("float", "FLT_MAX", np.finfo("f").max),
        ("half", "HALF_MAX", 65504),
        ("int", "INT_MIN", -(2**31)),
        ("bool", "bool(numeric_limits<float>::has_infinity && numeric_limits<uint>::is_modulo)", 1),
        ("bool", "bool(numeric_limits<const int>::is_specialized && !numeric_limits<float4>::is_specialized)", 1),
    ]


_LIMITS = Table(rows(*_limits()))


@pytest.mark.parametrize(("space", "index"), _LAYOUT.params)
def test_layout(space: str, index: int) -> None:
    _LAYOUT.check(space, index)


@pytest.mark.parametrize(("space", "index"), _VALUES.params)
def test_values(space: str, index: int) -> None:
    _VALUES.check(space, index)


@pytest.mark.parametrize(("space", "index"), _TRAITS.params)
def test_type_traits_hold_as_specified(space: str, index: int) -> None:
    _TRAITS.check(space, index)


@pytest.mark.parametrize(("space", "index"), _LIMITS.params)
def test_numeric_limits_are_as_specified(space: str, index: int) -> None:
    _LIMITS.check(space, index)


def test_conversions_of_every_half_and_bfloat_are_exact() -> None:
    """A float becomes the nearest half or bfloat, ties to even; the reverse conversion is exact (MSL 8.4)."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    rng = np.random.default_rng(16)
    floats = rng.integers(0, 1 << 32, bits.size, np.uint32).view(np.float32)
    floats[::2] = np.float32(rng.standard_normal(bits.size // 2) * 2.0 ** rng.integers(-26, 17, bits.size // 2))
    ties = rng.integers(0, 1 << 16, bits.size // 32, np.uint32) << 16 | 0x8000  # between two bfloats
    floats[::32] = ties.view(np.float32)
    program = mnb.compile("""
        #include <metal_stdlib>
        using namespace metal;
        kernel void f(device const ushort* bits, device const float* floats, device float* wide, device ushort* narrow,
                      uint i [[thread_position_in_grid]]) {
            wide[2 * i] = as_type<half>(bits[i]);
            wide[2 * i + 1] = as_type<bfloat>(bits[i]);
            narrow[2 * i] = as_type<ushort>(half(floats[i]));
            narrow[2 * i + 1] = as_type<ushort>(bfloat(floats[i]));
        }""")
    wide, narrow = np.zeros((bits.size, 2), np.float32), np.zeros((bits.size, 2), np.uint16)
    program.f(bits, floats, wide.reshape(-1), narrow.reshape(-1), grid=(bits.size,))

    np.testing.assert_array_equal(wide[:, 0], bits.view(np.float16).astype(np.float32))
    np.testing.assert_array_equal(wide[:, 1], (bits.astype(np.uint32) << 16).view(np.float32))
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(narrow[:, 0].view(np.float16), floats.astype(np.float16))
    exact = floats.view(np.uint32).astype(np.uint64)
    rounded = ((exact + 0x7FFF + (exact >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)
    number = ~np.isnan(floats)
    np.testing.assert_array_equal(narrow[number, 1], rounded[number])
    assert np.isnan((narrow[~number, 1].astype(np.uint32) << 16).view(np.float32)).all()


@pytest.mark.parametrize(("refused", "accepted", "message"), [
    ("float4 v = 1; v.§xx = float2(1);", "float4 v = 1; v.xy = float2(1);", "no setter defined for property 'xx'"),
    ("int4 n = 1; float4 §v = n;", "int4 n = 1; float4 v(n);", "no viable conversion from 'int4' to 'float4'"),
    ("float4 §v(1, 2, 3);", "float4 v(1, 2, 3, 4);", "too few components for a vector of 4"),
    ("o[0] = float4(§float3(1, 2), 1);", "o[0] = float4(float3(1, 2, 3), 1);", "too few components for a vector of 3"),
    ("float2 v = 1; v.§z = 2;", "float2 v = 1; v.y = 2;", "no member named 'z' in 'float2'"),
    ("float3 v = §as_type<float3>(half4(1));", "float2 v = as_type<float2>(half4(1));",
     "as_type needs two types of the same size"),
    ("float4 v = 1; if (§v == v) v = 2;", "float4 v = 1; if (all(v == v)) v = 2;",
     "'bool4' is not contextually convertible to 'bool'"),
    ("int4 n = 1; n = n §* 2.5f;", "int4 n = 1; n = n * 2;", "overload resolution selected deleted operator '*'"),
    ("float2x2 §m = 1.0f;", "float2x2 m(1.0f);", "no viable conversion from 'float' to 'float2x2'"),
    ("float2x2 m(1); m = m §* float3(1);", "float2x2 m(1); float2 v = m * float2(1);",
     "invalid operands to binary expression ('float2x2'"),
])  # fmt: skip
def test_operation_is_refused_at_its_position_beside_one_that_compiles(
    refused: str, accepted: str, message: str,
) -> None:  # fmt: skip
    head = "#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device float4* o) { "
    with pytest.raises(mnb.CompileError, match=re.escape(message)) as caught:
        mnb.compile(f"{head}{refused.replace('§', '')} }}\n")
    column = len(head.split("\n")[2]) + refused.index("§") + 1
    assert (caught.value.line, caught.value.column) == (3, column)
    assert mnb.compile(f"{head}{accepted} }}\n").kernels
