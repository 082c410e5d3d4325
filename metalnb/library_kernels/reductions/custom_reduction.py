"""User-defined reductions, each from an expression that combines two values."""

from __future__ import annotations

import contextlib
import math
from numbers import Real
from typing import Any

import numpy as np

from ... import engine as engines
from ...arrays.array import Array, empty
from ...arrays.promotion import as_dtype, is_float, kind_of
from ...display import Source
from ...errors import ArgumentError, CompileError, Diagnostic
from ..launching.copying import as_array, fill_with
from ..launching.reduction_launch import Monoid, accumulator, build, reduce, tag
from ..planning.axes import axes_of

__all__ = ["Reduction", "reduction"]

DType = np.dtype[Any]

_FLOAT, _INT, _UINT = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.uint64)
_BEFORE = {"return Part(", "return Part(bool(", "return A(", "return Acc("}


def reduction(
    combine: str, /, *, init: float, map: str = "x", finish: str = "a", dtype: Any = None, name: str = "reduction"
) -> Reduction:
    """Create a reduction from an expression that combines two values; like `sum`, it works over any axes of any array.

    Parameters
    ----------
    combine : str
        MSL on ``a`` and ``b``, associative and commutative, such as ``"a + b"`` or ``"max(a, b)"``.
    init : number
        The identity of `combine`: 0 for a sum. Also the result for no elements. Integers have no infinities: for them
        ``-inf`` is the dtype's least number, from which a maximum starts, and ``inf`` the largest.
    map : str, optional
        MSL on ``x``: the transformation of an element before it is combined.
    finish : str, optional
        MSL on the total ``a`` and the number of elements ``n``, a float: the result.
    dtype : dtype, optional
        The dtype of the computation and the result; by default x's, and int64 or uint64 for bool and integers.
    name : str, optional
        Its name in messages.

    Returns
    -------
    Reduction
        Call it with an array, ``axis=`` and ``keepdims=``.

    Raises
    ------
    CompileError
        If an expression is not valid MSL, with the position in it.
    ArgumentError
        If `init` is not a number or does not fit the dtype, here or in a call, or `name` is not an identifier.

    Notes
    -----
    16-bit floats are combined in float32. The order of combination is not defined, but the same in every run.

    Examples
    --------
    >>> import metalnb as mnb
    >>> root_mean_square = mnb.reduction("a + b", init=0, map="x * x", finish="sqrt(a / n)")
    >>> root_mean_square(mnb.asarray([3.0, 4.0]))
    array(3.535534, dtype=float32)
    """
    result = Reduction(combine, init, map, finish, None if dtype is None else as_dtype(dtype, name), name)
    result.check()
    return result


class Reduction:
    """A user's reduction; see `reduction`.

    Attributes
    ----------
    name : str
    source : str
        The MSL of its monoid.
    """

    def __init__(
        self, combine: str, init: Any, map: str, finish: str, dtype: DType | None, name: str
    ) -> None:
        if not name.isidentifier():
            raise ArgumentError(f"reduction: name must be an identifier; got {name!r}.")
        if not isinstance(init, (Real, np.bool_)):
            raise ArgumentError(f"{name}: init must be a number; got {init!r}.")
        self.name = self.__name__ = name
        self.init: Any = init
        self.dtype = dtype
        self._expressions = {"map": map, "combine": combine, "finish": finish}
        self._lines = {key: " ".join(text.splitlines()).strip() for key, text in self._expressions.items()}
        self._monoids: dict[tuple[DType, DType], Monoid] = {}

    @property
    def source(self) -> str:
        """The MSL of its monoid, for ``reduce.metal`` to run."""
        return Source(self._text(self._result(_FLOAT)))

    def __call__(self, x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
        """Reduce some axes of an array, by default all."""
        x = as_array(self.name, x)
        axes = axes_of(self.name, axis, x.ndim)
        result = self._result(x.dtype)
        shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes)
        if 0 in x.shape:
            return fill_with(empty(shape, result, x.engine), self._start(result))
        count = math.prod(x.shape[i] for i in axes)
        out = reduce(x, axes, self._monoid(x.dtype, result), result, scale=count)
        return Array(out.block, result, shape, None, 0)

    def check(self) -> None:
        """Compile the kernels for floats, else for integers, and report errors at their position in the expressions.

        Raises
        ------
        CompileError
        ArgumentError
            If `init` fits none of them.
        """
        problem: CompileError | ArgumentError | None = None
        for dtype in (_FLOAT, _INT, _UINT):  # some expressions are valid for integers only
            result = self._result(dtype)
            try:
                build(self._monoid(dtype if is_float(result) else result, result), engines.named(None).name)
            except (CompileError, ArgumentError) as error:
                problem = problem or error
            else:
                return
        if isinstance(problem, CompileError):
            raise CompileError([self._locate(d) for d in problem.diagnostics[:1]]) from None
        if problem is not None:
            raise problem

    def _result(self, dtype: DType) -> DType:
        if self.dtype is not None:
            return self.dtype
        return dtype if is_float(dtype) else _UINT if kind_of(dtype) == "u" else _INT

    def _monoid(self, dtype: DType, result: DType) -> Monoid:
        monoid = self._monoids.get((dtype, result))
        if monoid is None:
            acc = accumulator(result)
            source_text = "bool" if result == np.bool_ else tag(result)  # writing bool turns every value but 0 into 1
            monoid = Monoid("Custom", tag(dtype), source_text, acc, acc, self._text(result))
            self._monoids[dtype, result] = monoid
        return monoid

    def _start(self, dtype: DType) -> int | float:
        """Return `init` as a number of a dtype.

        Raises
        ------
        ArgumentError
            If `init` is not a number of that dtype.
        """
        init = self.init
        if is_float(dtype):
            fits = "a number within its range, inf or nan"
            with contextlib.suppress(OverflowError), np.errstate(over="ignore"):
                if np.isfinite(np.array(float(init), dtype)) or not math.isfinite(init):
                    return float(init)
        else:
            smallest, largest = (0, 1) if dtype == np.bool_ else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
            fits = f"a whole number from {smallest} to {largest}, or -inf or inf for these two"
            if init in {-math.inf, math.inf}:
                return largest if init > 0 else smallest
            if smallest <= init <= largest and init == int(init):
                return int(init)
        message = f"{self.name}: init must be, for {dtype}, {fits}; got {init!r}. Pass one, or another dtype=…."
        raise ArgumentError(message)

    def _text(self, result: DType) -> str:
        lines = self._lines
        conversion = "bool({})" if result == np.bool_ else "{}"  # an element of 0.5 is true, and an integer 0
        return "\n".join([
            f"// {self.name}: {lines['combine']}",
            "template <typename T, typename R, typename Part, typename Acc> struct Custom : Monoid<T, R, Part, Acc> {",
            f"    static Acc identity() {{ return {_literal(self._start(result))}; }}",
            "    static Part load(value_of<T> x, float) {",
            f"        return Part({conversion.format(lines['map'])});",
            "    }",
            "    template <typename A> static A combine(A a, A b) {",
            f"        return A({lines['combine']});",
            "    }",
            "    static Acc finish(Acc a, float n, float) {",
            f"        return Acc({lines['finish']});",
            "    }",
            "};",
        ])  # fmt: skip

    def _locate(self, diagnostic: Diagnostic) -> Diagnostic:
        for key, text in self._lines.items():
            prefix, _, suffix = diagnostic.text.partition(text)
            if suffix.strip() in {");", "));"} and prefix.strip() in _BEFORE:
                column = min(max(diagnostic.column - len(prefix), 1), len(text) + 1)
                return Diagnostic(
                    1, column, diagnostic.message, text, f"{self.name} {key}", diagnostic.hint, diagnostic.severity,
                )  # fmt: skip
        return diagnostic

    def __repr__(self) -> str:
        return f"<metalnb.Reduction {self.name}: {self._lines['combine']}, from {self.init}>"

    def __reduce__(self) -> Any:
        e = self._expressions
        return Reduction, (e["combine"], self.init, e["map"], e["finish"], self.dtype, self.name)


def _literal(value: float) -> str:
    """Return a number as an MSL literal: integers as such, so that 64 bits keep their value."""
    if isinstance(value, int):
        return f"Acc({value % 2**64}ul)"  # wraps to the negative value
    if math.isnan(value):
        return "Acc(NAN)"
    if math.isinf(value):
        return "Acc(INFINITY)" if value > 0 else "Acc(-INFINITY)"
    return f"Acc({value!r}f)"
