"""Write expressions, from a table of how each operation is spelled in both Metal and the host's C++."""

from __future__ import annotations

from functools import reduce

from .tree import SIGNED, WIDTH, Expr, unsigned

__all__ = ["ExpressionWriter"]

# In braces may appear: an operand's number; `all` operands; the `type`; `u`, the unsigned type of its arithmetic;
# `narrow`, the type if C++ would promote it to int, else nothing; `last`, the last bit's number; a variable's `name`;
# `part`, the component after its dot; and the `text` itself.
_FORMS = {
    "var": "{name}", "component": "{name}.{part}", "swizzle": "{name}.{part}",
    "load": "{text}[{0} & 63]", "take": "{name}[{0} & 7]", "call": "{text}({all}, zero)",
    # Pointers
    "offset": "({name} + ({0} & 3))", "row": "{name}[{0} & 1]", "cell": "(&{name}[0][0])[{0} & 7]",
    "through": "{name}[{0} & 3]",
    # Integers
    "add": "{type}({u}({0}) + {u}({1}))", "sub": "{type}({u}({0}) - {u}({1}))", "mul": "{type}({u}({0}) * {u}({1}))",
    "and": "{narrow}({0} & {1})", "or": "{narrow}({0} | {1})", "xor": "{narrow}({0} ^ {1})", "not": "{narrow}(~{0})",
    "rawdiv": "{narrow}({0} / {1})", "rawrem": "{narrow}({0} % {1})", "rawand": "{narrow}({0} & {1})",
    "div": "safe_div<{type}>({0}, {1})", "rem": "safe_rem<{type}>({0}, {1})",
    "shl": "{type}({u}({0}) << ({u}({1}) & {last}))", "shr": "{type}({0} >> ({u}({1}) & {last}))",
    "neg": "{type}(0 - {u}({0}))", "abs": "{type}(abs({0}))",
    "clamp": "{type}(clamp({0}, min({1}, {2}), max({1}, {2})))",
    "truncated": "whole<{type}>({0})",
    # Conditions
    "lt": "({0} < {1})", "le": "({0} <= {1})", "gt": "({0} > {1})", "ge": "({0} >= {1})", "eq": "({0} == {1})",
    "ne": "({0} != {1})", "both": "({0} && {1})", "either": "({0} || {1})", "choose": "({0} ? {1} : {2})",
    # Floats
    "fadd": "{type}({0} + {1})", "fsub": "{type}({0} - {1})", "fmul": "K({type}({0} * {1}), zero)",
    "fneg": "{type}(-{0})", "cast": "{type}({0})", "tohalf": "{type}({0})", "tofloat": "{type}({0})",
    # Vectors
    "vadd": "({0} + {1})", "vsub": "({0} - {1})", "vand": "({0} & {1})", "vor": "({0} | {1})", "vxor": "({0} ^ {1})",
    "vmin": "min({0}, {1})", "vmax": "max({0}, {1})", "make": "make_{type}({all})",
    # Results
    "bits": "bits({0})",
}  # fmt: skip
_CALLED = (
    "min", "max", "absdiff", "mulhi", "popcount", "clz", "ctz", "median3", "fmin", "fmax", "fabs", "floor", "ceil",
    "trunc",
)  # fmt: skip
_FORMS |= {name: f"{{type}}({name}({{all}}))" for name in _CALLED}

_OF_UNSIGNED_WORDS = {"add": "({0} + {1})", "sub": "({0} - {1})", "mul": "({0} * {1})"}
_OF_SIGNED = {"abs": "{type}({0} < 0 ? 0 - {u}({0}) : {u}({0}))"}  # of the least integer: itself
_SUFFIX = {"uint": "u", "long": "l", "ulong": "ul"}


class ExpressionWriter:
    """Writes expressions as the host's C++; subclasses override what differs."""

    def name(self, name: str) -> str:
        """Return a variable's spelling."""
        return name

    def form(self, op: str, kind: str) -> str:
        """Return the form of an operation on a type, with its operands in braces."""
        if kind in {"uint", "ulong"} and op in _OF_UNSIGNED_WORDS:
            return _OF_UNSIGNED_WORDS[op]
        if kind in SIGNED and op in _OF_SIGNED:
            return _OF_SIGNED[op]
        return _FORMS[op]

    def expr(self, e: Expr) -> str:
        """Return an expression's text, whose type is the one in the tree."""
        if e.op == "const":
            return _literal(e.type, e.text)
        args = [self.expr(x) for x in e.args]
        if e.op == "mix":
            return reduce("({}) * 31u + {}".format, args)
        name, _, part = e.text.partition(".")
        words = {"type": e.type, "all": ", ".join(args), "name": self.name(name), "part": part, "text": e.text}
        return self.form(e.op, e.type).format(*args, **words, **_of_integers(e.type))


def _of_integers(kind: str) -> dict[str, object]:
    """Return the replacements that only integers have."""
    if kind not in WIDTH:
        return {}
    return {"u": unsigned(kind), "narrow": kind if WIDTH[kind] < 32 else "", "last": WIDTH[kind] - 1}


def _literal(kind: str, text: str) -> str:
    """Return a literal of a type."""
    whole = f"{text}{_SUFFIX.get(kind, '')}"
    if WIDTH.get(kind, 32) < 32:
        return f"{kind}({whole})"
    return f"({whole})" if text.startswith("-") else whole
