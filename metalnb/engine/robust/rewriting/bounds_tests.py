"""Write an access's bounds check: its index against a limit, or its address against each buffer it may be in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...llvm.instructions import IRFunction, IRInstruction
from ..accesses import Access
from ..memory_roots import AffineAddress, Root, Roots
from .entry_code import EntryCode
from .ir_builder import IRBuilder
from .size_limits import Limit

__all__ = ["AccessCondition", "ConditionWriter"]

_NARROW_BITS = 32
_WIDE_BITS = 64


@dataclass(frozen=True, slots=True)
class AccessCondition:
    """A condition that has been written.

    Attributes
    ----------
    flag : str
        The name of an ``i1``.
    pointer : str
        The pointer as an integer, if that was compared.
    address : AffineAddress or None
        The address whose index was compared, otherwise.
    """

    flag: str
    pointer: str
    address: AffineAddress | None


def _may_wrap(steps: int, step: int) -> bool:
    """Return whether a 32-bit index plus `steps` may wrap to one in bounds, for elements of `step` bytes.

    A sum above the largest signed number is out of bounds as an unsigned one. One below the least wraps to a large
    number, which must be above the number of elements in 2^31 bytes.
    """
    half = 1 << _NARROW_BITS - 1
    return steps >= half or (steps < 0 and half + steps < half // step)


class ConditionWriter:
    """Writes conditions.

    Parameters
    ----------
    function : IRFunction
    roots : Roots
    entry_code : EntryCode
    code : IRBuilder
    wide : bool
        Whether a buffer may have 2^31 bytes or more.
    """

    def __init__(
        self, function: IRFunction, roots: Roots, entry_code: EntryCode, code: IRBuilder, *, wide: bool,
    ) -> None:  # fmt: skip
        self._definitions: dict[str, IRInstruction] = {}
        self._pointers = {parameter.text: parameter.type.text for parameter in function.parameters}
        self.add_definitions(function)
        self._roots, self._entry_code, self._code, self._wide = roots, entry_code, code, wide

    def add_definitions(self, function: IRFunction) -> None:
        """Read the function's values again after adding some."""
        self._definitions |= {inst.result: inst for inst in function if inst.result}
        self._pointers |= {inst.result: inst.type.text for inst in function if inst.type.kind == "pointer"}

    def write_condition(self, access: Access, names: Mapping[str, str]) -> AccessCondition:
        """Write an access's condition in front of it; `names` maps values to their new names."""
        address = self._roots.address(access.pointer)
        root = self._roots.root(address.root)
        if root is None:
            pointer = self._code.pointer_as_integer(access.pointer_type, names.get(access.pointer, access.pointer))
            return AccessCondition(self._write_any_root_test(pointer, address, access.size), pointer, None)
        terms = tuple((names.get(index, index), step) for index, step in address.terms)
        renamed = AffineAddress(address.root, address.offset, terms)
        return AccessCondition(self.write_access_test(renamed, access.size), "", renamed)

    def write_access_test(self, address: AffineAddress, size: int) -> str:
        """Write a test that an access stays inside its root, or inside one of its possible roots."""
        root = self._roots.root(address.root)
        if root is None:
            start = self._code.pointer_as_integer(self._pointers[address.root], address.root)
            pointer = self._code.op(f"add i64 {start}, {self.write_offset(address)}")
            return self._write_any_root_test(pointer, address, size)
        if len(address.terms) == 1 and address.offset >= 0 and address.terms[0][1] > 0:
            return self._write_index_test(root, address, size)
        return self.write_offset_test(root, self.write_offset(address), size)

    def write_loop_bound_test(self, root: Root, address: AffineAddress, size: int, term: tuple[str, int]) -> str:
        """Write a test under which an access is in bounds, at an address plus an index times its step.

        If the address without the index is out of bounds, the test fails.
        """
        op, (index, step) = self._code.op, term
        limit = self._limit(root, address.offset + size, 1, _WIDE_BITS)
        start = self.write_offset(AffineAddress(address.root, 0, address.terms))
        count = op(f"select i1 {op(f'icmp ult i64 {start}, {limit}')}, i64 {op(f'sub i64 {limit}, {start}')}, i64 0")
        if step > 1:
            count = op(f"udiv i64 {op(f'add i64 {count}, {step - 1}')}, {step}")
        return op(f"icmp ult i64 {self._widen_index(index)}, {count}")

    def write_offset(self, address: AffineAddress) -> str:
        """Write the offset of an address from its root, in bytes."""
        total = str(address.offset)
        for index, step in address.terms:
            wide = self._widen_index(index)
            scaled = wide if step == 1 else self._code.op(f"mul i64 {wide}, {step}")
            total = scaled if total == "0" else self._code.op(f"add i64 {scaled}, {total}")
        return total

    def _write_index_test(self, root: Root, address: AffineAddress, size: int) -> str:
        """Compare a single index with the number of indices in bounds."""
        ((index, step),) = address.terms
        definition = self._definitions.get(index)
        # A negative index may be in bounds if bytes are added to it. One that cannot be negative is compared unchanged:
        # in 32 bits, it and its steps might wrap.
        unsigned = definition is not None and definition.opcode == "zext"
        steps, rest = (0, address.offset) if unsigned else divmod(address.offset, step)
        is_wide = self._wide or _may_wrap(steps, step)
        narrow = "" if is_wide else self._narrow_index(index)  # half the work in vector code
        element, bits = (narrow, _NARROW_BITS) if narrow else (self._widen_index(index), _WIDE_BITS)
        if steps:
            element = self._code.op(f"add i{bits} {element}, {steps}")
        return self._code.op(f"icmp ult i{bits} {element}, {self._limit(root, rest + size, step, bits)}")

    def _narrow_index(self, index: str) -> str:
        """Return the 32-bit integer that an index extends, or an empty string."""
        definition = self._definitions.get(index)
        ir_type = definition.type if definition else None
        if definition is not None and definition.opcode in {"zext", "sext"}:
            index, ir_type = definition.operands[0].text, definition.operands[0].type
        return index if ir_type is not None and ir_type.bits == _NARROW_BITS and ir_type.kind == "integer" else ""

    def _write_any_root_test(self, pointer: str, address: AffineAddress, size: int) -> str:
        """Compare a pointer with the bounds of each buffer it may be in."""
        flag = "false"
        for name in sorted(self._roots.sources(address.root)):
            root = self._roots.root(name)
            if root is None:
                continue
            offset = self._code.op(f"sub i64 {pointer}, {self._entry_code.address(root)}")
            is_inside = self._code.op(f"icmp ult i64 {offset}, {self._limit(root, size, 1, _WIDE_BITS)}")
            flag = is_inside if flag == "false" else self._code.op(f"or i1 {flag}, {is_inside}")
        return flag

    def write_offset_test(self, root: Root, offset: str, size: int) -> str:
        """Write a test that `size` bytes at a 64-bit offset are inside a root."""
        return self._code.op(f"icmp ult i64 {offset}, {self._limit(root, size, 1, _WIDE_BITS)}")

    def write_distance(self, root: Root, kind: str, pointer: str) -> str:
        """Write the offset of a pointer from a root, in bytes."""
        integer = self._code.pointer_as_integer(kind, pointer)
        return self._code.op(f"sub i64 {integer}, {self._entry_code.address(root)}")

    def _limit(self, root: Root, extent: int, step: int, bits: int) -> str:
        if root.kind == "argument":
            return self._entry_code.limit(Limit(root.number, extent, step), bits)
        return str(Limit(0, extent, step).count(root.size))

    def _widen_index(self, index: str) -> str:
        definition = self._definitions.get(index)
        ir_type = definition.type if definition else None
        if ir_type is None or ir_type.bits == _WIDE_BITS:
            return index
        return self._code.op(f"{'sext' if ir_type.bits < _WIDE_BITS else 'trunc'} {ir_type} {index} to i64")
