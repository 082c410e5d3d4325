"""Random kernels, interpreted: every value stays in its proven range, and no proven access leaves its memory.

Run: PYTHONPATH=tests python tests/faults/test_random_proofs.py [--kernels N] [--seed N]
"""

from __future__ import annotations

import argparse
import contextlib
import random
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest
from faults import random_affine, random_kernels, random_loops
from faults.random_launches import random_memory, random_number, random_position
from faults.text_interpreter import Interpreter, Pointer, TooLong, Unknown

import metalnb as mnb
from metalnb.engine.cpu.lanes.lane_entry import LaneEntry
from metalnb.engine.cpu.lanes.vector_build import thread_text
from metalnb.engine.llvm.instructions import IRInstruction, IRModule
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.robust.kernel_analysis import Analysis, Proof
from metalnb.engine.robust.launch_facts import LaunchFacts
from metalnb.engine.robust.proofs import ranges as ranges_module
from metalnb.engine.robust.proofs.intervals import Interval
from metalnb.engine.robust.proofs.loop_iterations import iteration_bound
from metalnb.engine.robust.proofs.ranges import Ranges

THREADS = 4  # threads run per launch


class Checked:
    """A kernel with the proofs for one launch."""

    def __init__(self, module: IRModule, facts: LaunchFacts) -> None:
        self.module, self.facts = module, facts
        self.entry = LaneEntry(module)
        self.analysis = Analysis(module, self.entry)
        self.proof: Proof = self.analysis.prove(facts)
        self.right = {id(a.inst): a for a in self.analysis.accesses if a.number not in self.proof.unproven}
        flow = self.analysis.flow
        flow.set_stoppable(frozenset())
        with mock.patch.multiple(ranges_module, _MAX_EVALUATIONS=10**6, _MAX_PER_QUERY=10**5):
            self.ranges = Ranges(flow, self.analysis.roots, self.entry, facts)
            self.most = {header: iteration_bound(flow, self.ranges, header) for header in flow.loops}
        self.times: Counter[str] = Counter()
        self.known: dict[tuple[Any, str], Interval | None] = {}
        self.checked = 0

    def see(self, inst: IRInstruction, values: Mapping[str, Any]) -> None:
        """Compare an instruction's operands with their proven ranges."""
        for operand in inst.operands:
            value = values.get(operand.text)
            parts = value if isinstance(value, list) else [value]
            for scalar, one in zip(self.analysis.roots.values.components(operand), parts, strict=False):
                if isinstance(one, int) and not isinstance(value, Pointer) and scalar.integer:
                    self.hold(scalar, inst.block, one, inst)
        access = self.right.get(id(inst))
        if access is not None:
            pointer = values[access.pointer] if access.pointer in values else Pointer(access.pointer, 0)
            size = self.size(pointer.root)
            assert 0 <= pointer.at <= size - access.size, (inst.text, pointer, size)
        assert inst.block in self.ranges.reachable, inst.text
        self.count(inst)

    def hold(self, scalar: Any, label: str, value: int, inst: IRInstruction) -> None:
        key = scalar, label
        if key not in self.known:
            self.known[key] = self.ranges.of(scalar, label)
        found = self.known[key]
        if found is not None:
            self.checked += 1
            assert (value - found.low) % (1 << scalar.bits) <= found.high - found.low, (inst.text, scalar, value, found)

    def count(self, inst: IRInstruction) -> None:
        """Count a loop's iterations at the first instruction of its header that is not a phi: phis are not reported."""
        flow = self.analysis.flow
        if inst is next(i for i in flow.blocks[inst.block] if i.opcode != "phi"):
            if inst.block in flow.loops:
                self.times[inst.block] += 1
                assert self.times[inst.block] <= self.most[inst.block], (inst.block, self.most[inst.block])
            for header, loop in flow.loops.items():
                if inst.block not in loop.body:
                    self.times[header] = 0

    def size(self, root: str) -> int:
        if root.isdigit():
            return self.facts.sizes[int(root)]
        return self.slots[root]

    def run(self, rng: random.Random) -> None:
        """Run some threads."""
        memory = {str(n): bytearray(random_memory(rng, size)) for n, size in enumerate(self.facts.sizes)}
        memory |= {str(n): bytearray(data) for n, data in self.facts.scalars.items() if not isinstance(data, int)}
        self.slots = {}
        for name in self.module.globals:
            root = self.analysis.roots.root(f"@{name}")
            table = self.analysis.roots.table(f"@{name}")
            if root is not None:
                memory[f"@{name}"] = bytearray(table) if table else bytearray(root.size)
                self.slots[f"@{name}"] = root.size
        for inst in self.analysis.roots.function:
            root = self.analysis.roots.root(inst.result) if inst.result else None
            if inst.opcode == "call" and inst.word == "metalnb_storage" and root:
                slot = inst.operands[0].text
                memory[slot], self.slots[slot] = bytearray(random_memory(rng, root.size)), root.size
            elif inst.opcode == "alloca" and root:
                self.slots[inst.result] = root.size
        for _ in range(THREADS):
            stands, region = random_position(rng, self.facts)
            function = self.analysis.roots.function
            self.times.clear()
            with contextlib.suppress(TooLong):
                Interpreter(self.module, function, memory, stands, region, rng, self.see).run()


def _launches(rng: random.Random, kind: str) -> tuple[tuple[int, ...], dict[int, bytearray]]:
    def data() -> bytearray:
        return bytearray(struct.pack("<I", random_number(rng)))

    if kind == "loops":
        return random_loops.SIZES, {3: data(), 4: data()}
    if kind == "kernels":
        return (256, 256, 256, 256, 1024, 768, 1024, 128, 4, 128), {8: data()}
    return (rng.choice((4096, 64 << 10)), 4, 4 * 128 * 5), {1: data()}


def _text(rng: random.Random, kind: str) -> str:
    if kind == "loops":
        return random_loops.HEAD + random_loops.kernel_text(rng, "f")
    if kind == "kernels":
        return random_kernels.HEAD + random_kernels.kernel_text(rng, "f")
    return random_affine.HEAD + random_affine.affine(rng, "f").text


def check(seed: str, kind: str) -> int:
    """Check one kernel in several launches; return how many values were compared with their ranges."""
    rng, checked = random.Random(f"{seed} {kind}"), 0
    text = _text(rng, kind)
    module = read_module(thread_text(mnb.compile(text, engine="cpu").f.unit))
    for _ in range(6):
        grid, group = rng.choice((((64, 1, 1), (32, 1, 1)), ((100, 1, 1), (32, 1, 1)), ((1, 1, 1), (1, 1, 1)),
                                  ((16, 6, 2), (8, 4, 1)), ((128, 1, 1), (32, 1, 1))))  # fmt: skip
        sizes, scalars = _launches(rng, kind)
        one = Checked(module, LaunchFacts(grid, group, sizes, scalars))
        try:
            one.run(rng)
        except Unknown:
            continue
        except AssertionError as error:
            message = f"{seed} {kind}: {error}; {one.facts}\n{text}"
            raise AssertionError(message) from error
        checked += one.checked
    return checked


@pytest.mark.long(every=4)  # 4 does not divide the 3 kinds, so each kind remains, with fewer seeds
@pytest.mark.parametrize("kind", ["loops", "kernels", "affine"])
@pytest.mark.parametrize("seed", range(6))
def test_random_kernel_stays_within_its_proof(seed: int, kind: str) -> None:
    try:
        assert check(str(seed), kind) >= 0
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def main() -> None:
    """Check many kernels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    checked = 0
    for number in range(options.kernels):
        checked += check(f"{options.seed} {number}", ("loops", "kernels", "affine")[number % 3])
    print(f"seed {options.seed}: {options.kernels} kernels, {checked:,} values within their ranges")


if __name__ == "__main__":
    main()
