"""Write the MSL of a fused function: a cell for elementwise results, or for one result reduced along its rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays.promotion import DTYPES
from ..elementwise.elementwise_text import STEPS
from ..launching.programs import instantiation
from .tracing import Trace, value_type

__all__ = ["FusedText"]

DType = np.dtype[Any]

# The record from which the kernels that reduce rows read how the rows are split.
_SPLITS = """struct Splits {
    uint count;    // elements of a row
    uint stretch;  // ... that one SIMD-group takes
    uint rest;     // ... that the last one takes
    uint parts;    // SIMD-groups to a row
    float scale;   // what a mean divides by
};
"""


@dataclass(frozen=True)
class FusedText:
    """A kernel's computation.

    Attributes
    ----------
    trace : Trace
        The lines of the traced function.
    results : tuple of (str, numpy.dtype)
        The names of the results' values, and their dtypes in memory. There is only one if `monoid` reduces it.
    arrays, numbers : tuple of (str, numpy.dtype)
        The arguments: arrays with their dtypes, and numbers with the dtypes that they are computed in.
    monoid : str
        The functor of ``reduce.metal``, with its types, that reduces the result.
    """

    trace: Trace
    results: tuple[tuple[str, DType], ...]
    arrays: tuple[tuple[str, DType], ...]
    numbers: tuple[tuple[str, DType], ...]
    monoid: str = ""

    def text(self, *, several: bool = False, streams: bool = False) -> str:
        """Return the cell.

        With `several`, each thread takes several elements of contiguous arrays. With `streams`, the cell also has
        kernels that write past the caches.
        """
        lines = self._needed_lines()
        functions = self._functions(lines)
        headers = ["elementwise.h", "reduce.metal"] if self.monoid else ["streamed.h" if streams else "elementwise.h"]
        includes = [f"#include <metalnb/{name}>" for name in headers]
        head = [f"// {self.trace.name}, fused.", *includes, "", *functions, ""]
        kernels = self._row_kernels(lines) if self.monoid else self._elementwise_kernel(lines)
        if several and not self.monoid:
            kernels += ["", *self._multi_element_kernel(lines)]
        return "\n".join([*head, *kernels, "", *self._instances(several=several, streams=streams)]) + "\n"

    # Names derived from an argument's name have a prefix, not a suffix, since x and x_ may both be arguments.
    @property
    def _names(self) -> list[str]:
        return [f"in_{name}" for name, _ in self.arrays]

    @property
    def _result_names(self) -> list[str]:
        return [f"out{i}" for i in range(len(self.results))]

    def _needed_lines(self) -> list[str]:
        """Return the lines that compute the results."""
        names, lines = {name for name, _ in self.results}, []
        for line in reversed(self.trace.lines):
            name = line.split(" = ")[0].split()[-1]
            if any(re.search(rf"\b{name}\b", text) for text in names):
                lines.append(line)
                names.add(line.split(" = ", 1)[1])
        return lines[::-1]

    def _functions(self, lines: list[str]) -> list[str]:
        return [t for c, t in self.trace.functions.items() if any(f" {c}(" in line for line in lines)]

    def _buffers(self) -> list[str]:
        return [f"    device const memory_of<{DTYPES[dtype.name]}>* buffer_{name}," for name, dtype in
                zip(self._names, (d for _, d in self.arrays), strict=True)]  # fmt: skip

    def _parameters(self) -> list[str]:
        return [f"    constant {value_type(dtype)}& in_{name}," for name, dtype in self.numbers]

    def _fetch_lines(self, position: str) -> list[str]:
        return [
            f"    const {value_type(dtype)} in_{name} = fetch<{DTYPES[dtype.name]}, step_in_{name}>"
            f"(buffer_in_{name}, walk, {i}, {position});"
            for i, (name, dtype) in enumerate(self.arrays)
        ]

    def _head(self, name: str, position: str) -> list[str]:
        """Return the lines of an elementwise kernel's signature."""
        outs = self._result_names
        return [
            f"template <{', '.join(f'typename step_{n}' for n in (*self._names, *outs))}>",
            f"kernel void {name}(",
            *self._buffers(),
            *(f"    device memory_of<{DTYPES[d.name]}>* buffer_{n}," for n, (_, d) in
              zip(outs, self.results, strict=True)),
            "    constant Walk& walk,",
            *self._parameters(),
            f"    {position} [[thread_position_in_grid]]) {{",
        ]

    def _keep_lines(self, position: str) -> list[str]:
        results = zip(self._result_names, self.results, strict=True)
        return [
            f"    keep<{DTYPES[dtype.name]}, step_{name}>(buffer_{name}, walk, {i}, {position}, {text});"
            for i, (name, (text, dtype)) in enumerate(results, len(self._names))
        ]

    def _elementwise_kernel(self, lines: list[str]) -> list[str]:
        names = (*self._names, *self._result_names)
        return [
            *self._head("fused_", "uint2 position"),
            *(f"    buffer_{n} += step_{n}::row(walk, {i}, position.y);" for i, n in enumerate(names)),
            *self._fetch_lines("position.x"),
            *(f"    {line}" for line in lines),
            *self._keep_lines("position.x"),
            "}",
        ]

    def _multi_element_kernel(self, lines: list[str]) -> list[str]:
        """Return the kernel for devices with slow loads: the loads of several elements are in flight at once."""
        typed = [(name, value_type(dtype)) for name, (_, dtype) in zip(self._names, self.arrays, strict=True)]
        return [
            *self._head("fused_several", "uint thread_"),
            "    const uint count_ = walk.sizes[0], first_ = first_of_several(thread_);",
            *(f"    {dtype} several_{name}[SEVERAL];" for name, dtype in typed),
            "    for (uint k_ = 0; k_ < SEVERAL; ++k_) {",
            "        const uint at_ = min(first_ + k_ * RUN, count_ - 1);",
            *(f"    {line}" for line in self._fetch_lines("at_")),
            *(f"        several_{name}[k_] = {name};" for name, _ in typed),
            "    }",
            "    for (uint k_ = 0; k_ < SEVERAL; ++k_) {",
            "        const uint at_ = first_ + k_ * RUN;",
            "        if (at_ >= count_) return;",
            *(f"        const {dtype} {name} = several_{name}[k_];" for name, dtype in typed),
            *(f"        {line}" for line in lines),
            *(f"    {line}" for line in self._keep_lines("at_")),
            "    }",
            "}",
        ]

    def _row_kernels(self, lines: list[str]) -> list[str]:
        """Return the kernels that reduce rows: one for parts of long rows and one for short rows."""
        names = self._names
        steps = ", ".join(f"typename step_{n}" for n in names)
        arguments = ", ".join([*(f"buffer_{n}" for n in names), "walk", *(f"in_{name}" for name, _ in self.numbers)])
        value = f"M::part(fused_value<{', '.join(f'step_{n}' for n in names)}>({arguments}, "
        rows = [f"    buffer_{n} += step_{n}::row(walk, {i}, row);" for i, n in enumerate(names)]
        buffers = [*self._buffers(), "    device memory_of<typename M::result>* out_,", "    constant Walk& walk,",
                   "    constant Splits& splits,", *self._parameters()]  # fmt: skip
        out = f"    out_ += row_of(walk, {len(names)}, row)"
        return [
            _SPLITS, *self._value_function(lines, steps), *_split_rows_kernel(steps, buffers, rows, out, value),
            *_short_rows_kernel(steps, buffers, rows, out, value),
        ]  # fmt: skip

    def _value_function(self, lines: list[str], steps: str) -> list[str]:
        """Return the function that computes the value at a position in a row."""
        return [
            f"template <{steps}>",
            f"inline {value_type(self.results[0][1])} fused_value(",
            *self._buffers(), "    constant Walk& walk,", *self._parameters(), "    uint position) {",
            *self._fetch_lines("position"), *(f"    {line}" for line in lines),
            f"    return {self.results[0][0]};", "}", "",
        ]  # fmt: skip

    def _instances(self, *, several: bool, streams: bool) -> list[str]:
        """Return the instantiations of all kernels; each is compiled when a call first needs it."""
        count, outs = len(self.arrays), len(self.results)
        mixed_steps = [f"{i:0{count}b}".replace("1", "u").replace("0", "s") for i in range(2**count)]
        if not self.monoid:
            variants = [*(m + "u" * outs for m in mixed_steps), "g" * (count + outs - 1) + "u"]
            variants += map(str.upper, variants[:-1])
            variants += [w[:-outs] + "V" * outs for w in variants if streams and w.isupper()]
            return [
                instantiation(f"fused_{w}", f"fused_{'several' if several and w.isupper() else ''}"
                              f"<{', '.join(STEPS[s] for s in w)}>")
                for w in variants
            ]  # fmt: skip
        rows = []
        for kernel, wrapper in (("rows", "{}"), ("first", "First<{}>"), ("each", "{}")):
            monoid = wrapper.format(self.monoid)
            template = "fused_each" if kernel == "each" else "fused_rows"
            rows += [instantiation(f"{kernel}_{w}", f"{template}<{monoid}, {', '.join(STEPS[s] for s in w)}>")
                      for w in (*mixed_steps, "g" * count)]  # fmt: skip
        return rows


_STORE = "storage<typename M::result>::store(M::finish("


def _split_rows_kernel(steps: str, buffers: list[str], rows: list[str], out: str, value: str) -> list[str]:
    """Return the kernel in which each SIMD-group takes a part of a row."""
    return [
        "// A SIMD-group takes a stretch of a row; blocks within it keep long sums exact.",
        f"template <typename M, {steps}>",
        "kernel void fused_rows(", *buffers,
        "    uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],",
        "    uint simd [[simdgroup_index_in_threadgroup]],",
        "    uint simds [[dispatch_simdgroups_per_threadgroup]]) {",
        "    const uint index = group * simds + simd, row = index / splits.parts, part = index % splits.parts;",
        "    const uint first = part * splits.stretch + lane;",
        "    const uint count = part + 1 == splits.parts ? splits.rest : splits.stretch, runs = count / LANES;",
        *rows, f"{out} + part;",
        "    typename M::acc total = M::identity();",
        "    uint run = 0;",
        "    for (; run + BLOCK <= runs; run += BLOCK) {",
        "        typename M::part some = typename M::part(M::identity());",
        "        for (uint k = 0; k < BLOCK; ++k)",
        f"            some = M::combine(some, typename {value}first + (run + k) * LANES)));",
        "        total = M::combine(total, typename M::acc(some));",
        "    }",
        "    typename M::part some = typename M::part(M::identity());",
        f"    for (; run < runs; ++run) some = M::combine(some, typename {value}first + run * LANES)));",
        f"    if (lane < count - runs * LANES) some = M::combine(some, typename {value}first + runs * LANES)));",
        "    total = across_lanes<M>(M::combine(total, typename M::acc(some)));",
        f"    if (lane == 0) *out_ = {_STORE}total, splits.scale, 0));",
        "}", "",
    ]  # fmt: skip


def _short_rows_kernel(steps: str, buffers: list[str], rows: list[str], out: str, value: str) -> list[str]:
    """Return the kernel in which each thread takes a row."""
    return [
        "// A thread takes a short row.",
        f"template <typename M, {steps}>",
        "kernel void fused_each(", *buffers,
        "    uint row [[thread_position_in_grid]]) {",
        *rows, f"{out};",
        "    typename M::part total = typename M::part(M::identity());",
        f"    for (uint i = 0; i < splits.count; ++i) total = M::combine(total, typename {value}i)));",
        f"    *out_ = {_STORE}typename M::acc(total), splits.scale, 0));",
        "}",
    ]  # fmt: skip
