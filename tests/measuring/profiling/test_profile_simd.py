"""SIMD and quad functions in a profile: each is one operation of a SIMD-group, however it is computed here."""

import numpy as np
import pytest

import metalnb as mnb
from metalnb.profiling.profile_record import Profile

HEAD = """#include <metal_stdlib>
using namespace metal;
"""
LANES = 32


def counted(body: str, argument: str = "device const float* x", groups: int = 3) -> Profile:
    """Profile a kernel whose line 4 is ``body``, which computes ``y[i]`` from ``x[i]``."""
    text = f"""{HEAD}kernel void f({argument}, device float* y, uint i [[thread_position_in_grid]]) {{
{body}
}}"""
    x = np.random.default_rng(5).standard_normal(4 * LANES * groups).astype(np.float32)
    dtype = {"half": np.float16, "short": np.int16, "uchar": np.uint8, "int": np.int32}
    chosen = next((d for name, d in dtype.items() if name in argument), np.float32)
    x = x if chosen is np.float32 else (100 * x).astype(np.int32).astype(chosen)
    x = x.reshape(-1, 4) if "float4" in argument else x
    call = {"grid": LANES * groups, "threadgroup": LANES}
    return mnb.profile(mnb.compile(text).f, x, np.zeros(LANES * groups, np.float32), **call)


def work(found: Profile, line: int = 4) -> tuple[int, int, int, int]:
    (one,) = [each for each in found.lines if each.line == line]
    return one.simd, one.flops, one.integer, one.other


ONES = [
    "sum", "product", "min", "max", "prefix_inclusive_sum", "prefix_exclusive_sum", "prefix_inclusive_product",
    "prefix_exclusive_product", "broadcast_first",
]  # fmt: skip
FROM = ["broadcast", "shuffle", "shuffle_xor", "shuffle_down", "shuffle_up", "shuffle_rotate_down", "shuffle_rotate_up"]


@pytest.mark.long(every=2)  # The quad-group's functions are counted by the same rule
@pytest.mark.parametrize("group", ["simd", "quad"])
@pytest.mark.parametrize(
    "call", [f"{{}}_{n}(x[i])" for n in ONES] + [f"{{}}_{n}(x[i], 2)" for n in FROM]
    + [f"{{}}_shuffle_and_fill_{n}(x[i], 0.0f, 1)" for n in ("down", "up")],
)  # fmt: skip
def test_a_function_is_one_operation(group: str, call: str) -> None:
    assert work(counted(f"y[i] = {call.format(group)};")) == (3, 0, 0, 0)


@pytest.mark.parametrize("group", ["simd", "quad"])
@pytest.mark.parametrize(
    "call", ["{}_and(n)", "{}_or(n)", "{}_xor(n)", "uint({}_ballot(n & 1))", "{}_all(n & 1)", "{}_any(n & 1)"]
)
def test_functions_of_bits_and_votes_are_counted(group: str, call: str) -> None:
    vote = f"{group}_vote::vote_t(" if "ballot" in call else ""
    called = call.format(group).replace("uint(", f"uint({vote}") + ")" * bool(vote)
    found = counted(f"uint n = as_type<uint>(x[i]);\ny[i] = as_type<float>(uint({called}));")
    assert sum(line.simd for line in found.lines) == 3


@pytest.mark.parametrize(("kind", "wide"), [("half", 1), ("short", 1), ("uchar", 1), ("int", 1), ("float4", 4)])
def test_a_vector_has_one_for_each_element(kind: str, wide: int) -> None:
    found = counted("y[i] = float(simd_shuffle_down(x[i], 3));" if wide == 1 else
                    "float4 v = simd_shuffle_down(x[i], 3);\ny[i] = v.x + v.y + v.z + v.w;",
                    f"device const {kind}* x")  # fmt: skip
    assert sum(line.simd for line in found.lines) == 3 * wide


@pytest.mark.parametrize("lanes", ["5", "x[0] > 9 ? 1 : 6"])
def test_a_loop_counts_each_iteration(lanes: str) -> None:
    """In a loop that clang unrolls, and in one that it does not."""
    loop = "for (int k = 0; k < n; ++k) s = simd_shuffle_xor(s, 1 << k) * 3;"
    found = counted(f"float s = x[i]; int n = {lanes};\n{loop}\ny[i] = s;")
    times = 5 if lanes == "5" else 6
    simd, flops, _, _ = work(found, 5)
    assert (simd, flops) == (3 * times, 3 * times * LANES)


def test_a_function_that_few_lanes_execute_is_one() -> None:
    found = counted("float s = x[i];\nif (i % 4 == 0)\ns = simd_sum(s) + 1;\ny[i] = s;")
    assert work(found, 6)[:2] == (3, 3 * LANES // 4)


def test_operations_in_an_argument_and_on_the_result_count_too() -> None:
    assert work(counted("y[i] = simd_sum(x[i] * x[i + 1]) * 2;"))[:2] == (3, 3 * LANES * 2)


def test_a_function_that_is_not_used_does_not_count() -> None:
    assert work(counted("simd_product(x[i]); y[i] = x[i] + 1;"))[:2] == (0, 3 * LANES)


def test_a_column_says_how_many() -> None:
    found = counted("y[i] = simd_sum(x[i]) + simd_max(x[i]);")
    head, row = (line.split() for line in repr(found).splitlines()[-2:])
    assert row[head.index("simd") + 1] == "6"  # "100 %" are two words
    assert ">simd</th>" in found._repr_html_()
