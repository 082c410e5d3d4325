"""Turn Metal's report of a failed dispatch into a `KernelFault`."""

from __future__ import annotations

from typing import Any

from metalnb.errors import KernelFault

from .bindings import Bindings
from .command_buffers import Batch

__all__ = ["fault_of"]

# Metal's name, from `MTLCommandBufferError` -> the fault's kind, and its meaning.
_MEANING = {
    "Timeout": ("stopped", "it ran longer than the system lets a GPU work at a time. Make the grid smaller"),
    "PageFault": ("", "it accessed memory that it was not given. `validate` names the access"),
    "InvalidResource": ("", "a buffer of it was freed while it ran"),
    "OutOfMemory": ("", "the GPU has no memory left for it"),
    "StackOverflow": ("", "its functions call each other too deeply, or have too many variables"),
    "NotPermitted": ("", "the system does not let this process use the GPU now"),
    "AccessRevoked": ("", "the system took the GPU from this process, as after several faults. Restart the kernel"),
    "DeviceRemoved": ("", "the GPU was unplugged"),
    "Internal": ("", "Metal does not say why"),
}
_STATE = {"Faulted": "faulted", "Affected": "was stopped by another's fault", "Pending": "had not started"}


def fault_of(found: Bindings, name: str, batch: Batch) -> KernelFault | None:
    """Return the fault of a completed command buffer; None if there is none.

    Parameters
    ----------
    found : Bindings
    name : str
        The name of the kernel.
    batch : Batch
    """
    command = batch.command
    if command.status() != found.metal.MTLCommandBufferStatusError:
        return None
    error = command.error()
    if error is None:
        return KernelFault(f"{name}: the GPU did not run it; Metal does not say why.")
    code = int(error.code())
    word = next((w for w in _MEANING if getattr(found.metal, f"MTLCommandBufferError{w}") == code), "")
    kind, meaning = _MEANING.get(word, ("", "Metal does not say why"))
    shown = f"MTLCommandBufferError{word}" if word else f"MTLCommandBufferError {code}"
    others = len(batch.names) - 1
    if others:
        meaning = f"{meaning}. It or one of the {others} dispatches that share its command buffer is at fault"
    told = f"{name}: the GPU did not finish it ({shown}): {meaning}.{_encoders(found.metal, error)}"
    return KernelFault(f"{told} Metal: {error.localizedDescription()}", kind=kind)


def _encoders(metal: Any, error: Any) -> str:
    """Return the encoders' states, if Metal reports them."""
    told = []
    for about in error.userInfo().get(metal.MTLCommandBufferEncoderInfoErrorKey) or ():
        state = about.errorState()
        word = next((w for w in _STATE if getattr(metal, f"MTLCommandEncoderErrorState{w}") == state), "")
        if word:
            told.append(f"encoder '{about.label()}' {_STATE[word]}")
    return f" ({', '.join(told)}.)" if told else ""
