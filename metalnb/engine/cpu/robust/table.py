"""The table that a checked kernel is given: words of 64 bits, of which the kernel writes those of the first fault."""

from __future__ import annotations

__all__ = ["FAULT", "OFFSET", "POSITION", "SIZES", "STOP"]

FAULT = 0  # the number of the access that was wrong first, from 1; 0 for none
OFFSET = 1  # where it would have been: bytes from the root of its pointer, or an address
POSITION = 2  # OpenCL's global id of its thread: 3 words
STOP = 5  # not 0: the kernel is to end
SIZES = 8  # of each argument, two words: its address and its bytes
