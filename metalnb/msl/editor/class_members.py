"""The public member functions of each class in a text, which clang does not always offer to complete."""

from __future__ import annotations

from ..text.bracket_tree import Tree, outline

__all__ = ["methods"]

_NO_NAMES = frozenset({"alignas", "alignof", "decltype", "operator", "sizeof", "static_assert"})


def methods(text: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the public member functions of each class in a text, as far as tokens show."""
    tree = outline(text).program
    found: dict[str, tuple[str, ...]] = {}
    for at, brace in tree.classes:
        name = tree.texts[at]
        declared = _declared(tree, brace, hidden=tree.texts[at - 1] == "class")
        found[name] = tuple(dict.fromkeys([*found.get(name, ()), *(n for n in declared if n != name)]))
    return found


def _declared(tree: Tree, brace: int, *, hidden: bool) -> list[str]:
    """Return the words of a class that precede a parenthesis, after what can be the end of a type."""
    names = []
    end = tree.close(brace)
    end = end if end > 0 else len(tree.texts)
    k = brace + 1
    while k < end:
        text, following = tree.texts[k], tree.text(k + 1) if k + 1 < end else ""
        if text in {"public", "private", "protected"} and following == ":":
            hidden = text != "public"
        elif tree.tokens[k].kind == "word" and following == "(" and not hidden:
            before = tree.tokens[k - 1]
            is_name = text not in _NO_NAMES and text[0] not in "$_" and before.text != "operator"
            if is_name and (before.kind == "word" or before.text in {">", "*", "&"}):
                names.append(text)
        k = tree.after(k)
    return names
