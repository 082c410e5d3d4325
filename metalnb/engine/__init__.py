"""What runs kernels: the engines.

Input: a kernel's text (a `Unit`), memory, arguments and grids. Output: a dispatch in flight. Nothing here knows NumPy's
dtype rules, arrays or kernels as callables. A new engine is a module or room beside the others and a row in `REGISTRY`;
``base.py`` is all that the rest of metalnb may use of it.
"""

from __future__ import annotations

from .base import Engine
from .engine_choice import REGISTRY, RENAMED, current, engines, named, use, why_current
from .engine_list import EngineList, EngineStatus

__all__ = [
    "REGISTRY", "RENAMED", "Engine", "EngineList", "EngineStatus", "current", "engines", "named", "use", "why_current",
]  # fmt: skip
