# Written by tests/public_stub.py from the public names and the table of ops (`make docs`). Do not edit.
"""The public names of metalnb, for type checkers and editors."""

from builtins import bool as _bool
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Literal, ParamSpec, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy
from numpy.typing import DTypeLike, NDArray

from . import dask as dask
from . import linalg as linalg
from . import random as random
from .arrays.array import Array as Array
from .arrays.convert import array as array
from .arrays.convert import asarray as asarray
from .arrays.convert import from_dlpack as from_dlpack
from .arrays.dtype_info import can_cast as can_cast
from .arrays.dtype_info import finfo as finfo
from .arrays.dtype_info import iinfo as iinfo
from .arrays.dtype_info import isdtype as isdtype
from .arrays.dtype_info import result_type as result_type
from .arrays.memory_pool import MemoryInfo as MemoryInfo
from .arrays.memory_pool import memory_info as memory_info
from .arrays.stream import clear_cache as clear_cache
from .arrays.stream import synchronize as synchronize
from .call.kernel import Kernel as Kernel
from .engine import EngineStatus as EngineStatus
from .engine import engines as engines
from .engine import use as use
from .engine.time_limits import timeout as timeout
from .errors import ArgumentError as ArgumentError
from .errors import CompileError as CompileError
from .errors import EngineUnavailable as EngineUnavailable
from .errors import KernelFault as KernelFault
from .errors import LaunchError as LaunchError
from .errors import MetalnbError as MetalnbError
from .errors import MetalnbWarning as MetalnbWarning
from .library_kernels.elementwise.custom_elementwise import elementwise as elementwise
from .library_kernels.fusion.fuse import fuse as fuse
from .library_kernels.namespace import Namespace
from .library_kernels.op import Op
from .library_kernels.reductions.custom_reduction import reduction as reduction
from .library_kernels.sorting.selection import TopK
from .library_kernels.sorting.unique import UniqueAll
from .library_kernels.sorting.unique import UniqueCounts
from .library_kernels.sorting.unique import UniqueInverse
from .profiling.profile_call import profile as profile
from .profiling.profile_record import Profile as Profile
from .program import Program as Program
from .program import compile as compile
from .program import load as load
from .random.generator import Generator
from .stepping.trace_call import trace as trace
from .stepping.trace_record import KernelTrace as KernelTrace
from .timing.compare import Comparison as Comparison
from .timing.compare import compare as compare
from .timing.gpu_capture import capture as capture
from .timing.limits import Limits as Limits
from .timing.limits import limits as limits
from .timing.measure import measure as measure
from .timing.records import Timing as Timing
from .timing.records import Traffic as Traffic
from .timing.roofline import Roofline as Roofline
from .timing.roofline import roofline as roofline
from .validation.access_report import Validation as Validation
from .validation.run import validate as validate
from .widgets.animate import animate as animate
from .widgets.dashboard import dashboard as dashboard
from .widgets.explore import explore as explore
from .widgets.monitor import monitor as monitor
from .widgets.tune import tune as tune

__all__ = [
    "ArgumentError", "CompileError", "EngineUnavailable", "KernelFault", "LaunchError", "MetalnbError",
    "MetalnbWarning", "Array", "array", "asarray", "from_dlpack", "can_cast", "finfo", "iinfo", "isdtype",
    "result_type", "MemoryInfo", "memory_info", "clear_cache", "synchronize", "Kernel", "EngineStatus", "engines",
    "use", "timeout", "elementwise", "fuse", "reduction", "Program", "compile", "load", "profile", "Profile",
    "Comparison", "compare", "capture", "Limits", "limits", "measure", "Timing", "Traffic", "Roofline", "roofline",
    "KernelTrace", "trace", "Validation", "validate", "animate", "dashboard", "explore", "monitor", "tune",
]

__version__: str

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)

class _Lender(Protocol):
    def __dlpack__(self, *args: Any, **options: Any) -> Any: ...

_ArrayLike: TypeAlias = Array | NDArray[Any] | numpy.generic | _Lender
_Operand: TypeAlias = _ArrayLike | float
_Axis: TypeAlias = SupportsIndex | Iterable[SupportsIndex]

class _Op(Op, Generic[_P, _R]):
    def __call__(self, *args: _P.args, **options: _P.kwargs) -> _R: ...

def _op(function: Callable[_P, _R], /) -> _Op[_P, _R]: ...
def load_ipython_extension(shell: Any) -> None: ...
def unload_ipython_extension(shell: Any) -> None: ...

__array_api_version__: str
__array_namespace_info__: type[Namespace]
bfloat16: numpy.dtype[Any]
bool: numpy.dtype[numpy.bool]
e: float
float16: numpy.dtype[numpy.float16]
float32: numpy.dtype[numpy.float32]
inf: float
int16: numpy.dtype[numpy.int16]
int32: numpy.dtype[numpy.int32]
int64: numpy.dtype[numpy.int64]
int8: numpy.dtype[numpy.int8]
nan: float
newaxis: None
pi: float
uint16: numpy.dtype[numpy.uint16]
uint32: numpy.dtype[numpy.uint32]
uint64: numpy.dtype[numpy.uint64]
uint8: numpy.dtype[numpy.uint8]

@_op
def abs(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Absolute value; the least integer wraps to itself.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``abs``
    """
absolute = abs

@_op
def acos(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The angle whose cosine is x.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``acos``
    """
arccos = acos

@_op
def acosh(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Inverse of cosh.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``acosh``
    """
arccosh = acosh

@_op
def adaptive_avg_pool2d(x: _ArrayLike, output_size: int | Sequence[int], /) -> Array:
    """Return means of as many windows as make images of a given size: x (N, C, H, W) or (C, H, W).

    Raises
    ------
    ValueError
        If an axis is not a multiple of its new length, so that windows would have several sizes.
    """

@_op
def add(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 + x2; of bool: or.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``add``
    """

@_op
def all(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return whether no element is zero, as bool; parameters as for `sum`. True without elements. NaN is nonzero."""

@_op
def allclose(x1: Any, x2: Any, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: _bool = False) -> Array:
    """Return whether all elements are close, as a 0-d array of bool. The parameters are those of `isclose`."""

@_op
def any(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return whether any element is nonzero, as bool; parameters as for `sum`. False without elements. NaN is not 0."""

@_op
def append(x: _ArrayLike, values: Any, /, axis: int | None = None) -> Array:
    """Return an array with values appended along an axis; by default both are flattened first."""

@_op
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """Return evenly spaced numbers from `start` (0 if only one number is given) up to but not including `stop`.

    Parameters
    ----------
    start, stop, step : int or float
    dtype : dtype, optional
        By default int64, or float32 if one of the numbers is a float.
    device : str, optional

    Returns
    -------
    Array
        With ``ceil((stop - start) / step)`` elements.

    Raises
    ------
    ValueError
        If the step is 0 or the length is not finite.
    OverflowError
        If the dtype cannot represent the numbers.
    """

@_op
def argmax(x: _ArrayLike, /, axis: int | None = None, *, keepdims: _bool = False) -> Array:
    """Return the index of the largest element, the first if there are several, or of the first NaN.

    Parameters
    ----------
    x : Array
    axis : int, optional
        By default the index counts through the entire array, last axis fastest.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        int64.

    Raises
    ------
    ValueError
        If there are no elements.
    """

@_op
def argmin(x: _ArrayLike, /, axis: int | None = None, *, keepdims: _bool = False) -> Array:
    """Return the index of the smallest element, the first if there are several, or of the first NaN; as `argmax`."""

@_op
def argpartition(x: _ArrayLike, kth: Any, /, axis: int | None = -1) -> Array:
    """Return the int64 indices that would partition the elements as `partition` does."""

@_op
def argsort(x: _ArrayLike, /, axis: int | None = -1, *, descending: _bool = False, stable: _bool = True) -> Array:
    """Return the positions that sort an array along an axis.

    Parameters
    ----------
    x : Array
    axis : int or None
        None sorts the flattened array.
    descending : bool
        From the largest to the smallest; equal elements still keep their order.
    stable : bool
        Ignored: equal elements always keep their order.

    Returns
    -------
    Array
        int64, with x's shape: ``take_along_axis(x, argsort(x), axis=-1)`` is sorted.
    """

@_op
def argwhere(x: _ArrayLike, /) -> Array:
    """Return the indices of the elements that are not 0, as a row of int64 for each element, in memory order."""

@_op
def array_equal(x1: _ArrayLike, x2: _ArrayLike, /, *, equal_nan: _bool = False) -> Array:
    """Return whether two arrays have the same shape and equal elements, as a 0-d array of bool.

    Parameters
    ----------
    x1, x2 : Array
    equal_nan : bool
        Whether NaN is equal to NaN.
    """

@_op
def array_split(x: _ArrayLike, indices_or_sections: Any, /, axis: int = 0) -> tuple[Array, ...]:
    """Split an array along an axis into views: into a number of parts, the first ones longer by one, or at indices."""

@_op
def asin(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The angle whose sine is x.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``asin``
    """
arcsin = asin

@_op
def asinh(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Inverse of sinh.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``asinh``
    """
arcsinh = asinh

@_op
def astype(x: _ArrayLike, dtype: DTypeLike | None, /, *, copy: _bool = True, device: str | None = None) -> Array:
    """Convert an array to a dtype.

    Parameters
    ----------
    x : Array
    dtype : dtype
    copy : bool
        Whether to copy even if the array already has that dtype; if False, the array itself is returned then.
    device : str, optional
        The name of an engine.

    Returns
    -------
    Array
        Contiguous, with x's shape. Floats are truncated to integers; as in C, a value that does not fit is undefined.
    """

@_op
def atan(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The angle whose tangent is x.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 5 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``atan``
    """
arctan = atan

@_op
def atan2(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """The angle of the point (x2, x1), in (-pi, pi].

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to. float32 is within 6 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``atan2``
    """
arctan2 = atan2

@_op
def atanh(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Inverse of tanh.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 5 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``atanh``
    """
arctanh = atanh

@_op
def atleast_1d(*arrays: _ArrayLike) -> Any:
    """Return views with at least one axis."""

@_op
def atleast_2d(*arrays: _ArrayLike) -> Any:
    """Return views with at least two axes; new axes are put first."""

@_op
def atleast_3d(*arrays: _ArrayLike) -> Any:
    """Return views with at least three axes: a row becomes (1, n, 1), a matrix (m, n, 1)."""

@_op
def average(
    x: _ArrayLike,
    /,
    axis: int | None = None,
    *,
    weights: _ArrayLike | None = None,
    returned: _bool = False,
    keepdims: _bool = False,
) -> Any:
    """Return the weighted mean: Σ w x / Σ w.

    Parameters
    ----------
    x : Array
    axis : int, optional
        By default all axes.
    weights : Array, optional
        With x's shape, or as long as the axis; by default all are 1.
    returned : bool
        Whether to return Σ w, too.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array, or tuple of Array
        In x's dtype for floats, otherwise float32; NaN where the weights sum to 0.

    Raises
    ------
    ValueError
        For weights of another shape.
    """

@_op
def avg_pool1d(
    x: _ArrayLike,
    kernel_size: int | Sequence[int],
    /,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    *,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
) -> Array:
    """Like `avg_pool2d`, over one axis: x (N, C, L) or (C, L)."""

@_op
def avg_pool2d(
    x: _ArrayLike,
    kernel_size: int | Sequence[int],
    /,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    *,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: float | None = None,
) -> Array:
    """Return the mean of each window of images; parameters as for `max_pool2d`.

    `count_include_pad` counts the padding as zeros; `divisor_override` replaces the count as the divisor.
    """

@_op
def batch_norm(
    x: _ArrayLike,
    running_mean: _ArrayLike | None,
    running_var: _ArrayLike | None,
    /,
    weight: _ArrayLike | None = None,
    bias: _ArrayLike | None = None,
    *,
    training: _bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Array:
    """Shift and scale channels to mean 0 and variance 1: (x - mean) / √(var + eps) weight + bias.

    Parameters
    ----------
    x : Array (N, C, …)
        Floating-point.
    running_mean, running_var : Array (C,), or None
        The statistics of each channel; used if not training, and moved towards the batch's by `momentum` if training.
        NumPy arrays to be moved must be contiguous and writable.
    weight, bias : Array (C,), optional
    training : bool
        Whether to use the batch's own means and variances, which takes three more passes.
    momentum, eps : float

    Returns
    -------
    Array
        With x's shape and dtype; computed in float32.

    Raises
    ------
    ValueError
        If shapes do not fit, running statistics are missing though not training, the batch has one element per channel,
        or statistics cannot be updated in their own memory. In these cases no statistic is changed.
    """

@_op
def binary_cross_entropy(x: _ArrayLike, target: _ArrayLike, /, *, reduction: str = 'mean') -> Array:
    """Return -(target log x + (1 - target) log(1 - x)) of probabilities, logarithms at least -100; as `mse_loss`."""

@_op
def binary_cross_entropy_with_logits(x: _ArrayLike, target: _ArrayLike, /, *, reduction: str = 'mean') -> Array:
    """Return `binary_cross_entropy` of sigmoid(x), without overflow; otherwise as `mse_loss`."""

@_op
def bincount(x: _ArrayLike, /, weights: _ArrayLike | None = None, minlength: int = 0) -> Array:
    """Return how often each of the numbers 0, 1, 2, … occurs.

    Parameters
    ----------
    x : Array of integers
        One-dimensional; none below 0.
    weights : Array, optional
        Weights to add for each number in place of 1; of x's shape. Floats are added in order, as float32.
    minlength : int
        The minimum length of the result.

    Returns
    -------
    Array
        Its length is the largest number plus one, or `minlength`. The dtype is int64, or with weights their dtype
        (float32 if they are integers).

    Raises
    ------
    ValueError
        For a negative number, for more than one axis, and for weights of another shape.
    """

@_op
def bitwise_and(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """The bits set in both.

    Parameters
    ----------
    x1, x2 : Array or number
        Of bool or integers.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``bitwise_and``
    """

@_op
def bitwise_invert(x: _Operand, /, *, out: Array | None = None) -> Array:
    """All bits inverted.

    Parameters
    ----------
    x : Array or number
        Of bool or integers.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``bitwise_invert``
    """
bitwise_not = bitwise_invert
invert = bitwise_invert

@_op
def bitwise_left_shift(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1's bits shifted left by x2; 0 for shifts beyond the width.

    Parameters
    ----------
    x1, x2 : Array or number
        Of integers.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``bitwise_left_shift``
    """
left_shift = bitwise_left_shift

@_op
def bitwise_or(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """The bits set in at least one.

    Parameters
    ----------
    x1, x2 : Array or number
        Of bool or integers.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``bitwise_or``
    """

@_op
def bitwise_right_shift(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1's bits shifted right by x2, filled with sign bits, or with 0 if unsigned.

    Parameters
    ----------
    x1, x2 : Array or number
        Of integers.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``bitwise_right_shift``
    """
right_shift = bitwise_right_shift

@_op
def bitwise_xor(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """The bits set in exactly one.

    Parameters
    ----------
    x1, x2 : Array or number
        Of bool or integers.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``bitwise_xor``
    """

@_op
def broadcast_arrays(*arrays: Any) -> list[Array]:
    """Return views of all arrays in their broadcast shape, in a list (array API 2024.12).

    Numbers and sequences of numbers are converted to arrays.

    Raises
    ------
    ValueError
        If the arrays do not broadcast.
    """

@_op
def broadcast_to(x: _ArrayLike, /, shape: Sequence[int]) -> Array:
    """Return a view in a larger shape, in which elements are repeated but not copied.

    Raises
    ------
    ValueError
        If the array does not broadcast to it.
    """

@_op
def cbrt(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Cube root, also of negative numbers.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1 units in the last place.

    References
    ----------
    NumPy, ``cbrt``
    """

@_op
def ceil(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The least whole number that is not below x.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``ceil``
    """

@_op
def celu(x: _Operand, /, alpha: float = 1.0, *, out: Array | None = None) -> Array:
    """x where it is positive, else alpha * (exp(x / alpha) - 1).

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    alpha : float, default 1.0
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 2 units in the last place.

    References
    ----------
    J. Barron, 2017
    """

@_op
def clip(x: _ArrayLike, /, min: Any = None, max: Any = None, *, out: Array | None = None) -> Array:
    """Return each element limited to the range between two bounds.

    Parameters
    ----------
    x : Array
        Any dtype except bool.
    min, max : Array or number, optional
        The bounds; None for no bound. Where min > max, the result is max.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        In the broadcast shape of all operands, with x's dtype. NaN where any operand is NaN.

    References
    ----------
    Python array API standard 2024.12, ``clip``
    """

@_op
def column_stack(arrays: Sequence[_ArrayLike], /) -> Array:
    """Join arrays along their second axis; rows become columns. Errors as for `concat`."""

@_op
def concat(arrays: Sequence[_ArrayLike], /, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis; None joins their flattened elements.

    Raises
    ------
    ValueError
        If nothing is given, or the other axes differ.
    """
concatenate = concat

@_op
def conj(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The complex conjugate: x itself, copied.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``conj``
    """
conjugate = conj

@_op
def conv1d(
    x: _ArrayLike,
    weight: _ArrayLike,
    /,
    bias: _ArrayLike | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """Like `conv2d`, over one axis: x (N, C, L) or (C, L), weight (O, C / groups, l)."""

@_op
def conv2d(
    x: _ArrayLike,
    weight: _ArrayLike,
    /,
    bias: _ArrayLike | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """Return the sums of products of windows of images with weights: a convolution, in neural networks' terms.

    Parameters
    ----------
    x : Array (N, C, H, W) or (C, H, W)
    weight : Array (O, C / groups, h, w)
    bias : Array (O,), optional
    stride, dilation : int or pair of int
        The step between windows, and the step between the elements of a window.
    padding : int, pair of int, "same" or "valid"
        Zeros around each image; ``same`` keeps its size, for a stride of 1.
    groups : int
        The number of groups of channels; each output uses one group.

    Returns
    -------
    Array (N, O, H', W')
        In the dtype that all promote to; summed in float32. H' = (H + 2 padding - dilation (h - 1) - 1) // stride + 1.

    Raises
    ------
    ValueError
        For shapes that do not fit, or if a window is larger than the padded image.
    """

@_op
def copysign(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 with the sign of x2.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``copysign``
    """

@_op
def corrcoef(x: _ArrayLike, y: _ArrayLike | None = None, /, *, rowvar: _bool = True) -> Array:
    """Return the correlations of variables: `cov` divided by the standard deviations, within [-1, 1]."""

@_op
def cos(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Cosine; x in radians.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``cos``
    """

@_op
def cosh(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Hyperbolic cosine.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``cosh``
    """

@_op
def count_nonzero(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return the number of elements that are not zero, as int64; parameters as for `sum`."""

@_op
def cov(
    x: _ArrayLike,
    y: _ArrayLike | None = None,
    /,
    *,
    rowvar: _bool = True,
    bias: _bool = False,
    ddof: int | None = None,
) -> Array:
    """Return the covariance matrix of variables, or the variance of a single variable.

    Parameters
    ----------
    x : Array (variables, observations) or (observations,)
    y : Array, optional
        More variables, with the same number of observations.
    rowvar : bool
        False: variables are columns.
    bias : bool
        Whether to divide by the number of observations instead of that number minus one.
    ddof : int, optional
        The number to subtract from the number of observations; it takes precedence over `bias`.

    Returns
    -------
    Array (variables, variables)
        In the dtype of floats, otherwise float32; summed in float32 around the means. NaN for too few observations.

    Raises
    ------
    ValueError
        For more than two axes, and for another number of observations in y.
    """

@_op
def cross_entropy(
    x: _ArrayLike,
    target: _ArrayLike,
    /,
    weight: _ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = 'mean',
    label_smoothing: float = 0.0,
) -> Array:
    """Return `nll_loss` of `log_softmax` along the classes, with the parameters of `nll_loss`.

    `target` may also be probabilities, as floats of x's shape. The fraction `label_smoothing` of the weight is spread
    evenly over all classes.
    """

@_op
def cummax(x: _ArrayLike, /, axis: int | None = None) -> Array:
    """Return the largest of each element and all before it along an axis; NaN from the first NaN on.

    Parameters
    ----------
    x : Array
    axis : int, optional
        By default the array is flattened first.

    Returns
    -------
    Array
        With x's dtype.
    """

@_op
def cummin(x: _ArrayLike, /, axis: int | None = None) -> Array:
    """Return the smallest of each element and all before it along an axis; NaN from the first NaN on, like `cummax`."""

@_op
def cumulative_prod(
    x: _ArrayLike,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    include_initial: _bool = False,
) -> Array:
    """Return the product of each element and all before it along an axis; `include_initial` makes it start with 1.

    As `cumulative_sum` otherwise.
    """
cumprod = cumulative_prod

@_op
def cumulative_sum(
    x: _ArrayLike,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    include_initial: _bool = False,
) -> Array:
    """Return the sum of each element and all elements before it along an axis.

    Parameters
    ----------
    x : Array
    axis : int, optional
        May be omitted if there is only one.
    dtype : dtype, optional
        By default x's for floats, and int64 or uint64 for integers and bool.
    include_initial : bool
        Whether the result starts with 0, which makes it longer by one.

    Returns
    -------
    Array
        16-bit floats are summed in float32.

    Raises
    ------
    ValueError
        If there are several axes and none is named.
    """
cumsum = cumulative_sum

@_op
def degrees(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Radians to degrees.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1.5 units in the last place.

    References
    ----------
    NumPy, ``degrees``
    """
rad2deg = degrees

@_op
def dequantize(
    words: _ArrayLike,
    scales: _ArrayLike,
    minima: _ArrayLike | None = None,
    /,
    *,
    dtype: DTypeLike | None = None,
) -> Array:
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

@_op
def diag(x: _ArrayLike, /, k: int = 0) -> Array:
    """Return a matrix with a row on its k-th diagonal and zeros elsewhere; for a matrix, a view of that diagonal.

    Raises
    ------
    ValueError
        Unless the array has one or two axes.
    """

@_op
def diag_indices(n: int, /, ndim: int = 2, *, device: str | None = None) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array whose axes all have length n."""

@_op
def diagflat(x: _ArrayLike, /, k: int = 0) -> Array:
    """Return a matrix with all elements of an array on its k-th diagonal, zeros elsewhere."""

@_op
def diagonal(x: _ArrayLike, /, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    """Return a view of the diagonals of matrices, by default of the last two axes.

    Parameters
    ----------
    x : Array
    offset : int
        Diagonals above the main one are positive.
    axis1, axis2 : int
        The matrices' rows and columns.

    Returns
    -------
    Array
        The other axes, then the axis of the diagonals.
    """

@_op
def diff(
    x: _ArrayLike,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: _ArrayLike | float | None = None,
    append: _ArrayLike | float | None = None,
) -> Array:
    """Return the differences of neighbors along an axis, repeated n times.

    Parameters
    ----------
    x : Array
    axis : int
    n : int
        The number of times.
    prepend, append : Array or number, optional
        Values to put before and after x along the axis.

    Raises
    ------
    ValueError
        For a negative n.
    """

@_op
def digitize(x: _ArrayLike, bins: Any, /, right: _bool = False) -> Array:
    """Return the index of each element's bin, 0 before the first edge.

    Parameters
    ----------
    x : Array
    bins : sequence of numbers or Array
        The edges, increasing or decreasing.
    right : bool
        Whether a bin includes its upper edge rather than its lower one.

    Returns
    -------
    Array
        int64, with x's shape.

    Raises
    ------
    ValueError
        For edges that neither increase nor decrease.
    """

@_op
def divide(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 / x2.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``divide``
    """
true_divide = divide

@_op
def dot(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
    """Return sums of products over the last axis of x1 and the second to last axis of x2, or a vector's only axis.

    Vectors and matrices are multiplied as by `matmul`, and a number is multiplied with every element. If x2 has more
    than two axes, every matrix of x1 is multiplied with every matrix of x2.
    """

@_op
def dropout(x: _ArrayLike, /, p: float = 0.5, *, training: _bool = True, generator: Generator | None = None) -> Array:
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

@_op
def dsplit(x: _ArrayLike, indices_or_sections: Any, /) -> tuple[Array, ...]:
    """Like `split`, along the third axis."""

@_op
def dstack(arrays: Sequence[_ArrayLike], /) -> Array:
    """Join arrays along their third axis. Errors as for `concat`."""

@_op
def einsum(subscripts: str, /, *operands: _ArrayLike, optimize: _bool = True) -> Array:
    """Return the sum of products over the axes that subscripts name: ``einsum("ij,jk->ik", a, b)`` is a matrix product.

    Parameters
    ----------
    subscripts : str
        One letter per axis for each operand, then ``->`` and the axes of the result; by default, the letters that occur
        once, in alphabetical order. ``...`` means all other axes, which broadcast.
    *operands : Array
    optimize : bool
        Whether to choose the order of the products by their sizes; otherwise it is from left to right.

    Returns
    -------
    Array
        In the dtype that the operands promote to, which is also that of intermediate results. Each product of two
        operands is a matrix product, after a copy if the axes need another order.

    Raises
    ------
    ValueError
        If the subscripts do not fit the operands.
    """

@_op
def elu(x: _Operand, /, alpha: float = 1.0, *, out: Array | None = None) -> Array:
    """x where it is positive, else alpha * (exp(x) - 1).

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    alpha : float, default 1.0
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 2 units in the last place.

    References
    ----------
    D. Clevert et al., 2016
    """

@_op
def embedding(indices: _ArrayLike, weight: _ArrayLike, /) -> Array:
    """Return the rows of a table at indices: `take` along the first axis.

    Parameters
    ----------
    indices : Array of integers
    weight : Array (rows, numbers)

    Raises
    ------
    IndexError
        If an index is out of bounds.
    ValueError
        Unless the table has two axes.
    """

@_op
def empty(shape: int | Sequence[int], dtype: DTypeLike | None = None, *, device: str | None = None) -> Array:
    """Return an uninitialized array."""

@_op
def empty_like(
    x: _ArrayLike,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    shape: int | Sequence[int] | None = None,
) -> Array:
    """Return an uninitialized array; its shape and dtype are those of another array unless given."""

@_op
def equal(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 == x2.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and bool.

    References
    ----------
    Python array API standard 2024.12, ``equal``
    """

@_op
def erf(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The error function.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 2 units in the last place.

    References
    ----------
    C++14, 26.8 [c.math], ``erf``
    """

@_op
def erfinv(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The number whose erf is x; infinite at -1 and 1.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    M. Giles, 2012
    """

@_op
def exp(x: _Operand, /, *, out: Array | None = None) -> Array:
    """e to the power x.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``exp``
    """

@_op
def exp2(x: _Operand, /, *, out: Array | None = None) -> Array:
    """2 to the power x.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1 units in the last place.

    References
    ----------
    MSL 6.5, ``exp2``
    """

@_op
def expand_dims(x: _ArrayLike, /, axis: int | Sequence[int] = 0) -> Array:
    """Return a view with a new axis of one element.

    Raises
    ------
    numpy.exceptions.AxisError
        If the new axis would be out of range.
    """

@_op
def expm1(x: _Operand, /, *, out: Array | None = None) -> Array:
    """exp(x) - 1, accurate near 0.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1.5 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``expm1``
    """

@_op
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """Return a matrix with ones on its k-th diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        The shape; the matrix is square if `n_cols` is omitted.
    k : int
        Diagonals above the main one are positive.
    """
identity = eye

@_op
def flatnonzero(x: _ArrayLike, /) -> Array:
    """Return the positions of the elements that are not 0 in the flattened array, as int64."""

@_op
def flip(x: _ArrayLike, /, axis: int | Sequence[int] | None = None) -> Array:
    """Return a view with the elements reversed along axes, by default along all."""

@_op
def fliplr(x: _ArrayLike, /) -> Array:
    """Return a view with the second axis reversed."""

@_op
def flipud(x: _ArrayLike, /) -> Array:
    """Return a view with the first axis reversed."""

@_op
def floor(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The largest whole number that is not above x.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``floor``
    """

@_op
def floor_divide(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 / x2 rounded down; integers by 0 give 0, an infinite x1 NaN.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to. float32 is within 1 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``floor_divide``
    """

@_op
def fma(x1: _Operand, x2: _Operand, x3: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 * x2 + x3, rounded once.

    Parameters
    ----------
    x1, x2, x3 : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    IEEE 754-2019, 5.4.1
    """

@_op
def fmax(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """The larger of two; the other when one is NaN.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    C++14, 26.8 [c.math], ``fmax``
    """

@_op
def fmin(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """The smaller of two; the other when one is NaN.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    C++14, 26.8 [c.math], ``fmin``
    """

@_op
def fmod(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """Remainder of truncated division, with x1's sign; integers by 0 give 0.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    C++14, 26.8 [c.math], ``fmod``
    """

@_op
def full(
    shape: int | Sequence[int],
    fill_value: Any,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
) -> Array:
    """Return an array filled with a value; the default dtype is the one that `asarray` gives the value."""

@_op
def full_like(
    x: _ArrayLike,
    /,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    shape: int | Sequence[int] | None = None,
) -> Array:
    """Return an array filled with a value; its shape and dtype are those of another array unless given."""

@_op
def gcd(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """Greatest common divisor; 0 for two zeros.

    Parameters
    ----------
    x1, x2 : Array or number
        Of integers.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    NumPy, ``gcd``
    """

@_op
def gelu(x: _ArrayLike, /, approximate: Literal['none', 'tanh'] = 'none', *, out: Array | None = None) -> Array:
    """Return x times the standard normal distribution function at x.

    Parameters
    ----------
    x : Array
        Any dtype; integers and bool are converted to float32.
    approximate : {"none", "tanh"}
        ``tanh`` is the formula x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which older models were trained with.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        With x's shape and dtype.

    References
    ----------
    D. Hendrycks and K. Gimpel, "Gaussian Error Linear Units", 2016
    """

@_op
def geomspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    *,
    endpoint: _bool = True,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """Return `num` numbers from `start` to `stop` with a constant ratio; rounding errors are those of `logspace`.

    Raises
    ------
    ValueError
        If one end is 0, or their signs differ.
    TypeError
        For a dtype that is not floating.
    """

@_op
def glu(x: _ArrayLike, /, axis: int = -1) -> Array:
    """Return the first half of an axis times the sigmoid of the second.

    Parameters
    ----------
    x : Array
        Floating-point.
    axis : int
        The axis, of even length.

    Returns
    -------
    Array
        In x's dtype, with the axis half as long.

    Raises
    ------
    ValueError
        For an odd length.
    """

@_op
def greater(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 > x2.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and bool.

    References
    ----------
    Python array API standard 2024.12, ``greater``
    """

@_op
def greater_equal(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 >= x2.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and bool.

    References
    ----------
    Python array API standard 2024.12, ``greater_equal``
    """

@_op
def group_norm(
    x: _ArrayLike,
    num_groups: int,
    /,
    weight: _ArrayLike | None = None,
    bias: _ArrayLike | None = None,
    *,
    eps: float = 1e-05,
) -> Array:
    """Shift and scale each batch element's groups of channels to mean 0 and variance 1, then by weight and bias.

    Parameters
    ----------
    x : Array (N, C, …)
        Floating-point.
    num_groups : int
        The number of groups of channels.
    weight, bias : Array (C,), optional
    eps : float
        Added to the variance.

    Returns
    -------
    Array
        With x's shape and dtype. One kernel computes it; on a GPU, `layer_norm` and a second pass for the weights do.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """

@_op
def hard_sigmoid(x: _Operand, /, *, out: Array | None = None) -> Array:
    """x / 6 + 1/2, clamped to [0, 1].

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1.5 units in the last place.

    References
    ----------
    A. Howard et al., MobileNetV3, 2019
    """

@_op
def hardshrink(x: _Operand, /, lambd: float = 0.5, *, out: Array | None = None) -> Array:
    """x, but 0 within lambd of 0.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    lambd : float, default 0.5
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    PyTorch, ``hardshrink``
    """

@_op
def hardswish(x: _Operand, /, *, out: Array | None = None) -> Array:
    """x * hard_sigmoid(x).

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 3 units in the last place.

    References
    ----------
    A. Howard et al., MobileNetV3, 2019
    """

@_op
def hardtanh(x: _Operand, /, low: float = -1.0, high: float = 1.0, *, out: Array | None = None) -> Array:
    """x clamped to [low, high].

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    low : float, default -1.0
    high : float, default 1.0
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    PyTorch, ``hardtanh``
    """

@_op
def heaviside(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """0 where x1 < 0, 1 where x1 > 0, x2 where x1 is 0.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    NumPy, ``heaviside``
    """

@_op
def histogram(
    x: _ArrayLike,
    /,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    *,
    density: _bool = False,
    weights: _ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Count the elements between adjacent edges.

    Parameters
    ----------
    x : Array
        Of any shape; compared as float32, so integers beyond 2^24 are rounded.
    bins : int or sequence of float
        The number of bins of equal width, or the edges.
    range : tuple of float, optional
        The range of the bins if `bins` is a number; by default from the least to the largest element.
    density : bool
        Whether to divide by the number of elements counted and by each bin's width, so that the areas sum to 1.
    weights : Array, optional
        Weights to add for each element in place of 1; of x's shape.

    Returns
    -------
    counts : Array
        int64; float32 with weights or density.
    edges : Array
        float32, one more than bins. Each bin includes its lower edge, and the last bin both edges. NaN and elements
        outside the edges are not counted.

    Raises
    ------
    ValueError
        For decreasing edges, no bins, a range that is not finite or has fewer float32 numbers than bins, or weights of
        another shape.
    """

@_op
def histogram_bin_edges(x: _ArrayLike, /, bins: Any = 10, range: tuple[float, float] | None = None) -> Array:
    """Return the edges of `histogram`'s bins, as float32; parameters as for `histogram`."""

@_op
def hsplit(x: _ArrayLike, indices_or_sections: Any, /) -> tuple[Array, ...]:
    """Like `split`, along the second axis, or the only one."""

@_op
def hstack(arrays: Sequence[_ArrayLike], /) -> Array:
    """Join arrays along their second axis; rows are joined end to end. Errors as for `concat`."""

@_op
def huber_loss(x: _ArrayLike, target: _ArrayLike, /, *, reduction: str = 'mean', delta: float = 1.0) -> Array:
    """Return d² / 2 for differences d up to delta, and delta (d - delta / 2) beyond; otherwise as `mse_loss`."""

@_op
def hypot(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """sqrt(x1^2 + x2^2), which overflows only when the result does.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to. float32 is within 1.5 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``hypot``
    """

@_op
def imag(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The imaginary part: zeros, of x's dtype.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``imag``
    """

@_op
def indices(dimensions: tuple[int, ...], /, *, dtype: DTypeLike | None = ..., device: str | None = None) -> Array:
    """Return an array of shape ``(ndim, *dimensions)`` that holds each element's index along each axis."""

@_op
def inner(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
    """Return sums of products over the last axes of two arrays, or the elementwise product if one is a number."""

@_op
def instance_norm(
    x: _ArrayLike,
    /,
    weight: _ArrayLike | None = None,
    bias: _ArrayLike | None = None,
    *,
    eps: float = 1e-05,
) -> Array:
    """Like `group_norm`, with a group for each channel."""

@_op
def interp(
    x: _ArrayLike,
    xp: Any,
    fp: Any,
    /,
    *,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
) -> Array:
    """Return the values at x of the piecewise linear function through some points.

    Parameters
    ----------
    x : Array
        The positions. Every dtype is converted to float32.
    xp, fp : Array or sequence of float, of one length
        The points, with increasing xp.
    left, right : float, optional
        The values before the first point and after the last; by default the first and last of fp.
    period : float, optional
        The period of x and xp. If it is given, xp need not increase, and left and right are ignored.

    Returns
    -------
    Array
        float32, with x's shape. NaN for NaN.

    Raises
    ------
    ValueError
        If there is no point, or xp and fp are not one-dimensional with the same length.
    """

@_op
def intersect1d(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
    """Return the distinct values that are in both of two arrays, sorted."""

@_op
def isclose(x1: Any, x2: Any, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: _bool = False) -> Array:
    """Return whether elements are close: |x1 - x2| <= atol + rtol |x2| in float32; equal infinities are close.

    Parameters
    ----------
    x1, x2 : Array or number
        Integers and bool are converted to float32.
    rtol, atol : float
        The relative tolerance, times |x2|, and the absolute tolerance.
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    Array
        bool, in the broadcast shape.
    """

@_op
def isfinite(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Whether x is neither NaN nor an infinity.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and bool.

    References
    ----------
    Python array API standard 2024.12, ``isfinite``
    """

@_op
def isin(x1: Any, x2: Any, /, *, invert: _bool = False) -> Array:
    """Return whether each element is in another array.

    Parameters
    ----------
    x1 : Array
        The elements to look for.
    x2 : Array or sequence of numbers
        The elements to search, sorted first for binary search.
    invert : bool
        Whether to return the opposite.

    Returns
    -------
    Array
        bool, with x1's shape. NaN is in no array.
    """

@_op
def isinf(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Whether x is an infinity.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and bool.

    References
    ----------
    Python array API standard 2024.12, ``isinf``
    """

@_op
def isnan(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Whether x is NaN.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and bool.

    References
    ----------
    Python array API standard 2024.12, ``isnan``
    """

@_op
def kl_div(x: _ArrayLike, target: _ArrayLike, /, *, reduction: str = 'mean') -> Array:
    """Return target (log target - x), the distance of probabilities from those with logarithms x; as `mse_loss`."""

@_op
def kron(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
    """Return the Kronecker product, whose blocks are each element of x1 times all of x2, by one multiplication.

    Parameters
    ----------
    x1, x2 : Array
        Axes of length 1 are prepended to the array with fewer axes.

    Returns
    -------
    Array
        Each axis has the product of both lengths.
    """

@_op
def l1_loss(x: _ArrayLike, target: _ArrayLike, /, *, reduction: str = 'mean') -> Array:
    """Return the absolute differences; parameters and errors as for `mse_loss`."""

@_op
def layer_norm(
    x: _ArrayLike,
    weight: _ArrayLike | None = None,
    bias: _ArrayLike | None = None,
    /,
    *,
    eps: float = 1e-05,
) -> Array:
    """Shift and scale rows to mean 0 and variance 1: (x - mean) / √(variance + eps) · weight + bias, in one kernel.

    Parameters
    ----------
    x : Array
        Shape (…, N), floating-point. Each row of N is normalized.
    weight, bias : Array, optional
        Shape (N,).
    eps : float

    Returns
    -------
    Array
        With x's shape and dtype; computed in float32.
    """

@_op
def lcm(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """Least common multiple, which wraps; 0 where one is 0.

    Parameters
    ----------
    x1, x2 : Array or number
        Of integers.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    NumPy, ``lcm``
    """

@_op
def leaky_relu(x: _Operand, /, slope: float = 0.01, *, out: Array | None = None) -> Array:
    """x where it is positive, else slope * x.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    slope : float, default 0.01
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    A. Maas et al., 2013
    """

@_op
def lerp(x1: _Operand, x2: _Operand, x3: _Operand, /, *, out: Array | None = None) -> Array:
    """From x1, for x3 = 0, to x2, for x3 = 1; x2 - x1 must not overflow.

    Parameters
    ----------
    x1, x2, x3 : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to. float32 is within 3 units in the last place.

    References
    ----------
    PyTorch, ``lerp``
    """

@_op
def less(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 < x2.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and bool.

    References
    ----------
    Python array API standard 2024.12, ``less``
    """

@_op
def less_equal(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 <= x2.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and bool.

    References
    ----------
    Python array API standard 2024.12, ``less_equal``
    """

@_op
def linear(x: _ArrayLike, weight: _ArrayLike, bias: _ArrayLike | None = None, /) -> Array:
    """Return ``x @ weight.T + bias``.

    Parameters
    ----------
    x : Array (…, K)
    weight : Array (N, K)
        A row for each output feature, as in PyTorch.
    bias : Array (N,), optional

    Returns
    -------
    Array (…, N)

    Raises
    ------
    ValueError
        If weight is not a matrix, or K differs.
    """

@_op
def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: _bool = True,
) -> Array:
    """Return `num` evenly spaced numbers from `start` to `stop`, which is included unless ``endpoint=False``.

    Raises
    ------
    ValueError
        For a negative `num`.
    TypeError
        For a dtype that is not floating.
    """

@_op
def log(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Natural logarithm.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``log``
    """

@_op
def log10(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Logarithm to base 10.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``log10``
    """

@_op
def log1p(x: _Operand, /, *, out: Array | None = None) -> Array:
    """log(1 + x), accurate near 0.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 2 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``log1p``
    """

@_op
def log2(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Logarithm to base 2.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``log2``
    """

@_op
def log_sigmoid(x: _Operand, /, *, out: Array | None = None) -> Array:
    """log(sigmoid(x)).

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 3 units in the last place.

    References
    ----------
    PyTorch, ``logsigmoid``
    """

@_op
def log_softmax(x: _ArrayLike, /, axis: int = -1) -> Array:
    """Return the logarithm of `softmax`, without underflow: (x - m) - log Σ exp(x - m); parameters as for `softmax`."""

@_op
def logaddexp(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """log(exp(x1) + exp(x2)), which does not overflow.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``logaddexp``
    """

@_op
def logical_and(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """Whether both are nonzero.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and bool.

    References
    ----------
    Python array API standard 2024.12, ``logical_and``
    """

@_op
def logical_not(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Whether x is 0, or False.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and bool.

    References
    ----------
    Python array API standard 2024.12, ``logical_not``
    """

@_op
def logical_or(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """Whether at least one is nonzero.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and bool.

    References
    ----------
    Python array API standard 2024.12, ``logical_or``
    """

@_op
def logical_xor(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """Whether exactly one is nonzero.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and bool.

    References
    ----------
    Python array API standard 2024.12, ``logical_xor``
    """

@_op
def logspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    *,
    endpoint: _bool = True,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """Return `num` numbers from base**start to base**stop with a constant ratio.

    The exponents are rounded to float32, so the error is about |exponent| units in the last place.

    Raises
    ------
    TypeError
        For a dtype that is not floating.
    """

@_op
def logsumexp(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return the logarithm of the sum of exponentials, without overflow: log Σ exp(x - m) + m for the largest m.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        In x's dtype for floats, otherwise float32. -∞ if there are no elements.
    """

@_op
def matmul(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
    """Return the product of matrices, or of stacks of matrices.

    Parameters
    ----------
    x1 : Array (…, M, K) or (K,)
    x2 : Array (…, K, N) or (K,)
        With any strides: a transposed view is not copied. The leading axes broadcast.

    Returns
    -------
    Array (…, M, N)
        In the dtype that x1 and x2 promote to; a vector's axis is dropped. Integers wrap. float16 and bfloat16 are
        summed in float32 and rounded once. For bool, the result is whether any pair is true.

    Raises
    ------
    ValueError
        If an array has no axis, the lengths K differ, or the leading axes do not broadcast.

    References
    ----------
    Python array API standard 2024.12, ``matmul``.
    """

@_op
def matrix_transpose(x: _ArrayLike, /) -> Array:
    """Return a view with the last two axes exchanged.

    Raises
    ------
    ValueError
        If the array has fewer than two axes.
    """

@_op
def max(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return the largest element, or NaN if there is a NaN.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        In x's dtype.

    Raises
    ------
    ValueError
        If there are no elements.
    """
amax = max

@_op
def max_pool1d(
    x: _ArrayLike,
    kernel_size: int | Sequence[int],
    /,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    *,
    dilation: int | Sequence[int] = 1,
    ceil_mode: _bool = False,
) -> Array:
    """Like `max_pool2d`, over one axis: x (N, C, L) or (C, L)."""

@_op
def max_pool2d(
    x: _ArrayLike,
    kernel_size: int | Sequence[int],
    /,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | str = 0,
    *,
    dilation: int | Sequence[int] = 1,
    ceil_mode: _bool = False,
) -> Array:
    """Return the largest element of each window of images, or NaN if the window has one.

    Parameters
    ----------
    x : Array (N, C, H, W) or (C, H, W)
    kernel_size : int or pair of int
        Rows and columns of a window.
    stride : int or pair of int, optional
        The step from one window to the next; by default the window's size.
    padding : int or pair of int
        Positions around the image that windows may cover, at most half a window; they are ignored.
    dilation : int or pair of int
        The step from one element of a window to the next.
    ceil_mode : bool
        Whether the last window may be cut off.

    Returns
    -------
    Array
        With x's dtype.

    Raises
    ------
    ValueError
        If no window fits.
    """

@_op
def maximum(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """The larger of two; NaN when either is.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``maximum``
    """

@_op
def mean(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return the arithmetic mean.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        In x's dtype for floats, otherwise float32; integers of up to 32 bits are summed exactly. NaN if there are no
        elements.
    """

@_op
def median(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return the middle one of the sorted elements, or the mean of the two in the middle; NaN if there is a NaN.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        In x's dtype for floats, otherwise float32. NaN if there are no elements.
    """

@_op
def meshgrid(*arrays: _ArrayLike, indexing: str = 'xy') -> list[Array]:
    """Return the coordinates of a grid: one array for each axis.

    Parameters
    ----------
    *arrays : Array
        One-dimensional arrays.
    indexing : {"xy", "ij"}
        ``xy``: the first array varies along the second axis, as in pictures; ``ij``: along the first.

    Raises
    ------
    ValueError
        If an array has more than one axis, the dtypes differ, or `indexing` is neither of the two.
    """

@_op
def min(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return the smallest element, or NaN if there is a NaN; otherwise like `max`."""
amin = min

@_op
def minimum(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """The smaller of two; NaN when either is.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``minimum``
    """

@_op
def mish(x: _Operand, /, *, out: Array | None = None) -> Array:
    """x * tanh(softplus(x)).

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 6 units in the last place.

    References
    ----------
    D. Misra, 2019
    """

@_op
def moveaxis(x: _ArrayLike, source: int | Sequence[int], destination: int | Sequence[int], /) -> Array:
    """Return a view with axes moved to other positions; the rest keep their order.

    Raises
    ------
    ValueError
        If `source` and `destination` differ in number.
    """

@_op
def mse_loss(x: _ArrayLike, target: _ArrayLike, /, *, reduction: str = 'mean') -> Array:
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

@_op
def multiply(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 * x2; of bool: and.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``multiply``
    """

@_op
def nan_to_num(x: _ArrayLike, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """Replace NaN by 0 and infinities by the dtype's largest and smallest numbers, or by the values given.

    Parameters
    ----------
    x : Array
        Integers are copied.
    nan, posinf, neginf : float, optional

    Returns
    -------
    Array
        With x's shape and dtype.
    """

@_op
def nanargmax(x: _ArrayLike, /, axis: int | None = None, *, keepdims: _bool = False) -> Array:
    """Return the index of the largest element that is not NaN, as `argmax`, in two passes.

    Raises
    ------
    ValueError
        If there are no elements, or only NaN.
    """

@_op
def nanargmin(x: _ArrayLike, /, axis: int | None = None, *, keepdims: _bool = False) -> Array:
    """Return the index of the smallest element that is not NaN; errors as for `nanargmax`."""

@_op
def nancumprod(x: _ArrayLike, /, axis: int | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Return running products with NaN as 1, by default over the flattened array, in two passes."""

@_op
def nancumsum(x: _ArrayLike, /, axis: int | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Return running sums with NaN as 0, by default over the flattened array, in two passes."""

@_op
def nanmax(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return the largest element that is not NaN, or NaN if all are; parameters and errors as for `max`."""

@_op
def nanmean(
    x: _ArrayLike,
    /,
    axis: _Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: _bool = False,
) -> Array:
    """Return the arithmetic mean of the elements that are not NaN, or NaN if there are none. Parameters as for `mean`.

    `dtype` converts the elements first.
    """

@_op
def nanmedian(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Like `median`, for the elements that are not NaN; NaN if there are none."""

@_op
def nanmin(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return the smallest element that is not NaN, or NaN if all are; parameters and errors as for `max`."""

@_op
def nanpercentile(
    x: _ArrayLike,
    /,
    q: float | Sequence[float] | _ArrayLike,
    axis: _Axis | None = None,
    *,
    method: str = 'linear',
    keepdims: _bool = False,
) -> Array:
    """Like `nanquantile`, for q in percent, between 0 and 100."""

@_op
def nanprod(
    x: _ArrayLike,
    /,
    axis: _Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: _bool = False,
) -> Array:
    """Return the product of elements that are not NaN, or 1 if there are none; parameters and dtypes as for `sum`."""

@_op
def nanquantile(
    x: _ArrayLike,
    /,
    q: float | Sequence[float] | _ArrayLike,
    axis: _Axis | None = None,
    *,
    method: str = 'linear',
    keepdims: _bool = False,
) -> Array:
    """Like `quantile`, for the elements that are not NaN; NaN if there are none. It waits to count them."""

@_op
def nanstd(
    x: _ArrayLike,
    /,
    axis: _Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    correction: float = 0.0,
    keepdims: _bool = False,
    ddof: float | None = None,
) -> Array:
    """Return the standard deviation of elements that are not NaN: the square root of `nanvar`, with its parameters."""

@_op
def nansum(
    x: _ArrayLike,
    /,
    axis: _Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: _bool = False,
) -> Array:
    """Return the sum of the elements that are not NaN, or 0 if there are none; parameters and dtypes as for `sum`."""

@_op
def nanvar(
    x: _ArrayLike,
    /,
    axis: _Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    correction: float = 0.0,
    keepdims: _bool = False,
    ddof: float | None = None,
) -> Array:
    """Return the variance of elements that are not NaN; NaN unless more than `correction` remain. See `var`.

    `dtype` converts the elements first; `ddof` is NumPy's name for `correction`.
    """

@_op
def negative(x: _Operand, /, *, out: Array | None = None) -> Array:
    """-x, which wraps for integers.

    Parameters
    ----------
    x : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``negative``
    """

@_op
def nextafter(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """The next number after x1 towards x2, of their dtype.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``nextafter``
    """

@_op
def nll_loss(
    x: _ArrayLike,
    target: _ArrayLike,
    /,
    weight: _ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = 'mean',
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

@_op
def nonzero(x: _ArrayLike, /) -> tuple[Array, ...]:
    """Return the indices of the elements that are not 0.

    Parameters
    ----------
    x : Array
        The array; it must have at least one axis.

    Returns
    -------
    tuple of Array
        The indices along each axis, int64, in memory order: ``x[nonzero(x)]`` has the elements.
    """

@_op
def not_equal(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 != x2.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and bool.

    References
    ----------
    Python array API standard 2024.12, ``not_equal``
    """

@_op
def one_hot(x: _ArrayLike, /, num_classes: int = -1) -> Array:
    """Return a row of zeros for each number, with a one at its index: int64.

    Parameters
    ----------
    x : Array of integers
        0 or more.
    num_classes : int
        The length of the rows; by default the largest number plus one, for which the call waits.

    Raises
    ------
    ValueError
        For a number outside the row.
    """

@_op
def ones(shape: int | Sequence[int], dtype: DTypeLike | None = None, *, device: str | None = None) -> Array:
    """Return an array of ones, by default float32."""

@_op
def ones_like(
    x: _ArrayLike,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    shape: int | Sequence[int] | None = None,
) -> Array:
    """Return an array of ones; its shape and dtype are those of another array unless given."""

@_op
def outer(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
    """Return the products of each element of one vector with each element of another.

    Parameters
    ----------
    x1 : Array (M,)
    x2 : Array (N,)

    Returns
    -------
    Array (M, N)

    Raises
    ------
    ValueError
        If an argument is not a vector.

    References
    ----------
    Python array API standard 2024.12, ``linalg.outer``.
    """

@_op
def pad(x: _ArrayLike, pad_width: Any, /, mode: str = 'constant', *, constant_values: Any = 0) -> Array:
    """Return an array with more elements before and after it along its axes.

    Parameters
    ----------
    x : Array
    pad_width : int, pair of int, or a pair for each axis
        The number of elements before and after.
    mode : {"constant", "edge", "reflect", "symmetric", "wrap", "empty"}
        In this order, the new elements are constants, the outermost element, the array mirrored at its outermost
        element or beyond it, the array repeated, or uninitialized memory.
    constant_values : number, pair, or a pair for each axis
        For ``constant``: the values before and after.

    Returns
    -------
    Array
        ``constant`` is one copy; the other modes take elements by index, one axis after another.

    Raises
    ------
    ValueError
        For a negative width, an unknown mode, or if there is nothing to repeat.
    """

@_op
def partition(x: _ArrayLike, kth: Any, /, axis: int | None = -1) -> Array:
    """Return x with its k-th element in sorted position: no element before it is larger, and none after it is smaller.

    The result is fully sorted, which satisfies this condition.

    Raises
    ------
    TypeError
        If `kth` is not an integer or a sequence of integers.
    ValueError
        If `kth` is out of bounds.
    """

@_op
def percentile(
    x: _ArrayLike,
    /,
    q: float | Sequence[float] | _ArrayLike,
    axis: _Axis | None = None,
    *,
    method: str = 'linear',
    keepdims: _bool = False,
) -> Array:
    """Like `quantile`, for q in percent, between 0 and 100."""

@_op
def permute_dims(x: _ArrayLike, /, axes: Sequence[int] | None = None) -> Array:
    """Return a view with its axes in another order, by default reversed.

    Raises
    ------
    ValueError
        If `axes` does not name each axis once.
    """
transpose = permute_dims

@_op
def positive(x: _Operand, /, *, out: Array | None = None) -> Array:
    """A copy of x.

    Parameters
    ----------
    x : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``positive``
    """

@_op
def pow(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 to the power x2; integers wrap, and their powers must not be negative.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``pow``
    """
power = pow

@_op
def prelu(x: _ArrayLike, weight: _ArrayLike, /) -> Array:
    """Return x where it is positive, else x times a weight; there is one weight, or one per channel (x's second axis).

    Parameters
    ----------
    x : Array (N, C, …)
    weight : Array (1,) or (C,)

    Raises
    ------
    ValueError
        If there is another number of weights.
    """

@_op
def prod(
    x: _ArrayLike,
    /,
    axis: _Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: _bool = False,
) -> Array:
    """Return the product of the elements; parameters and dtypes as for `sum`. The product of no elements is 1."""

@_op
def ptp(x: _ArrayLike, /, axis: _Axis | None = None, *, keepdims: _bool = False) -> Array:
    """Return the largest minus the smallest element; integers wrap. Parameters and errors as for `max`; two passes."""

@_op
def put(x: _ArrayLike, indices: Any, values: Any, /, *, axis: int | None = None) -> Array:
    """Write values at indices; if several values go to the same position, the last one is kept.

    Parameters
    ----------
    x : Array
        Changed in place. A NumPy array must be contiguous and writable.
    indices : Array of integers
        Negative ones count from the end.
    values : Array or scalar
        Broadcast to the positions.
    axis : int, optional
        By default indices count through all of x, last axis fastest.

    Returns
    -------
    Array
        x itself.

    Raises
    ------
    IndexError
        If an index is out of bounds; in that case, nothing is written.
    OverflowError
        If x's dtype cannot hold a Python number among the values.
    ValueError
        For a broadcast view, whose elements share memory, for values that do not broadcast, and for another library's
        array that would be copied.
    """

@_op
def quantile(
    x: _ArrayLike,
    /,
    q: float | Sequence[float] | _ArrayLike,
    axis: _Axis | None = None,
    *,
    method: str = 'linear',
    keepdims: _bool = False,
) -> Array:
    """Return quantiles of the elements: the least at q = 0, the median at 1/2; NaN if there is a NaN.

    Parameters
    ----------
    x : Array
    q : float or sequence of float
        Between 0 and 1.
    axis : int or tuple of int, optional
        By default all axes.
    method : str
        How to interpolate between two elements: NumPy's methods by NumPy's names, by default ``linear``.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        With q's shape, then the remaining axes; in x's dtype for floats, otherwise float32. Interpolated in float32;
        between two equal infinities it is that infinity.

    Raises
    ------
    ValueError
        For a q outside [0, 1], or an unknown method.
    """

@_op
def quantize(w: _ArrayLike, /, bits: Literal[4, 8] = 4, *, symmetric: _bool = False) -> tuple[Array, ...]:
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

@_op
def quantized_matmul(
    x: _ArrayLike,
    words: _ArrayLike,
    scales: _ArrayLike,
    minima: _ArrayLike | None = None,
    /,
) -> Array:
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

@_op
def radians(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Degrees to radians.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1.5 units in the last place.

    References
    ----------
    NumPy, ``radians``
    """
deg2rad = radians

@_op
def ravel(x: _ArrayLike, /) -> Array:
    """Return the flattened array: a view if the strides allow it, else a copy."""

@_op
def real(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The real part: x itself, copied.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``real``
    """

@_op
def reciprocal(x: _Operand, /, *, out: Array | None = None) -> Array:
    """1 / x.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``reciprocal``
    """

@_op
def relu(x: _Operand, /, *, out: Array | None = None) -> Array:
    """x where it is positive, else 0.

    Parameters
    ----------
    x : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    PyTorch, ``relu``
    """

@_op
def relu6(x: _Operand, /, *, out: Array | None = None) -> Array:
    """x clamped to [0, 6].

    Parameters
    ----------
    x : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    A. Howard et al., MobileNets, 2017
    """

@_op
def remainder(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """Remainder of floor_divide, with x2's sign; integers by 0 give 0.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``remainder``
    """
mod = remainder

@_op
def repeat(x: _ArrayLike, repeats: Any, /, axis: int | None = None) -> Array:
    """Repeat each element directly after itself.

    Parameters
    ----------
    x : Array
    repeats : int or Array of int
        The number of repetitions, or an array with one for each element along the axis.
    axis : int, optional
        The axis to repeat along; if omitted, the array is flattened first.

    Raises
    ------
    ValueError
        If a count is negative, or the number of counts differs from the axis's length.
    """

@_op
def reshape(x: _ArrayLike, /, shape: int | Sequence[int], *, copy: _bool | None = None) -> Array:
    """Return the elements in another shape: a view if the strides allow it, else a copy.

    Parameters
    ----------
    x : Array
    shape : int or tuple of int
        One length may be -1, to be inferred from the others.
    copy : bool, optional
        True always copies; False raises an error if a view is impossible.

    Raises
    ------
    ValueError
        If the number of elements differs, or ``copy=False`` and no view is possible.
    """

@_op
def rms_norm(x: _ArrayLike, weight: _ArrayLike | None = None, /, *, eps: float = 1e-05) -> Array:
    """Scale rows to a mean square of 1: x / √(mean of x² + eps) · weight, in one kernel.

    Parameters
    ----------
    x : Array
        Shape (…, N), floating-point. Each row of N is normalized.
    weight : Array, optional
        Shape (N,).
    eps : float

    Returns
    -------
    Array
        With x's shape and dtype; computed in float32.
    """

@_op
def roll(x: _ArrayLike, /, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Array:
    """Move the elements along axes; those shifted past the end reappear at the start.

    Parameters
    ----------
    x : Array
    shift : int or tuple of int
        How far to move the elements along each axis; shifts along the same axis are added.
    axis : int or tuple of int, optional
        By default the array is flattened first.

    Raises
    ------
    ValueError
        If the numbers of shifts and axes differ, and neither is 1.
    """

@_op
def rope(x: _ArrayLike, /, *, base: float = 10000.0, offset: int = 0, interleaved: _bool = False) -> Array:
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

@_op
def rot90(x: _ArrayLike, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return a view rotated by k right angles in the plane of two axes, from the first towards the second.

    Raises
    ------
    ValueError
        If the axes are the same.
    """

@_op
def round(x: _Operand, /, *, out: Array | None = None) -> Array:
    """The nearest whole number; ties go to the even one.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``round``
    """
rint = round

@_op
def rsqrt(x: _Operand, /, *, out: Array | None = None) -> Array:
    """1 / sqrt(x).

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1.5 units in the last place.

    References
    ----------
    MSL 6.5, ``rsqrt``
    """

@_op
def scaled_dot_product_attention(
    query: _ArrayLike,
    key: _ArrayLike,
    value: _ArrayLike,
    /,
    attn_mask: _ArrayLike | None = None,
    *,
    is_causal: _bool = False,
    scale: float | None = None,
    enable_gqa: _bool = False,
) -> Array:
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

@_op
def scatter_add(x: _ArrayLike, indices: Any, values: Any, /, *, axis: int = 0) -> Array:
    """Add values at indices along an axis; several at the same position add up.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        One-dimensional; negative ones count from the end.
    values : Array or scalar
        Broadcast to x's shape with the axis as long as the indices.
    axis : int

    Returns
    -------
    Array
        A new array. Values at the same position are added in the order of the indices, so floats are equal on every
        run, and to NumPy's ``add.at``.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    OverflowError
        If x's dtype cannot hold a Python number among the values.
    TypeError
        For floats added to integers.
    """

@_op
def searchsorted(
    x1: _ArrayLike,
    x2: Any,
    /,
    side: Literal['left', 'right'] = 'left',
    sorter: _ArrayLike | None = None,
) -> Array:
    """Return the positions at which values would be inserted into a sorted array.

    Parameters
    ----------
    x1 : Array
        One-dimensional and sorted; NaN is larger than every number.
    x2 : Array
        The values.
    side : {"left", "right"}
        'left' inserts before equal elements, 'right' after them.
    sorter : Array of integers, optional
        The `argsort` of x1, if x1 is not sorted.

    Returns
    -------
    Array
        int64, with x2's shape.

    Raises
    ------
    ValueError
        If x1 is not one-dimensional, the sorter's shape differs from x1's, or `side` is another word.
    IndexError
        If the sorter has an index out of bounds.
    """

@_op
def selu(x: _Operand, /, *, out: Array | None = None) -> Array:
    """elu scaled so that layers keep mean 0 and variance 1.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    G. Klambauer et al., 2017
    """

@_op
def setdiff1d(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
    """Return the distinct values of one array that are not in another, sorted."""

@_op
def setxor1d(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
    """Return the distinct values that are in exactly one of two arrays, sorted."""

@_op
def sigmoid(x: _Operand, /, *, out: Array | None = None) -> Array:
    """1 / (1 + exp(-x)).

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 3 units in the last place.

    References
    ----------
    PyTorch, ``sigmoid``
    """

@_op
def sign(x: _Operand, /, *, out: Array | None = None) -> Array:
    """-1, 0 or 1 by x's sign, 0 for -0.0; NaN for NaN.

    Parameters
    ----------
    x : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``sign``
    """

@_op
def signbit(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Whether the sign bit is set, as in -0.0.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and bool.

    References
    ----------
    Python array API standard 2024.12, ``signbit``
    """

@_op
def silu(x: _Operand, /, *, out: Array | None = None) -> Array:
    """x * sigmoid(x).

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 5 units in the last place.

    References
    ----------
    P. Ramachandran et al., 2017
    """
swish = silu

@_op
def sin(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Sine; x in radians.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``sin``
    """

@_op
def sinh(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Hyperbolic sine.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``sinh``
    """

@_op
def smooth_l1_loss(x: _ArrayLike, target: _ArrayLike, /, *, reduction: str = 'mean', beta: float = 1.0) -> Array:
    """Return d² / 2 beta for differences d below beta, and d - beta / 2 beyond; otherwise as `mse_loss`."""

@_op
def softmax(x: _ArrayLike, /, axis: int = -1) -> Array:
    """Return exponentials along an axis, scaled to sum 1: exp(x - m) / Σ exp(x - m), with m the largest element.

    Parameters
    ----------
    x : Array
        Floating-point; integers are converted to float32.
    axis : int
        By default the last.

    Returns
    -------
    Array
        With x's shape and dtype; computed in float32.
    """

@_op
def softplus(x: _Operand, /, beta: float = 1.0, *, out: Array | None = None) -> Array:
    """log(1 + exp(beta * x)) / beta.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    beta : float, default 1.0
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 4 units in the last place.

    References
    ----------
    PyTorch, ``softplus``
    """

@_op
def softshrink(x: _Operand, /, lambd: float = 0.5, *, out: Array | None = None) -> Array:
    """x moved towards 0 by lambd, and 0 within it.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    lambd : float, default 0.5
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    PyTorch, ``softshrink``
    """

@_op
def softsign(x: _Operand, /, *, out: Array | None = None) -> Array:
    """x / (1 + |x|).

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 1.5 units in the last place.

    References
    ----------
    PyTorch, ``softsign``
    """

@_op
def sort(x: _ArrayLike, /, axis: int | None = -1, *, descending: _bool = False, stable: _bool = True) -> Array:
    """Sort an array along an axis.

    Parameters
    ----------
    x : Array
    axis : int or None
        None sorts the flattened array.
    descending : bool
        From the largest to the smallest.
    stable : bool
        Ignored: the sort is always stable.

    Returns
    -------
    Array
        With x's shape and dtype. NaN is larger than every number, as in NumPy; -0.0 equals 0.0.

    Notes
    -----
    A radix sort: its time depends on the number of elements and on the bits of the dtype, not on their order.
    """

@_op
def split(x: _ArrayLike, indices_or_sections: Any, /, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts of an array along an axis, as views: a number of equal parts, or at indices.

    Parameters
    ----------
    x : Array
    indices_or_sections : int or sequence of int
        The number of parts, or the indices at which to split.
    axis : int

    Raises
    ------
    ValueError
        If the parts would not be equal.
    """

@_op
def sqrt(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Square root.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``sqrt``
    """

@_op
def square(x: _Operand, /, *, out: Array | None = None) -> Array:
    """x * x.

    Parameters
    ----------
    x : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``square``
    """

@_op
def squeeze(x: _ArrayLike, /, axis: int | Sequence[int] | None = None) -> Array:
    """Return a view without the named axes of one element, by default without all such axes.

    Raises
    ------
    ValueError
        If a named axis has another length.
    """

@_op
def stack(arrays: Sequence[_ArrayLike], /, axis: int = 0) -> Array:
    """Join arrays of the same shape along a new axis.

    Raises
    ------
    ValueError
        If nothing is given, or the shapes differ.
    """

@_op
def std(x: _ArrayLike, /, axis: _Axis | None = None, *, correction: float = 0.0, keepdims: _bool = False) -> Array:
    """Return the standard deviation: the square root of `var`, with the same parameters."""

@_op
def subtract(x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 - x2.

    Parameters
    ----------
    x1, x2 : Array or number
        Of any dtype but bool.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``subtract``
    """

@_op
def sum(
    x: _ArrayLike,
    /,
    axis: _Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: _bool = False,
) -> Array:
    """Return the sum of the elements.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        The axes to sum over; by default all.
    dtype : dtype, optional
        By default x's for floats, and int64 or uint64 for integers and bool.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        16-bit floats are summed in float32. The sum of no elements is 0. A float32 sum is at least as accurate as
        NumPy's pairwise one, as it adds blocks within blocks.
    """

@_op
def swapaxes(x: _ArrayLike, /, axis1: int, axis2: int) -> Array:
    """Return a view with two axes exchanged."""

@_op
def take(x: _ArrayLike, indices: Any, /, axis: int | None = None) -> Array:
    """Return the elements, or rows, at indices along an axis.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        Of any shape; negative ones count from the end.
    axis : int, optional
        By default indices count through all of x, last axis fastest.

    Returns
    -------
    Array
        The shape is that of x, with the axis replaced by the axes of the indices.

    Raises
    ------
    IndexError
        If an index is out of bounds; the message names the first.
    """

@_op
def take_along_axis(x: _ArrayLike, indices: _ArrayLike, /, axis: int = -1) -> Array:
    """Return elements by an index for each position along an axis. The indices that `argsort` returns sort the array.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        They have as many axes as x; all axes but `axis` broadcast with those of x.
    axis : int

    Returns
    -------
    Array
        The shape is that of the indices, broadcast.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    """

@_op
def tan(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Tangent; x in radians.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 6 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``tan``
    """

@_op
def tanh(x: _Operand, /, *, out: Array | None = None) -> Array:
    """Hyperbolic tangent.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to. float32 is within 5 units in the last place.

    References
    ----------
    Python array API standard 2024.12, ``tanh``
    """

@_op
def tensordot(x1: _ArrayLike, x2: _ArrayLike, /, *, axes: int | tuple[Any, Any] = 2) -> Array:
    """Return the sums of products over some axes of two arrays.

    Parameters
    ----------
    x1, x2 : Array
    axes : int or pair of sequences of int
        Either a number n, which pairs the last n axes of x1 with the first n of x2, or the axes of x1 and the axes of
        x2, paired in order.

    Returns
    -------
    Array
        The remaining axes of x1, then those of x2.

    Raises
    ------
    ValueError
        If paired axes differ in length.

    References
    ----------
    Python array API standard 2024.12, ``tensordot``.
    """

@_op
def threshold(x: _Operand, /, level: float = 0.0, value: float = 0.0, *, out: Array | None = None) -> Array:
    """x above a level, else a value.

    Parameters
    ----------
    x : Array or number
        Of any dtype. Integers and bool are converted to float32.
    level : float, default 0.0
    value : float, default 0.0
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    PyTorch, ``threshold``
    """

@_op
def tile(x: _ArrayLike, repetitions: int | tuple[int, ...], /) -> Array:
    """Repeat an array along its axes.

    Parameters
    ----------
    x : Array
    repetitions : int or tuple of int
        The number of repetitions along each axis; if shape and repetitions differ in length, the shorter is padded with
        ones on the left.

    Raises
    ------
    ValueError
        For a negative number.
    """

@_op
def topk(x: _ArrayLike, k: int, /, axis: int = -1, *, largest: _bool = True) -> TopK:
    """Return the k largest elements along an axis, sorted, and their indices; NaN counts as the largest.

    A small k is found by selection; otherwise sorting the whole axis is faster.

    Parameters
    ----------
    x : Array
    k : int
    axis : int
    largest : bool
        False selects the smallest.

    Returns
    -------
    values : Array
    indices : Array
        int64.

    Raises
    ------
    ValueError
        If the axis has fewer than k elements.
    """

@_op
def tri(
    n: int,
    m: int | None = None,
    /,
    k: int = 0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Array:
    """Return an (n, m) matrix of ones up to its k-th diagonal, zeros above it; by default float32."""

@_op
def tril(x: _ArrayLike, /, k: int = 0) -> Array:
    """Return the lower triangles of matrices, with zeros above the k-th diagonal.

    Raises
    ------
    ValueError
        If there are fewer than two axes.
    """

@_op
def tril_indices(n: int, /, k: int = 0, m: int | None = None, *, device: str | None = None) -> tuple[Array, Array]:
    """Return the indices, rows and columns, of the lower triangle of an (n, m) matrix, up to its k-th diagonal."""

@_op
def tril_indices_from(x: _ArrayLike, /, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of a matrix's lower triangle, like `tril_indices` for its shape."""

@_op
def triu(x: _ArrayLike, /, k: int = 0) -> Array:
    """Return the upper triangles of matrices, with zeros below the k-th diagonal.

    Raises
    ------
    ValueError
        If there are fewer than two axes.
    """

@_op
def triu_indices(n: int, /, k: int = 0, m: int | None = None, *, device: str | None = None) -> tuple[Array, Array]:
    """Return the indices, rows and columns, of the upper triangle of an (n, m) matrix, from its k-th diagonal."""

@_op
def triu_indices_from(x: _ArrayLike, /, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of a matrix's upper triangle, like `triu_indices` for its shape."""

@_op
def trunc(x: _Operand, /, *, out: Array | None = None) -> Array:
    """x rounded towards 0.

    Parameters
    ----------
    x : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of x's shape, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``trunc``
    """

@_op
def union1d(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
    """Return the distinct values that are in at least one of two arrays, sorted."""

@_op
def unique(
    ar: _ArrayLike,
    /,
    return_index: _bool = False,
    return_inverse: _bool = False,
    return_counts: _bool = False,
    *,
    equal_nan: _bool = True,
) -> Any:
    """Return the distinct values of an array, sorted, as NumPy's function of this name does (NaN is one value).

    Parameters
    ----------
    ar : Array
    return_index, return_inverse, return_counts : bool
        Also return where each value first occurs, the position of each element among the values (in ar's shape), how
        often each occurs.
    equal_nan : bool
        Whether NaN is one value; if False, each NaN is distinct, as in `unique_values`.

    Returns
    -------
    Array, or tuple of Array
    """

@_op
def unique_all(x: _ArrayLike, /) -> UniqueAll:
    """Return the distinct values, sorted; where each first occurs; the position of each element among them; counts."""

@_op
def unique_counts(x: _ArrayLike, /) -> UniqueCounts:
    """Return the distinct values of an array, sorted, and how often each occurs."""

@_op
def unique_inverse(x: _ArrayLike, /) -> UniqueInverse:
    """Return the distinct values of an array, sorted, and the position of each element among them."""

@_op
def unique_values(x: _ArrayLike, /) -> Array:
    """Return the distinct values of an array, sorted; each NaN is distinct (array API)."""

@_op
def unstack(x: _ArrayLike, /, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices of an array along an axis, as views.

    Raises
    ------
    ValueError
        If the array has no axes.
    """

@_op
def vander(x: _ArrayLike, /, n: int | None = None, *, increasing: _bool = False) -> Array:
    """Return a matrix with a row for each element: its powers from n - 1 down to 0, or increasing.

    Raises
    ------
    ValueError
        If the array has more than one axis.
    """

@_op
def var(x: _ArrayLike, /, axis: _Axis | None = None, *, correction: float = 0.0, keepdims: _bool = False) -> Array:
    """Return the variance: the mean square of the distance from the mean.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        By default all axes.
    correction : float
        The number to subtract from the number of elements in the divisor; 1 gives the unbiased estimate.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        In x's dtype for floats, otherwise float32. NaN if there are no elements.
    """

@_op
def vecdot(x1: _ArrayLike, x2: _ArrayLike, /, axis: int = -1) -> Array:
    """Return the dot products of the vectors along an axis.

    Parameters
    ----------
    x1, x2 : Array (…, K)
        The other axes broadcast.
    axis : int
        The vectors' axis, counted from the end unless both arrays have as many axes.

    Returns
    -------
    Array (…)
        In the dtype that the two promote to; sums as in `matmul`.

    Raises
    ------
    ValueError
        If the vectors' lengths differ or the other axes do not broadcast.

    References
    ----------
    Python array API standard 2024.12, ``vecdot``.
    """

@_op
def vector_norm(x: _ArrayLike, /, *, axis: _Axis | None = None, keepdims: _bool = False, ord: float = 2) -> Array:
    """Return the norm of vectors: (Σ |x|^p)^(1/p); for p = ±∞ the largest or smallest |x|, for p = 0 the nonzero count.

    Parameters
    ----------
    x : Array
        Floating-point. Integers are converted to float32.
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool
        Whether the axes stay, with length 1.
    ord : float
        The exponent p.

    Returns
    -------
    Array
        In x's dtype for floats, otherwise float32. Squares are summed in float32 and overflow beyond 1e19.

    Raises
    ------
    ValueError
        For an `ord` that only matrices have, such as "fro" (`linalg.matrix_norm`).
    """

@_op
def vsplit(x: _ArrayLike, indices_or_sections: Any, /) -> tuple[Array, ...]:
    """Like `split`, along the first axis."""

@_op
def vstack(arrays: Sequence[_ArrayLike], /) -> Array:
    """Join arrays along their first axis; rows become the rows of a matrix. Errors as for `concat`."""
row_stack = vstack

@_op
def where(condition: _Operand, x1: _Operand, x2: _Operand, /, *, out: Array | None = None) -> Array:
    """x1 where the condition holds, else x2.

    Parameters
    ----------
    condition : Array of bool
    x1, x2 : Array or number
        Of any dtype.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        Of the shape that the operands broadcast to, and the dtype that the operands promote to.

    References
    ----------
    Python array API standard 2024.12, ``where``
    """

@_op
def zeros(shape: int | Sequence[int], dtype: DTypeLike | None = None, *, device: str | None = None) -> Array:
    """Return an array of zeros, by default float32."""

@_op
def zeros_like(
    x: _ArrayLike,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    shape: int | Sequence[int] | None = None,
) -> Array:
    """Return an array of zeros; its shape and dtype are those of another array unless given."""
