"""Limit the time that a compiler or a parser may take."""

from __future__ import annotations

import os

__all__ = ["time_limit"]


def time_limit(characters: int | None = None) -> float:
    """Return the seconds that a compiler may take: ``METALNB_COMPILE_TIMEOUT``, else 120.

    Parameters
    ----------
    characters : int, optional
        The length of a text that is only parsed, at about ten thousand characters a second. A short text that takes
        much longer (templates that each instantiate two others, say) would not finish in two minutes either.
    """
    setting = os.environ.get("METALNB_COMPILE_TIMEOUT")
    if setting or characters is None:
        return float(setting or 120)
    return min(120.0, 20 + characters / 500)
