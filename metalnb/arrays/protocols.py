"""Arrays' protocols for Python and other libraries: items, NumPy's protocols, DLPack, the array API's namespace."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from metalnb.engine.base import Grid, Ticket

from .core import Core
from .dlpack import export_array
from .implementations import implementations
from .memory_pool import Lease
from .stream import start

__all__ = ["Protocols", "is_basic"]


class Protocols(Core):
    """The protocols of an `Array`."""

    __slots__ = ()

    __array_priority__ = 100  # used by Dask: in an operation on two arrays, ours takes precedence

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the module with the array API's functions: metalnb (array API 2024.12)."""
        if api_version not in {None, "2021.12", "2022.12", "2023.12", "2024.12"}:
            raise ValueError(f"metalnb follows the array API 2024.12; got api_version={api_version!r}")
        return importlib.import_module("metalnb")  # imported by name, since it belongs to a higher layer

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if dtype is not None and np.dtype(dtype) != self.dtype:
            if copy is False:
                raise ValueError(f"a view of a {self.dtype} array as {np.dtype(dtype)} needs a copy")
            return self.read().astype(dtype)
        if copy is False and not self.engine.caps.shared:
            raise ValueError(f"memory of engine {self.device!r} is not the host's: accessing it needs a copy")
        return self.read().copy() if copy else self.numpy()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if any(_overrides(type(x), "__array_ufunc__") for x in (*inputs, *options.get("out", ()))):
            return NotImplemented
        return implementations["ufunc"](ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if any(_overrides(t, "__array_function__") for t in types):
            return NotImplemented
        return implementations["array_function"](function, args, options)

    def __metal_memory__(self) -> np.ndarray[Any, Any]:
        """Return the memory to bind as a kernel's argument."""
        if self.offset and not self.engine.caps.offsets:
            self.block.settle()  # the engine copies an array that does not start at the beginning of its buffer
        return self.host

    def __metal_zeros__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Return an array of zeros on the same engine: a kernel's output."""
        return implementations["zeros"](shape, dtype=dtype, device=self.device)

    def __metal_start__(
        self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, all_of_them: Sequence[Any]
    ) -> Ticket:
        """Start a kernel that uses some arrays."""
        ticket = start(self.engine, binary, arguments, grid, threadgroup, [a.block for a in all_of_them])
        if not self.engine.caps.offsets and any(a.offset for a in all_of_them):
            ticket.wait()  # the engine's copy is copied back after the dispatch
        return ticket

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface, version 3: this memory, kept alive for as long as it is used.

        Device memory and bfloat16 arrays lack it; ``__array__`` copies the former and sets the dtype of the latter.
        """
        if not self.engine.caps.shared or self.dtype.kind == "V":
            raise AttributeError(f"an array of {self.dtype} on {self.device!r} has no __array_interface__")
        interface = dict(self.read().__array_interface__)
        if self.size:  # a buffer, not an address: the consumer keeps it alive
            buffer = np.asarray(Lease(self.block, {**self.block.host.__array_interface__, "version": 3}))
            self.block.settle()  # wait for dispatches that started before this viewer was counted
            interface |= {"data": buffer, "offset": self.offset}
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array's address on an NVIDIA GPU, for CuPy, PyTorch and others, without a copy (version 3).

        An array on another engine has no such attribute.
        """
        address = getattr(self.engine, "address", None)
        if address is None or self.dtype.kind == "V":
            raise AttributeError(f"an array of {self.dtype} on engine {self.device!r} has no __cuda_array_interface__")
        self.block.lent = True
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (address(self.block.memory) + self.offset, False),
            "strides": None if self.contiguous else self.strides,
            "version": 3,
            "stream": 1,  # the legacy default stream
        }

    def __buffer__(self, _flags: int, /) -> memoryview:
        if not self.engine.caps.shared:  # NumPy asks for a buffer first, and would take a copy for the memory itself
            raise BufferError(f"memory of engine {self.device!r} is not the host's. Pass x.numpy(), a copy.")
        return memoryview(self.numpy())  # type: ignore[arg-type]  # NumPy 2.4 says so from Python 3.12 on

    def __bytes__(self) -> bytes:
        return self.read().tobytes()  # before Python 3.12 an array is no buffer and would be read as a sequence

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the array to another library, without a copy unless requested (DLPack 1.0).

        `stream` must be None: memory that the CPU can access has no streams.
        """
        if stream is not None:
            raise BufferError(f"__dlpack__: the CPU has no streams; got stream={stream!r}. Pass None.")
        if copy is False and not self.engine.caps.shared:
            reason = f"memory of engine {self.device!r} is not the host's: accessing it needs a copy"
            raise BufferError(f"__dlpack__: {reason}. Leave copy out.")
        options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        return export_array(self.numpy(), {name: value for name, value in options.items() if value is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the array's device in DLPack's terms: memory that the CPU can access."""
        return self.host.__dlpack_device__()

    def __getitem__(self, key: Any) -> Self:
        if is_basic(key):
            index = (*key, ...) if isinstance(key, tuple) and ... not in key else _open_index(key)
            return self.viewed(self.host[index])
        result: Self = implementations["get"](self, key)
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        implementations["set"](self, key, value)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        try:
            equal: Any = self == value
        except OverflowError:  # a number that the dtype cannot represent
            return False
        return bool(equal if isinstance(equal, bool) else equal.any())

    def __repr__(self) -> str:
        return repr(self.read())

    def __str__(self) -> str:
        return str(self.read())

    def __format__(self, spec: str) -> str:
        return format(self.read().item(), spec) if not self.shape else format(self.read(), spec)

    __hash__ = None  # type: ignore[assignment]  # == compares element by element

    def __copy__(self) -> Self:
        result: Self = implementations["astype"](self, self.dtype)
        return result

    def __deepcopy__(self, _memo: Any) -> Self:
        return self.__copy__()

    def __bool__(self) -> bool:
        return bool(self._single_item("bool"))

    def __int__(self) -> int:
        return int(self._single_item("int"))

    def __float__(self) -> float:
        return float(self._single_item("float"))

    def __complex__(self) -> complex:
        return complex(self._single_item("complex"))

    def __round__(self, ndigits: int | None = None) -> Self:
        result: Self = self.round() if ndigits is None else self.round(ndigits)  # type: ignore[attr-defined]
        return result

    def __index__(self) -> int:
        return operator.index(self._single_item("index"))

    def _single_item(self, conversion: str) -> Any:
        if self.size != 1:
            raise TypeError(
                f"{conversion}(): needs an array of one element; got shape {self.shape}. Use x.any() or x.all()."
            )
        return self.read().item()


def _overrides(kind: type, protocol: str) -> bool:
    """Return whether another library's type overrides one of NumPy's protocols; it then decides about the operation."""
    own = getattr(kind, protocol, None)
    return own is not None and own is not getattr(np.ndarray, protocol) and not issubclass(kind, Protocols)


def is_basic(key: Any) -> bool:
    """Return whether an index yields a view: it has only integers, slices, ``...`` and None."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        k is None
        or k is Ellipsis
        or isinstance(k, slice)
        or (isinstance(k, (int, np.integer)) and not isinstance(k, bool))
        for k in parts
    )


def _open_index(key: Any) -> Any:
    """Extend an index so that the result is an array even for a single element."""
    parts = key if isinstance(key, tuple) else (key,)
    return parts if any(k is Ellipsis for k in parts) else (*parts, ...)
