"""Iterate over containers that support only Objective-C's fast enumeration, which PyObjC lacks.

Source: Apple, *NSFastEnumeration*; PyObjC, *objc.pyobjc_id* and *objc.objc_object* with ``c_void_p``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .bindings import Bindings

__all__ = ["enumerate_objects"]

_BATCH = 16  # objects at a time
Send = Callable[[int, Any, Any, int], int]


class _State(ctypes.Structure):
    """``NSFastEnumerationState``: the location of the next objects."""

    _fields_ = (
        ("state", ctypes.c_ulong), ("items", ctypes.POINTER(ctypes.c_void_p)), ("mutations", ctypes.c_void_p),
        ("extra", ctypes.c_ulong * 5),
    )  # fmt: skip


def enumerate_objects(bindings: Bindings, container: Any, send: Send | None = None) -> list[Any]:
    """Return the objects of a container; none for nil.

    Parameters
    ----------
    bindings : Bindings
    container : object of Objective-C's, or None
    send : callable, optional
        Sends ``countByEnumeratingWithState:objects:count:`` to the object at an address.
    """
    if container is None or hasattr(container, "__iter__"):
        return list(container or ())
    send = send or _message()
    address = bindings.objc.pyobjc_id(container)
    state, buffer = _State(), (ctypes.c_void_p * _BATCH)()
    objects = []
    while count := send(address, ctypes.byref(state), buffer, _BATCH):
        objects += [bindings.objc.objc_object(c_void_p=state.items[i]) for i in range(count)]
    return objects


def _message() -> Send:
    """Return the function that sends the message."""
    runtime = ctypes.CDLL("/usr/lib/libobjc.A.dylib")
    runtime.sel_registerName.restype = ctypes.c_void_p
    selector = runtime.sel_registerName(b"countByEnumeratingWithState:objects:count:")
    kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong)
    message = ctypes.CFUNCTYPE(ctypes.c_ulong, *kinds)(("objc_msgSend", runtime))
    return lambda address, state, buffer, count: int(message(address, selector, state, buffer, count))
