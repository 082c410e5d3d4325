"""Simulation: bodies, heat, meshes."""

from __future__ import annotations

import numpy as np

from .case import Array, Bench, Check, Table, padded

table = Table()


@table.case({"n": 1, "threads": 32}, {"n": 100, "threads": 64}, {"n": 300, "threads": 128})
def nbody(bench: Bench, n: int, threads: int) -> list[Check]:
    program = bench.load()
    bodies = np.zeros(n, program.dtype("Body"))
    places = bodies["position"]
    places[..., :3] = bench.normal(n, 3)
    bodies["velocity"] = bench.normal(n, 3)
    bodies["mass"] = bench.rng.random(n)
    after = np.zeros_like(bodies)
    dt, softening = 0.01, 0.1
    program.nbody(
        bodies,
        after,
        {"count": n, "dt": dt, "softening_squared": softening**2},
        grid=padded(n, threads),
        threadgroup=threads,
        threadgroup_memory={"tile": 16 * threads},
    )
    at = places[..., :3].astype(np.float64)
    r = at - at[:, None]
    pull = bodies["mass"].astype(np.float64) / ((r**2).sum(-1) + softening**2) ** 1.5
    velocity = bodies["velocity"] + dt * (pull[..., None] * r).sum(1)
    magnitude = np.abs(bodies["velocity"]) + dt * (pull[..., None] * np.abs(r)).sum(1)
    moved = at + dt * velocity
    return [
        Check(after["velocity"], velocity, roundings=16 + n, scale=magnitude),
        Check(after["position"][..., :3], moved, roundings=16 + n, scale=np.abs(at) + dt * magnitude),
        Check(after["mass"], bodies["mass"]),
    ]


@table.case(  # lambdas need MSL 3.2
    {"width": 1, "height": 1}, {"width": 50, "height": 21}, {"width": 64, "height": 16}, metal=False
)
def laplacian(bench: Bench, width: int, height: int) -> Check:
    u = bench.normal(height, width)
    out = np.zeros_like(u)
    kernel = bench.load(TILE_X=16, TILE_Y=8).laplacian
    memory = {"tile": 4 * 18 * 10}
    kernel(u, out, (width, height), 0.1, grid=(width, height), threadgroup=(16, 8), threadgroup_memory=memory)
    wide = u.astype(np.float64)

    def shifted(a: Array, dy: int, dx: int) -> Array:
        return np.roll(a, (dy, dx), (0, 1))

    def nine(a: Array, center: float) -> Array:
        cross = sum(shifted(a, *s) for s in ((0, 1), (0, -1), (1, 0), (-1, 0)))
        corners = sum(shifted(a, *s) for s in ((1, 1), (1, -1), (-1, 1), (-1, -1)))
        return (4 * cross + corners + center * a) / 6

    return Check(out, wide + 0.1 * nine(wide, -20), roundings=16, scale=np.abs(wide) + 0.1 * nine(np.abs(wide), 20))


def _ordered(x: Array) -> Array:
    bits = x.astype(np.float32).view(np.uint32)
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))


@table.case({"n": 1}, {"n": 333})
def skinning(bench: Bench, n: int) -> list[Check]:
    program = bench.load()
    vertices = np.zeros(n, program.dtype("Vertex"))
    vertices["position"], vertices["normal"] = bench.normal(n, 3), bench.normal(n, 3)
    weights = bench.rng.random((n, 4)).astype(np.float16)
    vertices["weights"], vertices["bones"] = weights, bench.rng.integers(0, 7, (n, 4))
    bones = bench.normal(7, 4, 4)  # [bone][column][row], as in the kernel
    box = np.array([2**32 - 1] * 3 + [0] * 3, np.uint32)
    out = np.zeros(n, program.dtype("Skinned"))
    program.skin(vertices, bones, out, box, grid=n)
    m = (bones.astype(np.float64)[vertices["bones"]] * weights.astype(np.float64)[..., None, None]).sum(1)
    at = np.concatenate([vertices["position"], np.ones((n, 1))], -1).astype(np.float64)
    position = np.einsum("ncr,nc->nr", m, at)
    magnitude = np.einsum("ncr,nc->nr", np.abs(m), np.abs(at)) + 1
    normal = np.einsum("ncr,nc->nr", m[:, :3, :3], vertices["normal"])
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    spread = np.einsum("ncr,nc->nr", np.abs(m[:, :3, :3]), np.abs(vertices["normal"])).max(-1, keepdims=True) + 1
    got = out["position"]
    return [
        Check(got, position, roundings=24, scale=magnitude),
        Check(out["normal"][..., :3], normal / length, roundings=64, scale=spread / length),
        Check(box, np.concatenate([_ordered(got[:, :3]).min(0), _ordered(got[:, :3]).max(0)])),
    ]
