"""Write a number with its noun, for messages: ``1 thread``, ``1,024 threads``."""

from __future__ import annotations

__all__ = ["quantity"]


def quantity(count: int, noun: str, plural: str = "") -> str:
    """Write a number and its noun, which is plural unless the number is 1.

    Parameters
    ----------
    count : int
    noun : str
        The singular.
    plural : str, optional
        The plural; by default the singular with an s.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
