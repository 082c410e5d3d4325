"""A kernel's bottleneck: one sentence derived from a `Timing`.

This is the roofline model (Williams, Waterman and Patterson, 2009). A kernel takes at least as long as its bytes need
at the limit of memory, and at least as long as its operations need at the limit of arithmetic. The bound that is nearer
to the measured time is the bottleneck. The model leaves out the cost of the dispatch itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from .records import Timing
from .units import percent, seconds

__all__ = ["BYTES", "FASTER", "FLOPS", "Bottleneck", "bottleneck", "cache_source"]

BYTES, FLOPS = (f"pass {name}= (--{name} in a magic)" for name in ("bytes", "flops"))  # for missing counts
FASTER = 1.10  # exceeding a limit by more than this factor is not due to noise
_BOUND_FROM = 0.7  # from this fraction of a limit, the kernel is bound by it
_LAUNCH = 0.2  # a launch that takes more than this fraction of the time is reported
_LIMIT, _CACHES = 2, 50  # the most by which a real bandwidth exceeds the limit: of memory, of caches
_PARTLY = 4  # arrays below this many last-level caches may partly be cached from the last dispatch


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The resource that limits a kernel.

    Attributes
    ----------
    bound : {"memory", "arithmetic", "caches", "dispatch", "neither", "unknown"}
    sentence : str
        The finding in words, with its figures; empty when nothing is known.
    """

    bound: str
    sentence: str


def bottleneck(timing: Timing) -> Bottleneck:
    """Find a kernel's bottleneck."""
    share = timing.share
    part = timing.throughput / timing.peak if timing.throughput is not None and timing.peak else None
    if timing.grid and timing.median < timing.empty:
        time, empty = seconds(timing.median), seconds(timing.empty)
        sentence = f"an empty dispatch costs {empty}, the kernel itself takes {time}: give each dispatch more work"
        return Bottleneck("dispatch", f"bound by the dispatch: {sentence}")
    source = cache_source(share, timing.bytes, timing.cache)
    if share is not None and share > (_CACHES if source else _LIMIT):
        reason = f"it cannot have moved all the bytes counted, so parts of the arrays are not accessed; {BYTES}"
        return Bottleneck("unknown", f"{percent(share)} of what {timing.ceiling} reaches: {reason}")
    if share is not None and source:
        rate = f"{percent(share)} of what memory can give ({timing.ceiling})"
        return Bottleneck("caches", f"runs {source} the caches: {rate}")
    if share is not None and share >= max(_BOUND_FROM, part or 0):
        return Bottleneck("memory", f"bound by memory: {percent(share)} of what {timing.ceiling} reaches")
    if part is not None and part >= _BOUND_FROM:
        return Bottleneck("arithmetic", f"bound by arithmetic: {percent(part)} of what chains of fma reach")
    return _neither(timing, share, part)


def cache_source(share: float | None, bytes_moved: int | None, cache: int | None) -> str:
    """Return "from" or "partly from" if a kernel is so fast that the caches must serve it, else an empty string.

    Parameters
    ----------
    share : float or None
        The kernel's bandwidth as a fraction of the limit.
    moved, cache : int or None
        The bytes of its arrays, and of the device's last-level cache.
    """
    if share is None or not cache or not bytes_moved:
        return ""
    if bytes_moved <= cache:
        return "from" if share > 1 else ""
    return "partly from" if bytes_moved <= _PARTLY * cache and share > FASTER else ""


def _neither(timing: Timing, share: float | None, part: float | None) -> Bottleneck:
    shares = [f"{percent(share)} of the memory limit ({timing.ceiling})"] if share is not None else []
    shares += [f"{percent(part)} of the arithmetic limit"] if part is not None else []
    if len(shares) == 2:
        return Bottleneck("neither", f"bound by neither: {' and '.join(shares)}; {_waits_for(timing)}")
    if not shares:
        return Bottleneck("unknown", "")
    lacks = "flops" if part is None else "bytes"
    advice, resource = (FLOPS, "arithmetic") if lacks == "flops" else (BYTES, "memory")
    return Bottleneck("unknown", f"{shares[0]}; {advice} to learn whether {resource} bounds it")


def _waits_for(timing: Timing) -> str:
    """Return what else takes the time: known causes if the kernel was counted, otherwise possible causes."""
    if timing.counted:
        return f"what a GPU would wait for: {timing.counted[0]}"
    if not timing.most_needed:
        return "it waits for something else: divergent branches, latency, too few threads, uncoalesced accesses"
    parts = ["counted, and nothing stands out"]
    if timing.grid and timing.empty > _LAUNCH * timing.median:
        parts.append(f"an empty dispatch alone takes {percent(timing.empty / timing.median)} of this time")
    return "; ".join([*parts, f"what a GPU would need longest, by a model: {timing.most_needed}"])
