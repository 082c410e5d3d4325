"""The user's own elementwise ops, each made from an expression as the library's are from their rows."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ... import engine as engines
from ...arrays.promotion import as_dtype
from ...errors import ArgumentError, CompileError, Diagnostic
from ...msl.language.reference import KEYWORDS, lookup
from ...msl.text.tokens import Token, tokenize
from .elementwise_op import Elementwise
from .elementwise_text import LOOPS, RESERVED, Formula
from .op_info import OpInfo

__all__ = ["elementwise", "free_names"]

_LIMITS = re.compile(r"(FLT|HALF|BFLT|S?CHAR|UCHAR|U?SHRT|U?INT|U?LONG)_[A-Z0-9_]+")  # MSL 6.5, and <metal_limits>
_OPERANDS = 5  # a Walk has room for this many operands and the result


def elementwise(  # noqa: PLR0913  (all properties of an op)
    expression: str,
    /,
    *,
    name: str = "elementwise",
    operands: Sequence[str] | None = None,
    kinds: str = "f",
    result: Literal["same", "bool"] = "same",
    preamble: str = "",
    math: Literal["precise", "fast"] = "precise",
    reference: Callable[..., Any] | None = None,
    ulp: float = 4,
    **parameters: float,
) -> Elementwise:
    """Make an op from an expression; like the library's ops, it broadcasts, promotes dtypes and takes any view.

    Parameters
    ----------
    expression : str
        MSL on the operands, the parameters, and ``T``, the type to compute in (float for every floating dtype).
    name : str, optional
        The op's name in messages.
    operands : sequence of str, optional
        The names of its arrays. By default the names in the expression that do not belong to MSL, the preamble or the
        parameters, in order of first appearance.
    kinds : str, optional
        The dtypes to compute in: letters of ``b`` bool, ``i`` signed, ``u`` unsigned, ``f`` floating. An op for floats
        only converts integers and bool to float32.
    result : {"same", "bool"}, optional
        The result's dtype: that of the operands, or bool.
    preamble : str, optional
        MSL that precedes the kernel: functions and constants for the expression to use.
    math : {"precise", "fast"}, optional
        As for `metalnb.compile`.
    reference : callable, optional
        The same function in NumPy, for tests; it receives float64. A pickled op leaves it out.
    ulp : float, optional
        The error that tests allow for float32, relative to the reference, in units in the last place.
    **parameters : float
        Scalars in the expression, with their defaults; a call may pass other values, by name or after the arrays.

    Returns
    -------
    Elementwise
        To be called with arrays; ``out=`` is an array to write into.

    Raises
    ------
    CompileError
        If the expression is not valid MSL, with the position in it.
    ArgumentError
        If a name cannot be used, or the expression has no operand.

    Examples
    --------
    >>> import metalnb as mnb
    >>> mish = mnb.elementwise("x * tanh(log(1 + exp(x)))")
    >>> mish(mnb.asarray([0.0, 1.0]))
    array([0.       , 0.8650984], dtype=float32)
    >>> leak = mnb.elementwise("x > 0 ? x : slope * x", slope=0.01)
    >>> leak(mnb.asarray([-1.0, 2.0]), slope=0.5)
    array([-0.5,  2. ], dtype=float32)
    """
    line = _one_line(expression)
    names = tuple(operands) if operands is not None else free_names(line, preamble, parameters)
    _check(name, names, parameters, kinds)
    if result not in {"same", "bool"}:
        message = f"elementwise: result must be 'same' or 'bool'; got {result!r}. Convert the result: .astype(…)."
        raise ArgumentError(message)
    formula = Formula(
        name=name, expression=line, doc=" ".join(line.split()), kinds=kinds, operands=names, masks=(),
        parameters=parameters, result=result, preamble=preamble, math=math,
    )  # fmt: skip
    op = _CustomOp(formula, OpInfo(reference or _no_reference, family="own", ulp=ulp if reference else 0))
    options = {"name": name, "operands": names, "kinds": kinds, "result": result, "preamble": preamble, "math": math,
               "ulp": ulp, **parameters}  # fmt: skip
    op.recipe = (line, options)
    _compile_once(op, kinds)
    return op


class _CustomOp(Elementwise):
    """A user's op, pickled as the arguments that it was made from."""

    recipe: tuple[str, dict[str, Any]]

    def __reduce__(self) -> Any:
        return _rebuild, self.recipe


def _rebuild(expression: str, options: dict[str, Any]) -> Elementwise:
    return elementwise(expression, **options)


def _no_reference(*_args: Any) -> Any:
    raise TypeError("this op has no reference. Pass reference=… to elementwise.")


def _one_line(expression: str) -> str:
    """Return an expression in one line: line breaks and comments become spaces, which keeps the other columns."""
    stream = tokenize(expression)
    if stream.directives:
        raise ArgumentError("elementwise: the expression has a preprocessor directive. Move it to the preamble.")
    line, end = "", 0
    for token in stream.program:
        line += " " * (token.start - end) + token.text
        end = token.end
    return " ".join(line.splitlines())


def free_names(expression: str, preamble: str, parameters: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names in an expression that must be its operands."""
    tokens = tokenize(expression).program
    stream = tokenize(preamble)
    directives = (d.tokens[0].text for d in stream.directives if d.tokens)
    bound_names = {*parameters, "T", "L", *_words(stream.program), *directives}
    names = [
        token.text for previous, token, following in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False)
        if token.kind == "word" and token.text not in bound_names and _is_free(previous, token, following)
    ]  # fmt: skip
    return tuple(dict.fromkeys(names))


def _words(tokens: list[Token]) -> set[str]:
    return {t.text for t in tokens if t.kind == "word"}


def _is_free(previous: Token | None, token: Token, following: Token | None) -> bool:
    """Return whether a word is a variable: not a member, not a call, and not a word of MSL."""
    if (previous and previous.text in {".", "->", "::"}) or (following and following.text in {"(", "::"}):
        return False
    msl_kinds = {entry.kind for entry in lookup(token.text)} & {"type", "word"}
    return not (msl_kinds or token.text in KEYWORDS or token.text == "metal" or _LIMITS.fullmatch(token.text))


def _check(name: Any, names: tuple[Any, ...], parameters: Mapping[str, Any], kinds: str) -> None:
    if not kinds or set(kinds) - set(LOOPS) or len(set(kinds)) != len(kinds):
        raise ArgumentError(f"elementwise: kinds must be distinct letters of 'b', 'i', 'u', 'f'; got {kinds!r}.")
    if not names:
        raise ArgumentError("elementwise: the expression has no operand. Name its arrays: operands=('x',).")
    if len(names) > _OPERANDS:
        message = f"at most {_OPERANDS} operands; got {', '.join(map(str, names))}. Give constants as parameters."
        raise ArgumentError(f"elementwise: {message}")
    for word in (name, *names, *parameters):
        if not isinstance(word, str):
            raise ArgumentError(f"elementwise: names must be strings; got {word!r}.")
        if not word.isidentifier() or word in KEYWORDS:
            rule = "is a keyword" if word in KEYWORDS else "is not an identifier"
            raise ArgumentError(f"elementwise: {word!r} {rule}. Choose another name.")
    generated = {f"{n}{suffix}" for n in names for suffix in ("Step", "_s")}
    for word in (*names, *parameters):
        if word in RESERVED or word in generated or word.endswith("_"):
            raise ArgumentError(f"elementwise: {word!r} is reserved for the kernel. Choose another name.")
    for parameter, value in parameters.items():
        if not isinstance(value, (numbers.Real, np.bool_)):
            message = f"parameter {parameter!r} must be a number; got {type(value).__name__}."
            raise ArgumentError(f"elementwise: {message} Arrays are operands.")
    twice = [n for n in names if n in parameters or names.count(n) > 1]
    if twice:
        raise ArgumentError(f"elementwise: {twice[0]!r} appears twice among the operands and parameters.")


def _compile_once(op: Elementwise, kinds: str) -> None:
    """Compile the kernels, and report errors at their position in the expression."""
    try:
        op.program(as_dtype(LOOPS[kinds[0]][0]), engines.named(None))
    except CompileError as error:
        located = [p for d in error.diagnostics if (p := _locate(d, op.formula, kinds)) is not None]
        by_position = {(p.file, p.line, p.column): p for p in reversed(located)}  # every loop repeats the error
        raise CompileError(list(reversed(by_position.values())) or error.diagnostics) from None


def _locate(diagnostic: Diagnostic, formula: Formula, kinds: str) -> Diagnostic | None:
    line, column = formula.expression_position(kinds)
    text = formula.groups[kinds]
    if diagnostic.file == formula.name and diagnostic.line == line:
        position = min(max(diagnostic.column - column + 1, 1), len(text) + 1)
        return Diagnostic(1, position, diagnostic.message, text, formula.name, diagnostic.hint, diagnostic.severity)
    preamble_lines = formula.preamble_lines
    if diagnostic.file == formula.name and diagnostic.line in preamble_lines:
        preamble_line = diagnostic.line - preamble_lines.start + 1
        return dataclasses.replace(diagnostic, line=preamble_line, file=f"{formula.name} preamble")
    return None
