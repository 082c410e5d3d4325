"""Load cuda-bindings, which wraps the API of NVIDIA's driver, or report why it is unavailable."""

from __future__ import annotations

import importlib
import importlib.util
import threading
from typing import Any

from metalnb.errors import EngineUnavailable

__all__ = ["INSTALL", "driver_api"]

INSTALL = 'pip install "metalnb[cuda]"'

_lock = threading.Lock()


def driver_api() -> Any:
    """Return the module ``cuda.bindings.driver``, with the driver initialized.

    Raises
    ------
    EngineUnavailable
        If the module is not installed, or there is no driver or no GPU.
    """
    if not _is_installed():
        message = f"engine 'cuda' needs an NVIDIA GPU and the package cuda-bindings: {INSTALL}"
        raise EngineUnavailable(message)
    api = importlib.import_module("cuda.bindings.driver")
    with _lock:
        try:
            status = api.cuInit(0)[0]
        except RuntimeError as error:
            message = "engine 'cuda' needs an NVIDIA GPU and its driver (libcuda), which is not on this machine"
            raise EngineUnavailable(message) from error
    if status:
        reason = (api.cuGetErrorString(status)[1] or b"unknown error").decode()
        message = f"engine 'cuda' needs an NVIDIA GPU; the driver says: {reason} (see nvidia-smi)"
        raise EngineUnavailable(message)
    return api


def _is_installed() -> bool:
    package = importlib.util.find_spec("cuda")
    if package is None or package.submodule_search_locations is None:  # a script named cuda.py is not imported
        return False
    return importlib.util.find_spec("cuda.bindings") is not None
