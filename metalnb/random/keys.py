"""Keys, which identify streams of random numbers."""

from __future__ import annotations

import operator
import secrets

__all__ = ["CHILD", "SEED", "block", "key_of"]

_KEY_BITS = 64
SEED, CHILD = 1, 2  # the `use` of blocks from which keys are derived; the blocks of a stream have use 0


def key_of(seed: int | None) -> int:
    """Mix a seed into 64 bits, so that nearby seeds give unrelated streams."""
    if seed is None:
        return secrets.randbits(_KEY_BITS)
    number = operator.index(seed)
    if number < 0:
        raise ValueError(f"seed: must be 0 or more; got {seed}.")
    key = 0
    while True:
        words = block(number & 0xFFFFFFFFFFFFFFFF, key, SEED)
        key = words[0] | words[1] << 32
        number >>= 64
        if not number:
            return key


def block(number: int, key: int, use: int = 0) -> tuple[int, int, int, int]:
    """Return one block, as ``random.metal`` computes it; `use` is 0 for a stream, otherwise `SEED` or `CHILD`."""
    x, y, z, w = number & 0xFFFFFFFF, number >> 32, 0, use
    k, m = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = x * 0xD2511F53, z * 0xCD9E8D57
        x, y, z, w = (b >> 32) ^ y ^ k, b & 0xFFFFFFFF, (a >> 32) ^ w ^ m, a & 0xFFFFFFFF
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    return x, y, z, w
