"""The ops of the table in other libraries, in the best form that a user would plainly write, for ``library.py``."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from metalnb.library_kernels.op import Op

__all__ = ["numexpr_peer", "numpy_peer", "torch_peer"]

Call = Callable[..., Any]

# NumPy has no function for these; its users write this instead.
_NUMPY: dict[str, Call | None] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "fma": lambda x, y, z: x * y + z,
    "lerp": lambda x, y, z: x + z * (y - x),
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.where(x > 0, x, x * 0.01),
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "log_sigmoid": lambda x: -np.logaddexp(0, -x),
    "softplus": lambda x: np.logaddexp(0, x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),  # by tanh: NumPy has no erf
    "erf": None,
    "softmax": lambda x: (e := np.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True),
    "log_softmax": lambda x: (d := x - x.max(-1, keepdims=True)) - np.log(np.exp(d).sum(-1, keepdims=True)),
}

# PyTorch's name, where it differs from the op's.
_TORCH = {
    "negative": "neg", "bitwise_invert": "bitwise_not", "multiply": "mul", "subtract": "sub", "divide": "div",
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "degrees": "rad2deg", "radians": "deg2rad", "hard_sigmoid": "nn.functional.hardsigmoid",
    "log_sigmoid": "nn.functional.logsigmoid", "leaky_relu": "nn.functional.leaky_relu",
    **{n: f"nn.functional.{n}" for n in ("relu6", "elu", "selu", "softplus", "softsign", "silu", "hardswish", "mish",
                                         "gelu", "relu")},
    "max": "amax", "min": "amin", "concat": "cat", "take_along_axis": "take_along_dim",
}  # fmt: skip
_TORCH_CALLS: dict[str, Callable[[Any], Call]] = {
    "positive": lambda torch: torch.clone,
    "fma": lambda torch: lambda x, y, z, **out: torch.addcmul(z, x, y, **out),
    "sort": lambda torch: lambda x: torch.sort(x).values,
    "softmax": lambda torch: lambda x, **out: torch.softmax(x, -1, **out),
    "log_softmax": lambda torch: lambda x, **out: torch.log_softmax(x, -1, **out),
    "cumulative_sum": lambda torch: lambda x, **out: torch.cumsum(x, 0, **out),
    "cumulative_prod": lambda torch: lambda x, **out: torch.cumprod(x, 0, **out),
    "logsumexp": lambda torch: lambda x, **out: torch.logsumexp(x, 0, **out),
    "layer_norm": lambda torch: lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda torch: lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:]),
    "cbrt": lambda torch: lambda x: torch.copysign(torch.abs(x) ** (1 / 3), x),
    "rsqrt": lambda torch: torch.rsqrt,
}

# numexpr has its own names and operators for these.
_NUMEXPR = {
    **{n: f"{n}(x)" for n in ("abs", "sqrt", "exp", "expm1", "log", "log10", "log1p", "sin", "cos", "tan", "sinh",
                              "cosh", "tanh", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite",
                              "signbit")},
    "asin": "arcsin(x)", "acos": "arccos(x)", "atan": "arctan(x)", "asinh": "arcsinh(x)", "acosh": "arccosh(x)",
    "atanh": "arctanh(x)", "negative": "-x", "square": "x*x", "reciprocal": "1/x", "degrees": "x*57.29578",
    "add": "x+y", "subtract": "x-y", "multiply": "x*y", "divide": "x/y", "pow": "x**y", "fmod": "fmod(x,y)",
    "maximum": "maximum(x,y)", "minimum": "minimum(x,y)", "atan2": "arctan2(x,y)", "hypot": "hypot(x,y)",
    "nextafter": "nextafter(x,y)", "copysign": "copysign(x,y)", "equal": "x==y", "not_equal": "x!=y", "less": "x<y",
    "less_equal": "x<=y", "greater": "x>y", "greater_equal": "x>=y", "bitwise_and": "x&y", "bitwise_or": "x|y",
    "bitwise_xor": "x^y", "where": "where(x,y,z)", "fma": "x*y+z", "lerp": "x+z*(y-x)", "relu": "where(x>0,x,0)",
    "leaky_relu": "where(x>0,x,x*a)", "elu": "where(x>0,x,expm1(x))", "sigmoid": "1/(1+exp(-x))",
    "softsign": "x/(1+abs(x))", "silu": "x/(1+exp(-x))", "mish": "x*tanh(log1p(exp(x)))", "sum": "sum(x)",
}  # fmt: skip


def numpy_peer(op: Op) -> Call | None:
    """Return NumPy's form of an op: its function, or the expression that replaces it."""
    if op.name in _NUMPY:
        return _NUMPY[op.name]
    return op.row.numpy[0] if op.row.numpy else op.row.reference


def torch_peer(op: Op) -> Call | None:
    """Return PyTorch's form of an op; None if there is none, or PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    if op.name in _TORCH_CALLS:
        return _TORCH_CALLS[op.name](torch)
    function = torch
    for part in _TORCH.get(op.name, op.name).split("."):
        function = getattr(function, part, None)
    return function if callable(function) else None


def numexpr_peer(op: Op) -> Call | None:
    """Return numexpr's form of an op; None if there is none, or numexpr is not installed."""
    if op.name not in _NUMEXPR or importlib.util.find_spec("numexpr") is None:
        return None
    numexpr = importlib.import_module("numexpr")
    return lambda *args, **out: numexpr.evaluate(
        _NUMEXPR[op.name], {"a": np.float32(0.01), **dict(zip("xyz", args, strict=False))}, {}, **out
    )
