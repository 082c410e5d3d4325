"""The loops of a function, from where its blocks branch to.

Source: SPIR-V specification 1.4, 2.11 (control flow); Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm
(2001).
"""

from __future__ import annotations

from .module import Body, Module

__all__ = ["dominators", "natural_loops"]


def dominators(module: Module, function: Body) -> dict[int, int]:
    """Return the block that stands right above each one, on every way to it; the entry's is itself.

    They come in reverse postorder; a block that cannot be reached is left out.
    """
    order, _, before = _ordered(module, function)
    above = _dominators(order, {label: i for i, label in enumerate(order)}, before)
    return {label: above[label] for label in order}


def natural_loops(module: Module, function: Body) -> dict[int, set[int]]:
    """Return the labels of the blocks of each natural loop, by the label of its head."""
    order, following, before = _ordered(module, function)
    place = {label: i for i, label in enumerate(order)}
    if all(place[n] > place[label] for label in order for n in following[label]):
        return {}  # no branch goes back
    above = _dominators(order, place, before)
    bodies: dict[int, set[int]] = {}
    for label in order:
        for head in following[label]:
            if place[head] <= place[label] and _dominates(above, head, label):
                _collect(bodies.setdefault(head, {head}), label, before)
    return bodies


def _ordered(module: Module, function: Body) -> tuple[list[int], dict[int, list[int]], dict[int, list[int]]]:
    """Return the blocks that can be reached, in reverse postorder, and what comes behind and before each."""
    labels = {block.label for block in function.blocks}
    following = {block.label: [n for n in module.targets(block) if n in labels] for block in function.blocks}
    order = _reverse_postorder(function.blocks[0].label, following)
    before: dict[int, list[int]] = {label: [] for label in order}
    for label in order:
        for n in following[label]:
            before[n].append(label)
    return order, following, before


def _collect(body: set[int], label: int, before: dict[int, list[int]]) -> None:
    """Add to a loop the block that branches back to its head, and all that come before it."""
    ahead = [label]
    while ahead:
        block = ahead.pop()
        if block not in body:
            body.add(block)
            ahead += before[block]


def _reverse_postorder(entry: int, following: dict[int, list[int]]) -> list[int]:
    order: list[int] = []
    seen = {entry}
    ahead = [(entry, iter(following[entry]))]
    while ahead:
        label, rest = ahead[-1]
        unseen = next((n for n in rest if n not in seen), None)
        if unseen is None:
            order.append(label)
            ahead.pop()
        else:
            seen.add(unseen)
            ahead.append((unseen, iter(following[unseen])))
    return order[::-1]


def _dominators(order: list[int], place: dict[int, int], before: dict[int, list[int]]) -> dict[int, int]:
    """Return each block's immediate dominator."""
    above = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for label in order[1:]:
            known = [b for b in before[label] if b in above]
            best = known[0]
            for other in known[1:]:
                while best != other:
                    while place[best] > place[other]:
                        best = above[best]
                    while place[other] > place[best]:
                        other = above[other]  # noqa: PLW2901
            if above.get(label) != best:
                above[label] = best
                changed = True
    return above


def _dominates(above: dict[int, int], head: int, label: int) -> bool:
    while label != head:
        if above[label] == label:
            return False
        label = above[label]
    return True
