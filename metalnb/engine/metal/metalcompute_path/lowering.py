"""Rewrite one kernel of a cell for metalcompute, so that a row of full threadgroups runs any grid.

The kernel stays in place in the author's source, so its ``threadgroup`` variables remain legal and every line keeps its
number. The parameter list is reduced to the parameters that metalcompute can bind, and the start of the body declares
the author's inputs as variables with their own types and names:

=============================================  ===============================================================
buffers                                        the same, at ``[[buffer(0)]]``, ``[[buffer(1)]]``, …
``thread_position_in_grid`` and the like       variables, computed from the position in the row and a launch record
``thread_index_in_simdgroup`` and the like     the same: a row's SIMD-groups are cut as those of its threadgroup
``threadgroup T* p [[threadgroup(n)]]``        a variable in the body; its size is known at the launch
function constants                             constants with their values
``max_total_threads_per_threadgroup``          the threads of a group, which metalcompute dispatches
=============================================  ===============================================================
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from metalnb.engine.unit import Unit, literal
from metalnb.errors import CompileError, Diagnostic
from metalnb.msl.signature import Input, Param
from metalnb.msl.text.bracket_tree import Outline, Tree, outline
from metalnb.msl.text.edits import Edit, EditedText
from metalnb.msl.text.instantiations import explicit_instantiations, template_id, text_of_range
from metalnb.msl.text.kernel_head import KernelHead, ParameterText, attribute_range, kernel_heads
from metalnb.msl.text.scanned_cell import Cell
from metalnb.msl.text.tokens import tokenize

from ..assembled_source import OWN_MACRO, AssembledSource, Assembly

__all__ = ["lower_kernel", "runs_unchanged"]

# Names that start with metalnb_ are metalnb's own here: Apple's compiler may not accept a `$`. Members end with
# _, because an author's macro may be named `size`. It is plain C++, since it comes before `#include <metal_stdlib>`.
_PRELUDE = """\
struct alignas(16) metalnb_block { unsigned words[4]; };
struct metalnb_launch { unsigned grid_[3], group_[3], groups_[3], first_[3], row_[3], seen_; };
struct metalnb_position {
  unsigned at_[3], local_[3], group_[3], size_[3], threads_;
  metalnb_position(device const metalnb_launch& l, unsigned g, unsigned i) {
    group_[0] = l.first_[0] + g % l.row_[0], group_[1] = l.first_[1] + g / l.row_[0] % l.row_[1];
    group_[2] = l.first_[2] + g / l.row_[0] / l.row_[1];
    for (int k = 0; k < 3; ++k) {
      unsigned left = l.grid_[k] - group_[k] * l.group_[k];
      size_[k] = left < l.group_[k] ? left : l.group_[k];
    }
    local_[0] = i % size_[0], local_[1] = i / size_[0] % size_[1], local_[2] = i / size_[0] / size_[1];
    for (int k = 0; k < 3; ++k) at_[k] = group_[k] * l.group_[k] + local_[k];
    threads_ = size_[0] * size_[1] * size_[2];
  }
};
"""
_EXTRA = (
    "device metalnb_launch& metalnb_l [[buffer({index})]], unsigned metalnb_g [[threadgroup_position_in_grid]], "
    "unsigned metalnb_i [[thread_index_in_threadgroup]], unsigned metalnb_n [[threads_per_threadgroup]]"
)
# The first thread records the actual size of the threadgroups. Then the threads that only pad the last SIMD-group
# return, before any barrier; the package's docstring says why a later barrier is safe.
_START = (
    " if (metalnb_g == 0 && metalnb_i == 0) metalnb_l.seen_ = metalnb_n; "
    "const metalnb_position metalnb_p(metalnb_l, metalnb_g, metalnb_i); if (metalnb_i >= metalnb_p.threads_) return;"
)
_GROUP = "metalnb_l.group_[0] * metalnb_l.group_[1] * metalnb_l.group_[2]"
# MSL 5.2.3.6: input -> its components; one expression without [k] serves a single component.
_INPUT = {
    "thread_position_in_grid": "metalnb_p.at_[k]",
    "thread_position_in_threadgroup": "metalnb_p.local_[k]",
    "threadgroup_position_in_grid": "metalnb_p.group_[k]",
    "threads_per_grid": "metalnb_l.grid_[k]",
    "grid_size": "metalnb_l.grid_[k]",
    "grid_origin": "0u",
    "threads_per_threadgroup": "metalnb_p.size_[k]",
    "dispatch_threads_per_threadgroup": "metalnb_l.group_[k]",
    "threadgroups_per_grid": "metalnb_l.groups_[k]",
    "thread_index_in_threadgroup": "metalnb_i",
    "simdgroups_per_threadgroup": "(metalnb_p.threads_ + 31) / 32",
    "dispatch_simdgroups_per_threadgroup": f"({_GROUP} + 31) / 32",
    "quadgroups_per_threadgroup": "(metalnb_p.threads_ + 3) / 4",
    "dispatch_quadgroups_per_threadgroup": f"({_GROUP} + 3) / 4",
}


def runs_unchanged(unit: Unit, group: tuple[int, int, int], grid: tuple[int, int, int]) -> bool:
    """Return whether metalcompute can dispatch the kernel exactly, as the author wrote it.

    Its buffers are 0, 1, 2, …; all its inputs are single numbers; and its own attribute fixes the threadgroup, which
    divides the grid. Its text does not ask for ``METALNB``, which Metal does not define. A kernel without the attribute
    is never dispatched that way, since only the Metal compiler knows how large its threadgroups become (1024, or 896,
    832, … if it needs many registers), and so where they end.
    """
    signature = unit.signature
    return (
        signature.max_threads > 0
        and signature.max_threads % 32 == 0
        and group == (signature.max_threads, 1, 1)
        and grid == (grid[0], 1, 1)
        and grid[0] % group[0] == 0
        and not (unit.headers or unit.constants or unit.undefined or signature.threadgroup)
        and [p.index for p in signature.buffers] == list(range(len(signature.buffers)))
        and all(i.width == 1 for i in signature.inputs)
        and not any(t.text == OWN_MACRO for d in outline(unit.cell.edited.original).directives for t in d.tokens)
    )


def lower_kernel(unit: Unit, threads: int, memory: Mapping[str, int]) -> AssembledSource:
    """Return the source for metalcompute.

    Parameters
    ----------
    unit : Unit
    threads : int
        The threads of a threadgroup, a multiple of 32.
    memory : mapping of str to int
        Bytes of each ``[[threadgroup(n)]]`` parameter, multiples of 16.

    Raises
    ------
    CompileError
        If the kernel's definition is not found in the source.
    """
    writer = _Writer(unit, threads, memory)
    edited = {name: writer.edit_cell(cell) for name, cell in unit.headers.items()}
    main = writer.edit_cell(unit.cell)
    if not writer.is_rewritten:
        raise CompileError([_not_found(unit)])
    text = Assembly(edited)
    text.add_own_lines(f"#define {OWN_MACRO} 1\n{_PRELUDE}" + "".join(writer.constant_macros()))
    text.add_cell(main)
    return text.finish()


def _not_found(unit: Unit) -> Diagnostic:
    line = unit.signature.line
    message = f"kernel '{unit.signature.name}' cannot be rewritten for metalcompute: its parameters are not in the text"
    hint = "write the kernel's parameters out, in the cell or in one macro"
    return Diagnostic(line, 1, message, unit.cell.edited.line(line), unit.cell.name, hint)


class _Writer:
    """Edits the author's cells for one kernel and one size of threadgroup."""

    def __init__(self, unit: Unit, threads: int, memory: Mapping[str, int]) -> None:
        self.unit = unit
        self.threads = threads
        self.memory = memory
        self.is_rewritten = False
        self._constants = {c.name: c for c in (*unit.constants, *unit.undefined)}

    def constant_macros(self) -> list[str]:
        """Define the function constants' values, as macros."""
        unit = self.unit
        rows = [(c.name, literal(c.type, v), "true") for c, v in unit.constants.items()]
        rows += [(c.name, "{}", "false") for c in unit.undefined]
        return [f"#define metalnb_value_{n} {v}\n#define metalnb_defined_{n} {d}\n" for n, v, d in rows]

    def edit_cell(self, cell: Cell) -> Cell:
        """Edit one text."""
        text = outline(cell.edited.original)
        edits = [*_semicolons(text), *self._edit_tree(text.program, text)]
        for tree in text.macros:
            edits += [_keep_line_breaks(e, text.source) for e in self._edit_tree(tree, text)]
        return dataclasses.replace(cell, edited=EditedText(text.source, _drop_nested(edits)))

    def _edit_tree(self, tree: Tree, text: Outline) -> list[Edit]:
        """Edit the program, or the body of a macro."""
        edits: list[Edit] = []
        heads: list[tuple[int, int]] = []
        for head in kernel_heads(tree, self.unit.signature):
            self.is_rewritten = True
            edits += self._edit_definition(text.source, head)
            heads.append((head.start, head.end))
        edits += self._edit_instantiations(tree, text)
        edits += self._edit_function_constants(tree, heads)
        return edits

    def _edit_definition(self, text: str, head: KernelHead) -> list[Edit]:
        """Rewrite a kernel's attribute, its parameter list and the start of its body."""
        edits = [Edit(a, b, "") for a, b in head.limits]
        edits += [Edit(comma, comma + 1, "") for comma in head.commas]
        edits.append(Edit(head.start, head.start, f"[[max_total_threads_per_threadgroup({self.threads})]] "))
        signature = self.unit.signature
        roles: dict[int, Param | Input] = {i.position: i for i in signature.inputs}
        roles |= {p.position: p for p in signature.params}
        buffers = [p.position for p in signature.buffers]
        variables, count = [], 0
        for position, segment in enumerate(head.parameters):
            role = roles[position]
            if position not in buffers and not (isinstance(role, Input) and role.attribute not in _INPUT):
                edits.append(Edit(segment.start, segment.end, ""))
                variables.append(self._declare_variable(text, segment, role))
                continue
            if count:
                edits.append(Edit(segment.start, segment.start, ", "))
            count += 1
            if position in buffers:
                edits += [Edit(a, b, "") for a, b in segment.lists]
                end = segment.name(role.name).end  # in `device T (*x)[4]`, it belongs to the type after the bracket
                edits.append(Edit(end, end, f" [[buffer({buffers.index(position)})]]"))
        edits.append(head.add(_EXTRA.format(index=len(buffers)), is_first=not count))
        edits.append(head.prepend(_START + "".join(variables)))
        return edits

    def _declare_variable(self, text: str, segment: ParameterText, role: Param | Input) -> str:
        """Declare an input or a threadgroup parameter in the body, as the author declared it."""
        if not role.name:
            return ""
        tokens = segment.declarator
        declaration = _one_line(text[tokens[0].start : tokens[-1].end])
        if isinstance(role, Input):
            parts = [_INPUT[role.attribute].replace("[k]", f"[{k}]") for k in range(role.width)]
            return f" {declaration}({', '.join(parts)});"
        kind = "".join(f"{t.text} " for t in tokens if t.text != role.name).strip()
        storage = f"metalnb_t{role.index}"
        count = self.memory[role.name] // 16
        value = f"{storage}[0]" if role.reference else storage
        return f" threadgroup metalnb_block {storage}[{count}]; {declaration} = ({kind}){value};"

    def _edit_instantiations(self, tree: Tree, text: Outline) -> list[Edit]:
        """Make the kernel's instantiation match the rewritten template, and drop all others, which cost time."""
        edits = []
        for instantiation in explicit_instantiations(tree):
            if not instantiation.host:
                continue
            start, stop = instantiation.host[1] + 1, instantiation.stop
            template = template_id(tree, start, stop)
            if instantiation.literal and instantiation.name != self.unit.signature.name:
                last = tree.tokens[min(stop, len(tree.tokens) - 1)]
                edits.append(Edit(tree.tokens[instantiation.start].start, last.end, ""))
            elif template is not None and tree.text(template[1] + 1) == "(":
                function = text_of_range(text, tree, template)
                end = tree.tokens[tree.close(template[1] + 1)].end
                edits.append(Edit(tree.tokens[start].start, end, f"[[kernel]] decltype({function}) {function}"))
        return edits

    def _edit_function_constants(self, tree: Tree, heads: list[tuple[int, int]]) -> list[Edit]:
        """Set the values of function constants, and remove the attribute from parameters that depend on one."""
        edits = []
        tokens, macro = tree.tokens, tree.macro
        for a, b in tree.attribute_lists():
            positions = [i for i in range(a, b) if tree.texts[i] == "function_constant"]
            if not positions or any(start <= tokens[a].start < end for start, end in heads):
                continue
            name = tree.texts[a - 1]
            if (name in self._constants or macro) and tree.enclosing(a, "(") < 0:
                paste = "" if name in self._constants else "##"
                edits.append(Edit(tokens[a].start, tokens[b].end, f" = metalnb_value_{paste}{name}"))
            else:
                first, last = attribute_range(tree, a, b, positions[0])
                edits.append(Edit(tokens[first].start, tokens[last].end, ""))
        for i, token in enumerate(tokens):
            if token.text == "is_function_constant_defined" and i + 3 < len(tokens):
                name = tree.texts[i + 2]
                paste = "" if name in self._constants or not macro else "##"
                edits.append(Edit(token.start, tokens[i + 3].end, f"metalnb_defined_{paste}{name}"))
        return edits


def _keep_line_breaks(edit: Edit, text: str) -> Edit:
    """Preserve the line breaks of an edit inside a macro."""
    return Edit(edit.start, edit.end, edit.text + "\\\n" * text.count("\n", edit.start, edit.end))


def _semicolons(text: Outline) -> list[Edit]:
    """Drop the semicolon of ``#include <metal_stdlib>;``, which for Apple's compiler is only a warning."""
    last = [d.tokens[-1] for d in text.directives if d.name == "include" and d.tokens]
    return [Edit(t.start, t.end, "") for t in last if t.text == ";"]


def _one_line(text: str) -> str:
    """Return a piece of text on one line, without comments."""
    return " ".join(t.text for t in tokenize(text.replace("\\\n", " ")).program)


def _drop_nested(edits: list[Edit]) -> list[Edit]:
    """Drop edits inside another edit."""
    outer: list[Edit] = []
    for edit in sorted(edits, key=lambda e: (e.start, -(e.end - e.start), e.text)):
        is_nested = outer and edit.start < outer[-1].end and edit.end <= outer[-1].end
        if is_nested and not edit.start == edit.end == outer[-1].start:
            continue
        outer.append(edit)
    return outer
