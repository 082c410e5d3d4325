"""What a card below its cell shows, and what its buttons ask for: the kernel's latest call in the notebook."""

from __future__ import annotations

import ast
import contextlib
from typing import Any

from ..program import Program
from .session import Session

__all__ = ["install_cards", "latest_call", "remove_cards"]

_MOST = 300  # cells that are looked through


def install_cards(shell: Any, session: Session) -> None:
    """Show a program below the cell that it was compiled from without repeating the cell's text."""

    def shown(program: Program, **_options: Any) -> dict[str, str]:
        here = session.compiled_here == (shell.execution_count, program)
        return program.cards(source=not here)

    shell.display_formatter.mimebundle_formatter.for_type(Program, shown)


def remove_cards(shell: Any) -> None:
    """Show a program as it shows itself."""
    with contextlib.suppress(KeyError):
        shell.display_formatter.mimebundle_formatter.pop(Program)


def latest_call(session: Session, name: str) -> str:
    """Return the latest call of a kernel in the notebook's cells, or as a magic has measured it; empty for none."""
    shell = session.shell
    for text in reversed(shell.user_ns.get("In", [])[-_MOST:]):
        if f"{name}(" not in text or text.lstrip().startswith("%%metal"):
            continue
        with contextlib.suppress(SyntaxError):
            calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
            found = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == name]
            if found:
                return ast.unparse(max(found, key=lambda node: (node.lineno, node.col_offset)))
    measured = session.calls.get(name)
    if measured is None:
        return ""
    return ast.unparse(ast.Call(ast.Name(name, ast.Load()), measured.args, measured.keywords))
