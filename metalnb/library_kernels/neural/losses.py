"""Losses: an array's distance from its target, per element, averaged or summed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import asarray, check_engine
from ...arrays.promotion import floating_dtype, is_integer
from ..elementwise.elementwise_by_name import BY_NAME
from ..elementwise.elementwise_op import Elementwise
from ..elementwise.elementwise_text import Formula
from ..elementwise.op_info import OpInfo
from ..indexing.take_and_put import take, take_along_axis
from ..launching.copying import as_array, convert
from ..op import FLOATS, Op, op
from ..reductions import basic_reductions
from ..statistics import moments
from .softmax import log_softmax

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss", "kl_div", "l1_loss",
    "mse_loss", "nll_loss", "smooth_l1_loss",
]  # fmt: skip

_WHERE = BY_NAME["where"]
_FLOAT = np.dtype(np.float32)
_TOLERANCE = {"float32": 16.0, "float16": 1.0, "bfloat16": 1.0}
_two = functools.partial(Formula, operands=("x", "y"))
_info = functools.partial(OpInfo, family="neural")


def _smooth(x: Any, y: Any, beta: float = 1.0) -> Any:
    d = np.abs(x - y)
    return d if beta == 0 else np.where(d < beta, d * d / 2 / beta, d - beta / 2)


def _huber(x: Any, y: Any, delta: float = 1.0) -> Any:
    d = np.abs(x - y)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


def _binary(x: Any, y: Any) -> Any:
    return -(y * np.maximum(np.log(x), -100) + (1 - y) * np.maximum(np.log1p(-x), -100))


def _logits(x: Any, y: Any) -> Any:
    return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))


def _divergence(x: Any, y: Any) -> Any:
    return np.where(y > 0, y * (np.log(np.where(y > 0, y, 1)) - x), 0)


_SQUARES = Elementwise(_two("mse_loss", "(x - y) * (x - y)"), _info(lambda x, y: (x - y) ** 2))
_DISTANCES = Elementwise(_two("l1_loss", "abs(x - y)"), _info(lambda x, y: np.abs(x - y)))
_SMOOTH = Elementwise(
    _two("smooth_l1_loss", "abs(x - y) < beta ? 0.5f * (x - y) * (x - y) / beta : abs(x - y) - 0.5f * beta",
         parameters={"beta": 1.0}),
    _info(_smooth),
)  # fmt: skip
_HUBER = Elementwise(
    _two("huber_loss", "abs(x - y) <= delta ? 0.5f * (x - y) * (x - y) : delta * (abs(x - y) - 0.5f * delta)",
         parameters={"delta": 1.0}),
    _info(_huber),
)  # fmt: skip
# Logarithms are at least -100, as in PyTorch: the logarithm of 0 would be infinite, and 0 times infinity NaN.
_BINARY = Elementwise(
    _two("binary_cross_entropy", "-(y * maximum_of(log(x), -100.0f) + (1.0f - y) * maximum_of(log1p_of(-x), -100.0f))"),
    _info(_binary),
)  # fmt: skip
_LOGITS = Elementwise(
    _two("binary_cross_entropy_with_logits", "maximum_of(x, 0.0f) - x * y + log1p_unit(exp(-abs(x)))"),
    _info(_logits),
)  # fmt: skip
_DIVERGENCE = Elementwise(_two("kl_div", "y > 0.0f ? y * (log(y) - x) : y == 0.0f ? 0.0f : NAN"), _info(_divergence))


def _reduce_loss(caller: str, loss: Array, reduction: str) -> Array:
    if reduction not in {"mean", "sum", "none"}:
        raise ValueError(f"{caller}: reduction must be 'mean', 'sum' or 'none'; got {reduction!r}.")
    if reduction == "none":
        return loss
    result: Array = {"mean": moments.mean, "sum": basic_reductions.sum}[reduction](loss)
    return result


def _host_reduction(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else np.asarray(loss.mean() if reduction == "mean" else loss.sum())


def _elementwise(caller: str, row: Elementwise, x: Any, target: Any, reduction: str, **options: Any) -> Array:
    x = as_array(caller, x)
    target = as_array(caller, target)
    if x.shape != target.shape:
        raise ValueError(f"{caller}: input and target must have one shape; got {x.shape} and {target.shape}.")
    return _reduce_loss(caller, row(x, target, **options), reduction)


def _size(x: Any, target: Any, *rest: Any) -> Any:
    """Return the scale of a loss's error: the size of the loss, or of its largest term."""
    del target
    return np.maximum(np.abs(rest[-1]), 1.0 + np.max(np.abs(x), initial=0.0) ** 2)


def _row(reference: Callable[..., Any], name: str, row: Elementwise) -> Callable[[Callable[..., Any]], Op]:
    def full_reference(x: Any, target: Any, reduction: str = "mean", **options: Any) -> Any:
        return _host_reduction(reference(x, target, **options), reduction)

    return op("neural", reference=full_reference, dtypes=FLOATS, parts=(row,), kernels=("reduce.metal",), flops=4,
              size=_size, tolerance=_TOLERANCE, cite=f"PyTorch, ``{name}``")  # fmt: skip


@_row(lambda x, y: (x - y) ** 2, "mse_loss", _SQUARES)
def mse_loss(x: Array, target: Array, /, *, reduction: str = "mean") -> Array:
    """Return the squares of the differences.

    Parameters
    ----------
    x, target : Array
        Of the same shape.
    reduction : {"mean", "sum", "none"}
        How the losses of the elements are combined; ``none`` returns a loss for each element.

    Returns
    -------
    Array

    Raises
    ------
    ValueError
        For different shapes, or an unknown reduction.
    """
    return _elementwise("mse_loss", _SQUARES, x, target, reduction)


@_row(lambda x, y: np.abs(x - y), "l1_loss", _DISTANCES)
def l1_loss(x: Array, target: Array, /, *, reduction: str = "mean") -> Array:
    """Return the absolute differences; parameters and errors as for `mse_loss`."""
    return _elementwise("l1_loss", _DISTANCES, x, target, reduction)


@_row(_smooth, "smooth_l1_loss", _SMOOTH)
def smooth_l1_loss(x: Array, target: Array, /, *, reduction: str = "mean", beta: float = 1.0) -> Array:
    """Return d² / 2 beta for differences d below beta, and d - beta / 2 beyond; otherwise as `mse_loss`."""
    if beta == 0:
        return _elementwise("smooth_l1_loss", _DISTANCES, x, target, reduction)
    return _elementwise("smooth_l1_loss", _SMOOTH, x, target, reduction, beta=beta)


@_row(_huber, "huber_loss", _HUBER)
def huber_loss(x: Array, target: Array, /, *, reduction: str = "mean", delta: float = 1.0) -> Array:
    """Return d² / 2 for differences d up to delta, and delta (d - delta / 2) beyond; otherwise as `mse_loss`."""
    return _elementwise("huber_loss", _HUBER, x, target, reduction, delta=delta)


@_row(_binary, "binary_cross_entropy", _BINARY)
def binary_cross_entropy(x: Array, target: Array, /, *, reduction: str = "mean") -> Array:
    """Return -(target log x + (1 - target) log(1 - x)) of probabilities, logarithms at least -100; as `mse_loss`."""
    return _elementwise("binary_cross_entropy", _BINARY, x, target, reduction)


@_row(_logits, "binary_cross_entropy_with_logits", _LOGITS)
def binary_cross_entropy_with_logits(x: Array, target: Array, /, *, reduction: str = "mean") -> Array:
    """Return `binary_cross_entropy` of sigmoid(x), without overflow; otherwise as `mse_loss`."""
    return _elementwise("binary_cross_entropy_with_logits", _LOGITS, x, target, reduction)


@_row(_divergence, "kl_div", _DIVERGENCE)
def kl_div(x: Array, target: Array, /, *, reduction: str = "mean") -> Array:
    """Return target (log target - x), the distance of probabilities from those with logarithms x; as `mse_loss`."""
    return _elementwise("kl_div", _DIVERGENCE, x, target, reduction)


# ---- Classes ---------------------------------------------------------------------------------------------------------


def _pick_classes(
    caller: str, logs: Array, target: Any, weight: Any, ignore_index: int, smoothing: float, reduction: str
) -> Array:
    """Return the negative logarithms at the targets' indices, each times its class's weight."""
    targets = as_array(caller, target)
    if not is_integer(targets.dtype) or logs.ndim < 1:
        raise TypeError(f"{caller}: targets must be class indices of an integer dtype; got {targets.dtype}.")
    axis = 0 if logs.ndim == 1 else 1
    if targets.shape != logs.shape[:axis] + logs.shape[axis + 1 :]:
        expected_shape = logs.shape[:axis] + logs.shape[axis + 1 :]
        raise ValueError(f"{caller}: target must have shape {expected_shape}; got {targets.shape}.")
    targets = convert(targets, np.dtype(np.int64))
    is_counted = targets != ignore_index
    safe = _WHERE(is_counted, targets, 0)
    least = int(basic_reductions.min(safe)) if safe.size else 0
    if least < 0:  # an index from the end in `take_along_axis`
        range_text = f"from 0 to {logs.shape[axis] - 1}, or ignore_index={ignore_index}"
        raise IndexError(f"{caller}: targets must be classes {range_text}; got {least}.")
    broadcast = safe.reshape((*safe.shape[:axis], 1, *safe.shape[axis:]))
    log_probabilities = take_along_axis(logs, broadcast, axis=axis).reshape(safe.shape)
    weights = None if weight is None else convert(as_array(caller, weight), logs.dtype)
    if weights is not None:
        check_engine(logs.engine, caller, weights)
        if weights.shape != (logs.shape[axis],):
            raise ValueError(f"{caller}: weight must have shape ({logs.shape[axis]},); got {weights.shape}.")
    class_weights = asarray(np.float32(1), device=logs.device) if weights is None else take(weights, safe)
    loss = -log_probabilities * class_weights
    if smoothing:
        lines = logs if weights is None else logs * weights.reshape((-1, *(1,) * (logs.ndim - axis - 1)))
        smoothing_sum = -basic_reductions.sum(lines, axis=axis) / logs.shape[axis]
        loss = loss * (1 - smoothing) + smoothing_sum * smoothing
    loss = _WHERE(is_counted, loss, 0.0)
    if reduction != "mean":
        return _reduce_loss(caller, loss, reduction)
    share = basic_reductions.sum(_WHERE(is_counted, class_weights, 0.0))
    return basic_reductions.sum(loss) / share  # type: ignore[no-any-return]


def _classes(x: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean",
             label_smoothing: float = 0.0, log: bool = True) -> Any:  # fmt: skip
    axis = 0 if x.ndim == 1 else 1
    if log:
        x = x - x.max(axis, keepdims=True)
        x = x - np.log(np.exp(x).sum(axis, keepdims=True))
    if target.shape == x.shape:
        lines = target * (1 - label_smoothing) + label_smoothing / x.shape[axis]
        w = 1 if weight is None else weight.reshape((-1, *(1,) * (x.ndim - axis - 1)))
        loss = -(lines * x * w).sum(axis)
        return _host_reduction(loss, reduction)
    target = target.astype(np.int64)
    is_counted = target != ignore_index
    safe = np.where(is_counted, target, 0)
    own_weight = np.take_along_axis(x, np.expand_dims(safe, axis), axis).squeeze(axis)
    w = np.ones(x.shape[axis]) if weight is None else weight
    smoothing_sum = -(x * w.reshape((-1, *(1,) * (x.ndim - axis - 1)))).sum(axis) / x.shape[axis]
    loss = np.where(is_counted, (1 - label_smoothing) * -own_weight * w[safe] + label_smoothing * smoothing_sum, 0)
    if reduction == "mean":
        return np.asarray(loss.sum() / np.where(is_counted, w[safe], 0).sum())
    return _host_reduction(loss, reduction)


_class_row = functools.partial(
    op, "neural", dtypes=FLOATS, kernels=("softmax.metal", "gather.metal"), flops=6, size=_size,
    tolerance={"float32": 32.0, "float16": 0.6, "bfloat16": 0.6},
)  # fmt: skip


@_class_row(reference=functools.partial(_classes, log=False), cite="PyTorch, ``nll_loss``")
def nll_loss(
    x: Array, target: Array, /, weight: Array | None = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> Array:
    """Return the negative logarithms of the right classes' probabilities.

    Parameters
    ----------
    x : Array (N, C, …) or (C,)
        Logarithms of probabilities, as floats.
    target : Array of integers (N, …) or ()
        The right classes.
    weight : Array (C,), optional
        The weight of each class; a mean is divided by the sum of the weights counted.
    ignore_index : int
        Targets with this number are ignored.
    reduction : {"mean", "sum", "none"}

    Returns
    -------
    Array
        In x's dtype, computed in float32. The mean of no targets is NaN.

    Raises
    ------
    IndexError
        For a target that is not a class.
    ValueError
        For shapes that do not fit.
    """
    logs = as_array("nll_loss", x)
    result = _pick_classes("nll_loss", convert(logs, _FLOAT), target, weight, ignore_index, 0.0, reduction)
    return convert(result, floating_dtype(logs.dtype))


@_class_row(reference=_classes, cite="PyTorch, ``cross_entropy``")
def cross_entropy(
    x: Array, target: Array, /, weight: Array | None = None, *, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:  # fmt: skip
    """Return `nll_loss` of `log_softmax` along the classes, with the parameters of `nll_loss`.

    `target` may also be probabilities, as floats of x's shape. The fraction `label_smoothing` of the weight is spread
    evenly over all classes.
    """
    logits = as_array("cross_entropy", x)
    if not logits.ndim:
        raise ValueError("cross_entropy: x must be (N, C, …) or (C,); got shape ().")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing must be between 0 and 1; got {label_smoothing}.")
    axis = 0 if logits.ndim == 1 else 1
    logs = log_softmax(convert(logits, _FLOAT), axis=axis)
    class_term = floating_dtype(logits.dtype)
    class_index = as_array("cross_entropy", target)
    if is_integer(class_index.dtype):
        result = _pick_classes("cross_entropy", logs, class_index, weight, ignore_index, label_smoothing, reduction)
        return convert(result, class_term)
    if class_index.shape != logits.shape:
        raise ValueError(f"cross_entropy: probabilities must have x's shape {logits.shape}; got {class_index.shape}.")
    class_index = convert(class_index, _FLOAT)
    if label_smoothing:
        class_index = class_index * (1 - label_smoothing) + label_smoothing / logits.shape[axis]
    lines = class_index * logs
    if weight is not None:
        lines = lines * as_array("cross_entropy", weight).reshape((-1, *(1,) * (logits.ndim - axis - 1)))
    return convert(_reduce_loss("cross_entropy", -basic_reductions.sum(lines, axis=axis), reduction), class_term)
