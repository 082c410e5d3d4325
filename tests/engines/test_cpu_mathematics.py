"""Mathematics on the engine `cpu`: right for every kind of number, on every x86-64 level, without library calls."""

import functools
import platform
import re
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from msl.every_float import OWN
from msl.functions import MATH
from msl.page import read
from msl.ulp import distance
from numpy.typing import NDArray

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.clang import driver
from metalnb.engine.clang.driver import Target
from metalnb.engine.cpu import toolchain
from metalnb.engine.cpu.entry_texts import fiber_text, loop_text
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.cpu.object_files import object_file
from metalnb.program import compiled

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
PROCESSORS = ("native", "haswell", "nehalem") if platform.machine() in {"x86_64", "AMD64"} else ("native",)
MACHINES = (
    "x86_64-linux-gnu nehalem", "x86_64-linux-gnu haswell", "x86_64-linux-gnu x86-64-v4", "x86_64-windows-gnu nehalem",
    "aarch64-linux-gnu", "aarch64-macos11",
)  # fmt: skip
_EDGES = (
    0.0, 1e-45, 1.1754942e-38, 1.1754944e-38, 1e-30, 0.25, 0.5, 0.99999994, 1.0, 1.0000001, 1.5, 2.0, 2.5, 3.0, 4.0,
    7.0, 10.0, 88.8, 127.0, 128.0, 149.0, 150.0, 505.796417, 2.0**22 - 0.5, 2.0**23 - 0.5, 2.0**23 + 1, 2.0**24 - 1,
    2.0**24, 2.0**31, 2.0**100, 3.4028235e38, np.inf,
)  # fmt: skip
EDGES = np.array([*_EDGES, *(-x for x in _EDGES), np.nan], np.float32)
# Of two arguments, as on the page of the language: over 2^23 random pairs, and all pairs of edge cases.
PAIRS = {"atan2": 1.6, "fmod": 0.0, "pow": 0.51, "powr": 0.51}
_SECOND = {"": "", "T": "float second; ", "int": "int second; "}
_NAMES = "|".join(row.name for row in MATH if row.name.isalnum())
LIBRARY = re.compile(rf"_?(_ZGV.*|amd_vr.*|sincos\w*|({_NAMES})[fl]?)")


@pytest.fixture(scope="module", autouse=True)
def engine_is_here() -> None:
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(params=PROCESSORS)
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compile for a processor with fewer features than this one may have."""
    flags = tuple(f"-march={request.param}" if flag == "-march=native" else flag for flag in toolchain.flags())
    monkeypatch.setattr(toolchain, "flags", lambda: flags)
    monkeypatch.setattr(compiled, "_programs", OrderedDict())  # or each would run the first one's code
    monkeypatch.setattr(toolchain, "host_target", functools.cache(toolchain.host_target.__wrapped__))
    return str(request.param)


def results(
    names: Iterable[str], *arguments: NDArray[np.float32], math: str = "precise",
) -> NDArray[np.float32]:  # fmt: skip
    """Call all functions on the same arguments in one kernel; return their results."""
    count = len(arguments[0])
    call = ", ".join(f"in[{place} * n + i]" for place in range(len(arguments)))
    lines = [f"out[{k} * n + i] = {name}({call});" for k, name in enumerate(names)]
    out = np.empty((len(lines), count), np.float32)
    mnb.compile(
        f"{HEAD}kernel void each(device const float* in, device float* out, constant uint& n,"
        f" uint i [[thread_position_in_grid]]) {{ {' '.join(lines)} }}",
        engine="cpu", math=math,
    ).each(np.concatenate(arguments), out.reshape(-1), count, grid=(count,))  # fmt: skip
    return out


def complaints(names: Iterable[str], got: NDArray[np.float32], *arguments: NDArray[np.float32]) -> list[str]:
    """Return the results whose error exceeds that on the page of the language, or whose zero has the wrong sign."""
    found = []
    for name, result in zip(names, got, strict=True):
        row = next(row for row in MATH if row.name == name)
        with np.errstate(all="ignore"):
            exact = np.asarray(row.oracle(*(x.astype(np.float64) for x in arguments)), np.float64)
        error = distance(result, exact, signed_zero=True)
        worst = int(error.argmax())
        allowed = {**read().every_float, **PAIRS}[name] * (1 + 1e-6)  # float64 has an error, too
        if not error[worst] <= allowed:
            given = ", ".join(repr(x[worst]) for x in arguments)
            found.append(f"{name}({given}) = {result[worst]!r}, not {exact[worst]!r}: {error[worst]:.4f} ulp")
    return found


def pairs() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return all pairs of edge cases, pairs of any floats, and pairs whose powers are usually finite."""
    dice = np.random.default_rng(6)
    every = dice.integers(0, 1 << 32, (2, 1 << 17), dtype=np.uint32).view(np.float32)
    some = dice.uniform(-40, 40, (2, 1 << 17)).astype(np.float32)
    x = np.concatenate([np.repeat(EDGES, len(EDGES)), every[0], some[0]])
    return x, np.concatenate([np.tile(EDGES, len(EDGES)), every[1], some[1]])


# The regular run keeps this machine's processor; for the others only the choice of instructions differs.
@pytest.mark.long(every=3)
def test_functions_of_one_float_stay_within_their_bounds(processor: str) -> None:
    """2^18 floats and the edge cases, including sin, cos and tan of the largest."""
    assert processor
    dice = np.random.default_rng(5)
    x = np.concatenate([EDGES, dice.integers(0, 1 << 32, 1 << 18, dtype=np.uint32).view(np.float32)])
    assert not complaints(OWN, results(OWN, x), x)


def test_functions_of_two_floats_stay_within_their_bounds(processor: str) -> None:
    """The arguments include C99's special cases of pow and atan2: 0, 1, infinities and NaN."""
    assert processor
    x, y = pairs()
    assert not complaints(PAIRS, results(PAIRS, x, y), x, y)

def test_powers_whose_results_a_float_just_holds_or_does_not(processor: str) -> None:
    """Any base, and bases near 1, with powers from below the least denormal number to beyond the greatest float."""
    assert processor
    dice = np.random.default_rng(8)
    count = 1 << 17
    near = 1 + dice.uniform(-1, 1, count) * 2.0 ** dice.uniform(-23, -1, count)
    x = np.concatenate([2.0 ** dice.uniform(-149, 128, count), near, near]).astype(np.float32)
    logarithm = np.log2(x.astype(np.float64))
    share = np.concatenate([dice.uniform(-160, 140, 2 * count), dice.uniform(-9000, 9000, count)])
    y = (share / np.where(logarithm == 0, 1, logarithm)).astype(np.float32)
    assert not complaints(["pow", "powr"], results(["pow", "powr"], x, y), x, y)


def test_a_remainder_beside_a_multiple_is_exact(processor: str) -> None:
    """Cases whose rounded quotient is an integer but whose exact one is not, up to where a slower form takes over."""
    assert processor
    dice = np.random.default_rng(7)
    y = (dice.uniform(1, 2, 1 << 16) * 2.0 ** dice.integers(-20, 20, 1 << 16)).astype(np.float32)
    multiple = y.astype(np.float64) * dice.integers(0, 1 << dice.integers(1, 29, 1 << 16))
    x = np.nextafter(multiple.astype(np.float32), np.where(dice.random(1 << 16) < 0.5, np.inf, 0).astype(np.float32))
    np.testing.assert_array_equal(results(["fmod"], x, y)[0], np.fmod(x, y))
    np.testing.assert_array_equal(np.asarray(mnb.fmod(mnb.asarray(x, device="cpu"), y)), np.fmod(x, y))


def test_nextafter_and_ldexp_are_exact(processor: str) -> None:
    """Results are exact or rounded once, also with exponents beyond any float's."""
    assert processor
    x, y = pairs()
    with np.errstate(all="ignore"):
        beside = np.nextafter(x, y)
    np.testing.assert_array_equal(results(("nextafter",), x, y)[0], beside)
    k = np.random.default_rng(7).integers(-320, 320, len(x)).astype(np.int32)
    k[:2] = -(1 << 31), (1 << 31) - 1
    out = np.empty_like(x)
    mnb.compile(
        f"{HEAD}kernel void f(device const float* x, device const int* k, device float* o,"
        " uint i [[thread_position_in_grid]]) { o[i] = ldexp(x[i], k[i]); }",
        engine="cpu", math="precise",
    ).f(x, k, out)  # fmt: skip
    with np.errstate(all="ignore"):
        exact = np.ldexp(x.astype(np.float64), np.clip(k, -400, 400))
        np.testing.assert_array_equal(out, exact.astype(np.float32))


def test_a_fused_sum_is_rounded_once(processor: str) -> None:
    """Sums next to a tie between two floats, and edge cases, on processors with and without an FMA instruction."""
    assert processor
    x, y = pairs()
    dice = np.random.default_rng(8)
    z = dice.permutation(y)
    # In double the sum is halfway between two floats; the exact sum is slightly less, and the lower float is odd.
    x[0], y[0], tie = (1 + 2.0**-23) * 2.0**-12, (1 - 2.0**-23) * 2.0**-12, 1 + 2.0**-23
    with np.errstate(all="ignore"):
        product = x.astype(np.float64) * y
        z[::2] = (product * 2.0 ** dice.integers(-60, 60, len(x)))[::2]
        z[0] = tie
        total, rest = _sum(product, z.astype(np.float64))
    bits = total.view(np.int64) - ((rest != 0) & ((rest > 0) != (total > 0)))  # rounded to odd
    exact = np.where(np.isfinite(total) & (rest != 0), bits | 1, total.view(np.int64)).view(np.float64)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(results(("fma",), x, y, z)[0], exact.astype(np.float32))


def _sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a sum and its rounding error (D. E. Knuth)."""
    total = a + b
    part = total - a
    return total, np.nan_to_num((a - (total - part)) + (b - part), posinf=0, neginf=0)


def test_the_vectorizer_knows_the_processor(processor: str) -> None:
    """The vectorizer once mistook every processor for the first one queried, and kernels ran one thread at a time."""
    assert processor
    assert vector_build.machine() == vector_build.machine(toolchain.flags())


def test_inverse_roots_in_fast_math_are_within_their_bound(processor: str) -> None:
    """Within the allowed 2 units in the last place: 1.05 with an estimate, 1.5 with a root and a division."""
    allowed = 1.05 if processor == "native" and vector_build.machine().has_estimates else 1.5
    bits = np.random.default_rng(9).integers(0, 1 << 32, 1 << 20, dtype=np.uint32)
    worst = np.float32(1.0457709)  # the worst of all significands
    x = np.concatenate([EDGES, [worst], np.arange(1, 1 << 10, dtype=np.uint32).view(np.float32), bits.view(np.float32)])
    with np.errstate(all="ignore"):
        exact = 1 / np.sqrt(x.astype(np.float64))
    for got in results(("rsqrt", "1 / sqrt"), x, math="fast"):
        assert distance(got, exact, signed_zero=True).max() <= allowed
    whole = np.arange(1, 1 << 8, dtype=np.float32)
    y = np.empty_like(whole)
    mnb.compile(
        f"{HEAD}kernel void f(device const float* x, device float* y, uint i [[thread_position_in_grid]])"
        " { y[i] = i / sqrt(x[i]); }",
        engine="cpu",
    ).f(whole, y)  # fmt: skip
    assert distance(y, (whole.astype(np.float64) - 1) / np.sqrt(whole.astype(np.float64))).max() <= 2


# 5 divides neither count: each processor remains, with signed or unsigned integers.
@pytest.mark.long(every=5)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32])
def test_quotients_and_remainders_are_exact(processor: str, dtype: type[np.signedinteger]) -> None:
    """For numbers at powers of 2, random ones, and neighbors of multiples; by varying and by uniform divisors."""
    assert processor
    name = np.dtype(dtype).name + "_t"
    program = mnb.compile(
        f"{HEAD}kernel void each(device const {name}* a, device const {name}* b, device {name}* q, device {name}* r,"
        f" uint i [[thread_position_in_grid]]) {{ q[i] = a[i] / b[i]; r[i] = a[i] % b[i]; }}"
        f"kernel void one(device const {name}* a, constant {name}& b, device {name}* q, device {name}* r,"
        f" uint i [[thread_position_in_grid]]) {{ q[i] = a[i] / b; r[i] = a[i] % b; }}",
        engine="cpu",
    )
    a, b, edges = dividends(dtype)
    for kernel, x, y in (("each", a, b), *(("one", a[:: len(edges)].copy(), edge) for edge in edges)):
        q, r = np.empty_like(x), np.empty_like(x)
        program[kernel](x, y, q, r, grid=(len(x),))
        wide, by = x.astype(np.int64), np.int64(y)
        quotient = np.sign(wide) * np.sign(by) * (abs(wide) // abs(by))
        np.testing.assert_array_equal(q, quotient.astype(dtype))
        np.testing.assert_array_equal(r, (wide - quotient * by).astype(dtype))


def dividends(dtype: type[np.signedinteger]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return dividends, their divisors, which never overflow, and the divisors that are edge cases."""
    info, dice, count = np.iinfo(dtype), np.random.default_rng(10), 1 << 17
    powers = {sign * 2**k + more for k in range(info.bits) for more in (-1, 0, 1) for sign in (-1, 1)}
    listed = sorted(x for x in {*powers, *range(-9, 10), info.max // 3} if info.min <= x <= info.max)
    edges = np.array([x for x in listed if x not in {0, -1}], dtype)
    any_two = dice.integers(info.min, info.max, (2, count), dtype, endpoint=True)
    by = any_two[1] >> dice.integers(0, info.bits - 1, count).astype(dtype)
    by[(by == 0) | (by == -1)] = 3
    beside = any_two[0].astype(np.int64) // by * by + dice.integers(-1, 2, count)
    a = np.concatenate([np.repeat(np.array(listed, dtype), len(edges)), any_two[0], beside.clip(info.min, info.max)])
    return a.astype(dtype), np.concatenate([np.tile(edges, len(listed)), by, by]), edges


@pytest.mark.long(every=5)  # Nehalem, x86-64-v4 and an Apple processor remain, as loops and as fibers
@pytest.mark.parametrize("has_barrier", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_no_function_of_a_library_is_called(machine: str, has_barrier: bool) -> None:
    """A cell that calls every function, as a loop and as fibers, for each kind of processor."""
    lines = (f"{{ {_SECOND[row.second]}o[i] += {row.expression}; }}" for row in MATH if "V(" not in row.expression)
    unit = mnb.compile(
        f"{HEAD}kernel void f(device float* o, device const float* x, uint i [[thread_position_in_grid]])"
        f" {{ const float a = x[i], b = x[i + 1], c = x[i + 2]; {' '.join(lines)} }}",
        engine="cpu",
    )["f"].unit  # fmt: skip
    triple, _, processor = machine.partition(" ")
    flags = (*toolchain.flags_for(triple), *([f"-march={processor}"] if processor else []))
    text = fiber_text(unit) if has_barrier else loop_text(unit, independent=True)
    symbols = object_file(driver.compile_source(unit, text, Target("cpu", toolchain.PRELUDE, flags))).symbols
    assert ("metalnb_thread" if has_barrier else "metalnb_threads") in symbols
    assert [name for name in symbols if LIBRARY.fullmatch(name)] == []
