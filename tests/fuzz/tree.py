"""Random programs as trees: what the generator makes, the printers write and the reducer cuts.

A tree is printed twice, as a Metal kernel and as C++ for the host, so it holds only what means the same in both:
signed arithmetic wraps (it is done in unsigned types), shifts are masked, divisors are not 0, indices are masked, and a
product of floats goes through `K` so that no compiler may contract it into a sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = [
    "FLOATS", "INPUTS", "INTEGERS", "LARGEST", "SCALARS", "SIGNED", "SLOTS", "VECTORS", "WIDTH", "Expr", "Helper",
    "Program", "Stmt", "const", "element", "lanes", "unsigned", "var",
]  # fmt: skip

INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
SIGNED = frozenset({"char", "short", "int", "long"})
FLOATS = ("float", "half")
SCALARS = (*INTEGERS, *FLOATS)
WIDTH = {"char": 8, "uchar": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32, "long": 64, "ulong": 64}
VECTORS = tuple(f"{kind}{n}" for kind in ("int", "uint", "ushort", "uchar", "long", "float") for n in (2, 3, 4))
INPUTS = {"uint": "a", "int": "s", "long": "b", "float": "f", "uchar": "c"}  # the input array of each type
LARGEST = 256  # threads in a threadgroup
SLOTS = 4  # words of the output that belong to each thread


def lanes(kind: str) -> int:
    """Return the number of components of a type: 1 for a scalar."""
    return int(kind[-1]) if kind[-1].isdigit() else 1


def element(kind: str) -> str:
    """Return the type of a vector's components; a scalar is its own."""
    return kind.rstrip("234")


def unsigned(kind: str) -> str:
    """Return the unsigned type in which a type's arithmetic is done, of 32 bits at least."""
    return "ulong" if WIDTH[kind] == 64 else "uint"


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression: its operation (a key of the printers' table), its type, its operands, and a name or a literal."""

    op: str
    type: str
    args: tuple[Expr, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Stmt:
    """A statement: its kind, its expressions, its blocks, and a name or an operator."""

    kind: str
    exprs: tuple[Expr, ...] = ()
    bodies: tuple[tuple[Stmt, ...], ...] = ()
    text: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class Helper:
    """A function: its result's type, its name, its parameters (type, name, by reference), and its body."""

    type: str
    name: str
    params: tuple[tuple[str, str, bool], ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel and its helpers.

    Attributes
    ----------
    seed : int
        What it was made from.
    together : bool
        Whether its threads meet: it has barriers or SIMD functions, and the host runs it in lockstep.
    math : {"fast", "precise"}
    """

    seed: int
    body: tuple[Stmt, ...]
    helpers: tuple[Helper, ...] = ()
    together: bool = False
    math: str = "fast"

    def with_body(self, body: tuple[Stmt, ...]) -> Program:
        """Return the program with another body."""
        return replace(self, body=body)


def const(kind: str, text: str) -> Expr:
    """Return a literal."""
    return Expr("const", kind, (), text)


def var(kind: str, name: str) -> Expr:
    """Return a variable's value."""
    return Expr("var", kind, (), name)
