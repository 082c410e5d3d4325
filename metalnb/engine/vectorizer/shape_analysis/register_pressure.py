"""Estimate the register pressure of a kernel in vector registers; values that do not fit are spilled."""

from __future__ import annotations

from .shape_solver import LaneShapes

__all__ = ["live_bits"]

_CONDITION = 32  # bits per lane of a condition, without mask registers


def live_bits(analysis: LaneShapes, *, masks: bool) -> int:
    """Return the bits of a thread's live varying values at the point of highest pressure.

    Uniform and strided values do not count, as they are scalars. Nor do pointers, which rarely stay in a register.

    Parameters
    ----------
    analysis : LaneShapes
    masks : bool
        Whether the machine has mask registers for conditions.
    """
    sizes = {
        name: size for name, inst in analysis.definitions.items()
        if analysis.shape_of(name).varying and (size := _bits(analysis, name, masks=masks))
    }  # fmt: skip
    blocks = analysis.flow.function.blocks
    live_in: dict[str, frozenset[str]] = dict.fromkeys(analysis.flow.order, frozenset())
    peak, has_changed = 0, True
    while has_changed:
        has_changed = False
        peak = 0
        for label in reversed(analysis.flow.order):
            live = {name for target in analysis.flow.successors[label] for name in live_in[target]}
            live |= _phi_uses(analysis, label, sizes)
            bits = sum(sizes[name] for name in live)
            peak = max(peak, bits)
            for inst in reversed(blocks[label]):
                if inst.result in live:
                    live.remove(inst.result)
                    bits -= sizes[inst.result]
                if inst.opcode == "phi":
                    continue
                for name in inst.used_names:
                    if name in sizes and name not in live:
                        live.add(name)
                        bits += sizes[name]
                peak = max(peak, bits)
            if live != live_in[label]:
                live_in[label] = frozenset(live)
                has_changed = True
    return peak


def _phi_uses(analysis: LaneShapes, label: str, sizes: dict[str, int]) -> set[str]:
    """Return the values that phis in a block's successors read from the block."""
    return {
        operand.text
        for target in analysis.flow.successors[label]
        for inst in analysis.flow.function.blocks[target] if inst.opcode == "phi"
        for operand, source in zip(inst.operands, inst.targets, strict=True)
        if source == label and operand.text in sizes
    }  # fmt: skip


def _bits(analysis: LaneShapes, name: str, *, masks: bool) -> int:
    ir_type = analysis.definitions[name].type
    if ir_type.kind == "pointer":
        return 0
    if ir_type.kind == "integer" and ir_type.bits == 1:
        return 0 if masks else _CONDITION
    return 8 * analysis.layout.size(ir_type)
