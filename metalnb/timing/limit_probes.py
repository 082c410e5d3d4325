"""The kernels that measure the limits: each does one thing, as fast as the engine can.

Several kernels are tried for each limit, because the form that suits a CPU (one thread per float, which the compiler
vectorizes) may not suit a GPU (four floats per thread); the best result counts.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ARITHMETIC", "PROBES", "Probe"]

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
_AT = "uint i [[thread_position_in_grid]]"


@dataclass(frozen=True, slots=True)
class Probe:
    """A kernel, and the work of each of its threads.

    Attributes
    ----------
    name : str
    limit : str
        The field of `Limits` that it measures.
    source : str
        A cell with one kernel, ``probe``, whose buffers are named a, b, c.
    amount : float
        Bytes moved or operations done by each thread.
    elements : int
        The floats of the first array that each thread handles.
    threads : int
        Threads in the grid; 0 for as many as the array needs.
    threadgroups : tuple of int
    """

    name: str
    limit: str
    source: str
    amount: float
    elements: int = 1
    threads: int = 0
    threadgroups: tuple[int, ...] = (256, 1024)


def _memory(limit: str, transfers: int, scalar_parameters: str, vector_parameters: str) -> list[Probe]:
    """Return the two forms of a probe, one float per thread and four; each element is transferred `transfers` times."""
    return [
        Probe(f"{limit} float", limit, f"{_HEAD}kernel void probe({scalar_parameters}, {_AT}) {{ {_BODY[limit]} }}\n",
              4 * transfers),
        Probe(f"{limit} float4", limit, f"{_HEAD}kernel void probe({vector_parameters}, {_AT}) {{ {_BODY[limit]} }}\n",
              16 * transfers, 4),
    ]  # fmt: skip


_BODY = {
    "write": "a[i] = 1.0f;",
    "copy": "a[i] = b[i];",
    "triad": "a[i] = b[i] + 3.0f * c[i];",
    "update": "a[i] = 1.0f - a[i];",
}
_A, _B, _C = "device {0}* a", "device const {0}* b", "device const {0}* c"

# These kernels only read: they store if they find a value that the array does not contain, which the compiler cannot
# know. Reading at four distant positions keeps several memory channels busy.
_READ = f"""{_HEAD}kernel void probe(device float* a, device const float* b, {_AT}, uint n [[threads_per_grid]]) {{
    if (b[i] + b[i + n] + b[i + 2 * n] + b[i + 3 * n] == -12345.0f) a[0] = 1.0f;
}}
"""
_READ_WIDE = f"""{_HEAD}kernel void probe(device float* a, device const float4* b, {_AT}) {{
    if (dot(b[i], float4(1.0f)) == -12345.0f) a[0] = 1.0f;
}}
"""


def _forms(*templates: str) -> tuple[str, str]:
    text = ", ".join(templates)
    return text.replace("{0}", "float"), text.replace("{0}", "float4")


PROBES: tuple[Probe, ...] = (
    Probe("read float", "read", _READ, 16, 4),
    Probe("read float4", "read", _READ_WIDE, 16, 4),
    *_memory("write", 1, *_forms(_A)),
    *_memory("copy", 2, *_forms(_A, _B)),
    *_memory("triad", 3, *_forms(_A, _B, _C)),
    *_memory("update", 2, *_forms(_A)),
)

_THREADS = 1 << 16
_ROUNDS, _UNROLLED = 256, 8


def _chains(count: int) -> Probe:
    """Return ``count`` independent chains of fused multiply-adds; a·0.999 + 0.001 stays near 1."""
    names = [f"x{n}" for n in range(count)]
    step = " ".join(f"{x} = fma({x}, m, k);" for x in names)
    source = f"""{_HEAD}kernel void probe(device float* a, device const float* b, {_AT}) {{
    float m = 0.999f * b[0], k = 0.001f * b[1];
    float {", ".join(f"{x} = b[{n}]" for n, x in enumerate(names))};
    for (uint j = 0; j < {_ROUNDS}; ++j) {{ {" ".join([step] * _UNROLLED)} }}
    a[i] = {" + ".join(names)};
}}
"""
    return Probe(f"{count} chains", "flops", source, 2.0 * count * _ROUNDS * _UNROLLED, 1, _THREADS, (256,))


# The best number of chains depends on an fma's latency and on the registers: it is six on AVX-512, fewer on a GPU.
ARITHMETIC: tuple[Probe, ...] = tuple(_chains(n) for n in (2, 4, 6, 8))
