"""libclang's flags, and the paths of the files that it reads."""

from __future__ import annotations

import os
from pathlib import Path

from ..language.versions import DEFAULT, Version
from ..text.includes import INCLUDE

__all__ = ["FOLDER", "TARGET", "flags", "header_file", "posix_path"]

TARGET = Path(__file__).parent.parent / "target"
FOLDER = "/metalnb-cell"  # contains the cell and its header cells, which exist only in memory
# A warning for authors that clang does not enable by default, and a construct that clang rejects by default: `static
# constant float` with a value in a struct.
_WARNINGS = ("-Wuninitialized", "-Wno-static-float-init")


def header_file(name: str) -> str:
    """Return the path under which the parser looks for a header cell."""
    return f"{FOLDER}{os.sep}{name}"


def posix_path(file: str) -> str:
    """Return a file's name as passed to the parser, which on Windows joins some parts with backslashes."""
    return file.replace("\\", "/") if os.sep == "\\" else file


def flags(version: Version = DEFAULT) -> list[str]:
    """Return libclang's flags: C++ for OpenCL 2021 with the vendor's extensions that MSL needs."""
    return [
        "-x", "cl", "-cl-std=CLC++2021", "-cl-no-stdinc", "-nostdinc", "-cl-single-precision-constant",
        "-target", "spir64", "-fdeclspec", "-fparse-all-comments", "-fspell-checking", "-ferror-limit=64",
        "-ftemplate-depth=512", "-fno-elide-type",
        *_WARNINGS, f"-D__METAL_VERSION__={version[0] * 100 + version[1] * 10}",
        "-D__METAL__=1", "-DMETALNB=1", "-D$REFLECT=1", "-D$FAST_MATH=1",
        f"-I{INCLUDE}", f"-I{FOLDER}", f"-I{TARGET.parent}",
        "-include", str(TARGET / "words.h"), "-include", str(TARGET / "declarations.h"),
        "-include", str(INCLUDE / "metal_types"),  # vector types are the compiler's own, with no #include
    ]  # fmt: skip
