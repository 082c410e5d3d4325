"""Highlight Metal in Pygments: C++ with Metal's extensions. It is registered as the Pygments plugin ``metal``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexers.c_cpp import CppLexer
from pygments.token import Keyword, Name

from .dtypes import layout_of

__all__ = ["MetalLexer"]

# MSL 4 (address spaces) and 5.1 (functions).
_WORDS = frozenset({"kernel", "device", "constant", "threadgroup", "thread"})
_TYPE = re.compile(r"(?:atomic_\w+|simdgroup_\w+|(?:packed_)?vec|[su]?size_t|ptrdiff_t|u?int\d+_t)$")


class MetalLexer(CppLexer):
    """Metal Shading Language."""

    name = "Metal"
    aliases: ClassVar[list[str]] = ["metal"]
    filenames: ClassVar[list[str]] = ["*.metal"]
    alias_filenames: ClassVar[list[str]] = []
    mimetypes: ClassVar[list[str]] = ["text/x-metal"]

    def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[tuple[int, Any, str]]:
        """Yield the tokens with their positions."""
        for index, kind, word in super().get_tokens_unprocessed(text, stack):
            if word in _WORDS and (kind in Name or kind in Keyword):
                yield index, Keyword, word
            elif (kind in Name or kind in Keyword) and (layout_of(word) or _TYPE.match(word)):
                yield index, Keyword.Type, word
            else:
                yield index, kind, word

    def analyze_text(text: str) -> float:  # noqa: N805  (Pygments makes a static method of it)
        """Return how likely it is that a text is Metal."""
        return 0.5 if "#include <metal_stdlib>" in text else 0.0
