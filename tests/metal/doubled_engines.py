"""A Mac's two engines on their doubles, and helpers that their tests share."""

import functools
import mmap
from typing import Any

import metal_double
import numpy as np
import pytest
from metal_module import metal_module

import metalnb as mnb
from metalnb.engine import metal as metal_package
from metalnb.engine.metal import metalcompute_path
from metalnb.program import Program

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
ADD = "kernel void add(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]])"
ADD += " { y[i] = x[i] + a; }"
PAGE = mmap.PAGESIZE
HEADERS = {
    "ops.h": '#pragma once\n#include "more.h"\ninline float op(float x) { return more(x) * 2; }\n',
    "more.h": "#pragma once\ninline float more(float x) { return x + 1; }\n",
}
INCLUDING = """#include "more.h"
#include "ops.h"
kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = op(x[i]) + more(0); }"""


@functools.cache
def doubled() -> dict[str, Any]:
    """Return the engines on the doubles, always the same ones, because programs are kept."""
    other = metalcompute_path.open_engine(module=metal_module())
    return {"metal": metal_package.open_engine(module=metal_double), "metal:metalcompute": other}


def metal(source: str, **options: Any) -> Program:
    return mnb.compile(HEAD + source, engine="metal", **options)


def sum_of_scalars(buffers: int) -> str:
    """Return a kernel that adds all its buffers but the last one, which it writes."""
    parameters = ", ".join(f"constant uint& a{k}" for k in range(buffers - 1))
    total = " + ".join(f"a{k}" for k in range(buffers - 1))
    parameters += ", device uint* out, uint i [[thread_position_in_grid]]"
    return f"kernel void f({parameters}) {{ out[i] = {total}; }}"


class Calls:
    """Records the calls of some of the double's selectors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch

    def of(self, owner: type, name: str) -> list[tuple[Any, ...]]:
        seen: list[tuple[Any, ...]] = []
        real = getattr(owner, name)

        def call(this: Any, *arguments: Any) -> Any:
            seen.append(arguments)
            return real(this, *arguments)

        self._patch.setattr(owner, name, call)
        return seen


def pages(count: int = 1) -> np.ndarray:
    """Return a NumPy array of complete pages."""
    return np.frombuffer(mmap.mmap(-1, count * PAGE), np.float32)
