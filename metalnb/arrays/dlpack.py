"""DLPack for NumPy, with bfloat16, which NumPy lacks: it is passed as 16-bit integers.

Source: DLPack 1.1, ``dlpack.h``: the layout of ``DLManagedTensor`` and ``DLManagedTensorVersioned``.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .promotion import bfloat16

__all__ = ["export_array", "import_array"]

Host = np.ndarray[Any, Any]

# The offset of the dtype's code: after the data's address, the device and the number of axes; in the versioned struct
# also after the version, the context, the deleter and the flags.
_CODES = {b"dltensor": 20, b"dltensor_versioned": 52}
_UNSIGNED, _BFLOAT = 1, 4

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


class _CapsuleExporter:
    """An exporter of a capsule that NumPy takes over."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **_options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def import_array(lender: Any) -> Host:
    """View another library's array as NumPy's.

    Raises
    ------
    BufferError, RuntimeError
        If the array is not in the CPU's memory, or has a dtype that NumPy lacks.
    """
    try:
        return np.from_dlpack(lender)
    except RuntimeError:
        capsule = _capsule_of(lender)
        code = _code_of(capsule)
        if code is None or (code.value, ctypes.c_uint8.from_address(ctypes.addressof(code) + 1).value) != (_BFLOAT, 16):
            raise
        code.value = _UNSIGNED
        return np.from_dlpack(_CapsuleExporter(capsule, lender.__dlpack_device__())).view(bfloat16())


def export_array(host: Host, options: dict[str, Any]) -> Any:
    """Export a NumPy array as a capsule.

    Raises
    ------
    BufferError
        If NumPy cannot export it with these options.
    """
    if host.dtype.name != "bfloat16":
        return host.__dlpack__(**options)
    capsule = host.view(np.uint16).__dlpack__(**options)
    code = _code_of(capsule)
    if code is None:
        raise BufferError("__dlpack__: NumPy returned a capsule of an unknown kind")
    code.value = _BFLOAT
    return capsule


def _capsule_of(lender: Any) -> Any:
    """Request a capsule that states whether its memory is writable; libraries before DLPack 1.0 cannot provide one."""
    try:
        return lender.__dlpack__(max_version=(1, 0))
    except TypeError:
        return lender.__dlpack__()


def _code_of(capsule: Any) -> ctypes.c_uint8 | None:
    """Return the code of a capsule's dtype, for reading and writing in place."""
    for name, offset in _CODES.items():
        if _is_valid(capsule, name):
            return ctypes.c_uint8.from_address(_pointer(capsule, name) + offset)
    return None
