"""Float negations and threadgroup barriers: each SIMD-group keeps its own, however the negation is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, SIZES, applied, module, opcodes, validate, without, without_options

import metalnb as mnb
from metalnb.engine.cpu.spirv.pass_table import rewritten

FORMS = {
    "negation": "float v = -f[i];",
    "product": "float v = f[i] * -1.0f;",
    "quotient": "float v = f[i] / -1.0f;",
    "difference": "float v = 0.0f - f[i];",
    "minus zero": "float v = -0.0f - f[i];",
    "of a difference": "float v = -(f[i] - zero[0]);",
    "chosen": "float v = f[i] * (f[i] > 0 ? -1.0f : 1.0f);",
    "bits": "float v = as_type<float>(as_type<uint>(f[i] - zero[0]) ^ 0x80000000u);",
    "bits set": "float v = as_type<float>(as_type<uint>(f[i] - zero[0]) | 0x80000000u);",
    "bits added": "float v = as_type<float>(as_type<uint>(f[i] - zero[0]) + 0x80000000u);",
    "half": "float v = float(-half(f[i]));",
    "half product": "float v = float(half(f[i]) * -1.0h);",
    "vector": "float4 q = -float4(f[i], 1, 2, 3); float v = q.x;",
    "vector product": "float2 q = float2(f[i], 1) * -1.0f; float v = q.x;",
    "vector difference": "float3 q = float3(0) - float3(f[i], 1, 2); float v = q.x;",
    "loaded vector": "float4 q = -((device const float4*)f)[i / 4]; float v = q[i % 4];",
    "half vector": "half4 q = -half4(half(f[i]), 1, 2, 3); float v = float(q.x);",
    "magnitude": "float v = -fabs(f[i]);",
    "sign copied": "float v = copysign(f[i], -1.0f);",
}
TEXT = HEAD + """
kernel void k(device float* out, device uint* of, device const float* f, constant float* zero,
              uint i [[thread_position_in_grid]],
              uint l [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
    threadgroup uint shared[256];
    FORM
    shared[l] = l;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint next = shared[(l + 1) % size];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    of[i] = next;
    out[i] = v;
}
"""


def wrong(kernel: mnb.Kernel, size: int) -> int:
    """The number of threads with a wrong answer."""
    f = np.arange(1, 2 * size + 1, dtype=np.float32)
    out, of = np.zeros_like(f), np.zeros(2 * size, np.uint32)
    kernel(out, of, f, np.zeros(1, np.float32), grid=2 * size, threadgroup=size)
    assert (of == (np.arange(2 * size) + 1) % size).all()
    return int((out != -f).sum())


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_each_simdgroup_keeps_its_own(form: str, math: str) -> None:
    kernel = mnb.compile(TEXT.replace("FORM", form), engine="cpu", math=math, checked=False).k
    assert {size: wrong(kernel, size) for size in SIZES} == dict.fromkeys(SIZES, 0)


ACROSS = HEAD + """
kernel void k(device float* out, uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]],
              uint size [[threads_per_threadgroup]]) {
    threadgroup uint shared[256];
    half v = FORM;
    shared[l] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 1; k < 100; k = k * 2 + 1) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (l < k && l + k < size) shared[l] |= shared[l + k];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = v;
}
"""


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("form", ["-half(l)", "half(-float(l))", "half(l) * -1.0h", "half(float(l) * -1.0f)"])
def test_a_half_across_a_reduction(form: str, math: str) -> None:
    """The sum that hid the sign was the sign's flip to the device's compiler."""
    kernel = mnb.compile(ACROSS.replace("FORM", form), engine="cpu", math=math).k
    for size in (33, 96, 256):
        out = np.zeros(2 * size, np.float32)
        kernel(out, grid=2 * size, threadgroup=size)
        np.testing.assert_array_equal(out, -np.tile(np.arange(size, dtype=np.float32), 2))


@pytest.mark.parametrize("math", ["fast", "precise"])
def test_without_the_pass_all_have_the_last_ones(monkeypatch: pytest.MonkeyPatch, math: str) -> None:
    """A canary: it tells when the runtime no longer needs the pass."""
    without(monkeypatch, "plain_negations")
    without_options(monkeypatch)
    text = TEXT.replace("FORM", FORMS["negation"]) + "// without"
    kernel = mnb.compile(text, engine="cpu", math=math, checked=False).k
    assert wrong(kernel, 64) == 64, "the runtime no longer needs the pass plain_negations"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_module_is_valid(form: str, tmp_path: Path) -> None:
    validate(rewritten(module(TEXT.replace("FORM", form), "k"), wide=False), tmp_path)


def test_a_negation_is_exact(rng: np.random.Generator) -> None:
    """Of zeros, infinities, NaN and denormals only the sign changes."""
    bits = np.concatenate([rng.integers(0, 2**32, 248, np.uint32), np.array(
        [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFC00000, 1, 0x80000001], np.uint32)])  # fmt: skip
    out, of = np.zeros(256, np.float32), np.zeros(256, np.uint32)
    kernel = mnb.compile(TEXT.replace("FORM", FORMS["negation"]), engine="cpu", math="precise").k
    kernel(out, of, bits.view(np.float32), np.zeros(1, np.float32), grid=256, threadgroup=256)
    assert (out.view(np.uint32) == bits ^ 0x80000000).all()


def test_a_kernel_without_a_barrier_is_left_alone() -> None:
    text = HEAD + "kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] = -x[i]; }"
    code = module(text, "k")
    assert 127 in opcodes(code)
    assert applied("plain_negations", code) == code
