"""Check that the host can read the arrays of a prepared call."""

from __future__ import annotations

from metalnb.arrays.stream import synchronize
from metalnb.call.kernel import Dispatch
from metalnb.errors import ArgumentError

__all__ = ["require_host_visible"]


def require_host_visible(dispatch: Dispatch, caller: str) -> None:
    """Refuse arrays in a device's own memory; wait for the dispatches that may still write to the others.

    Raises
    ------
    ArgumentError, KernelFault
    """
    if not dispatch.residents:
        return
    engine = dispatch.kernel.engine
    if not engine.caps.shared:
        message = (
            f"{caller}: {dispatch.kernel.name} runs on engine {engine.name!r}, which has its own memory. "
            "Pass NumPy's arrays: numpy.asarray(x)."
        )
        raise ArgumentError(message)
    synchronize(engine.name)
