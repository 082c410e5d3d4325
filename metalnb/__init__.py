"""metalnb: a notebook for Metal kernels.

A ``%%metal`` cell holds Metal Shading Language; running it binds each kernel as a Python callable, on an Apple GPU
or on the CPU of any x86-64 machine. ``%load_ext metalnb`` loads the magics.
"""

from __future__ import annotations

import importlib
import sys
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
    from .arrays.array import Array
    from .arrays.convert import array, asarray, from_dlpack
    from .arrays.inspection import can_cast, finfo, iinfo, isdtype, result_type
    from .arrays.memory import MemoryInfo, clear_cache, memory_info
    from .arrays.stream import synchronize
    from .engine import EngineStatus, engines, use
    from .kernel import Kernel
    from .library_kernels.expressions import elementwise
    from .library_kernels.monoid import reduction
    from .program import Program, compile, load
    from .timing.compare import Comparison, compare
    from .timing.limits import Limits, limits
    from .timing.measure import measure
    from .timing.records import Timing, Traffic
    from .timing.roofline import Roofline, roofline
    from .validation.access_report import Validation
    from .validation.run import validate
    from .widgets.dashboard import dashboard
    from .widgets.explore import explore
    from .widgets.monitor import monitor
    from .widgets.tune import tune

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Array",
    "Comparison",
    "CompileError",
    "EngineStatus",
    "EngineUnavailable",
    "Kernel",
    "KernelFault",
    "LaunchError",
    "Limits",
    "MemoryInfo",
    "MetalnbError",
    "MetalnbWarning",
    "Program",
    "Roofline",
    "Timing",
    "Traffic",
    "Validation",
    "array",
    "asarray",
    "can_cast",
    "clear_cache",
    "compare",
    "compile",
    "dashboard",
    "elementwise",
    "engines",
    "explore",
    "finfo",
    "from_dlpack",
    "iinfo",
    "isdtype",
    "limits",
    "load",
    "measure",
    "memory_info",
    "monitor",
    "reduction",
    "result_type",
    "roofline",
    "synchronize",
    "tune",
    "use",
    "validate",
]

# Public name -> module that has it, imported on first use.
_LAZY = {
    "Array": "arrays.array",
    "array": "arrays.convert",
    "asarray": "arrays.convert",
    "from_dlpack": "arrays.convert",
    "can_cast": "arrays.inspection",
    "finfo": "arrays.inspection",
    "iinfo": "arrays.inspection",
    "isdtype": "arrays.inspection",
    "result_type": "arrays.inspection",
    "MemoryInfo": "arrays.memory",
    "clear_cache": "arrays.memory",
    "memory_info": "arrays.memory",
    "synchronize": "arrays.stream",
    "EngineStatus": "engine",
    "engines": "engine",
    "use": "engine",
    "Kernel": "kernel",
    "elementwise": "library_kernels.expressions",
    "reduction": "library_kernels.monoid",
    "Program": "program",
    "compile": "program",
    "load": "program",
    "Comparison": "timing.compare",
    "compare": "timing.compare",
    "Limits": "timing.limits",
    "limits": "timing.limits",
    "measure": "timing.measure",
    "Validation": "validation.access_report",
    "validate": "validation.run",
    "Roofline": "timing.roofline",
    "roofline": "timing.roofline",
    "Timing": "timing.records",
    "Traffic": "timing.records",
    "dashboard": "widgets.dashboard",
    "explore": "widgets.explore",
    "monitor": "widgets.monitor",
    "tune": "widgets.tune",
}


_MODULES = ("random",)
_STANDARD = frozenset({"__array_api_version__", "__array_namespace_info__"})


# What is looked up is kept among this module's globals: `sum`, `abs`, `bool` and their kin must not be used as Python's
# own in this file.
def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    elif name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    else:
        value = _of_library(name)
    globals()[name] = value
    return value


def _of_library(name: str) -> Any:
    """Give an op, a dtype or a constant: the library is loaded when the first of them is asked for."""
    from importlib.util import find_spec

    private = name.startswith("_") and name not in _STANDARD
    # `from metalnb import engine` asks here first, and must not load the library on its own way to be loaded.
    if not private and find_spec(f"{__name__}.{name}") is None:
        from .library_kernels import namespace

        try:
            return namespace.find(name)
        except KeyError:
            pass
    message = f"module 'metalnb' has no attribute {name!r}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    from .library_kernels import namespace

    return sorted({*__all__, *namespace.names(), *_MODULES, "__version__"})


def load_ipython_extension(shell: Any) -> None:
    """Load the magics into IPython (``%load_ext metalnb``)."""
    from .magics import load_ipython_extension as load_magics

    load_magics(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics out of IPython (``%unload_ext metalnb``)."""
    from .magics import unload_ipython_extension as unload_magics

    unload_magics(shell)
