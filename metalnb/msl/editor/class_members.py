"""Find the public member functions of each class in a text, which clang does not always offer to complete."""

from __future__ import annotations

from ..text.bracket_tree import Tree, outline

__all__ = ["methods"]

_NO_NAMES = frozenset({"alignas", "alignof", "decltype", "operator", "sizeof", "static_assert"})


def methods(text: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the public member functions of each class in a text, as far as tokens show."""
    tree = outline(text).program
    by_class: dict[str, tuple[str, ...]] = {}
    for keyword, name_index, brace in tree.classes:
        name = tree.texts[name_index]
        names = _declared_methods(tree, brace, is_hidden=tree.texts[keyword] == "class")
        by_class[name] = tuple(dict.fromkeys([*by_class.get(name, ()), *(n for n in names if n != name)]))
    return by_class


def _declared_methods(tree: Tree, brace: int, *, is_hidden: bool) -> list[str]:
    """Return the names in a class that follow what could be a type and precede a parenthesis."""
    names = []
    end = tree.close(brace)
    end = end if end > 0 else len(tree.texts)
    k = brace + 1
    while k < end:
        text, following = tree.texts[k], tree.text(k + 1) if k + 1 < end else ""
        if text in {"public", "private", "protected"} and following == ":":
            is_hidden = text != "public"
        elif tree.tokens[k].kind == "word" and following == "(" and not is_hidden:
            previous = tree.tokens[k - 1]
            is_name = text not in _NO_NAMES and text[0] not in "$_" and previous.text != "operator"
            if is_name and (previous.kind == "word" or previous.text in {">", "*", "&"}):
                names.append(text)
        k = tree.skip(k)
    return names
