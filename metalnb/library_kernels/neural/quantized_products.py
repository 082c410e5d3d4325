"""Products with weights of 4 and 8 bits: quantized_matmul."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import check_engine
from ...engine import named
from ...engine.base import Caps
from ...program import Program
from ..launching.launcher import Launch, is_aligned
from ..launching.product_launch import product
from ..launching.programs import compile_templates
from ..launching.reduction_launch import tag
from ..op import FLOATS, LeastTraffic, Op, OpRow
from ..planning.device import LANES, Device, device_of
from ..planning.packed_record import record
from ..planning.threads_per_row import grid_of_groups
from .quantized import (
    PARAMETERS,
    VECTOR,
    Host,
    aligned_copy,
    bool_text,
    checked_parts,
    dequantize_reference,
    float_array,
    program_of,
    weights_of,
)

__all__ = ["quantized_matmul"]

_FEW = 8  # for more vectors than this, the weights are unpacked before the product
_BUSY = 12  # of a GPU's 64 SIMD-groups, this many reach its memory bandwidth
_SIDE = 16  # rows of two matrices, one above the other
_FULL = 15  # this many SIMD-groups of a processor have enough loads of 16 bytes in flight
_STEP = 512  # a SIMD-group takes this many bits of a row at once
_LAUNCHES = 512  # plans to keep


class QuantizedProduct(Op):
    """The op that multiplies by quantized weights: a product and a sum for each weight and vector."""

    def __metal_traffic__(self, x: Any, words: Any, *parts: Any, **options: Any) -> LeastTraffic:
        """Return the least bytes that a call must move, and its operations."""
        nbytes = super().__metal_traffic__(x, words, *parts, **options)
        rows = math.prod(words.shape[:-1])
        return LeastTraffic(nbytes.bytes, 2 * x.size * rows)


def _product(x: Host, words: Host, scales: Host, minima: Host | None = None) -> Host:
    result: Host = x @ dequantize_reference(words, scales, minima).T
    return result


def _product_size(x: Host, words: Host, scales: Host, *rest: Host) -> Any:
    """Return a bound of the terms, because the scales' and the minima's cancel."""
    minima = np.abs(rest[0]) if len(rest) > 1 else np.abs(scales) * 2.0 ** (words.shape[-1] // max(1, scales.shape[-1]))
    return np.abs(x) @ dequantize_reference(words, np.abs(scales), minima).T


def quantized_matmul(x: Array, words: Array, scales: Array, minima: Array | None = None, /) -> Array:
    """Return ``x @ dequantize(words, scales, minima).T``; for few vectors the packed weights are read directly.

    Parameters
    ----------
    x : Array (…, K)
        Floating-point.
    words, scales, minima : Array
        The result of `quantize` for weights (N, K), a row for each output feature.

    Returns
    -------
    Array (…, N)
        In x's dtype; sums are kept in float32. With more than 8 vectors the weights are first rounded to x's dtype. If
        x has an infinity, the result may be NaN.

    Raises
    ------
    TypeError
        If x, the scales or the minima are not floats, or the words are not uint32.
    ValueError
        If the weights are not a matrix, or K differs.
    """
    operands = (x, words, scales) if minima is None else (x, words, scales, minima)
    key = tuple([a.form or a.shared_form() if type(a) is Array else None for a in operands])
    cached = _KNOWN.get(key)
    if cached is not None and cached.caps is x.engine.caps and all(is_aligned(a, VECTOR) for a in operands):
        return cached.start(operands)
    x = float_array("quantized_matmul", x, "x.astype(mnb.float32)")
    parts = checked_parts("quantized_matmul", words, scales, minima)
    if len(parts.shape) != 2 or x.ndim == 0 or x.shape[-1] != parts.shape[1]:
        raise ValueError(
            f"quantized_matmul: the weights must be (N, K) for an x of (…, K); got weights {parts.shape}, x {x.shape}."
        )
    check_engine(x.engine, "quantized_matmul", parts.words)
    n, k = parts.shape
    m = math.prod(x.shape[:-1])
    if m > _FEW or not m * n * k:
        weights = weights_of(parts, x.dtype)
        result = product(x if x.ndim > 1 else x.reshape((1, k)), weights.T, x.shape[:-2])
        return result.reshape((*x.shape[:-1], n))
    operands_aligned = (aligned_copy(x), *(a for a in parts[:3] if a is not None))
    begins = [a.offset // a.itemsize for a in operands_aligned]
    kinds = (tag(x.dtype), tag(parts.scales.dtype), parts.bits, parts.minima is None)
    launch = _launch(kinds, (m, n, k), (*begins[:3], begins[-1]), x.device, device_of(x.engine.caps))
    cached = _KnownProduct(x.engine.caps, launch, (*x.shape[:-1], n))
    if all(first is second for first, second in zip(operands_aligned, operands, strict=True)):  # none was copied
        if len(_KNOWN) >= _LAUNCHES:
            _KNOWN.clear()
        _KNOWN[key] = cached
    return cached.start(operands_aligned)


class _KnownProduct(NamedTuple):
    """The dispatch for arrays that need no copies, by their forms and the engine's properties."""

    caps: Caps
    launch: Launch
    shape: tuple[int, ...]

    def start(self, operands: tuple[Array, ...]) -> Array:
        """Start the dispatch; without minima, the scales take their place."""
        x = operands[0]
        out = empty(self.shape, x.dtype, x.engine)
        self.launch.start_on((*operands[:3], operands[-1], out))
        return out


_KNOWN: dict[Any, _KnownProduct] = {}


@functools.lru_cache(_LAUNCHES)
def _launch(
    kinds: tuple[str, str, int, bool], lengths: tuple[int, int, int], begins: tuple[int, ...], engine: str,
    device: Device,
) -> Launch:  # fmt: skip
    """Plan the product of few vectors.

    Parameters
    ----------
    kinds : tuple
        The kinds of x and of the scales, the bits, and whether there are no minima.
    lengths : tuple of 3 int
        The vectors, the rows of the weights, and their length.
    begins : tuple of 4 int
        The offsets of x, the words, the scales and the minima, in elements.
    engine : str
    device : Device
    """
    (kind, scale, bits, symmetric), (m, n, _) = kinds, lengths
    settings = (record(PARAMETERS, *begins, *lengths, 0),)
    template = f"{scale}, {bits}, {bool_text(symmetric)}"
    matrices = kind.removesuffix("16")
    if device.waits and matrices in device.matrices:
        tall, simds = _tile(lengths, bits, device)
        name = "quantized_pair" if m <= 2 else "quantized_eight"
        kernel = _matrices_program(engine, f"{name}<{matrices}, {template}, {tall}, {simds}>")
        threads = simds * LANES
        form = ((-(-n // (_SIDE * tall)) * threads, 1, 1), (threads, 1, 1))
        return Launch(kernel[name].binary, *form, settings).bind_records(named(engine))
    vectors = next(v for v in (4, 2, 1) if m % v == 0 and (device.waits or v < 4))
    rows, in_chunks = _rows(n, device), bool_text(device.waits)
    kernel = program_of(engine, f"quantized_dots<{kind}, {template}, {rows}, {vectors}, {in_chunks}>")
    form = grid_of_groups(-(-n // rows) * (m // vectors), device)
    return Launch(kernel["quantized_dots"].binary, *form, settings).bind_records(named(engine))


def _tile(lengths: tuple[int, int, int], bits: int, device: Device) -> tuple[int, int]:
    """Return the height of a threadgroup's tile, in pairs of matrices, and the SIMD-groups that share its rows."""
    m, n, k = lengths
    tall = 2 if m <= 2 else 1  # more vectors leave registers for fewer rows
    steps, tiles = k * bits // _STEP, -(-n // (_SIDE * tall))
    simds = 4
    while simds < 16 and 2 * simds <= steps and 2 * tiles * simds < _FULL * device.tile_threadgroups:
        simds *= 2
    return tall, simds


def _rows(n: int, device: Device) -> int:
    """Return how many rows a SIMD-group takes; several share the loads of x."""
    if not device.waits:
        return 4
    fills_device = _BUSY * device.tile_threadgroups // 2
    return next((rows for rows in (4, 2) if n >= rows * fills_device), 1)


@functools.cache
def _matrices_program(engine: str, template: str) -> Program:
    return compile_templates("quantized_matrices.metal", {template.partition("<")[0]: template}, engine)


quantized_matmul = QuantizedProduct(quantized_matmul, OpRow(
    "linear", reference=_product, dtypes=FLOATS, size=_product_size, cite="MLX, ``quantized_matmul``",
    kernels=("quantized.metal", "quantized_matrices.metal", "matmul.metal"),
    tolerance={"float32": 40.0, "float16": 1.1, "bfloat16": 1.1},
))  # fmt: skip
