"""NVIDIA's driver: a device, its primary context, and readable errors."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from metalnb.errors import EngineUnavailable, KernelFault

from ..base import refuse_device
from .driver_api import driver_api
from .ptx import MIN_CAPABILITY, libdevice

__all__ = ["LOADING", "Gpu", "open_gpu"]

_LEGACY = 1  # CU_STREAM_LEGACY
_WIDE_CAPABILITY = 86  # from this compute capability, a processor has 128 lanes of float32 instead of 64

# Held while code is loaded, which may wait for the stream and blocks other threads' driver calls; and while the stream
# is held back, which only a driver call can end.
LOADING = threading.RLock()


class _Current(threading.local):
    is_set = False


class Gpu:
    """A device and its primary context.

    Attributes
    ----------
    api : module
        ``cuda.bindings.driver``.
    index : int
    name : str
    capability : int
        90 for 9.0.
    version : str
        The highest version of CUDA that the driver runs.
    processors : int
        Streaming multiprocessors.
    nominal : tuple of 2 float or None
        B/s to memory, two bits per line and clock, and FLOP/s of float32, two per lane and clock; None if the driver
        does not report the clocks.
    last_cache : int
        Bytes of L2.
    stream : CUstream
        The context's legacy default stream, which all work uses, in order with PyTorch's and CuPy's work there.
    launch : callable
        ``cuLaunchKernelEx``, with the GIL released. It takes ctypes objects directly and no Python numbers, which saves
        0.4 µs per launch over cuda-bindings.
    current : threading.local
        ``is_set`` is True in a thread in which the context is permanently current: `launch` need not set it there.
    settle : callable
        Called before driver calls that wait for the stream, because the driver's waits do not handle signals.
    """

    def __init__(self, api: Any, index: int) -> None:
        self.api = api
        self.index = index
        self.device = self.take(api.cuDeviceGet(index))
        self.name = self.take(api.cuDeviceGetName(128, self.device)).split(b"\0")[0].decode()
        attributes = api.CUdevice_attribute
        major = self._attribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        minor = self._attribute(attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        self.capability = 10 * major + minor
        self.processors = self._attribute(attributes.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        self.last_cache = self._attribute(attributes.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
        self.nominal = self._nominal()
        number = self.take(api.cuDriverGetVersion())
        self.version = f"{number // 1000}.{number % 1000 // 10}"
        self._context = self.take(api.cuDevicePrimaryCtxRetain(self.device))
        self.stream = api.CUstream(_LEGACY)
        self.launch = self._function(b"cuLaunchKernelEx", 11080)
        self._get_pointer_attribute = self._function(b"cuPointerGetAttribute", 4000)
        self.current = _Current()
        self.settle: Callable[[], None] = lambda: None
        self._is_only_gpu = self.take(api.cuDeviceGetCount()) == 1

    def _function(self, name: bytes, since: int) -> Callable[..., int]:
        """Return a function of the driver itself, which takes ctypes objects."""
        address = self.take(self.api.cuGetProcAddress(name, since, 0))
        if not address:
            message = f"engine 'cuda' needs a driver for CUDA 11.8 or later; this one is for {self.version}"
            raise EngineUnavailable(message)
        function: Callable[..., int] = ctypes.CFUNCTYPE(ctypes.c_int)(address)
        return function

    def device_of(self, address: int) -> int:
        """Return the index of the GPU that memory is on.

        Calls the driver directly: cuda-bindings 13.3 returns 0 for every address.
        """
        index = ctypes.c_int()
        attribute = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        status = self._get_pointer_attribute(
            ctypes.byref(index), ctypes.c_int(int(attribute)), ctypes.c_uint64(address)
        )  # fmt: skip
        self.take((self.api.CUresult(status),))
        return index.value

    def _nominal(self) -> tuple[float, float] | None:
        attributes = self.api.CUdevice_attribute
        transfers = 2e3 * self._attribute(attributes.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)
        memory = transfers * self._attribute(attributes.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8
        lanes = (128 if self.capability >= _WIDE_CAPABILITY else 64) * self.processors
        arithmetic = 2e3 * self._attribute(attributes.CU_DEVICE_ATTRIBUTE_CLOCK_RATE) * lanes
        return (memory, arithmetic) if memory and arithmetic else None

    def _attribute(self, attribute: Any) -> int:
        value: int = self.take(self.api.cuDeviceGetAttribute(attribute, self.device))
        return value

    def __enter__(self) -> None:
        """Make the context current in the calling thread; with several contexts, restore the previous one at the end.

        Every driver call is made inside this: modules, memory and events belong to the context that created them, and
        other libraries may have made another device's context current.
        """
        if not self._is_only_gpu:
            self.take(self.api.cuCtxPushCurrent(self._context))
        elif not self.current.is_set:
            self.take(self.api.cuCtxSetCurrent(self._context))
            self.current.is_set = True

    def __exit__(self, *_: object) -> None:
        if not self._is_only_gpu:
            self.api.cuCtxPopCurrent()

    def take(self, answer: tuple[Any, ...], kernel: str = "") -> Any:
        """Return the results of a driver call, without its status.

        Parameters
        ----------
        answer : tuple
            The status, followed by the results.
        kernel : str, optional
            The kernel waited for, for the message.

        Raises
        ------
        MemoryError, KernelFault
        """
        status = answer[0]
        if status:
            self._fail(status, kernel)
        return answer[1] if len(answer) > 1 else None

    def _fail(self, status: Any, kernel: str) -> NoReturn:
        names = self.api.CUresult
        _, name = self.api.cuGetErrorName(status)
        _, description = self.api.cuGetErrorString(status)
        reason = f"{(description or b'unknown error').decode()} ({(name or b'?').decode()})"
        if status == names.CUDA_ERROR_OUT_OF_MEMORY:
            message = f"engine 'cuda': {reason}: free arrays, or call metalnb.clear_cache()"
            raise MemoryError(message)
        fatal = {
            names.CUDA_ERROR_ILLEGAL_ADDRESS, names.CUDA_ERROR_MISALIGNED_ADDRESS, names.CUDA_ERROR_LAUNCH_FAILED,
            names.CUDA_ERROR_LAUNCH_TIMEOUT, names.CUDA_ERROR_ASSERT, names.CUDA_ERROR_HARDWARE_STACK_ERROR,
            names.CUDA_ERROR_ILLEGAL_INSTRUCTION, names.CUDA_ERROR_INVALID_ADDRESS_SPACE,
            names.CUDA_ERROR_INVALID_PC,
        }  # fmt: skip
        subject = f"{kernel}, or a dispatch before it, failed on the GPU" if kernel else "a kernel failed on the GPU"
        if status in fatal:
            raise KernelFault(
                f"{subject}: {reason}. This process can no longer use the GPU, and the arrays on it are lost: restart "
                "the notebook's kernel. To find a wrong index, call validate(…) on engine 'cpu'."
            )
        raise KernelFault(f"{kernel}: {reason}" if kernel else f"engine 'cuda': {reason}")


def open_gpu(index: int) -> Gpu:
    """Open a device.

    Raises
    ------
    EngineUnavailable
        If there is no such device, or a dependency is missing.
    """
    api = driver_api()
    libdevice()
    _, count = api.cuDeviceGetCount()
    if index >= count:
        refuse_device("cuda", index, count)
    gpu = Gpu(api, index)
    if gpu.capability < MIN_CAPABILITY:
        message = f"engine 'cuda' needs compute capability 7.0 or more; {gpu.name} has {gpu.capability / 10}"
        raise EngineUnavailable(message)
    return gpu
