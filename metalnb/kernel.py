"""A kernel as a Python callable."""

from __future__ import annotations

import functools
import math
import threading
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import tuned
from .binding import Binder, Slot
from .display import Card, bundle, cards_html
from .errors import ArgumentError, LaunchError, MetalnbError, MetalnbWarning
from .launch import check_grid, check_places, check_threadgroup, grid_of_shape
from .msl.lower import Unit
from .msl.signature import Reflection, Signature
from .resident import Resident, is_resident, refuse_engine, residents

if TYPE_CHECKING:
    from .engine.base import Binary, Engine, Grid, Ticket
    from .recipe import Recipe

__all__ = ["Dispatch", "Kernel"]


class Dispatch(NamedTuple):
    """A call made ready: everything checked and bound, nothing run yet. It can be run again and again.

    Attributes
    ----------
    kernel : Kernel
    arguments : list
        In the order of the signature's params, as an engine takes them.
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    outputs : list of numpy.ndarray or Array
        The buffers that the caller left out.
    residents : tuple of Array
        The arrays among the arguments that live on the engine: who reads them waits for the dispatch.
    waits : bool
        Whether a run ends only when the dispatch has: NumPy's memory can be read at any moment.
    """

    kernel: Kernel
    arguments: list[Any]
    grid: Grid
    threadgroup: Grid
    outputs: list[Any]
    residents: tuple[Resident, ...] = ()
    waits: bool = True

    def launch(self) -> Ticket | None:
        """Start it; None when the grid is empty. Keep the ticket: letting go of it may wait for the dispatch's end."""
        if 0 in self.grid:
            return None
        binary = self.kernel.binary
        if self.residents:
            first = self.residents[0]
            return first.__metal_start__(binary, self.arguments, self.grid, self.threadgroup, self.residents)
        return self.kernel.engine.launch(binary, self.arguments, self.grid, self.threadgroup)

    def run(self) -> Any:
        """Run it, to its end when there is NumPy's memory among the arguments; give the outputs left out."""
        ticket = self.launch()
        if ticket is not None and self.waits:
            ticket.wait()
        outputs = self.outputs
        if not outputs:
            return None
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


class Kernel:
    """One kernel of a program.

    Call it with NumPy's or metalnb's arrays and Python scalars, by position (in buffer order) or by name.

    Parameters of a call
    --------------------
    *args, **named
        One for each buffer parameter. ``device const T*`` and ``constant T*`` take arrays; ``constant T&`` takes a
        scalar, a sequence of components, or for a struct a dict, a dataclass or a NumPy record. Arrays are never
        copied. A buffer that the kernel may write can be left out: it is then made and returned.
    grid : int or tuple of int, optional
        Threads in all, x first (Metal's ``dispatchThreads``). By default the shape of the first writable array
        given, else of the first array; the last axis is x.
    threadgroup : int or tuple of int, optional
        Threads in a threadgroup, at most 1024. By default what `tune` found and ``apply`` kept for this kernel on
        this device, else 256 threads.
    shapes : mapping of str to tuple of int, optional
        Shapes, in elements, of buffers left out; by default the grid's.
    threadgroup_memory : mapping of str to int, optional
        Bytes for each ``threadgroup`` parameter; by default one element for each thread of the group.

    Returns
    -------
    None, array or tuple of arrays
        The buffers that were left out: NumPy's arrays, or `metalnb.Array` when one of the arguments is one. Then
        nothing is waited for until somebody reads.

    Raises
    ------
    ArgumentError, LaunchError
        Before anything runs.
    KernelFault
        When the kernel failed.
    """

    def __init__(self, unit: Unit, engine: Engine, reflection: Reflection, recipe: Recipe) -> None:
        self.unit = unit
        self.engine = engine
        self.reflection = reflection
        self._recipe = recipe
        signature = unit.signature
        self.signature = signature
        self.__name__ = self.__qualname__ = signature.name
        self.__doc__ = _docstring(signature)
        present = tuple(p for p in signature.buffers if not unit.absent(p))
        self._present = present
        self._places = tuple(signature.params.index(p) for p in present)
        self._simple = len(present) == len(signature.params)
        self._binary: Binary | None = None
        self._lock = threading.Lock()

    @functools.cached_property
    def _binder(self) -> Binder:
        # Made at the first call: of a cell's kernels only one with a bfloat buffer asks for the package of its dtype.
        return Binder(self.signature, self._present, self.reflection)

    @functools.cached_property
    def tuned(self) -> Mapping[int, Grid]:
        """The threadgroups kept for this kernel on this device, by the number of a grid's dimensions (see `tune`)."""
        return tuned.recall(tuned.key_of(self._recipe, self.signature.name, self.engine))

    def keep_threadgroup(self, grid: Grid, threadgroup: Grid | None) -> None:
        """Take a threadgroup by default from now on, in later sessions too, for grids of as many dimensions.

        Parameters
        ----------
        grid : tuple of 3 int
        threadgroup : tuple of 3 int or None
            None goes back to metalnb's own default, for every grid.
        """
        key = tuned.key_of(self._recipe, self.signature.name, self.engine)
        if threadgroup is None:
            tuned.forget(key)
        else:
            tuned.remember(key, grid, check_threadgroup(self.signature, threadgroup, grid))
        self.__dict__.pop("tuned", None)

    @property
    def source(self) -> str:
        """The text of the cell that the kernel was compiled from."""
        return self._recipe.source

    @property
    def program(self) -> Any:
        """The program that the kernel is one of."""
        from .program import from_recipe

        return from_recipe(self._recipe)

    def specialize(self, /, **constants: Any) -> Kernel:
        """Give this kernel with other values for some of its cell's function constants; see `Program.specialize`.

        Examples
        --------
        >>> import metalnb as mnb, numpy as np
        >>> scale = mnb.compile('''
        ... constant float FACTOR [[function_constant(0)]];
        ... kernel void scale(device float* x, uint i [[thread_position_in_grid]]) { x[i] *= FACTOR; }
        ... ''', constants={"FACTOR": 2}).scale
        >>> x = np.ones(3, np.float32)
        >>> scale.specialize(FACTOR=0.5)(x)
        >>> x
        array([0.5, 0.5, 0.5], dtype=float32)
        """
        made: Kernel = self.program.specialize(**constants)[self.signature.name]
        return made

    @property
    def binary(self) -> Any:
        """The kernel compiled for the device: made when it is first asked for."""
        if self._binary is None:
            with self._lock:
                if self._binary is None:
                    self._binary = self.engine.compile(self.unit)
        return self._binary

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the kernel to its end; see the class for what a call takes and gives."""
        return self.prepare(*args, **named).run()

    def prepare(
        self,
        *args: Any,
        grid: Any = None,
        threadgroup: Any = None,
        shapes: Mapping[str, Any] | None = None,
        threadgroup_memory: Mapping[str, int] | None = None,
        **named: Any,
    ) -> Dispatch:
        """Check and bind a call without running it; parameters as for the call itself."""
        held = residents((*args, *named.values()))
        for array in held:
            if array.engine is not self.engine:
                self._refuse_engine(args, named)
        bound = self._binder.bind(args, named)
        sizes, shape = self._grid(bound, grid, shapes)
        group = check_threadgroup(self.signature, threadgroup, sizes, tuned=self.tuned)
        if self.signature.places:
            check_places(self.signature, sizes, group)
        outputs = []
        if any(b is None for b in bound):
            outputs = self._allocate(bound, shape, shapes, held)
        elif shapes:
            self._unused_shapes(shapes, frozenset())
        arguments: list[Any] = bound if self._simple else self._arguments(bound, group, threadgroup_memory)
        if threadgroup_memory and not self.signature.threadgroup:
            self._check_memory_names(threadgroup_memory)
        if 0 not in sizes:
            self._check_buffers(bound, sizes[0])
            self._check_memory(arguments)
        if not held:
            return Dispatch(self, arguments, sizes, group, outputs)
        made = residents(outputs)
        alone = len(made) == len(outputs) and not any(type(a) is np.ndarray for a in (*args, *named.values()))
        return Dispatch(self, arguments, sizes, group, outputs, (*held, *made), not alone)

    def _refuse_engine(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        names = (*(p.name for p in self._present), *("" for _ in args))
        for name, value in (*zip(names, args, strict=False), *named.items()):
            if is_resident(value) and value.engine is not self.engine:
                refuse_engine(self.signature.name, name, value.engine.name, self.engine.name)

    def _grid(self, bound: list[Any], grid: Any, shapes: Mapping[str, Any] | None) -> tuple[Grid, tuple[int, ...]]:
        """Give the grid, and the shape in elements that stands for it."""
        if grid is not None:
            sizes = check_grid(self.signature, grid)
            rank = len(grid) if hasattr(grid, "__len__") else 1
            return sizes, tuple(reversed(sizes[:rank]))
        slots = self._binder.slots
        arrays = [(s, b) for s, b in zip(slots, bound, strict=True) if b is not None and not s.param.reference]
        chosen = next(((s, b) for s, b in arrays if s.param.writable), arrays[0] if arrays else None)
        if chosen is not None:
            shape = chosen[0].elements(chosen[1])
            if not chosen[0].param.every:
                self._warn_of_grid(chosen[0].param.name, math.prod(shape), arrays)
        else:
            missing = next((s for s, b in zip(slots, bound, strict=True) if b is None and not s.param.reference), None)
            if missing is None or not shapes or missing.param.name not in shapes:
                message = f"{self.signature.name}: no array tells the grid. Pass grid=(…), threads, x first."
                raise LaunchError(message)
            shape = self._shape(missing.param.name, shapes[missing.param.name])
        return grid_of_shape(self.signature, shape), shape

    def _warn_of_grid(self, name: str, threads: int, arrays: list[tuple[Slot, Any]]) -> None:
        """Warn when the grid has the shape of a histogram's bins, and the data that threads go through are more."""
        for slot, array in arrays:
            count = array.size // slot.components
            if slot.param.every and count > threads:
                what = f"each thread takes its own element of {slot.param.name!r}, which has {count:,}"
                message = f"the grid has the shape of {name!r}, {threads:,} threads, but {what}. Pass grid={count}."
                warnings.warn(f"{self.signature.name}: {message}", MetalnbWarning, stacklevel=5)
                return

    def _shape(self, name: str, given: Any) -> tuple[int, ...]:
        try:
            shape = tuple(int(n) for n in given) if hasattr(given, "__iter__") else (int(given),)
        except (TypeError, ValueError):
            shape = (-1,)
        if any(n < 0 for n in shape):
            message = f"{self.signature.name}: shapes[{name!r}] is a tuple of whole numbers; got {given!r}."
            raise ArgumentError(message)
        return shape

    def _allocate(
        self, bound: list[Any], shape: tuple[int, ...], shapes: Mapping[str, Any] | None, held: tuple[Resident, ...]
    ) -> list[Any]:
        outputs: list[Any] = []
        left_out = set()
        for i, slot in enumerate(self._binder.slots):
            if bound[i] is None:
                name = slot.param.name
                left_out.add(name)
                own = self._shape(name, shapes[name]) if shapes and name in shapes else shape
                bound[i] = made = slot.allocate(own)
                if held and not slot.dtype.names:  # arrays in, arrays out; but none holds records
                    resident = held[0].__metal_zeros__(made.shape, made.dtype)
                    bound[i] = resident.__metal_memory__()
                    outputs.append(resident)
                else:
                    outputs.append(made)
        if shapes:
            self._unused_shapes(shapes, frozenset(left_out))
        return outputs

    def _unused_shapes(self, shapes: Mapping[str, Any], left_out: frozenset[str]) -> None:
        for name in shapes:
            if name not in left_out:
                names = ", ".join(sorted(left_out)) or "none"
                message = (
                    f"{self.signature.name}: shapes[{name!r}] names no buffer that was left out (left out: {names})."
                )
                raise ArgumentError(message)

    def _arguments(self, bound: list[Any], group: Grid, memory: Mapping[str, int] | None) -> list[Any]:
        """Put threadgroup memory and absent parameters among the buffers."""
        arguments: list[Any] = [None] * len(self.signature.params)
        for place, value in zip(self._places, bound, strict=True):
            arguments[place] = value
        given: dict[str, Any] = dict(memory or {})
        for i, param in enumerate(self.signature.params):
            if param.space != "threadgroup":
                continue
            nbytes = given.pop(param.name, None)
            if nbytes is None:
                nbytes = param.type.size * (1 if param.reference else math.prod(group))
            if not isinstance(nbytes, int) or nbytes < param.type.size:
                message = (
                    f"{self.signature.name}: threadgroup_memory[{param.name!r}] is a number of bytes, at least "
                    f"{param.type.size}; got {nbytes!r}."
                )
                raise LaunchError(message)
            arguments[i] = -(-nbytes // 16) * 16  # Metal takes multiples of 16 bytes
        if given:
            self._check_memory_names(given)
        return arguments

    def _check_memory_names(self, given: Mapping[str, int]) -> None:
        names = ", ".join(p.name for p in self.signature.threadgroup) or "none"
        message = f"{self.signature.name}: has no threadgroup parameter {next(iter(given))!r}; it has: {names}."
        raise LaunchError(message)

    def _check_buffers(self, bound: list[Any], threads: int) -> None:
        """Refuse a buffer that is surely too short for ``threads`` threads along x."""
        for slot, array in zip(self._binder.slots, bound, strict=True):
            if slot.takes_array and array.size < (threads * slot.components if slot.param.every else 1):
                slot.refuse_short(array, threads)

    def _check_memory(self, arguments: list[Any]) -> None:
        declared = self.binary.threadgroup_bytes
        passed = sum(a for a in arguments if type(a) is int)
        most = self.engine.caps.threadgroup_memory
        if declared + passed > most:
            message = (
                f"{self.signature.name}: needs {declared + passed:,} bytes of threadgroup memory "
                f"({declared:,} declared, {passed:,} by arguments); Metal allows {most:,}."
            )
            raise LaunchError(message)

    def __repr__(self) -> str:
        return f"<metalnb.Kernel {self.signature} on {self.engine.name}>"

    @property
    def card(self) -> Card:
        """What a notebook shows of the kernel."""
        caps = self.engine.caps
        return Card(
            self.signature, self.reflection, self.engine.name, caps.device, self.unit.math,
            constants={c.name: v for c, v in self.unit.constants.items()},
            absent=frozenset(p.name for p in self.signature.params if self.unit.absent(p)),
            threadgroup_bytes=self._declared_bytes(),
            threadgroup_limit=caps.threadgroup_memory,
            source=self.source,
        )  # fmt: skip

    def _declared_bytes(self) -> int:
        """Tell what threadgroup memory is declared; only the device's compiler knows, so it is asked if need be."""
        cells = (self.unit.cell, *self.unit.headers.values())
        if self._binary is None and not any("$threadgroup_storage" in c.edited.text for c in cells):
            return 0
        try:
            declared: int = self.binary.threadgroup_bytes
        except MetalnbError:  # it is for the call to raise it, not for the display
            return 0
        return declared

    def _repr_html_(self) -> str:
        return cards_html([self.card])

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        return bundle([self.card])

    def __reduce__(self) -> tuple[Any, ...]:
        return _kernel_of, (self._recipe, self.signature.name)


def _kernel_of(recipe: Recipe, name: str) -> Kernel:
    from .program import from_recipe

    return from_recipe(recipe)[name]


def _docstring(signature: Signature) -> str:
    lines = [signature.doc or f"Metal kernel {signature.name}.", ""]
    if signature.params:
        lines += ["Parameters", "----------"]
        made = {p.name: ", made by the launch" for p in signature.threadgroup}
        lines += [f"{p.name} : {p.spelling} {p.attribute}{made.get(p.name, '')}" for p in signature.params]
    if signature.inputs:
        lines += ["", "Kernel inputs", "-------------"]
        lines += [f"{i.name} : {i.type} [[{i.attribute}]]" for i in signature.inputs]
    lines += ["", "Options of a call: grid, threadgroup, shapes, threadgroup_memory; see help(metalnb.Kernel)."]
    return "\n".join(lines).rstrip() + "\n"
