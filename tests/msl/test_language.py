"""C++ in MSL: each feature in a small kernel, with what it must compute (MSL 1.5, 2, 4)."""

import numpy as np
import pytest
from msl.cells import outcome, program
from msl.language_cells import ROWS, SPACES, THREADGROUP

import metalnb as mnb


@pytest.mark.parametrize(("text", "expected"), [pytest.param(*row[1:], id=row[0]) for row in ROWS])
def test_language(text: str, expected: list[float]) -> None:
    y = np.full(len(expected), -1, np.float32)
    mnb.compile(program(text)).k(y, grid=1)
    np.testing.assert_array_equal(y, np.array(expected, np.float32))


# Address spaces (MSL 4) ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "expected"), [pytest.param(*row[1:], id=row[0]) for row in SPACES])
def test_address_spaces(text: str, expected: float) -> None:
    assert outcome(text, 1)[0] == expected


@pytest.mark.parametrize("text", [pytest.param(row[1], id=row[0]) for row in THREADGROUP])
def test_threadgroup_variables_are_shared_by_the_group(text: str) -> None:
    text = text.replace("BARRIER", "threadgroup_barrier(mem_flags::mem_threadgroup);")
    np.testing.assert_array_equal(outcome(text, 32), np.arange(32)[::-1])
