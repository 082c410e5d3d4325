"""A program: from a cell's source to its kernels, ready to be called.

Source and options form a `Recipe`. The front end turns it into one `Unit` of ``msl`` per kernel. The result is a
`Program` of callable kernels. The same recipe returns the same program. An engine compiles a kernel when it is first
called. This package launches nothing.
"""

from __future__ import annotations

from .compiled import Math, Program, compile, load

__all__ = ["Math", "Program", "compile", "load"]
