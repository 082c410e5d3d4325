"""PyObjC's modules, and the metadata that PyObjC needs before Metal is used through it."""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
from dataclasses import dataclass
from typing import Any

from metalnb.errors import EngineUnavailable
from metalnb.msl.language.versions import VERSIONS, Version

__all__ = ["Bindings", "load_bindings"]

_NEEDS = "engine 'metal' needs macOS 13 and PyObjC: pip install pyobjc-framework-Metal"

# The first macOS whose Metal has a version of the language (Metal Shading Language specification, 1.1).
_SINCE: dict[Version, int] = {(2, 3): 11, (2, 4): 12, (3, 0): 13, (3, 1): 14, (3, 2): 15}


@dataclass(frozen=True, slots=True)
class Bindings:
    """PyObjC's modules, or doubles of them.

    Attributes
    ----------
    metal : module
        ``Metal``, or a double of it.
    objc : module
        ``objc`` of pyobjc-core, or the double's.
    """

    metal: Any
    objc: Any

    @property
    def version(self) -> str:
        """PyObjC's version."""
        return str(self.objc.__version__)

    def language(self) -> Version:
        """Return the newest language version of this macOS that a cell can select."""
        return max(v for v in VERSIONS if v == VERSIONS[0] or self.objc.macos_available(_SINCE[v], 0))

    def pool(self) -> contextlib.AbstractContextManager[Any]:
        """Return an autorelease pool, which Python's threads lack, so that command buffers do not pile up."""
        pool: contextlib.AbstractContextManager[Any] = self.objc.autorelease_pool()
        return pool


def load_bindings(module: Any = None) -> Bindings:
    """Load PyObjC.

    Parameters
    ----------
    module : module, optional
        A double of it, with an attribute ``objc``; by default the one that ``METALNB_METAL`` names, else PyObjC.

    Raises
    ------
    EngineUnavailable
    """
    name = os.environ.get("METALNB_METAL")
    if module is None and name:
        module = importlib.import_module(name)
    if module is not None:
        return _register_metadata(Bindings(module, module.objc))
    if platform.system() != "Darwin":
        raise EngineUnavailable(_NEEDS)
    try:
        return _register_metadata(Bindings(importlib.import_module("Metal"), importlib.import_module("objc")))
    except ImportError as error:
        raise EngineUnavailable(_NEEDS) from error


def _register_metadata(bindings: Bindings) -> Bindings:
    """Give PyObjC the metadata that its own tables lack.

    Those tables do not mark the ``const void*`` of a function constant as an input, so PyObjC would refuse bytes.
    """
    value = {"type": b"^v", "type_modifier": b"n", "c_array_of_variable_length": True}
    bindings.objc.registerMetaDataForSelector(b"NSObject", b"setConstantValue:type:atIndex:", {"arguments": {2: value}})
    return bindings
