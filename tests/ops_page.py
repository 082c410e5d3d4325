"""Make the list of ops, a README beside them, from their table: ``python tests/ops_page.py`` (`make docs`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from metalnb.library_kernels import op_table
from metalnb.library_kernels.docstrings import dtypes_text, reference_text
from metalnb.library_kernels.op import Op

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).resolve().parent.parent / "metalnb" / "library_kernels" / "README.md"

_FAMILIES = {
    "elementwise": "Elementwise", "activation": "Activations and norms", "reduction": "Reductions", "scan": "Scans",
    "linear": "Linear algebra", "neural": "Neural networks", "moving": "Moving data",
    "sorting": "Sorting", "searching": "Searching", "sets": "Sets",
    "creation": "Creation", "random": "Random numbers",
}  # fmt: skip
_INTRODUCTION = """\
# The kernel library

This page lists every op of the library: {count} functions of `metalnb`, by family. It is generated from the rows of
the table of ops (`make docs`), and so are each function's docstring, its tests and its benchmark; a test fails if the
page is out of date. To [add an op](../../docs/adding-an-op.md), add a row.

Arrays broadcast, dtypes are promoted by the array API standard's table, and Python's numbers are weakly typed.
**takes** lists the dtypes; if an elementwise op takes only floats, integers and bool are computed as float32. **ulp**
is the greatest error of float32, compared with float64 arithmetic, in units in the last place of the result (or of the
summands, for sums that cancel); 0.5 is correctly rounded, and an empty cell means that the result is exact. It holds
for all numbers of a dtype, including infinities, NaN and denormals (`make accuracy` tries them all), except where the
description says that an op is not defined. **MSL** names the source file: `mnb.exp.source` shows an op's source, and
`#include <metalnb/reduce.metal>` includes a file in a cell.
"""


def page() -> str:
    """Write the page."""
    ops = list(op_table.ops().values())
    families = dict.fromkeys([*_FAMILIES, *(op.row.family for op in ops)])
    parts = [_INTRODUCTION.format(count=len(ops))]
    for family in families:
        rows = [_line(op) for op in ops if op.row.family == family]
        if rows:
            head = ["| function | result | takes | ulp | MSL | defined by |", "|---|---|---|--:|---|---|"]
            parts.append("\n".join([f"## {_FAMILIES.get(family, family.capitalize())}", "", *head, *rows, ""]))
    return "\n".join(parts)


def _line(op: Op) -> str:
    names = " ".join(f"`{alias}`" for alias in op.row.aliases)
    call = f"`{op.name}{_signature(op)}`" + (f"<br>also {names}" if names else "")
    bound = op.row.tolerance.get("float32", 0)
    files = " ".join(f"[{k}](metal/{k})" for k in dict.fromkeys(_files(op)))
    standard = f"Python array API standard 2024.12, ``{op.name}``"
    cited = reference_text(op.name, op.row.cite).replace(standard, "array API")
    cells = [call, op.doc, dtypes_text(op.row.dtypes), f"{bound:g}" if bound else "", files, cited.replace("``", "`")]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _files(op: Op) -> Iterator[str]:
    yield from op.row.kernels
    for part in op.row.parts:
        yield from _files(part)


def _signature(op: Op) -> str:
    """Return the signature without its types."""
    signature: inspect.Signature = op.__signature__
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
