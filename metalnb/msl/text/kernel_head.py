"""Find a kernel's head in the author's source, and make the edits that change it.

The passes that rewrite a kernel's text (the metal engine, `validate`, the puzzles) rename parameters, add some, and
insert statements at the start of the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ..signature import Input, Param, Signature
from .bracket_tree import FunctionHead, Tree, outline
from .edits import Edit
from .tokens import Token

__all__ = ["KernelHead", "ParameterText", "attribute_range", "kernel_head", "kernel_heads"]


@dataclass(frozen=True, slots=True)
class ParameterText:
    """One parameter of a kernel, as written.

    Attributes
    ----------
    declarator : tuple of Token
        Its type and name.
    lists : tuple of (int, int)
        The offsets of its attribute lists.
    attributes : frozenset of str
        The words in them.
    """

    declarator: tuple[Token, ...]
    lists: tuple[tuple[int, int], ...]
    attributes: frozenset[str]

    @property
    def start(self) -> int:
        """The offset of its start in the text."""
        return min(self.declarator[0].start, *(start for start, _ in self.lists), self.declarator[0].start)

    @property
    def end(self) -> int:
        """The offset of its end in the text."""
        return max(self.declarator[-1].end, *(end for _, end in self.lists), 0)

    def name(self, name: str) -> Token:
        """Return the token of the parameter's name; its last token if it has none."""
        return next((t for t in reversed(self.declarator) if t.text == name), self.declarator[-1])


class KernelHead:
    """A kernel's definition, from its attributes to the brace of its body; positions in the text are offsets.

    Attributes
    ----------
    parameters : tuple of ParameterText
    commas : tuple of int
        Between the parameters.
    start : int
        The position at which an attribute list can be inserted before the kernel.
    end : int
        The closing parenthesis of the parameter list.
    """

    def __init__(self, tree: Tree, function: FunctionHead, word: int) -> None:
        self._tree = tree
        self._function = function
        ranges = tree.parts(function.opening)
        self.parameters = tuple(_parameter(tree, a, b) for a, b in ranges)
        self.commas = tuple(tree.tokens[a - 1].start for a, _ in ranges[1:])
        self.start = tree.tokens[word].start
        self.end = tree.tokens[function.closing].start

    @property
    def is_template(self) -> bool:
        """Whether the definition is a template's."""
        return self._tree.text(self._tree.statement(self._function.name)) == "template"

    @property
    def body(self) -> tuple[int, int]:
        """The positions in the tree of the body's first token and of its closing brace."""
        return self._function.end + 1, self._tree.close(self._function.end)

    @cached_property
    def limits(self) -> tuple[tuple[int, int], ...]:
        """The range of ``max_total_threads_per_threadgroup(…)`` with a comma, or of its list if it is alone there."""
        tree, ranges = self._tree, []
        for a, b in tree.attribute_lists(tree.statement(self._function.opening), self._function.end):
            for i in range(a, b):
                if tree.texts[i] == "max_total_threads_per_threadgroup":
                    first, last = attribute_range(tree, a, b, i)
                    ranges.append((tree.tokens[first].start, tree.tokens[last].end))
        return tuple(ranges)

    def rename(self, name: str, new_name: str) -> Edit:
        """Rename a parameter, in the head only."""
        token = next(p.name(name) for p in self.parameters if any(t.text == name for t in p.declarator))
        return Edit(token.start, token.end, new_name)

    def add(self, parameters: str, *, is_first: bool | None = None) -> Edit:
        """Append parameters; `is_first` is true when edits remove all the existing ones."""
        needs_no_comma = not self.parameters if is_first is None else is_first
        return Edit(self.end, self.end, f"{'' if needs_no_comma else ', '}{parameters}")

    def prepend(self, statements: str) -> Edit:
        """Insert statements at the start of the body."""
        offset = self._tree.tokens[self._function.end].end
        return Edit(offset, offset, statements)

    def fits(self, signature: Signature) -> bool:
        """Return whether the head may belong to a kernel with this signature."""
        parameter_inputs = [i for i in signature.inputs if not i.scoped]
        count = signature.arity - len(signature.inputs) + len(parameter_inputs)
        if len(self.parameters) != count or not all(p.declarator for p in self.parameters):
            return False
        roles: list[Param | Input] = [*signature.params, *parameter_inputs]
        for role in roles:
            parameter = self.parameters[role.position]
            if role.name and all(t.text != role.name for t in parameter.declarator):
                return False
            if isinstance(role, Input) and role.attribute not in parameter.attributes:
                return False
        return True


def kernel_head(source: str, signature: Signature) -> tuple[Tree, KernelHead] | None:
    """Return the head of a kernel in a text; None for a template, or a head that a macro writes."""
    if "<" in signature.function:
        return None
    tree = outline(source).program
    return next(((tree, h) for h in kernel_heads(tree, signature) if not h.is_template), None)


def kernel_heads(tree: Tree, signature: Signature) -> Iterator[KernelHead]:
    """Return the heads that fit a signature: by name, or in a macro only by the parameters."""
    name = re.sub(r"<.*", "", signature.function, flags=re.DOTALL).split("::")[-1].strip()
    for function in tree.functions:
        if tree.texts[function.end] == "{" and (tree.macro or tree.texts[function.name] == name):
            word = _kernel_word(tree, function)
            head = KernelHead(tree, function, word) if word >= 0 else None
            if head is not None and head.fits(signature):
                yield head


def _kernel_word(tree: Tree, function: FunctionHead) -> int:
    """Return the word ``kernel`` before a function, or the attribute list that contains it; -1 if there is none."""
    first = tree.statement(function.opening)
    for i in range(function.opening - 1, first - 1, -1):
        if tree.texts[i] == "kernel":
            return next((a for a, b in tree.attribute_lists(first, function.opening) if a < i < b), i)
    return -1


def attribute_range(tree: Tree, opening: int, closing: int, position: int) -> tuple[int, int]:
    """Return the range to delete to remove one attribute from a list: the entire list if it has no other attribute."""
    end = max(position, tree.close(position + 1))
    if tree.text(position - 1) == ",":
        return position - 1, end
    return (position, end + 1) if tree.text(end + 1) == "," else (opening, closing)


def _parameter(tree: Tree, start: int, stop: int) -> ParameterText:
    lists = list(tree.attribute_lists(start, stop))
    attribute_positions = {i for a, b in lists for i in range(a, b + 1)}
    return ParameterText(
        tuple(tree.tokens[i] for i in range(start, stop) if i not in attribute_positions),
        tuple((tree.tokens[a].start, tree.tokens[b].end) for a, b in lists),
        frozenset(tree.texts[i] for i in attribute_positions if tree.tokens[i].kind == "word"),
    )
