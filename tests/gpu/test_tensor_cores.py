"""SIMD-group matrices in the engine `cuda`'s layout for tensor cores, run on `cpu` with emulated instructions.

This shows that each layout is filled, moved and stored correctly. Only a GPU can show that the emulation matches the
instructions.
"""

from __future__ import annotations

import dataclasses
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.engine.cpu import cpu_engine, toolchain
from metalnb.engine.vectorizer.not_vectorized import NotVectorized
from metalnb.library_kernels.launching.programs import instantiation

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
TESTS = Path(__file__).resolve().parent
CUDA = TESTS.parents[1] / "metalnb" / "engine" / "cuda"


@pytest.fixture(autouse=True)
def _cores(monkeypatch: pytest.MonkeyPatch) -> None:
    if not mnb.engines()["cpu"].available:
        pytest.skip("needs the engine 'cpu'")
    usual = toolchain.host_target()
    texts = (TESTS / "emulated_cores.h", CUDA / "tensor_cores.h")  # which the cache's key does not include
    digest = zlib.crc32(b"".join(path.read_bytes() for path in texts))
    arguments = (f"-D$EMULATED={digest}", '-D$MATRIX_FORMS="emulated_cores.h"', f"-I{TESTS}", f"-I{CUDA}")
    target = dataclasses.replace(usual, flags=(*usual.flags, *arguments))
    monkeypatch.setattr(toolchain, "host_target", lambda: target)

    def apart(_: Any) -> Any:  # the emulated instructions need a fiber per thread
        message = "emulated"
        raise NotVectorized(message)

    monkeypatch.setattr(cpu_engine, "open_vector_binary", apart)


def run(body: str, *buffers: Any) -> None:
    text = f"""{HEAD}
    kernel void k(device const half* x, device const half* y, device float* z, uint l [[thread_index_in_simdgroup]]) {{
        threadgroup half p[16 * 16], q[16 * 16];
        threadgroup float s[16 * 16];
        for (uint i = l; i < 256; i += 32) {{ p[i] = x[i]; q[i] = y[i]; s[i] = 0; }}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        {body}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = l; i < 256; i += 32) z[i] = s[i];
    }}"""
    mnb.compile(text, engine="cpu").k(*buffers, grid=32, threadgroup=32)


BLOCK = """#ifdef METALNB_MATRIX_BLOCKS
    simdgroup_half8x8 a[2][2], b[2];
    simdgroup_float8x8 c[2] = {simdgroup_float8x8(2), simdgroup_float8x8(3)};
    for (uint r = 0; r < 2; ++r)
        for (uint k = 0; k < 2; ++k) simdgroup_load(a[r][k], p + 128 * r + 8 * k, 16);
    for (uint k = 0; k < 2; ++k) simdgroup_load(b[k], q + 8 * k, 16, ulong2(0), true);
    metalnb_multiply_block(c[0], c[1], a[0][0], a[0][1], a[1][0], a[1][1], b[0], b[1]);
    for (uint r = 0; r < 2; ++r) simdgroup_store(c[r], s + 128 * r, 16);
#endif"""

ONE = "simdgroup_half8x8 a, b; simdgroup_load(a, p, 16); simdgroup_load(b, q, 16);"
FLOAT = "simdgroup_float8x8 d; "


@pytest.mark.parametrize(("body", "wanted"), [
    (BLOCK, lambda x, y: x @ y[:8].T + np.vstack([2 * np.eye(8), 3 * np.eye(8)])),
    (ONE + FLOAT + "simdgroup_multiply(d, a, b); simdgroup_store(d, s, 16);", lambda x, y: x[:8, :8] @ y[:8, :8]),
    ("simdgroup_half8x8 a, b; simdgroup_load(a, p, 16, ulong2(0, 8), true); simdgroup_load(b, q, 16, ulong2(8, 0));"
     + FLOAT + "simdgroup_multiply(d, a, b); simdgroup_store(d, s, 16);", lambda x, y: x[8:, :8].T @ y[:8, 8:]),
    (ONE + FLOAT + "simdgroup_multiply(d, a * b, b * a); simdgroup_store(d, s, 16);",
     lambda x, y: x[:8, :8] @ y[:8, :8] @ y[:8, :8] @ x[:8, :8]),
    (ONE + FLOAT + "simdgroup_multiply(d, a, b); simdgroup_store(d, s, 16, ulong2(8, 8), true);",
     lambda x, y: np.block([[np.zeros((8, 16))], [np.zeros((8, 8)), (x[:8, :8] @ y[:8, :8]).T]])),
    (ONE + FLOAT + "a.thread_elements()[0] += 1; b.thread_elements()[0] += 1; simdgroup_multiply(d, a, b);"
     "simdgroup_store(d, s, 16);", lambda x, y: (x[:8, :8] + EVEN) @ (y[:8, :8] + EVEN)),
    (ONE + FLOAT + "simdgroup_multiply(d, a, b); d.thread_elements()[1] = 7; simdgroup_multiply_accumulate(d, b, a, d);"
     "simdgroup_store(d, s, 16);",
     lambda x, y: np.where(EVEN, x[:8, :8] @ y[:8, :8], 7) + y[:8, :8] @ x[:8, :8]),
    (ONE + "simdgroup_half8x8 c = a * b; for (uint e = 0; e < 2; ++e) "
     "s[16 * ((l >> 2 & 4) + (l >> 1 & 3)) + (l >> 1 & 4) + (l & 1) * 2 + e] = c.thread_elements()[e];",
     lambda x, y: x[:8, :8] @ y[:8, :8]),
])  # fmt: skip
def test_a_matrix_is_right_in_each_layout(body: str, wanted: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-2, 3, (16, 16)).astype(np.float16) for _ in range(2))
    z = np.zeros((16, 16), np.float32)
    run(body, x, y, z)
    expected = np.zeros((16, 16))
    made = wanted(x.astype(np.float64), y.astype(np.float64))
    expected[: made.shape[0], : made.shape[1]] = made
    np.testing.assert_array_equal(z, expected)


EVEN = np.tile([1, 0], (8, 4))  # a thread's first element


def test_attention_is_right_in_the_cores_layout() -> None:
    """Scores are scaled, masked and turned into weights in the layout in which lanes hold them."""
    text = instantiation("attend", "attend_matrices<half, 16, 32, 16, 2, false, true>")
    kernel = mnb.compile(f"#include <metalnb/attention_matrices.metal>\n{text}", engine="cpu").attend
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for shape in ((37, 16), (40, 16), (40, 24)))
    out = np.zeros((37, 24), np.float16)
    settings = {
        "queries": 37, "keys": 40, "head_size": 16, "value_size": 24, "query_heads_per_key_head": 1, "causal": 1,
        "query_blocks": 1, "scale": 0.25,
    }  # fmt: skip
    zeros = dict.fromkeys(("q", "k", "v", "mask", "mask_pitch", "key_parts", "part_length"), 0)
    kernel(q, k, v, np.zeros(1, np.float32), out, {**settings, **zeros}, grid=128, threadgroup=128)
    wide = (x.astype(np.float64) for x in (q, k, v))
    expected = mnb.scaled_dot_product_attention.row.reference(*wide, is_causal=True)
    np.testing.assert_allclose(out, expected, rtol=0, atol=2.0**-11 * np.abs(v).max())


@pytest.mark.long(every=3)  # Both numbers of bits remain
@pytest.mark.parametrize(("kind", "bits", "symmetric", "m", "tall"), [
    ("half", 4, "false", 3, 2), ("half", 8, "true", 1, 1), ("bfloat", 4, "true", 2, 1), ("bfloat", 8, "false", 5, 2),
    ("half", 8, "true", 8, 1), ("half", 4, "false", 2, 2),
])  # fmt: skip
def test_quantized_weights_are_unpacked_into_the_cores_layout(
    kind: str, bits: int, symmetric: str, m: int, tall: int
) -> None:
    """Each unit has its own columns of the right factor, or each vector one; the last step has units beyond the row."""
    name = "quantized_pair" if m <= 2 else "quantized_eight"
    template = f"{name}<{kind}, float, {bits}, {symmetric}, {tall}, 2>"
    text = f"#include <metalnb/quantized_matrices.metal>\n{instantiation('dots', template)}"
    rng = np.random.default_rng(0)
    n, k, blocks = 37, 352, 11
    words = rng.integers(0, 1 << 32, (n, blocks * bits), np.uint32)
    scales, minima = rng.standard_normal((2, n, blocks), np.float32)
    x = rng.integers(-2, 3, (m, k)).astype(np.float32)
    dtype = np.dtype(np.float16) if kind == "half" else pytest.importorskip("ml_dtypes").bfloat16
    out = np.zeros((m, n), dtype)
    told = {"x": 0, "words": 0, "scales": 0, "minima": 0, "M": m, "N": n, "K": k, "unused": 0}
    kernel = mnb.compile(text, engine="cpu").dots
    form = {"grid": -(-n // (16 * tall)) * 64, "threadgroup": 64}
    kernel(x.astype(dtype).view(np.uint16), words, scales, minima, out, told, **form)
    got = out.astype(np.float64)
    parts = (words, scales.astype(np.float64), *(() if symmetric == "true" else (minima.astype(np.float64),)))
    expected = mnb.quantized_matmul.row.reference(x.astype(np.float64), *parts)
    rounding = 2.0**-11 if kind == "half" else 2.0**-8
    np.testing.assert_allclose(got, expected, rtol=rounding, atol=1e-6 * np.abs(expected).max())
