"""GPU memory: allocated, freed and copied in the order of the stream, and shared with other libraries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base import Bytes
from ..staging import DeviceMemory
from .nvidia_driver import Gpu
from .pinned_copies import PinnedCopies

__all__ = ["GpuMemory", "gpu_address"]


class Memory:
    """An address on the GPU, freed in the order of the stream when it is no longer used."""

    __slots__ = ("_gpu", "address")

    def __init__(self, gpu: Gpu, address: int) -> None:
        self._gpu = gpu
        self.address = address

    def __del__(self) -> None:
        try:
            with self._gpu:
                self._gpu.api.cuMemFreeAsync(self.address, self._gpu.stream)
        except Exception:  # noqa: BLE001, S110  (the driver may be gone before this is, when Python ends)
            pass


class AdoptedMemory(NamedTuple):
    """An address on the GPU that another library frees."""

    address: int
    owner: Any


class GpuMemory:
    """The memory of an engine on a GPU.

    Parameters
    ----------
    gpu : Gpu
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        with gpu:
            self._pool = self._make_pool()
        self._pinned = PinnedCopies(gpu)

    def _make_pool(self) -> Any:
        """Create a memory pool, separate from other libraries', that keeps freed memory."""
        api = self._gpu.api
        properties = api.CUmemPoolProps()
        properties.allocType = api.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = api.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = self._gpu.index
        pool = self._gpu.take(api.cuMemPoolCreate(properties))
        attribute = api.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        self._gpu.take(api.cuMemPoolSetAttribute(pool, attribute, api.cuuint64_t(2**64 - 1)))
        return pool

    def alloc(self, nbytes: int) -> DeviceMemory:
        """Allocate memory on the GPU, in the order of the stream.

        Raises
        ------
        MemoryError
        """
        with self._gpu:
            api = self._gpu.api
            result = api.cuMemAllocFromPoolAsync(max(nbytes, 1), self._pool, self._gpu.stream)
            if result[0] == api.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
                self._gpu.take(api.cuStreamSynchronize(self._gpu.stream))
                self._gpu.take(api.cuMemPoolTrimTo(self._pool, 0))
                result = api.cuMemAllocFromPoolAsync(max(nbytes, 1), self._pool, self._gpu.stream)
            return DeviceMemory(nbytes, Memory(self._gpu, int(self._gpu.take(result))))

    def zeros(self, nbytes: int) -> DeviceMemory:
        """Allocate zeroed memory."""
        memory = self.alloc(nbytes)
        with self._gpu:
            self._gpu.take(self._gpu.api.cuMemsetD8Async(memory.handle.address, 0, nbytes, self._gpu.stream))
        return memory

    def copy_in(self, memory: DeviceMemory, offset: int, data: Bytes) -> None:
        """Copy host bytes to the GPU."""
        self._gpu.settle()
        with self._gpu:
            contiguous = np.ascontiguousarray(data)
            target = memory.handle.address + offset
            if contiguous.size and not self._pinned.copy_in(target, contiguous):
                self._gpu.take(self._gpu.api.cuMemcpyHtoD(target, contiguous.ctypes.data, contiguous.size))

    def copy_out(self, memory: DeviceMemory, offset: int, into: Bytes) -> None:
        """Copy memory of the GPU to the host."""
        self._gpu.settle()
        with self._gpu:
            source = memory.handle.address + offset
            if into.size and not self._pinned.copy_out(source, into):
                self._gpu.take(self._gpu.api.cuMemcpyDtoH(into.ctypes.data, source, into.size))

    def copy_within(self, target: DeviceMemory, offset: int, source: DeviceMemory, start: int, nbytes: int) -> None:
        """Copy GPU memory to another position on the GPU."""
        with self._gpu:
            if target.handle is source.handle and abs(offset - start) < nbytes:  # the driver rejects such a copy
                copy = self.alloc(nbytes)
                self.copy_within(copy, 0, source, start, nbytes)
                source, start = copy, 0
            destination, origin = target.handle.address + offset, source.handle.address + start
            self._gpu.take(self._gpu.api.cuMemcpyDtoDAsync(destination, origin, nbytes, self._gpu.stream))

    def bind(self, memory: Any) -> Any:
        """Return the launch argument for memory: the GPU's copy of a record that does not change."""
        if gpu_address(memory) is not None:
            return memory
        copy = self.alloc(memory.nbytes)
        self.copy_in(copy, 0, np.ascontiguousarray(memory).reshape(-1).view(np.uint8))
        return copy

    def address(self, memory: DeviceMemory) -> int:
        """Return the address of memory on the GPU, for other libraries."""
        address: int = memory.handle.address
        return address

    def adopt(self, address: int, nbytes: int, owner: Any, stream: int | None = None) -> DeviceMemory:
        """Wrap another library's memory on this GPU, and keep its owner alive.

        Parameters
        ----------
        address, nbytes : int
        owner : object
        stream : int, optional
            The stream of the owner's work on it, if not the default one; the call waits for that work.

        Raises
        ------
        ValueError
            If the memory belongs to another GPU.
        """
        with self._gpu:
            index = self._gpu.device_of(address) if nbytes else self._gpu.index
            if index != self._gpu.index:
                owner_name, name = (f"cuda:{i}" if i else "cuda" for i in (index, self._gpu.index))
                mismatch = f"the array is on GPU {index}, engine {name!r} on {self._gpu.index}"
                message = f"{mismatch}: pass device={owner_name!r}."
                raise ValueError(message)
            if stream not in {None, 1}:
                self._gpu.take(self._gpu.api.cuStreamSynchronize(stream))
            return DeviceMemory(nbytes, AdoptedMemory(address, owner))


def gpu_address(view: np.ndarray[Any, Any]) -> int | None:
    """Return the address of a view of the GPU's memory; None for other memory."""
    base: Any = view
    while base is not None and type(base) is not DeviceMemory:
        base = base.base if isinstance(base, np.ndarray) else getattr(base, "obj", None)
    if base is None:
        return None
    address: int = base.handle.address
    if view.nbytes == base.size:
        return address
    return address + int(view.__array_interface__["data"][0]) - int(base.__array_interface__["data"][0])
