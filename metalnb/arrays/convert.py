"""Arrays from other data: NumPy arrays, buffers, lists, scalars, and objects that support DLPack."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from metalnb import engine as engines
from metalnb.dtypes import is_masked
from metalnb.engine.base import Engine
from metalnb.errors import ArgumentError

from .array import Array, copy_of, view_of
from .core import ArrayForm
from .dlpack import import_array
from .memory_pool import DeviceBlock, borrow
from .promotion import as_dtype

__all__ = ["array", "asarray", "check_engine", "from_dlpack"]

DType = np.dtype[Any]

_FLOAT32 = np.dtype(np.float32)


def asarray(obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None) -> Array:
    """Return an array of the given data; memory is shared where possible.

    Parameters
    ----------
    obj : Array, numpy.ndarray, buffer, nested sequence or scalar
        A NumPy array (or any buffer) that is C-contiguous, aligned and writable is not copied: both see the same
        memory; a CuPy or PyTorch array on an NVIDIA GPU is shared with the engine ``cuda`` in the same way. Python
        floats become float32, integers int64. The bytes of bool must be 0 or 1, as in NumPy: shared memory is not
        checked (a copy turns every other byte into 1).
    dtype : dtype, optional
        By default the data's own dtype. float64 data needs an explicit dtype: nothing is narrowed silently.
    device : str, optional
        The name of an engine; by default the engine in use.
    copy : bool, optional
        True always copies, False raises an error if a copy is needed, and None copies only if needed.

    Returns
    -------
    Array

    Raises
    ------
    TypeError
        For a dtype that arrays cannot have.
    ValueError
        When ``copy=False`` and a copy is needed.

    References
    ----------
    Python array API standard 2024.12, ``asarray``.
    """
    target_dtype = None if dtype is None else as_dtype(dtype, "asarray")
    if isinstance(obj, Array):
        return _convert(obj, target_dtype, obj.engine if device is None else engines.named(device), copy)
    engine = engines.named(device)
    if hasattr(engine, "adopt") and hasattr(obj, "__cuda_array_interface__"):
        return _convert(_adopt(obj, engine), target_dtype, engine, copy)
    data, callers_own = _as_numpy(obj, target_dtype)
    fits = target_dtype is None or data.dtype == target_dtype
    if target_dtype is None:
        as_dtype(data.dtype, "asarray")
    is_whole = data.flags.c_contiguous and data.flags.aligned and data.size > 0
    sharable = callers_own and fits and is_whole and data.flags.writeable and engine.caps.shared
    if copy is False and not sharable and (data.size or not callers_own or not fits):  # an empty array shares no memory
        reason = _why_not_shared(data, fits=fits, callers_own=callers_own)
        raise ValueError(f"asarray: copy=False, but {reason}. Leave copy out.")
    if sharable and not copy:
        return view_of(borrow(data, engine), data)
    return copy_of(data, target_dtype or data.dtype, engine)


def array(obj: Any, /, dtype: Any = None, *, device: str | None = None, copy: bool | None = True) -> Array:
    """Return an array with its own memory, like `asarray` with ``copy=True`` as the default."""
    return asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """Return another library's array, imported by DLPack; memory is shared where possible.

    Parameters
    ----------
    x : object
        An object with ``__dlpack__`` and ``__dlpack_device__``.
    device : str, optional
        The name of an engine; by default the engine of `x` if it is a metalnb array, otherwise the engine in use.
    copy : bool, optional
        As for `asarray`.

    Raises
    ------
    BufferError
        If the other library cannot export the array to the CPU, or NumPy lacks its dtype.
    ValueError
        When ``copy=False`` and a copy is needed.
    """
    if isinstance(x, Array):
        result = asarray(x, device=device, copy=copy)
        return x.viewed(x.host) if result is x else result
    return asarray(_from_lender("from_dlpack", x), device=device, copy=copy)


def check_engine(engine: Engine, caller: str, *arrays: Array) -> None:
    """Check that all arrays are on one engine.

    Raises
    ------
    ArgumentError
    """
    for a in arrays:
        if a.block.engine is not engine:
            message = (
                f"{caller}: the arrays are on two engines, {engine.name!r} and {a.device!r}. "
                f"Pass x.to_device({engine.name!r})."
            )
            raise ArgumentError(message)


def _adopt(obj: Any, engine: Any) -> Array:
    """Return an array over another library's memory on the same GPU (CUDA array interface, version 3).

    Raises
    ------
    ValueError
        If its elements are not contiguous.
    """
    interface = obj.__cuda_array_interface__
    dtype, shape = as_dtype(np.dtype(interface["typestr"]), "asarray"), tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is not None and not ArrayForm(dtype, shape, tuple(strides)).contiguous:
        message = f"asarray: the elements, of shape {shape} and strides {strides}, are not contiguous."
        raise ValueError(f"{message} Pass a contiguous copy.")
    nbytes = math.prod(shape) * dtype.itemsize
    memory = engine.adopt(interface["data"][0], nbytes, obj, interface.get("stream"))
    block = DeviceBlock(engine, memory, np.frombuffer(memory, np.uint8), None)
    block.lent = True
    return Array(block, dtype, shape, None, 0)


def _convert(source: Array, target_dtype: DType | None, engine: Engine, copy: bool | None) -> Array:
    is_same = (target_dtype is None or target_dtype == source.dtype) and source.engine is engine
    if is_same and not copy:
        return source
    if copy is False:
        raise ValueError(
            f"asarray: copy=False, but a {source.dtype} array on {source.device!r} is requested as "
            f"{target_dtype or source.dtype} on {engine.name!r}. Leave copy out."
        )
    on_engine = source if source.engine is engine else asarray(source.read(), device=engine.name, copy=True)
    result: Array = on_engine.astype(target_dtype or source.dtype, copy=on_engine is source)
    return result


def _as_numpy(obj: Any, target_dtype: DType | None) -> tuple[np.ndarray[Any, Any], bool]:
    """Return the data as a NumPy array, and whether it shares the given memory. Python numbers have no fixed size."""
    if is_masked(obj):
        raise TypeError("asarray: arrays have no mask. Pass x.filled(…).")
    if isinstance(obj, float):  # including NumPy's float64 scalars
        return np.asarray(obj, target_dtype or _FLOAT32), False
    if isinstance(obj, (list, tuple, bool, int)):
        return _numbers(obj, target_dtype), False
    if hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray):
        return _from_lender("asarray", obj), True
    callers_own = isinstance(obj, np.ndarray) or _is_buffer(obj)
    data = np.asarray(obj) if callers_own else np.asarray(obj, target_dtype)
    if data.dtype.kind in "OUSc" or (isinstance(obj, np.generic) and data.dtype.kind == "V" and not data.dtype.num):
        raise TypeError(f"asarray: needs numbers; got {type(obj).__name__} ({data.dtype}).")
    return data, callers_own


def _from_lender(caller: str, obj: Any) -> np.ndarray[Any, Any]:
    """View another library's array as NumPy's, by DLPack."""
    try:
        return import_array(obj)
    except RuntimeError as error:  # NumPy's error for an unknown dtype
        raise BufferError(f"{caller}: NumPy cannot import it: {error} Convert it there, or pass its bits as integers "
                          "and read them with .view(…).") from error  # fmt: skip


def _numbers(obj: Any, target_dtype: DType | None) -> np.ndarray[Any, Any]:
    """Read a Python number, or nested sequences of numbers and arrays."""
    nested = _read_nested(obj)
    data = np.asarray(nested, target_dtype)
    if data.dtype.kind in "OUSc":
        raise TypeError(f"asarray: needs numbers; got {type(obj).__name__} ({data.dtype}).")
    if target_dtype is None and data.dtype == np.float64 and not _holds(nested, _is_float64_array):
        if data.size and not _holds(nested, _is_float):
            raise TypeError("asarray: no integer dtype contains int64 and uint64. Pass dtype=…, or smaller numbers.")
        return data.astype(np.float32)
    return data


def _read_nested(obj: Any) -> Any:
    """Read the arrays inside nested sequences."""
    if isinstance(obj, Array):
        return obj.read()
    return [_read_nested(o) for o in obj] if isinstance(obj, (list, tuple)) else obj


def _holds(obj: Any, is_meant: Callable[[Any], bool]) -> bool:
    return any(_holds(o, is_meant) for o in obj) if isinstance(obj, list) else is_meant(obj)


def _is_float64_array(obj: Any) -> bool:
    return isinstance(obj, np.ndarray) and obj.dtype == np.float64


def _is_float(obj: Any) -> bool:
    return np.asarray(obj).dtype.kind not in "biu"


def _is_buffer(obj: Any) -> bool:
    try:
        memoryview(obj)
    except TypeError:
        return hasattr(obj, "__array_interface__")
    return True


def _why_not_shared(data: np.ndarray[Any, Any], *, fits: bool, callers_own: bool) -> str:
    if not callers_own:
        return "a list or scalar has no memory to share"
    if not fits:
        return f"the dtype {data.dtype} must be converted"
    if not data.flags.writeable:
        return "the memory is read-only"
    return "the memory is not C-contiguous and aligned, or empty, or the engine has its own memory"
