"""What is proven of LLVM's text: kernels that are right leave nothing to check, and a wrong access is never proven."""

from typing import Any

import numpy as np
import pytest
from test_robust import FAULTS, Fault
from test_robust import HEAD as FAULTY_HEAD
from test_robust_proofs import HEAD, PROVEN, WRONG

import metalnb as mnb
from metalnb.engine.llvm.llvm_reader import read
from metalnb.engine.native.lanes.lane_entry import LaneEntry
from metalnb.engine.native.lanes.vector_build import thread_text
from metalnb.engine.robust.kernel_analysis import Analysis
from metalnb.engine.robust.launch_facts import LaunchFacts

SHAPE = {2: bytearray(np.array([8, 8, 64, 0], np.uint32).tobytes())}
SIZES = (256, 256, 256, 256, 1024, 768, 1024, 128, 4, 128)


def analysis(text: str) -> Analysis:
    """What is known of the kernel f."""
    try:
        kernel = mnb.compile(text, engine="native").f
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    module = read(thread_text(kernel.unit))
    return Analysis(module, LaneEntry(module))


def of_64(count: int) -> LaunchFacts:
    return LaunchFacts((8, 8, 1), (8, 4, 1), (4 * count, 4 * count, 16, 256), SHAPE)


def with_number(k: int) -> LaunchFacts:
    return LaunchFacts((64, 1, 1), (32, 1, 1), SIZES, {8: bytearray((k % 2**32).to_bytes(4, "little"))})


@pytest.mark.parametrize("body", PROVEN)
def test_it_is_proven_and_no_more_than_that(body: str) -> None:
    found = analysis(f"{HEAD}{PROVEN[body]}\n}}")
    right, wrong = (found.proof(of_64(count)) for count in (64, 63))
    assert not right.wrong
    assert not right.stops
    assert wrong.wrong


@pytest.mark.parametrize("body", WRONG)
def test_what_goes_out_is_not_proven(body: str) -> None:
    assert analysis(f"{HEAD}{WRONG[body]}\n}}").proof(of_64(64)).wrong


def kinds(found: Analysis, facts: LaunchFacts) -> set[str]:
    wrong = found.proof(facts).wrong
    return {access.kind for access in found.accesses if access.number in wrong}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_not_proven(name: str) -> None:
    planted: Fault = FAULTS[name]
    assert planted.kind in kinds(analysis(f"{FAULTY_HEAD}{planted.body}\n}}"), with_number(planted.k))


def test_of_an_argument_everything_is_told() -> None:
    found = analysis(f"{FAULTY_HEAD}a[i] = b[k];\n}}")
    told: list[Any] = []
    for access in found.accesses:
        place = found.roots.place(access.pointer)
        root = found.roots.root(place.root)
        assert root is not None
        told.append((access.kind, root.kind, root.number, access.size, [by for _, by in place.terms]))
    reads, writes = ("reads", "argument"), ("writes", "argument")
    assert told == [(*reads, 8, 4, []), (*reads, 1, 4, [4]), (*writes, 0, 4, [4])]
