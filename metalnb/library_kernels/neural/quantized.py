"""Weights of 4 and 8 bits in blocks of 32: quantize and dequantize, and code that products with them share."""

from __future__ import annotations

import functools
import struct
from typing import Any, Literal, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import check_engine
from ...arrays.promotion import DType, as_dtype, is_float
from ...program import Program
from ..launching.copying import as_array, contiguous_copy
from ..launching.launcher import Launch, is_aligned
from ..launching.programs import compile_templates
from ..launching.reduction_launch import tag
from ..op import FLOATS, op
from ..planning.device import LANES, device_of
from ..planning.packed_record import record
from ..planning.threads_per_row import grid_of_groups, grid_of_threads

__all__ = [
    "PARAMETERS", "VECTOR", "Host", "Parts", "aligned_copy", "bool_text", "checked_parts", "dequantize",
    "dequantize_reference", "float_array", "program_of", "quantize", "weights_of",
]  # fmt: skip

Host = np.ndarray[Any, Any]

_UINT = np.dtype(np.uint32)
PARAMETERS = struct.Struct("<4Q4I")
_OFFSET = struct.Struct("<Q")
VECTOR = 16  # a lane reads at most this many bytes at once


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


def checked_parts(caller: str, words: Any, scales: Any, minima: Any) -> Parts:
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
    return Parts(aligned_copy(words), aligned_copy(scales), None if minima is None else aligned_copy(minima), bits)


def aligned_copy(x: Array) -> Array:
    """Return a contiguous array, aligned for vector loads."""
    is_aligned_already = x.contiguous and is_aligned(x, VECTOR) and x.offset % VECTOR == 0
    return x if is_aligned_already else contiguous_copy(x)


def float_array(caller: str, value: Any, advice: str) -> Array:
    """Return an argument as an array of floats; `advice` ends the message about another dtype."""
    x = as_array(caller, value)
    if not is_float(x.dtype):
        raise TypeError(f"{caller}: takes floats; got {x.dtype.name}. Pass {advice}.")
    return x


def _row(x: Host, bits: int = 4, *, symmetric: bool = False) -> tuple[Host, ...]:
    """Quantize in NumPy, in float32 like the kernel, with scales in x's dtype."""
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
        Whether to omit the minima. 0 then stays 0 and less memory is needed, but the steps are coarser.

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
    w = float_array("quantize", w, "w.astype(mnb.float32)")
    if bits not in {4, 8}:
        raise ValueError(f"quantize: bits must be 4 or 8; got {bits}.")
    if w.ndim == 0 or w.shape[-1] % LANES:
        message = f"quantize: the last axis must be a multiple of {LANES}; got shape {w.shape}. Pad it with zeros."
        raise ValueError(message)
    w = w if w.contiguous else contiguous_copy(w)
    blocks = (*w.shape[:-1], w.shape[-1] // LANES)
    words = empty((*blocks[:-1], blocks[-1] * bits), _UINT, w.engine)
    scales, minima = (empty(blocks, w.dtype, w.engine) for _ in range(2))
    if w.size:
        kernel = program_of(w.device, f"quantize<{tag(w.dtype)}, {bits}, {bool_text(symmetric)}>")["quantize"]
        form = grid_of_groups(w.size // LANES, device_of(w.engine.caps))
        record_packed = record(_OFFSET, w.offset // w.itemsize)
        Launch(kernel.binary, *form).start(w, words, scales, minima, more=(record_packed,))
    return (words, scales) if symmetric else (words, scales, minima)


def dequantize_reference(words: Host, scales: Host, minima: Host | None = None, *, dtype: Any = None) -> Host:
    """Return the weights as `dequantize` does, in NumPy."""
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


@op("linear", reference=dequantize_reference, dtypes=FLOATS, kernels=("quantized.metal",), flops=2,
    cite="MLX, ``dequantize``",
    size=lambda words, scales, *rest: _dequantized_scale(words, scales, rest[0] if len(rest) > 1 else None, rest[-1]),
    tolerance={"float32": 0.51, "float16": 0.51, "bfloat16": 0.51})  # fmt: skip
def dequantize(words: Array, scales: Array, minima: Array | None = None, /, *, dtype: Any = None) -> Array:
    """Return the array that words, scales and minima represent.

    Parameters
    ----------
    words, scales, minima : Array
        The arrays that `quantize` returns.
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
    parts = checked_parts("dequantize", words, scales, minima)
    kind = parts.scales.dtype if dtype is None else as_dtype(dtype)
    if not is_float(kind):
        raise TypeError(f"dequantize: dtype must be a float; got {kind.name}.")
    return weights_of(parts, kind)


def weights_of(parts: Parts, dtype: DType) -> Array:
    """Return the weights as an array."""
    out = empty(parts.shape, dtype, parts.words.engine)
    if out.size:
        template = f"{tag(dtype)}, {tag(parts.scales.dtype)}, {parts.bits}, {bool_text(parts.minima is None)}"
        kernel = program_of(out.device, f"dequantize<{template}>")["dequantize"]
        settings = _packed_settings(parts, 0, (0, 0, 0))
        minima = parts.scales if parts.minima is None else parts.minima
        launch = Launch(kernel.binary, *grid_of_threads(parts.words.size))
        launch.start(parts.words, parts.scales, minima, out, more=(settings,))
    return out


def _packed_settings(parts: Parts, x: int, lengths: tuple[int, int, int]) -> Any:
    """Pack the operands' offsets, in elements, and lengths."""
    minima = parts.scales if parts.minima is None else parts.minima
    begins = (a.offset // a.itemsize for a in (parts.words, parts.scales, minima))
    return record(PARAMETERS, x, *begins, *lengths, 0)


def bool_text(symmetric: bool) -> str:
    """Return a template's argument."""
    return "true" if symmetric else "false"


@functools.cache
def program_of(engine: str, template: str) -> Program:
    """Return the program with one kernel of ``quantized.metal``."""
    return compile_templates("quantized.metal", {template.partition("<")[0]: template}, engine)
