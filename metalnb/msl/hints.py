"""clang's messages in a kernel author's words, and the cure where there is one."""

from __future__ import annotations

import re

__all__ = ["hint_for", "reword"]

_WORDS = (
    (re.compile(r"__global_device\b|__attribute__\(\(opencl_global_device\)\)"), "device"),
    (re.compile(r"\bconst __global\b|\b__global const\b"), "constant"),
    (re.compile(r"\b__global\b"), "device"),
    (re.compile(r"\b__local\b"), "threadgroup"),
    (re.compile(r"\b(?:__private|__generic)\b"), "thread"),
    (re.compile(r"\b__constant\b"), "constant"),
    (re.compile(r"\bmetal::vec<(\w+), (\d)>"), r"\1\2"),
    (re.compile(r"\bvec<(\w+), (\d)>"), r"\1\2"),
    (re.compile(r"\bmetal::"), ""),
    (re.compile(r"\bunsigned (int|char|short|long)(?=\d|\b)"), r"u\1"),
    (re.compile(r"\*(thread)\b"), "*"),
    (re.compile(r" ?([&*])thread\b"), r"\1"),
    (re.compile(r"\b(?:OpenCL|C\+\+ for OpenCL)\b"), "Metal"),
)

_METAL_NAMES = frozenset(
    "sin cos tan exp exp2 log log2 log10 pow sqrt rsqrt abs fabs min max clamp mix step smoothstep dot cross length "
    "normalize distance floor ceil round trunc fract fma select any all sign saturate as_type simd_sum simd_max simd_min "
    "threadgroup_barrier simdgroup_barrier mem_flags atomic_uint atomic_int atomic_float memory_order_relaxed "
    "atomic_fetch_add_explicit atomic_load_explicit atomic_store_explicit popcount clz ctz float2 float3 float4 half2 half4 "
    "uint2 uint3 uint4 int2 int3 int4 vec numeric_limits".split(),
)

_HINTS = (
    (r"use of undeclared identifier '(\w+)'|unknown type name '(\w+)'|no template named '(\w+)'", "_stdlib"),
    (r"expected ';'", "add the missing ';'"),
    (r"did you mean '([^']+)'", r"did you mean '\1'?"),
    (r"cannot initialize .* changes address space|changing address space|which changes address space",
     "the address spaces differ: give the pointer or reference the address space of what it points to (device, constant, threadgroup or thread)"),
    (r"cannot assign to .* const-qualified|read-only", "it is read-only: drop const (a constant buffer can never be written)"),
    (r"no matching function for call to '(\w+)'", "check the number and types of the arguments of '\\1'"),
    (r"expected '\)'|expected '\]'|expected '\}'", "a bracket is not closed"),
)  # fmt: skip


def reword(message: str) -> str:
    """Put Metal's words for the compiler's."""
    for pattern, words in _WORDS:
        message = pattern.sub(words, message)
    return message


def hint_for(message: str, notes: list[str] = []) -> str:  # noqa: B006  (never changed)
    """Give the cure of a message, or an empty string."""
    for pattern, hint in _HINTS:
        found = re.search(pattern, message)
        if found is None:
            continue
        if hint != "_stdlib":
            return found.expand(hint)
        name = next(g for g in found.groups() if g)
        if name in _METAL_NAMES:
            return "begin the cell with: #include <metal_stdlib>  and  using namespace metal;"
    return ""
