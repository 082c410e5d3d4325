"""A buffer that is certainly too short for the grid is refused; one that only might be is accepted."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
PAIR = "device const float* x, device float* y"
GUARD = f"{PAIR}, constant uint& n"
ROWS = {
    # name -> (parameters before the position, body, the buffers certainly indexed by it)
    "plain": (PAIR, "y[i] = 2 * x[i];", {"x", "y"}),
    "through a variable": (PAIR, "float v = sin(x[i]); y[i / 2] = v;", {"x"}),
    "compound": ("device float* x", "x[i] += 1;", {"x"}),
    "guarded": (GUARD, "if (i < n) y[i] = x[i];", set()),
    "left early": (GUARD, "if (i >= n) return; y[i] = x[i];", set()),
    "ternary": (GUARD, "y[0] = i < n ? x[i] : 0;", set()),
    "short circuit": (GUARD, "bool b = i < n && x[i] > 0; y[0] = b;", set()),
    "first operand": (PAIR, "bool b = x[i] > 0 && y[i] > 0; (void)b;", {"x"}),
    "changed position": (PAIR, "i /= 2; y[i] = x[i];", set()),
    "shadowed position": (PAIR, "uint j = 0; { uint i = j; y[i] = x[i]; }", set()),
    "in a loop": (GUARD, "for (uint k = 0; k < n; ++k) y[i] = x[i];", set()),
    "another index": (PAIR, "y[i / 4] = x[i * 2];", set()),
}  # fmt: skip


@pytest.mark.parametrize(("params", "body", "every"), ROWS.values(), ids=ROWS.keys())
def test_parameters_accessed_at_every_grid_position_are_known(params: str, body: str, every: set[str]) -> None:
    kernel = mnb.compile(f"{HEAD}kernel void k({params}, uint i [[thread_position_in_grid]]) {{ {body} }}").k
    assert {p.name for p in kernel.signature.params if p.every} == every


def test_a_short_array_is_refused_before_anything_runs() -> None:
    kernel = mnb.compile(HEAD + """
kernel void saxpy(device const float* x, device const float* y, device float* out, constant float& a,
                  uint i [[thread_position_in_grid]]) { out[i] = a * x[i] + y[i]; }""").saxpy
    x, y, out = np.ones(1000, np.float32), np.ones(10, np.float32), np.zeros(1000, np.float32)
    with pytest.raises(mnb.ArgumentError) as error:
        kernel(x, y, out, 2.0)
    assert str(error.value) == (
        "saxpy: argument 'y' [[buffer(1)]] is device const float*; each of the grid's 1,000 threads accesses the "
        "element at its own position; got 10. Pass at least 1,000 elements, or grid=10, or guard y[…] in the kernel."
    )
    assert not out.any()
    kernel(x, y, out, 2.0, grid=10)
    assert out[:10].tolist() == [3.0] * 10
    assert not out[10:].any()


def test_length_is_counted_in_whole_vectors() -> None:
    kernel = mnb.compile(HEAD + """
kernel void twice(device float4* x, uint i [[thread_position_in_grid]]) { x[i] = x[i] * 2; }""").twice
    x = np.ones(12, np.float32)
    with pytest.raises(mnb.ArgumentError, match="got 3"):
        kernel(x, grid=4)
    kernel(x, grid=3)
    assert (x == 2).all()


HISTOGRAM = """#include <metal_stdlib>
using namespace metal;
kernel void histogram(device const uint* data, device atomic_uint* bins, uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&bins[data[i]], 1, memory_order_relaxed);
}
"""


def test_grid_of_the_outputs_shape_warns_if_an_input_is_longer() -> None:
    histogram = mnb.compile(HISTOGRAM).histogram
    data, bins = np.zeros(1000, np.uint32), np.zeros(256, np.uint32)
    message = r"histogram: the grid has the shape of 'bins', 256 threads, but each .* 'data', which has 1,000. Pass"
    with pytest.warns(mnb.MetalnbWarning, match=message) as caught:
        histogram(data, bins)
    assert [w.filename for w in caught] == [__file__]
    histogram(data, bins, grid=1000)  # as documented: no warning
    histogram(data[:256].copy(), bins)
    assert bins[0] == 256 + 1000 + 256
