"""A threadgroup larger than its array in threadgroup memory is refused before it runs: it would write elsewhere."""

import numpy as np
import pytest

import metalnb as mnb

CELL = """
#include <metal_stdlib>
using namespace metal;

kernel void sums(device const float* x, device float* out, constant uint& n, uint i [[thread_position_in_grid]],
                 uint t [[thread_position_in_threadgroup]]) {
    threadgroup float first[300], part[256];
    part[t] = i < n ? x[i] : 0;
    if (t < 300) first[t] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = part[0];
}
kernel void flat(device float* out, uint2 at [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                 uint2 size [[threads_per_grid]]) {
    threadgroup float part[64];
    part[t] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[at.y * size.x + at.x] = part[0];
}
kernel void by_simd(device float* out, uint i [[thread_position_in_grid]],
                    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup float part[8];
    part[simd] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = part[0];
}
kernel void guarded(device float* out, uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    threadgroup float part[64];
    if (t < 64) part[t] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = part[0];
}
kernel void changed(device float* out, uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    threadgroup float part[64];
    t = t % 64;
    part[t] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = part[0];
}
"""


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(CELL)


def test_array_and_position_are_read_from_the_source(program: mnb.Program) -> None:
    assert {name: kernel.signature.own_elements for name, kernel in program.kernels.items()} == {
        "sums": (("part", "thread_position_in_threadgroup", 256),),
        "flat": (("part", "thread_index_in_threadgroup", 64),),
        "by_simd": (("part", "simdgroup_index_in_threadgroup", 8),),
        "guarded": (),
        "changed": (),
    }


def test_threadgroup_larger_than_its_array_is_refused(program: mnb.Program) -> None:
    x = np.ones(1024, np.float32)
    with pytest.raises(mnb.LaunchError) as caught:
        program.sums(x, n=1024, grid=1024, threadgroup=257)
    assert str(caught.value) == (
        "sums: a threadgroup of 257 threads is too large for its 'part': each thread uses the element at its own "
        "[[thread_position_in_threadgroup]], and there are 256. Pass a threadgroup of at most 256 threads, or make "
        "'part' larger."
    )
    with pytest.raises(mnb.LaunchError, match=r"8 × 9 threads .* at most 64 threads"):
        program.flat(grid=(16, 18), threadgroup=(8, 9))
    with pytest.raises(mnb.LaunchError, match=r"each SIMD-group uses .* there are 8\. .* at most 256 threads"):
        program.by_simd(grid=1024, threadgroup=288)


def test_threadgroups_that_fit_their_arrays_run(program: mnb.Program) -> None:
    x = np.ones(1024, np.float32)
    assert (program.sums(x, n=1024, grid=1024, threadgroup=256) == 1).all()
    # A threadgroup is never larger than its grid.
    assert (program.sums(x[:100], n=100, grid=100, threadgroup=512) == 1).all()
    assert (program.flat(grid=(16, 16), threadgroup=(8, 8)) == 1).all()
    assert (program.by_simd(grid=1024, threadgroup=256) == 1).all()
    assert (program.guarded(grid=1024, threadgroup=128) == 1).all()
    assert (program.changed(grid=1024, threadgroup=128) == 1).all()
