"""Tell kernels that work on vectors of their own: the vectoriser would make 32 of each.

The library writes long results past the caches by such kernels (``library_kernels/metal/streamed.h``). Only a vector as
wide as a register, stored whole, is such a store of the device's; what the vectoriser makes of scalars is none,
whatever its alignment. MSL itself has no vectors of 16 elements, so no cell of a user's has such a kernel.

Source: SPIR-V specification 1.4, 3.26 (Memory Access: Nontemporal).
"""

from __future__ import annotations

from .module import Module, parsed
from .opcodes import Spv

__all__ = ["has_own_vectors"]

_NONTEMPORAL, _WIDE = 4, 16


def has_own_vectors(code: bytes) -> bool:
    """Return whether a module stores a vector of 16 elements past the caches."""
    module = parsed(code)
    return module is not None and any(
        i.op == Spv.STORE and len(i.words) > 3 and i.words[3] & _NONTEMPORAL and _is_wide(module, i.words[2])
        for function in module.functions for i in function
    )  # fmt: skip


def _is_wide(module: Module, value: int) -> bool:
    kind = module.key(module.type_of(value))
    return kind[0] == Spv.TYPE_VECTOR and kind[2] == _WIDE
