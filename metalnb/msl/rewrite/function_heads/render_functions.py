"""Remove functions of other stages next to a kernel (MSL 5.1), such as ``vertex``."""

from __future__ import annotations

from collections.abc import Iterator

from ...text.bracket_tree import FunctionHead, Outline, Tree
from ...text.edits import Omission

__all__ = ["render_functions"]

_STAGES = frozenset({"vertex", "fragment", "mesh", "object", "intersection"})
_WORDS = frozenset({"vertex", "fragment"})  # these may also be written without brackets
_SCOPES = frozenset({"namespace", "extern"})


def render_functions(text: Outline) -> Iterator[Omission]:
    """Remove these functions from a text that has a kernel; refuse any other text at its first unsupported name."""
    if "kernel" not in set(text.words):
        return
    tree = text.program
    for function in tree.functions:
        stage = _stage(tree, function)
        if not stage:
            continue
        closing = tree.close(function.end) if tree.texts[function.end] == "{" else function.end
        start, end = tree.tokens[tree.statement(function.name)].start, tree.tokens[closing].end
        inside = [d.name for d in text.directives if start <= d.start < end]
        if sum(name.startswith("if") for name in inside) == inside.count("endif"):
            name = tree.tokens[function.name]
            yield Omission(
                start, end, name.start, f"'{name.text}' is left out: it is a {stage} function",
                "metalnb runs a file's kernels and ignores the functions of its render pipelines",
            )  # fmt: skip


def _stage(tree: Tree, function: FunctionHead) -> str:
    """Return the stage of a function at file level; an empty string for a kernel or a helper."""
    start = tree.statement(function.name)
    brace = tree.enclosing(function.name, "{")
    if tree.texts[function.end] != ";" and tree.close(function.end) < 0:
        return ""
    if brace >= 0 and tree.text(brace - 1) not in _SCOPES and tree.text(brace - 2) not in _SCOPES:
        return ""
    lists = [(a, b) for a, b in tree.attribute_lists(start, function.name)]
    marks = {tree.texts[i] for a, b in lists for i in range(a, b)} & _STAGES
    words = {tree.texts[i] for i in range(start, function.name)} & _WORDS
    return min(marks | words, default="")
