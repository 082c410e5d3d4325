"""Parse the formats of kernels' output (MSL 6.19): C's conversions, and those for vectors, ``%v4f``."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["PRINTERS", "Conversion", "conversions", "wants"]

# Functions that take a format and then values.
PRINTERS = frozenset({"$printf", "log", "log_debug", "log_info", "log_error", "log_fault"})

_CONVERSION = re.compile(
    r"%(?P<style>[-+ #0]*\d*(?:\.\d+)?)(?:v(?P<lanes>[234]))?(?P<length>hh|hl|h|ll|l)?(?P<letter>[a-zA-Z%])"
)


class Conversion(NamedTuple):
    """One conversion of a format.

    Attributes
    ----------
    text : str
        The conversion as written.
    style : str
        Flags, width and precision.
    lanes : int
        The components of a vector; 1 for a scalar.
    letter : str
    start, end : int
        Its position in the format.
    length : str
        The length modifier, such as ``hh`` or ``l``.
    """

    text: str
    style: str
    lanes: int
    letter: str
    start: int
    end: int
    length: str = ""


def conversions(format: str) -> list[Conversion]:
    """Return the conversions of a format, without ``%%``; a conversion that is not understood has an empty letter."""
    result = []
    start = 0
    while (start := format.find("%", start)) >= 0:
        match = _CONVERSION.match(format, start)
        if match is None:
            result.append(Conversion(format[start : start + 2], "", 1, "", start, start + 1))
            start += 1
            continue
        if match["letter"] != "%":
            letter = match["letter"] if match["letter"] in _WANTS else ""
            lanes, length = int(match["lanes"] or 1), match["length"] or ""
            result.append(Conversion(match[0], match["style"], lanes, letter, *match.span(), length))
        start = match.end()
    return result


_WANTS = {
    **dict.fromkeys("diuoxXc", "an integer"), **dict.fromkeys("fFeEgGaA", "a float or half"), "p": "a pointer",
    "s": "a string",
}  # fmt: skip


def wants(conversion: Conversion) -> str:
    """Return the value that a conversion takes, in words."""
    kind = _WANTS[conversion.letter]
    return f"a vector of {conversion.lanes}: each {kind}" if conversion.lanes > 1 else kind
