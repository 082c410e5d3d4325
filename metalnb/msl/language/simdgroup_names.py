"""MSL's names that involve SIMD-groups or quad-groups (MSL 5.2.3.6, 6.9.2, 6.9.3)."""

from __future__ import annotations

__all__ = ["names_simdgroups"]


def names_simdgroups(word: str) -> bool:
    """Return whether a word, if it is one of MSL's names, involves SIMD-groups or quad-groups."""
    bare_word = word.removeprefix("$").removeprefix("__metal_")  # prefixes of metalnb's headers, and of Apple's
    return bare_word.startswith(("simd", "quad")) or "_simdgroup" in bare_word or "_quadgroup" in bare_word
