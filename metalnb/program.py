"""From a cell's text to a program: its kernels, ready to be called."""

from __future__ import annotations

import functools
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from . import cache, engine as engines
from .display import bundle, cards_html
from .errors import ArgumentError, CompileError, Diagnostic
from .kernel import Kernel
from .layouts import check_constant, struct_dtype
from .msl.lower import Unit, opencl
from .msl.scan import Cell, Instantiation, instantiations, scan
from .msl.signature import Constant, Reflection

__all__ = ["Program", "compile", "load"]

Math = Literal["fast", "precise"]


class Program(Mapping[str, Kernel]):
    """The kernels of one cell, by name: ``program.saxpy`` or ``program["saxpy"]``.

    Attributes
    ----------
    source : str
        The author's text.
    kernels : mapping of str to Kernel
    constants : mapping of str to value
        The function constants it was compiled with.
    math : {"fast", "precise"}
    name : str
        How diagnostics name the text.
    """

    def __init__(self, recipe: Recipe, reflection: Reflection, units: dict[str, Unit], engine: engines.Engine) -> None:
        self.recipe = recipe
        self.engine = engine
        self.reflection = reflection
        self.kernels: Mapping[str, Kernel] = MappingProxyType(
            {name: Kernel(unit, engine, reflection, recipe) for name, unit in units.items()},
        )

    @property
    def source(self) -> str:
        """The author's text."""
        return self.recipe.source

    @property
    def name(self) -> str:
        """How diagnostics name the text."""
        return self.recipe.name

    @property
    def math(self) -> str:
        """The math mode."""
        return self.recipe.math

    @property
    def constants(self) -> dict[str, Any]:
        """The function constants it was compiled with."""
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
        return f"no kernel {name!r} in this program; it has: {', '.join(self.kernels)}"

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
        return bundle([k.card for k in self.kernels.values()])

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_recipe, (self.recipe,)

    def dtype(self, struct: str) -> np.dtype[np.void]:
        """Give the NumPy dtype of one of the cell's structs, laid out as the kernel sees it.

        Raises
        ------
        KeyError
            When no kernel parameter uses a struct of that name.
        """
        found = self.reflection.struct(struct)
        if found is None:
            names = ", ".join(s.name for s in self.reflection.structs) or "none"
            message = f"no struct {struct!r} among the kernels' parameters; there are: {names}"
            raise KeyError(message)
        return struct_dtype(found, self.reflection)

    def lowered(self, name: str) -> str:
        """Give the text that the compiler is given for a kernel: the cell, and the entry point after it."""
        return opencl(self[name].unit)


class Recipe:
    """All that a program is made from: what is pickled of it."""

    __slots__ = ("constants", "engine", "headers", "math", "name", "source")

    def __init__(
        self, source: str, constants: Mapping[str, Any], math: str, headers: Mapping[str, str], engine: str, name: str,
    ) -> None:  # fmt: skip
        self.source = source
        self.constants = dict(constants)
        self.math = math
        self.headers = dict(headers)
        self.engine = engine
        self.name = name

    @property
    def key(self) -> tuple[Any, ...]:
        """A hashable name of everything in it."""
        constants = tuple((k, type(v).__name__, repr(v)) for k, v in sorted(self.constants.items()))
        return self.source, constants, self.math, tuple(sorted(self.headers.items())), self.engine, self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return Recipe, (self.source, self.constants, self.math, self.headers, self.engine, self.name)


_KEPT = 256
_programs: OrderedDict[tuple[Any, ...], Program] = OrderedDict()
_lock = threading.Lock()


def compile(  # noqa: A001  (the contract's name)
    source: str,
    *,
    constants: Mapping[str, Any] | None = None,
    math: Math = "fast",
    headers: Mapping[str, str] | None = None,
    engine: str | None = None,
    name: str = "cell",
) -> Program:
    """Compile MSL text.

    The text is read and checked at once; each kernel is compiled for the device when it is first called. The same
    text with the same options gives the same program.

    Parameters
    ----------
    source : str
        Metal Shading Language.
    constants : mapping of str to value, optional
        Function constants, by name (MSL 5.8).
    math : {"fast", "precise"}, optional
        ``fast`` lets the compiler reorder and contract floating-point arithmetic, as Metal does by default; NaN and
        infinities stay honoured. ``precise`` keeps IEEE 754 semantics.
    headers : mapping of str to str, optional
        Texts that ``#include "NAME"`` may name.
    engine : str, optional
        One of `engines`; by default the one in use.
    name : str, optional
        How diagnostics name the text.

    Returns
    -------
    Program

    Raises
    ------
    CompileError
        When the text is not a valid Metal program; with the line and column in it.
    ArgumentError
        For an unknown function constant, a missing one, or a value that does not fit.
    EngineUnavailable
        When no engine, or not the one named, can run here.

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
    if math not in {"fast", "precise"}:
        message = f"compile: math is 'fast' or 'precise'; got {math!r}"
        raise ArgumentError(message)
    source = _text(source, name)
    texts = {n: _text(t, n) for n, t in (headers or {}).items()}
    chosen = engines.named(engine)
    recipe = Recipe(source, constants or {}, math, texts, chosen.name, name)
    key = recipe.key
    with _lock:
        known = _programs.get(key)
        if known is not None:
            _programs.move_to_end(key)
            return known
    program = _build(recipe, chosen)
    with _lock:
        program = _programs.setdefault(key, program)
        while len(_programs) > _KEPT:
            _programs.popitem(last=False)
    return program


def load(path: str | Path, name: str | None = None, **options: Any) -> Program | Kernel:
    """Compile a ``.metal`` file; give its program, or the kernel ``name`` of it.

    Parameters
    ----------
    path : str or Path
    name : str, optional
        A kernel's name.
    **options
        As for `compile`.
    """
    path = Path(path)
    try:
        source = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {error.start}"
        raise CompileError([Diagnostic(1, 1, message, file=path.name, hint="save it as UTF-8")]) from None
    program = compile(source, **{"name": path.name, **options})
    return program if name is None else program[name]


def _text(source: str, name: str) -> str:
    if not isinstance(source, str):
        message = f"compile: source is a str of MSL; got {type(source).__name__}"
        raise ArgumentError(message)
    try:
        source.encode("utf-8")
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        column = error.start - (source.rfind("\n", 0, error.start) + 1) + 1
        text = source.split("\n")[line - 1].encode("utf-8", "replace").decode()
        message = "the text is not valid Unicode: a lone surrogate"
        raise CompileError([Diagnostic(line, column, message, text, name, "save it as UTF-8")]) from None
    return source


def _from_recipe(recipe: Recipe) -> Program:
    return compile(
        recipe.source, constants=recipe.constants, math=recipe.math,  # type: ignore[arg-type]
        headers=recipe.headers, engine=recipe.engine, name=recipe.name,
    )  # fmt: skip


def _build(recipe: Recipe, engine: engines.Engine) -> Program:
    names = frozenset(recipe.headers)
    headers = {n: scan(text, n, names) for n, text in recipe.headers.items()}
    cell = scan(recipe.source, recipe.name, names)
    headers = _included(cell, headers)
    reflection = _reflection(recipe, cell, headers)
    values, undefined = _constants(recipe.constants, reflection)
    units = {k.name: Unit(k, cell, headers, values, undefined, recipe.math) for k in reflection.kernels}
    return Program(recipe, reflection, units, engine)


def _included(cell: Cell, headers: dict[str, Cell]) -> dict[str, Cell]:
    """Keep the header cells that the cell reaches, so that an unrelated one never makes it compile anew."""
    reached: dict[str, Cell] = {}
    ahead = list(cell.includes)
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached[name] = headers[name]
            ahead += headers[name].includes
    return {name: headers[name] for name in sorted(reached)}


def _reflection(recipe: Recipe, cell: Cell, headers: dict[str, Cell]) -> Reflection:
    texts = [part for n, h in headers.items() for part in (n, h.edited.original)]
    key = cache.digest(recipe.source, recipe.name, *texts, _front_end())
    kept = cache.store().get(key, "signatures")
    if kept is not None:
        try:
            return Reflection.from_json(json.loads(kept))
        except (ValueError, KeyError, TypeError):
            pass  # damaged: made again
    from .msl.reflect import reflect

    found = reflect(cell, headers, _made(cell, headers))
    cache.store().put(key, "signatures", json.dumps(found.to_json()).encode())
    return found


def _made(cell: Cell, headers: dict[str, Cell]) -> tuple[Instantiation, ...]:
    """Find the instantiations: in the text itself or, when macros make them, in the preprocessor's output."""
    if not (cell.expands or any(h.expands for h in headers.values())):
        return tuple(i for c in (*headers.values(), cell) for i in c.instantiations)
    from .engine.clang import expand

    return instantiations(expand(cell, headers))


@functools.cache
def _front_end() -> str:
    """Name the state of the front end: what was reflected by another one is not used."""
    here = Path(__file__).parent
    files = [here / "dtypes.py", *(f for f in (here / "msl").rglob("*") if f.is_file() and f.suffix != ".pyc")]
    return cache.fingerprint(files)


def _constants(given: Mapping[str, Any], reflection: Reflection) -> tuple[dict[Constant, Any], tuple[Constant, ...]]:
    known = {c.name: c for c in reflection.constants}
    for name in given:
        if name not in known:
            has = ", ".join(known) or "none"
            message = f"constants: the cell has no function constant {name!r}; it has: {has}"
            raise ArgumentError(message)
    missing = [c for c in reflection.constants if c.name not in given and not c.optional]
    if missing:
        need = ", ".join(f"{c.type} {c.name} [[function_constant({c.index})]]" for c in missing)
        example = ", ".join(f"'{c.name}': …" for c in missing)
        message = f"constants: the cell needs a value for {need}; pass constants={{{example}}}"
        raise ArgumentError(message)
    values = {c: check_constant(c, given[c.name]) for c in reflection.constants if c.name in given}
    return values, tuple(c for c in reflection.constants if c.name not in given)
