"""`compile`, which turns a cell's source into a program: a mapping of kernels by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from metalnb import engine as engines
from metalnb.call.kernel import Kernel
from metalnb.call.packing import struct_dtype
from metalnb.display import bundle, cards_html
from metalnb.engine.process_locks import new_lock
from metalnb.engine.unit import CHECKED, Unit
from metalnb.errors import ArgumentError
from metalnb.library_includes import bundle_files
from metalnb.msl.language.versions import read as read_version
from metalnb.msl.libclang.author_warnings import warn
from metalnb.msl.signature import Reflection

from .front_end import read
from .printing_check import refuse_unseen_prints
from .recipe import Recipe, check_text, decode, header_name

__all__ = ["Math", "Program", "compile", "from_recipe", "load", "program_of", "recipe_of"]

Math = Literal["fast", "precise"]


class Program(Mapping[str, Kernel]):
    """The kernels of one cell, by name: ``program.saxpy`` or ``program["saxpy"]``.

    Attributes
    ----------
    source : str
        The source as written.
    kernels : mapping of str to Kernel
    constants : mapping of str to value
        The function constants that the program was compiled with.
    math : {"fast", "precise"}
    name : str
        The text's name in diagnostics.
    """

    def __init__(self, recipe: Recipe, reflection: Reflection, units: dict[str, Unit], engine: engines.Engine) -> None:
        self.recipe = recipe
        self.engine = engine
        self.reflection = reflection
        self.kernels: Mapping[str, Kernel] = MappingProxyType(
            {name: Kernel(unit, engine, reflection, self) for name, unit in units.items()},
        )

    @property
    def source(self) -> str:
        """The source as written, without the empty lines that stand for the lines above it in a notebook's cell."""
        return self.recipe.source.lstrip("\n")

    @property
    def name(self) -> str:
        """The text's name in diagnostics."""
        return self.recipe.name

    @property
    def math(self) -> str:
        """The math mode."""
        return self.recipe.math

    @property
    def constants(self) -> dict[str, Any]:
        """The function constants that the program was compiled with."""
        return dict(self.recipe.constants)

    def __getitem__(self, name: str) -> Kernel:
        try:
            return self.kernels[name]
        except KeyError:
            raise KeyError(self._no_kernel(name)) from None

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("__") or "kernels" not in self.__dict__:
            raise AttributeError(name)
        try:
            return self.kernels[name]
        except KeyError:
            raise AttributeError(self._no_kernel(name)) from None

    def _no_kernel(self, name: str) -> str:
        return f"no kernel {name!r} in this program; it has: {', '.join(self.kernels)}."

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.kernels]

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<metalnb.Program {', '.join(self.kernels)} on {self.engine.name}>"

    def _repr_html_(self) -> str:
        return cards_html([k.card for k in self.kernels.values()])

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        return self.cards()

    def cards(self, *, source: bool = True) -> dict[str, str]:
        """Return a notebook's display of the program, by MIME type; ``source=False`` omits the source."""
        return bundle([k.card for k in self.kernels.values()], source=source)

    def __reduce__(self) -> tuple[Any, ...]:
        return from_recipe, (self.recipe,)

    def specialize(self, /, **constants: Any) -> Program:
        """Return the program with different values for some of its function constants.

        Parameters
        ----------
        **constants
            The new values, by name (MSL 5.8); all other constants keep theirs.

        Returns
        -------
        Program
            A program with the same source. The same values return the same program.

        Raises
        ------
        ArgumentError
            For a constant that the source does not have, or a value that does not fit.
        """
        return from_recipe(self.recipe.specialized(constants)) if constants else self

    def on(self, engine: str) -> Program:
        """Return the program for another engine, with the same source and options.

        Raises
        ------
        EngineUnavailable
            If the engine is unknown or cannot run here.
        """
        return from_recipe(self.recipe.on(engine))

    def dtype(self, struct: str) -> np.dtype[np.void]:
        """Return the NumPy dtype of one of the cell's structs, laid out as the kernel sees it.

        Raises
        ------
        KeyError
            If no kernel parameter uses a struct of that name.
        """
        record = self.reflection.struct(struct)
        if record is None:
            names = ", ".join(s.name for s in self.reflection.structs) or "none"
            message = f"no struct {struct!r} among the kernels' parameters; there are: {names}."
            raise KeyError(message)
        return struct_dtype(record, self.reflection)

    def lowered_text(self, name: str) -> str:
        """Return the text passed to the engine's compiler for a kernel."""
        return self.engine.text(self[name].unit)


_PROGRAMS_KEPT = 256
_programs: OrderedDict[tuple[Any, ...], Program] = OrderedDict()
_lock = new_lock()


def compile(
    source: str,
    *,
    constants: Mapping[str, Any] | None = None,
    math: Math = "fast",
    headers: Mapping[str, str] | None = None,
    engine: str | None = None,
    name: str = "cell",
    msl: str | None = None,
    checked: bool = CHECKED,
) -> Program:
    """Compile MSL text.

    The source is read and checked at once; each kernel is compiled for the device when it is first called. The same
    source with the same options returns the same program.

    Parameters
    ----------
    source : str
        Metal Shading Language.
    constants : mapping of str to value, optional
        Function constants, by name (MSL 5.8).
    math : {"fast", "precise"}, optional
        ``fast`` lets the compiler reorder and contract floating-point arithmetic, as Metal does by default; NaN and
        infinities are still respected. ``precise`` keeps IEEE 754 semantics.
    headers : mapping of str to str, optional
        The text for each ``#include "NAME"``.
    engine : str, optional
        One of `engines`; by default the engine in use.
    name : str, optional
        The name of the source in diagnostics.
    msl : str, optional
        The version of the language that the source must conform to, "2.3" to "3.2". ``__METAL_VERSION__`` has its
        value, and newer features are errors. The default is the newest version that the engine supports: "2.3" on
        ``metal:metalcompute``, the version of this macOS on ``metal``, and "3.2" elsewhere.
    checked : bool, optional
        Whether accesses are checked: a read beyond the end of a buffer or an array then returns 0, a write there is
        skipped, the first such access is raised as a `KernelFault`, and loops can be stopped. A check costs no time in
        a launch that is proven to stay in bounds, and some time otherwise. True by default, unless the environment has
        ``METALNB_CHECKED=0``. Only engines ``cpu`` and ``cuda`` check.

    Returns
    -------
    Program

    Raises
    ------
    CompileError
        If the source is not a valid Metal program; the error has the line and column.
    ArgumentError
        For an unknown or missing function constant, or a value that does not fit.
    EngineUnavailable
        If the named engine, or without a name every engine, cannot run here.

    Examples
    --------
    >>> import metalnb as mnb, numpy as np
    >>> program = mnb.compile('''
    ... kernel void twice(device const float* x, device float* y, uint i [[thread_position_in_grid]]) {
    ...     y[i] = 2 * x[i];
    ... }''')
    >>> program.twice(np.arange(3, dtype=np.float32))
    array([0., 2., 4.], dtype=float32)
    """
    return program_of(recipe_of(
        source, constants=constants, math=math, headers=headers, engine=engine, name=name, msl=msl, checked=checked,
    ))  # fmt: skip


def recipe_of(
    source: str, constants: Mapping[str, Any] | None = None, math: str = "fast",
    headers: Mapping[str, str] | None = None, engine: str | None = None, name: str = "cell", msl: str | None = None,
    checked: bool = CHECKED,
) -> Recipe:  # fmt: skip
    """Check the arguments of `compile`; return its recipe."""
    if math not in {"fast", "precise", "scalar"}:  # "scalar" is only for the library: see `Unit.math`
        message = f"compile: math is 'fast' or 'precise'; got {math!r}."
        raise ArgumentError(message)
    if msl is not None:
        try:
            read_version(msl)
        except ValueError as error:
            message = f"compile: {error}"
            raise ArgumentError(message) from None
    source = check_text(source, name)
    texts = {header_name(n): check_text(t, n) for n, t in (headers or {}).items()}
    texts = {**bundle_files((source, *texts.values())), **texts}
    target = engines.named(engine)
    recipe = Recipe(
        source, constants=constants or {}, math=math, headers=texts, engine=target.name, name=name, msl=msl,
        checked=checked,
    )  # fmt: skip
    return recipe.within(target.caps.msl)


def program_of(recipe: Recipe) -> Program:
    """Return the program of a recipe, compiling it at its first use."""
    target = engines.named(recipe.engine)
    key = recipe.key
    with _lock:
        cached = _programs.get(key)
        if cached is not None:
            _programs.move_to_end(key)
            return cached
    reflection, units = read(recipe, target.expect)
    refuse_unseen_prints(units, target)
    program = Program(recipe, reflection, units, target)
    warn(program.reflection.cautions)
    with _lock:
        program = _programs.setdefault(key, program)
        while len(_programs) > _PROGRAMS_KEPT:
            _programs.popitem(last=False)
    return program


def load(path: str | Path, name: str | None = None, **options: Any) -> Program | Kernel:
    """Compile a ``.metal`` file; return its program, or its kernel ``name``.

    Parameters
    ----------
    path : str or Path
    name : str, optional
        A kernel's name.
    **options
        As for `compile`.
    """
    path = Path(path)
    source = decode(path.read_bytes(), path.name)
    program = compile(source, **{"name": path.name, **options})
    return program if name is None else program[name]


def from_recipe(recipe: Recipe) -> Program:
    """Compile a recipe that may come from another process or engine."""
    arguments = recipe.source, recipe.constants, recipe.math, recipe.headers, recipe.engine, recipe.name, recipe.msl
    return program_of(recipe_of(*arguments, recipe.checked).of_library(recipe.own))
