"""Directives that generate documentation from the package: ``.. ops:: FAMILY …`` and ``.. magic:: METHOD``."""

from __future__ import annotations

import inspect
import pydoc
import re
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx

from metalnb.library_kernels import op_table
from metalnb.library_kernels.docstrings import public_names
from metalnb.library_kernels.elementwise.elementwise_op import Elementwise
from metalnb.library_kernels.op import Op


class Ops(Directive):
    """Document every op of a family, in the table's order."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write a function directive for each op, for autodoc to fill in."""
        names = [op.name for op in op_table.ops().values() if op.row.family == self.arguments[0]]
        if not names:
            raise self.error(f"no op is of the family {self.arguments[0]}")
        named = [f"linalg.{name}" if name == "trace" else name for name in names]  # `metalnb.trace` follows a call
        lines = [line for name in named for line in (f".. autofunction:: metalnb.{name}", "")]
        filled = nodes.container()
        self.state.nested_parse(StringList(lines, "the table of ops"), self.content_offset, filled)
        return filled.children


class Magic(Directive):
    """Show a magic as IPython does: its syntax, its description, its options."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Take the docstring that IPython has made."""
        magic = pydoc.locate(self.arguments[0])
        if magic is None:
            raise self.error(f"unknown magic {self.arguments[0]}")
        text = inspect.cleandoc(magic.__doc__ or "").removeprefix("::").strip()
        return [nodes.literal_block(text, text, language="text")]


def keep_signs(_app: Sphinx, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Escape |x| and "A. Author", which reStructuredText would take for a substitution and a list."""
    lines[:] = [line if "`" in line else re.sub(r"\|(?=\S)|(?<=^[A-Z])\.", r"\\\g<0>", line) for line in lines]


def tell_row(_app: Sphinx, _what: str, _name: str, target: Any, _options: Any, lines: list[str]) -> None:
    """Add details from an op's row to its docstring: its other names, and the location of its Metal."""
    if not isinstance(target, Op):
        return
    files = dict.fromkeys(file for op in (target, *target.row.parts) for file in op.row.kernels)
    sentences = [f"Also named {', '.join(f'``{name}``' for name in target.row.aliases)}."] if target.row.aliases else []
    linked = ", ".join(f":ref:`{file} <metal-{nodes.make_id(file)}>`" for file in files)
    sentences += [f"Runs {linked}{_expression(target)}."] if files else []
    lines[1:1] = ["", " ".join(sentences)] if sentences else []


def _expression(op: Op) -> str:
    """State an elementwise op's expression in MSL, with the names that callers use."""
    if not isinstance(op, Elementwise):
        return ""
    groups, operands = op.formula.groups, op.formula.operands
    text = groups.get("f", list(groups.values())[-1])
    for name, shown in zip(operands, public_names(operands), strict=True):
        text = re.sub(rf"\b{name}\b", shown, text)
    return f" with ``{text}``" + (" of floats" if "f" in groups and len(groups) > 1 else "")


def skip_files(_app: Sphinx, what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Omit a module's list of its files, which is for contributors."""
    if what == "module":
        paragraphs = "\n".join(lines).split("\n\n")
        lines[:] = "\n\n".join(p for p in paragraphs if not re.match(r"\w+\.py\b", p)).split("\n")


def hide_making(_app: Sphinx, what: str, _name: str, target: Any, *_rest: Any) -> tuple[str, None] | None:
    """Omit the constructor of a class that only metalnb instantiates: its docstring has no parameters."""
    if what == "class" and "Parameters\n" not in (target.__doc__ or "").replace("Parameters of a call\n", ""):
        return "", None
    return None


def unlink_words(_app: Sphinx, tree: nodes.document) -> None:
    """Treat a type that is a plain word as text: `dtype` after a colon is not a reference to an attribute."""
    for link in list(tree.findall(addnodes.pending_xref)):
        if link.get("reftype") == "class" and re.fullmatch(r"[a-z]+", link["reftarget"]):
            link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("ops", Ops)
    app.add_directive("magic", Magic)
    app.connect("autodoc-process-docstring", keep_signs, priority=300)
    app.connect("autodoc-process-docstring", skip_files, priority=300)
    app.connect("autodoc-process-docstring", tell_row, priority=400)  # before napoleon, which takes it for a section's
    app.connect("autodoc-process-signature", hide_making)
    app.connect("doctree-read", unlink_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
