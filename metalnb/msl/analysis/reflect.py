"""Read a cell's declarations from the parser: kernels, their parameters and inputs, structs, function constants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metalnb.dtypes import spell
from metalnb.errors import CompileError, Diagnostic

from ..language.simdgroup_names import names_simdgroups
from ..language.versions import DEFAULT, Version
from ..libclang.author_warnings import cautions
from ..libclang.cursor_children import children_of
from ..libclang.parse import Parsed, parse
from ..signature import Constant, Input, Param, Reflection, Signature, function_expression
from ..text.conditions import evaluate, expand_constant
from . import rules
from .buffer_use import uses
from .certain_access import always_indexed, threadgroup_arrays
from .declarations import comment, declarations, host_name, string_argument, users_of_simdgroups
from .host_types import HostTypes
from .kernel_names import (
    attributes_of,
    by_name,
    own_name,
    qualified_name,
    qualify_duplicates,
    specialization,
    template_of,
    type_among,
)
from .rules.syntax_walk import CellSyntax, integer_value, walk
from .scope_inputs import HANDED

if TYPE_CHECKING:
    from ..text.scanned_cell import Cell, Instantiation

__all__ = ["reflect"]


def reflect(
    cell: Cell, headers: Mapping[str, Cell], instances: tuple[Instantiation, ...] | None = None,
    version: Version = DEFAULT, limit: int = -1,
) -> Reflection:  # fmt: skip
    """Reflect a scanned cell.

    Parameters
    ----------
    cell : Cell
    headers : mapping of str to Cell
        The header cells, scanned.
    instances : tuple of Instantiation, optional
        The instantiations; by default those that the scan found.
    version : tuple of int
        The version of the language.
    limit : int, optional
        How many instantiations to examine, besides one of each template; by default `MAX_CHECKED_INSTANTIATIONS`.

    Raises
    ------
    CompileError
        If the cell does not parse, breaks a rule of the language, or has no kernel.
    """
    instances = cell.instantiations if instances is None else instances
    functions = [function_expression(m.function, m.type) for m in instances]
    tail = "".join(f"typedef decltype({function}) $kernel_{i};\n" for i, function in enumerate(functions))
    limit = MAX_CHECKED_INSTANTIATIONS if limit < 0 else limit
    too_many = len(instances) > limit
    parsed = parse(
        cell, headers, tail + (_checks(instances, limit) if too_many else ""), version, with_instantiations=not too_many
    )
    constants_text = {name: text for c in (*headers.values(), cell) for name, text in c.derived.items()}
    reader = _Reader(parsed, constants_text)
    kernels = reader.kernels(instances)
    problems = [*reader.problems, *rules.check(parsed, kernels, instances, reader.syntax)]
    problems += reader.constant_problems()
    warnings = [p for p in problems if p.severity == "warning"]
    problems = [p for p in problems if p.severity == "error"]
    if not kernels and not problems:
        problems += reader.uninstantiated_templates() or [rules.no_kernel(cell)]
    if problems:
        first = {(d.file, d.line, d.column): d for d in reversed(problems)}  # the first finding at each place
        raise CompileError(sorted(first.values(), key=lambda d: (d.file != cell.name, d.line, d.column)))
    optional = frozenset[str]().union(cell.optional, *(h.optional for h in headers.values()))
    constants = tuple(reader.constants(optional))
    warnings += [note for c in (cell, *headers.values()) for note in c.notes]
    return Reflection(tuple(kernels), tuple(reader.types.structs.values()), constants, cautions(parsed, warnings))


# If a cell has more instantiations than this, only this many are checked when the cell is read; each of the others is
# checked at its first call.
MAX_CHECKED_INSTANTIATIONS = 256


def _checks(instances: tuple[Instantiation, ...], limit: int) -> str:
    """Write explicit instantiations: the first one of each template, then others up to ``limit``."""
    firsts = {m.function.partition("<")[0]: m.function for m in reversed(instances) if "<" in m.function and not m.type}
    functions = [*firsts.values(), *(m.function for m in instances if "<" in m.function and not m.type)]
    distinct = [*dict.fromkeys(functions)][: max(limit, len(firsts))]
    return "".join(f"template decltype({f}) ({f});\n" for f in distinct)


_POSITIONS = frozenset({
    "thread_position_in_threadgroup", "thread_index_in_threadgroup", "simdgroup_index_in_threadgroup",
})  # fmt: skip


def _own_elements(cursor: Any, inputs: list[Input]) -> tuple[tuple[str, str, int], ...]:
    """Find the threadgroup arrays that each thread indexes by its position in the threadgroup."""
    arrays = threadgroup_arrays(cursor)
    return tuple(
        (name, kernel_input.attribute, arrays[name])
        for kernel_input in inputs
        if arrays and kernel_input.width == 1 and kernel_input.attribute in _POSITIONS
        for name in sorted(arrays.keys() & always_indexed(cursor, kernel_input.name))
    )


class _Reader:
    """Reads one parsed cell."""

    def __init__(self, parsed: Parsed, derived: Mapping[str, str]) -> None:
        self.parsed = parsed
        self.derived = derived
        self.problems: list[Diagnostic] = []
        self._bodies: dict[Any, tuple[Any, Any, Any]] = {}
        self.types = HostTypes(self.problem)
        self.decls = list(declarations(parsed, parsed.unit.cursor))
        self.gates = {c.spelling for c in self.decls if "function_constant" in attributes_of(c)}
        self.heads: dict[int, list[tuple[Any, dict[str, Any]]]] = {}
        self.syntax: CellSyntax = walk(parsed, self.decls)
        self.simd = users_of_simdgroups(parsed, self.syntax)

    def problem(self, cursor: Any, message: str, hint: str = "") -> None:
        self.problems.append(self.parsed.diagnostic(cursor.location, message, hint))

    def kernels(self, instances: tuple[Instantiation, ...]) -> list[Signature]:
        """Read every kernel of the cell, and every instantiation of a kernel template."""
        signatures = []
        templates: dict[str, Any] = {}
        tails: dict[str, Any] = {}
        by_their_name = by_name(self.decls)
        for cursor in self.decls:
            kind = cursor.kind.name
            if kind == "TYPEDEF_DECL" and cursor.spelling.startswith("$kernel_"):
                tails[cursor.spelling] = cursor
            if kind not in {"FUNCTION_DECL", "FUNCTION_TEMPLATE"} or "kernel" not in attributes_of(cursor):
                continue
            if kind == "FUNCTION_TEMPLATE":
                templates.setdefault(cursor.spelling, cursor)
            elif cursor.is_definition():
                name = host_name(cursor) or own_name(cursor.spelling)
                overload_type = type_among(cursor, by_their_name)
                signatures.append(self.signature(cursor, name, qualified_name(cursor), cursor.type, kind=overload_type))
        for i, instance in enumerate(instances):
            base = re.sub(r"<.*", "", instance.function, flags=re.DOTALL).split("::")[-1].strip()
            tail = tails.get(f"$kernel_{i}")
            template = templates.get(base)
            instance_cursor = specialization(tail) if tail is not None else None
            self.syntax.kernels += [instance_cursor] if instance_cursor is not None else []
            if template is not None and tail is not None:
                template = template_of(instance_cursor) or template
            if template is None or tail is None:
                line = self.parsed.cell.edited.line(instance.line)
                self.problems.append(Diagnostic(
                    instance.line, 1, f"host_name \"{instance.name}\": '{base}' is not a kernel template", line,
                    self.parsed.cell.name, "mark the template [[kernel]] or kernel",
                ))  # fmt: skip
                continue
            proto = tail.underlying_typedef_type.get_canonical()
            proto = proto.get_pointee() if instance.type else proto
            signatures.append(
                self.signature(template, instance.name, instance.function, proto, instance_cursor, instance.type),
            )  # fmt: skip
        return qualify_duplicates(signatures)

    def uninstantiated_templates(self) -> list[Diagnostic]:
        """Report the cell's own kernel templates if the cell instantiates none of them and so has no kernel."""
        templates = (c for c in self.decls if c.kind.name == "FUNCTION_TEMPLATE" and "kernel" in attributes_of(c))
        return [
            rules.uninstantiated_template(self.parsed, c)
            for c in templates
            if self.parsed.owner(c.location) is self.parsed.cell
        ]

    def uses_simdgroups(self, cursor: Any, inputs: list[Input]) -> bool:
        """Return whether a kernel, or a function that it may call, uses SIMD-groups or quad-groups."""
        if self.parsed.owner(cursor.location) is not self.parsed.cell:
            return True  # a header's kernel is not examined
        return any(names_simdgroups(i.attribute) for i in inputs) or not self.simd.isdisjoint({None, cursor.hash})

    def signature(
        self, cursor: Any, name: str, function: str, proto: Any, instance: Any = None, kind: str = "",
    ) -> Signature:  # fmt: skip
        """Read one kernel; ``proto`` has its parameters' types, and ``instance`` is the instantiation of a template."""
        attributes = attributes_of(instance or cursor)
        head = self.head(cursor)
        param_cursors = [param for param, _ in head]
        types = list(proto.get_canonical().argument_types())
        params: list[Param] = []
        inputs: list[Input] = []
        for position, ((param, param_attributes), argument_type) in enumerate(zip(head, types, strict=False)):
            attribute = next((a for a in param_attributes if rules.is_input(a)), None)
            if attribute is not None:
                type_name = spell(argument_type.get_canonical().spelling)
                self.problems += rules.input_type(self.parsed, param, attribute, type_name, argument_type.spelling)
                inputs.append(_input(param.spelling, attribute, type_name, position))
                continue
            if any(rules.is_graphics(a) for a in param_attributes):
                continue
            bound_param = self.param(param, argument_type.get_canonical(), param_attributes, position)
            if bound_param is not None:
                params.append(bound_param)
        mark = attributes.get("max_total_threads_per_threadgroup")
        limit = self.integer(mark) if mark is not None else None
        if limit is not None:
            self.problems += rules.thread_limit(self.parsed, mark, limit)
        indexed_names, buffer_uses, own_elements = self.body(cursor, inputs, frozenset(p.name for p in params))
        params = [
            replace(
                p, name=own_name(p.name), every=p.name in indexed_names and not p.reference, use=buffer_uses[p.name],
            )
            for p in params
        ]  # fmt: skip
        return Signature(
            name=name, function=function, params=self.assign_indices(params, param_cursors), inputs=tuple(inputs),
            arity=len(types), doc=comment(cursor), line=self.parsed.line(cursor.location), max_threads=limit or 0,
            simd=self.uses_simdgroups(cursor, inputs), own_elements=own_elements, type=kind,
        )  # fmt: skip

    def head(self, cursor: Any) -> list[tuple[Any, dict[str, Any]]]:
        """Return a kernel's parameters, each with its attributes; a template is read once for all instantiations."""
        if cursor.hash not in self.heads:
            params = (c for c in children_of(cursor) if c.kind.name == "PARM_DECL")
            self.heads[cursor.hash] = [(c, attributes_of(c)) for c in params]
        return self.heads[cursor.hash]

    def body(self, cursor: Any, inputs: list[Input], names: frozenset[str]) -> tuple[Any, Any, Any]:
        """Return how a kernel's body uses its parameters; a template is analyzed once for all instantiations."""
        key = cursor.hash, tuple((i.name, i.attribute, i.width) for i in inputs), names
        if key not in self._bodies:
            position_name = next(
                (i.name for i in inputs if i.attribute == "thread_position_in_grid" and i.width == 1), None,
            )  # fmt: skip
            indexed_names = always_indexed(cursor, position_name) if position_name else frozenset[str]()
            self._bodies[key] = indexed_names, uses(cursor, names), _own_elements(cursor, inputs)
        return self._bodies[key]

    def param(self, cursor: Any, kind: Any, attributes: dict[str, Any], position: int) -> Param | None:
        """Return one bound parameter; report a problem and return None if MSL has no such parameter."""
        reference = kind.kind.name == "LVALUEREFERENCE"
        if not reference and kind.kind.name != "POINTER":
            rules.unbound_parameter(self.parsed, self.problems, cursor, kind)
            return None
        pointee = kind.get_pointee()
        space = rules.space_of(pointee)
        if space is None:
            rules.missing_space(self.parsed, self.problems, cursor)
            return None
        self.problems += rules.misplaced_attribute(self.parsed, cursor, attributes, space)
        attribute = "threadgroup" if space == "threadgroup" else "buffer"
        index = self.integer(attributes[attribute]) if attribute in attributes else -1
        gate = attributes.get("function_constant")
        const = space == "constant" or pointee.is_const_qualified()
        pointee_type = self.types.read(pointee, cursor)
        if pointee_type is None or index is None:
            return None
        gate_name = string_argument(gate) if gate is not None else ""
        return Param(
            name=cursor.spelling or f"argument{position}", index=index, position=position, space=space,
            type=pointee_type, const=const, reference=reference, gate=gate_name,
            condition=self.condition(gate, gate_name),
        )  # fmt: skip

    def condition(self, mark: Any, gate: str) -> str:
        """Return the expression of a parameter's gate; empty if the gate is itself a function constant."""
        if not gate or gate in self.gates:
            return ""
        if gate not in self.derived:
            cure = f"declare it: {_DECLARED.format(gate)} (MSL 5.8.1)"
            self.problem(mark, f"'{gate}' is not a function constant", cure)
            return ""
        expression = expand_constant(gate, self.derived)
        try:
            evaluate(expression, dict.fromkeys(self.gates, 1))
        except ValueError as problem:
            message = f"'{gate}' must be made of function constants and numbers: metalnb cannot read '{problem}'"
            self.problem(mark, message, "write it with numbers, function constants and is_function_constant_defined")
        return expression

    def assign_indices(self, params: list[Param], param_cursors: list[Any]) -> tuple[Param, ...]:
        """Assign the lowest free numbers to implicit indices, and sort by index."""
        result: list[Param] = []
        for spaces in ({"device", "constant"}, {"threadgroup"}):
            group = [p for p in params if p.space in spaces]
            by_index: dict[int, Param] = {}
            for p in (p for p in group if p.index >= 0):
                if p.index in by_index:
                    message = f"{p.attribute} is given to both '{by_index[p.index].name}' and '{p.name}'"
                    self.problem(param_cursors[p.position], message, "give each buffer its own index")
                by_index[p.index] = p
            for p in (p for p in group if p.index < 0):
                index = next(i for i in range(len(group) + len(by_index) + 1) if i not in by_index)
                by_index[index] = replace(p, index=index)
            for p in by_index.values():
                if p.index >= rules.MAX_BUFFERS:
                    self.problem(param_cursors[p.position], f"'{p.name}' {p.attribute}: Metal has indices 0 to 30",
                                 "pass fewer, larger buffers: a struct holds many values (MSL 5.2.1)")  # fmt: skip
            result += [by_index[i] for i in sorted(by_index)]
        return tuple(result)

    def constant_problems(self) -> Iterator[Diagnostic]:
        """Check the types of the function constants."""
        for cursor in self.decls:
            if cursor.kind.name == "VAR_DECL" and "function_constant" in attributes_of(cursor):
                yield from rules.constant_type(self.parsed, cursor)

    def constants(self, optional: frozenset[str]) -> Iterator[Constant]:
        """Read the function constants."""
        for cursor in self.decls:
            if cursor.kind.name != "VAR_DECL":
                continue
            mark = attributes_of(cursor).get("function_constant")
            if mark is not None:
                index = self.integer(mark)
                type_name = spell(cursor.type.get_canonical().spelling)
                yield Constant(cursor.spelling, -1 if index is None else index, type_name, cursor.spelling in optional)

    def integer(self, mark: Any) -> int | None:
        """Evaluate an attribute's argument."""
        value = integer_value(next(iter(children_of(mark)), None))
        if value is None or value < 0:
            self.problem(mark, f"'{mark.spelling}' needs a constant integer that is not negative")
            return None
        return value


_DECLARED = "constant bool {} [[function_constant(0)]];"


def _input(name: str, attribute: str, kind: str, position: int) -> Input:
    author_name = name.removeprefix(HANDED)
    return Input(author_name, attribute, kind, position, scoped=author_name != name)
