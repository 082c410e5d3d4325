"""Metal from another framework: the kernels of tinygrad's renderer, unchanged, compared with NumPy in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tinygrad", reason="needs tinygrad: pip install -e .[test-all]")

from kernels.case import Check
from kernels.tinygrad_device import NAME, MetalDevice, opened
from kernels.tinygrad_ops import OPS, Row
from tinygrad import Context, Tensor, dtypes


@pytest.fixture(scope="module")
def device() -> Iterator[MetalDevice]:
    with Context(PARALLEL=0):  # a separate process that renders would have no device to render for
        yield opened()


def on_device(value: Any) -> Tensor:
    """Return an array on the device; tinygrad accepts NumPy's bfloat16 only as bits."""
    if value.dtype.name == "bfloat16":
        return Tensor(value.view(np.uint16), device=NAME).realize().bitcast(dtypes.bfloat16)
    return Tensor(np.ascontiguousarray(value), device=NAME).realize()


def run(row: Row, engine: str, device: MetalDevice) -> list[str]:
    """Run an op and compare it with its oracle; return the kernels' sources."""
    device.engine = engine
    device.ran.clear()
    got = row.op(*map(on_device, row.inputs)).numpy()
    wide = [x if x.dtype.kind in "iub" else x.astype(np.float64) for x in row.inputs]
    Check(got, np.asarray(row.oracle(*wide)), row.roundings, row.scale and row.scale(*wide), row.epsilon).verify()
    return list(device.ran)


@pytest.mark.long(every=6)  # Tinygrad's sources; the library's tests cover the operations, too
@pytest.mark.parametrize("row", OPS, ids=[row.name for row in OPS])
def test_tinygrads_op_runs_right_and_has_the_expected_source(row: Row, device: MetalDevice) -> None:
    texts = run(row, "cpu", device)
    assert texts
    assert all(any(part in text for text in texts) for part in row.shows)
