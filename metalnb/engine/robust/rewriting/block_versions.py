"""Write a block with several checks twice: without checks, if a few tests show all accesses in bounds, and with them.

Accesses that differ only by constant bytes share one test of the range that they all need (R. Gupta,
"Optimizing array bound checks using flow analysis", 1993). In vector code, lanes with any access out of bounds run the
version with checks, and all other lanes the version without.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...llvm.instruction_syntax import BINARY, CASTS
from ...llvm.instructions import IRFunction, IRInstruction
from ..accesses import Access
from ..memory_roots import AffineAddress, Roots

__all__ = ["BlockVersions", "SharedTests", "may_be_collective"]

_ARITHMETIC = frozenset({"add", "sub", "mul", "shl", "zext", "sext", "trunc"})
_PURE = BINARY | CASTS | {"icmp", "fcmp", "select", "freeze", "getelementptr", "fneg"}
_MIN_CHECKS_PER_TEST = 2  # checks per test, for a second version to pay off
# Instructions, and instructions per check. Duplicating a longer block would double clang's work and save at most a
# twentieth of the run time.
_MAX_LENGTH, _MAX_LENGTH_PER_CHECK = 1000, 20


@dataclass(slots=True)
class SharedTests:
    """The tests that show all accesses of a block to be in bounds.

    Attributes
    ----------
    prefix : list of IRInstruction
        The part of the block that does not depend on its reads: written once, before both versions.
    rest : list of IRInstruction
    byte_ranges : dict
        Addresses, each with the number of bytes that the accesses need from there.
    """

    prefix: list[IRInstruction] = field(default_factory=list)
    rest: list[IRInstruction] = field(default_factory=list)
    byte_ranges: dict[object, tuple[AffineAddress, int]] = field(default_factory=dict)

    def add(self, key: object, address: AffineAddress, size: int) -> None:
        """Add an access; accesses with the same key differ only by constant bytes."""
        first, end = address.offset, address.offset + size
        if known := self.byte_ranges.get(key):
            first, end = min(known[0].offset, first), max(known[0].offset + known[1], end)
        self.byte_ranges[key] = AffineAddress(address.root, first, address.terms), end - first


class BlockVersions:
    """Finds the blocks of a function that are worth two versions.

    Parameters
    ----------
    function : IRFunction
    roots : Roots
    checked : collection of Access
        The checked accesses of the whole function, since their checks also use values.
    """

    def __init__(self, function: IRFunction, roots: Roots, checked: Collection[Access]) -> None:
        self._roots = roots
        addresses = [roots.address(access.pointer) for access in checked]
        self._needed = {name for a in addresses for name in (a.root, *(term for term, _ in a.terms))}
        self._users: dict[str, list[IRInstruction]] = {}
        self._formulas = {inst.result: inst.text for inst in function if inst.opcode in _ARITHMETIC}
        for inst in function:
            for name in inst.used_names:
                self._users.setdefault(name, []).append(inst)

    def shared_tests(
        self, block: Sequence[IRInstruction], guarded: Mapping[int, Collection[tuple[int, Access]]],
    ) -> SharedTests | None:  # fmt: skip
        """Return the tests for two versions of a block; None if the block should stay single.

        Parameters
        ----------
        block : sequence of IRInstruction
        guarded : mapping of int to collection of (int, Access)
            The accesses that are checked, by the ``id`` of their instructions.
        """
        body = [inst for inst in block if inst.opcode != "phi" and not inst.is_terminator]
        if any(inst.opcode == "alloca" or may_be_collective(inst) for inst in body):
            return None
        tests, count = SharedTests(), 0
        late_values: set[str] = set()
        for inst in body:
            is_prefix = inst.opcode in _PURE and not late_values.intersection(inst.used_names)
            (tests.prefix if is_prefix else tests.rest).append(inst)
            late_values.update([] if is_prefix else [inst.result])
        for _, access in (pair for inst in body for pair in guarded.get(id(inst), ())):
            address = self._roots.address(access.pointer)
            root = self._roots.root(address.root)
            # A constant address has no name.
            is_unknown = root is None and (address.root in late_values or not address.root)
            if is_unknown or late_values.intersection(name for name, _ in address.terms):
                return None
            memory = root.number if root is not None and root.kind == "argument" else address.root
            formula = tuple((self._formulas.get(name, name), step) for name, step in address.terms)
            tests.add((memory, formula), address, access.size)
            count += 1
        is_short = len(tests.rest) <= max(_MAX_LENGTH, _MAX_LENGTH_PER_CHECK * count)
        pays_off = is_short and count >= _MIN_CHECKS_PER_TEST * len(tests.byte_ranges)
        return tests if tests.byte_ranges and pays_off else None

    def is_live_out(self, inst: IRInstruction, last: IRInstruction) -> bool:
        """Return whether a value of a block is used after it, or by its last instruction."""
        users = self._users.get(inst.result, ())
        if inst.result in self._needed:
            return True
        return any(user.block != last.block or user.opcode == "phi" or user is last for user in users)


def may_be_collective(inst: IRInstruction) -> bool:
    """Return whether a call may be collective: a SIMD function, a barrier, or inline assembly."""
    return inst.opcode == "call" and (not inst.word.startswith("llvm.") or inst.word.startswith("llvm.nvvm."))
