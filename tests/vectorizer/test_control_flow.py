"""Dominators and loops of random functions, compared with their definitions: what can be reached without a block."""

import random

import pytest

from metalnb.engine.llvm.control_flow import ControlFlow
from metalnb.engine.llvm.llvm_reader import read_module


def random_flow(seed: int) -> ControlFlow:
    """Return the flow of a function whose branches lead anywhere but to its entry."""
    rng = random.Random(seed)
    count = rng.randint(1, 12)
    lines = ["define void @f(i1 %0) {", "  br label %b0"]
    for number in range(count):
        near = [f"label %b{rng.randrange(max(0, number - 3), min(count, number + 4))}" for _ in range(2)]
        ends = "ret void", f"br {near[0]}", f"br i1 %0, {near[0]}, {near[1]}"
        lines += [f"b{number}:", f"  {rng.choices(ends, (1, 2, 5))[0]}"]
    return ControlFlow(read_module("\n".join([*lines, "}", ""])).functions["f"])


def reached(flow: ControlFlow, start: str, without: str | None = None) -> set[str]:
    """Return the blocks on paths from a block that avoid another."""
    seen, work = set[str](), [start]
    while work:
        label = work.pop()
        if label not in seen and label != without:
            seen.add(label)
            work += flow.function.blocks[label][-1].targets
    return seen


@pytest.mark.parametrize("seed", range(200))
def test_dominators_and_loops_are_those_of_their_definitions(seed: int) -> None:
    flow = random_flow(seed)
    blocks = reached(flow, flow.entry)
    assert set(flow.order) == blocks
    avoiding = {a: reached(flow, flow.entry, without=a) for a in blocks}
    dominated = {a: blocks - avoiding[a] for a in blocks}
    for a in blocks:
        assert {b for b in blocks if flow.dominates(a, b)} == dominated[a]
        others = {d for d in blocks if a in dominated[d]} - {a}
        assert flow.idom[a] == max(others, key=lambda d: sum(d in dominated[o] for o in others), default=a)
        assert all(flow.number[a] < flow.number[b] for b in dominated[a] - {a})
    edges = [(a, b) for a in blocks for b in set(flow.function.blocks[a][-1].targets)]
    latches = {(a, b) for a, b in edges if a in dominated[b]}
    assert {(a, header) for header, loop in flow.loops.items() for a in loop.latches} == latches
    for header, loop in flow.loops.items():
        ends = {a for a, b in latches if b == header}
        assert loop.body == {header} | {b for b in blocks - {header} if reached(flow, b, without=header) & ends}
        assert set(loop.exits) == {(a, b) for a, b in edges if a in loop.body and b not in loop.body}
        around = [h for h, other in flow.loops.items() if header in other.body and h != header]
        assert loop.parent == min(around, key=lambda h: len(flow.loops[h].body), default=None)
    for a in blocks:
        inside = [h for h, loop in flow.loops.items() if a in loop.body]
        assert [*flow.enclosing_loops(a)] == sorted(inside, key=lambda h: len(flow.loops[h].body))


@pytest.mark.parametrize("seed", range(200))
def test_flow_is_irreducible_if_a_cycle_stays_without_the_edges_back_to_headers(seed: int) -> None:
    flow = random_flow(seed)
    left = {a: {b for b in flow.successors[a] if not flow.dominates(b, a)} for a in flow.order}
    while ends := [a for a in left if not left[a] & left.keys()]:
        for a in ends:
            del left[a]
    assert (flow.irreducible is not None) == bool(left)


def test_the_random_flows_are_of_every_kind() -> None:
    flows = [random_flow(seed) for seed in range(200)]
    assert sum(flow.irreducible is not None for flow in flows) > 10
    assert sum(any(loop.parent for loop in flow.loops.values()) for flow in flows) > 10
