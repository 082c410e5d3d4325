"""Provide the kernel's latest call in the notebook to its card and the card's buttons."""

from __future__ import annotations

import ast
import contextlib
import re
from typing import Any

from ..program import Program
from .session import Session

__all__ = ["install_cards", "latest_call", "remove_cards"]

_CELLS_SEARCHED = 300  # the latest cells, which are searched for a call
_CHECKS = re.compile(r"(\w+\.)?validate")
_CHECK_PARAMETERS = {"expected", "rtol", "atol", "seconds", "device"}  # parameters of `validate`, not of the kernel


def install_cards(shell: Any, session: Session) -> None:
    """Show a program below the cell that it was compiled from without repeating the cell's text."""

    def card_bundle(program: Program, **_options: Any) -> dict[str, str]:
        is_own_cell = session.compiled_here == (shell.execution_count, program)
        return program.cards(source=not is_own_cell)

    shell.display_formatter.mimebundle_formatter.for_type(Program, card_bundle)


def remove_cards(shell: Any) -> None:
    """Restore a program's usual display."""
    with contextlib.suppress(KeyError):
        shell.display_formatter.mimebundle_formatter.pop(Program)


def latest_call(session: Session, name: str) -> str:
    """Return a kernel's latest call in the notebook's cells or in a timing magic; empty if there is none."""
    shell = session.shell
    for text in reversed(shell.user_ns.get("In", [])[-_CELLS_SEARCHED:]):
        if name not in text or text.lstrip().startswith("%%metal"):
            continue
        with contextlib.suppress(SyntaxError):
            calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
            places = ((node.lineno, node.col_offset, _call(node, name)) for node in calls)
            calls_of_kernel = [(line, column, call) for line, column, call in places if call is not None]
            if calls_of_kernel:
                return ast.unparse(max(calls_of_kernel, key=lambda entry: entry[:2])[2])
    timed_call = session.calls.get(name)
    if timed_call is None:
        return ""
    return ast.unparse(ast.Call(ast.Name(name, ast.Load()), timed_call.args, timed_call.keywords))


def _call(node: ast.Call, name: str) -> ast.Call | None:
    """Return the kernel's call if an expression is one or checks one; otherwise None."""
    target, args = node.func, node.args
    if isinstance(target, ast.Attribute) and target.attr == "check":
        target = target.value
    elif args and _CHECKS.fullmatch(ast.unparse(target)):
        target, args = args[0], args[1:]
    if not (isinstance(target, ast.Name) and target.id == name):
        return None
    keywords = node.keywords if target is node.func else [k for k in node.keywords if k.arg not in _CHECK_PARAMETERS]
    return ast.Call(target, args, keywords)
