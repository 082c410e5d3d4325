"""The notebook's magics: ``%%metal`` and ``%metal`` (imported as ``metalnb.magics``).

A magic parses its line, calls one public function and returns its value. IPython is imported when the extension is
loaded, not before.
"""

from __future__ import annotations

from typing import Any

if __name__ == "magics":
    raise ImportError("the folder magics/ is the package metalnb.magics: import that instead")

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

_NAME = "metal"


def load_ipython_extension(shell: Any) -> None:
    """Give IPython ``%%metal`` and ``%metal``."""
    from .cell import CellMagics
    from .line import LineMagics
    from .session import Session

    session = Session(shell)
    shell.register_magics(CellMagics(shell, session), LineMagics(shell, session))


def unload_ipython_extension(shell: Any) -> None:
    """Take them away again; kernels that cells have bound stay."""
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop(_NAME, None)
