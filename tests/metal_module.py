"""The metalcompute that the tests use: the real one where it can be imported, otherwise its double."""

import importlib
from types import ModuleType


def metal_module() -> ModuleType:
    """Return metalcompute, or the double."""
    try:
        return importlib.import_module("metalcompute")
    except ImportError:
        return importlib.import_module("metalnb.metalcompute")
