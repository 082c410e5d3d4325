"""The notebook's magics: ``%%metal`` and ``%metal`` (imported as ``metalnb.magics``).

Input: a line, a cell's source and the user's namespace. Output: the result of the public function that a magic calls,
and a cell's kernels in the namespace. ``cell_magic`` and ``line_magic`` are the two magics,
``timing_magics`` has the measuring ones; ``option_values`` turns a line's words into values, ``line_calls`` parses its
calls, ``session`` keeps what a notebook has compiled, ``call_checks`` checks calls before they are made,
``card_answers`` answers the cards' buttons, ``completer`` and ``inspection`` answer Tab and Shift-Tab, and
``ipython_hooks`` installs them. A magic computes nothing. IPython is imported only when the
extension is loaded.
"""

from __future__ import annotations

from typing import Any

if __name__ == "magics":
    raise ImportError("the folder magics/ is the package metalnb.magics: import that instead")

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

_NAMES = ("metal", "metal_time", "metal_compare", "metal_profile")


def load_ipython_extension(shell: Any) -> None:
    """Load ``%%metal``, ``%metal``, the measuring magics, and completion and inspection of MSL into IPython."""
    from .cell_magic import CellMagics
    from .ipython_hooks import install
    from .line_magic import LineMagics
    from .session import Session
    from .timing_magics import TimingMagics

    session = Session.of(shell)
    shell.register_magics(CellMagics(shell, session), LineMagics(shell, session), TimingMagics(shell, session))
    install(shell, session)


def unload_ipython_extension(shell: Any) -> None:
    """Remove everything that `load_ipython_extension` added; kernels that cells have bound remain."""
    from .ipython_hooks import remove

    remove(shell)
    for kind in ("cell", "line"):
        for name in _NAMES:
            shell.magics_manager.magics[kind].pop(name, None)
