"""Keep the counts of the latest profiles, for later timings of the same dispatch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metalnb.call.kernel import Dispatch
from metalnb.engine.base import Grid
from metalnb.engine.unit import Unit

from .cost_findings import findings
from .profile_record import Profile
from .time_bounds import describe_bottleneck

__all__ = ["KnownCounts", "known_counts", "known_flops", "remember", "summarize"]

_CALLS_KEPT = 256


@dataclass(frozen=True, slots=True)
class KnownCounts:
    """The counts of a profile.

    Attributes
    ----------
    flops : int
        Floating-point operations of the dispatch.
    findings : tuple of str
        See `cost_findings.findings`.
    most_needed : str
        See `time_bounds.describe_bottleneck`.
    """

    flops: int
    findings: tuple[str, ...]
    most_needed: str


_known: OrderedDict[tuple[int, Grid, Grid], tuple[Unit, tuple[bytes, ...], KnownCounts]] = OrderedDict()  # by unit's id


def summarize(profile: Profile) -> KnownCounts:
    """Return the part of a profile that is kept."""
    sentences = tuple(finding.sentence for finding in findings(profile))
    return KnownCounts(profile.flops, sentences, describe_bottleneck(profile))


def remember(dispatch: Dispatch, profile: Profile) -> None:
    """Keep a dispatch's counts, replacing those of an earlier profile of the same grid."""
    unit = dispatch.kernel.unit
    key = id(unit), dispatch.grid, dispatch.threadgroup
    _known.pop(key, None)
    _known[key] = unit, _scalars(unit, dispatch.arguments), summarize(profile)
    while len(_known) > _CALLS_KEPT:
        _known.popitem(last=False)


def known_counts(
    unit: Unit, grid: Grid, threadgroup: Grid, arguments: Sequence[Any] | None = None,
) -> KnownCounts | None:  # fmt: skip
    """Return the counts of a profiled dispatch; None if it has not been profiled.

    Parameters
    ----------
    unit, grid, threadgroup
        Those of the dispatch.
    arguments : sequence, optional
        The dispatch's arguments: the scalars must equal those that were profiled. If they are not passed, any scalars
        match.
    """
    entry = _known.get((id(unit), grid, threadgroup))
    if entry is None or (arguments is not None and entry[1] != _scalars(unit, arguments)):
        return None
    return entry[2]


def known_flops(unit: Unit, grid: Grid, threadgroup: Grid) -> int | None:
    """Return the floating-point operations of a profiled dispatch, as `known_counts` does."""
    counts = known_counts(unit, grid, threadgroup)
    return None if counts is None else counts.flops


def _scalars(unit: Unit, arguments: Sequence[Any]) -> tuple[bytes, ...]:
    """Return the values of the scalar arguments, such as a loop's length or an image's width."""
    pairs = zip(unit.signature.params, arguments, strict=True)
    constants = ((p, a) for p, a in pairs if p.reference and p.space == "constant")
    scalars = (a for _, a in constants if a is not None and not isinstance(a, int))
    return tuple(bytes(memoryview(a).cast("B")) for a in scalars)
