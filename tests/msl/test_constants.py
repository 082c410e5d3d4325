"""Constants (MSL 6.5), and what no chapter of functions covers: any, all and not, uniform, alignas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msl.cells import PRELUDE
from msl.rows import Table, rows

import metalnb as mnb

_VALUES = {
    "E": math.e, "LOG2E": math.log2(math.e), "LOG10E": math.log10(math.e), "LN2": math.log(2), "LN10": math.log(10),
    "PI": math.pi, "PI_2": math.pi / 2, "PI_4": math.pi / 4, "1_PI": 1 / math.pi, "2_PI": 2 / math.pi,
    "2_SQRTPI": 2 / math.sqrt(math.pi), "SQRT2": math.sqrt(2), "SQRT1_2": math.sqrt(0.5),
}  # fmt: skip
_LIMITS = {
    "float": {"MAXFLOAT": float(np.finfo(np.float32).max), "HUGE_VALF": np.inf, "INFINITY": np.inf, "NAN": np.nan},
    "half": {"MAXHALF": 65504.0, "HUGE_VALH": np.inf},
    "bfloat": {"MAXBFLOAT": (2 - 2.0**-7) * 2.0**127, "HUGE_VALBF": np.inf},
}
_SUFFIXES = {"float": "F", "half": "H", "bfloat": "BF"}
_BITS = {"float": 24, "half": 11, "bfloat": 8}  # of the significand


def rounded(value: float, bits: int) -> float:
    """Round to the nearest number of `bits` significant bits, ties to even (no constant is a denormal)."""
    fraction, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(fraction, bits)), exponent - bits)


@pytest.mark.parametrize("kind", _SUFFIXES)
def test_constants_are_rounded_from_the_exact_values(kind: str) -> None:
    expected = {f"M_{name}_{_SUFFIXES[kind]}": rounded(value, _BITS[kind]) for name, value in _VALUES.items()}
    expected |= _LIMITS[kind]
    lines = "".join(
        f'  static_assert(is_same_v<decltype({name}), {kind}>, "{name}"); y[{k}] = float({name});\n'
        for k, name in enumerate(expected)
    )
    y = np.zeros(len(expected), np.float32)
    mnb.compile(f"{PRELUDE}kernel void k(device float* y) {{\n{lines}}}").k(y, grid=1)
    np.testing.assert_array_equal(y.astype(float), list(expected.values()), err_msg=str(list(expected)))


_LOGIC = Table(rows(
    ("bool", "all(t)", 0), ("bool", "any(t)", 1), ("bool", "all(t.xz)", 1), ("bool", "any(t.yw)", 0),
    ("bool", "all(b)", 1), ("bool", "any(!b)", 0), ("bool4", "not(t)", [0, 1, 0, 1]), ("bool", "not(b)", 0),
    # A bfloat is tested as a float.
    ("bool", "isnan(g)", 0), ("bool", "isinf(g / 0)", 1), ("bool", "isfinite(g)", 1), ("bool", "signbit(-g)", 1),
    ("bool2", "isnan(h)", [0, 1]), ("bool2", "isfinite(h)", [1, 0]), ("bool", "isnormal(g)", 1),
    ("bool", "isunordered(g, h.y)", 1), ("bool", "isordered(g, h.x)", 1), ("bfloat", "select(g, h.x, b)", 3),
    ("bool2", "signbit(h)", [0, 0]), ("bfloat2", "select(h, h.xx, t.xy)", [3, np.nan]),
    ("ulong", "alignof(Wide) + sizeof(Wide)", 64 + 64),
    ("int", "uniform<int> u = make_uniform(n); u + 1", 8), ("int", "metal::uniform<int> u = 3; u + n", 10),
), "#include <metal_uniform>\nstruct alignas(64) Wide { int n; };", {
    "t": ("bool4", "bool4(true, false, true, false)"), "b": ("bool", "true"), "n": ("int", "7"),
    "g": ("bfloat", "bfloat(1.5f)"), "h": ("bfloat2", "bfloat2(3, NAN)"),
})  # fmt: skip


@pytest.mark.parametrize(("space", "index"), _LOGIC.params)
def test_logic(space: str, index: int) -> None:
    _LOGIC.check(space, index)


@pytest.mark.parametrize(("msl", "macro"), [("2.3", 230), ("3.0", 300), ("3.1", 310), ("3.2", 320)])
def test_version_macro_is_that_of_the_cells_language(msl: str, macro: int) -> None:
    text = """
    #if !defined(__METAL__) || defined(__METAL_MACOS__) || defined(__METAL_IOS__)
    #error not the language of all systems, which MSL 3 made one
    #endif
    kernel void k(device int* y) { y[0] = __METAL_VERSION__; }"""
    y = np.zeros(1, np.int32)
    mnb.compile(PRELUDE + text, msl=msl).k(y, grid=1)
    assert y[0] == macro
