"""Find words that the project does not use: ``python tests/words.py``, a part of `make lint`.

``words.txt`` lists them, each with a replacement. The search covers prose: documents, notebooks' text, the code's
docstrings, comments and messages, and the comments of settings.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Word", "files", "found", "words"]

ROOT = Path(__file__).resolve().parent.parent
LIST = Path(__file__).with_name("words.txt")
FOLDERS = ("benchmarks", "docs", "labextension", "metalnb", "notebooks", "tests")
KINDS = {".c", ".css", ".h", ".ipynb", ".js", ".md", ".metal", ".py"}
SETTINGS = ("Makefile", "pyproject.toml", ".ci/run", ".github/**/*.yml")
# Generated from prose that is checked at its source; and the test that the search finds words.
SPARED = {"metalnb/library_kernels/README.md", "metalnb/msl/README.md", "tests/project/test_words.py"}
_C_COMMENT = re.compile(r"//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/", re.DOTALL)
_HASH_COMMENT = re.compile(r"(?<!\S)#[^\n]*(?:\n[ \t]*#[^\n]*)*")


class Word(NamedTuple):
    """A word or phrase that the project does not use, and its replacement."""

    pattern: re.Pattern[str]
    instead: str


def words(text: str) -> list[Word]:
    """Read the list."""
    rows = [re.split(r"\s{2,}", line, maxsplit=1) for line in text.splitlines() if line and line[0] != "#"]
    patterns = [pattern.replace(" ", r"\s") for pattern, _ in rows]
    return [
        Word(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead.strip())
        for pattern, (_, instead) in zip(patterns, rows, strict=True)
    ]


def files() -> Iterator[Path]:
    """Yield the files whose prose is checked."""
    yield from ROOT.glob("*.md")
    for pattern in SETTINGS:
        yield from sorted(ROOT.glob(pattern))
    for folder in FOLDERS:
        for path in sorted(ROOT.joinpath(folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in KINDS and name not in SPARED and not {"node_modules", "prebuilt"} & {*path.parts}:
                yield path


def found(path: Path, known: list[Word]) -> Iterator[str]:
    """Yield a line for each listed word in a file."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    for first, raw in _prose(path):
        # Separate words by one character, also across a line break and the next comment line's prefix.
        text = re.sub(r"[ \t]+", " ", re.sub(r"[ \t]*\n[ \t]*(?:#|//+|\*)?[ \t]*", "\n", raw))
        for word in known:
            for match in word.pattern.finditer(text):
                line = first + text.count("\n", 0, match.start())
                yield f"{name}:{line}: “{' '.join(match[0].split())}”: write: {word.instead}"


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each piece of prose with its first line, counted from the cell's start in a notebook."""
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                yield 1, _without_code(source)
            else:
                yield from _matches(_C_COMMENT, source)
                yield from _matches(_HASH_COMMENT, source)
    elif path.suffix == ".md":
        yield 1, _without_code(text)
    elif path.suffix == ".py":
        yield from _comments(text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield node.lineno, _without_code(node.value)
    else:
        yield from _matches(_C_COMMENT if path.suffix in KINDS else _HASH_COMMENT, text)


def _matches(comment: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield each comment with its first line."""
    for match in comment.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[0]


def _without_code(text: str) -> str:
    """Blank out blocks and spans of code, keeping the lines."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", lambda span: "`" * len(span[0]), text)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield Python comments, with those on consecutive lines as one."""
    lines: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if lines and token.start[0] != last + 1:
            yield last - len(lines) + 1, "\n".join(lines)
            lines = []
        lines.append(token.string)
        last = token.start[0]
    if lines:
        yield last - len(lines) + 1, "\n".join(lines)


if __name__ == "__main__":
    known = words(LIST.read_text("utf-8"))
    lines = [line for path in files() for line in found(path, known)]
    sys.exit("\n".join(lines) or 0)
