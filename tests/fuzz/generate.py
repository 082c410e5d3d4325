"""Generate random programs: all integer widths, vectors, floats, loops with several exits, switches, SIMD functions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from .tree import (
    FLOATS,
    INPUTS,
    INTEGERS,
    SIGNED,
    SLOTS,
    VECTORS,
    WIDTH,
    Expr,
    Helper,
    Program,
    Stmt,
    const,
    element,
    lanes,
    var,
)

__all__ = ["REDUCE", "Choice", "Generator", "Scope"]

_BINARY = ("add", "sub", "mul", "and", "or", "xor", "shl", "shr", "min", "max", "div", "rem", "absdiff", "mulhi")
_UNARY = ("not", "neg", "abs", "popcount", "clz", "ctz")
_VECTOR = ("vadd", "vsub", "vand", "vor", "vxor", "vmin", "vmax")
_COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
_FLOAT = ("fadd", "fsub", "fmul", "fmin", "fmax")
REDUCE = ("simd_sum", "simd_min", "simd_max", "simd_and", "simd_or", "simd_xor", "simd_prefix_exclusive_sum")
_FLOAT_EDGES = (
    "0.0f", "1.0f", "-1.5f", "0.5f", "3.0f", "INFINITY", "-INFINITY", "1.0e-40f", "-1.0e-45f", "16777216.0f",
    "3.4028234e38f", "NAN",
)  # fmt: skip


@dataclass(slots=True)
class Scope:
    """The names in scope at a point of the program."""

    variables: list[tuple[str, str]] = field(default_factory=list)  # may be assigned to
    fixed: list[tuple[str, str]] = field(default_factory=list)  # positions, counters: may only be read
    arrays: list[tuple[str, str]] = field(default_factory=list)  # with eight elements each
    rows: list[tuple[str, str]] = field(default_factory=list)  # arrays of two rows of four
    pointers: list[tuple[str, str]] = field(default_factory=list)  # to four elements at least
    inputs: bool = True
    loops: int = 0  # nesting depth
    breakable: bool = False
    uniform: bool = True  # all threads of a threadgroup reach this point
    result: str = ""  # the function's; "" in a kernel

    def inner(self, *fixed: tuple[str, str], **changed: object) -> Scope:
        """Return the scope of an inner block."""
        scope = Scope(
            list(self.variables), [*self.fixed, *fixed], list(self.arrays), list(self.rows), list(self.pointers),
            self.inputs, self.loops, self.breakable, self.uniform, self.result,
        )  # fmt: skip
        for name, value in changed.items():
            setattr(scope, name, value)
        return scope


Choice = tuple[Callable[[Scope], Stmt], int]


class Generator:
    """Generates one program, the same one for the same seed."""

    given: ClassVar[tuple[str, ...]] = ("i", "n", "lid")  # literals that a kernel may contain
    vectors: ClassVar[tuple[str, ...]] = VECTORS
    planar: ClassVar[bool] = False  # grids and threadgroups have two dimensions

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.names = 0
        self.helpers: list[Helper] = []
        self.together = self.dice.random() < 0.35
        self.floats = self.dice.random() < 0.5
        self.barriers = self.together and self.dice.random() < 0.5
        self.stops = not self.barriers and self.dice.random() < 0.5  # threads may return early
        self.left = self.dice.choice((6, 10, 16, 30, 60))  # statements
        self.kinds = tuple(self.dice.sample(INTEGERS, self.dice.randint(1, 4)))

    def program(self) -> Program:
        """Return the program."""
        if self.dice.random() < 0.5:
            self.helpers += [self._helper() for _ in range(self.dice.randint(1, 2))]
        scope = Scope(fixed=[("uint", name) for name in self.given])
        body = [self._declare(scope) for _ in range(self.dice.randint(2, 4))]
        while self.left > 0:
            body.append(self._statement(scope))
        body += self._results(scope)
        math = self.dice.choice(("fast", "precise"))
        return Program(self.seed, tuple(body), tuple(self.helpers), self.together, math, self.planar)

    def _name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def _kind(self) -> str:
        if self.floats and self.dice.random() < 0.25:
            return self.dice.choice(FLOATS)
        return self.dice.choice(self.kinds)

    # Functions -----------------------------------------------------------------------------------

    def _helper(self) -> Helper:
        result = self._kind()
        params = [(self._kind(), self._name("p"), self.dice.random() < 0.3) for _ in range(self.dice.randint(1, 3))]
        scope = Scope(
            variables=[(kind, name) for kind, name, _ in params], inputs=False, uniform=False, result=result,
        )  # fmt: skip
        body = [self._declare(scope)]
        body += [self._statement(scope) for _ in range(self.dice.randint(1, 4))]
        body.append(Stmt("return", (self._expr(result, scope, 2),)))
        return Helper(result, self._name("h"), tuple(params), tuple(body))

    # Statements ----------------------------------------------------------------------------------

    def _block(self, scope: Scope) -> tuple[Stmt, ...]:
        return tuple(self._statement(scope) for _ in range(self.dice.choice((1, 1, 2, 3))))

    def _statement(self, scope: Scope) -> Stmt:
        self.left -= 1
        dice, deep = self.dice, scope.loops < 3
        choices: list[Choice] = [
            (self._assign, 6), (self._declare, 2), (self._if, 3), (self._divide, 1), (self._lanewise, 1),
        ]  # fmt: skip
        if deep:
            choices += [(self._for, 4), (self._while, 2)]
        if scope.loops < 2:
            choices.append((self._switch, 1))
        if scope.arrays:
            choices.append((self._element, 3))
        if scope.breakable:
            choices.append((self._leave, 2))
        if not scope.loops and not scope.uniform:
            choices.append((self._leave, 1))
        if not scope.result:
            if scope.loops == 0:
                choices.append((self._array, 1))
            if self.helpers:
                choices.append((self._call, 2))
            if self.together:
                choices.append((self._simd, 5))
            if self.barriers and scope.uniform:
                choices.append((self._exchange, 4))
        choices += self._more(scope)
        functions, weights = zip(*choices, strict=True)
        return dice.choices(functions, weights)[0](scope)

    def _more(self, scope: Scope) -> list[Choice]:
        """Return further statements that may appear here, each with its weight."""
        return []

    def _declare(self, scope: Scope) -> Stmt:
        kind = self.dice.choice(self.vectors) if self.dice.random() < 0.2 else self._kind()
        made = Stmt("declare", (self._expr(kind, scope, 2),), text=self._name("v"), type=kind)
        scope.variables.append((kind, made.text))
        return made

    def _array(self, scope: Scope) -> Stmt:
        kind = self.dice.choice(self.kinds)
        made = Stmt("array", (self._expr(kind, scope, 1),), text=self._name("w"), type=kind)
        scope.arrays.append((kind, made.text))
        return made

    def _element(self, scope: Scope) -> Stmt:
        kind, name = self.dice.choice(scope.arrays)
        return Stmt("put", (self._expr("uint", scope, 1), self._expr(kind, scope, 2)), text=name, type=kind)

    def _assign(self, scope: Scope) -> Stmt:
        if not scope.variables:
            return self._declare(scope)
        kind, name = self.dice.choice(scope.variables)
        value = self._expr(kind, scope, 3)
        if kind in INTEGERS and kind not in SIGNED and self.dice.random() < 0.4:
            return Stmt("assign", (value,), text=name, type=self.dice.choice(("+=", "-=", "^=", "*=", "|=", "&=")))
        if kind in SIGNED and self.dice.random() < 0.3:
            return Stmt("assign", (value,), text=name, type=self.dice.choice(("^=", "|=", "&=")))
        if kind in FLOATS and self.dice.random() < 0.4:
            return Stmt("assign", (self._expr(kind, scope, 1),), text=name, type=self.dice.choice(("+=", "-=")))
        return Stmt("assign", (value,), text=name, type="=")

    def _lanewise(self, scope: Scope) -> Stmt:
        """Assign to a component of a vector, or shift an array's elements."""
        vectors = [(k, n) for k, n in scope.variables if lanes(k) > 1]
        if vectors:
            kind, name = self.dice.choice(vectors)
            value = self._expr(element(kind), scope, 2)
            if lanes(kind) != 3 and self.dice.random() < 0.4:
                return Stmt("lane", (self._expr("uint", scope, 1), value), text=name, type=kind)
            return Stmt("component", (value,), text=f"{name}.{self.dice.choice('xyzw'[: lanes(kind)])}", type=kind)
        if scope.arrays:
            kind, name = self.dice.choice(scope.arrays)
            return Stmt("move", text=name, type=self.dice.choice(("up", "down")))
        return self._assign(scope)

    def _if(self, scope: Scope) -> Stmt:
        uniform = scope.uniform and self.dice.random() < 0.2
        condition = self._uniform(scope) if uniform else self._condition(scope)
        inner = scope.inner(uniform=uniform)
        bodies = [self._block(inner)]
        if self.dice.random() < 0.4:
            bodies.append(self._block(scope.inner(uniform=uniform)))
        return Stmt("if", (condition,), tuple(bodies))

    def _uniform(self, scope: Scope) -> Expr:
        """Return a condition that is the same for all threads."""
        return Expr(self.dice.choice(_COMPARE), "bool", (var("uint", "n"), self._literal("uint")))

    def _divide(self, scope: Scope) -> Stmt:
        """Divide under a guard, as in ``if (b > 0) v = 127 % b;``."""
        kind = self.dice.choice(self.kinds)
        by = self._leaf(kind, scope)
        names = [name for k, name in scope.variables if k == kind]
        if not names or by.op == "const":
            return self._assign(scope)
        guard = Expr("gt" if kind in SIGNED else "ne", "bool", (by, const(kind, "0")))
        value = Expr(self.dice.choice(("rawdiv", "rawrem")), kind, (self._expr(kind, scope, 1), by))
        return Stmt("divide", (guard, value), text=self.dice.choice(names))

    def _for(self, scope: Scope) -> Stmt:
        kind = self.dice.choice((*INTEGERS, "uint", "int", "uint"))
        name = self._name("k")
        uniform = scope.uniform and self.dice.random() < 0.5
        bound = const(kind, str(self.dice.randint(1, 9))) if uniform else self._bound(kind, scope)
        step = self.dice.choice((1, 1, 1, 2, 3))
        way = self.dice.choice(("up", "up", "up", "le", "down"))
        inner = scope.inner((kind, name), loops=scope.loops + 1, breakable=not uniform, uniform=uniform)
        return Stmt("for", (bound, const(kind, str(step))), (self._block(inner),), text=name, type=f"{kind} {way}")

    def _bound(self, kind: str, scope: Scope) -> Expr:
        """Return a small bound from a value that the loop does not change: a position or a counter."""
        dice = self.dice
        if dice.random() < 0.25:
            return const(kind, str(dice.randint(0, 17)))
        fixed = [(k, n) for k, n in scope.fixed if k in INTEGERS]
        if not fixed:
            return const(kind, str(dice.randint(0, 9)))
        of, name = dice.choice(fixed)
        value = var(of, name)
        if of == "uint" and name == "i" and not scope.loops and WIDTH[kind] > 8 and dice.random() < 0.3:
            return Expr("cast", kind, (Expr("and", "uint", (value, const("uint", "127"))),))
        cut = dice.choice((2, 4, 8, 16, 3, 5, 7, 11))
        if dice.random() < 0.5:
            small = Expr("rawrem", of, (value, const(of, str(cut))))  # counters and positions are not negative
        else:
            small = Expr("rawand", of, (value, const(of, str(dice.choice((1, 3, 7, 15, 5))))))
        return Expr("cast", kind, (small,)) if of != kind else small

    def _while(self, scope: Scope) -> Stmt:
        kind = self.dice.choice(("while", "do"))
        inner = scope.inner(loops=scope.loops + 1, breakable=True, uniform=False)
        limit = const("uint", str(self.dice.choice((3, 7, 12, 20))))
        return Stmt(kind, (self._condition(scope), limit), (self._block(inner),), text=self._name("z"))

    def _switch(self, scope: Scope) -> Stmt:
        cases = self.dice.randint(2, 5)
        inner = scope.inner(uniform=False, breakable=False)
        bodies = tuple(self._block(inner.inner()) for _ in range(cases))
        fall = "".join(self.dice.choice("bbf") for _ in range(cases))  # break or fall through
        kind = self.dice.choice(("uint", "int", "uchar"))
        return Stmt("switch", (self._expr(kind, scope, 2),), bodies, text=fall, type=kind)

    def _leave(self, scope: Scope) -> Stmt:
        dice = self.dice
        ways = ["break", "continue"] if scope.breakable else []
        if scope.result:
            ways.append("return")
        elif self.stops and not scope.uniform:
            ways.append("stop")
        if not ways:
            return self._assign(scope)
        way = dice.choice(ways)
        if way == "return":
            left = (Stmt("return", (self._expr(scope.result, scope, 1),)),)
        elif way == "stop":
            left = (*self._results(scope), Stmt("stop"))
        else:
            left = (Stmt(way),)
        return Stmt("if", (self._condition(scope),), (left,))

    def _call(self, scope: Scope) -> Stmt:
        helper = self.dice.choice(self.helpers)
        args = []
        for kind, _, reference in helper.params:
            names = [name for k, name in scope.variables if k == kind]
            if reference and not names:
                return self._assign(scope)
            args.append(var(kind, self.dice.choice(names)) if reference else self._expr(kind, scope, 1))
        names = [name for k, name in scope.variables if k == helper.type]
        made = Expr("call", helper.type, tuple(args), helper.name)
        if not names:
            name = self._name("v")
            scope.variables.append((helper.type, name))
            return Stmt("declare", (made,), text=name, type=helper.type)
        return Stmt("assign", (made,), text=self.dice.choice(names), type="=")

    def _simd(self, scope: Scope) -> Stmt:
        dice = self.dice
        kind = dice.choice(("int", "uint", "uint", "ushort"))
        if dice.random() < 0.25:
            made = Expr(dice.choice(("simd_any", "simd_all", "simd_ballot")), "uint", (self._condition(scope),))
        elif dice.random() < 0.2:
            made = Expr("simd_broadcast_first", kind, (self._expr(kind, scope, 2),))
        elif scope.uniform and not self.stops and dice.random() < 0.4:
            made = Expr("simd_shuffle", kind, (self._expr(kind, scope, 1), self._expr("uint", scope, 1)))
        else:
            made = Expr(dice.choice(REDUCE), kind, (self._expr(kind, scope, 2),))
        name = self._name("v")
        scope.variables.append((made.type, name))
        return Stmt("declare", (made,), text=name, type=made.type)

    def _exchange(self, scope: Scope) -> Stmt:
        """Store a value in threadgroup memory, synchronize, and load another thread's."""
        name = self._name("v")
        made = Stmt("exchange", (self._expr("uint", scope, 2), self._expr("uint", scope, 1)), text=name, type="uint")
        scope.variables.append(("uint", name))
        return made

    def _results(self, scope: Scope) -> list[Stmt]:
        """Write the variables' values to the thread's words of the output."""
        found: list[Expr] = [var(kind, name) for kind, name in scope.variables]
        found += [Expr("take", kind, (const("uint", "3"),), name) for kind, name in scope.arrays]
        found += [Expr("cell", kind, (const("uint", "6"),), name) for kind, name in scope.rows]
        found += [Expr("through", kind, (const("uint", "2"),), name) for kind, name in scope.pointers]
        self.dice.shuffle(found)
        slots = []
        for slot in range(SLOTS):
            held = tuple(Expr("bits", "uint", (e,)) for e in found[slot::SLOTS])
            if held:
                slots.append(Stmt("store", (const("uint", str(slot)), Expr("mix", "uint", held))))
        return slots

    # Expressions ---------------------------------------------------------------------------------

    def _condition(self, scope: Scope) -> Expr:
        dice = self.dice
        if dice.random() < 0.2:
            return Expr(dice.choice(("both", "either")), "bool", (self._condition(scope), self._condition(scope)))
        kind = self._kind()
        return Expr(dice.choice(_COMPARE), "bool", (self._expr(kind, scope, 1), self._leaf(kind, scope)))

    def _literal(self, kind: str) -> Expr:
        dice = self.dice
        if kind == "float":
            return const(kind, dice.choice(_FLOAT_EDGES))
        if kind == "half":
            return const(kind, dice.choice(("half(0)", "half(1)", "half(-2.5f)", "half(1024)", "half(6.0e-8f)")))
        low = -(2 ** (WIDTH[kind] - 1)) if kind in SIGNED else 0
        high = low + 2 ** WIDTH[kind] - 1
        value = dice.choice((0, 1, 2, 3, 7, 31, 127, high, low + 1, high // 2, dice.randint(low, high)))
        return const(kind, str(value))

    def _leaf(self, kind: str, scope: Scope) -> Expr:
        dice = self.dice
        known = [name for k, name in (*scope.variables, *scope.fixed) if k == kind]
        if known and dice.random() < 0.7:
            return var(kind, dice.choice(known))
        arrays = [name for k, name in scope.arrays if k == kind]
        if arrays and dice.random() < 0.5:
            return Expr("take", kind, (self._any("uint", scope),), dice.choice(arrays))
        if scope.inputs and kind in INPUTS and dice.random() < 0.6:
            return Expr("load", kind, (self._any("uint", scope),), INPUTS[kind])
        if kind in INTEGERS and dice.random() < 0.4:
            others = [(k, n) for k, n in (*scope.variables, *scope.fixed) if k in INTEGERS]
            if others:
                return Expr("cast", kind, (var(*dice.choice(others)),))
        return self._literal(kind)

    def _any(self, kind: str, scope: Scope) -> Expr:
        known = [name for k, name in (*scope.variables, *scope.fixed) if k == kind]
        return var(kind, self.dice.choice(known)) if known else self._literal(kind)

    def _expr(self, kind: str, scope: Scope, depth: int) -> Expr:
        if lanes(kind) > 1:
            return self._vector(kind, scope, depth)
        if depth == 0 or self.dice.random() < 0.15:
            return self._leaf(kind, scope)
        return self._real(kind, scope, depth - 1) if kind in FLOATS else self._whole(kind, scope, depth - 1)

    def _whole(self, kind: str, scope: Scope, depth: int) -> Expr:
        dice = self.dice

        def of() -> Expr:
            return self._expr(kind, scope, depth)

        roll = dice.random()
        if roll < 0.08:
            made = self._met(kind, scope, depth)
        elif roll < 0.55:
            made = Expr(dice.choice(_BINARY), kind, (of(), of()))
        elif roll < 0.68:
            made = Expr(dice.choice(_UNARY), kind, (of(),))
        elif roll < 0.76:
            made = Expr("choose", kind, (self._condition(scope), of(), of()))
        elif roll < 0.84:
            made = Expr("cast", kind, (self._expr(self._kind_of_integer(), scope, depth),))
        elif roll < 0.90:
            made = Expr(dice.choice(("median3", "clamp")), kind, (of(), of(), of()))
        elif self.floats and roll < 0.95 and WIDTH[kind] >= 32:
            made = Expr("truncated", kind, (self._expr("float", scope, depth),))
        else:
            made = self._component(kind, scope) or Expr(
                "cast", kind, (Expr(dice.choice(_COMPARE), "bool", (of(), of())),)
            )
        return made

    def _met(self, kind: str, scope: Scope, depth: int) -> Expr:
        """Return a value combined with one derived from it: x and ~x, x and -1 - x."""
        value = self._leaf(kind, scope)
        if self.dice.random() < 0.6:
            other = Expr("not", kind, (value,))
        else:
            other = Expr("sub", kind, (self._expr(kind, scope, depth), value))
        return Expr(self.dice.choice(("min", "max", "xor", "sub", "absdiff")), kind, (value, other))

    def _component(self, kind: str, scope: Scope) -> Expr | None:
        """Return a component of a vector, or None if there is no such vector."""
        vectors = [(k, n) for k, n in scope.variables if lanes(k) > 1 and element(k) == kind]
        if not vectors:
            return None
        of, name = self.dice.choice(vectors)
        return Expr("component", kind, (), f"{name}.{self.dice.choice('xyzw'[: lanes(of)])}")

    def _kind_of_integer(self) -> str:
        return self.dice.choice(self.kinds)

    def _real(self, kind: str, scope: Scope, depth: int) -> Expr:
        dice = self.dice

        def of() -> Expr:
            return self._expr(kind, scope, depth)

        roll = dice.random()
        if roll < 0.55:
            return Expr(dice.choice(_FLOAT), kind, (of(), of()))
        if roll < 0.7:
            return Expr(dice.choice(("fneg", "fabs", "floor", "ceil", "trunc")), kind, (of(),))
        if roll < 0.8:
            return Expr("choose", kind, (self._condition(scope), of(), of()))
        if kind == "half":
            return Expr("tohalf", kind, (self._expr("float", scope, depth),))
        if roll < 0.9:
            return Expr("tofloat", kind, (self._expr(self._kind_of_integer(), scope, depth),))
        return Expr("tofloat", kind, (self._leaf("half", scope),))

    def _vector(self, kind: str, scope: Scope, depth: int) -> Expr:
        dice, one, n = self.dice, element(kind), lanes(kind)
        known = [name for k, name in scope.variables if k == kind]
        if known and (depth == 0 or dice.random() < 0.4):
            return var(kind, dice.choice(known))
        wider = [(k, name) for k, name in scope.variables if lanes(k) > 1 and element(k) == one]
        if wider and dice.random() < 0.3:
            of, name = dice.choice(wider)
            return Expr("swizzle", kind, (), f"{name}." + "".join(dice.choice("xyzw"[: lanes(of)]) for _ in range(n)))
        if depth and dice.random() < 0.5:
            names = ("vadd", "vsub") if one in FLOATS else _VECTOR
            return Expr(dice.choice(names), kind, tuple(self._vector(kind, scope, depth - 1) for _ in range(2)))
        return Expr("make", kind, tuple(self._expr(one, scope, min(depth, 1)) for _ in range(n)))
