"""Turn attributes into annotations that libclang reports (MSL 5): ``[[buffer(0)]]`` -> ``[[$attribute("buffer", 0)]]``.

An attribute that Metal does not have, or that is used wrongly, is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..language.attributes import ATTRIBUTES, MEANT, PASSED_OVER, STANDARD, Attribute
from ..text.bracket_tree import Outline, Tree
from ..text.edits import Edit, Refusal
from ..text.instantiations import explicit_instantiations
from .input_declarations import scope_inputs

__all__ = ["attribute_annotations"]

_CLASS = frozenset({"class", "struct", "union"})
_ENDS = frozenset({";", ")", "{", "}"})
_REFUSED = '$attribute("refused", {})'


def attribute_annotations(text: Outline) -> Iterator[Edit | Refusal]:
    """Annotate the attributes; drop those of an explicit instantiation, since clang allows none there."""
    input_ranges = [(each.start, each.end) for each in scope_inputs(text.program)]
    for tree in text.trees:
        dropped_lists = {(a, b) for instantiation in explicit_instantiations(tree) for a, b in instantiation.lists}
        yield from (Edit(tree.tokens[a].start, tree.tokens[b].end, "") for a, b in dropped_lists)
        for a, b in tree.attribute_lists(tree.first):
            is_input = any(start <= tree.tokens[a].start < end for start, end in input_ranges)
            if (a, b) not in dropped_lists and not is_input:
                edits = list(_list(text, tree, a, b))
                yield from _move_to_name(text, tree, (a, b), edits) or edits
        for i in range(tree.first, len(tree.texts) - 1):
            if tree.texts[i] == "kernel" and tree.texts[i + 1] == "[":
                # clang accepts a GNU attribute, which `kernel` becomes, only after a bracketed list.
                yield Edit(tree.tokens[i].start, tree.tokens[i].end, '[[$attribute("kernel")]]')


def _move_to_name(
    text: Outline, tree: Tree, place: tuple[int, int], edits: list[Edit | Refusal]
) -> list[Edit | Refusal]:
    """Move a parameter's attributes from after an array's extents, where clang applies them to the type, to its name.

    ``constant float (&c)[4] [[buffer(1)]]`` -> ``constant float (&c [[$attribute("buffer", 1)]])[4]``.
    """
    a, b = place
    i = _declared_token(tree, a)
    has_name = i >= 0 and tree.tokens[i].kind == "word"
    if tree.text(a - 1) != "]" or not has_name or tree.text(tree.enclosing(a, "({")) != "(":
        return []
    if any(isinstance(edit, Refusal) for edit in edits):
        return []
    start, end = tree.tokens[a].start, tree.tokens[b].end
    pieces, position = [], start
    for edit in edits:
        pieces += [text.source[position : edit.start], edit.text] if isinstance(edit, Edit) else []
        position = edit.end
    attributes = "".join([*pieces, text.source[position:end]])
    name_end = tree.tokens[i].end
    return [
        Edit(name_end, name_end, f" {' '.join(attributes.split())}"), Edit(start, end, "\n" * attributes.count("\n")),
    ]  # fmt: skip


def _declared_token(tree: Tree, a: int) -> int:
    """Return the token that an attribute list follows; after an array's extents, return the name, as in ``(&c)[4]``."""
    i = a - 1
    while tree.text(i) == "]" and tree.open(i) >= 0:
        i = tree.open(i) - 1
    return i - 1 if i < a - 1 and tree.text(i) == ")" else i


def _list(text: Outline, tree: Tree, a: int, b: int) -> Iterator[Edit | Refusal]:
    """Edit the attribute list between two positions."""
    i = a + 2
    while i < b - 1:
        last = tree.close(i + 1) if tree.text(i + 1) == "(" else i
        if tree.text(i + 1) == "::":  # clang::…: the compiler's own attribute
            i += 2
            last = tree.close(i + 1) if tree.text(i + 1) == "(" else i
        elif tree.tokens[i].kind == "word" and tree.texts[i] not in STANDARD:
            yield from _attribute(text, tree, (i, max(i, last)), (a, b))
        i = max(last, i) + 1
        while tree.text(i) == ",":
            i += 1


def _attribute(
    text: Outline, tree: Tree, places: tuple[int, int], brackets: tuple[int, int]
) -> Iterator[Edit | Refusal]:
    """Edit one attribute, from its name to the parenthesis that closes its argument."""
    word, last = tree.tokens[places[0]], tree.tokens[places[1]]
    name = word.text
    has_argument = last is not word
    inner = text.source[tree.tokens[places[0] + 1].end : last.start].strip() if has_argument else ""
    if name in PASSED_OVER and inner:
        yield Edit(word.start, last.end, f'$attribute("{name}")')
        return
    declared = ATTRIBUTES.get(name)
    if declared is None or declared.argument != bool(inner) or declared.argument != has_argument:
        yield Refusal(word.start, last.end, word.start, *_misuse(name), _REFUSED)
        return
    if declared.use in {"input", "parameter"}:
        scope = _scope(tree, *brackets)
        if scope:
            words = _misplaced_message(text.source[word.start : last.end], scope, declared)
            yield Refusal(word.start, last.end, word.start, *words, _REFUSED)
            return
    if declared.use == "graphics":
        inner = ""  # it may use undeclared names of the graphics pipeline; the attribute is refused
    if name == "function_constant":
        a, b = brackets
        if tree.enclosing(a, "(") >= 0:
            inner = f'"{inner}"'  # a parameter's attribute names its gate
        elif a > 0 and tree.tokens[a - 1].kind == "word":
            yield Edit(tree.tokens[b].end, tree.tokens[b].end, f" $initial({tree.texts[a - 1]})")
    yield Edit(word.start, last.end, f'$attribute("{name}"{", " + " ".join(inner.split()) if inner else ""})')


def _scope(tree: Tree, a: int, b: int) -> str:
    """Return the scope of the variable that a list follows: "program" or "function"; empty for any other list."""
    i = _declared_token(tree, a)
    if tree.macro or i < 0 or tree.tokens[i].kind != "word" or tree.enclosing(a, "(") >= 0:
        return ""
    if tree.text(tree.find(b + 1, _ENDS)) != ";":
        return ""  # a parameter whose list is opened by a macro
    scope, brace = "program", tree.enclosing(a, "{")
    while brace >= 0:
        head = tree.texts[tree.statement(brace) : brace]
        if not _CLASS.isdisjoint(head):
            return ""
        if "namespace" not in head and '"C"' not in head:
            scope = "function"
        brace = tree.enclosing(brace, "{")
    return scope


def _misplaced_message(attribute: str, scope: str, declared: Attribute) -> tuple[str, str]:
    """Return the message and the hint for an attribute of a kernel's parameter that is used elsewhere."""
    cure = "declare it as a parameter of the kernel"
    if scope == "function":
        return f"[[{attribute}]] on a variable in a function", f"{cure} (MSL {declared.section})"
    if declared.use == "input":
        message = f"[[{attribute}]] on a program-scope variable that is not declared as uint3 name [[{attribute}]];"
        return message, "declare each input separately, with no word before its type except const (MSL 5.9)"
    message = f"[[{attribute}]] on a program-scope variable: metalnb supports it only on a parameter of a kernel"
    return message, f"{cure}, and pass it to the functions that use it (MSL 5.9)"


def _misuse(name: str) -> tuple[str, str]:
    """Return the message and the hint for a wrong attribute."""
    declared = ATTRIBUTES.get(name)
    if declared is not None:
        rule = f"needs an argument: [[{name}(…)]]" if declared.argument else f"takes no argument: [[{name}]]"
        return f"attribute '{name}' {rule}", ""
    import difflib

    similar = [MEANT[name]] if name in MEANT else difflib.get_close_matches(name, ATTRIBUTES, n=1)
    hint = f"did you mean [[{similar[0]}]]?" if similar else "see section 5.2 of the MSL specification"
    return f"unknown attribute '{name}'", hint
