"""Parse and evaluate the calls on a magic's line: ``saxpy(x, y, a=2.0)``, ``saxpy@1``, ``saxpy@cpu``."""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import keyword
import re
import tokenize
from collections import ChainMap
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

from ..call.kernel import Kernel
from ..engine import REGISTRY, RENAMED
from .session import Session

__all__ = ["Call", "evaluate_call", "parse_call", "split", "string_spans"]

# ``saxpy@1`` is not useful Python, since nothing supports @ with a number. In a matrix product there are spaces around
# it, or an array's name follows it.
_ENGINE = "|".join(sorted(map(re.escape, (*REGISTRY, *RENAMED)), key=len, reverse=True)) + r"(?::\d+)?"
_VERSION = re.compile(rf"\b([^\W\d]\w*)(?:@(\d+))?(?:@({_ENGINE}))?(?<=\w)(?!\w)")
_PLACED = re.compile(r"metalnb_version_(\d*)_on_(\w*?)_of_(\w+)")
_COLON = "__"  # replaces the colon of an engine's name
_COLLECT = "metalnb_collect"
_STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", None)}  # Python 3.12 has tokens for f-strings' parts


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is parsed but not yet evaluated.

    Attributes
    ----------
    text : str
        The call as written.
    function : ast.expr
    arguments : ast.Call or None
        The call that has its arguments; None if the text has none, as in ``saxpy@1``.
    """

    text: str
    function: ast.expr
    arguments: ast.Call | None

    @property
    def name(self) -> str:
        """The function's name, without a version or an engine."""
        return re.sub(rf"(@\d+)?(@({_ENGINE}))?$", "", self.label)

    @property
    def label(self) -> str:
        """The function as written; for a lambda, or for text that is not a call, the entire text."""
        if isinstance(self.function, ast.Lambda):
            text = self.text
            while text.startswith("(") and text.removeprefix("(").lstrip().startswith(("(", "lambda")):
                text = text[1:-1].strip()
            return text
        return _PLACED.sub(_author_name, ast.unparse(self.function))


def parse_call(magic: str, text: str) -> Call:
    """Parse one call; a semicolon after it is dropped.

    Raises
    ------
    UsageError
        If the text is not one call.
    """
    text = text.strip().rstrip("; \t")
    try:
        body = ast.parse(_with_placeholders(text), mode="eval").body
    except SyntaxError as error:
        message = f"{magic}: {text!r} is not a call or an expression: {error.msg}. Write {magic} saxpy(x, y, a=2.0)"
        raise UsageError(message) from error
    if isinstance(body, ast.Constant) and isinstance(body.value, str):  # an expression in quotes
        return parse_call(magic, body.value)
    if isinstance(body, ast.Call):
        return Call(text, body.func, body)
    if _names_something(body):
        return Call(text, body, None)
    function = body if isinstance(body, ast.Lambda) else _as_function(body)
    return Call(text, function, ast.Call(function, [], []))


def _with_placeholders(text: str) -> str:
    """Replace the versions of kernels, and kernels on an engine, by names; text in strings stays as it is."""
    spans = string_spans(text)
    return _VERSION.sub(lambda m: m[0] if any(m.start() in span for span in spans) else _placeholder(m), text)


def string_spans(text: str) -> list[range]:
    """Return where the strings of an expression are."""
    starts = [0, *itertools.accumulate(len(line) + 1 for line in text.split("\n"))]
    spans = []
    with contextlib.suppress(tokenize.TokenError, SyntaxError):  # the parser reports the error
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in _STRINGS:
                (first_row, first), (last_row, last) = token.start, token.end
                spans.append(range(starts[first_row - 1] + first, starts[last_row - 1] + last))
    return spans


def _placeholder(match: re.Match[str]) -> str:
    """Return a name for a version of a kernel or a kernel on an engine; return any other word unchanged."""
    name, number, engine = match.groups(default="")
    if not number and not engine:
        return name
    return f"metalnb_version_{number}_on_{engine.replace(':', _COLON)}_of_{name}"


def _author_name(match: re.Match[str]) -> str:
    """Return the author's text that a placeholder's name replaces."""
    number, engine, name = match.groups()
    return name + (f"@{number}" if number else "") + (f"@{engine.replace(_COLON, ':')}" if engine else "")


def _names_something(body: ast.expr) -> bool:
    """Return whether an expression names a function: ``saxpy``, ``program.saxpy``, ``kernels['saxpy']``."""
    if isinstance(body, ast.Attribute) or (isinstance(body, ast.Subscript) and not isinstance(body.slice, ast.Slice)):
        return _names_something(body.value)
    return isinstance(body, ast.Name)


def _as_function(body: ast.expr) -> ast.Lambda:
    """Return a function that evaluates an expression; the versions of kernels in it are looked up once."""
    names = sorted({n.id for n in ast.walk(body) if isinstance(n, ast.Name) and _PLACED.fullmatch(n.id)})
    parameters = ast.arguments(
        [], [ast.arg(n) for n in names], None, [], [], None, [ast.Name(n, ast.Load()) for n in names],
    )  # fmt: skip
    return ast.Lambda(parameters, body)


def split(text: str) -> list[str]:
    """Split a line where one expression ends and another begins: ``a(x) b(x)`` into two, like ``a(x), x + y``."""
    starts, depth, last_end = [0], 0, ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline):
            word = token.string
            is_name = token.type == tokenize.NAME and not keyword.iskeyword(word)
            value = is_name or token.type in {tokenize.STRING, tokenize.NUMBER}
            can_begin = value or word == "lambda" or (word == "(" and text.strip()[token.start[1] - 1].isspace())
            follows = last_end and can_begin and (word != "(" or last_end == ")")
            if depth == 0 and token.string and (last_end == "," or follows):
                starts.append(token.start[1])
            depth += (word in {"(", "[", "{"}) - (word in {")", "]", "}"})
            last_end = word if word in {")", "]", ","} or value else ""
    except (tokenize.TokenError, IndentationError):  # a bracket is not closed: the parser reports it
        return [text.strip()]
    return [text.strip()[a:b].rstrip(" ,") for a, b in zip(starts, [*starts[1:], None], strict=True)]


def evaluate_call(
    session: Session, call: Call, arguments: ast.Call | None
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Evaluate a call's function and arguments in the user's namespace, without calling it.

    Raises
    ------
    UsageError
        If a version does not exist.
    Exception
        Whatever the user's expressions raise.
    """
    shell = session.shell
    call_arguments = arguments or ast.Call(call.function, [], [])
    code = ast.Call(ast.Name(_COLLECT, ast.Load()), [call.function, *call_arguments.args], call_arguments.keywords)
    versions = {
        node.id: _version(session, match[3], match[1], match[2].replace(_COLON, ":"))
        for node in ast.walk(code)
        if isinstance(node, ast.Name) and (match := _PLACED.fullmatch(node.id))
    }
    tree = ast.fix_missing_locations(ast.Expression(code))
    names = ChainMap({_COLLECT: _collect, **versions}, shell.user_ns)
    result: tuple[Any, tuple[Any, ...], dict[str, Any]] = eval(  # noqa: S307  (the user's own)
        compile(tree, "<magic>", "eval"), shell.user_global_ns, names
    )
    if isinstance(call.function, ast.Lambda):
        result[0].__name__ = call.label
    return result


def _collect(function: Any, /, *args: Any, **keywords: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    return function, args, keywords


def _version(session: Session, name: str, number: str, engine: str) -> Any:
    """Return a version of a kernel, or a kernel on the named engine; if the names are arrays, return their product."""
    versions = session.versions.get(name, [])
    if number and not 1 <= int(number) <= len(versions):
        none = f"no cell has bound a kernel {name!r}"
        available = f"there are {name}@1 to {name}@{len(versions)}" if versions else none
        raise UsageError(f"{name}@{number}: {available}")
    kernel = versions[int(number) - 1] if number else session.shell.user_ns.get(name)
    if not engine:
        return kernel
    if not isinstance(kernel, Kernel):
        kind = f"{name!r} is of type {type(kernel).__name__}" if name in session.shell.user_ns else f"no {name!r}"
        raise UsageError(f"{name}@{engine}: takes a kernel to an engine; {kind}. Write a product as {name} @ {engine}")
    return kernel.on(engine)
