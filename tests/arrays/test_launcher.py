"""How the library starts its kernels, and which modules it loads to do so."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.library_kernels.launching import launcher
from metalnb.library_kernels.launching.launcher import Launch
from metalnb.library_kernels.launching.programs import compile_templates


def test_binding_waits_for_pending_dispatches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments and blocks come from one list: binding an array without tracking it would be a race."""
    x, out = mnb.zeros(4), mnb.zeros(4)
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(launcher, "start", lambda *call: calls.append(call))
    scalar, record, last = np.ones(1), np.zeros(8, np.uint8), bytearray(4)
    Launch("binary", (4, 1, 1), (2, 1, 1), (record,)).start(x[1:], scalar, out, more=(last,))
    ((engine, binary, arguments, grid, threadgroup, blocks),) = calls
    assert (engine, binary, grid, threadgroup) == (x.engine, "binary", (4, 1, 1), (2, 1, 1))
    assert all(a is b for a, b in zip(arguments, (x.block.bound, scalar, out.block.bound, record, last), strict=True))
    assert blocks == [x.block, out.block]


def test_templates_are_instantiated_under_their_names() -> None:
    of = "Sum<float, float, float, float>"
    program = compile_templates("reduce.metal", {"mine": f"reduce_each<{of}>"}, mnb.zeros(1).device)
    assert list(program.kernels) == ["mine"]


def test_nothing_is_loaded_before_it_is_needed() -> None:
    """Arrays load no kernels before the first op, and ops never load their samples."""
    code = """
import sys, metalnb as mnb
x = mnb.asarray([1.0, 2.0])
assert not [m for m in sys.modules if m.startswith("metalnb.library_kernels.")]
x + x
assert x.to_device(x.device) is x
for name in {*dir(mnb)} - {"dask"}:  # an extra
    getattr(mnb, name)
assert "metalnb.library_kernels.op_table" in sys.modules
assert "metalnb.library_kernels.samples" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
