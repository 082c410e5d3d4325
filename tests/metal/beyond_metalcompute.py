"""Cells with features that Metal has and metalcompute has not: the cell, its options, and metalcompute's refusal."""

from typing import Any

LOGS = "#include <metal_logging>\nkernel void f(device float* x, uint i [[thread_position_in_grid]]) "
LOGS += "{{ {} x[i] += 1; }}"
ATOMIC = "kernel void f(device atomic_float* x, uint i [[thread_position_in_grid]]) "
ARGS = "struct Args { device float* x [[id(0)]]; float a [[id(1)]]; };\n"
BEYOND: dict[str, tuple[str, dict[str, Any], str]] = {
    "bfloat": ("kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = bfloat(x[i]) + 1; }", {},
               r"'bfloat' needs MSL 3\.1; engine 'metal:metalcompute' has MSL 2\.3"),
    "atomic_float": (
        ATOMIC + "{ atomic_fetch_add_explicit(x + i, 1.0f, memory_order_relaxed); }", {},
        r"'atomic_float' needs MSL 3\.0; engine 'metal:metalcompute' has MSL 2\.3"),
    "log": (LOGS.format('if (i == 1) os_log_default.log("x = %f", x[i]);'), {},
            "engine 'metal:metalcompute' cannot show what a kernel prints"),
    "precise": ("kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = exp(log(x[i])) + 1; }",
                {"math": "precise"}, "engine 'metal:metalcompute' supports only fast math"),
    "argument buffer": (
        ARGS + "kernel void f(constant Args& args, uint i [[thread_position_in_grid]]) { args.x[i] += args.a; }", {},
        "engine 'metal:metalcompute' has no argument buffers"),
    "lambda": ("""kernel void f(device float* x, uint i [[thread_position_in_grid]]) {
    auto more = [](float a) { return a + 1; };
    x[i] = more(x[i]);
}""", {},
        r"a lambda needs MSL 3\.2; the cell is read as MSL 2\.3"),
    "input at program scope": (
        "uint i [[thread_position_in_grid]];\nkernel void f(device float* x) { x[i] += 1; }", {},
        r"input 'i' at program scope needs MSL 3\.1"),
    "offset": (
        "kernel void f(device float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = x[i] + 1; }", {},
        r"f: an argument that it writes overlaps another in part; engine 'metal:metalcompute' copies each\. Pass a"),
}  # fmt: skip
