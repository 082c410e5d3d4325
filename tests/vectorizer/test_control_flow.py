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


def dominated_by(flow: ControlFlow) -> dict[str, set[str]]:
    """Return the blocks that each block dominates: those that no path from the entry reaches without it."""
    blocks = reached(flow, flow.entry)
    return {a: blocks - reached(flow, flow.entry, without=a) for a in blocks}


def edges_of(flow: ControlFlow) -> set[tuple[str, str]]:
    return {(a, b) for a in reached(flow, flow.entry) for b in flow.function.blocks[a][-1].targets}


@pytest.fixture(params=range(200))
def flow(request: pytest.FixtureRequest) -> ControlFlow:
    return random_flow(request.param)


def test_order_holds_the_reachable_blocks_with_dominators_first(flow: ControlFlow) -> None:
    assert set(flow.order) == reached(flow, flow.entry)
    for a, dominated in dominated_by(flow).items():
        assert all(flow.number[a] < flow.number[b] for b in dominated - {a})


def test_a_block_dominates_the_blocks_that_every_path_reaches_through_it(flow: ControlFlow) -> None:
    for a, dominated in dominated_by(flow).items():
        assert {b for b in flow.order if flow.dominates(a, b)} == dominated


def test_immediate_dominator_is_dominated_by_all_other_dominators(flow: ControlFlow) -> None:
    dominated = dominated_by(flow)
    for a in flow.order:
        dominators = {d for d in flow.order if a in dominated[d]} - {a}
        if a == flow.entry:
            assert flow.idom[a] == a
        else:
            assert flow.idom[a] in dominators
            assert all(flow.idom[a] in dominated[d] for d in dominators)


def test_each_latch_branches_to_a_block_that_dominates_the_latch(flow: ControlFlow) -> None:
    dominated = dominated_by(flow)
    latches = {(a, b) for a, b in edges_of(flow) if a in dominated[b]}
    assert {(a, header) for header, loop in flow.loops.items() for a in loop.latches} == latches


def test_body_of_a_loop_reaches_its_latches_without_the_header(flow: ControlFlow) -> None:
    for header, loop in flow.loops.items():
        others = {b for b in set(flow.order) - {header} if reached(flow, b, without=header) & set(loop.latches)}
        assert loop.body == {header} | others


def test_exits_of_a_loop_are_the_edges_out_of_its_body(flow: ControlFlow) -> None:
    for loop in flow.loops.values():
        assert set(loop.exits) == {(a, b) for a, b in edges_of(flow) if a in loop.body and b not in loop.body}


def test_parent_of_a_loop_is_the_smallest_loop_around_it(flow: ControlFlow) -> None:
    for header, loop in flow.loops.items():
        around = [h for h, other in flow.loops.items() if header in other.body and h != header]
        assert loop.parent == min(around, key=lambda h: len(flow.loops[h].body), default=None)


def test_enclosing_loops_come_from_the_inside_out(flow: ControlFlow) -> None:
    for a in flow.order:
        around = [h for h, loop in flow.loops.items() if a in loop.body]
        assert [*flow.enclosing_loops(a)] == sorted(around, key=lambda h: len(flow.loops[h].body))


def test_flow_is_irreducible_if_a_cycle_remains_without_the_edges_back_to_headers(flow: ControlFlow) -> None:
    left = {a: {b for b in flow.successors[a] if not flow.dominates(b, a)} for a in flow.order}
    while ends := [a for a in left if not left[a] & left.keys()]:
        for a in ends:
            del left[a]
    assert (flow.irreducible is not None) == bool(left)


def test_random_flows_are_of_every_kind() -> None:
    flows = [random_flow(seed) for seed in range(200)]
    assert sum(flow.irreducible is not None for flow in flows) > 10
    assert sum(any(loop.parent for loop in flow.loops.values()) for flow in flows) > 10
