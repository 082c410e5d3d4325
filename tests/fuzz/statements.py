"""Write statements and functions as one thread runs them, the part that Metal and the host's C++ share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from .expressions import ExpressionWriter
from .tree import ATOMICS, INPUTS, LARGEST, SLOTS, STEPS, TREES, WIDTH, Helper, Stmt, lanes, unsigned

__all__ = ["Writer", "bits_of", "inputs", "loop", "place", "uneven"]

_MEET = "threadgroup_barrier(mem_flags::mem_threadgroup);"
_WITHIN = "simdgroup_barrier(mem_flags::mem_threadgroup);"
# Statements without blocks. In braces: an expression's number; the statement's `text` and `type`; `u`, the unsigned
# type of its arithmetic; `last`, the index of a vector's last component.
_FORMS = {
    "declare": "{type} {text} = {0};",
    "array": "{type} {text}[8]; for (uint j = 0; j < 8; ++j) {text}[j] = {type}({u}({0}) + j);",
    "rows": "{type} {text}[2][4]; for (uint j = 0; j < 8; ++j) {text}[j / 4][j & 3] = {type}({u}({0}) + j);",
    "pointer": "{reference}{type} {text} = {0};",
    "through": "{text}[{0} & 3] = {1};",
    "put": "{text}[{0} & 7] = {1};",
    "assign": "{text} {type} {0};",
    "component": "{text} = {0};",
    "lane": "{text}[{0} & {last}] = {1};",
    "divide": "if ({0}) {text} = {1};",
    "move up": "for (int j = 7; j > 0; j--) {text}[j] = {text}[j - 1];",
    "move down": "for (int j = 0; j < 7; j++) {text}[j] = {text}[j + 1];",
    "meet": _MEET,
    "fill 0": "tile[{lid}] = {0};",
    "fill 1": "tile[size - 1 - {lid}] = {0};",
    "fill 2": "tile[({lid} + 1) % size] = {0};",
    "fold": "if ({lid} < {text} && {lid} + {text} < size) tile[{lid}] = tile[{lid}] {type} tile[{lid} + {text}];",
    "clear": f"for (uint j = {{lid}}; j < {2 * LARGEST}; j += size) tile[j] = 0;",
    "halves": "if ({lid} < {text}) tile[{lid}] {type}= tile[{lid} + {text}];",
    "pairs": "if ({lid} % (2 * {text}) == 0) tile[{lid}] {type}= tile[{lid} + {text}];",
    "read 0": "uint {text} = tile[{0} % size];",
    "read 1": "const threadgroup uint* {text}p = tile + {0} % size;\nuint {text} = *{text}p;",
    "read 2": "threadgroup uint (*{text}p)[8] = (threadgroup uint (*)[8])tile;\n"
              "uint {text} = {text}p[{0} % size / 8][{0} % size % 8];",
    "own first": "uint {text} = 0;\nif ({lid} == 0) {text} = tile[0];",
    "own each": "uint {text} = tile[{lid}];",
    "gather": f"{_MEET}\nuint {{text}} = atomic_load_explicit(&held[{{0}}], memory_order_relaxed);\n{_MEET}",
    # The half of a SIMD-group's matrix that comes from each expression has one element of each lane.
    "matrices": f"threadgroup {{of}}* {{text}}m = (threadgroup {{of}}*)matrices + {{lid}} / 32 * 64;\n{_WITHIN}\n"
                f"{{text}}m[{{lid}} % 32] = {{of}}({{0}} & 7); {{text}}m[{{lid}} % 32 + 32] = {{of}}({{1}} & 7);\n"
                f"{_WITHIN}\nsimdgroup_matrix<{{of}}, 8, 8> {{text}}a, {{text}}b, {{text}}c;\n"
                "simdgroup_load({text}a, {text}m, 8); simdgroup_load({text}b, {text}m, 8, ulong2(0), {transposed});\n"
                f"simdgroup_multiply({{text}}c, {{text}}a, {{text}}b);\n{_WITHIN}\n"
                f"simdgroup_store({{text}}c, {{text}}m, 8);\n{_WITHIN}\nuint {{text}} = uint({{text}}m[{{2}} & 63]);",
    "break": "break;",
    "continue": "continue;",
    "return": "return {0};",
    "stop": "return;",
    "store": f"out[i * {SLOTS} + {{0}}] = {{1}};",
    "exchange": f"shared[lid] = {{0}};\n{_MEET}\nuint {{text}} = shared[{{1}} % size];\n{_MEET}",
}
_OF_SEVERAL = {"move", "fill", "read", "own"}  # the statement's type selects the form
# Statements with one block: the text that opens it, and the text that closes it.
_BLOCKS = {
    "for": ("for ({kind} {text} = {start}; {test}; {step}) {{", "}}"),
    "uneven": ("for (uint {text} = {start}; {test}; {step}) {{", "}}"),
    "while": ("uint {text} = 0;\nwhile ({0} && {text}++ < {1}) {{", "}}"),
    "do": ("uint {text} = 0;\ndo {{", "}} while ({0} && ++{text} < {1});"),
}


_SIGNS = {"add": "+", "or": "|", "xor": "^", "and": "&"}


class Writer(ExpressionWriter):
    """Writes statements as the host's C++; subclasses override what differs."""

    reference: ClassVar[str] = ""  # the address space of parameters passed by reference

    def block(self, body: Iterable[Stmt], pad: str) -> str:
        """Return the text of statements, each starting on a new line."""
        return "".join(self.stmt(s, pad) for s in body)

    def stmt(self, s: Stmt, pad: str) -> str:
        """Return the text of a statement."""
        if s.kind == "if":
            return self._if(s, pad)
        if s.kind == "switch":
            return self._switch(s, pad)
        if s.kind == "tree":
            return self.block(_spelled_out(s), pad)
        if s.kind in _BLOCKS:
            return self._loop(s, pad)
        return _padded(self.simple(s), pad)

    def simple(self, s: Stmt) -> str:
        """Return the text of a statement that has no blocks."""
        words: dict[str, object] = {"type": s.type, "text": s.text, "lid": self.name("lid")}
        if s.kind == "pointer":
            words["reference"] = self.reference
        if s.kind == "matrices":
            words["of"], words["transposed"] = s.type.split()
        if s.kind == "lane":
            words["last"] = lanes(s.type) - 1
        if s.type in WIDTH:
            words["u"] = unsigned(s.type)
        if s.kind == "atomic":
            return self.atomic(s)
        form = _FORMS[f"{s.kind} {s.type}" if s.kind in _OF_SEVERAL else s.kind]
        return form.format(*map(self.expr, s.exprs), **words)

    def atomic(self, s: Stmt) -> str:
        """Return the text of an atomic operation; on the host a plain update, since only one thread runs there."""
        cell = f"{s.type}[{place(s.text)} + ({self.expr(s.exprs[0])} & 1)]"
        value = self.expr(s.exprs[1])
        if s.text in {"min", "max"}:
            return f"{cell} = {s.text}({cell}, uint({value}));"
        return f"{cell} {_SIGNS[s.text]}= {value};"

    def helper(self, h: Helper) -> str:
        """Return the text of a function."""
        params = ", ".join(
            f"{f'{self.reference}{kind}&' if changes else kind} {name}" for kind, name, changes in h.params
        )
        return f"static {h.type} {h.name}({params}, uint zero) {{\n{self.block(h.body, '  ')}}}\n"

    def _if(self, s: Stmt, pad: str) -> str:
        blocks = [f"{{\n{self.block(body, f'{pad}  ')}{pad}}}" for body in s.bodies]
        return f"{pad}if ({self.expr(s.exprs[0])}) {' else '.join(blocks)}\n"

    def _loop(self, s: Stmt, pad: str) -> str:
        x = [self.expr(e) for e in s.exprs]
        words = {"text": s.text}
        if s.kind == "for":
            start, test, step = loop(s, x[0], s.text)
            words |= {"kind": s.type.split()[0], "start": start, "test": test, "step": step}
        elif s.kind == "uneven":
            start, test, step = uneven(s, s.text)
            words |= {"start": start, "test": test, "step": step}
        opens, closes = (_padded(form.format(*x, **words), pad) for form in _BLOCKS[s.kind])
        return f"{opens}{self.block(s.bodies[0], f'{pad}  ')}{closes}"

    def _switch(self, s: Stmt, pad: str) -> str:
        text = f"{pad}switch ({unsigned(s.type)}({self.expr(s.exprs[0])}) % {len(s.bodies)}) {{\n"
        for i, body in enumerate(s.bodies):
            label = f"case {i}:" if i < len(s.bodies) - 1 else "default:"
            leave = " break;" if s.text[i] == "b" else ""
            text += f"{pad}  {label} {{\n{self.block(body, f'{pad}    ')}{pad}  }}{leave}\n"
        return f"{text}{pad}}}\n"


def loop(s: Stmt, bound: str, name: str) -> tuple[str, str, str]:
    """Return the initial value, the condition and the step of a `for`."""
    way, step = s.type.split()[1], s.exprs[1].text
    if way == "down":
        return bound, f"{name} >= {step}", f"{name} -= {step}"
    by = f"{name}++" if step == "1" else f"{name} += {step}"
    return "0", f"{name} {'<=' if way == 'le' else '<'} {bound}", by


def uneven(s: Stmt, name: str) -> tuple[str, str, str]:
    """Return the initial value, the condition and the step of a reduction loop."""
    start, test, step = (part.format(k=name) for part in (*TREES, *STEPS)[int(s.type)])
    return start, test, step


def _spelled_out(s: Stmt) -> tuple[Stmt, ...]:
    """Expand a reduction in threadgroup memory into its statements: fill, reduce, read."""
    way, sign, when, form, guard, result = s.type.split()
    meet, fold = Stmt("meet"), Stmt(guard, text=f"{s.text}k", type=sign)
    body = (meet, fold, *s.bodies[0]) if when == "early" else (*s.bodies[0], fold, meet)
    clear = () if guard == "fold" else (meet, Stmt("clear"))
    read = (meet, Stmt("read", s.exprs[1:], text=s.text, type=form))
    own = (Stmt("own", text=s.text, type=result),)  # elements that only this thread has written
    return (
        *clear, meet, Stmt("fill", s.exprs[:1], type=form), meet, Stmt("uneven", (), (body,), f"{s.text}k", way),
        *(read if result == "any" else own), meet,
    )  # fmt: skip


def place(atomic: str) -> int:
    """Return the index of the first of an atomic operation's two counters."""
    return 2 * list(ATOMICS).index(atomic)


def bits_of(vectors: Iterable[str]) -> str:
    """Return the macro calls that combine vectors of some types into one word: see shared.h."""
    return "".join(f"BITS_OF_{lanes(v)}({v})\n" for v in vectors)


def inputs(space: str) -> str:
    """Return the input arrays as parameters."""
    return ", ".join(f"{space} {kind}* {name}" for kind, name in INPUTS.items())


def _padded(text: str, pad: str) -> str:
    return "".join(f"{pad}{line}\n" for line in text.splitlines())
