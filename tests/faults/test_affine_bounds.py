"""An array exactly as long as the largest index needs is accepted; one element less is a fault."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from faults.random_affine import GROUPS, HEAD, THREADS, Affine, affine

import metalnb as mnb
from metalnb import engine as engines

COUNT = 24  # kernels per program
MARGIN = 1024
CALL: dict[str, Any] = {"grid": GROUPS * THREADS, "threadgroup": THREADS}


def kernels(engine: str, seed: int) -> Iterator[tuple[Affine, Any]]:
    try:
        engines.named(engine)
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))
    rng = random.Random(seed)
    made = [affine(rng, f"f{number}") for number in range(COUNT)]
    program = mnb.compile(HEAD + "".join(each.text for each in made), engine=engine, checked=True)
    for number, each in enumerate(made):
        yield each, program[f"f{number}"]


def call(kernel: Any, each: Affine, length: int, shift: int) -> None:
    """Call it on elements between margins that must not change, and compare the result with NumPy's."""
    parts = {"float": 1, "uchar": 1, "float4": 4, "Pair": 2}[each.kind]
    whole = np.zeros((length + 2 * MARGIN, parts), np.uint8 if each.kind == "uchar" else np.float32)
    if not each.written:
        whole[:] = (np.arange(len(whole)) % 251)[:, None]
    before = whole.copy()
    inside = whole[MARGIN : MARGIN + length]
    given = inside.view(kernel.program.dtype("Pair")) if each.kind == "Pair" else inside
    given = given[:, 0] if parts == 1 or each.kind == "Pair" else given
    index = each.index - each.index.min() + shift
    out = np.zeros(index.size, np.float32)
    try:
        kernel(given, shift, *([] if each.written else [out]), **CALL)
    finally:
        if each.written:
            right = index[(index >= 0) & (index < length)]
            before[MARGIN + right, -1] = 1
        assert (whole == before).all(), each.text
    if not each.written:
        assert (out.reshape(index.shape) == inside[index, -1]).all(), each.text


@pytest.mark.long(every=2)  # The first seed has an index of each form; the second has more of them
@pytest.mark.parametrize("seed", range(2))
def test_an_index_within_its_bounds_is_no_fault_and_one_beyond_is(seed: int) -> None:
    for each, kernel in kernels("cpu", seed):
        longest = int(np.ptp(each.index)) + 1
        call(kernel, each, longest, 0)
        call(kernel, each, longest + 3, 2)
        for length, shift, beyond in ((longest - 1, 0, longest - 1), (longest, -1, -1), (longest, 1, longest)):
            with pytest.raises(mnb.KernelFault) as fault:
                call(kernel, each, length, shift)
            assert (fault.value.kind, fault.value.name) == ("writes" if each.written else "reads", "d"), each.text
            assert fault.value.index in {beyond, beyond % (1 << 32), None}, each.text
