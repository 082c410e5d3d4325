"""Weights of 4 and 8 bits in blocks of 32: quantize, dequantize, quantized_matmul."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any, Literal, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import check_engine
from ...arrays.promotion import DType, as_dtype, is_float
from ...engine import named
from ...engine.base import Caps
from ...program import Program
from ..launching.copying import as_array, contiguous_copy
from ..launching.launcher import Launch, is_aligned
from ..launching.product_launch import product
from ..launching.programs import compile_templates
from ..launching.reduction_launch import tag
from ..op import FLOATS, LeastTraffic, Op, OpRow, op
from ..planning.device import LANES, Device, device_of, grid_of_groups, grid_of_threads
from ..planning.packed_record import record

__all__ = ["dequantize", "quantize", "quantized_matmul"]

Host = np.ndarray[Any, Any]

_UINT = np.dtype(np.uint32)
_TOLD = struct.Struct("<4Q4I")
_OFFSET = struct.Struct("<Q")
_FEW_VECTORS = 8  # for more vectors than this, the weights are unpacked before the product
_BUSY = 12  # of a GPU's 64 SIMD-groups, this many reach its memory bandwidth
_VECTOR = 16  # a lane reads at most this many bytes at once
_SIDE = 16  # rows of two matrices, one above the other
_GROUPS_PER_PROCESSOR = 15  # this many SIMD-groups of a processor have enough loads of 16 bytes in flight
_STEP = 512  # a SIMD-group takes this many bits of a row at once
_LAUNCHES = 512  # plans to keep


class Parts(NamedTuple):
    """Quantized weights.

    Attributes
    ----------
    words : Array (…, N, bits · K / 32) of uint32
    scales : Array (…, N, K / 32)
    minima : Array (…, N, K / 32) or None
    bits : int
    """

    words: Array
    scales: Array
    minima: Array | None
    bits: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return (*self.scales.shape[:-1], self.scales.shape[-1] * LANES)


def _checked_parts(caller: str, words: Any, scales: Any, minima: Any) -> Parts:
    """Check the parts, and lay them out for the kernels."""
    words, scales = as_array(caller, words), as_array(caller, scales)
    minima = None if minima is None else as_array(caller, minima)
    if words.dtype != _UINT:
        raise TypeError(f"{caller}: words must be uint32; got {words.dtype.name}. Pass what mnb.quantize returns.")
    for name, x in (("scales", scales), ("minima", minima)):
        if x is not None and not is_float(x.dtype):
            raise TypeError(f"{caller}: {name} must be floats; got {x.dtype.name}. Pass what mnb.quantize returns.")
    same_groups = words.shape[:-1] == scales.shape[:-1] and (minima is None or minima.shape == scales.shape)
    if min(words.ndim, scales.ndim) == 0 or not same_groups:
        shapes_text = f"{words.shape}, {scales.shape}" + (f", {minima.shape}" if minima is not None else "")
        raise ValueError(f"{caller}: words, scales and minima must be those of one array; got shapes {shapes_text}.")
    blocks, bits = scales.shape[-1], 4
    if blocks:
        bits = words.shape[-1] // blocks
    if bits not in {4, 8} or bits * blocks != words.shape[-1]:
        raise ValueError(
            f"{caller}: words must have 4 or 8 times as many columns as scales, for 4 or 8 bits in blocks of {LANES}; "
            f"got shapes {words.shape} and {scales.shape}."
        )
    check_engine(words.engine, caller, scales, *(() if minima is None else (minima,)))
    if minima is not None and minima.dtype != scales.dtype:
        raise TypeError(f"{caller}: minima must be {scales.dtype.name} as scales are; got {minima.dtype.name}.")
    return Parts(_aligned_copy(words), _aligned_copy(scales), None if minima is None else _aligned_copy(minima), bits)


def _aligned_copy(x: Array) -> Array:
    """Return a contiguous array, aligned for vector loads."""
    is_aligned_already = x.contiguous and is_aligned(x, _VECTOR) and x.offset % _VECTOR == 0
    return x if is_aligned_already else contiguous_copy(x)


def _float_array(caller: str, value: Any, advice: str) -> Array:
    x = as_array(caller, value)
    if not is_float(x.dtype):
        raise TypeError(f"{caller}: takes floats; got {x.dtype.name}. Pass {advice}.")
    return x


def _row(x: Host, bits: int = 4, *, symmetric: bool = False) -> tuple[Host, ...]:
    """Do the same in NumPy, in float32 like the kernel, with scales in x's dtype."""
    groups = x.astype(np.float32).reshape((*x.shape[:-1], x.shape[-1] // LANES, LANES))
    largest, middle = 2**bits - 1, 2 ** (bits - 1)
    low, high = (f(groups, -1, keepdims=True, initial=i) for f, i in ((np.min, np.inf), (np.max, -np.inf)))
    span = 2 * np.maximum(-low, high) if symmetric else high - low
    scale = np.where(np.isfinite(span), span / np.float32(largest - symmetric), np.nan).astype(x.dtype)
    step = scale.astype(np.float32)
    q = np.rint((groups if symmetric else groups - low) / np.where(step > 0, step, 1)) + middle * symmetric
    q = np.where(step > 0, np.clip(q, int(symmetric), largest), middle * symmetric).astype(np.uint32)
    numbers_per_word = 32 // bits
    shifts = np.arange(numbers_per_word, dtype=np.uint32) * np.uint32(bits)
    words = np.sum(q.reshape((*q.shape[:-1], bits, numbers_per_word)) << shifts, -1, dtype=np.uint32)
    parts = words.reshape((*x.shape[:-1], x.shape[-1] // numbers_per_word)), scale[..., 0]
    return parts if symmetric else (*parts, low[..., 0].astype(x.dtype))


@op("linear", reference=_row, dtypes=FLOATS, kernels=("quantized.metal",), flops=4,
    cite="ggml's blocks; MLX, ``quantize``",
    tolerance=dict.fromkeys(FLOATS, 0.0))  # fmt: skip
def quantize(w: Array, /, bits: Literal[4, 8] = 4, *, symmetric: bool = False) -> tuple[Array, ...]:
    """Return an array as integers of few bits, with a scale and a minimum for each 32 along the last axis.

    An element is ``scale * q + minimum``, with q from 0 to ``2**bits - 1``; for symmetric weights it is
    ``scale * (q - 2**(bits - 1))``.

    Parameters
    ----------
    w : Array (…, N, K)
        Floating-point; K is a multiple of 32. For a layer's weights K is the input features, as in `linear`.
    bits : {4, 8}
    symmetric : bool
        Whether to omit the minima: 0 stays 0 and less is stored, but the steps are coarser.

    Returns
    -------
    words : Array (…, N, bits * K / 32) of uint32
        The first element of a word is in its lowest bits.
    scales : Array (…, N, K / 32)
        With w's dtype.
    minima : Array (…, N, K / 32)
        Unless symmetric. A block of 32 with a NaN or an infinity becomes NaN.

    Raises
    ------
    TypeError
        If the array is not floating-point.
    ValueError
        For an unsupported number of bits, or if K is not a multiple of 32.
    """
    w = _float_array("quantize", w, "w.astype(mnb.float32)")
    if bits not in {4, 8}:
        raise ValueError(f"quantize: bits is 4 or 8; got {bits}.")
    if w.ndim == 0 or w.shape[-1] % LANES:
        message = f"quantize: the last axis must be a multiple of {LANES}; got shape {w.shape}. Pad it with zeros."
        raise ValueError(message)
    w = w if w.contiguous else contiguous_copy(w)
    blocks = (*w.shape[:-1], w.shape[-1] // LANES)
    words = empty((*blocks[:-1], blocks[-1] * bits), _UINT, w.engine)
    scales, minima = (empty(blocks, w.dtype, w.engine) for _ in range(2))
    if w.size:
        kernel = _program(w.device, f"quantize<{tag(w.dtype)}, {bits}, {_bool_text(symmetric)}>")["quantize"]
        form = grid_of_groups(w.size // LANES, device_of(w.engine.caps))
        record_packed = record(_OFFSET.pack(w.offset // w.itemsize))
        Launch(kernel.binary, *form).start(w, words, scales, minima, more=(record_packed,))
    return (words, scales) if symmetric else (words, scales, minima)


def _dequantize_reference(words: Host, scales: Host, minima: Host | None = None, *, dtype: Any = None) -> Host:
    """Do the same in NumPy."""
    del dtype
    bits = words.shape[-1] // max(1, scales.shape[-1]) or 4
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    q = words.astype(np.uint32)[..., None] >> shifts & np.uint32(2**bits - 1)
    q = q.reshape((*scales.shape, LANES)).astype(np.float64)
    result: Host = scales[..., None] * (q - 2 ** (bits - 1) if minima is None else q)
    result += 0 if minima is None else minima[..., None]
    return result.reshape((*scales.shape[:-1], scales.shape[-1] * LANES))


def _dequantized_scale(words: Host, scales: Host, minima: Host | None, want: Host) -> Any:
    wide = np.repeat(np.abs(scales if minima is None else minima), LANES, -1)
    return np.maximum(np.abs(want), 0 if minima is None else wide) + 0 * words.size


@op("linear", reference=_dequantize_reference, dtypes=FLOATS, kernels=("quantized.metal",), flops=2,
    cite="MLX, ``dequantize``",
    size=lambda words, scales, *rest: _dequantized_scale(words, scales, rest[0] if len(rest) > 1 else None, rest[-1]),
    tolerance={"float32": 0.51, "float16": 0.51, "bfloat16": 0.51})  # fmt: skip
def dequantize(words: Array, scales: Array, minima: Array | None = None, /, *, dtype: Any = None) -> Array:
    """Return the array that words, scales and minima represent.

    Parameters
    ----------
    words, scales, minima : Array
        What `quantize` returns.
    dtype : dtype, optional
        The dtype of the result, a float; by default that of the scales.

    Returns
    -------
    Array (…, N, K)

    Raises
    ------
    TypeError
        For words that are not uint32, and for scales, minima or a dtype that are not floats.
    ValueError
        For shapes that do not belong to one array of 4 or 8 bits.
    """
    parts = _checked_parts("dequantize", words, scales, minima)
    kind = parts.scales.dtype if dtype is None else as_dtype(dtype)
    if not is_float(kind):
        raise TypeError(f"dequantize: dtype must be a float; got {kind.name}.")
    return _weights(parts, kind)


def _weights(parts: Parts, dtype: DType) -> Array:
    out = empty(parts.shape, dtype, parts.words.engine)
    if out.size:
        template = f"{tag(dtype)}, {tag(parts.scales.dtype)}, {parts.bits}, {_bool_text(parts.minima is None)}"
        kernel = _program(out.device, f"dequantize<{template}>")["dequantize"]
        settings = _packed_settings(parts, 0, (0, 0, 0))
        minima = parts.scales if parts.minima is None else parts.minima
        launch = Launch(kernel.binary, *grid_of_threads(parts.words.size))
        launch.start(parts.words, parts.scales, minima, out, more=(settings,))
    return out


def _packed_settings(parts: Parts, x: int, lengths: tuple[int, int, int]) -> Any:
    """Pack the operands' offsets, in elements, and lengths."""
    minima = parts.scales if parts.minima is None else parts.minima
    begins = (a.offset // a.itemsize for a in (parts.words, parts.scales, minima))
    return record(_TOLD.pack(x, *begins, *lengths, 0))


class QuantizedProduct(Op):
    """The op that multiplies by quantized weights: a product and a sum for each weight and vector."""

    def __metal_traffic__(self, x: Any, words: Any, *parts: Any, **options: Any) -> LeastTraffic:
        """Return the least bytes that a call must move, and its operations."""
        nbytes = super().__metal_traffic__(x, words, *parts, **options)
        rows = math.prod(words.shape[:-1])
        return LeastTraffic(nbytes.bytes, 2 * x.size * rows)


def _product(x: Host, words: Host, scales: Host, minima: Host | None = None) -> Host:
    result: Host = x @ _dequantize_reference(words, scales, minima).T
    return result


def _product_size(x: Host, words: Host, scales: Host, *rest: Host) -> Any:
    """Return a bound of the terms, because the scales' and the minima's cancel."""
    minima = np.abs(rest[0]) if len(rest) > 1 else np.abs(scales) * 2.0 ** (words.shape[-1] // max(1, scales.shape[-1]))
    return np.abs(x) @ _dequantize_reference(words, np.abs(scales), minima).T


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
    if cached is not None and cached.caps is x.engine.caps and all(is_aligned(a, _VECTOR) for a in operands):
        return cached.start(operands)
    x = _float_array("quantized_matmul", x, "x.astype(mnb.float32)")
    parts = _checked_parts("quantized_matmul", words, scales, minima)
    if len(parts.shape) != 2 or x.ndim == 0 or x.shape[-1] != parts.shape[1]:
        raise ValueError(
            f"quantized_matmul: the weights must be (N, K) for an x of (…, K); got weights {parts.shape}, x {x.shape}."
        )
    check_engine(x.engine, "quantized_matmul", parts.words)
    n, k = parts.shape
    m = math.prod(x.shape[:-1])
    if m > _FEW_VECTORS or not m * n * k:
        weights = _weights(parts, x.dtype)
        result = product(x if x.ndim > 1 else x.reshape((1, k)), weights.T, x.shape[:-2])
        return result.reshape((*x.shape[:-1], n))
    operands_aligned = (_aligned_copy(x), *(a for a in parts[:3] if a is not None))
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
    settings = (record(_TOLD.pack(*begins, *lengths, 0)),)
    template = f"{scale}, {bits}, {_bool_text(symmetric)}"
    matrices = kind.removesuffix("16")
    if device.waits and matrices in device.matrices:
        tall, simds = _tile(lengths, bits, device)
        name = "quantized_pair" if m <= 2 else "quantized_eight"
        kernel = _matrices_program(engine, f"{name}<{matrices}, {template}, {tall}, {simds}>")
        threads = simds * LANES
        form = ((-(-n // (_SIDE * tall)) * threads, 1, 1), (threads, 1, 1))
        return Launch(kernel[name].binary, *form, settings).bind_records(named(engine))
    vectors = next(v for v in (4, 2, 1) if m % v == 0 and (device.waits or v < 4))
    rows, in_chunks = _rows(n, device), _bool_text(device.waits)
    kernel = _program(engine, f"quantized_dots<{kind}, {template}, {rows}, {vectors}, {in_chunks}>")
    form = grid_of_groups(-(-n // rows) * (m // vectors), device)
    return Launch(kernel["quantized_dots"].binary, *form, settings).bind_records(named(engine))


def _tile(lengths: tuple[int, int, int], bits: int, device: Device) -> tuple[int, int]:
    """Return the height of a threadgroup's tile, in pairs of matrices, and the SIMD-groups that share its rows."""
    m, n, k = lengths
    tall = 2 if m <= 2 else 1  # more vectors leave registers for fewer rows
    steps, tiles = k * bits // _STEP, -(-n // (_SIDE * tall))
    simds = 4
    while simds < 16 and 2 * simds <= steps and 2 * tiles * simds < _GROUPS_PER_PROCESSOR * device.tile_places:
        simds *= 2
    return tall, simds


def _rows(n: int, device: Device) -> int:
    """Return how many rows a SIMD-group takes; several share the loads of x."""
    if not device.waits:
        return 4
    fills_device = _BUSY * device.tile_places // 2
    return next((rows for rows in (4, 2) if n >= rows * fills_device), 1)


def _bool_text(symmetric: bool) -> str:
    return "true" if symmetric else "false"


@functools.cache
def _program(engine: str, template: str) -> Program:
    return compile_templates("quantized.metal", {template.partition("<")[0]: template}, engine)


@functools.cache
def _matrices_program(engine: str, template: str) -> Program:
    return compile_templates("quantized_matrices.metal", {template.partition("<")[0]: template}, engine)


quantized_matmul = QuantizedProduct(quantized_matmul, OpRow(
    "linear", reference=_product, dtypes=FLOATS, size=_product_size, cite="MLX, ``quantized_matmul``",
    kernels=("quantized.metal", "quantized_matrices.metal", "matmul.metal"),
    tolerance={"float32": 40.0, "float16": 1.1, "bfloat16": 1.1},
))  # fmt: skip
