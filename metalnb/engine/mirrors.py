"""The caller's memory on a device that metalcompute keeps apart: what is copied in, bound, and copied back."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from metalnb.errors import LaunchError

__all__ = ["Bytes", "Mirrors", "Result", "stretch"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Stretch = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Result:
    """What is to be copied back: a caller's memory, and the buffer that stands for it on the device."""

    target: Bytes
    buffer: Any

    def copy(self) -> None:
        """Copy it back."""
        self.target[:] = np.frombuffer(self.buffer, np.uint8)[: self.target.size]


class Pending(Protocol):
    """A dispatch whose results may not have been copied back yet."""

    @property
    def results(self) -> Sequence[Result]:
        """Those still to be copied."""
        ...

    def wait(self) -> float | None:
        """Wait, and copy them."""
        ...


class Mirrors:
    """Gives arguments their buffers.

    Memory of the device's own buffers is bound as it is. All other memory is copied in; arguments with the same memory
    share a buffer, as they do on a device that shares the process's memory.

    Parameters
    ----------
    device : metalcompute.Device
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._own_type = type(device.buffer(16))
        self._pending: weakref.WeakSet[Any] = weakref.WeakSet()

    def bind(self, name: str, given: Sequence[tuple[bool, Any]]) -> tuple[list[Any], list[Result]]:
        """Give each argument a buffer, and tell which are to be copied back.

        Parameters
        ----------
        name : str
            Of the kernel.
        given : sequence of (bool, argument)
            Whether the kernel writes to it; None for a parameter that a function constant removes.

        Raises
        ------
        LaunchError
            When memory that is written lies partly in another argument.
        """
        buffers: list[Any] = []
        results: list[Result] = []
        known: dict[Stretch, Any] = {}
        for writable, argument in given:
            own = self._device.buffer(16) if argument is None else self._own(argument)
            if own is not None:
                buffers.append(own)
                continue
            view = _bytes(argument)
            place = stretch(view)
            if place not in known:
                self._settle(place)
                known[place] = self._device.buffer(_plain(view))
            buffers.append(known[place])
            if writable and all(r.buffer is not known[place] for r in results):
                results.append(Result(view, known[place]))
        _check_overlap(name, results, known)
        return buffers, results

    def expect(self, pending: Pending) -> None:
        """Remember a dispatch until its results are copied: what reads them must wait for it."""
        if pending.results:
            self._pending.add(pending)

    def _own(self, argument: Any) -> Any:
        """Find the device's buffer that an argument is, or is a view of from its first byte on."""
        owner = argument
        while type(owner) is not self._own_type and isinstance(owner, (np.ndarray, memoryview)):
            owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
        if type(owner) is not self._own_type:
            return None
        return owner if stretch(_bytes(argument))[0] == stretch(np.frombuffer(owner, np.uint8))[0] else None

    def _settle(self, place: Stretch) -> None:
        for pending in list(self._pending):
            if any(_overlap(place, stretch(r.target)) for r in pending.results):
                pending.wait()


def stretch(view: Bytes) -> Stretch:
    """Give the addresses of the first byte and of the one after the last."""
    start = int(view.__array_interface__["data"][0])
    return start, start + view.size


def _overlap(one: Stretch, other: Stretch) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _bytes(argument: Any) -> Bytes:
    """See through dtype and shape to the bytes; by NumPy's own view, for not every dtype has the buffer protocol."""
    if isinstance(argument, np.ndarray):
        return np.asarray(argument).reshape(-1).view(np.uint8)
    return np.frombuffer(argument, np.uint8)


def _plain(view: Bytes) -> Bytes:
    """Give what metalcompute takes without a word: it asks for an int first, and NumPy warns of one from a vector."""
    return view if view.size > 1 else view.reshape(())


def _check_overlap(name: str, results: list[Result], known: dict[Stretch, Any]) -> None:
    for result in results:
        place = stretch(result.target)
        if any(other != place and _overlap(place, other) for other in known):
            message = f"{name}: an argument that it writes lies partly in another's memory; engine 'metal' copies each."
            raise LaunchError(f"{message} Pass a copy of one of them.")
