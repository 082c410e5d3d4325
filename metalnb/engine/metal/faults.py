"""Turn Metal's report of a failed dispatch into a `KernelFault`."""

from __future__ import annotations

from typing import Any

from metalnb.errors import KernelFault

from .bindings import Bindings
from .command_buffers import Batch

__all__ = ["read_fault"]

# Metal's name, from `MTLCommandBufferError` -> the fault's kind, and its meaning.
_MEANING = {
    "Timeout": ("stopped", "it ran longer than the system lets a GPU work at a time. Make the grid smaller"),
    "PageFault": ("", "it accessed memory outside its arguments. `validate` finds the access"),
    "InvalidResource": ("", "one of its buffers was freed while it ran"),
    "OutOfMemory": ("", "the GPU has no memory left for it"),
    "StackOverflow": ("", "its functions call each other too deeply, or have too many variables"),
    "NotPermitted": ("", "the system does not let this process use the GPU now"),
    "AccessRevoked": ("", "the system took the GPU from this process, as after several faults. Restart the kernel"),
    "DeviceRemoved": ("", "the GPU was unplugged"),
    "Internal": ("", "Metal does not say why"),
}
_STATE = {"Faulted": "faulted", "Affected": "was stopped by another's fault", "Pending": "had not started"}


def read_fault(bindings: Bindings, name: str, batch: Batch) -> KernelFault | None:
    """Return the fault of a completed command buffer; None if there is none.

    Parameters
    ----------
    bindings : Bindings
    name : str
        The name of the kernel.
    batch : Batch
    """
    command = batch.command
    if command.status() != bindings.metal.MTLCommandBufferStatusError:
        return None
    error = command.error()
    if error is None:
        return KernelFault(f"{name}: the GPU did not run it; Metal does not say why.")
    code = int(error.code())
    word = next((w for w in _MEANING if getattr(bindings.metal, f"MTLCommandBufferError{w}") == code), "")
    kind, meaning = _MEANING.get(word, ("", "Metal does not say why"))
    label = f"MTLCommandBufferError{word}" if word else f"MTLCommandBufferError {code}"
    others = len(batch.names) - 1
    if others:
        meaning = f"{meaning}. It or one of the {others} dispatches that share its command buffer is at fault"
    message = f"{name}: the GPU did not finish it ({label}): {meaning}.{_encoders(bindings.metal, error)}"
    return KernelFault(f"{message} Metal: {error.localizedDescription()}", kind=kind)


def _encoders(metal: Any, error: Any) -> str:
    """Return the encoders' states, if Metal reports them."""
    states = []
    for info in error.userInfo().get(metal.MTLCommandBufferEncoderInfoErrorKey) or ():
        state = info.errorState()
        word = next((w for w in _STATE if getattr(metal, f"MTLCommandEncoderErrorState{w}") == state), "")
        if word:
            states.append(f"encoder '{info.label()}' {_STATE[word]}")
    return f" ({', '.join(states)}.)" if states else ""
