"""Geometric functions (MSL 6.8), and pack and unpack functions (MSL 6.14)."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
COUNT = 512
REALS = {"float": (np.float32, 4e-6), "half": (np.float16, 3e-3)}

GEOMETRIC = {  # of vectors a, b, c in rows; a result is a vector, or a scalar repeated in every component
    "V(dot(a, b))": lambda a, b, c: np.sum(a * b, 1, keepdims=True),
    "V(length(a))": lambda a, b, c: np.linalg.norm(a, axis=1, keepdims=True),
    "V(length_squared(a))": lambda a, b, c: np.sum(a * a, 1, keepdims=True),
    "V(distance(a, b))": lambda a, b, c: np.linalg.norm(a - b, axis=1, keepdims=True),
    "V(distance_squared(a, b))": lambda a, b, c: np.sum((a - b) ** 2, 1, keepdims=True),
    "normalize(a)": lambda a, b, c: a / np.linalg.norm(a, axis=1, keepdims=True),
    "faceforward(a, b, c)": lambda a, b, c: np.where(np.sum(b * c, 1, keepdims=True) < 0, a, -a),
    "reflect(a, b)": lambda a, b, c: a - 2 * np.sum(a * b, 1, keepdims=True) * b,
    "refract(normalize(a), normalize(b), T(0.75))": lambda a, b, c: refracted(a, b, 0.75),
    "refract(normalize(a), normalize(b), T(1.25))": lambda a, b, c: refracted(a, b, 1.25),
}


def refracted(a: np.ndarray, b: np.ndarray, eta: float) -> np.ndarray:
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    cosine = np.sum(a * b, 1, keepdims=True)
    k = 1 - eta**2 * (1 - cosine**2)
    ray = eta * a - (eta * cosine + np.sqrt(np.maximum(k, 0))) * b
    return np.where(np.abs(k) < 0.05, np.nan, np.where(k < 0, 0.0, ray))  # NaN: too near the critical angle to tell


def cross(a: np.ndarray, b: np.ndarray, _: np.ndarray) -> np.ndarray:
    return np.cross(a, b)


@pytest.mark.long(every=5)  # 5 divides no count, so each kind, width and mode remains
@pytest.mark.parametrize("mode", ["fast", "precise"])
@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("kind", REALS)
def test_geometric_functions(kind: str, width: int, mode: str) -> None:
    rows = dict(GEOMETRIC)
    if width == 3:
        rows["cross(a, b)"] = cross
    if kind == "float":
        rows |= {f"{space}::normalize(a)": GEOMETRIC["normalize(a)"] for space in ("fast", "precise")}
        rows |= {f"V({space}::length(a))": GEOMETRIC["V(length(a))"] for space in ("fast", "precise")}
    calls = "".join(f"  out[{k} * n + i] = {call};\n" for k, call in enumerate(rows))
    program = mnb.compile(
        f"{HEAD}typedef {kind} T; typedef {kind}{width} V; typedef packed_{kind}{width} P;\n"
        "kernel void each(device const P* x, device P* out, constant uint& n, uint i [[thread_position_in_grid]]) {\n"
        f"  V a = x[i], b = x[n + i], c = x[2 * n + i];\n{calls}}}",
        math=mode,
    )
    dtype, tolerance = REALS[kind]
    x = np.random.default_rng(width).uniform(-4, 4, (3, COUNT, width)).astype(dtype)
    out = np.zeros((len(rows), COUNT, width), dtype)
    program["each"](x.reshape(-1), out.reshape(-1), COUNT, grid=(COUNT,))
    found = []
    for (call, oracle), got in zip(rows.items(), out, strict=True):
        expected = oracle(*x.astype(np.float64))
        expected = np.broadcast_to(expected, got.shape)
        known = np.isfinite(expected)
        error = np.abs(got - expected)[known].max()
        if not error <= tolerance * max(1, np.abs(expected[known]).max()):
            found.append(f"{call}: {error}")
    assert not found


def test_a_vector_function_takes_packed_vectors_swizzles_and_scalars() -> None:
    program = mnb.compile(
        HEAD
        + """
    kernel void mixed(device const packed_float3* x, device float* out) {
        float4 v = float4(1, -2, 3, -4);
        out[0] = dot(x[0], x[1]);
        out[1] = length(x[0]);
        out[2] = max(v.xy, 0.5).y;
        out[3] = clamp(v, 0, 2).z;
        out[4] = mix(float3(1), x[0], 0.5f).x;
        out[5] = pow(v.zx, 2).x;
        out[6] = max(0.0f, v.wzyx).y;
        out[7] = select(v, 7.0f, v < 0).y;
        out[8] = smoothstep(0, 2, v.xyz).x;
        out[9] = abs(int3(-4, 5, 6)).x + min(int2(3, 4), 2).y;
        out[10] = normalize(x[0]).y;
        out[11] = float(max(half2(1, 2), half(1.5h)).x);
        out[12] = any(v < -3) + 2 * all(v.xz > 0);
        out[13] = fma(v, 2, 1).x;
    }"""
    )
    x, out = np.array([3, 4, 0, 5, 6, 7], np.float32), np.zeros(14, np.float32)
    program["mixed"](x, out, grid=(1,))
    np.testing.assert_allclose(out, [39, 5, 0.5, 2, 2, 9, 3, 7, 0.5, 6, 0.8, 1.5, 3, 3], rtol=1e-6)


# Format: components' widths from the lowest bits up, and whether they are signed.
FORMATS = {
    "unorm4x8": ((8, 8, 8, 8), False), "snorm4x8": ((8, 8, 8, 8), True), "unorm2x16": ((16, 16), False),
    "snorm2x16": ((16, 16), True), "unorm10a2": ((10, 10, 10, 2), False), "unorm565": ((5, 6, 5), False),
}  # fmt: skip
EDGES = [0, -0.0, 1, -1, 0.5, -0.5, 2, -2, np.inf, -np.inf, np.nan, 0.5 / 255, 2.5 / 255, 0.999, 1e-3]


def steps(width: int, signed: bool) -> int:
    return 2 ** (width - signed) - 1


def srgb(x: np.ndarray) -> np.ndarray:
    x = np.clip(np.nan_to_num(x, nan=0.0), 0, 1)
    return np.where(x < 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)


# float with unorm4x8 and half with snorm4x8 remain; the formats differ only in their widths.
@pytest.mark.long(every=7)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", REALS)
def test_pack_and_unpack(kind: str, name: str) -> None:
    widths, signed = FORMATS[name]
    n = len(widths)
    bits = "ushort" if name == "unorm565" else "uint"
    program = mnb.compile(
        f"{HEAD}kernel void pack(device const packed_{kind}{n}* x, device {bits}* out,"
        f" uint i [[thread_position_in_grid]]) {{ out[i] = pack_{kind}_to_{name}(x[i]); }}\n"
        f"kernel void unpack(device const {bits}* x, device packed_{kind}{n}* out, uint i [[thread_position_in_grid]])"
        f" {{ out[i] = unpack_{name}_to_{kind}(x[i]); }}"
    )
    dtype = REALS[kind][0]
    random = np.random.default_rng(n)
    x = random.uniform(-1.1, 1.1, (COUNT, n)).astype(dtype)
    x.reshape(-1)[: len(EDGES)] = EDGES
    packed = np.zeros(COUNT, bits.replace("uint", "uint32").replace("ushort", "uint16"))
    program["pack"](x.reshape(-1), packed, grid=(COUNT,))
    exact = np.clip(np.nan_to_num(x.astype(np.float64), nan=0.0), -1 if signed else 0, 1)
    for k, width in enumerate(widths):
        field = packed.astype(np.int64) >> sum(widths[:k]) & (2**width - 1)
        number = np.where(signed & (field >> (width - 1) == 1), field - 2**width, field)
        assert np.abs(number - exact[:, k] * steps(width, signed)).max() <= 0.5 + 1e-2
    given = random.integers(0, 2**32, COUNT, dtype=np.uint64).astype(packed.dtype)
    given[:3] = 0, packed.dtype.type(-1 & np.iinfo(packed.dtype).max), 1 << (sum(widths) - 1)
    out = np.zeros((COUNT, n), dtype)
    program["unpack"](given, out.reshape(-1), grid=(COUNT,))
    for k, width in enumerate(widths):
        field = given.astype(np.int64) >> sum(widths[:k]) & (2**width - 1)
        number = np.where(signed & (field >> (width - 1) == 1), field - 2**width, field)
        np.testing.assert_array_equal(out[:, k], np.maximum(number / steps(width, signed), -1).astype(dtype))


@pytest.mark.parametrize("kind", REALS)
def test_srgb(kind: str) -> None:
    program = mnb.compile(
        f"{HEAD}kernel void pack(device const packed_{kind}4* x, device uint* out,"
        f" uint i [[thread_position_in_grid]]) {{ out[i] = pack_{kind}_to_srgb_unorm4x8(x[i]); }}\n"
        f"kernel void unpack(device const uint* x, device packed_{kind}4* out, uint i [[thread_position_in_grid]])"
        f" {{ out[i] = unpack_unorm4x8_srgb_to_{kind}(x[i]); }}"
    )
    dtype = REALS[kind][0]
    x = np.random.default_rng(1).uniform(-0.1, 1.1, (COUNT, 4)).astype(dtype)
    x[0, :] = np.nan, 0, 1, 2
    packed = np.zeros(COUNT, np.uint32)
    program["pack"](x.reshape(-1), packed, grid=(COUNT,))
    got = packed.view(np.uint8).reshape(-1, 4)
    expected = np.concatenate([srgb(x[:, :3].astype(float)), np.clip(x[:, 3:].astype(float), 0, 1)], 1) * 255
    assert np.abs(got - expected).max() <= 0.5 + 1e-2
    every = np.arange(256, dtype=np.uint32) * 0x01010101
    out = np.zeros((256, 4), dtype)
    program["unpack"](every, out.reshape(-1), grid=(256,))
    s = np.arange(256) / 255
    linear = np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(out[:, 0].astype(float), linear, rtol=2e-6 if kind == "float" else 1e-3, atol=1e-7)
    np.testing.assert_allclose(out[:, 3].astype(float), s, rtol=1e-6 if kind == "float" else 1e-3)
