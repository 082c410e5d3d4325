"""Find the offset of a location in its file; a macro's argument is located where the author wrote it."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

__all__ = ["file_offset"]


def file_offset(location: Any) -> int:
    """Return a location's offset in bytes; for text from a macro's definition, the offset of the macro's use."""
    file, line, column, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    _locate()(location, *(ctypes.byref(part) for part in (file, line, column, offset)))
    return offset.value


@functools.cache
def _locate() -> Any:
    from clang import cindex

    function = cindex.conf.lib.clang_getFileLocation  # the Python binding lacks the call
    pointers = [ctypes.POINTER(kind) for kind in (ctypes.c_void_p, *(ctypes.c_uint,) * 3)]
    function.argtypes, function.restype = [cindex.SourceLocation, *pointers], None
    return function
