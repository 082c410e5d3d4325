"""A kernel's caches of calls are bounded: beyond the bound results stay right, and memory stays small."""

from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.call import known_calls
from metalnb.engine.cpu.lanes import vector_binary
from metalnb.engine.robust import check_choice

SOURCE = """#include <metal_stdlib>
using namespace metal;
kernel void shifted(device const int* x, device int* y, uint i [[thread_position_in_grid]]) { y[i] = x[i] + 1; }
kernel void rotated(device const int* x, device int* y, constant uint& by, uint i [[thread_position_in_grid]],
                    uint n [[threads_per_grid]]) {
    y[i] = x[i + by < n ? i + by : i + by - n];
}
kernel void strided(device const int* x, device int* y, constant uint& step, uint i [[thread_position_in_grid]]) {
    y[i] = x[step * i];
}
"""


@pytest.fixture
def program() -> mnb.Program:
    return mnb.compile(SOURCE, engine="cpu")


def test_known_calls_are_bounded_and_calls_stay_right(program: mnb.Program) -> None:
    kernel = program.shifted
    lengths = [*range(1, known_calls._CALLS_KEPT + 100), 1, 2, 3]
    for n in lengths:
        x, y = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
        kernel(x, y)
        assert y[-1] == n
        assert y[0] == 1
        assert 0 < len(kernel._known_calls._calls) <= known_calls._CALLS_KEPT


def test_codes_of_dispatches_are_bounded_and_dispatches_stay_right(program: mnb.Program) -> None:
    binary: Any = program.rotated.binary
    bound = vector_binary._MAX_REMEMBERED
    x = np.arange(bound + 60, dtype=np.int32)
    for n in [*range(1, bound + 60), 1, 2, 40]:
        y = np.zeros(n, np.int32)
        program.rotated(x[:n], y, n // 2)
        assert np.array_equal(y, np.roll(x[:n], -(n // 2))), n
        assert 0 < len(binary.dispatch_codes) <= bound


def test_choices_of_checks_are_bounded_by_grid_and_by_scalar(program: mnb.Program) -> None:
    """A wrong dispatch is reported both before and after the choices were forgotten."""
    kernel = program.strided
    bound = check_choice._MAX_REMEMBERED
    choices = kernel.binary.checks._choice._choices
    x = np.arange(1000, dtype=np.int32)

    def reports_a_wrong_step(threads: int) -> None:
        with pytest.raises(mnb.KernelFault, match=r"reads x\[\d+\]; x has 1,?000 elements"):
            kernel(x, np.zeros(threads, np.int32), 1000)

    for threads in range(2, bound + 60):
        y = np.zeros(threads, np.int32)
        kernel(x, y, 2)
        assert np.array_equal(y, x[: 2 * threads : 2])
        assert 0 < len(choices) <= bound
    reports_a_wrong_step(2)
    for step in range(bound + 60):
        y = np.zeros(3, np.int32)
        kernel(x, y, step)
        assert y.tolist() == [0, step, 2 * step]
    assert max(map(len, choices.values())) == bound
    reports_a_wrong_step(3)
