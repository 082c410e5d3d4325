"""Write LLVM IR: fresh names, marks for later insertion, variables in memory, declarations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["Emitter", "Mark"]

Mark = list[str]
_PREFIX = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "ptr": "p0"}


def mangle(kind: str) -> str:
    """Return how an intrinsic's name spells a scalar type."""
    return "p0" if kind.startswith("ptr") else _PREFIX.get(kind, kind)


class Emitter:
    """The text of one function over vectors of `width` lanes."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.declarations: dict[str, str] = {}
        self._lines: list[str | Mark] = []
        self._slots: list[str] = []
        self._count = 0

    def lines(self) -> Iterator[str]:
        """Yield the lines, starting with the variables."""
        yield from self._slots
        for line in self._lines:
            if isinstance(line, str):
                yield line
            else:
                yield from line

    def lanes(self, kind: object, times: int = 1) -> str:
        """Return the type of a vector with one or more elements per lane."""
        return f"<{self.width * times} x {kind}>"

    @property
    def mask(self) -> str:
        """The type of a mask."""
        return f"<{self.width} x i1>"

    def fresh_name(self, prefix: str = "t") -> str:
        """Return a fresh name."""
        self._count += 1
        return f"%{prefix}{self._count}"

    def do(self, text: str) -> None:
        """Write an instruction without a value."""
        self._lines.append(f"  {text}")

    def op(self, text: str, at: Mark | None = None) -> str:
        """Write an instruction, at a mark if one is given; return the name of its value."""
        name = self.fresh_name()
        line = f"  {name} = {text}"
        if at is None:
            self._lines.append(line)
        else:
            at.append(line)
        return name

    def mark(self) -> Mark:
        """Return a position at which lines can still be added."""
        mark: Mark = []
        self._lines.append(mark)
        return mark

    def label(self, name: str) -> None:
        """Begin a block."""
        self._lines.append(f"{name[1:]}:")

    def slot(self, kind: object) -> str:
        """Return a variable in memory, which LLVM promotes to registers (SROA)."""
        name = self.fresh_name("s")
        self._slots.append(f"  {name} = alloca {kind}")
        return name

    def address(self, slot: str) -> str:
        """Return a variable's address for use in a vector of addresses, passed through empty inline assembly.

        Otherwise LLVM could keep that vector across a barrier, after which the variable may be on another stack.
        """
        return self.op(f'call ptr asm sideeffect "", "=r,0"(ptr {slot})')

    def allocate(self, size: int) -> str:
        """Return memory for an array of all lanes."""
        name = self.fresh_name("a")
        self._slots.append(f"  {name} = alloca [{size} x i8], align 64")
        return name

    def declare(self, name: str, result: str, *parameters: str, attributes: str = "") -> str:
        """Declare a function; return its name for calls."""
        self.declarations.setdefault(name, f"declare {result} @{name}({', '.join(parameters)}) {attributes}".rstrip())
        return f"@{name}"

    def call(self, name: str, result: str, *arguments: tuple[str, str], flags: str = "", at: Mark | None = None) -> str:
        """Write a call of an intrinsic, and declare it; return the name of its value."""
        callee = self.declare(name, result, *(kind for kind, _ in arguments))
        return self.op(f"call {flags}{result} {callee}({', '.join(f'{k} {v}' for k, v in arguments)})", at)

    def shuffle(self, kind: object, a: str, b: str, indices: Sequence[int | None], count: int | None = None) -> str:
        """Write a ``shufflevector`` of two vectors of `count` elements, by default one for each lane."""
        vector = f"<{count or self.width} x {kind}>"
        mask = ", ".join("i32 poison" if i is None else f"i32 {i}" for i in indices)
        return self.op(f"shufflevector {vector} {a}, {vector} {b}, <{len(indices)} x i32> <{mask}>")

    def splat(self, kind: object, text: str, at: Mark | None = None) -> str:
        """Return a vector with a scalar in each lane."""
        if text == "poison":
            return "poison"
        if text in {"null", "zeroinitializer", "undef"}:  # not poison, which would spread
            return "zeroinitializer"
        if text[0] not in "%@" and "(" not in text:
            return f"splat ({kind} {text})"
        vector = self.lanes(kind)
        first = self.op(f"insertelement {vector} poison, {kind} {text}, i64 0", at)
        return self.op(
            f"shufflevector {vector} {first}, {vector} poison, <{self.width} x i32> zeroinitializer", at,
        )  # fmt: skip

    def ramp(self, kind: str, stride: int) -> str:
        """Return the constant 0, stride, 2 stride, …."""
        bits = int(kind[1:])
        return "<" + ", ".join(f"{kind} {i * stride % (1 << bits)}" for i in range(self.width)) + ">"

    # ---- Masks. A mask is never poison, but a condition may be in inactive lanes: `select` narrows it, never `and`.

    def mask_and(self, mask: str, condition: str) -> str:
        """Return a mask of the given lanes for which a condition holds."""
        return self.op(f"select {self.mask} {mask}, {self.mask} {condition}, {self.mask} zeroinitializer")

    def mask_or(self, a: str, b: str) -> str:
        """Return the union of two masks."""
        return self.op(f"or {self.mask} {a}, {b}")

    def mask_bits(self, mask: str) -> str:
        """Return a mask as an integer."""
        return self.op(f"bitcast {self.mask} {mask} to i{self.width}")

    def any_lane(self, mask: str) -> str:
        """Return whether a mask is not empty."""
        return self.op(f"icmp ne i{self.width} {self.mask_bits(mask)}, 0")
