"""Write a block with several checks twice: without checks, if a few tests show all accesses in bounds, and with them.

Accesses that differ only by constant bytes share one test of the range that they all need (R. Gupta,
"Optimizing array bound checks using flow analysis", 1993). In vector code, lanes with any access out of bounds run the
version with checks, and the others the version without.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...llvm.instruction_syntax import BINARY, CASTS
from ...llvm.instructions import IRFunction, IRInstruction
from ..accesses import Access
from ..memory_roots import PointerPlace, Roots

__all__ = ["BlockVersions", "SharedTests", "is_shared"]

_ARITHMETIC = frozenset({"add", "sub", "mul", "shl", "zext", "sext", "trunc"})
_PURE = BINARY | CASTS | {"icmp", "fcmp", "select", "freeze", "getelementptr", "fneg"}
_LEAST = 2  # checks per test, for a second version to pay off
# Instructions, and instructions per check. Duplicating a longer block would double clang's work and save at most a
# twentieth of the run time.
_LONG, _FOR_EACH = 1000, 20


@dataclass(slots=True)
class SharedTests:
    """The tests that show all accesses of a block to be in bounds.

    Attributes
    ----------
    first : list of IRInstruction
        The part of the block that does not depend on its reads: written once, before both versions.
    rest : list of IRInstruction
    stretches : dict
        Places, each with the range of bytes that the accesses need.
    """

    first: list[IRInstruction] = field(default_factory=list)
    rest: list[IRInstruction] = field(default_factory=list)
    stretches: dict[object, tuple[PointerPlace, int]] = field(default_factory=dict)

    def add(self, key: object, place: PointerPlace, size: int) -> None:
        """Add an access; accesses with the same key differ only by constant bytes."""
        first, end = place.fixed, place.fixed + size
        if known := self.stretches.get(key):
            first, end = min(known[0].fixed, first), max(known[0].fixed + known[1], end)
        self.stretches[key] = PointerPlace(place.root, first, place.terms), end - first


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
        places = [roots.place(access.pointer) for access in checked]
        self._needed = {name for place in places for name in (place.root, *(term for term, _ in place.terms))}
        self._users: dict[str, list[IRInstruction]] = {}
        self._formulas = {made.result: made.text for made in function if made.opcode in _ARITHMETIC}
        for made in function:
            for name in made.names:
                self._users.setdefault(name, []).append(made)

    def tests(
        self, block: Sequence[IRInstruction], guarded: Mapping[int, Collection[tuple[int, Access]]],
    ) -> SharedTests | None:  # fmt: skip
        """Return the tests for two versions of a block; None if the block should stay single.

        Parameters
        ----------
        block : sequence of IRInstruction
        guarded : mapping of int to collection of (int, Access)
            The accesses that are checked, by the ``id`` of their instructions.
        """
        body = [made for made in block if made.opcode != "phi" and not made.ends]
        if any(made.opcode == "alloca" or is_shared(made) for made in body):
            return None
        tests, count = SharedTests(), 0
        late: set[str] = set()
        for made in body:
            first = made.opcode in _PURE and not late.intersection(made.names)
            (tests.first if first else tests.rest).append(made)
            late.update([] if first else [made.result])
        for _, access in (pair for made in body for pair in guarded.get(id(made), ())):
            place = self._roots.place(access.pointer)
            root = self._roots.root(place.root)
            unknown = root is None and (place.root in late or not place.root)  # a constant address has no name
            if unknown or late.intersection(name for name, _ in place.terms):
                return None
            memory = root.number if root is not None and root.kind == "argument" else place.root
            same = tuple((self._formulas.get(name, name), step) for name, step in place.terms)
            tests.add((memory, same), place, access.size)
            count += 1
        pays = count >= _LEAST * len(tests.stretches) and len(tests.rest) <= max(_LONG, _FOR_EACH * count)
        return tests if tests.stretches and pays else None

    def leaves(self, made: IRInstruction, last: IRInstruction) -> bool:
        """Return whether a value of a block is used after it, or by its last instruction."""
        users = self._users.get(made.result, ())
        if made.result in self._needed:
            return True
        return any(user.block != last.block or user.opcode == "phi" or user is last for user in users)


def is_shared(made: IRInstruction) -> bool:
    """Return whether a call may be collective: a SIMD function, a barrier, or inline assembly."""
    return made.opcode == "call" and (not made.word.startswith("llvm.") or made.word.startswith("llvm.nvvm."))
