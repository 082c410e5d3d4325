"""Evaluate the constants that a cell derives from its function constants, once these are set (MSL 5.8.1).

``[[function_constant(ON)]]`` on a parameter may name a derived constant: ``constant bool ON = A && N > 2;``. The caller
must know whether the parameter exists before anything is compiled, so the expression is evaluated here, from tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from metalnb.dtypes import SCALARS

from .bracket_tree import Outline
from .tokens import tokenize

__all__ = ["derived_constants", "evaluate", "expand_constant"]

_DEFINED = "is_function_constant_defined"
_LONGEST = 10_000  # most characters of an expression that is evaluated


def _quotient(a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        return a / b if b else float("nan")
    return 0 if not b else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _shift_count(count: Any) -> int:
    if not 0 <= count < 64:
        raise ValueError(count)
    return int(count)


# Operators by level, from the loosest to the tightest; each token is one character.
_OPERATORS: tuple[dict[str, Callable[[Any, Any], Any]], ...] = (
    {"||": lambda a, b: bool(a or b)},
    {"&&": lambda a, b: bool(a and b)},
    {"|": lambda a, b: int(a) | int(b)},
    {"^": lambda a, b: int(a) ^ int(b)},
    {"&": lambda a, b: int(a) & int(b)},
    {"==": lambda a, b: a == b, "!=": lambda a, b: a != b},
    {"<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "<": lambda a, b: a < b, ">": lambda a, b: a > b},
    {"<<": lambda a, b: int(a) << _shift_count(b), ">>": lambda a, b: int(a) >> _shift_count(b)},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": _quotient, "%": lambda a, b: a - b * _quotient(a, b)},
)
_SIGNS: dict[str, Callable[[Any], Any]] = {
    "!": lambda a: not a, "-": lambda a: -a, "+": lambda a: +a, "~": lambda a: ~int(a),
}  # fmt: skip
_PAIRS = frozenset({"||", "&&", "==", "!=", "<=", ">=", "<<", ">>"})
_NUMBER = re.compile(r"(0[xX][\da-fA-F]+|0[bB][01]+|\d+)[uUlL]*|(\d*\.?\d*(?:[eE][+-]?\d+)?)[fFhH]?")


def derived_constants(text: Outline) -> dict[str, str]:
    """Return the initializers of a text's constants at file or namespace scope, by their names."""
    if "function_constant" not in text.words:
        return {}
    tree, initializers = text.program, {}
    for i, mark in enumerate(tree.texts):
        if mark == "=" and tree.tokens[i - 1].kind == "word" and tree.enclosing(i, "([") < 0:
            head = tree.texts[tree.statement(i) : i]
            if "=" not in head and not {"constant", "constexpr"}.isdisjoint(head):
                initializers[tree.texts[i - 1]] = " ".join(tree.texts[i + 1 : tree.find(i, frozenset({";", "{"}))])
    return initializers


def expand_constant(name: str, initializers: Mapping[str, str], expansions: dict[str, str] | None = None) -> str:
    """Return a derived constant's initializer with the constants that it names expanded.

    A constant whose initializer becomes too long, or refers to itself, stays a name.
    """
    expansions = {} if expansions is None else expansions
    if name not in expansions:
        expansions[name] = name
        text = " ".join(
            f"( {expand_constant(word, initializers, expansions)} )" if word in initializers else word
            for word in initializers[name].split(" ")
        )
        expansions[name] = text if len(text) <= _LONGEST else name
    return expansions[name]


def evaluate(expression: str, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression of function constants.

    Parameters
    ----------
    expression : str
    values : mapping of str to value
        The function constants; None for one without a value, which is 0 if used.

    Raises
    ------
    ValueError
        If the expression contains anything but numbers, operators, casts to scalars and function constants.
    """
    reader = _Reader(expression, values)
    value = reader.choice()
    if reader.words:
        raise ValueError(expression)
    return value


class _Reader:
    """Reads an expression from its first token; it reads both operands of every operator, even of ``&&``."""

    def __init__(self, expression: str, values: Mapping[str, Any]) -> None:
        tokens = [t.text for t in tokenize(expression).program]
        self.words = tokens[::-1]
        self.values = values

    def take(self, *allowed: str) -> str:
        """Take the next token, which must be one of `allowed` if any are given."""
        if not self.words or (allowed and self.words[-1] not in allowed):
            raise ValueError(*self.words[-1:])
        return self.words.pop()

    def operator(self, level: int) -> str:
        """Take an operator of a level, if one is next."""
        pair = "".join(self.words[:-3:-1])
        operator = pair if pair in _PAIRS else pair[:1]
        if operator not in _OPERATORS[level]:
            return ""
        del self.words[-len(operator) :]
        return operator

    def choice(self) -> Any:
        condition = self.binary(0)
        if self.words[-1:] != ["?"]:
            return condition
        self.take("?")
        if_true = self.choice()
        self.take(":")
        if_false = self.choice()
        return if_true if condition else if_false

    def binary(self, level: int) -> Any:
        if level == len(_OPERATORS):
            return self.unary()
        value = self.binary(level + 1)
        while sign := self.operator(level):
            value = _OPERATORS[level][sign](value, self.binary(level + 1))
        return value

    def unary(self) -> Any:
        word = self.take()
        if word in _SIGNS:
            return _SIGNS[word](self.unary())
        if word == "(":
            if self.words[-1:] and self.words[-1] in SCALARS and self.words[-2:-1] == [")"]:
                kind = self.take()
                self.take(")")
                return _cast(kind, self.unary())
            return self.parenthesized()
        if word in SCALARS or word == "static_cast":
            return _cast(self.kind(word), self.parenthesized())
        if word == _DEFINED:
            self.take("(")
            name = self.take()
            self.take(")")
            return self.values.get(name) is not None
        return self.value(word)

    def kind(self, word: str) -> str:
        """Return the type of a cast, ``bool(`` or ``static_cast<bool>(``, from its first word to its parenthesis."""
        if word == "static_cast":
            self.take("<")
            word = self.take(*SCALARS)
            self.take(">")
        self.take("(")
        return word

    def parenthesized(self) -> Any:
        value = self.choice()
        self.take(")")
        return value

    def value(self, word: str) -> Any:
        if word in {"true", "false"}:
            return word == "true"
        if word in self.values:
            return self.values[word] or 0
        number = _NUMBER.fullmatch(word)
        if number is None:
            raise ValueError(word)
        return int(number[1], 0) if number[1] else float(number[2])


def _cast(kind: str, value: Any) -> Any:
    if kind == "bool":
        return bool(value)
    return float(value) if kind in {"float", "half", "bfloat"} else int(value)
