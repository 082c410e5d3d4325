"""A strict double of PyObjC's module ``Metal``: kernels run on the engine ``native``.

It has the classes, functions and constants that metalnb uses and no others, takes the arguments that PyObjC takes, and
raises `MetalAbortError` where Metal's validation would end the process. ``METALNB_METAL=metal_double`` puts the engine
``metal`` on it.
"""

from .commands import NSURL, MTLCaptureDescriptor, MTLCaptureManager, MTLCommandBufferDescriptor, MTLLogStateDescriptor
from .compiler import MTLCompileOptions, MTLFunctionConstantValues
from .device import MTLDevice
from .runtime import SELECTORS, MetalAbortError, objc
from .structures import CONSTANTS, STRINGS, MTLSize

__all__ = [
    "NSURL", "SELECTORS", "MTLCaptureDescriptor", "MTLCaptureManager", "MTLCommandBufferDescriptor",
    "MTLCompileOptions", "MTLCopyAllDevices", "MTLCreateSystemDefaultDevice",
    "MTLFunctionConstantValues", "MTLLogStateDescriptor", "MTLSize", "MetalAbortError", "objc",
]  # fmt: skip

globals().update(CONSTANTS)
globals().update(STRINGS)

_devices = [MTLDevice("Apple M0 (double)"), MTLDevice("Apple M0 (its second double)")]


def MTLCreateSystemDefaultDevice() -> MTLDevice | None:
    return _devices[0] if _devices else None


def MTLCopyAllDevices() -> list[MTLDevice]:
    return _devices
