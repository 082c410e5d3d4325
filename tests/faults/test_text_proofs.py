"""Proofs over LLVM IR: correct kernels need no checks, and a wrong access is never proven."""

import itertools
from typing import Any

import numpy as np
import pytest
from faults import text_interpreter
from faults.kernels_at_the_bound import HEAD, PROVEN, WRONG
from faults.planted_faults import FAULTS, Fault
from faults.planted_faults import HEAD as FAULTY_HEAD

import metalnb as mnb
from metalnb.engine.cpu.lanes.lane_entry import LaneEntry
from metalnb.engine.cpu.lanes.vector_build import thread_text
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.robust.kernel_analysis import Analysis
from metalnb.engine.robust.launch_facts import LaunchFacts
from metalnb.engine.robust.proofs.intervals import Interval
from metalnb.engine.robust.proofs.loop_iterations import iteration_bound
from metalnb.engine.robust.proofs.ranges import Ranges
from metalnb.engine.robust.proofs.transfer_functions import ARITHMETIC

SHAPE = {2: bytearray(np.array([8, 8, 64, 0], np.uint32).tobytes())}
SIZES = (256, 256, 256, 256, 1024, 768, 1024, 128, 4, 128)


# Each of these goes out of bounds by a form specific to LLVM IR or to this engine.
WRONG_HERE = {
    "a choice of places whose condition is turned": "y[i.y * 8 + i.x] = x[i.x < 4 ? i.x : i.x + 60];",
    "the last value of a loop that ends early": "uint at = 60; for (uint k = 0; k < 8; ++k) "
    "{ if (x[k] > 0.5f) break; ++at; } y[i.y * 8 + i.x] = x[at + 4];",
    "low bits of another number": "y[(i.x * 64 & ~7u) + (i.y & 7)] = x[i.x];",
    "a sum of bits that are not apart": "const uint a = i.x * s.size.x, b = i.y * s.size.y; "
    "device const float* row = x + (a | b); float r = 0; if (a + b >= 56) r = row[-56]; y[i.y * 8 + i.x] = r;",
    "what is left after some iterations": "uint at = i.x; for (int d = 0; d < s.n / 16; ++d) at = at * 2 + (at & 1); "
    "y[i.y * 8 + i.x] = x[at];",
    "more threads than the grid's rows have": "y[i.y * size.x * 2 + i.x] = x[i.x];",
}  # fmt: skip


def analysis(text: str) -> Analysis:
    """Return what is known about the kernel f."""
    try:
        kernel = mnb.compile(text, engine="cpu").f
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    module = read_module(thread_text(kernel.unit))
    return Analysis(module, LaneEntry(module))


def of_64(count: int) -> LaunchFacts:
    return LaunchFacts((8, 8, 1), (8, 4, 1), (4 * count, 4 * count, 16, 256), SHAPE)


def with_number(k: int) -> LaunchFacts:
    return LaunchFacts((64, 1, 1), (32, 1, 1), SIZES, {8: bytearray((k % 2**32).to_bytes(4, "little"))})


@pytest.mark.parametrize("body", PROVEN)
def test_proof_holds_exactly_up_to_the_bound(body: str) -> None:
    found = analysis(f"{HEAD}{PROVEN[body]}\n}}")
    right, wrong = (found.prove(of_64(count)) for count in (64, 63))
    assert not right.unproven
    assert not right.long_loops
    assert wrong.unproven


@pytest.mark.parametrize("body", WRONG | WRONG_HERE)
def test_out_of_bounds_access_is_not_proven(body: str) -> None:
    text = (WRONG | WRONG_HERE)[body]
    assert analysis(f"{HEAD}{text}\n}}").prove(of_64(64)).unproven


def kinds(found: Analysis, facts: LaunchFacts) -> set[str]:
    wrong = found.prove(facts).unproven
    return {access.kind for access in found.accesses if access.number in wrong}


@pytest.mark.long(every=3)  # Faults are ordered by kind of memory, so several of each kind remain
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_not_proven(name: str) -> None:
    planted: Fault = FAULTS[name]
    assert planted.kind in kinds(analysis(f"{FAULTY_HEAD}{planted.body}\n}}"), with_number(planted.k))


def test_argument_error_has_every_detail() -> None:
    found = analysis(f"{FAULTY_HEAD}a[i] = b[k];\n}}")
    told: list[Any] = []
    for access in found.accesses:
        address = found.roots.address(access.pointer)
        root = found.roots.root(address.root)
        assert root is not None
        told.append((access.kind, root.kind, root.number, access.size, [by for _, by in address.terms]))
    reads, writes = ("reads", "argument"), ("writes", "argument")
    assert told == [(*reads, 8, 4, []), (*reads, 1, 4, [4]), (*writes, 0, 4, [4])]


# Seconds each; five instructions remain, and test_random_proofs checks ranges in whole kernels.
@pytest.mark.long(every=4)
@pytest.mark.parametrize("op", sorted(ARITHMETIC.keys() - {"ctlz", "cttz", "ctpop"}))
def test_range_contains_every_result_of_an_instruction(op: str) -> None:
    """For all ranges of three bits, except divisions by 0 and shifts that are too long."""
    bits, forms = 3, text_interpreter.BINARY
    names = {"usub_sat": "usub", "uadd_sat": "uadd"}
    ranges = [Interval(low, high) for low in range(-5, 9) for high in range(low, low + 8)]
    for one, other in itertools.product(ranges, ranges):
        found = ARITHMETIC[op](one, other, bits).normalize(bits)
        for a, b in itertools.product(range(one.low, one.high + 1), range(other.low, other.high + 1)):
            a, b = a % 8, b % 8  # noqa: PLW2901  (unsigned, as in LLVM)
            if (b == 0 and op in {"udiv", "urem", "sdiv", "srem"}) or (b >= bits and op in {"shl", "lshr", "ashr"}):
                continue
            given = forms[names.get(op, op)](a, b, bits)
            assert (given - found.low) % 8 <= found.high - found.low, (one, other, a, b, given, found)


def test_stopped_loop_proves_nothing_about_its_exit_condition() -> None:
    """The loop may exit for another reason, so its counter need not have reached the end."""
    body = "uint v = 0; if (x[i.x] > 0) do { v = uint(x[v & 63]); } while (v >= 8); y[i.y * 8 + v] = 1;"
    proof = analysis(f"{HEAD}{body}\n}}").prove(of_64(64))
    assert proof.long_loops
    assert proof.unproven


STRETCH = "const uint first = i.x * 100000000, end = min(first + 9, 2000000000u); uint k = first; float r = 0;"


@pytest.mark.parametrize(("loop", "count"), [
    ("if (first < end) do { STEP } while (k != end);", 10), ("while (k < end) { STEP }", 10),
    ("while (k <= end) { STEP ++k; }", 6),
])  # fmt: skip
def test_bound_of_a_counter_is_its_distance_from_the_limit(loop: str, count: int) -> None:
    """The start may be far away, so only the distance of 9 bounds it: 9 iterations or 5, and one to spare."""
    body = loop.replace("STEP", "r = r * r + x[k & 63]; ++k;")
    found = analysis(f"{HEAD}{STRETCH} {body} y[i.y] = r;\n}}")
    ranges = Ranges(found.flow, found.roots, found.entry, of_64(64))
    assert [iteration_bound(found.flow, ranges, header) for header in found.flow.loops] == [count]


@pytest.mark.parametrize(("loop", "count"), [
    ("for (int k = 0; k < s.n; ++k)", 64), ("for (int k = s.n; k > 4; k -= 3)", 20),
    ("for (int k = 1; k < s.n; k *= 2)", 32), ("for (uint k = i.x; k < 64; k += s.size.x)", 8),
    ("for (uint k = s.n; k; k = k / 2)", 32), ("for (int k = s.n - 1; k > 0; k -= 2)", 32),
])  # fmt: skip
def test_maximum_iterations_of_a_loop_are_exact(loop: str, count: int) -> None:
    """A counter that doubles or halves can do so as many times as it has bits."""
    found = analysis(f"{HEAD}float r = 0; {loop} r = r * r + x[uint(k) & 63]; y[i.y * 8 + i.x] = r;\n}}")
    ranges = Ranges(found.flow, found.roots, found.entry, of_64(64))
    assert [iteration_bound(found.flow, ranges, header) for header in found.flow.loops] == [count]
