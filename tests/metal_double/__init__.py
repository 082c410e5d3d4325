"""A strict double of PyObjC's module ``Metal``: kernels run on the engine ``cpu``.

It has only the classes, functions and constants that metalnb uses, takes the arguments that PyObjC takes, and raises
`MetalAbortError` where Metal's validation would end the process. ``METALNB_METAL=metal_double`` opens the engine
``metal`` on it.
"""

from .commands import MTLCaptureDescriptor, MTLCaptureManager, MTLCommandBufferDescriptor, MTLLogStateDescriptor
from .compiler import MTLCompileOptions, MTLFunctionConstantValues
from .counters import MTLComputePassDescriptor, MTLCounterSampleBufferDescriptor
from .device import MTLDevice
from .pipelines import MTLBinaryArchiveDescriptor, MTLComputePipelineDescriptor
from .runtime import NSURL, SELECTORS, MetalAbortError, objc
from .structures import CONSTANTS, STRINGS, MTLSize, NSRange

__all__ = [
    "NSURL",
    "SELECTORS",
    "MTLBinaryArchiveDescriptor",
    "MTLCaptureDescriptor",
    "MTLCaptureManager",
    "MTLCommandBufferDescriptor",
    "MTLCompileOptions",
    "MTLComputePassDescriptor",
    "MTLComputePipelineDescriptor",
    "MTLCopyAllDevices",
    "MTLCounterSampleBufferDescriptor",
    "MTLCreateSystemDefaultDevice",
    "MTLFunctionConstantValues",
    "MTLLogStateDescriptor",
    "MTLSize",
    "MetalAbortError",
    "NSRange",
    "objc",
]  # fmt: skip

globals().update(CONSTANTS)
globals().update(STRINGS)

_devices = [MTLDevice("Apple M0 (double)"), MTLDevice("Apple M0 (its second double)")]


def MTLCreateSystemDefaultDevice() -> MTLDevice | None:
    return _devices[0] if _devices else None


def MTLCopyAllDevices() -> list[MTLDevice]:
    return _devices
