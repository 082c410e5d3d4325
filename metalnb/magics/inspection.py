"""Explain a name in a ``%%metal`` cell (Shift-Tab), and answer ``simd_sum?`` if Python has no such name."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from IPython.core import page

from ..display.descriptions import bundle
from ..errors import Diagnostic
from ..msl.editor.name_description import describe, describe_name
from ..program.findings import findings
from .card_answers import latest_call
from .completer import metal_text
from .editor_lines import move_below
from .session import Session

__all__ = ["CALL", "FINDINGS", "LATEST", "MISTAKES", "inspector", "question"]

FINDINGS = 2  # the detail level by which the JupyterLab extension asks for mistakes; IPython's own are 0 and 1
LATEST = 3  # the detail level by which it asks for a kernel's latest call
MISTAKES = "application/vnd.metalnb.mistakes+json"
CALL = "application/vnd.metalnb.call"


def inspector(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Jupyter kernel's handler for Shift-Tab: metalnb's for a Metal cell, the usual one for any other cell."""

    def do_inspect(code: str, cursor_pos: int, detail_level: int = 0, *args: Any, **options: Any) -> Any:
        if detail_level == FINDINGS:
            return _mistakes(session, code)
        if detail_level == LATEST:
            return {"status": "ok", "found": True, "data": {CALL: latest_call(session, code)}, "metadata": {}}
        metal = metal_text(code, cursor_pos)
        if metal is None or metal.offset < 0:
            return original(code, cursor_pos, detail_level, *args, **options)
        try:
            descriptions = describe(metal.body, metal.offset, session.headers_for(metal.body), metal.name)
        except Exception:  # noqa: BLE001  (inspecting a name must not show our traceback)
            descriptions = ()
        data = bundle(descriptions) if descriptions else {}
        return {"status": "ok", "found": bool(descriptions), "data": data, "metadata": {}}

    return do_inspect


def _mistakes(session: Session, code: str) -> dict[str, Any]:
    """Return a Metal cell's mistakes for the JupyterLab extension, with the editor's lines and columns, from 1."""
    marks: list[dict[str, Any]] = []
    metal = metal_text(code, 0)
    if metal is not None and metal.body.strip():
        text = move_below(metal.body, code[: -metal.offset].count("\n"))
        with contextlib.suppress(Exception):  # no traceback while someone is typing
            marks = [_mark(finding) for finding in findings(text, session.headers, metal.name)]
    return {"status": "ok", "found": True, "data": {MISTAKES: marks}, "metadata": {}}


def _mark(diagnostic: Diagnostic) -> dict[str, Any]:
    word = re.match(r"\w+|.", diagnostic.text[diagnostic.column - 1 :])
    message = diagnostic.message
    if diagnostic.hint and diagnostic.hint not in message:
        message += f"\n{diagnostic.hint}"
    suggestion = re.search(r"did you mean '(\w+)'\?", message)
    return {
        "line": diagnostic.line, "column": diagnostic.column, "length": len(word[0]) if word else 0,
        "severity": diagnostic.severity, "message": message, "meant": suggestion[1] if suggestion else "",
    }  # fmt: skip


def question(shell: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the magic behind ``name?``: it describes Python's name or, if there is none, Metal's."""

    def pinfo(parameter_s: str = "", namespaces: Sequence[str] | None = None) -> Any:
        name = parameter_s.strip().strip("?")
        descriptions = describe_name(name)
        if descriptions and not shell.object_inspect(name)["found"]:
            page.page(bundle(descriptions))
            return None
        return original(parameter_s, namespaces)

    pinfo.__doc__ = original.__doc__
    return pinfo
