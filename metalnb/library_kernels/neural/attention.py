"""Attention in one pass over the keys, and rotary position embedding."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray, check_engine
from ...arrays.promotion import is_float, promote
from ..elementwise.elementwise_by_name import BY_NAME
from ..elementwise.elementwise_op import Elementwise
from ..elementwise.elementwise_text import Formula
from ..elementwise.op_info import OpInfo
from ..launching.attention_launch import attend
from ..launching.copying import as_array, contiguous_copy, convert, fill_with, make_contiguous
from ..linear_algebra.matrix_products import matmul
from ..op import FLOATS, LeastTraffic, Op, OpRow, op
from ..planning.elementwise_plan import broadcast
from ..shapes.array_views import broadcast_to
from .softmax import softmax

__all__ = ["rope", "scaled_dot_product_attention"]

_FLOAT = np.dtype(np.float32)
_FILES = ("attention.metal", "attention_matrices.metal", "attention_tiles.metal", "attention_parts.metal")
_ISNAN = BY_NAME["isnan"]


class _Attention(Op):
    """An op that consists mainly of two products."""

    masks = frozenset(("attn_mask",))  # may be bool, whatever the others are

    def __metal_traffic__(self, query: Any, key: Any, value: Any, **options: Any) -> LeastTraffic:
        """Return the least bytes that a call must move, and its operations."""
        nbytes = super().__metal_traffic__(query, key, value, **options)
        scores = math.prod(query.shape[:-1]) * key.shape[-2]
        return LeastTraffic(nbytes.bytes, 2 * scores * (key.shape[-1] + value.shape[-1]))


def _reference(q: Any, k: Any, v: Any, attn_mask: Any = None, *, is_causal: bool = False, scale: float | None = None,
               enable_gqa: bool = False) -> Any:  # fmt: skip
    if enable_gqa:
        k, v = (np.repeat(a, q.shape[-3] // a.shape[-3], -3) for a in (k, v))
    s = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        s = np.where(np.tri(s.shape[-2], s.shape[-1], dtype=bool), s, -np.inf)
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf) if attn_mask.dtype == bool else s + attn_mask
    top = np.max(s, -1, keepdims=True, initial=-np.inf)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return np.where(total == 0, 0, e / np.where(total == 0, 1, total)) @ v


def _size(*arguments: Any) -> Any:
    """Return the scale of an error: the size of the values."""
    return np.maximum(np.abs(arguments[-1]), np.abs(arguments[2]).max(initial=1.0))


def _row(**row: Any) -> Callable[[Callable[..., Any]], Op]:
    return lambda function: _Attention(function, OpRow("linear", **row))


@_row(reference=_reference, dtypes=FLOATS, kernels=_FILES, size=_size,
      tolerance={"float32": 16.0, "float16": 0.6, "bfloat16": 0.55},
      cite="T. Dao et al., 2022; PyTorch, ``scaled_dot_product_attention``")  # fmt: skip
def scaled_dot_product_attention(
    query: Array, key: Array, value: Array, /, attn_mask: Array | None = None, *, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Array:  # fmt: skip
    """Return means of values, weighted by the similarity of queries and keys: softmax(query keyᵀ scale + mask) value.

    Parameters
    ----------
    query : Array (…, L, E)
    key : Array (…, S, E)
    value : Array (…, S, V)
        Floating-point. The leading axes broadcast.
    attn_mask : Array, optional
        It broadcasts to (…, L, S). A bool mask is true where a query attends to a key; floats are added to the scores.
    is_causal : bool
        Whether a query attends only to keys up to its own position.
    scale : float, optional
        By default 1 / √E.
    enable_gqa : bool
        Whether several heads of the query (its third axis from the end) share a head of key and value.

    Returns
    -------
    Array (…, L, V)
        In the dtype that they promote to. Scores and sums are float32; all scores are never stored if E + V is at most
        256, or on a GPU if each of them is. Beyond that, it is two products and a softmax. If hardware multiplies
        matrices of the dtype, weights are rounded to it. A query that attends to no key gets zeros.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    caller = "scaled_dot_product_attention"
    q, k, v = (as_array(caller, x) for x in (query, key, value))
    check_engine(q.engine, caller, k, v)
    dtype = promote(promote(q.dtype, k.dtype, caller), v.dtype, caller)
    if not is_float(dtype):
        raise TypeError(f"{caller}: takes floats; got {dtype}. Pass x.astype(mnb.float32).")
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{caller}: needs (…, L, E), (…, S, E) and (…, S, V); got {q.shape}, {k.shape} and {v.shape}.")
    if enable_gqa and (min(q.ndim, k.ndim, v.ndim) < 3 or k.shape[-3] != v.shape[-3] or q.shape[-3] % k.shape[-3]):
        raise ValueError(f"{caller}: {q.shape} cannot share the heads of {k.shape} and {v.shape}: the third axis from "
                         "the end must be a multiple.")  # fmt: skip
    share = q.shape[-3] // k.shape[-3] if enable_gqa else 1
    lead = broadcast(caller, [q.shape[:-2], _scale_heads(k.shape[:-2], share), _scale_heads(v.shape[:-2], share)])
    shared_lead = _scale_heads(lead, -share)
    q, k, v = (_laid_out_as(convert(x, dtype), a) for x, a in ((q, lead), (k, shared_lead), (v, shared_lead)))
    mask = None if attn_mask is None else _additive_mask(caller, attn_mask, lead, (q.shape[-2], k.shape[-2]), q)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    if 0 in (*lead, q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]):
        return fill_with(empty((*q.shape[:-1], v.shape[-1]), dtype, q.engine), 0)
    fused_result = attend(q, k, v, mask, query_heads_per_key_head=share, causal=is_causal, scale=factor)
    return _attend_by_ops(q, k, v, mask, share, factor, causal=is_causal) if fused_result is None else fused_result


def _scale_heads(lead: tuple[int, ...], share: int) -> tuple[int, ...]:
    """Return leading axes with the number of heads multiplied, or divided if the factor is negative."""
    if share in {1, -1}:
        return lead
    return (*lead[:-1], lead[-1] * share if share > 0 else lead[-1] // -share)


def _laid_out_as(x: Array, lead: tuple[int, ...]) -> Array:
    return make_contiguous(x) if x.shape[:-2] == lead else contiguous_copy(x, (*lead, *x.shape[-2:]))


def _additive_mask(caller: str, value: Any, lead: tuple[int, ...], last: tuple[int, int], q: Array) -> Array:
    """Return a mask as float32 numbers to add: (L, S), or one for each head."""
    mask = as_array(caller, value)
    check_engine(q.engine, caller, mask)
    if mask.dtype == np.bool_:
        mask = BY_NAME["where"](mask, asarray(np.float32(0), device=q.device), -math.inf)
    elif not is_float(mask.dtype):
        raise TypeError(f"{caller}: attn_mask must be bool or floats; got {mask.dtype}.")
    mask = convert(mask, _FLOAT)
    if mask.ndim <= 2:
        return contiguous_copy(broadcast_to(mask, last))
    return contiguous_copy(broadcast_to(mask, (*lead, *last)))


def _attend_by_ops(
    q: Array, k: Array, v: Array, mask: Array | None, share: int, scale: float, *, causal: bool
) -> Array:
    dtype = q.dtype
    q, k, v = (convert(x, _FLOAT) for x in (q, k, v))
    if share > 1:
        repeated_kv = [broadcast_to(x[..., None, :, :], (*x.shape[:-2], share, *x.shape[-2:])) for x in (k, v)]
        k, v = (x.reshape((*q.shape[:-2], *x.shape[-2:])) for x in repeated_kv)
    scores = matmul(q, k.mT) * scale
    if causal:
        visible = asarray(np.tri(*scores.shape[-2:], dtype=np.bool_), device=q.device)
        scores = BY_NAME["where"](visible, scores, -math.inf)
    shares = softmax(scores if mask is None else scores + mask)
    shares = BY_NAME["where"](_ISNAN(shares), 0.0, shares) if mask is not None else shares
    return convert(matmul(shares, v), dtype)


# ---- Rotary position embedding ---------------------------------------------------------------------------------------

_TURN = Elementwise(
    Formula("rope", "fma(x, c, -(y * s))", operands=("x", "y", "c", "s")),
    OpInfo(lambda x, y, c, s: x * c - y * s),
)


def _rope_reference(x: Any, *, base: float = 10000.0, offset: int = 0, interleaved: bool = False) -> Any:
    half = x.shape[-1] // 2
    angles = (np.arange(x.shape[-2]) + offset)[:, None] * base ** (-np.arange(half) / max(half, 1))
    c, s = np.cos(angles), np.sin(angles)
    out = np.empty_like(x)
    first, second = _halves(interleaved, half)
    out[..., first] = x[..., first] * c - x[..., second] * s
    out[..., second] = x[..., second] * c + x[..., first] * s
    return out


def _halves(interleaved: bool, half: int) -> tuple[slice, slice]:
    return (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(None, half), slice(half, None))


@functools.lru_cache(64)
def _angles(length: int, half: int, base: float, offset: int, dtype: str, device: str) -> tuple[Array, Array, Array]:
    """Return cosines, sines and negative sines of the angles, which are computed in float64."""
    angles = (np.arange(length) + offset)[:, None] * base ** (-np.arange(half) / max(half, 1))
    c, s = (asarray(f(angles).astype(np.float32), device=device).astype(dtype) for f in (np.cos, np.sin))
    return c, s, -s


@op("elementwise", reference=_rope_reference, dtypes=FLOATS, parts=(_TURN,), flops=3,
    cite="J. Su et al., RoFormer, 2021", tolerance={"float32": 2.0, "float16": 1.6, "bfloat16": 1.6},
    size=lambda x, want: np.maximum(np.abs(want), np.abs(x).max(initial=0.0)))  # fmt: skip
def rope(x: Array, /, *, base: float = 10000.0, offset: int = 0, interleaved: bool = False) -> Array:
    """Rotate pairs of numbers by angles that grow with their row: rotary position embedding.

    Parameters
    ----------
    x : Array (…, L, E)
        Floating-point; E is even. Row i is at position i + offset.
    base : float
        Pair j of E/2 rotates by base^(-2j/E) per row.
    offset : int
        The position of the first row.
    interleaved : bool
        Whether pairs are neighbors; otherwise each number of the first half is paired with one of the second.

    Returns
    -------
    Array
        With x's shape and dtype. The angles are computed in float64 and kept for the next call; cosines and sines have
        x's dtype.

    Raises
    ------
    ValueError
        If there are fewer than two axes, or E is odd.
    """
    x = as_array("rope", x)
    if x.ndim < 2 or x.shape[-1] % 2 or not is_float(x.dtype):
        raise ValueError(f"rope: x must be floats (…, L, E) with an even E; got {x.dtype} of shape {x.shape}.")
    if not hasattr(offset, "__index__"):
        raise ValueError(f"rope: offset must be an integer; got {offset!r}.")
    half = x.shape[-1] // 2
    out = empty(x.shape, x.dtype, x.engine)
    if out.size:
        c, s, negated = _angles(x.shape[-2], half, float(base), int(offset), x.dtype.name, x.device)
        first, second = _halves(interleaved, half)
        _TURN(x[..., first], x[..., second], c, s, out=out[..., first])
        _TURN(x[..., second], x[..., first], c, negated, out=out[..., second])
    return out
