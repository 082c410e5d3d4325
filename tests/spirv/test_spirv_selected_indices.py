"""A store to one of two known elements of a thread's own array is seen by every later load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, SIZES, applied, module, validate, without, without_options

import metalnb as mnb
from metalnb.engine.cpu.spirv.pass_table import rewritten

FORMS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "bool": ("w[uint(1u <= l) & 7] = 1;", lambda t: (t >= 1) * 1),
    "chosen": ("w[l > 0 ? 1 : 0] = 1;", lambda t: (t > 0) * 1),
    "of three": ("w[l > 3 ? 5 : l > 1 ? 2 : 7] = 1;", lambda t: np.where(t > 3, 5, np.where(t > 1, 2, 7))),
    "sum": ("w[(l > 3 ? 4 : 2) + (l & 1)] = 1;", lambda t: np.where(t > 3, 4, 2) + (t & 1)),
    "least": ("w[min(l, 1u)] = 1;", lambda t: np.minimum(t, 1)),
    "sign": ("w[1 + int(sign(float(l) - 3))] = 1;", lambda t: 1 + np.sign(t - 3)),
    "branch": (
        "int q; if (l > 3) { q = 5; out[i] = 3; } else { q = 2; out[i] = 4; } w[q] = 1;",
        lambda t: np.where(t > 3, 5, 2),
    ),
    "pointer": ("thread T* p = l > 3 ? &w[5] : &w[2]; *p = 1;", lambda t: np.where(t > 3, 5, 2)),
    "pointer behind a branch": (
        "thread T* p = w + 2; if (l > 3) { p = w + 5; out[i] = 3; } *p = 1;", lambda t: np.where(t > 3, 5, 2)
    ),
}  # fmt: skip
TEXT = HEAD + """
kernel void k(device uint* out, uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]) {
    typedef KIND T;
    T w[8];
    for (uint j = 0; j < 8; ++j) w[j] = 200 + j;
    STORE
    out[i] = w[i & 7];
}
"""


def text(kind: str, store: str) -> str:
    return TEXT.replace("KIND", kind).replace("STORE", store)


def wrong(kernel: mnb.Kernel, size: int, element: Callable[[np.ndarray], np.ndarray]) -> int:
    i = np.arange(2 * size)
    out = np.zeros(2 * size, np.uint32)
    kernel(out, grid=2 * size, threadgroup=size)
    return int((out != np.where(element(i % size) == i & 7, 1, 200 + (i & 7))).sum())


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("kind", ["uchar", "half", "uint", "float", "ulong"])
@pytest.mark.parametrize("form", FORMS)
def test_the_load_sees_the_store(form: str, kind: str, math: str) -> None:
    store, element = FORMS[form]
    kernel = mnb.compile(text(kind, store), engine="cpu", math=math).k
    assert {size: wrong(kernel, size, element) for size in SIZES} == dict.fromkeys(SIZES, 0)


@pytest.mark.parametrize("form", ["bool", "chosen", "pointer behind a branch"])
def test_without_the_pass_the_load_misses_it(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """A canary: it tells when the runtime no longer needs the pass."""
    without(monkeypatch, "opaque_selected_indices")
    without_options(monkeypatch)
    without(monkeypatch, "opaque_known_indices")  # which hides the load's index
    without(monkeypatch, "guarded_indices")  # which hides them too, but in the function's first block
    store, element = FORMS[form]
    kernel = mnb.compile(text("uint", store) + "// without", engine="cpu").k
    assert wrong(kernel, 64, element), "the runtime no longer needs the pass opaque_selected_indices"


@pytest.mark.parametrize("form", FORMS)
def test_the_module_is_valid(form: str, tmp_path: Path) -> None:
    validate(rewritten(module(text("half", FORMS[form][0]), "k"), wide=False), tmp_path)


def test_counters_are_left_alone() -> None:
    """A loop's counter, which the device's compiler may unroll away, is no choice."""
    code = module(text("uint", "for (uint j = 0; j < 8; ++j) w[j] += j;"), "k")
    assert applied("opaque_selected_indices", code) == code
