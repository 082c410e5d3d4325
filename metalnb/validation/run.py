"""Run a call once more with buffers that watch themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from metalnb.arrays.stream import synchronize
from metalnb.call.kernel import Dispatch, Kernel
from metalnb.errors import ArgumentError

from .access_log import AccessLog
from .access_report import Validation, WatchedBuffer
from .twin import twin_of
from .watched_source import ATOMICS, HEADER, LEDGER, MEMORY, NAME, OUTPUT, SIZES, rewritten

__all__ = ["validate", "watch"]

_GUARD = 1 << 16  # bytes
_UNTOUCHED = 0xA5


def validate(kernel: Any, *args: Any, **call: Any) -> Validation:
    """Run a kernel watched: which thread touched which element, what lay beyond an array's end, who met at one place.

    The kernel is compiled a second time with buffers that write down each access, and that do not make one outside
    the array. It runs on copies: the arrays given are left as they are. What it finds is true of this call alone.

    Parameters
    ----------
    kernel : Kernel
    *args, **call
        As for a call of the kernel, of any size. A small grid shows more: 1,048,576 accesses are kept one by one, and
        16,384 beyond each array's end; those that are not are counted and judged all the same.

    Returns
    -------
    Validation

    Raises
    ------
    ArgumentError
        When the kernel cannot be watched: it takes an element's address, hands a pointer on, or is a template.
    ArgumentError, LaunchError, KernelFault
        As a call of the kernel.

    Notes
    -----
    Arrays in ``device`` memory are watched. Threadgroup memory and constant memory are not, nor atomics
    whose address the kernel takes elsewhere than in the call of an atomic function. It takes 12 MB of memory, a copy
    of each array, and 16 B for each element of those that the kernel may write.

    Examples
    --------
    >>> import metalnb as mnb, numpy as np
    >>> steps = mnb.compile('''
    ... kernel void steps(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    ...     out[i] = x[i + 1] - x[i];
    ... }''').steps
    >>> mnb.validate(steps, np.zeros(40, np.float32), grid=40, shapes={"out": 40})
    steps: 40 threads, 120 accesses
      x    40 elements, 79 reads
      out  40 elements, 40 writes
    thread 39 reads x[40], beyond the end: x has 40 elements.
    """
    if not isinstance(kernel, Kernel):
        message = f"validate: takes a kernel and the arguments of its call; got {type(kernel).__name__}."
        raise ArgumentError(message)
    found = watch(kernel.prepare(*args, **call))
    if found is None:
        message = (
            f"validate: {kernel.signature.name} cannot be watched: it uses a buffer otherwise than by an index, or is "
            "a template. Index the buffers themselves, a[i], in place of pointers to them."
        )
        raise ArgumentError(message)
    return found


def watch(dispatch: Dispatch) -> Validation | None:
    """Run a call watched; None when its kernel uses buffers in ways that cannot be."""
    kernel = dispatch.kernel
    given = dict(zip((p.name for p in kernel.signature.params), dispatch.arguments, strict=True))
    arrays = {p.name: p for p in kernel.signature.buffers if not p.reference and given[p.name] is not None}
    made = _twin(kernel, [*arrays])
    if made is None:
        return None
    twin, watched = made
    if dispatch.residents:
        synchronize(kernel.engine.name)  # what was started before may still be writing
    sizes = {name: given[name].nbytes // arrays[name].type.size for name in watched}
    each = {name: wrapper == OUTPUT for name, wrapper in watched.items()}
    ledger = AccessLog(dispatch.grid, dispatch.threadgroup, [(sizes[name], each[name]) for name in watched])
    copies = {name: _Copy(a) for name, a in given.items() if isinstance(a, np.ndarray)}
    arguments = {f"{n}{MEMORY}" if n in watched else n: copies[n].array if n in copies else a for n, a in given.items()}
    arguments |= {LEDGER: ledger.words, SIZES: ledger.sizes}
    if 0 not in dispatch.grid:
        ordered = [arguments[p.name] for p in twin.signature.params]
        twin.engine.launch(twin.binary, ordered, dispatch.grid, dispatch.threadgroup).wait()
    return Validation(
        kernel.signature.name,
        dispatch.grid,
        dispatch.threadgroup,
        tuple(
            WatchedBuffer(name, sizes[name], arrays[name].writable, wrapper == ATOMICS, *ledger.counts(place))
            for place, (name, wrapper) in enumerate(watched.items())
        ),
        tuple(name for name in arrays if name not in watched),
        tuple(name for name, copy in copies.items() if copy.spoiled),
        {name: ledger.unwritten(place) for place, name in enumerate(watched) if each[name]},
        {name: ledger.meetings(place) for place, name in enumerate(watched) if each[name]},
        ledger.log,
        ledger.strays,
    )


def _twin(kernel: Kernel, arrays: list[str]) -> tuple[Kernel, dict[str, str]] | None:
    """Compile the kernel with watched buffers; name those."""
    text = rewritten(kernel.source, kernel.signature, arrays)
    if text is None:
        return None
    source, watched = text
    twin = twin_of(kernel, source, {NAME: HEADER})
    return None if twin is None else (twin, watched)


class _Copy:
    """A copy of an array between guards: what is not watched may be written beyond its ends."""

    def __init__(self, given: np.ndarray[Any, Any]) -> None:
        self._memory = np.full(given.nbytes + 2 * _GUARD, _UNTOUCHED, np.uint8)
        self.array = self._memory[_GUARD : _GUARD + given.nbytes].view(given.dtype).reshape(given.shape)
        self.array[...] = given

    @property
    def spoiled(self) -> bool:
        """Whether something was written beyond its ends."""
        end = self._memory.size - _GUARD
        return bool((self._memory[:_GUARD] != _UNTOUCHED).any() or (self._memory[end:] != _UNTOUCHED).any())
