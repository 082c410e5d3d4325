"""Kernels to profile, and the cost of one of their accesses."""

import metalnb as mnb
from metalnb.profiling.cost_records import AccessCost
from metalnb.profiling.profile_record import Profile

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


# Two operations in each of 20,000 iterations.
LONG_LOOP = """kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    float s = x[i];
    for (int k = 0; k < 20000; ++k) s = s * s + 1.0f;
    out[i] = s;
}"""


def kernel(text: str, name: str = "f") -> mnb.Kernel:
    return mnb.compile(HEAD + text)[name]


def access(profile: Profile, name: str, kind: str = "read") -> AccessCost:
    (found,) = [a for a in profile.accesses if a.name == name and a.kind == kind]
    return found
