"""Random kernels with all checks, run instruction by instruction: none leaves its memory, and none behaves differently.

An access out of bounds reads 0 or writes nothing, both in the checked text and in the interpreter's run of the
unchecked one. Run: PYTHONPATH=tests python tests/faults/test_random_checks.py [--kernels N] [--seed N]
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import re
import struct
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from faults import random_affine, random_loops
from faults.random_launches import random_memory, random_number, random_position
from faults.text_interpreter import Interpreter, Pointer, TooLong

import metalnb as mnb
from metalnb.engine.cpu.cpu_checks.check_targets import FiberTarget, LaneTarget
from metalnb.engine.cpu.lanes.lane_entry import LaneEntry
from metalnb.engine.cpu.lanes.vector_build import thread_text
from metalnb.engine.llvm.instructions import IRInstruction, IRModule
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.llvm.llvm_types import IRType
from metalnb.engine.robust.kernel_analysis import Analysis
from metalnb.engine.robust.launch_facts import LaunchFacts
from metalnb.engine.robust.rewriting.check_insertion import CheckedModule, Checks, insert_checks
from metalnb.engine.robust.rewriting.size_limits import limit_words

# Loops whose bounds are read from memory, so that nothing is proven before the launch.
HEAD = """#include <metal_stdlib>
using namespace metal;
kernel void f(device uint* a, device const uint* b, device const ushort* h, constant int& k, constant uint& n,
              uint i [[thread_position_in_grid]]) {
    uint x = 0; const uint u = b[i % 8], v = b[i % 8 + 8]; const int s = int(b[16]), t = int(b[17]);
    const long w = b[18]; """
RUNS = (
    "for (uint j = u; j < v; ++j) {do}", "for (uint j = u; j + 3 <= v; j += 3) {do}",
    "for (uint j = u; j <= v; ++j) {do}",
    "for (uint j = u; j < v; j += 5) {do}", "for (uint j = u; j != v; ++j) {do}",
    "for (uint j = u; j != v; j += 4) {do}",
    "for (int j = s; j < t; ++j) {do}", "for (int j = s; j <= t; j += 2) {do}", "for (int j = t; j >= s; --j) {do}",
    "for (int j = t; j > s; --j) {do}", "for (uint j = v; j-- > u;) {do}", "for (long j = u; j < w; ++j) {do}",
    "for (ushort j = ushort(u); j < ushort(v); ++j) {do}", "uint j = u; while (j < v) {do1}",
    "uint j = u; do {do1} while (j < v);",
    "device const uint* r = b + u; for (uint j = 0; j < v; ++j, r += n) { x += *r; }",
    "device const uint* r = b + u; for (uint j = v; j > 0; --j, --r) { x ^= *r; }",
    "device uint* r = a + u; for (uint j = 0; j < v; ++j) { r[j * 3] = j; }",
    "for (uint j = u; j < v; ++j) { if (h[j] > 30) { a[j] += 1; x += h[j + 1]; } }",
    # Loops that lead to one another.
    "for (uint y = 0; y < 4; ++y) for (uint j = y; j < 4294967295u; ++j) { x += i > 0 ? b[i - 1] : 1u; }",
    "for (uint k = 0; k < 3; ++k) for (uint j = k; j < v; ++j) {do}",
    # Indices that a condition chooses before the loop.
    "const bool one = i & 1; for (uint j = 0; j < v; ++j) { x += b[one ? j : 4 + j * 3]; }",
    "const bool one = i & 1; for (uint j = 0; j < v; ++j) { x += b[one ? j + 52 : j]; }",
    "const bool one = i & 1; for (int j = s; j < t; ++j) { x += h[(one ? j : t - j) * 2 + 1]; a[one ? j : u] = x; }",
    # Counters that wrap.
    "for (uint j = u % 4 - 8; j < v % 4 - 4; j += 5) { x += b[j + 8]; }",
    "for (uint j = u % 4 - 8; j <= v % 4 - 4; ++j) { x += b[j + 8]; }",
    "for (int j = s % 4 + 0x7ffffff8; j < t % 4 + 0x7ffffffb; j += 5) { x += b[j - 0x7ffffff8]; }",
    "for (uint j = u; j < v; ++j) {do} for (uint j = x & 63; j < v; ++j) {do}",
)  # fmt: skip
DO = (
    "x += b[j];", "a[j] = x + j;", "x ^= h[j * 2 + 1];", "x += b[63 - j];", "a[j + 1] = b[j];", "x += b[h[j] & 127];",
    "a[uint(j) * 4 + 2] += b[j];", "x += b[long(j) - 8];", "x += h[n + j];",
    # Indices with a part that no iteration changes.
    "x += b[w + (h[j] & 63)];", "a[long(s) * 2 + (b[j] & 31) + 1] = j;", "a[w + (h[j] & 63) + 1] = x;",
    "x += h[n + b[j]];",
)  # fmt: skip
SIZES = (256, 256, 1 << 17, 4, 4)
_BOUNDS = 4 * 19  # bytes of them, in b


def run_text(rng: random.Random, body: str) -> str:
    one = " ".join(rng.choices(DO, k=rng.randint(1, 3)))
    return f"{HEAD}{body.replace('{do1}', f'{{ {one} ++j; }}').replace('{do}', f'{{ {one} }}')} a[i & 63] = x; }}"


class Addresses(Interpreter):
    """An interpreter that also computes with addresses, and calls the functions that checks call."""

    faults = passed = 0

    def _constant(self, ir_type: IRType, text: str) -> Any:
        return super()._constant(ir_type, "0" if text in {"undef", "poison"} and ir_type.kind == "integer" else text)

    def _each(self, inst: IRInstruction, of: Callable[..., Any]) -> Any:
        def plain(value: Any) -> Any:
            wide = inst.opcode in {"sub", "add", "icmp"} and inst.operands[0].type.bits == 64
            return _address(value) if isinstance(value, Pointer) and wide else value

        return super()._each(inst, lambda *given: of(*map(plain, given)))

    def _called(self, i: IRInstruction) -> Any:
        if i.word == "metalnb_every":
            holds = self._value(i.operands[0])
            self.passed += holds
            return holds
        if i.word in {"metalnb_fault", "metalnb_faulted"}:
            self.faults += 1
            return None
        return super()._called(i)


def _address(pointer: Pointer) -> int:
    return ((int(pointer.root) if pointer.root.isdigit() else 99) + 1 << 40) + pointer.at


def ended(thread: Interpreter) -> bool:
    """Run a thread; return whether it ended."""
    try:
        thread.run()
    except TooLong:
        return False
    return True


class Case:
    """A kernel with all checks, for vector registers or a thread at a time, and its memory in a launch."""

    def __init__(self, module: IRModule, facts: LaunchFacts, scalars: int, *, lanes: bool = True) -> None:
        self.module, self.facts = module, facts
        self.analysis = Analysis(module, LaneEntry(module))
        given, region = (parameter.text for parameter in self.analysis.roots.function.parameters)
        target = LaneTarget(given, scalars) if lanes else FiberTarget((given, region, "0"), scalars)
        weakest = self.analysis.weakest_proof
        checks = Checks(weakest.unproven, weakest.long_loops)
        self.made: CheckedModule = insert_checks(module, self.analysis, checks, target)
        self.scalars = scalars

    def memory(self, rng: random.Random) -> dict[str, bytearray]:
        found = {str(n): bytearray(random_memory(rng, size)) for n, size in enumerate(self.facts.sizes)}
        found |= {str(n): bytearray(data) for n, data in self.facts.scalars.items() if not isinstance(data, int)}
        if "1" in found and len(found["1"]) > _BOUNDS:
            choices = [(rng.randrange(24), rng.randrange(66), random_number(rng)) for _ in range(_BOUNDS // 4)]
            bounds = [rng.choice(numbers) for numbers in choices]
            found["1"][:_BOUNDS] = struct.pack(f"<{len(bounds)}I", *bounds)
        for name in self.module.globals:
            table, root = self.analysis.roots.table(f"@{name}"), self.analysis.roots.root(f"@{name}")
            if root is not None:
                found[f"@{name}"] = bytearray(table) if table else bytearray(root.size)
        return found

    def watch(self, memory: dict[str, bytearray]) -> dict[str, bytearray]:
        """Add the limits, and the records of faults."""
        words = limit_words(self.made.limits, self.facts.sizes, math.prod(self.facts.grid))
        return memory | {str(self.scalars): bytearray(words or bytes(8)), str(self.scalars + 1): bytearray(4096)}

    def inside(self, memory: Mapping[str, bytearray]) -> Callable[[IRInstruction, Mapping[str, Any]], None]:
        """Return a callback that verifies that no access leaves its memory."""

        def see(inst: IRInstruction, values: Mapping[str, Any]) -> None:
            if inst.opcode in {"load", "store"} and inst.pointer.text in values:
                pointer = values[inst.pointer.text]
                kind = inst.type if inst.opcode == "load" else inst.operands[0].type
                if pointer.root in memory:
                    size = self.module.layout.size(kind)
                    assert 0 <= pointer.at <= len(memory[pointer.root]) - size, (inst.text, pointer)

        return see

    def run(self, rng: random.Random) -> tuple[int, int]:
        """Run a thread with and without checks; return its faults, and how many blocks and loops ran without checks."""
        memory = self.memory(rng)
        stands, region = random_position(rng, self.facts)
        seed = rng.random()
        plain, watched = ({name: bytearray(data) for name, data in memory.items()} for _ in range(2))
        watched = self.watch(watched)
        function = self.made.module.functions[self.analysis.roots.function.name]
        one = Addresses(self.module, self.analysis.roots.function, plain, stands, region, random.Random(seed))
        same = random.Random(seed)
        other = Addresses(self.module, function, watched, stands, region, same, self.inside(watched), 30000)
        if all([ended(one), ended(other)]):
            assert {name: watched[name] for name in memory} == {name: plain[name] for name in memory}
        return other.faults, other.passed


def check(seed: str, kind: str, body: str = "") -> Counter[str]:
    """Check one kernel in some launches; count its faults, and the blocks and loops that ran without checks."""
    rng, counts = random.Random(f"{seed} {kind}"), Counter[str]()
    if kind == "runs":
        text = run_text(rng, body or rng.choice(RUNS))
    elif kind == "loops":
        text = random_loops.HEAD + random_loops.kernel_text(rng, "f")
    else:
        text = random_affine.HEAD + random_affine.affine(rng, "f").text
    module = read_module(thread_text(mnb.compile(text, engine="cpu").f.unit))
    for _ in range(8):
        def data() -> bytearray:
            return bytearray(struct.pack("<I", random_number(rng)))

        grid, group = rng.choice((((64, 1, 1), (32, 1, 1)), ((100, 1, 1), (32, 1, 1)), ((1, 1, 1), (1, 1, 1))))
        scalars: dict[int, bytearray | bytes | int]
        if kind == "affine":  # its argument 1 is a number
            sizes, scalars, count = (rng.choice((4096, 64 << 10)), 4, 4 * 128 * 5), {1: data()}, 3
        else:
            sizes, scalars, count = SIZES, {3: data(), 4: data()}, 5
        case = Case(module, LaunchFacts(grid, group, sizes, scalars), count, lanes=rng.random() < 0.5)
        try:
            faults, passed = case.run(rng)
        except AssertionError as error:
            message = f"{seed} {kind}: {error}; {case.facts}\n{text}"
            raise AssertionError(message) from error
        counts += Counter(faults=faults, passed=passed)
    return counts


CASES = [*(("loops", str(seed)) for seed in range(6)), *(("affine", str(seed)) for seed in range(6)),
         *(("runs", body) for body in RUNS)]  # fmt: skip


@pytest.mark.long(every=3)  # A third of the programs of each kind, and of the loops
@pytest.mark.parametrize(("kind", "what"), CASES)
def test_a_checked_kernel_stays_inside_and_does_as_without_checks(kind: str, what: str) -> None:
    try:
        check(what, kind, what if kind == "runs" else "")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


NARROW = (
    (r"shl i64 (%[\w.]+), 48", r"trunc i64 \1 to i16"),
    (r"add i64 (%[\w.]+), 9218305487273984000", r"add i16 \1, 32750"),
    (r"ashr exact i64 (%[\w.]+), 47", r"sext i16 \1 to i64"), (r"i8, ptr (%[\w.]+), i64 (%20)", r"i16, ptr \1, i64 \2"),
)  # fmt: skip


def test_an_index_of_16_bits_wraps() -> None:
    """As in clang's output for some kernels, where the sign extension is written as shifts."""
    body = "for (uint j = u; j < v; ++j) { x += h[short(j + 32750)]; } a[i & 63] = x; }"
    try:
        kernel = mnb.compile(HEAD + body, engine="cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    text = thread_text(kernel.f.unit)
    for pattern, by in NARROW:
        text, found = re.subn(pattern, by, text)
        assert found == 1, pattern
    rng, module = random.Random("narrow"), read_module(text)
    for _ in range(40):
        scalars = {3: bytearray(4), 4: bytearray(4)}
        Case(module, LaunchFacts((64, 1, 1), (32, 1, 1), SIZES, scalars), 5).run(rng)


def main() -> None:
    """Check many kernels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = Counter[str]()
    warnings.simplefilter("ignore")
    for number in range(options.kernels):
        with contextlib.suppress(mnb.CompileError):  # of a name that is declared twice
            found += check(f"{options.seed} {number}", ("runs", "loops", "runs", "affine")[number % 4])
    print(f"seed {options.seed}: {options.kernels} kernels, {found}")


if __name__ == "__main__":
    main()
