"""Turn the words on a magic's line into values."""

from __future__ import annotations

import argparse
import keyword
from typing import Any

from IPython.core.error import UsageError

__all__ = ["evaluate_constants", "parse_assignment", "python_name", "unquote"]

_METAL_WORDS = {"true": True, "false": False}


def unquote(text: str) -> str:
    """Remove a word's quotes, which IPython's splitting keeps."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def parse_assignment(text: str) -> tuple[str, str]:
    """Split ``NAME=VALUE``."""
    name, equals, value = unquote(text).partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        message = f"{text!r} is not of the form NAME=VALUE, like TILE=16"
        raise argparse.ArgumentTypeError(message)
    return name.strip(), value.strip()


def python_name(text: str) -> str:
    """Return a name if Python can bind it; otherwise refuse it."""
    if not unquote(text).isidentifier() or keyword.iskeyword(unquote(text)):
        message = f"{text!r} is not a Python name"
        raise argparse.ArgumentTypeError(message)
    return unquote(text)


def evaluate_constants(shell: Any, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Evaluate the values of assignments in the user's namespace.

    Raises
    ------
    UsageError
        If one has no value; the message says which, and why.
    """
    values = {}
    for name, text in pairs:
        try:
            values[name] = shell.ev(text)
        except NameError as error:
            if text not in _METAL_WORDS:
                message = f"--constant {name}={text}: NameError: {error}"
                raise UsageError(message) from error
            values[name] = _METAL_WORDS[text]
        except Exception as error:
            message = f"--constant {name}={text}: {type(error).__name__}: {error}"
            raise UsageError(message) from error
    return values
