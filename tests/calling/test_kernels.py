"""Kernels like those of real projects, each compared with NumPy (``kernels/*.metal``, each beside its oracle)."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from typing import Any

import metal_double
import numpy as np
import pytest
from kernels import arrays, images, integers, linear, neural, ordering, physics
from kernels.case import FOLDER, Bench, Case, Check
from metal_module import metal_module
from opened_engines import open_as

from metalnb.engine import metal
from metalnb.engine.metal import metalcompute_path

CASES = [case for file in (linear, neural, ordering, arrays, images, integers, physics) for case in file.table.cases]


def _rows(*, last: bool = False, metalcompute: bool = False) -> list[Any]:
    """Return each case at each size, or only at the last; for metalcompute, the cases that it can dispatch."""
    rows = []
    for case in CASES:
        if metalcompute and not case.metal:
            continue
        for sizes in case.sizes[-1:] if last else case.sizes:
            label = "-".join([case.run.__name__, *(f"{k}={v}" for k, v in sizes.items())])
            marks = []
            if case.needs and importlib.util.find_spec(case.needs) is None:
                marks.append(pytest.mark.skip(reason=f"needs {case.needs}: pip install {case.needs}"))
            rows.append(pytest.param(case, sizes, id=label, marks=marks))
    return rows


def _verify(found: Check | Iterable[Check]) -> None:
    checks = [found] if isinstance(found, Check) else list(found)
    assert checks
    for check in checks:
        check.verify()


# Each kernel runs at its largest size; the small sizes test partial blocks.
@pytest.mark.long(unless=lambda case, sizes: sizes is case.sizes[-1])
@pytest.mark.parametrize(("case", "sizes"), _rows())
def test_whole_kernel_computes_what_its_reference_computes(
    case: Case, sizes: dict[str, Any], rng: np.random.Generator
) -> None:
    _verify(case.run(Bench(case.name, "cpu", rng), **sizes))


@pytest.fixture(scope="module")
def doubled() -> Iterator[None]:
    """Open a Mac's engines on doubles: metalcompute's (or metalcompute itself), and Metal's."""
    opened: dict[str, Any] = {"metal:metalcompute": metalcompute_path.open_engine(module=metal_module())}
    opened["metal"] = metal.open_engine(module=metal_double)
    with pytest.MonkeyPatch.context() as patch:
        open_as(patch, opened)
        yield


@pytest.mark.long(every=8)  # The test above runs all of them; this one tests the path to the device
@pytest.mark.parametrize(("case", "sizes"), _rows(last=True))
def test_whole_kernel_through_metal_computes_the_same(
    case: Case, sizes: dict[str, Any], rng: np.random.Generator, doubled: None
) -> None:
    _verify(case.run(Bench(case.name, "metal", rng), **sizes))


@pytest.mark.long(every=8)  # Likewise
@pytest.mark.parametrize(("case", "sizes"), _rows(last=True, metalcompute=True))
def test_whole_kernel_through_metalcompute_computes_the_same(
    case: Case, sizes: dict[str, Any], rng: np.random.Generator, doubled: None
) -> None:
    _verify(case.run(Bench(case.name, "metal:metalcompute", rng), **sizes))


def test_every_kernel_file_is_run() -> None:
    assert sorted({case.name for case in CASES}) == sorted(path.stem for path in FOLDER.glob("*.metal"))


@pytest.mark.parametrize("wrong", [np.array([1, 2, 4]), np.array([1, 2, np.nan]), np.array([1, np.inf, 3])])
def test_wrong_answer_is_detected(wrong: Any) -> None:
    right = np.array([1, 2, 3])
    Check(right.astype(np.float32), right.astype(np.float64), roundings=1).verify()
    for roundings in (0, 1, 100):
        with pytest.raises(AssertionError):
            Check(wrong.astype(np.float32), right, roundings=roundings).verify()


def test_an_instantiation_has_its_own_thread_limit() -> None:
    program = Bench("merge_sort", "cpu", np.random.default_rng(0)).load()
    assert program["sort_float32_bn64"].signature.max_threads == 64
    assert program["argsort_int8_bn32"].signature.max_threads == 32
