"""Every function of MSL's standard library, compared with its declaration in ``functions.py``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from msl.functions import INTEGER_TYPES, INTEGERS, REALS, Integer, Limits, Real, bound
from msl.ulp import distance
from numpy.typing import NDArray

import metalnb as mnb

REAL_TYPES = {"half": np.float16, "float": np.float32}
MODES = ("fast", "precise")
WIDTHS = (1, 4)
COUNT = 2048  # inputs of a function, edge cases and random ones together
CHUNK = 20  # functions in a kernel


def edges(dtype: type[np.floating]) -> NDArray:
    """Return numbers at which functions tend to go wrong."""
    info = np.finfo(dtype)
    numbers = [
        0.0, info.smallest_subnormal, info.smallest_normal, 0.5, 1 - info.epsneg, 1.0, 1 + info.eps, 1.5, 2.0, 2.5, 3.0,
        np.pi / 2, np.pi, 10.0, 2.0**10, info.max, np.inf,
    ]  # fmt: skip
    return np.array([*numbers, *(-x for x in numbers), np.nan], dtype)


def real_inputs(row: Real, kind: str) -> list[NDArray]:
    """Return COUNT values of each argument: the edge cases, then random ones of the domain."""
    dtype = REAL_TYPES[kind]
    random = np.random.default_rng(len(row.name))
    arguments = []
    special = edges(dtype) if row.edges else np.empty(0, dtype)
    cases = list(itertools.product(range(len(special)), repeat=len(row.domains)))
    cases = [cases[i] for i in np.linspace(0, len(cases) - 1, min(len(cases), COUNT // 2)).astype(int)] if cases else []
    for place, domain in enumerate(row.domains):
        if domain is None:  # every exponent equally
            bits = np.dtype(dtype).itemsize * 8
            values = random.integers(0, 2**bits, COUNT, dtype=np.uint64).astype(f"u{bits // 8}").view(dtype)
            values = np.where(np.isfinite(values), values, dtype(1))
        else:
            low, high = (np.clip(x, -float(np.finfo(dtype).max), float(np.finfo(dtype).max)) for x in domain)
            values = random.uniform(low, high, COUNT).astype(dtype)
            near = random.uniform(0, 1, COUNT) < 0.25  # small numbers too, if the interval contains 0
            if low <= 0 <= high:
                values = np.where(near, values * dtype(2.0) ** random.integers(-10, 0, COUNT).astype(dtype), values)
        chosen = [special[case[place]] for case in cases]
        values[: len(chosen)] = chosen
        if place in row.integer:
            values = np.clip(np.nan_to_num(values), -400, 400).astype(np.int32).astype(np.float32).astype(dtype)
        arguments.append(values.astype(dtype))
    return arguments


def real_source(rows: list[Real], kind: str, width: int, spaces: tuple[str, ...]) -> str:
    """Write one kernel that calls each of `rows` on its own inputs, in each of the namespaces `spaces`."""
    vector = kind if width == 1 else f"{kind}{width}"
    whole = "int" if width == 1 else f"int{width}"
    store = "float" if width == 1 else f"float{width}"
    lines = []
    for i, (space, row) in enumerate(itertools.product(spaces, rows)):
        names = "".join(
            f"{whole if place in row.integer else 'V'} {name} = "
            f"{f'{whole}(in[{3 * i + place} * n + i])' if place in row.integer else f'in[{3 * i + place} * n + i]'}; "
            for place, name in enumerate("abc"[: len(row.domains)])
        )
        second = {"": "", "T": "V second; ", "int": f"{whole} second; "}[row.second]
        lines.append(f"  {{ {names}{second}out[{i} * n + i] = Out({space}{row.expression}); }}")
    return "\n".join([
        "#include <metal_stdlib>",
        "using namespace metal;",
        f"typedef {vector} V;",
        f"typedef {store} Out;",
        "kernel void each(device const V* in, device Out* out, constant uint& n, uint i [[thread_position_in_grid]]) {",
        *lines,
        "}",
    ])  # fmt: skip


def real_results(rows: list[Real], kind: str, width: int, mode: str, spaces: tuple[str, ...] = ("",)) -> NDArray:
    """Return each row's results, shape (space, row, COUNT)."""
    program = mnb.compile(real_source(rows, kind, width, spaces), math=mode)
    given = np.zeros((len(spaces), len(rows), 3, COUNT), REAL_TYPES[kind])
    for i, row in enumerate(rows):
        for place, values in enumerate(real_inputs(row, kind)):
            given[:, i, place] = values
    out = np.zeros((len(spaces), len(rows), COUNT), np.float32)
    program["each"](given.reshape(-1), out.reshape(-1), COUNT // width, grid=(COUNT // width,))
    return out.astype(REAL_TYPES[kind])


def real_error(row: Real, kind: str, mode: str, got: NDArray) -> NDArray[np.float64]:
    """Measure each result's error in ulp."""
    inputs = real_inputs(row, kind)
    with np.errstate(all="ignore"):
        dtype = REAL_TYPES[kind] if row.native else np.float64
        arguments = [x.astype(int) if i in row.integer else x.astype(dtype) for i, x in enumerate(inputs)]
        exact = np.asarray(row.oracle(*arguments), np.float64)
    return distance(got, exact, signed_zero=row.zeros and mode == "precise")


def complaint(row: Real, kind: str, mode: str, got: NDArray) -> str:
    """Return a row's worst result as text if it is out of bounds."""
    error = real_error(row, kind, mode, got)
    worst = int(np.argmax(error))
    if error[worst] <= bound(row, kind, mode) * (1 + 1e-6):  # float64's error where the result is exactly half an ulp
        return ""
    inputs = ", ".join(repr(x[worst]) for x in real_inputs(row, kind))
    return f"{row.name}({inputs}) = {got[worst]!r}: {error[worst]:.3g} ulp, where {bound(row, kind, mode)} are allowed"


def chunks(rows: list, size: int = CHUNK) -> list[list]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


# Each kind, width and mode once.
@pytest.mark.long(unless=lambda kind, width, mode: (kind == "float") == (width == 4) == (mode == "precise"))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", REAL_TYPES)
def test_reals_keep_their_bounds(kind: str, width: int, mode: str, record_property: Callable[..., None]) -> None:
    found = []
    for rows in chunks(REALS):
        results = real_results(rows, kind, width, mode)[0]
        for row, got in zip(rows, results, strict=True):
            found.append(complaint(row, kind, mode, got))
            record_property("ulp", (row.name, kind, mode, float(real_error(row, kind, mode, got).max())))
    assert not list(filter(None, found))


@pytest.mark.parametrize("mode", MODES)
def test_fast_and_precise_prefixes_select_their_variants(mode: str) -> None:
    rows = [row for row in REALS if row.variants]
    fast, precise = real_results(rows, "float", 1, mode, ("fast::", "precise::"))
    found = [complaint(row, "float", "fast", got) for row, got in zip(rows, fast, strict=True)]
    found += [complaint(row, "float", "precise", got) for row, got in zip(rows, precise, strict=True)]
    assert not list(filter(None, found))


def test_half_fma_rounds_once() -> None:
    program = mnb.compile("""
    #include <metal_stdlib>
    using namespace metal;
    kernel void each(device const half* x, device half* out, constant uint& n, uint i [[thread_position_in_grid]]) {
        out[i] = fma(x[i], x[n + i], x[2 * n + i]);
    }""")
    x = np.random.default_rng(0).integers(0, 2**16, (3, 1 << 20)).astype(np.uint16).view(np.float16)
    x[:, 0] = 3.14e-05, 0.00664, -4.596e-05  # the sum in double is a tie, the exact sum is not
    out = np.zeros(x.shape[1], np.float16)
    program["each"](x.reshape(-1), out, len(out), grid=(len(out),))
    with np.errstate(all="ignore"):
        a, b, c = x.astype(np.float64)
        product = a * b
        total = product + c
        rest = total - product
        lost = (product - (total - rest)) + (c - rest)
        bits = total.view(np.int64) - ((lost != 0) & ((lost > 0) != (total > 0)))  # rounded to odd
        bits = np.where(np.isfinite(total), bits | (lost != 0), total.view(np.int64))
        np.testing.assert_array_equal(out, bits.view(np.float64).astype(np.float16))


def limits(kind: str) -> Limits:
    info = np.iinfo(INTEGER_TYPES[kind])
    return Limits(info.bits, int(info.min), int(info.max))


@functools.cache
def integer_inputs(kind: str) -> NDArray:
    """Return (3, n) integers: all combinations of edge cases, then random ones of every size."""
    t = limits(kind)
    special = sorted({t.low, t.low + 1, t.low // 2, 0, 1, 2, 3, t.bits - 1, t.bits, t.high // 2, t.high - 1, t.high})
    special += [-1, -2] if t.low else []
    random = np.random.default_rng(t.bits)
    cases = [(x, y, special[k % len(special)]) for k, (x, y) in enumerate(itertools.product(special, special))]
    while len(cases) < 512:
        sizes = random.integers(1, t.bits + 1, 3)
        cases.append(tuple(t.signed(int.from_bytes(random.bytes(8)) >> (64 - int(size)), t.bits) for size in sizes))
    return np.array(cases, INTEGER_TYPES[kind]).T.copy()


def integer_source(rows: list[Integer], kind: str, width: int) -> str:
    vector = kind if width == 1 else f"{kind}{width}"
    half = limits(kind).bits // 2
    lines = [f"  out[{i} * n + i] = V({row.expression.format(half=half)});" for i, row in enumerate(rows)]
    return "\n".join([
        "#include <metal_stdlib>",
        "using namespace metal;",
        f"typedef {vector} V;",
        "kernel void each(device const V* in, device V* out, constant uint& n, uint i [[thread_position_in_grid]]) {",
        "  V a = in[i], b = in[n + i], c = in[2 * n + i];",
        *lines,
        "}",
    ])  # fmt: skip


@pytest.mark.long(every=3)  # 3 does not divide the number of widths, so each remains
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", INTEGER_TYPES)
def test_integers_are_exact(kind: str, width: int) -> None:
    rows = [row for row in INTEGERS if kind in row.types]
    given = integer_inputs(kind)
    count = given.shape[1]
    out = np.zeros((len(rows), count), given.dtype)
    program = mnb.compile(integer_source(rows, kind, width))
    program["each"](given.reshape(-1), out.reshape(-1), count // width, grid=(count // width,))
    t = limits(kind)
    found = []
    for row, got in zip(rows, out, strict=True):
        for arguments, answer in zip(given.T.tolist(), got.tolist(), strict=True):
            expected = t.signed(row.oracle(t, *arguments[: row.arity]), t.bits)
            if answer != expected:
                found.append(f"{row.name}{tuple(arguments[: row.arity])} = {answer}, not {expected}")
                break
    assert not found


def test_the_comparison_itself_can_fail() -> None:
    row = next(row for row in REALS if row.name == "sin")
    with np.errstate(invalid="ignore"):
        right = np.sin(real_inputs(row, "float")[0].astype(np.float64)).astype(np.float32)
    with np.errstate(invalid="ignore"):
        assert not complaint(row, "float", "precise", right)
        wrong = right.copy()
        wrong[-1] = np.nextafter(wrong[-1], np.float32(9)) + 8 * np.spacing(wrong[-1])
        assert "ulp" in complaint(row, "float", "precise", wrong)
        wrong[-1] = np.nan
        assert "inf ulp" in complaint(row, "float", "precise", wrong)
