"""metalnb's hooks in IPython besides its magics, and their removal."""

from __future__ import annotations

from typing import Any

from .session import Session

__all__ = ["install", "remove"]

_QUESTIONS = ("pinfo", "pinfo2")  # the magics behind ``name?`` and ``name??``


def install(shell: Any, session: Session) -> None:
    """Complete and explain MSL in a shell, replacing the hooks of an earlier call."""
    from .card_answers import install_cards
    from .completer import matcher
    from .inspection import inspector, question

    remove(shell)
    shell.Completer.custom_matchers.append(matcher(session))
    install_cards(shell, session)
    for name in _QUESTIONS:
        shell.register_magic_function(question(shell, _original(shell, name)), "line", name)
    kernel = getattr(shell, "kernel", None)  # a terminal has no kernel
    if kernel is not None:
        kernel.do_inspect = inspector(session, kernel.do_inspect)


def remove(shell: Any) -> None:
    """Restore a shell to IPython's original state."""
    from .card_answers import remove_cards
    from .completer import IDENTIFIER

    remove_cards(shell)
    own_matchers = [m for m in shell.Completer.custom_matchers if getattr(m, "matcher_identifier", "") == IDENTIFIER]
    for matcher in own_matchers:
        shell.Completer.custom_matchers.remove(matcher)
    for name in _QUESTIONS:
        shell.magics_manager.magics["line"][name] = _original(shell, name)
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        vars(kernel).pop("do_inspect", None)  # the class's own method is used again


def _original(shell: Any, name: str) -> Any:
    return getattr(shell.magics_manager.registry["NamespaceMagics"], name)
