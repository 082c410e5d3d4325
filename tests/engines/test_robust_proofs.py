"""Accesses proven for a launch run without checks; one element further, the same kernel ends in a fault.

Each kernel is right for ``n`` elements, and accesses one element too many in arrays of ``n - 1``.
"""

import itertools

import numpy as np
import pytest
from faults.kernels_at_the_bound import HEAD, PROVEN, WRONG

import metalnb as mnb
from metalnb.engine.cpu.cpu_checks.checked_ticket import CheckedTicket
from metalnb.engine.robust.proofs.differences import intersect_modulo
from metalnb.engine.robust.proofs.intervals import Interval
from metalnb.engine.robust.proofs.transfer_functions import allowed_range
from metalnb.engine.robust.scalar_graph.relations import PREDICATES


def launched(body: str, count: int) -> mnb.KernelFault | bool:
    """Return the fault found, or else whether the dispatch was checked."""
    kernel = mnb.compile(HEAD + body + "\n}", engine="cpu", checked=True).f
    shape = np.zeros((), kernel.program.dtype("Shape"))
    shape["size"], shape["n"] = (8, 8), 64
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    ticket = kernel.prepare(
        x[:count], y[:count], shape, grid=(8, 8), threadgroup=(8, 4), threadgroup_memory={"t": 256},
    ).launch()  # fmt: skip
    assert ticket is not None
    try:
        ticket.wait()
    except mnb.KernelFault as fault:
        return fault
    return isinstance(ticket, CheckedTicket)


@pytest.mark.long(every=2)  # Each is compiled; tests/faults tests proofs over text
@pytest.mark.parametrize("body", PROVEN)
def test_proof_holds_exactly_up_to_the_bound(body: str) -> None:
    assert launched(PROVEN[body], 64) is False
    fault = launched(PROVEN[body], 63)
    assert isinstance(fault, mnb.KernelFault)
    assert fault.index == 63


@pytest.mark.parametrize("body", WRONG)
def test_out_of_bounds_access_is_reported(body: str) -> None:
    assert isinstance(launched(WRONG[body], 64), mnb.KernelFault)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparison_narrows_ranges_correctly(predicate: str) -> None:
    """For all numbers of three bits: the narrowed range keeps every number for which the relation holds."""
    bits, numbers = 3, range(8)

    def holds(a: int, b: int) -> bool:
        if predicate[0] == "s":
            a, b = (v - 8 if v > 3 else v for v in (a, b))
        compares = predicate[-2:]
        return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[compares]

    ranges = [Interval(low, high) for low in range(-5, 9) for high in range(low, low + 8)]
    for other, now in itertools.product(ranges, ranges):
        told = allowed_range(PREDICATES[predicate], other, bits, now)
        found = now if told is None else now.intersect(told, bits)
        mine = {v % 8 for v in range(now.low, now.high + 1)}
        theirs = {v % 8 for v in range(other.low, other.high + 1)}
        left = {v % 8 for v in range(found.low, found.high + 1)}
        kept = {a for a in numbers if a in mine and any(holds(a, b) for b in theirs)}
        assert kept <= left, (predicate, other, now, found)


def test_intersection_of_ranges_is_exact() -> None:
    """For all ranges around those of three bits: numbers in one range and congruent modulo 8 to the other are kept."""
    ranges = [Interval(low, high) for low in range(-9, 12) for high in range(low, low + 9)]
    for found, within in itertools.product(ranges, ranges):
        left = intersect_modulo(found, within, 3)
        residues = {v % 8 for v in range(found.low, found.high + 1)}
        kept = [v for v in range(within.low, within.high + 1) if v % 8 in residues]
        assert all(left.low <= v <= left.high for v in kept), (found, within)
        assert not kept or left.within(within), (found, within)
