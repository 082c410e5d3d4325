"""The engines, which run kernels.

Input: a kernel's text (a `Unit`), memory, arguments and grids. Output: a dispatch in flight. Engines know nothing of
NumPy's dtype rules, arrays or callable kernels. A new engine is a package here and a row in `REGISTRY`; the rest of
metalnb uses it only through ``base.py``.
"""

from __future__ import annotations

from .base import Engine
from .engine_choice import REGISTRY, RENAMED, current, engines, named, use, why_current
from .engine_list import EngineList, EngineStatus

__all__ = [
    "REGISTRY", "RENAMED", "Engine", "EngineList", "EngineStatus", "current", "engines", "named", "use", "why_current",
]  # fmt: skip
