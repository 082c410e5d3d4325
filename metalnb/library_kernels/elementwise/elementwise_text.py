"""Write the MSL of an elementwise op: a cell with its kernels, generated from its expression."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...arrays.promotion import DTYPES
from ..launching.programs import instantiation

__all__ = ["LOOPS", "RESERVED", "STEPS", "Formula"]

LOOPS = {
    "b": ("bool",),
    "i": ("int8", "int16", "int32", "int64"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "f": ("float32", "float16", "bfloat16"),
}
# Names that the generated source uses. Operands and parameters cannot have these names, or names that end in "_".
RESERVED = frozenset(("L", "R", "T", "out", "position", "walk"))
STEPS = {"u": "Unit", "s": "Same", "g": "Strided", "U": "Whole", "S": "One", "V": "Streamed"}


@dataclass(frozen=True)
class Formula:
    """The MSL of an elementwise op: an expression, and the names in it.

    Attributes
    ----------
    name : str
    expression : str or mapping of str to str
        MSL that uses the operands, the parameters, and the types ``T``, to compute in, and ``L``, in memory. A mapping
        has an expression for each group of kinds: ``{"f": "floor(x / y)", "iu": "floor_quotient(x, y)"}``.
    doc : str
        One line.
    kinds : str
        The kinds of dtypes to compute in, if `expression` is not a mapping: ``b`` bool, ``i`` signed, ``u`` unsigned,
        ``f`` floating. An op for floats only converts integers and bool to float32.
    operands : tuple of str
        The names of the arrays. Those also named in `masks` are bool in every kernel.
    parameters : mapping of str to float
        Scalars that the kernel receives as ``constant float&``, with their defaults.
    result : {"same", "bool"}
    preamble : str
        MSL before the kernel.
    math : {"precise", "fast"}
        The math mode to compile with.
    """

    name: str
    expression: str | Mapping[str, str]
    doc: str = ""
    kinds: str = "f"
    operands: tuple[str, ...] = ("x",)
    masks: tuple[str, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    result: Literal["same", "bool"] = "same"
    preamble: str = ""
    math: Literal["precise", "fast"] = "precise"

    def __post_init__(self) -> None:
        if not isinstance(self.expression, str):
            object.__setattr__(self, "kinds", "".join(self.expression))

    @functools.cached_property
    def groups(self) -> Mapping[str, str]:
        """The expression for each group of kinds."""
        return {self.kinds: self.expression} if isinstance(self.expression, str) else self.expression

    def group(self, kind: str) -> str:
        """Return the group that a kind belongs to."""
        return next(g for g in self.groups if kind in g)

    def kernel(self, dtype: str, steps: str) -> str:
        """Return the name of a dtype's kernel, with a letter for the layout of each operand and of the result."""
        return f"{DTYPES[dtype]}_{steps}"

    def text(self, group: str, *, several: bool = False, streams: bool = False) -> str:
        """Return the cell for one group of loops.

        With `several`, each thread takes several elements of contiguous operands. With `streams`, the cell also has
        kernels that write past the caches.
        """
        second_kernel = ["", *self._multi_element_kernel(group)] if several else []
        instances = self._instances(group, several=several, streams=streams)
        return "\n".join([*self._top(streams=streams), *self._kernel(group), *second_kernel, "", *instances]) + "\n"

    def expression_position(self, group: str) -> tuple[int, int]:
        """Return the expression's line and column in the source, both from 1."""
        lines = self.text(group).splitlines()
        number = next(n for n, line in enumerate(lines, 1) if line.lstrip().startswith("keep<R, outStep>("))
        return number, lines[number - 1].index(self._store_text(group)) + len(self._result_start) + 1

    @property
    def _result_start(self) -> str:
        return f"keep<R, outStep>(out_, walk, {len(self.operands)}, position.x, "

    def _store_text(self, group: str) -> str:
        return f"{self._result_start}{self.groups[group]});"

    @property
    def preamble_lines(self) -> range:
        """The numbers of the preamble's lines in the source, from 1."""
        first = len(self._includes(streams=False)) + 1
        return range(first, first + self.preamble.count("\n") + 1) if self.preamble else range(0)

    def _includes(self, *, streams: bool) -> list[str]:
        header = "streamed" if streams else "elementwise"
        return [f"// {self.name}: {self.doc}", f"#include <metalnb/{header}.h>", ""]

    def _top(self, *, streams: bool) -> list[str]:
        lines = self._includes(streams=streams)
        return [*lines, *self.preamble.rstrip().splitlines(), ""] if self.preamble else lines

    def _head(self, name: str, position: str) -> list[str]:
        """Return the lines of a kernel's signature, and the line that names the type to compute in."""
        steps = ", ".join(f"typename {n}Step" for n in (*self.operands, "out"))
        return [
            f"template <typename L, typename R, {steps}>",
            f"kernel void {name}(",
            *(f"    device const memory_of<{self._type(n)}>* {n}_," for n in self.operands),
            "    device memory_of<R>* out_,",
            "    constant Walk& walk,",
            *(f"    constant float& {n}," for n in self.parameters),
            f"    {position} [[thread_position_in_grid]]) {{",
            "    using T = value_of<L>;",
        ]

    def _kernel(self, group: str) -> list[str]:
        names = (*self.operands, "out")
        return [
            *self._head(f"{self.name}_", "uint2 position"),
            *(f"    {n}_ += {n}Step::row(walk, {i}, position.y);" for i, n in enumerate(names)),
            *(f"    const value_of<{self._type(n)}> {n} = fetch<{self._type(n)}, {n}Step>({n}_, walk, {i}, position.x);"
              for i, n in enumerate(self.operands)),
            f"    {self._store_text(group)}",
            "}",
        ]  # fmt: skip

    def _multi_element_kernel(self, group: str) -> list[str]:
        """Return the kernel for devices with slow loads: the loads of several elements are in flight at once."""
        return [
            *self._head(f"{self.name}_several", "uint thread_"),
            "    const uint count_ = walk.sizes[0], first_ = first_of_several(thread_);",
            *(f"    value_of<{self._type(n)}> {n}_s[SEVERAL];" for n in self.operands),
            "    for (uint k_ = 0; k_ < SEVERAL; ++k_) {",
            "        const uint at_ = min(first_ + k_ * RUN, count_ - 1);",
            *(f"        {n}_s[k_] = fetch<{self._type(n)}, {n}Step>({n}_, walk, {i}, at_);"
              for i, n in enumerate(self.operands)),
            "    }",
            "    for (uint k_ = 0; k_ < SEVERAL; ++k_) {",
            "        const uint at_ = first_ + k_ * RUN;",
            *(f"        const value_of<{self._type(n)}> {n} = {n}_s[k_];" for n in self.operands),
            "        if (at_ < count_)",
            f"            {self._store_text(group).replace('position.x', 'at_', 1)}",
            "    }",
            "}",
        ]  # fmt: skip

    def _type(self, operand: str) -> str:
        return "bool" if operand in self.masks else "L"

    def _instances(self, group: str, *, several: bool, streams: bool) -> list[str]:
        """Return the instantiations of all kernels; each is compiled when a call first needs it."""
        instances = []
        for dtype in (d for kind in group for d in LOOPS[kind]):
            loop = DTYPES[dtype]
            result = "bool" if self.result == "bool" else loop
            for steps in self._steps(streams=streams):
                suffix = "several" if several and steps.isupper() else ""
                template = f"{self.name}_{suffix}<{loop}, {result}, {', '.join(STEPS[s] for s in steps)}>"
                instances.append(instantiation(self.kernel(dtype, steps), template))
        return instances

    def _steps(self, *, streams: bool) -> list[str]:
        """Return the variants that `plan_elementwise` may choose."""
        count = len(self.operands)
        if count == 1:
            return [*["UV"] * streams, "UU", "uu", "gu", "gg"]
        mixed_steps = [f"{i:0{count}b}".replace("1", "u").replace("0", "s") + "u" for i in range(1, 2**count)]
        whole_groups = [m.upper() for m in mixed_steps]
        streamed_steps = [f"{w[:-1]}V" for w in whole_groups] if streams else []
        return [*streamed_steps, *whole_groups, *mixed_steps, "g" * count + "u", "g" * count + "g"]
