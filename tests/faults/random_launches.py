"""Random memory, numbers and thread positions for a launch of a kernel."""

import random
import struct

from metalnb.engine.robust.launch_facts import LaunchFacts


def random_memory(rng: random.Random, size: int) -> bytes:
    """Return memory that holds mostly small numbers."""
    words = [rng.choice((rng.randrange(70), rng.randrange(70), rng.getrandbits(32))) for _ in range(size // 4 + 1)]
    return struct.pack(f"<{len(words)}I", *words)[:size]


def random_position(rng: random.Random, facts: LaunchFacts) -> tuple[dict[str, int], bytes]:
    """Return a thread's position, and its threadgroup's region."""
    grid, group = facts.grid, facts.threadgroup
    where = [rng.choice((0, n - 1, rng.randrange(n))) for n in grid]
    first = [w // t for w, t in zip(where, group, strict=True)]
    local = [w % t for w, t in zip(where, group, strict=True)]
    size = [min(t, g - f * t) for t, g, f in zip(group, grid, first, strict=True)]
    groups = [-(-g // t) for g, t in zip(grid, group, strict=True)]
    index = (local[2] * size[1] + local[1]) * size[0] + local[0]
    stands = {f"grid_{axis}": at for axis, at in zip("xyz", where, strict=True)}
    stands |= {f"group_{axis}": at for axis, at in zip("xyz", local, strict=True)}
    stands |= {"index": index, "lane": index % 32, "simdgroup": index // 32,
               "threads_here": size[0] * size[1] * size[2]}  # fmt: skip
    return stands, struct.pack("<15I", *first, *size, *group, *grid, *groups)


def random_number(rng: random.Random) -> int:
    near = rng.choice([0, 1, 8, 64, 32, -1, 2**31 - 1, -(2**31), 2**14, 2**30, 200])
    return (near + rng.randint(-3, 3)) % 2**32
