"""Write statements, in C++ for the host, as a threadgroup runs them in lockstep.

Each statement runs for every active thread before the next one begins, with a mask for each block. This spells out the
meaning of SIMD functions and barriers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .statements import Writer, loop, uneven
from .tree import LARGEST, SLOTS, Stmt, unsigned

__all__ = ["LockstepWriter"]


_FROM = {  # the lane that a shuffle reads
    "simd_shuffle_xor": "t % 32 ^ {0}", "simd_shuffle_up": "t % 32 - {0}", "simd_shuffle_down": "t % 32 + {0}",
    "simd_shuffle_rotate_down": "(t + {0}) % 32", "quad_shuffle_xor": "t % 32 ^ {0}",
}  # fmt: skip


class LockstepWriter(Writer):
    """Writes a kernel's statements; each variable is an array with one element per thread."""

    def __init__(self) -> None:
        self.count = 0
        self.active = "!gone[t]"
        self.leaving = ""  # the enclosing loop's number, or ""
        self.special = {
            "declare": self._declare, "pointer": self._declare, "array": self._array, "rows": self._rows,
            "exchange": self._exchange, "store": self._store, "break": self._leave, "continue": self._leave,
            "stop": self._stop, "if": self._if, "for": self._loop, "while": self._loop, "do": self._loop,
            "switch": self._switch, "uneven": self._loop, "meet": self._meet, "fill": self._for_all,
            "clear": self._for_all, "atomic": self._for_all, "matrices": self._matrices,
            "read": self._read, "own": self._own, "gather": self._gather,
        }  # fmt: skip

    def name(self, name: str) -> str:
        """Return a variable's spelling."""
        return name if name in {"n", "zero", "size"} else f"{name}[t]"

    def stmt(self, s: Stmt, pad: str) -> str:
        """Return a statement's text for all threads."""
        if s.kind in self.special:
            return self.special[s.kind](s, pad)
        if s.kind == "tree":
            return super().stmt(s, pad)
        name, dot, part = s.text.partition(".")
        return self._each(self.simple(replace(s, text=f"{name}[t]{dot}{part}")), pad)

    def _each(self, text: str, pad: str, active: str = "") -> str:
        """Return a statement that runs for every active thread."""
        return f"{pad}for (uint t = 0; t < size; ++t) if ({active or self.active}) {{ {text} }}\n"

    def _fresh(self) -> str:
        """Return a number that no name uses yet."""
        self.count += 1
        return str(self.count)

    # Statements without blocks -------------------------------------------------------------------

    def _declare(self, s: Stmt, pad: str) -> str:
        if s.exprs[0].op.startswith(("simd_", "quad_")):
            return self._simd(s, pad)
        value = self.expr(s.exprs[0])
        return f"{pad}{s.type} {s.text}[{LARGEST}];\n" + self._each(f"{s.text}[t] = {value};", pad)

    def _array(self, s: Stmt, pad: str) -> str:
        value = f"{s.type}({unsigned(s.type)}({self.expr(s.exprs[0])}) + j)"
        fill = self._each(f"for (uint j = 0; j < 8; ++j) {s.text}[t][j] = {value};", pad)
        return f"{pad}{s.type} {s.text}[{LARGEST}][8];\n{fill}"

    def _rows(self, s: Stmt, pad: str) -> str:
        value = f"{s.type}({unsigned(s.type)}({self.expr(s.exprs[0])}) + j)"
        fill = self._each(f"for (uint j = 0; j < 8; ++j) {s.text}[t][j / 4][j & 3] = {value};", pad)
        return f"{pad}{s.type} {s.text}[{LARGEST}][2][4];\n{fill}"

    def _for_all(self, s: Stmt, pad: str) -> str:
        return self._each(self.simple(s), pad)

    def _meet(self, _: Stmt, __: str) -> str:
        return ""

    def _read(self, s: Stmt, pad: str) -> str:
        return f"{pad}uint {s.text}[{LARGEST}];\n" + self._each(
            f"{s.text}[t] = tile[{self.expr(s.exprs[0])} % size];", pad
        )

    def _own(self, s: Stmt, pad: str) -> str:
        value = "tile[t]" if s.type == "each" else "t ? 0 : tile[0]"
        return f"{pad}uint {s.text}[{LARGEST}];\n" + self._each(f"{s.text}[t] = {value};", pad)

    def _gather(self, s: Stmt, pad: str) -> str:
        return f"{pad}uint {s.text}[{LARGEST}];\n" + self._each(f"{s.text}[t] = held[{self.expr(s.exprs[0])}];", pad)

    def _matrices(self, s: Stmt, pad: str) -> str:
        n, inner = self._fresh(), f"{pad}  "
        upper, lower, place = map(self.expr, s.exprs)
        other = "m[j % 8 * 8 + k]" if s.type.endswith("true") else "m[k * 8 + j % 8]"
        text = f"{pad}uint {s.text}[{LARGEST}], given{n}[{2 * LARGEST}];\n"
        text += self._each(f"uint* m = given{n} + t / 32 * 64 + t % 32; m[0] = {upper} & 7; m[32] = {lower} & 7;", pad)
        text += f"{pad}for (uint first = 0; first < size; first += 32) {{\n"
        text += f"{inner}const uint* m = given{n} + 2 * first; uint product[64] = {{}};\n"
        text += f"{inner}for (uint j = 0; j < 64; ++j) for (uint k = 0; k < 8; ++k) "
        text += f"product[j] += m[j / 8 * 8 + k] * {other};\n"
        text += self._each(f"if (t / 32 == first / 32) {s.text}[t] = product[{place} & 63];", inner)
        return f"{text}{pad}}}\n"

    def _exchange(self, s: Stmt, pad: str) -> str:
        given, other = map(self.expr, s.exprs)
        put = self._each(f"shared[t] = {given};", pad)
        take = self._each(f"{s.text}[t] = shared[{other} % size];", pad)
        return f"{pad}uint {s.text}[{LARGEST}];\n{put}{take}"

    def _store(self, s: Stmt, pad: str) -> str:
        slot, value = map(self.expr, s.exprs)
        return self._each(f"out[i[t] * {SLOTS} + {slot}] = {value};", pad)

    def _leave(self, s: Stmt, pad: str) -> str:
        return self._each(f"{s.kind}{self.leaving}[t] = true;", pad)

    def _stop(self, _: Stmt, pad: str) -> str:
        return self._each("gone[t] = true;", pad)

    def _simd(self, s: Stmt, pad: str) -> str:
        e, n = s.exprs[0], self._fresh()
        a = [self.expr(x) for x in e.args]
        kind = "uint" if e.args[0].type == "bool" else e.type
        text = f"{pad}{s.type} {s.text}[{LARGEST}]; {kind} given{n}[{LARGEST}]; bool on{n}[{LARGEST}] = {{}};\n"
        text += self._each(f"given{n}[t] = {a[0]}; on{n}[t] = true;", pad)
        if e.op in _FROM:
            there = f"uint there = {_FROM[e.op].format(a[1])}; bool in = there < width[t];"
            return text + self._each(f"{there} {s.text}[t] = given{n}[in ? t / 32 * 32 + there : t];", pad)
        if e.op == "simd_shuffle":
            return text + self._each(f"{s.text}[t] = given{n}[t / 32 * 32 + {a[1]} % width[t]];", pad)
        return text + f"{pad}{e.op}(given{n}, on{n}, {s.text}, size);\n"

    # Statements with blocks ----------------------------------------------------------------------

    def _inside(self, mask: str, body: Iterable[Stmt], pad: str) -> str:
        """Return the text of a block that a mask's threads run."""
        left = f" && !break{self.leaving}[t] && !continue{self.leaving}[t]" if self.leaving else ""
        outer, self.active = self.active, f"{mask}[t] && !gone[t]{left}"
        text = self.block(body, pad)
        self.active = outer
        return text

    def _if(self, s: Stmt, pad: str) -> str:
        n = self._fresh()
        text = f"{pad}bool yes{n}[{LARGEST}] = {{}}, no{n}[{LARGEST}] = {{}};\n"
        text += self._each(f"if ({self.expr(s.exprs[0])}) yes{n}[t] = true; else no{n}[t] = true;", pad)
        for mask, body in zip(("yes", "no"), s.bodies, strict=False):  # there may be no else
            text += self._inside(f"{mask}{n}", body, pad)
        return text

    def _loop(self, s: Stmt, pad: str) -> str:
        n, inner = self._fresh(), f"{pad}  "
        kind, start, test, after = self._turns(s, n)
        alive = f"in{n}[t] && !gone[t] && !break{n}[t]"
        text = f"{pad}{kind} {s.text}[{LARGEST}]; bool in{n}[{LARGEST}] = {{}}, break{n}[{LARGEST}] = {{}};\n"
        text += self._each(f"{s.text}[t] = {start}; in{n}[t] = true;", pad)
        text += f"{pad}for (;;) {{\n{inner}bool any = false, continue{n}[{LARGEST}] = {{}};\n"
        text += self._each(f"in{n}[t] = {test}; any = any || in{n}[t];", inner, alive)
        text += f"{inner}if (!any) break;\n"
        outer, self.leaving = self.leaving, n
        text += self._inside(f"in{n}", s.bodies[0], inner)
        self.leaving = outer
        return text + (self._each(after, inner, alive) if after else "") + f"{pad}}}\n"

    def _turns(self, s: Stmt, n: str) -> tuple[str, str, str, str]:
        """Return the type of a loop's counter, its first value, the test before an iteration, and the step after it."""
        x, counter = [self.expr(e) for e in s.exprs], f"{s.text}[t]"
        if s.kind == "for":
            start, test, step = loop(s, x[0], counter)
            return s.type.split()[0], start, test, f"{step};"
        if s.kind == "uneven":
            start, test, step = uneven(s, counter)
            return "uint", start, test, f"{step};"
        if s.kind == "while":
            return "uint", "0", f"({x[0]} && {counter}++ < {x[1]})", ""
        return "uint", "0", "true", f"in{n}[t] = ({x[0]} && ++{counter} < {x[1]});"

    def _switch(self, s: Stmt, pad: str) -> str:
        n = self._fresh()
        text = f"{pad}uint to{n}[{LARGEST}]; bool in{n}[{LARGEST}] = {{}}, chosen{n}[{LARGEST}] = {{}};\n"
        choice = f"{unsigned(s.type)}({self.expr(s.exprs[0])}) % {len(s.bodies)}"
        text += self._each(f"to{n}[t] = {choice}; chosen{n}[t] = true;", pad)
        for i, body in enumerate(s.bodies):
            text += f"{pad}for (uint t = 0; t < size; ++t) if (chosen{n}[t] && to{n}[t] == {i}) in{n}[t] = true;\n"
            text += self._inside(f"in{n}", body, pad)
            if s.text[i] == "b":
                text += f"{pad}for (uint t = 0; t < size; ++t) in{n}[t] = false;\n"
        return text
