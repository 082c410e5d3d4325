"""What a name in a ``%%metal`` cell is (Shift-Tab), and what ``simd_sum?`` answers when Python has no such name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from IPython.core import page

from ..display.descriptions import bundle
from ..msl.editor.name_description import describe, describe_name
from .completer import metal_text
from .session import Session

__all__ = ["inspector", "question"]


def inspector(session: Session, usual: Callable[..., Any]) -> Callable[..., Any]:
    """Make a Jupyter kernel's answer to Shift-Tab: for a Metal cell ours, for any other the usual one."""

    def do_inspect(code: str, cursor_pos: int, *args: Any, **options: Any) -> Any:
        metal = metal_text(code, cursor_pos)
        if metal is None or metal.offset < 0:
            return usual(code, cursor_pos, *args, **options)
        try:
            found = describe(metal.body, metal.offset, session.headers, metal.name)
        except Exception:  # noqa: BLE001  (a look at a name must not show a traceback of ours)
            found = ()
        return {"status": "ok", "found": bool(found), "data": bundle(found) if found else {}, "metadata": {}}

    return do_inspect


def question(shell: Any, usual: Callable[..., Any]) -> Callable[..., Any]:
    """Make the magic behind ``name?``: Python's own answer or, for a name that Python lacks, Metal's."""

    def pinfo(parameter_s: str = "", namespaces: Sequence[str] | None = None) -> Any:
        name = parameter_s.strip().strip("?")
        found = describe_name(name)
        if found and not shell.object_inspect(name)["found"]:
            page.page(bundle(found))
            return None
        return usual(parameter_s, namespaces)

    pinfo.__doc__ = usual.__doc__
    return pinfo
