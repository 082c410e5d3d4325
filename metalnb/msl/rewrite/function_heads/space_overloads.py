"""Members that a class overloads for const objects in device and in constant memory (MSL 4).

To clang both are members for ``const __global`` objects. So the one for constant memory is renamed, and a member for
volatile objects takes its old name and calls it: ``T get() const constant { … }`` becomes

``T $constant_get() const __global { … } T get() const volatile __global { return $steady(this)->$constant_get(); }``

No object is really volatile: at a call of the member, `metalnb.msl.analysis.overload_calls` makes a constant object
appear volatile, ``$within<…>(c).get()``.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from metalnb.dtypes import SCALARS

from ...text.bracket_tree import FunctionHead, Outline, Tree
from ...text.edits import Edit

__all__ = [
    "CONVERSION", "OF_CONSTANT", "SpaceOverload", "name_number", "overloaded_names", "rename_members",
    "space_overloads",
]  # fmt: skip

CONVERSION = "operator "  # the name used for every conversion
OF_CONSTANT = "/*constant*/"  # after the qualifiers of a member for constant objects
_ACCESS = frozenset({"public", "private", "protected"})
_TYPES = re.compile(rf"(?:{'|'.join(SCALARS)}|packed_\w+)(?:[234](?:x[234])?)?|unsigned|signed|auto|double|size_t")
_BODY = frozenset({"{", ";"})


class SpaceOverload(NamedTuple):
    """A member for constant objects beside one for device objects.

    Attributes
    ----------
    function : FunctionHead
    name : str
        ``get``, ``operator[]``, or `CONVERSION`.
    inside : bool
        Whether the member is defined inside its class, not after it.
    """

    function: FunctionHead
    name: str
    inside: bool


def name_number(name: str) -> int:
    """Return the number assigned to a member's name."""
    return zlib.crc32(name.encode())


def overloaded_names(text: Outline) -> frozenset[str]:
    """Return the names of a text's members that are overloaded for device and constant objects."""
    return frozenset(member.name for tree in text.trees for member in space_overloads(tree))


def space_overloads(tree: Tree) -> list[SpaceOverload]:
    """Find the members for const objects that a class has for device objects and for constant ones."""
    if not {"device", "constant"} <= set(tree.texts):
        return []
    braces = {brace: tree.texts[name] for _, name, brace in tree.classes}
    spaces_by_key: dict[tuple[str, ...], set[str]] = {}
    members = []
    for function in tree.functions:
        owner = _owner(tree, function, braces)
        spaces = {tree.texts[i] for i in function.qualifiers} & {"device", "constant"}
        if not owner or len(spaces) != 1 or tree.texts[function.end] in {":", "="}:
            continue
        constant = spaces == {"constant"}
        key = (owner, *tree.texts[function.name : function.closing])
        if constant or any(tree.texts[i] == "const" for i in function.qualifiers):
            spaces_by_key.setdefault(key, set()).update(spaces)
        if constant:
            members.append((function, key))
    pairs = [f for f, key in members if len(spaces_by_key[key]) > 1]
    return [SpaceOverload(f, _member_name(tree, f), tree.enclosing(f.opening, "{") in braces) for f in pairs]


def rename_members(tree: Tree, members: Sequence[SpaceOverload]) -> Iterator[Edit]:
    """Edit a text's overloaded members, except for their qualifiers."""
    noted_members = set()
    for member in members:
        function, internal_name = member.function, _internal_name(tree, member)
        yield from _rename(tree, member, internal_name)
        if not member.inside:
            continue
        brace = tree.enclosing(function.opening, "{")
        note = (
            f" static void $overloads($named<{name_number(member.name)}u>);"
            if (brace, member.name) not in noted_members
            else ""
        )
        noted_members.add((brace, member.name))
        body = tree.find(function.end, _BODY)
        position = tree.tokens[max(body, tree.close(body))].end
        yield Edit(position, position, f"{note} {_caller(tree, function, internal_name, body)}")


def _owner(tree: Tree, function: FunctionHead, braces: dict[int, str]) -> str:
    """Return the name of a member's class; the member may be defined inside the class or after it."""
    brace = tree.enclosing(function.opening, "{")
    if brace in braces:
        return braces[brace]
    i = function.name - 1
    if tree.text(i) != "::":
        return ""
    i -= 1
    if tree.text(i) == ">":
        while i > tree.first and not (tree.texts[i] == "<" and tree.tokens[i - 1].kind == "word"):
            i -= 1
        i -= 1
    return tree.text(i)


def _member_name(tree: Tree, function: FunctionHead) -> str:
    if tree.texts[function.name] != "operator":
        return tree.texts[function.name]
    if tree.tokens[function.name + 1].kind == "word":
        return CONVERSION
    return "".join(tree.texts[function.name : function.opening])


def _internal_name(tree: Tree, member: SpaceOverload) -> str:
    full_name = "".join(tree.texts[member.function.name : member.function.opening])
    return f"$constant_{full_name if full_name.isidentifier() else f'{name_number(full_name):08x}'}"


def _rename(tree: Tree, member: SpaceOverload, internal_name: str) -> Iterator[Edit]:
    """Rename a member; a conversion becomes a function that returns the type it converts to."""
    function = member.function
    start, end = tree.tokens[function.name].start, tree.tokens[function.opening - 1].end
    if member.name != CONVERSION:
        yield Edit(start, end, internal_name)
        return
    for i in range(tree.statement(function.name), function.name):
        if tree.texts[i] == "explicit":
            yield Edit(tree.tokens[i].start, tree.tokens[i].end, "")
    kind = _source_text(tree, function.name + 1, function.opening)
    if member.inside:
        yield Edit(start, end, f"{kind} {internal_name}")
        return
    first = function.name
    while tree.texts[first - 1] == "::" or (tree.text(first) == "::" and tree.tokens[first - 1].kind == "word"):
        first -= 1
    yield Edit(tree.tokens[first].start, tree.tokens[first].start, f"{kind} ")
    yield Edit(start, end, internal_name)


def _caller(tree: Tree, function: FunctionHead, internal_name: str, body: int) -> str:
    """Write the member with the author's name, for objects that appear volatile."""
    first = tree.statement(function.name)
    while tree.text(first) in _ACCESS and tree.text(first + 1) == ":":
        first += 2
    parameters, names = [], []
    for n, (a, b) in enumerate(tree.parts(function.opening)):
        parameter, name = _parameter(tree, a, b, n)
        parameters.append(parameter)
        names.append(name)
    explicit, keyword = "", ""
    if tree.text(first) == "template":
        explicit, keyword = f"<{', '.join(_template_names(tree, first + 1))}>", "template "
    head = f"{_source_text(tree, first, function.opening)}({', '.join(parameters)}) const volatile __global "
    result_type = _source_text(tree, function.end, body)
    call = f"$steady(this)->{keyword}{internal_name}{explicit}({', '.join(names)})"
    return f"{head}{result_type} {{ return {call}; }}"


def _parameter(tree: Tree, a: int, b: int, n: int) -> tuple[str, str]:
    """Return a parameter's declaration, with a name, and the expression that passes it on."""
    if b - a == 1 and tree.texts[a] == "void":
        return "", ""
    stop = next((i for i in range(a, b) if tree.texts[i] == "="), b)
    pack = "..." if "..." in _source_text(tree, a, b) else ""
    for i in range(a, stop - 2):
        if tree.texts[i] == "(" and tree.texts[i + 1] in {"&", "*"} and tree.tokens[i + 2].kind == "word":
            return _source_text(tree, a, b), tree.texts[i + 2]
    last = next((i for i in range(a, stop) if tree.texts[i] == "["), stop) - 1
    word = tree.texts[last]
    is_unnamed = tree.tokens[last].kind != "word" or last == a or tree.texts[last - 1] in {"::", "const", "typename"}
    if is_unnamed or _TYPES.fullmatch(word):
        return f"{_source_text(tree, a, stop)} $a{n}{_source_text(tree, stop, b)}", f"$a{n}{pack}"
    return _source_text(tree, a, b), f"{word}{pack}"


def _template_names(tree: Tree, opening: int) -> Iterator[str]:
    """Yield the names of a template's own parameters."""
    for a, b in tree.parts(opening):
        stop = next((i for i in range(a, b) if tree.texts[i] == "="), b)
        pack = "..." if "..." in _source_text(tree, a, b) else ""
        yield f"{tree.texts[stop - 1]}{pack}"


def _source_text(tree: Tree, start: int, stop: int) -> str:
    """Return part of a text on one line, with the author's spacing."""
    pieces = []
    for i in range(start, stop):
        touching = i + 1 < stop and tree.tokens[i].end == tree.tokens[i + 1].start
        pieces.append(tree.texts[i] if touching or i + 1 == stop else f"{tree.texts[i]} ")
    return "".join(pieces)
