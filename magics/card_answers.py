"""Answers for a kernel's card and its buttons: the kernel's latest call in the notebook."""

from __future__ import annotations

import ast
import contextlib
import re
from typing import Any

from ..program import Program
from .session import Session

__all__ = ["install_cards", "latest_call", "remove_cards"]

_MOST = 300  # cells that are searched
_CHECKS = re.compile(r"(\w+\.)?validate")
_OF_CHECKS = {"expected", "rtol", "atol", "seconds", "device"}  # parameters of a check that the kernel does not have


def install_cards(shell: Any, session: Session) -> None:
    """Show a program below the cell that it was compiled from without repeating the cell's text."""

    def shown(program: Program, **_options: Any) -> dict[str, str]:
        here = session.compiled_here == (shell.execution_count, program)
        return program.cards(source=not here)

    shell.display_formatter.mimebundle_formatter.for_type(Program, shown)


def remove_cards(shell: Any) -> None:
    """Restore a program's usual display."""
    with contextlib.suppress(KeyError):
        shell.display_formatter.mimebundle_formatter.pop(Program)


def latest_call(session: Session, name: str) -> str:
    """Return a kernel's latest call in the notebook's cells or in a timing magic; empty if there is none."""
    shell = session.shell
    for text in reversed(shell.user_ns.get("In", [])[-_MOST:]):
        if name not in text or text.lstrip().startswith("%%metal"):
            continue
        with contextlib.suppress(SyntaxError):
            calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
            found = [(node.lineno, node.col_offset, own) for node in calls if (own := _call(node, name)) is not None]
            if found:
                return ast.unparse(max(found, key=lambda each: each[:2])[2])
    measured = session.calls.get(name)
    if measured is None:
        return ""
    return ast.unparse(ast.Call(ast.Name(name, ast.Load()), measured.args, measured.keywords))


def _call(node: ast.Call, name: str) -> ast.Call | None:
    """Return the kernel's call that an expression is or checks; None for any other expression."""
    own, args = node.func, node.args
    if isinstance(own, ast.Attribute) and own.attr == "check":
        own = own.value
    elif args and _CHECKS.fullmatch(ast.unparse(own)):
        own, args = args[0], args[1:]
    if not (isinstance(own, ast.Name) and own.id == name):
        return None
    keywords = node.keywords if own is node.func else [k for k in node.keywords if k.arg not in _OF_CHECKS]
    return ast.Call(own, args, keywords)
