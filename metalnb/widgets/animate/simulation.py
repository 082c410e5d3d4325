"""Keep the state of a simulation in the engine's own arrays, advance it by the kernel, and reset it to the start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from metalnb.call.kernel import Dispatch
from metalnb.engine.staging import binding_of, copy_to_host
from metalnb.errors import ArgumentError

from ..bound_call import BoundArgument, BoundCall
from ..knobs import Knob, apply_settings

__all__ = ["Simulation", "swap_pairs"]

# Steps since the start; the arrays by their positions; the contents of the arrays that structs point to.
State = tuple[int, Mapping[int, Any], Sequence[Any]]

_TAKES_ON = {"update", ""}  # an array used in one of these ways may be updated in place


class Simulation:
    """A call that is repeated on its own results.

    Each step runs the kernel once, and then swaps the two arrays of each pair: the next step reads what this one wrote.

    Parameters
    ----------
    call : BoundCall
    pairs : sequence of (int, int)
        The positions in the call of the array that is read and of the one that is written.
    drawn : int, optional
        The position of an array that the user draws into.

    Attributes
    ----------
    steps : int
        Steps since the start.
    """

    def __init__(self, call: BoundCall, pairs: Sequence[tuple[int, int]], drawn: int | None = None) -> None:
        self.call = call
        self.steps = 0
        self._engine = call.kernel.engine
        self._places = {p.param.name: i for i, p in enumerate(call.parts) if p.is_array}
        saved_positions = {i for i in self._places.values() if call.parts[i].param.writable}
        saved_positions |= {i for pair in pairs for i in pair} | ({drawn} if drawn is not None else set())
        self._start = {i: copy_to_host(self._engine, call.parts[i].value) for i in sorted(saved_positions)}
        self._order = list(range(len(call.parts)))
        for source, target in pairs:
            self._order[source], self._order[target] = target, source
        self._values = [p.value for p in call.parts]
        for i, array in self._start.items():
            memory = self._engine.alloc(max(array.nbytes, 1))
            self._values[i] = np.frombuffer(memory, np.uint8)[: array.nbytes].view(array.dtype).reshape(array.shape)
            self._put(self._values[i], array)
        self.settings: Mapping[Knob, Any] = {}
        self._dispatches = self._bound()

    def set(self, settings: Mapping[Knob, Any]) -> None:
        """Use different values of the scalars from the next step on."""
        if settings != self.settings:
            self.settings = dict(settings)
            self._dispatches = self._bound()

    def run(self, count: int) -> None:
        """Take ``count`` steps, and wait for them.

        Raises
        ------
        KernelFault
        """
        tickets = [self._dispatches[(self.steps + n) % 2].launch() for n in range(count)]
        for ticket in reversed(tickets):  # they finish in launch order: only the wait for the last one blocks
            if ticket is not None:
                ticket.wait()
        self.steps += count

    def reset(self) -> None:
        """Go back to the start; the scalars keep their values."""
        self.restore((0, self._start, [contents for _, contents in self.call.pointees]))

    def take_state(self) -> State:
        """Return the state, for `restore`."""
        copies = {i: copy_to_host(self._engine, self._values[i]) for i in self._start}
        return self.steps, copies, [memory.copy() for memory, _ in self.call.pointees]

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.steps, copies, pointees = state
        for (memory, _), contents in zip(self.call.pointees, pointees, strict=True):
            np.copyto(memory, contents)
        for i, array in copies.items():
            self._put(self._values[i], array)

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """Return an array after the last step; it shares the state's memory if the device shares the host's memory."""
        value = self._values[self._current_place(name)]
        return value if binding_of(value) is None else copy_to_host(self._engine, value)

    def arrays(self) -> SimpleNamespace:
        """Return all arrays, by the names of their parameters; none can be written, since some are the caller's."""
        views = {name: self.array(name).view() for name in self._places}
        for view in views.values():
            view.flags.writeable = False
        return SimpleNamespace(**views)

    @contextmanager
    def open_array(self, name: str) -> Iterator[np.ndarray[Any, Any]]:
        """Yield an array to be changed."""
        array = self.array(name)
        yield array
        self._put(self._values[self._current_place(name)], array)

    def _current_place(self, name: str) -> int:
        index = self._places[name]
        return self._order[index] if self.steps % 2 else index

    def _bound(self) -> tuple[Dispatch, Dispatch]:
        """Bind the call twice: unchanged, and with the arrays of each pair swapped."""
        values = apply_settings(self.call.parts, self.settings, self._values)
        return self.call.dispatch(values), self.call.dispatch([values[i] for i in self._order])

    def _put(self, value: Any, array: np.ndarray[Any, Any]) -> None:
        binding = binding_of(value)
        if binding is not None:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._engine.copy_in(binding.memory, binding.offset, data)
        elif value is not array:
            np.copyto(value, array)


def swap_pairs(caller: str, call: BoundCall, swap: Any) -> list[tuple[int, int]]:
    """Return the positions of the arrays that are swapped after each step.

    Parameters
    ----------
    caller : str
        The caller's name, for messages.
    call : BoundCall
    swap : pair of str, sequence of such pairs, or None
        None selects the output that the call left out, and the only array of its shape that the kernel only reads.

    Raises
    ------
    ArgumentError
        If the arrays cannot be swapped, or nothing would change after the first step.
    """
    indices = {p.param.name: i for i, p in enumerate(call.parts) if p.is_array}
    if swap is None:
        return _find_pairs(caller, call, indices)
    pairs = list(swap) if isinstance(swap, Sequence) else [swap]
    if len(pairs) == 2 and all(isinstance(name, str) for name in pairs):
        pairs = [swap]
    names = [name for pair in pairs for name in (pair if isinstance(pair, (tuple, list)) else (pair,))]
    if any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs) or not set(names) <= indices.keys():
        rule = f'swap is ("read", "written"), or several such pairs, of {", ".join(indices)}'
        raise ArgumentError(f"{caller}: {rule}; got {swap!r}.")
    if len(set(names)) < len(names):
        raise ArgumentError(f"{caller}: swap={swap!r} names an array twice: it can have one partner.")
    for a, b in pairs:
        source, target = call.parts[indices[a]], call.parts[indices[b]]
        if not _alike(source, target):
            description = " and ".join(f"{p.param.name} {p.value.dtype} {p.value.shape}" for p in (source, target))
            raise ArgumentError(f"{caller}: arrays that are swapped have one dtype and shape; got {description}.")
        if not target.param.writable:
            raise ArgumentError(f"{caller}: swap=({a!r}, {b!r}): the kernel does not write {b!r}. Name that one first.")
    return [(indices[a], indices[b]) for a, b in pairs]


def _alike(first: BoundArgument, second: BoundArgument) -> bool:
    return bool(first.value.dtype == second.value.dtype) and first.value.shape == second.value.shape


def _find_pairs(caller: str, call: BoundCall, indices: Mapping[str, int]) -> list[tuple[int, int]]:
    pairs = []
    for name in call.left_out:
        target = call.parts[indices[name]]
        sources = [i for i in indices.values() if not call.parts[i].param.writable and _alike(call.parts[i], target)]
        pairs += [(sources[0], indices[name])] if len(sources) == 1 else []
    if len(pairs) == 1:
        return pairs
    if not any(call.parts[i].param.writable and call.parts[i].param.use in _TAKES_ON for i in indices.values()):
        rule = "reads no array that it writes, so it repeats the same step"
        raise ArgumentError(f'{caller}: {rule}. Pass the arrays to swap: swap=("read", "written").')
    return []
