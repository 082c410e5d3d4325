"""Give vectors that functions take or return their own type again, in LLVM IR after inlining.

On x86-64 a function takes and returns a float2, half3 or half4 as a double. Where its components are also accessed one
by one, clang keeps the vector in memory, since no register type has these components and is a double.
"""

from __future__ import annotations

import re

__all__ = ["restore_vectors"]

_VARIABLE = re.compile(r"^  (%[\w.]+) = alloca double\b", re.MULTILINE)
_VECTORS = {"half": "<4 x half>", "float": "<2 x float>"}


def restore_vectors(text: str) -> str:
    """Return IR in which such variables are vectors, so that clang moves them into registers."""
    for variable in _VARIABLE.findall(text):
        parts = re.findall(
            rf"^  (%[\w.]+) = getelementptr [^,\n]*, ptr {re.escape(variable)}, i64 \d+\b", text, re.MULTILINE
        )  # fmt: skip
        places = "|".join(map(re.escape, (variable, *parts)))
        accesses = re.findall(
            rf"^  (?:store (half|float) .*|%[\w.]+ = load (half|float)), ptr (?:{places}),", text, re.MULTILINE
        )  # fmt: skip
        kinds = {stored or loaded for stored, loaded in accesses}
        if len(kinds) == 1:
            text = _as_vector(text, variable, _VECTORS[kinds.pop()])
    return text


def _as_vector(text: str, variable: str, vector: str) -> str:
    """Return IR in which a variable is a vector."""
    name = re.escape(variable)
    text = re.sub(rf"^(  {name} = alloca) double\b", rf"\1 {vector}", text, flags=re.MULTILINE)
    text = re.sub(
        rf"^  %([\w.]+) = load double, (ptr {name},.*)$",
        rf'  %"$loaded \1" = load {vector}, \2\n  %\1 = bitcast {vector} %"$loaded \1" to double',
        text, flags=re.MULTILINE,
    )  # fmt: skip

    def write_store(store: re.Match[str]) -> str:
        cast = f'%"$stored {variable[1:]} {store.start()}"'
        return f"  {cast} = bitcast double {store[1]} to {vector}\n  store {vector} {cast}, {store[2]}"

    return re.sub(rf"^  store double (\S+), (ptr {name},.*)$", write_store, text, flags=re.MULTILINE)
