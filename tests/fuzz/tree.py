"""Random programs as trees, which the generator builds, the printers write and the reducer shrinks.

A tree is printed twice, as a Metal kernel and as C++ for the host, so it contains only what has the same meaning in
both: signed arithmetic wraps (it is done in unsigned types), shifts and indices are masked, divisors are not 0, and a
product of floats goes through `K` so that no compiler may contract it into a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

__all__ = [
    "ATOMICS", "CELLS", "FLOATS", "HALVES", "INPUTS", "INTEGERS", "LARGEST", "SCALARS", "SIGNED", "SLOTS", "STEPS",
    "TREES", "VECTORS", "WIDTH", "Expr", "Helper", "Program", "Stmt", "const", "element", "lanes", "statements",
    "unsigned", "var",
]  # fmt: skip

INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
SIGNED = frozenset({"char", "short", "int", "long"})
FLOATS = ("float", "half")
SCALARS = (*INTEGERS, *FLOATS)
WIDTH = {"char": 8, "uchar": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32, "long": 64, "ulong": 64}
VECTORS = tuple(f"{kind}{n}" for kind in ("int", "uint", "ushort", "uchar", "long", "float") for n in (2, 3, 4))
HALVES = ("half2", "half3", "half4")
INPUTS = {"uint": "a", "int": "s", "long": "b", "float": "f", "uchar": "c"}  # the input array of each type
LARGEST = 256  # threads in a threadgroup
SLOTS = 4  # words of the output that belong to each thread
# Atomic operations, each with the initial value of its cells. Each operation has two cells that no other operation
# changes, so the order of threads does not matter.
ATOMICS = {"add": 0, "or": 0, "xor": 0, "max": 0, "min": 2**32 - 1, "and": 2**32 - 1}
CELLS = 2 * len(ATOMICS)
# Loops in which threads synchronize, as (first value, condition, step) of a counter {k}.
TREES = (
    ("size / 2", "{k} > 0", "{k} /= 2"), ("size / 2", "{k} != 0", "{k} >>= 1"), ("size", "{k} >= 1", "{k} /= 3"),
    ("128", "{k} > 0", "{k} /= 2"), ("n % 64", "{k} > 0", "{k} = {k} / 2"), ("100", "{k} > 2", "{k} -= {k} / 3"),
    ("1", "{k} < size", "{k} *= 2"), ("1", "{k} < 256", "{k} <<= 1"), ("1", "{k} <= size / 2", "{k} += {k}"),
    ("1", "{k} < 100", "{k} = {k} * 2 + 1"), ("2", "{k} <= 64", "{k} *= 3"), ("1", "{k} < size", "{k} ^= {k} * 2"),
    ("0", "{k} < 9", "{k} += 1 + ({k} & 1)"), ("size", "{k} > 0", "{k} = {k} > 5 ? {k} - 5 : 0"),
    ("n % 5", "{k} < 20", "{k} += 1 + n % 3"), ("size % 7", "{k} < 7", "{k}++"),
)  # fmt: skip
# Such loops whose steps clang mostly knows: no step is 0 or more than half the tile.
STEPS = (
    ("128", "{k} > 0", "{k} /= 2"), ("64", "{k} > 0", "{k} >>= 1"), ("32", "{k} > 0", "{k} /= 2"),
    ("16", "{k} >= 1", "{k} /= 2"), ("4", "{k} > 0", "{k} /= 2"), ("128", "{k} > 16", "{k} /= 2"),
    ("256", "{k} != 0", "{k} >>= 1"), ("27", "{k} > 0", "{k} /= 3"), ("1", "{k} < 256", "{k} *= 2"),
    ("1", "{k} < 64", "{k} <<= 1"), ("1", "{k} <= 16", "{k} += {k}"), ("1", "{k} < 4", "{k} *= 2"),
    ("size / 2", "{k} > 0", "{k} /= 2"), ("1", "{k} < size", "{k} *= 2"),
)  # fmt: skip


def lanes(kind: str) -> int:
    """Return the number of components of a type: 1 for a scalar."""
    return int(kind[-1]) if kind[-1].isdigit() else 1


def element(kind: str) -> str:
    """Return the type of a vector's components, or a scalar's type."""
    return kind.rstrip("234")


def unsigned(kind: str) -> str:
    """Return the unsigned type of a type's arithmetic, which has at least 32 bits."""
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
        The seed that it was generated from.
    together : bool
        Whether its threads synchronize: it has barriers or SIMD functions, and the host runs it in lockstep.
    math : {"fast", "precise"}
    planar : bool
        Whether its grid and its threadgroups have two dimensions.
    """

    seed: int
    body: tuple[Stmt, ...]
    helpers: tuple[Helper, ...] = ()
    together: bool = False
    math: str = "fast"
    planar: bool = False

    @property
    def held(self) -> bool:
        """Whether threads change cells of their threadgroup."""
        return self.holds("gather") or any(s.kind == "atomic" and s.type == "held" for s in statements(self.body))

    @property
    def tile(self) -> int:
        """The elements of threadgroup memory to reduce: twice the threads if their number guards nothing."""
        guards = [s.type.split()[4] for s in statements(self.body) if s.kind == "tree"]
        return LARGEST * (2 if {*guards} - {"fold"} else 1) if guards else 0

    @property
    def cells(self) -> bool:
        """Whether threads change cells shared by the entire grid."""
        return self.holds("gather", "atomic")

    def holds(self, *kinds: str) -> bool:
        """Return whether the kernel has statements of some kinds."""
        return any(s.kind in kinds for s in statements(self.body))

    def with_body(self, body: tuple[Stmt, ...]) -> Program:
        """Return the program with another body."""
        return replace(self, body=body)


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Yield statements and all statements nested in them."""
    for s in body:
        yield s
        for block in s.bodies:
            yield from statements(block)


def const(kind: str, text: str) -> Expr:
    """Return a literal."""
    return Expr("const", kind, (), text)


def var(kind: str, name: str) -> Expr:
    """Return a variable's value."""
    return Expr("var", kind, (), name)
