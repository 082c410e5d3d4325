"""Kernels to profile, and the cost of one of their accesses."""

import metalnb as mnb
from metalnb.profiling.cost_records import AccessCost
from metalnb.profiling.profile_record import Profile

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def kernel(text: str, name: str = "f") -> mnb.Kernel:
    return mnb.compile(HEAD + text)[name]


def access(found: Profile, name: str, kind: str = "read") -> AccessCost:
    (one,) = [a for a in found.accesses if a.name == name and a.kind == kind]
    return one
