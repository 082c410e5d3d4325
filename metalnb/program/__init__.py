"""A program: from a cell's text to its kernels, ready to be called.

Text and options come in and become a `Recipe`; the front end reads it into one `Unit` of ``msl`` for each kernel; a
`Program` of callable kernels goes out, and the same recipe gives the same program. An engine compiles a kernel when
it is first called. Nothing here launches anything.
"""

from __future__ import annotations

from .compiled import Math, Program, compile, load

__all__ = ["Math", "Program", "compile", "load"]
