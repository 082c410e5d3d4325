"""Check entry points: a kernel's return type, parameters and attributes (MSL 5.1, 5.2, 5.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metalnb.dtypes import layout_of, spell
from metalnb.errors import Diagnostic

from ...language.attributes import ATTRIBUTES, INPUTS
from ...libclang.cursor_children import children_of
from ...libclang.hints import reword
from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax, marks

__all__ = [
    "check", "constant_type", "input_type", "misplaced_attribute", "missing_space", "unbound_parameter",
    "uninstantiated_template",
]  # fmt: skip

MAX_THREADS = 1024
_INPUT_SCALARS = ("uint", "ushort")
_STAGES = frozenset({"vertex", "fragment", "visible", "stitchable", "intersection", "object", "mesh"})


def check(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Check the kernels, and reject functions of the graphics pipeline."""
    for function in syntax.functions:
        cursor = function.cursor
        notes = marks(cursor)
        for name in notes:
            if name in ATTRIBUTES and ATTRIBUTES[name].use == "graphics":
                problem = f"is a {name} function" if name in _STAGES else f"has the attribute '{name}'"
                yield parsed.diagnostic(
                    cursor.location, f"'{cursor.spelling}' {problem}: metalnb runs compute kernels",
                    "move it to another file",
                )  # fmt: skip
        if "kernel" not in notes:
            continue
        if cursor.kind.name == "CXX_METHOD":
            yield parsed.diagnostic(
                cursor.location, f"kernel '{cursor.spelling}' is a member function",
                "move it out of its struct: a kernel is at program scope or in a namespace (MSL 5.1)",
            )  # fmt: skip
        result = cursor.type.get_result()
        if result.get_canonical().kind.name != "VOID":
            yield parsed.diagnostic(
                cursor.location, f"kernel '{cursor.spelling}' returns {reword(result.spelling)}; a kernel returns void",
                "write what it computes to a device buffer (MSL 5.1)",
            )  # fmt: skip
        params = [c for c in children_of(cursor) if c.kind.name == "PARM_DECL"]
        yield from _conflicting_inputs(parsed, params)
        for param in params:
            for name in marks(param):
                if name in ATTRIBUTES and ATTRIBUTES[name].use == "graphics":
                    yield parsed.diagnostic(
                        param.location,
                        f"'{param.spelling}' has the attribute '{name}': metalnb runs compute kernels on buffers",
                        "pass the values in a device or constant buffer",
                    )  # fmt: skip


def _conflicting_inputs(parsed: Parsed, params: list[Any]) -> Iterator[Diagnostic]:
    """Refuse a kernel that has both inputs for a SIMD-group's width (MSL 5.2.3.6)."""
    by_attribute = {name: param for param in params for name in marks(param)}
    deprecated = by_attribute.get("thread_execution_width")
    if deprecated is not None and "threads_per_simdgroup" in by_attribute:
        yield parsed.diagnostic(
            deprecated.location,
            "a kernel cannot have inputs with both 'thread_execution_width' and 'threads_per_simdgroup'",
            f"they are one number: drop '{deprecated.spelling}', as thread_execution_width is deprecated (MSL 5.2.3.6)",
        )  # fmt: skip


_ARGUMENTS = {"TEMPLATE_TYPE_PARAMETER": "float", "TEMPLATE_NON_TYPE_PARAMETER": "1"}


def uninstantiated_template(parsed: Parsed, cursor: Any) -> Diagnostic:
    """Refuse a kernel template that nothing instantiates if the cell has no other kernel (MSL 5.1)."""
    name = cursor.spelling
    kinds = (c.kind.name for c in children_of(cursor))
    arguments = [_ARGUMENTS.get(kind, "…") for kind in kinds if kind.startswith("TEMPLATE_")]
    host = "_".join([name, *(g for g in arguments if g != "…")])
    return parsed.diagnostic(
        cursor.location, f"no kernel in this cell: the kernel template '{name}' is not instantiated",
        f'write after it: template [[host_name("{host}")]] [[kernel]] decltype({name}<{", ".join(arguments)}>) '
        f'{name}<{", ".join(arguments)}>; (MSL 5.1)',
    )  # fmt: skip


def input_type(parsed: Parsed, cursor: Any, attribute: str, name: str, author_type: str) -> Iterator[Diagnostic]:
    """Check the type of a kernel input, by its attribute and as written (MSL 5.2.3.6)."""
    allowed_types = [f"{s}{'' if n == 1 else n}" for s in _INPUT_SCALARS for n in INPUTS[attribute].widths]
    if name not in allowed_types:
        yield parsed.diagnostic(
            cursor.location, f"type '{reword(author_type)}' is not valid for attribute '{attribute}'",
            f"declare '{cursor.spelling}' as {', '.join(allowed_types[:-1])} or {allowed_types[-1]} (MSL 5.2.3.6)",
        )  # fmt: skip


def thread_limit(parsed: Parsed, mark: Any, value: int) -> Iterator[Diagnostic]:
    """Check ``[[max_total_threads_per_threadgroup(n)]]`` (MSL 5.1.3)."""
    if not 1 <= value <= MAX_THREADS:
        yield parsed.diagnostic(
            mark.location, f"max_total_threads_per_threadgroup({value}): a threadgroup has 1 to {MAX_THREADS} threads",
            f"write a number from 1 to {MAX_THREADS} (MSL 5.1.3)",
        )  # fmt: skip


def misplaced_attribute(parsed: Parsed, cursor: Any, notes: dict[str, Any], space: str) -> Iterator[Diagnostic]:
    """Refuse ``[[buffer]]`` on threadgroup memory and ``[[threadgroup]]`` on a buffer (MSL 5.2.1)."""
    wrong_attribute, right_attribute = (
        ("buffer", "threadgroup") if space == "threadgroup" else ("threadgroup", "buffer")
    )
    if wrong_attribute in notes:
        yield parsed.diagnostic(
            cursor.location, f"'{cursor.spelling}' is in {space} memory, but has the attribute '{wrong_attribute}'",
            f"write [[{right_attribute}(n)]] (MSL 5.2.1)",
        )  # fmt: skip


def constant_type(parsed: Parsed, cursor: Any) -> Iterator[Diagnostic]:
    """Check a function constant's type: a scalar or a vector (MSL 5.8.1)."""
    name = spell(cursor.type.get_canonical().spelling)
    layout = layout_of(name)
    if layout is None or "x" in name or name.startswith("packed_"):
        type_text = reword(cursor.type.spelling).removeprefix("constant ")
        yield parsed.diagnostic(
            cursor.location, f"function constant '{cursor.spelling}' of type '{type_text}'",
            "a function constant is a scalar or a vector; pass larger values in a constant buffer (MSL 5.8.1)",
        )  # fmt: skip


def missing_space(parsed: Parsed, problems: list[Diagnostic], cursor: Any) -> None:
    """Report a kernel parameter that lacks an address space, or has one that is not allowed there (MSL 4, 5.2.1)."""
    thread = "thread" in marks(cursor)
    problem = "is in thread memory, which no caller can pass" if thread else "has no address space"
    problems.append(parsed.diagnostic(
        cursor.location, f"kernel parameter '{cursor.spelling}' {problem}",
        f"write device or constant (or threadgroup) {'in place of thread' if thread else 'before its type'} (MSL 4)",
    ))  # fmt: skip


def unbound_parameter(parsed: Parsed, problems: list[Diagnostic], cursor: Any, kind: Any) -> None:
    """Report a kernel parameter that is neither a buffer nor an input (MSL 5.2.1)."""
    type_text = reword(kind.spelling)
    problems.append(parsed.diagnostic(
        cursor.location, f"kernel parameter '{cursor.spelling}' of type '{type_text}' is neither a buffer nor an input",
        f"for a value from Python write: constant {type_text}& {cursor.spelling}; "
        "for a thread index add an attribute such as [[thread_position_in_grid]] (MSL 5.2)",
    ))  # fmt: skip
