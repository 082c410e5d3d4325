"""metalnb: a notebook for Metal kernels.

A ``%%metal`` cell holds Metal Shading Language; running it binds each kernel as a Python callable, on an Apple GPU,
on an NVIDIA GPU, or on any machine's processor. ``%load_ext metalnb`` loads the magics.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from . import library_includes as _library_includes
from .arrays.implementations import implementations as _implementations
from .errors import (
    ArgumentError,
    CompileError,
    EngineUnavailable,
    KernelFault,
    LaunchError,
    MetalnbError,
    MetalnbWarning,
)
from .rendering import DISPLAY as _DISPLAY

__version__ = "0.1.0"

# The public names by module, imported on first use. Type checkers read `__init__.pyi`, which
# `make docs` writes from this table and the table of ops.
_PUBLIC = {
    "arrays.array": ("Array",),
    "arrays.convert": ("array", "asarray", "from_dlpack"),
    "arrays.dtype_info": ("can_cast", "finfo", "iinfo", "isdtype", "result_type"),
    "arrays.memory_pool": ("MemoryInfo", "memory_info"),
    "arrays.stream": ("clear_cache", "synchronize"),
    "call.kernel": ("Kernel",),
    "engine": ("EngineStatus", "engines", "use"),
    "engine.time_limits": ("timeout",),
    "library_kernels.elementwise.custom_elementwise": ("elementwise",),
    "library_kernels.fusion.fuse": ("fuse",),
    "library_kernels.reductions.custom_reduction": ("reduction",),
    "program": ("Program", "compile", "load"),
    "profiling.profile_call": ("profile",),
    "profiling.profile_record": ("Profile",),
    "timing.compare": ("Comparison", "compare"),
    "timing.gpu_capture": ("capture",),
    "timing.limits": ("Limits", "limits"),
    "timing.measure": ("measure",),
    "timing.records": ("Timing", "Traffic"),
    "timing.roofline": ("Roofline", "roofline"),
    "stepping.trace_record": ("KernelTrace",),
    "stepping.trace_call": ("trace",),
    "validation.access_report": ("Validation",),
    "validation.run": ("validate",),
    "widgets.animate": ("animate",),
    "widgets.dashboard": ("dashboard",),
    "widgets.explore": ("explore",),
    "widgets.monitor": ("monitor",),
    "widgets.tune": ("tune",),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = [  # noqa: PLE0604  (strings from the table)
    "ArgumentError", "CompileError", "EngineUnavailable", "KernelFault", "LaunchError", "MetalnbError",
    "MetalnbWarning", *_HOMES,
]  # fmt: skip

# Inject into lower packages the ops that arrays run, and the files that a cell can include. The first op loads the
# kernel library.
def _implementation(name: str) -> Any:
    from .library_kernels.array_methods import find

    return find(name)


_implementations.find = _implementation
_library_includes.folders["metalnb"] = Path(__file__).parent / "library_kernels" / "metal"

_MODULES = ("dask", "linalg", "random")
_STANDARD = frozenset({"__array_api_version__", "__array_namespace_info__"})


# Names that are looked up become this module's globals, so `sum`, `abs`, `bool` and others must not be used as Python's
# in this file.
def __getattr__(name: str) -> Any:
    if name in _HOMES:
        if _HOMES[name].startswith("widgets."):
            _check_display(name)
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    else:
        value = _library_name(name)
    globals()[name] = value
    return value


def _check_display(name: str) -> None:
    """Raise an error that says how to install what a widget needs, if it is missing."""
    from importlib.util import find_spec

    missing = [package for package in _DISPLAY if find_spec(package) is None]
    if missing:
        message = f"metalnb.{name} needs {', '.join(missing)}: pip install 'metalnb[display]'"
        raise AttributeError(message, name=name, obj=sys.modules[__name__])


def _library_name(name: str) -> Any:
    """Return an op, a dtype or a constant; the first one loads the library."""
    from importlib.util import find_spec

    hint, private = "", name.startswith("_") and name not in _STANDARD
    # `from metalnb import engine` looks here first, and must not load the library while being loaded itself.
    if not private and find_spec(f"{__name__}.{name}") is None:
        from .library_kernels import namespace

        try:
            return namespace.find(name)
        except KeyError:
            hint = namespace.hint(name)
    message = f"module 'metalnb' has no attribute {name!r}{hint}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    from .library_kernels import namespace

    return sorted({*__all__, *namespace.names(), *_MODULES, "__version__"})


def load_ipython_extension(shell: Any) -> None:
    """Load the magics into IPython (``%load_ext metalnb``)."""
    from .magics import load_ipython_extension as load_magics

    load_magics(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics from IPython (``%unload_ext metalnb``)."""
    from .magics import unload_ipython_extension as unload_magics

    unload_magics(shell)
