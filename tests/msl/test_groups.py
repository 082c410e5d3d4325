"""SIMD-group and quad-group functions (MSL 6.9): complete and partial groups, branches, and every type."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import metalnb as mnb

GRID, THREADGROUP = 109, 64  # SIMD-groups of 32, 32, 32 and 13 threads
TYPES = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32, "uint": np.uint32,
    "long": np.int64, "ulong": np.uint64, "half": np.float16, "float": np.float32,
}  # fmt: skip
THREADS = np.arange(GRID)
BRANCHES = {  # a condition in MSL, and the threads for which it is true
    "everyone": ("true", THREADS >= 0),
    "a third": ("i % 3 == 1", THREADS % 3 == 1),
    "no first": ("i % 32 > 4", THREADS % 32 > 4),
    "quad without one": ("i % 4 != 2", THREADS % 4 != 2),
}

Values = dict[int, Any]  # of the active lanes
UNDEFINED = None  # the value from an inactive thread


@dataclass(frozen=True, slots=True)
class Group:
    """A function over a group of threads.

    Attributes
    ----------
    name : str
    oracle : callable
        Computes, from the active lanes' values, the result of one of those lanes, or UNDEFINED.
    arguments : str
        The call's arguments after x.
    integral : bool
        True for a function of integers alone.
    """

    name: str
    oracle: Callable[[Values, int], Any]
    arguments: str = ""
    integral: bool = False


def _before(v: Values, lane: int, *, own: bool) -> Iterable[Any]:
    return [v[k] for k in sorted(v) if k < lane or (own and k == lane)]


def _bits(operate: Callable[[int, int], int]) -> Callable[[Values, int], int]:
    def fold(v: Values, _: int) -> int:
        first, *rest = (int(x) for x in v.values())
        for x in rest:
            first = operate(first, x)
        return first

    return fold


def _fill(v: Values, lane: int, source: int, modulo: int) -> Any:
    """Return x from `source`, or the filling x + 9 from the other end of the lane's segment."""
    start = lane - lane % modulo
    wrapped = start + (source - start) % modulo
    if wrapped not in v:
        return UNDEFINED
    return v[wrapped] if wrapped == source else v[wrapped] + 9


def functions(prefix: str, size: int) -> list[Group]:
    """Return the functions of SIMD-groups (32 threads) or quad-groups (4), which differ only in the group's size."""

    def down(v: Values, n: int) -> Any:
        return v.get(n + 1) if n + 1 < size else v[n]

    def up(v: Values, n: int) -> Any:
        return v.get(n - 1) if n >= 1 else v[n]

    rows = [
        Group("sum", lambda v, n: sum(v.values())),
        Group("product", lambda v, n: math.prod(v.values())),
        Group("max", lambda v, n: max(v.values())),
        Group("min", lambda v, n: min(v.values())),
        Group("and", _bits(lambda a, b: a & b), integral=True),
        Group("or", _bits(lambda a, b: a | b), integral=True),
        Group("xor", _bits(lambda a, b: a ^ b), integral=True),
        Group("prefix_inclusive_sum", lambda v, n: sum(_before(v, n, own=True))),
        Group("prefix_exclusive_sum", lambda v, n: sum(_before(v, n, own=False))),
        Group("prefix_inclusive_product", lambda v, n: math.prod(_before(v, n, own=True))),
        Group("prefix_exclusive_product", lambda v, n: math.prod(_before(v, n, own=False))),
        Group("broadcast", lambda v, n: v.get(3), ", 3"),
        Group("broadcast_first", lambda v, n: v[min(v)]),
        Group("shuffle", lambda v, n: v.get((n * 5 + 1) % size), f", (lane * 5 + 1) % {size}"),
        Group("shuffle_xor", lambda v, n: v.get(n ^ 1), ", 1"),
        Group("shuffle_xor", lambda v, n: v.get(n ^ 3), ", 3"),
        Group("shuffle_down", down, ", 1"),
        Group("shuffle_up", up, ", 1"),
        Group("shuffle_rotate_down", lambda v, n: v.get((n + 3) % size), ", 3"),
        Group("shuffle_rotate_up", lambda v, n: v.get((n - 3) % size), ", 3"),
        Group("shuffle_and_fill_down", lambda v, n: _fill(v, n, n + 2, size), ", T(x + 9), 2"),
        Group("shuffle_and_fill_up", lambda v, n: _fill(v, n, n - 2, size), ", T(x + 9), 2"),
        Group("shuffle_and_fill_down", lambda v, n: _fill(v, n, n + 1, 2), ", T(x + 9), 1, 2"),
        Group("shuffle_and_fill_up", lambda v, n: _fill(v, n, n - 1, 2), ", T(x + 9), 1, 2"),
        Group("is_first", lambda v, n: n == min(v)),
        Group("all", lambda v, n: all(x > 1 for x in v.values()), " > 1"),
        Group("any", lambda v, n: any(x > 2 for x in v.values()), " > 2"),
        Group("ballot", lambda v, n: sum((x > 1) << k for k, x in v.items()) % 128, " > 1"),
        Group("active_threads_mask", lambda v, n: sum(1 << k for k in v) % 128),
    ]
    return [Group(f"{prefix}_{row.name}", row.oracle, row.arguments, row.integral) for row in rows]


ROWS = {32: functions("simd", 32), 4: functions("quad", 4)}


def call(row: Group) -> str:
    kind, name = row.name.split("_", 1)
    if name in {"is_first", "active_threads_mask"}:
        text = f"{row.name}()"
    else:
        text = f"{row.name}(x{row.arguments})"
    if name in {"ballot", "active_threads_mask"}:  # the lowest bits, which every type has
        text = f"(({kind}_vote::vote_t){text} % 128)"
    return text


def source(rows: list[Group], kind: str, condition: str) -> str:
    lines = [
        f"  {{ T r = in[n]; if ({condition}) r = T({call(row)}); out[{k} * n + i] = r; }}" for k, row in enumerate(rows)
    ]
    return "\n".join([
        "#include <metal_stdlib>",
        "using namespace metal;",
        f"typedef {kind} T;",
        "kernel void each(device const T* in, device T* out, constant uint& n, uint i [[thread_position_in_grid]],",
        "                 ushort lane [[thread_index_in_simdgroup]]) {",
        "  const T x = in[i];",
        *lines,
        "}",
    ])  # fmt: skip


def simdgroups() -> list[range]:
    groups = [range(start, min(start + THREADGROUP, GRID)) for start in range(0, GRID, THREADGROUP)]
    return [group[k : k + 32] for group in groups for k in range(0, len(group), 32)]


def expected(row: Group, size: int, x: np.ndarray, active: np.ndarray, untouched: Any) -> list[Any]:
    """Return every thread's result, UNDEFINED where the specification leaves it undefined."""
    results: list[Any] = [untouched] * GRID
    for threads in simdgroups():
        for start in range(0, len(threads), size):
            members = threads[start : start + size]
            values = {k: x[i].item() for k, i in enumerate(members) if active[i]}
            for k, i in enumerate(members):
                if active[i]:
                    results[i] = row.oracle(values, k)
    return results


# SIMD-groups with every type in one branch, and both kinds of group with one type in every branch.
CASES = [(kind, "a third", 32) for kind in TYPES if kind not in {"float", "long", "ulong"}]
CASES += [("float", branch, size) for branch in BRANCHES for size in ROWS] + [
    ("half", "a third", 4),
    ("long", "a third", 4),
    ("ulong", "a third", 4),
]


# A second each; integers of three widths and a float remain, in SIMD-groups and in quads.
@pytest.mark.long(every=4)
@pytest.mark.parametrize(("kind", "branch", "size"), CASES)
def test_simd_functions_cover_active_threads(kind: str, branch: str, size: int) -> None:
    dtype = TYPES[kind]
    rows = [row for row in ROWS[size] if not (row.integral and np.issubdtype(dtype, np.floating))]
    x = np.append(np.where(THREADS % 11 == 4, 2, 1) + (THREADS % 29 == 7), 100).astype(
        dtype
    )  # the last one: the mark of an unwritten result
    out = np.zeros((len(rows), GRID), dtype)
    condition, active = BRANCHES[branch]
    program = mnb.compile(source(rows, kind, condition))
    program["each"](x, out.reshape(-1), GRID, grid=(GRID,), threadgroup=(THREADGROUP,))
    found = []
    for row, got in zip(rows, out, strict=True):
        for thread, want in enumerate(expected(row, size, x, active, 100)):
            if want is not UNDEFINED and got[thread] != np.asarray(want).astype(dtype):
                found.append(f"{row.name}{row.arguments} in thread {thread} is {got[thread]}, not {want}")
                break
    assert not found


@pytest.mark.parametrize("kind", ["float3", "half2", "short4", "uchar3"])
def test_groups_take_vectors_by_element(kind: str) -> None:
    text = """
    #include <metal_stdlib>
    using namespace metal;
    kernel void each(device float* out, uint i [[thread_position_in_grid]]) {
        KIND x = KIND(i % 7);
        x.y = 1;
        bool same = all(simd_sum(x) == KIND(simd_sum(x.x), simd_sum(x.y) REST));
        same &= all(simd_shuffle_down(x, 3) == KIND(simd_shuffle_down(x.x, 3), 1 REST));
        same &= all(quad_prefix_inclusive_sum(x).xy == vec<ELEMENT, 2>(quad_prefix_inclusive_sum(x.x), i % 4 + 1));
        out[i] = same;
    }"""
    rest = {2: "", 3: ", simd_sum(x.z)", 4: ", simd_sum(x.z), simd_sum(x.w)"}[int(kind[-1])]
    shifted = {2: "", 3: ", simd_shuffle_down(x.z, 3)", 4: ", simd_shuffle_down(x.z, 3), simd_shuffle_down(x.w, 3)"}
    text = text.replace("REST", rest, 1).replace("REST", shifted[int(kind[-1])], 1)
    program = mnb.compile(text.replace("KIND", kind).replace("ELEMENT", kind[:-1]))
    out = np.zeros(64, np.float32)
    program["each"](out, grid=(64,), threadgroup=(64,))
    assert out.all()


def test_a_loop_that_threads_leave_one_by_one_counts_those_that_stay() -> None:
    program = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void staying(device uint* out, uint i [[thread_position_in_grid]]) {
        uint total = 0;
        for (uint k = 0; k <= i % 5; ++k) total += simd_sum(1u);
        out[i] = total;
    }""")
    out = np.zeros(GRID, np.uint32)
    program["staying"](out, grid=(GRID,), threadgroup=(THREADGROUP,))
    reference = np.zeros(GRID, int)
    for threads in simdgroups():
        for i in threads:
            reference[i] = sum(sum(j % 5 >= k for j in threads) for k in range(i % 5 + 1))
    np.testing.assert_array_equal(out, reference)


@pytest.mark.parametrize("name", ["simd_sum", "simd_max", "simd_xor", "simd_shuffle", "simd_broadcast_first"])
@pytest.mark.parametrize("kind", ["long", "ulong2", "bool"])
def test_simd_functions_refuse_64_bits_and_bool(name: str, kind: str) -> None:  # as in MSL 6.9.2
    head = "#include <metal_stdlib>\nusing namespace metal;\n"
    call = f"{name}(x, 1)" if name == "simd_shuffle" else f"{name}(x)"
    with pytest.raises(mnb.CompileError, match=f"no matching function for call to '{name}'"):
        mnb.compile(f"{head}kernel void k(device {kind}* y) {{ {kind} x = y[0]; y[1] = {call}; }}")
    own = f"ulong {name}(ulong x) {{ return x; }}\nkernel void k(device ulong* y) {{ y[1] = {name}(y[0]); }}"
    assert mnb.compile(head + own).kernels


def test_votes() -> None:
    program = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void votes(device int* out, uint i [[thread_position_in_grid]]) {
        simd_vote everyone = simd_active_threads_mask(), some = simd_ballot(i % 32 == 3), none = simd_ballot(false);
        out[i] = everyone.all() + 2 * everyone.any() + 4 * some.all() + 8 * some.any() + 16 * none.any();
        quad_vote odd = quad_ballot(i % 2);
        out[i] += 32 * odd.all() + 64 * odd.any() + 128 * ((quad_vote::vote_t)odd == 0b1010);
    }""")
    out = np.zeros(64, np.int32)
    program["votes"](out, grid=(64,), threadgroup=(64,))
    assert set(out.tolist()) == {1 + 2 + 8 + 64 + 128}


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("kind", ["float", "half"])
@pytest.mark.parametrize("is_all_nan", [True, False])
def test_least_and_greatest_of_nans(kind: str, branch: str, is_all_nan: bool) -> None:
    """A NaN is the result only if every active lane has one; inactive lanes have no part in it."""
    condition, active = BRANCHES[branch]
    program = mnb.compile(f"""
    #include <metal_stdlib>
    using namespace metal;
    kernel void k(device {kind}2* out, device const {kind}* x, uint i [[thread_position_in_grid]]) {{
        if ({condition}) out[i] = {kind}2(simd_min(x[i]), simd_max(x[i]));
    }}""", math="precise")
    x = np.full(GRID, np.nan, TYPES[kind])
    if not is_all_nan:
        x[6::32] = 3
        x[9::32] = -2
    out = np.zeros((GRID, 2), TYPES[kind])
    program["k"](out, x, grid=(GRID,), threadgroup=(THREADGROUP,))
    expected = np.zeros((GRID, 2), TYPES[kind])
    for threads in simdgroups():
        lanes = [i for i in threads if active[i]]
        values = [v for v in x[lanes].tolist() if not math.isnan(v)]
        expected[lanes] = [min(values), max(values)] if values else math.nan
    np.testing.assert_array_equal(out, expected)
