"""Functions of arrays made one kernel: they are called once with stand-ins, and what they did is written as MSL."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import kind_of
from ...display import Source
from .elementwise_op import Elementwise
from .tracing import Trace, Traced

__all__ = ["Fused", "fuse"]


class _Made(NamedTuple):
    """A kernel, and which arguments are its arrays and its numbers."""

    op: Elementwise
    arrays: tuple[str, ...]
    numbers: tuple[str, ...]


class _Results(NamedTuple):
    """What a function returns for arguments like some: a kernel for each array, and whether they come in a tuple."""

    made: tuple[_Made, ...]
    several: bool


class Fused:
    """A function whose elementwise ops run as one kernel; made by `fuse`.

    Attributes
    ----------
    source : str
        The Metal that the last call ran.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._signature = inspect.signature(function)
        self._made: dict[Any, _Results] = {}
        self._last: tuple[_Made, ...] = ()

    def __repr__(self) -> str:
        return f"<metalnb.fuse of {self._function.__name__}{self._signature}>"

    @property
    def source(self) -> str:
        """The Metal of the last call's kernel; in a notebook it is shown in colours.

        Raises
        ------
        ValueError
            Before the first call: what is made depends on the arguments.
        """
        if not self._last:
            raise ValueError(f"{self._function.__name__}: nothing is made before the first call. Call it with arrays.")
        return Source("\n".join(made.op.source for made in self._last))

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the kernel for arguments like these, tracing the function at the first call with such."""
        if any(isinstance(a, Traced) for a in (*args, *options.values())):
            return self._function(*args, **options)  # a part of another fused function
        bound = self._signature.bind(*args, **options)
        bound.apply_defaults()
        given = bound.arguments
        key = tuple(_kind(value) for value in given.values())
        try:
            made = self._made.get(key)
        except TypeError as error:
            message = f"an argument is neither an array, nor a number, nor a value to be told from others: {error}."
            raise TypeError(f"{self._function.__name__}: {message}") from None
        if made is None:
            made = self._made[key] = self._traced(given)
        self._last = made.made
        results = [m.op(*(given[n] for n in m.arrays), *(float(given[n]) for n in m.numbers)) for m in self._last]
        return tuple(results) if made.several else results[0]

    def _traced(self, given: dict[str, Any]) -> _Results:
        """Call the function with stand-ins, and make an op of what it did."""
        name = self._function.__name__
        trace = Trace(name, self._function.__code__)
        parts: dict[str, Any] = {}
        kinds: dict[str, str] = {}
        for argument, value in given.items():
            kind = _kind(value)
            if kind[0] == "value":
                parts[argument] = value
                continue
            kinds[argument] = kind[1]
            if kind[1] not in "bf":
                raise TypeError(f"{name}: {argument} is of {value.dtype}; floats and bool are fused. "
                                f"Pass {argument}.astype(mnb.float32).")  # fmt: skip
            parts[argument] = Traced(trace, f"in_{argument}", kind[1], frozenset((argument,)))
        found = self._function(**parts)
        several = isinstance(found, tuple)
        made = tuple(self._made_of(trace, result, given, kinds) for result in (found if several else (found,)))
        return _Results(made, several)

    def _made_of(self, trace: Trace, result: Any, given: dict[str, Any], kinds: dict[str, str]) -> _Made:
        """Make the op of one result, from the arguments that it needs."""
        if not isinstance(result, Traced):
            message = "a fused function returns an array made of its arguments, or a tuple of such"
            raise TypeError(f"{trace.name}: {message}; got {type(result).__name__}.")
        used = [a for a in kinds if a in result.needs]
        arrays = tuple(a for a in used if _kind(given[a])[0] == "array")
        numbers = tuple(a for a in used if a not in arrays)
        if not arrays:
            raise TypeError(f"{trace.name}: needs an array among its arguments; got none that is used.")
        body = trace.written(result, result.kind)
        return _Made(self._op(trace, body, result.kind, arrays, numbers, kinds), arrays, numbers)

    def _op(self, trace: Trace, body: str, result: str, arrays: tuple[str, ...], numbers: tuple[str, ...],
            kinds: dict[str, str]) -> Elementwise:  # fmt: skip
        floats = any(kinds[a] == "f" for a in arrays)
        loop = "f" if floats or result == "f" or numbers else "b"
        masks = tuple(a for a in arrays if kinds[a] == "b") if floats else ()
        types = {a: "bool" if kinds[a] == "b" else "float" for a in (*arrays, *numbers)}
        head = ", ".join(f"{types[a]} in_{a}" for a in types)
        needed = _needed(trace.lines, body)
        functions = [t for c, t in trace.functions.items() if any(f" {c}(" in line for line in needed)]
        lines = [*functions, f"inline {'bool' if result == 'b' else 'float'} fused_({head}) {{"]
        lines += [*(f"    {line}" for line in needed), f"    return {body};", "}"]
        call = ", ".join(f"{n} != T(0)" if types[a] == "bool" and a not in masks and loop == "f" else n
                         for a, n in zip(types, (*_letters(arrays), *_letters(numbers, "p")), strict=True))  # fmt: skip
        return Elementwise(
            "fused", {loop: f"fused_({call})"}, _none, f"{trace.name}, fused.", operands=_letters(arrays),
            masks=tuple(n for a, n in zip(arrays, _letters(arrays), strict=True) if a in masks),
            parameters=dict.fromkeys(_letters(numbers, "p"), 0.0), result="bool" if result == "b" else "same",
            preamble="\n".join(lines), family="own", ulp=0,
        )  # fmt: skip


def _letters(names: tuple[str, ...], letter: str = "x") -> tuple[str, ...]:
    return tuple(f"{letter}{i}" for i in range(len(names)))


def _needed(lines: list[str], body: str) -> list[str]:
    """Return the lines that a result is made of."""
    wanted, kept = {body.strip("()")}, []
    for line in reversed(lines):
        name = line.split(" = ")[0].split()[-1]
        if any(re.search(rf"\b{name}\b", text) for text in wanted):
            kept.append(line)
            wanted.add(line.split(" = ", 1)[1])
    return kept[::-1]


def _kind(value: Any) -> tuple[str, Any]:
    """Tell what an argument is traced as: an array of a kind, a number that may change, or a value that may not."""
    if isinstance(value, (Array, np.ndarray)):
        return "array", kind_of(value.dtype)
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return "number", "f"
    return "value", value


def _none(*_args: Any) -> Any:
    raise TypeError("a fused function is its own reference: call it with NumPy's arrays before fusing.")


def fuse(function: Callable[..., Any], /) -> Fused:
    """Make one kernel of a function's elementwise ops: no array in between is written to memory.

    Parameters
    ----------
    function : callable
        Of arrays and numbers: operators, elementwise functions of metalnb or NumPy, ``where``, ``clip``. It is called
        with stand-ins once for each combination of floats, bool and numbers among its arguments, so it must not decide
        by the elements of arrays; numbers may change from call to call.

    Returns
    -------
    Fused
        To be called as the function; it broadcasts and promotes dtypes as an elementwise op does. Its ``source`` is
        Metal. All is computed in float32 and rounded once at the end, to the floating dtype that the arrays promote to:
        float16 and bfloat16 come out more exact than from separate ops. Of at most 5 arrays; several results, in a
        tuple, are a kernel each. Integer arrays, reductions and indexing are not fused.

    Raises
    ------
    TypeError
        At a call, for what is not fused, with its line.

    Examples
    --------
    >>> import metalnb as mnb
    >>> @mnb.fuse
    ... def blend(a, b, share):
    ...     return mnb.where(a > b, a * share, b * (1 - share))
    >>> blend(mnb.asarray([1.0, 2.0]), mnb.asarray([2.0, 1.0]), 0.25)
    array([1.5, 0.5], dtype=float32)
    """
    return Fused(function)
