"""metalnb: a notebook for Metal kernels.

A ``%%metal`` cell holds Metal Shading Language; running it binds each kernel as a Python callable, on an Apple GPU
or on the CPU of any x86-64 machine. ``%load_ext metalnb`` loads the magics.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .errors import (
    ArgumentError,
    CompileError,
    EngineUnavailable,
    KernelFault,
    LaunchError,
    MetalnbError,
    MetalnbWarning,
)

if TYPE_CHECKING:
    from .engine import EngineStatus, engines, use
    from .kernel import Kernel
    from .program import Program, compile, load

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "CompileError",
    "EngineStatus",
    "EngineUnavailable",
    "Kernel",
    "KernelFault",
    "LaunchError",
    "MetalnbError",
    "MetalnbWarning",
    "Program",
    "compile",
    "engines",
    "load",
    "use",
]

# Public name -> module that has it, imported on first use.
_LAZY = {
    "EngineStatus": "engine",
    "engines": "engine",
    "use": "engine",
    "Kernel": "kernel",
    "Program": "program",
    "compile": "program",
    "load": "program",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        message = f"module 'metalnb' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def load_ipython_extension(shell: Any) -> None:
    """Load the magics into IPython (``%load_ext metalnb``)."""
    from .magics import load_ipython_extension as load_magics

    load_magics(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics out of IPython (``%unload_ext metalnb``)."""
    from .magics import unload_ipython_extension as unload_magics

    unload_magics(shell)
