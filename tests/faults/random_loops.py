"""Generate random kernels: a few accesses among wrapping integers, loops of all forms, guards, choices and masks."""

from __future__ import annotations

import random

__all__ = ["HEAD", "SIZES", "kernel_text"]

HEAD = """#include <metal_stdlib>
using namespace metal;
constant int steps[6] = {-1, 0, 1, 8, -8, 3};
"""
SIZES = (256, 256, 256, 4, 4)
_PARAMETERS = """device uint* a, device const uint* b, device const ushort* h, constant int& k, constant uint& n,
    uint3 p [[thread_position_in_grid]], uint3 q [[thread_position_in_threadgroup]],
    uint3 g [[threadgroup_position_in_grid]], uint3 s [[threads_per_grid]], uint3 t [[threads_per_threadgroup]]"""
_LEAVES = (
    "p.x", "p.x", "q.x", "g.x", "p.y", "s.x", "t.x", "uint(k)", "n", "b[p.x & 63]", "uint(h[q.x & 63])", "uint(j)",
    "x", "uint(steps[p.x % 6])", "{small}", "{small}", "{odd}",
)  # fmt: skip
_JOINED = (
    "({l} + {r})", "({l} - {r})", "({l} * {r})", "({l} & {r})", "({l} | {r})", "({l} ^ {r})", "({l} / {r})",
    "({l} % {r})", "min({l}, {r})", "max({l}, {r})", "uint(min(int({l}), int({r})))", "({l} << ({r} & 7))",
    "({l} >> ({r} & 31))", "uint(int({l}) >> ({r} & 7))", "uint(ushort({l}))", "uint(short({l}))",
    "uint(int({l}) / {step})", "uint(int({l}) % {step})", "uint(max(int({l}), 0))", "uint(abs(int({l})))",
    "({l} & ~7u)", "({l} / 8 * 8 + {r} % 8)", "({l} < {r} ? {l} : {r})", "(int({l}) < int({r}) ? {l} : {small})",
    "uint((ulong({l}) * {r}) >> 32)", "uint(long(int({l})) - {r})", "clamp({l}, {small}, 63u)",
)  # fmt: skip
_TESTS = (
    "{l} < {r}", "{l} <= {r}", "{l} > {r}", "{l} == {r}", "{l} != {r}", "int({l}) < int({r})", "int({l}) >= 0",
    "{l} < {r} && int({l}) >= {step}", "{l} < {small} || {r} > {l}", "!({l} >= {r})", "({l} & {small}) == 0",
    "all(uint2({l}, {r}) < uint2(64, 64))", "any(uint2({l}, {r}) >= uint2(64, {small}))",
)  # fmt: skip
_INDEXES = (
    "{e} & 63", "{e} % 64", "{e}", "min({e}, 63u)", "{e} - {small}", "{e} + uint(j)", "(uint(j) + {e}) & 31", "j",
    "uint(j) + p.x", "x", "long(int({e}))", "{e} / {small}", "x + {small}", "s.x - 1 - p.x", "{e} & ~7u",
    "uint(j) * 8 + {e} % 8",
)  # fmt: skip
_DO = (
    "x += b[{at}];", "a[{at}] = x;", "x ^= h[{at}];", "w[{at}] = x;", "x += w[{at}];", "x = {e};",
    "x = b[{at}] & 63;", "device const uint* r = b + ({at}); x += r[{at}];",
    "device const uint* r = p.x & 1 ? b : a; x += r[{at}];", "x += (p.x > 0 ? b[p.x - 1] : 1u);",
    "if ({test}) return;", "if ({test}) x += {small};",
)  # fmt: skip
_AROUND = (
    "{{ {do} }}", "if ({test}) {{ {do} }}", "if ({test}) {{ {do} }} else {{ {do} }}",
    "for (uint j = {i}; j < {e}; j += {step}) {{ {do} }}", "for (uint j = 0; j < {e}; ++j) {{ {do} }}",
    "for (int j = {step}; j >= 0; --j) {{ {do} }}", "for (int j = int({i}); j > {step}; j -= {step}) {{ {do} }}",
    "for (int j = int({i}); j != int({e}); ++j) {{ {do} if ({test}) break; }}",
    "for (uint j = {i}; j > 1; j /= 2) {{ {do} }}", "for (uint j = 1; j < {e}; j *= 2) {{ {do} }}",
    "for (uint j = 0; j < n % 7; ++j) {{ {do} x /= {step}; }}", "for (ushort j = 0; j < {step} * 5; ++j) {{ {do} }}",
    "uint j = {i}; do {{ {do} j += {step}; }} while (j < {e});",
    "uint j = {i}; while (j) {{ {do} j = j & (j - 1); }}", "for (uint j = {i}; j < 64; j += t.x) {{ {do} }}",
    "for (uint j = p.x; j < n; j += s.x) {{ {{ {do} }} {{ {do} }} }}",
    "switch ({e} % 4) {{ case 0: {{ {do} }} break; case 1: x += 2; default: {{ {do} }} }}",
    "for (uint i = 0; i < 4; ++i) for (uint j = i; j < {e}; j += {step}) {{ {do} }}",
    "device const uint* r = b + {step}; for (uint j = 0; j < {e}; ++j, r += {step}) {{ x += *r; {do} }}",
    # Counters that change in another width; the last two may be endless.
    "ushort j = ushort({i}); while (j > 1) {{ {do} j = ushort(uint(j) >> 1); }}",
    "int j = ~int(n); while (j != 0) {{ {do} j = int(ulong(long(j)) >> ({step} + (n & 3))); }}",
    "for (int j = 0; j < int({e}); j = char(j + {step} * 8)) {{ {do} }}",
)  # fmt: skip


def kernel_text(rng: random.Random, name: str) -> str:
    """Return a kernel that follows `HEAD`."""
    body = "\n    ".join(f"{{ {_filled(rng, rng.choice(_AROUND))} }}" for _ in range(rng.randint(1, 3)))
    return f"""kernel void {name}({_PARAMETERS}) {{
    uint x = q.x, j = p.x; uint w[16] = {{}}; w[q.x % 16] = p.x;
    {body}
    if (p.x < 64) a[p.x] = x + w[n % 16] + j;
}}
"""


def _filled(rng: random.Random, text: str, depth: int = 0) -> str:
    """Return a form with each of its gaps filled."""
    if "{i}" in text:
        text = text.replace("{i}", _filled(rng, "{e}", depth + 1).replace("uint(j)", "x"))
    kinds = {
        "do": _DO, "test": _TESTS, "at": _INDEXES, "e": _LEAVES if depth > 2 or rng.random() < 0.4 else _JOINED,
        "l": _LEAVES if depth > 3 or rng.random() < 0.6 else _JOINED,
        "r": _LEAVES if depth > 3 or rng.random() < 0.6 else _JOINED,
    }  # fmt: skip
    for word, forms in kinds.items():
        while f"{{{word}}}" in text:
            filled = _filled(rng, rng.choice(forms), depth + 1)
            text = text.replace(f"{{{word}}}", filled, 1)
    few, odd = (1, 2, 3, 5, 8), (64, 63, 2**31, 2**32 - 1, 300)
    for word, numbers, suffix in (("small", few, "u"), ("step", few, ""), ("odd", odd, "u")):
        while f"{{{word}}}" in text:
            text = text.replace(f"{{{word}}}", f"{rng.choice(numbers)}{suffix}", 1)
    return text.replace("{{", "{").replace("}}", "}")
