"""A kernel as a Python callable: compile, bind, launch."""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from metalnb.display import Card, bundle, cards_html
from metalnb.engine.base import Binary, Engine, Grid, Ticket, compiled
from metalnb.engine.process_locks import new_lock
from metalnb.engine.time_limits import call_limit, check_limit
from metalnb.engine.unit import Unit
from metalnb.errors import KernelFault, MetalnbError
from metalnb.msl.signature import Reflection

from . import tuned_threadgroups as tuned
from .argument_binding import Binder, Memory
from .engine_arrays import Resident, is_resident, refuse_engine, residents
from .grids import MAX_THREADS, check_own_elements, check_threadgroup, grid_of_call, grid_of_groups, read_iterators
from .kernel_card import declares_memory, docstring_of, make_card
from .known_calls import KnownCalls
from .outputs import make_outputs, refuse_options, refuse_shapes
from .threadgroup_memory import check_memory, memory_sizes, refuse_memory

__all__ = ["Dispatch", "Kernel"]

_VALIDATION = "metalnb.validation.run"


class Dispatch(NamedTuple):
    """A prepared call: compiled, checked and bound, but not started. It can be run repeatedly.

    Attributes
    ----------
    kernel : Kernel
    binary : Binary
        The kernel compiled for its engine.
    arguments : list
        The launch arguments, in the order of the signature's parameters.
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    outputs : list of numpy.ndarray or Array
        The buffers that the caller left out and the call returns.
    residents : tuple of Array
        The arguments that are arrays on the engine; reading one waits for the dispatch.
    waits : bool
        Whether `run` waits for the dispatch, because NumPy memory can be read at any moment.
    timeout : float or None
        The time limit in seconds, for engines that can stop a dispatch; None means the limit set by `metalnb.timeout`.
    output_names : tuple of str
        The names of the outputs.
    """

    kernel: Kernel
    binary: Binary
    arguments: list[Any]
    grid: Grid
    threadgroup: Grid
    outputs: list[Any]
    residents: tuple[Resident, ...] = ()
    waits: bool = True
    timeout: float | None = None
    output_names: tuple[str, ...] = ()

    def launch(self) -> Ticket | None:
        """Start the dispatch; return None if the grid is empty.

        Keep a reference to the ticket: its destruction may block until the dispatch is done.
        """
        if 0 in self.grid:
            return None
        if self.timeout is not None:
            with call_limit(self.timeout):
                return self._replace(timeout=None).launch()
        if self.residents:
            ticket = self._start()
        else:
            ticket = self.kernel.engine.launch(self.binary, self.arguments, self.grid, self.threadgroup)
        if self.output_names and hasattr(ticket, "allocated_outputs"):  # if the engine checks accesses
            ticket.allocated_outputs = self.output_names
        return ticket

    def _start(self) -> Ticket:
        """Start the dispatch, through its engine's arrays if it has any, so that reading them waits for it."""
        first = self.residents[0]
        try:
            return first.__metal_start__(self.binary, self.arguments, self.grid, self.threadgroup, self.residents)
        except KernelFault as fault:
            if str(fault).startswith(f"{self.kernel.name}, "):  # not an earlier dispatch's fault
                raise fault.left_out(self.output_names) from None
            raise

    def run(self) -> Any:
        """Run the dispatch, wait for it if it uses NumPy memory, and return the outputs that the call left out."""
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
        A value for each buffer parameter. ``device const T*`` and ``constant T*`` take arrays, which are never copied.
        ``device const T&`` and ``constant T&`` take a scalar, a sequence of components, or an array of one element;
        for a struct they take a dict, a dataclass or a NumPy record, with lists of these for arrays of structs.
        A buffer that the kernel may write can be left out: it is then allocated and returned.
    grid : int or tuple of int, optional
        Total threads, x first (Metal's ``dispatchThreads``). By default the shape of the first writable array
        passed, else of the first array; the last axis is x.
    groups : int or tuple of int, optional
        In place of ``grid``: the number of threadgroups, all of full size (Metal's ``dispatchThreadgroups``).
    threadgroup : int or tuple of int, optional
        Threads in a threadgroup, at most 1024. By default what `tune` found and ``apply`` kept for this kernel on
        this device, else 256 threads.
    shapes : mapping of str to tuple of int, optional
        Shapes, in elements, of buffers left out; by default the grid's.
    threadgroup_memory : mapping of str to int, optional
        Bytes for each ``threadgroup`` parameter; by default one element for each thread of the group.
    timeout : float, optional
        Seconds after which a checked kernel is stopped, see `compile`; by default the limit set by `metalnb.timeout`.

    Returns
    -------
    None, array or tuple of arrays
        The buffers that were left out: NumPy's arrays, or `metalnb.Array` when one of the arguments is one. In that
        case the call returns immediately, and reading an output waits for it.

    Raises
    ------
    ArgumentError, LaunchError
        Before anything runs.
    KernelFault
        If the kernel fails.
    """

    def __init__(self, unit: Unit, engine: Engine, reflection: Reflection, program: Any) -> None:
        signature = unit.signature
        self.unit = unit
        self.engine = engine
        self.reflection = reflection
        self.signature = signature
        self.program = program  # untyped, since `program` belongs to a higher layer
        self.__name__ = self.__qualname__ = signature.name
        self.__doc__ = docstring_of(signature)
        present = tuple(p for p in signature.buffers if not unit.is_absent(p))
        self._present_params = present
        self._places = tuple(signature.params.index(p) for p in present)
        self._simple = len(present) == len(signature.params)
        self._binary: Binary | None = None
        self._lock = new_lock()
        self.before_call: Callable[[Kernel, tuple[Any, ...], dict[str, Any]], None] | None = None

    @functools.cached_property
    def _binder(self) -> Binder:
        # The binder is built at the first call, so that only kernels with a bfloat buffer need the package ml_dtypes.
        return Binder(self.signature, self._present_params, self.reflection)

    @functools.cached_property
    def _known_calls(self) -> KnownCalls:
        return KnownCalls(self._binder.slots)

    @functools.cached_property
    def tuned(self) -> Mapping[int, Grid]:
        """The threadgroups stored for this kernel on this device, by number of grid dimensions (see `tune`)."""
        return tuned.recall(self._tuned_key)

    @property
    def _tuned_key(self) -> str:
        return tuned.key_of(self.program.recipe.content, self.signature.name, self.engine.caps.device)

    def keep_threadgroup(self, grid: Grid, threadgroup: Grid | None) -> None:
        """Make a threadgroup the default for grids with the same number of dimensions, also in later sessions.

        Parameters
        ----------
        grid : tuple of 3 int
        threadgroup : tuple of 3 int or None
            None restores metalnb's own default for every grid.
        """
        if threadgroup is None:
            tuned.forget(self._tuned_key)
        else:
            tuned.remember(self._tuned_key, grid, check_threadgroup(self.signature, threadgroup, grid))
        self.__dict__.pop("tuned", None)
        self._known_calls.clear()

    @property
    def name(self) -> str:
        """The kernel's name in its program."""
        return self.signature.name

    @property
    def source(self) -> str:
        """The text of the cell that the kernel was compiled from."""
        source: str = self.program.source
        return source

    def specialize(self, /, **constants: Any) -> Kernel:
        """Return this kernel with new values for some of its cell's function constants; see `Program.specialize`.

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
        kernel: Kernel = self.program.specialize(**constants)[self.signature.name]
        return kernel

    def on(self, engine: str) -> Kernel:
        """Return this kernel for another engine, with the same source and options.

        Examples
        --------
        >>> mnb.compare(saxpy.on("cpu"), saxpy.on("cuda"), x, y, a=2.0)   # doctest: +SKIP
        """
        kernel: Kernel = self.program.on(engine)[self.signature.name]
        return kernel

    @property
    def binary(self) -> Any:
        """The kernel compiled for its engine. Every call needs it; only the first call compiles it."""
        if self._binary is None:
            with self._lock:
                if self._binary is None:
                    self._binary = compiled(self.engine, self.unit)
        return self._binary

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        """Run the kernel; see the class for arguments and results."""
        if self.before_call is not None:
            self.before_call(self, args, keywords)
        cached = self._known_calls.arguments(args, keywords)
        if cached is not None:
            buffers, launch, engine_arrays = cached
            if not engine_arrays:
                self.engine.launch(self._binary, buffers, launch.grid, launch.threadgroup).wait()
                return None
            start = engine_arrays[0].__metal_start__
            ticket = start(self._binary, buffers, launch.grid, launch.threadgroup, engine_arrays)
            if launch.waits:
                ticket.wait()
            return None
        dispatch = self.prepare(*args, **keywords)
        result = dispatch.run()
        if self._simple and not dispatch.outputs:
            self._known_calls.keep(args, keywords, dispatch.grid, dispatch.threadgroup)
        return result

    def prepare(self, /, *args: Any, **call: Any) -> Dispatch:
        """Compile the kernel if necessary, then check and bind a call with these arguments, without running it."""
        dispatch = self._bind(*args, **call)
        if 0 not in dispatch.grid:
            buffers = dispatch.arguments if self._simple else [dispatch.arguments[i] for i in self._places]
            self._check_buffers(buffers, dispatch.grid[0], reads_every=True)
        return dispatch

    def rehearse(self, /, *args: Any, **call: Any) -> Dispatch:
        """Bind a call, like `prepare`, for a run that checks every access: arrays may be too short for the grid."""
        return self._bind(*args, **call)

    def check(self, /, *args: Any, expected: Any, **options: Any) -> Any:
        """Run a validated call and compare its outputs with ``expected``; short for `validate` with these arguments.

        Examples
        --------
        >>> import metalnb as mnb, numpy as np
        >>> half = mnb.compile('''
        ... kernel void half_of(device const float* x, device float* y, uint i [[thread_position_in_grid]]) {
        ...     y[i] = x[i] / 2;
        ... }''').half_of
        >>> half.check(np.arange(100, dtype=np.float32), expected=lambda x: x / 2).ok
        True
        """
        run = importlib.import_module(_VALIDATION)  # by name: it is above this module
        return run.validate(self, *args, expected=expected, **options)

    def _bind(
        self, /, *args: Any, grid: Any = None, groups: Any = None, threadgroup: Any = None,
        shapes: Mapping[str, Any] | None = None, threadgroup_memory: Mapping[str, int] | None = None,
        timeout: float | None = None, **keywords: Any,
    ) -> Dispatch:  # fmt: skip
        """Compile the kernel if necessary and bind a call to it, without comparing arrays with the grid's size."""
        refuse_options(self.signature, shapes, threadgroup_memory)
        grid, groups, threadgroup, shapes = read_iterators(grid, groups, threadgroup, shapes or {})
        if timeout is not None:
            check_limit(self.unit, self.engine, timeout)
        binary = self.binary  # report errors of the cell before errors of the arguments
        engine_arrays = self._engine_arrays(args, keywords)
        buffers = self._binder.bind(args, keywords)
        sizes, group, shape = self._place_threads(buffers, grid, groups, threadgroup, shapes)
        output_names = tuple([s.param.name for s, b in zip(self._binder.slots, buffers, strict=True) if b is None])
        outputs = make_outputs(self._binder.slots, buffers, shape, shapes, engine_arrays) if output_names else []
        if shapes and not output_names:
            refuse_shapes(self._binder.slots, shapes)
        arguments = self._arguments(buffers, group, threadgroup_memory or {})
        if 0 not in sizes:
            self._check_buffers(buffers, sizes[0], reads_every=False)
            if binary.threadgroup_bytes or not self._simple:
                check_memory(self.signature, binary.threadgroup_bytes, arguments, self.engine.caps.threadgroup_memory)
        output_arrays = residents(outputs) if engine_arrays else ()
        takes_numpy = any(isinstance(a, np.ndarray) for a in (*args, *keywords.values()))
        waits = takes_numpy or not engine_arrays or len(output_arrays) != len(outputs)
        return Dispatch(
            kernel=self, binary=binary, arguments=arguments, grid=sizes, threadgroup=group, outputs=outputs,
            residents=(*engine_arrays, *output_arrays), waits=waits, timeout=timeout, output_names=output_names,
        )  # fmt: skip

    def _place_threads(
        self, buffers: list[Memory | None], grid: Any, groups: Any, threadgroup: Any, shapes: Mapping[str, Any],
    ) -> tuple[Grid, Grid, tuple[int, ...]]:  # fmt: skip
        """Return a call's grid and threadgroup, and the shape of its outputs."""
        signature = self.signature
        limit = MAX_THREADS if self._binary is None else self._binary.threads
        if groups is not None:
            grid, threadgroup = grid_of_groups(signature, groups, threadgroup, grid, limit)
        sizes, shape = grid_of_call(signature, self._binder.slots, buffers, grid, shapes)
        group = check_threadgroup(signature, threadgroup, sizes, self.tuned, limit)
        if signature.own_elements:
            check_own_elements(signature, sizes, group)
        return sizes, group, shape

    def _engine_arrays(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the engine's arrays that a call may access: its arguments, and those that its structs point to."""
        arrays = residents((*args, *keywords.values()))
        if any(array.engine is not self.engine for array in arrays):
            self._refuse_engine(args, keywords)
        if not self._binder.points:
            return arrays
        pointer_arrays = self._binder.pointer_arrays(args, keywords)
        for name, array in pointer_arrays:
            if array.engine is not self.engine:
                refuse_engine(self.signature.name, name, array.engine.name, self.engine.name)
        return arrays + tuple(array for _, array in pointer_arrays)

    def _refuse_engine(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        names = (*(p.name for p in self._present_params), *("" for _ in args))
        for name, value in (*zip(names, args, strict=False), *keywords.items()):
            if is_resident(value) and value.engine is not self.engine:
                refuse_engine(self.signature.name, name, value.engine.name, self.engine.name)

    def _arguments(self, buffers: list[Memory | None], group: Grid, memory: Mapping[str, int]) -> list[Any]:
        """Insert threadgroup memory and absent parameters among the buffers."""
        if self._simple:
            if memory:
                refuse_memory(self.signature, memory)
            return buffers
        arguments: list[Any] = [None] * len(self.signature.params)
        for position, value in zip(self._places, buffers, strict=True):
            arguments[position] = value
        for position, nbytes in memory_sizes(self.signature, group, memory).items():
            arguments[position] = nbytes
        return arguments

    def _check_buffers(self, buffers: list[Any], threads: int, *, reads_every: bool) -> None:
        """Refuse a buffer that is empty, or too short for a kernel that accesses an element for each thread along x."""
        for slot, array in zip(self._binder.slots, buffers, strict=True):
            if slot.takes_array and array.size < (threads * slot.components if reads_every and slot.param.every else 1):
                slot.refuse_short(array, threads)

    def __repr__(self) -> str:
        return f"<metalnb.Kernel {self.signature} on {self.engine.name}>"

    @property
    def card(self) -> Card:
        """The notebook's description of the kernel."""
        if self._binary is None and declares_memory(self.unit):
            with contextlib.suppress(MetalnbError):  # a call raises the error; the display must not
                _ = self.binary
        return make_card(self.unit, self.reflection, self.engine.name, self.engine.caps, self._binary, self.source)

    def _repr_html_(self) -> str:
        return cards_html([self.card])

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        return bundle([self.card])

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, (self.program, self.signature.name)
