"""The sign of a negation is the negation's: of the least number, whose negation is itself, it is -1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, applied, module, validate, without

import metalnb as mnb
from metalnb.engine.cpu.spirv.pass_table import rewritten

TYPES: dict[str, type[np.signedinteger]] = {"char": np.int8, "short": np.int16, "int": np.int32, "long": np.int64}
# Texts for T of BITS bits; X is the number. In unsigned arithmetic, where a negation may wrap.
FORMS = {
    "difference": "T(uT(0) - uT(X)) >> (BITS - 1)",
    "product": "T(uT(X) * uT(-1)) >> (BITS - 1)",
    "complement": "T(uT(~X) + uT(1)) >> (BITS - 1)",
    "two differences": "T((uT(b) - uT(X)) - uT(b)) >> (BITS - 1)",
    "two steps": "T(T(uT(0) - uT(X)) >> (BITS - 2)) >> 1",
    "wider": "long(T(uT(0) - uT(X))) >> 63",
    "vector": "(T2(uT2(0) - uT2(uT(b), uT(X))) >> T(BITS - 1)).y",
    "high half": "mulhi(T(uT(0) - uT(X)), T(1))",
    "loop": "({ T q = 0; for (int k = BITS - 3; k < BITS; k++) q = T(T(uT(0) - uT(X)) >> k); q; })",
    "array": "({ T w[2] = {b, b}; w[b & 1] = T(uT(0) - uT(X)); w[b & 1] >> (BITS - 1); })",
}


def _source(form: str, name: str, where: str, mark: str = "") -> str:
    text = FORMS[form].replace("X", f"x[{where}]").replace("BITS", str(8 * np.dtype(TYPES[name]).itemsize))
    text = text.replace("uT", f"u{name}").replace("T2", f"{name}2").replace("T", name)
    return f"""{HEAD}// {mark}
kernel void k(device {name}* y, device const {name}* x, constant {name}& b, constant uint& n,
              uint i [[thread_position_in_grid]]) {{ y[i] = {name}({text}); }}"""


def _signs(form: str, name: str, where: str, *, mark: str = "", math: str = "fast") -> list[tuple[int, int]]:
    """The numbers of which the sign of the negation is wrong, and what it is."""
    kernel = mnb.compile(_source(form, name, where, mark), math=math, engine="cpu").k
    limits = np.iinfo(TYPES[name])
    x = np.array([limits.min, limits.min + 1, -1, 0, 1, limits.max], TYPES[name])
    y = np.zeros_like(x)
    for n in range(1 if where == "i" else len(x)):
        out = y if where == "i" else y[n : n + 1]
        kernel(out, x, TYPES[name](5), n, grid=len(out))
    return [(int(one), int(sign)) for one, sign in zip(x, y, strict=True) if sign != -int(one == limits.min or one > 0)]


@pytest.mark.parametrize("where", ["i", "n"])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("form", FORMS)
def test_the_sign_of_a_negation(form: str, name: str, where: str) -> None:
    assert _signs(form, name, where) == []


def test_in_precise_math_too() -> None:
    assert [_signs("difference", name, "i", math="precise") for name in TYPES] == [[], [], [], []]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("form", [form for form in FORMS if form != "array"])  # there the store hides it, so far
def test_without_the_pass_one_sign_is_wrong(monkeypatch: pytest.MonkeyPatch, form: str, name: str) -> None:
    """A canary: it tells when the runtime no longer needs the pass."""
    without(monkeypatch, "opaque_signs")
    wrong = _signs(form, name, "i", mark="without")
    assert wrong == [(np.iinfo(TYPES[name]).min, 0)], "the runtime no longer needs the pass opaque_signs"


@pytest.mark.parametrize("form", FORMS)
def test_the_module_is_valid(form: str, tmp_path: Path) -> None:
    validate(rewritten(module(_source(form, "int", "i"), "k"), wide=False), tmp_path)


OTHERS = ("x[i] >> 31", "(x[i] + n) >> 2", "int(uint(-x[i]) >> 1) >> 3", "int(char(x[i])) >> 7")


@pytest.mark.parametrize("text", OTHERS)
def test_other_shifts_are_left_alone(text: str) -> None:
    source = "kernel void k(device int* y, device const int* x, constant int& n, uint i [[thread_position_in_grid]])"
    code = applied("without_stubs", module(f"{HEAD}{source} {{ y[i] = {text}; }}", "k"))
    assert applied("opaque_signs", code) == code
