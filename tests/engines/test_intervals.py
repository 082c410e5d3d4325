"""`Interval` against sets of integers: every interval of four-bit integers, of either kind and partly wrapped.

An interval stands for its integers modulo 16. `residues` is that set; all bounds are compared with plain sets.
"""

import functools
import itertools
import operator
from collections.abc import Callable

import pytest

from metalnb.engine.robust.proofs.intervals import Interval, full_range
from metalnb.engine.robust.proofs.transfer_functions import may_hold
from metalnb.engine.robust.scalar_graph.relations import PREDICATES

hull, intersection, normalize = Interval.hull, Interval.intersect, Interval.normalize

BITS = 4
COUNT = 1 << BITS
UNSIGNED, SIGNED = range(COUNT), range(-COUNT // 2, COUNT // 2)
SOME = [Interval(low, high) for low in range(-9, 18) for high in range(low, low + COUNT)]
PAIRS = list(itertools.product(SOME, SOME))
VIEWS = [pytest.param(Interval.unsigned, UNSIGNED, id="unsigned"), pytest.param(Interval.signed, SIGNED, id="signed")]
View = Callable[[Interval, int], Interval]


def integers(interval: Interval) -> range:
    return range(interval.low, interval.high + 1)


@functools.cache
def residues(interval: Interval) -> frozenset[int]:
    return frozenset(number % COUNT for number in integers(interval))


def smallest(numbers: set[int]) -> Interval:
    """Return the smallest interval with these integers."""
    return Interval(min(numbers), max(numbers))


def test_full_range_has_each_integer_once() -> None:
    assert list(integers(full_range(BITS))) == list(UNSIGNED)


def test_containment_is_that_of_the_integers() -> None:
    for one, other in PAIRS:
        assert one.within(other) == (one.low in integers(other) and one.high in integers(other)), (one, other)


def test_hull_is_the_smallest_interval_with_both() -> None:
    for one, other in PAIRS:
        assert hull(one, other) == smallest({*integers(one), *integers(other)}), (one, other)


@pytest.mark.parametrize(("operation", "exact"), [
    (Interval.plus, lambda a, b: a + b), (Interval.minus, lambda a, b: a - b), (Interval.times, lambda a, b: a * b),
])  # fmt: skip
def test_arithmetic_gives_the_smallest_interval_of_results(
    operation: Callable[[Interval, Interval], Interval], exact: Callable[[int, int], int],
) -> None:  # fmt: skip
    """The results of arbitrary integers, which are not reduced modulo 16."""
    for one, other in PAIRS[::5]:  # 5 does not divide their number: every interval is on either side
        results = {exact(a, b) for a, b in itertools.product(integers(one), integers(other))}
        assert operation(one, other) == smallest(results), (one, other)


@pytest.mark.parametrize(("view", "kind"), VIEWS)
def test_view_has_the_residues_in_the_integers_of_its_kind(view: View, kind: range) -> None:
    """A view is exact unless the residues wrap from the kind's last integer to its first; it is then the whole kind."""
    for one in SOME:
        found = view(one, BITS)
        expected = sorted(number for number in kind if number % COUNT in residues(one))
        if len(expected) <= expected[-1] - expected[0]:  # there is a gap
            expected = list(kind)
        assert list(integers(found)) == expected, one


@pytest.mark.parametrize(("view", "kind"), VIEWS)
def test_view_of_more_integers_than_there_are_is_the_whole_kind(view: View, kind: range) -> None:
    for low, more in itertools.product(range(-20, 20), (0, 1, 5, 40)):
        assert list(integers(view(Interval(low, low + COUNT + more), BITS))) == list(kind), (low, more)


def test_normalizing_changes_only_an_interval_with_more_integers_than_there_are() -> None:
    for low, length in itertools.product(range(-20, 20), range(1, 40)):
        one = Interval(low, low + length - 1)
        assert normalize(one, BITS) == (one if length <= COUNT else full_range(BITS)), one


def test_intersection_has_every_common_residue_and_is_the_smallest_such_interval() -> None:
    """The smallest within the first interval, or the second one if that is smaller still, as when residues wrap."""
    for one, known in PAIRS:
        found = intersection(one, known, BITS)
        common = {number for number in integers(one) if number % COUNT in residues(known)}
        expected = min(smallest(common), known, key=lambda i: len(integers(i))) if common else one
        assert found == expected, (one, known)
        assert residues(one) & residues(known) <= residues(found), (one, known)


@pytest.mark.parametrize("length", [COUNT, COUNT + 1, 5 * COUNT, 1000 * COUNT])
def test_intersection_with_all_residues_keeps_the_interval(length: int) -> None:
    """In the other order the result may be the long interval: the search ends after a few wraps."""
    for one in SOME:
        long = Interval(-3, -3 + length - 1)
        assert intersection(one, long, BITS) == one
        assert residues(one) <= residues(intersection(long, one, BITS))


def pairs_with(predicate: str) -> set[tuple[int, int]]:
    """Return the residues of all pairs of integers for which one of LLVM's comparisons is true."""
    compare, kind = getattr(operator, predicate[-2:]), SIGNED if predicate[0] == "s" else UNSIGNED
    return {(a % COUNT, b % COUNT) for a, b in itertools.product(kind, kind) if compare(a, b)}


@pytest.mark.parametrize("predicate", PREDICATES)
def test_inverse_holds_elsewhere_and_swapped_for_the_same_pairs_turned_round(predicate: str) -> None:
    relation, holding = PREDICATES[predicate], pairs_with(predicate)
    every = set(itertools.product(range(COUNT), range(COUNT)))
    assert relation.predicate == predicate
    assert pairs_with(relation.inverse.predicate) == every - holding
    assert pairs_with(relation.swapped.predicate) == {(b, a) for a, b in holding}
    is_order = predicate not in {"eq", "ne"}
    assert relation.is_inclusive == (is_order and (3, 3) in holding)
    assert relation.is_below == (is_order and (2, 3) in holding)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_relation_that_holds_for_some_integers_may_hold(predicate: str) -> None:
    """For intervals of one integer each, the answer is exact."""
    holding = pairs_with(predicate)
    for one, other in PAIRS[::5]:
        holds = not holding.isdisjoint(itertools.product(residues(one), residues(other)))
        found = may_hold(PREDICATES[predicate], one, other, BITS)
        assert found or not holds, (one, other)
        if one.low == one.high and other.low == other.high:
            assert found == holds, (one, other)
