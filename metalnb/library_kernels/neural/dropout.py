"""The op `dropout`."""

from __future__ import annotations

from ... import random as randoms
from ...arrays.array import Array
from ...arrays.promotion import is_float
from ...random.generator import Generator
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import as_array
from ..op import ALL, op

__all__ = ["dropout"]


@op("neural", reference=lambda x, p=0.5, training=True: x, dtypes=ALL, kernels=("random.metal",), flops=2,  # noqa: ARG005
    cite="N. Srivastava et al., 2014; PyTorch, ``dropout``")  # fmt: skip
def dropout(x: Array, /, p: float = 0.5, *, training: bool = True, generator: Generator | None = None) -> Array:
    """Set each element to 0 with probability p and scale the others by 1 / (1 - p); return x itself if not training.

    Parameters
    ----------
    x : Array
        Floating-point, if training.
    p : float
        Between 0 and 1.
    training : bool
    generator : metalnb.random.Generator, optional
        By default the generator of `metalnb.random`, which `metalnb.random.seed` restarts.

    Raises
    ------
    ValueError
        If p is not between 0 and 1.
    TypeError
        If x is not floating-point, when training.
    """
    x = as_array("dropout", x)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p must be between 0 and 1; got {p}.")
    if not training or p == 0:
        return x
    if not is_float(x.dtype):
        raise TypeError(f"dropout: takes floats; got {x.dtype}. Pass x.astype(mnb.float32).")
    uniform = (generator or randoms.default_generator()).random(x.shape).to_device(x.device)
    result: Array = BY_NAME["where"](uniform >= p, x * (1 / (1 - p) if p < 1 else 0.0), 0.0)
    return result
