"""The remedies that a profile suggests: for divergent lanes, for bank conflicts by padding, for idle processors."""

from dataclasses import replace

import numpy as np
import pytest
from measuring.profiling.profiled_kernels import LONG_LOOP

import metalnb as mnb
from metalnb.profiling.cost_findings import findings
from metalnb.profiling.profile_record import Profile

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
TRANSPOSE = """kernel void f(device const float* x, device float* out, uint2 g [[thread_position_in_grid]]) {
    out[g.x * 64 + g.y] = x[g.y * 64 + g.x];
}"""


def profiled(text: str, *args: object, **call: object) -> Profile:
    return mnb.profile(mnb.compile(HEAD + text).f, *args, **call)


@pytest.mark.parametrize("shape", [(16, 16), (8, 8)])
def test_in_a_square_threadgroup_lanes_of_a_row_are_neighbors(shape: tuple[int, int]) -> None:
    x = np.zeros((64, 64), np.float32)
    (found,) = findings(profiled(TRANSPOSE, x, np.zeros_like(x), threadgroup=shape))
    assert "most neighbors are 256 bytes apart. Swap the indices" in str(found)


def test_a_narrow_threadgroup_breaks_rows_in_pieces() -> None:
    x = np.zeros((64, 64), np.float32)
    text = TRANSPOSE.replace("out[g.x * 64 + g.y]", "out[g.y * 64 + g.x]")
    found = findings(profiled(text, x, np.zeros_like(x), threadgroup=(4, 8)))
    assert "they are in 8 pieces. Make threadgroups 32 wide, so that a SIMD-group stays in one row." in str(found[0])
    assert findings(profiled(text, x, np.zeros_like(x), threadgroup=(32, 8))) == ()


def matvec(index: str, grid: tuple[int, int], threadgroup: tuple[int, int]) -> Profile:
    """Return the profile of sums over 1,024 bytes of `w`: a row, part of a row, or the elements at `index`."""
    text = f"""kernel void f(device const char* w, device int* out, uint2 at [[thread_position_in_grid]]) {{
        int sum = 0;
        for (uint k = 0; k < 1024; ++k) sum += w[{index}];
        out[at.y * 64 + at.x] = sum;
    }}"""
    arguments = np.zeros(1 << 21, np.int8), np.zeros(1 << 14, np.int32)
    return profiled(text, *arguments, grid=grid, threadgroup=threadgroup)


@pytest.mark.parametrize(
    ("index", "grid", "threadgroup", "cure"),
    [
        ("at.x * 1024 + k", (256, 1), (64, 1), "Let the lanes of a SIMD-group advance together, adjacent"),
        ("at.y * 4096 + at.x * 1024 + k", (4, 64), (4, 16), "Let the lanes of a SIMD-group advance together"),
        ("at.x * 1024 + k", (64, 16), (16, 4), "Swap the indices"),  # at.y: one address for all
        ("at.x * 1024 + k", (64, 16), (32, 4), "Swap the indices"),
        ("at.x * 32768 + k * 32", (64, 1), (64, 1), "Swap the indices"),  # reads a sector once: not along a row
    ],
)
def test_uncoalesced_access_gets_the_right_cure(
    index: str, grid: tuple[int, int], threadgroup: tuple[int, int], cure: str,
) -> None:  # fmt: skip
    found = next(f for f in findings(matvec(index, grid, threadgroup)) if f.kind == "uncoalesced")
    assert f". {cure}" in str(found)
    assert ("and each walks its own range of memory, in 1,024 steps" in str(found)) == ("together" in cure)


def turned_tile(kind: str, rows: int, columns: int, threadgroup: tuple[int, int]) -> Profile:
    text = f"""kernel void f(device const {kind}* x, device {kind}* out, uint2 i [[thread_position_in_threadgroup]],
        uint l [[thread_index_in_threadgroup]]) {{
        threadgroup {kind} t[{rows}][{columns}];
        t[i.y][i.x] = x[l];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[l] = t[i.x][i.y];
    }}"""
    count = threadgroup[0] * threadgroup[1]
    x = np.zeros(count, np.int8 if kind == "char" else np.float32)
    return profiled(text, x, np.zeros_like(x), grid=threadgroup, threadgroup=threadgroup)


@pytest.mark.parametrize(
    ("kind", "size", "threadgroup", "padding"),
    [
        ("float", 32, (32, 32), "1 element"), ("float", 16, (16, 16), "2 elements"),
        ("char", 64, (32, 4), "4 elements"),
    ],
)  # fmt: skip
def test_the_padding_that_is_named_helps(kind: str, size: int, threadgroup: tuple[int, int], padding: str) -> None:
    before = turned_tile(kind, size, size, threadgroup)
    found = next(f for f in findings(before) if f.kind == "conflicts")
    assert f"Make the array's rows {padding} longer" in str(found)
    more = int(padding.partition(" ")[0])
    after = turned_tile(kind, size, size + more, threadgroup)
    assert before.conflicts > 0
    assert 4 * after.conflicts <= before.conflicts


def test_padding_that_moves_a_conflict_from_columns_to_rows_is_not_named() -> None:
    found = next(f for f in findings(turned_tile("float", 8, 8, (8, 8))) if f.kind == "conflicts")
    assert "most neighbors are 8 words apart, and there are 32 banks. Padding does not help: let" in str(found)
    for more in range(1, 5):
        assert turned_tile("float", 8, 8 + more, (8, 8)).conflicts >= 2


def test_too_few_threadgroups_for_a_device_are_a_finding_where_it_takes_long() -> None:
    x = np.zeros(1024, np.float32)
    profile = profiled(LONG_LOOP, x, np.zeros_like(x), threadgroup=256)
    assert str(findings(profile)[-1]).startswith(
        "line 5, the costliest: the grid has 4 threadgroups, so 128 of the 132 processors of an NVIDIA H100 SXM "
        "are idle. Let more threads share the work"
    )
    assert not any(f.kind == "idle" for f in findings(replace(profile, devices=("M2",), groups=10)))
    short = turned_tile("float", 32, 32, (32, 32))  # ends faster than a launch takes
    assert not any(f.kind == "idle" for f in findings(short))
