"""Apple's documented limits, checked before Metal's validation, which would end the process.

Source: Metal feature set tables, and the documentation of `MTLComputeCommandEncoder`.
"""

from __future__ import annotations

import math

from metalnb.engine.base import Grid
from metalnb.errors import LaunchError
from metalnb.msl.signature import Param, Signature

__all__ = [
    "BUFFERS", "BYTES", "check_memory_lengths", "check_offset", "check_threads", "offset_multiple", "round_up_length",
]  # fmt: skip

BUFFERS = 31  # per kernel: [[buffer(0)]] to [[buffer(30)]]
BYTES = 4096  # the limit of setBytes
_MULTIPLE = 16  # required by setThreadgroupMemoryLength
_VECTOR = 16  # the largest alignment that an offset needs: a float4's
_WORD = 4  # the alignment of an offset into constant memory on Apple's GPUs
_CONSTANT = 32  # the same alignment on other GPUs, family Mac2


def round_up_length(nbytes: int) -> int:
    """Round bytes of threadgroup memory up to a length that Metal accepts."""
    return -(-nbytes // _MULTIPLE) * _MULTIPLE


def offset_multiple(param: Param, *, apple: bool) -> int:
    """Return the required alignment of an argument's offset into its buffer."""
    alignment = min(max(param.type.alignment, 1), _VECTOR)
    if param.space == "constant":
        return max(alignment, _WORD if apple else _CONSTANT)
    return alignment


def check_offset(kernel: str, param: Param, offset: int, *, apple: bool) -> None:
    """Refuse an argument whose offset Metal does not accept.

    Raises
    ------
    LaunchError
    """
    multiple = offset_multiple(param, apple=apple)
    if offset % multiple:
        message = f"starts {offset:,} bytes into its buffer, and Metal takes multiples of {multiple}"
        label = f"{kernel}: argument '{param.name}' {param.attribute} is {param.spelling}; it"
        raise LaunchError(f"{label} {message}. Pass a copy of it.")


def check_threads(kernel: str, threadgroup: Grid, limit: int) -> None:
    """Refuse a threadgroup for which the GPU has too few registers.

    Raises
    ------
    LaunchError
    """
    threads = math.prod(threadgroup)
    if threads > limit:
        message = f"a threadgroup of {threads} threads; this kernel allows {limit} on this device"
        raise LaunchError(f"{kernel}: {message}, because of its registers. Pass threadgroup={limit} or less.")


def check_memory_lengths(signature: Signature, declared: int, lengths: list[int], limit: int) -> None:
    """Refuse more threadgroup memory than the device has.

    Raises
    ------
    LaunchError
    """
    dynamic = sum(lengths)
    if declared + dynamic > limit:
        total = f"{declared + dynamic:,} bytes of threadgroup memory ({declared:,} declared, {dynamic:,} passed)"
        raise LaunchError(f"{signature.name}: needs {total}; this device has {limit:,}.")


