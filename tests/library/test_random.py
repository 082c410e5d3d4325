"""Random numbers: the published test vectors, the definition of the stream, and tests of randomness."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from metal_module import metal_module
from opened_engines import open_as

import metalnb as mnb
from metalnb.engine import engine_choice as engines
from metalnb.engine.metal.metalcompute_path import open_engine
from metalnb.library_kernels.launching.programs import program
from metalnb.random import Generator
from metalnb.random.keys import block as host_block

N = 1 << 18


@pytest.fixture
def generator() -> Generator:
    """Return the same generator in every run: a test of randomness must not fail occasionally."""
    return Generator(2011)


def words(generator: Generator, n: int) -> np.ndarray:
    """Return a generator's next words, computed in NumPy by the definition in random.metal."""
    rows = -(-n // 128)
    number = np.arange(rows * 32, dtype=np.uint64) + np.uint64(generator.used)
    low = np.uint64(0xFFFFFFFF)
    x, y, z, w = number & low, number >> np.uint64(32), 0 * number, 0 * number
    k, m = generator.key & 0xFFFFFFFF, generator.key >> 32
    for _ in range(10):
        a, b = x * np.uint64(0xD2511F53), z * np.uint64(0xCD9E8D57)
        x, y = (b >> np.uint64(32)) ^ y ^ np.uint64(k), b & low
        z, w = (a >> np.uint64(32)) ^ w ^ np.uint64(m), a & low
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    blocks = np.stack([x, y, z, w]).astype(np.uint32).reshape(4, rows, 32)
    return blocks.transpose(1, 0, 2).reshape(-1)[:n]


# ---- The stream.
# Known answers of Random123 1.14 (kat_vectors) for philox4x32 with 10 rounds: counter, key, block.
VECTORS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]  # fmt: skip


@pytest.mark.parametrize(("counter", "key", "block"), VECTORS)
def test_philox_gives_its_published_vectors(counter: Any, key: Any, block: Any) -> None:
    cell = """
    #include <metalnb/random.metal>
    kernel void one(constant uint4& counter, constant uint2& key, device uint4* out) { *out = philox(counter, key); }
    """
    assert tuple(mnb.compile(cell).one(counter, key, grid=1).reshape(-1)) == block


def test_host_and_kernel_generate_the_same_blocks() -> None:
    assert host_block(0, 0) == VECTORS[0][2]
    g = Generator(3)
    first = words(g, 128)
    assert host_block(5, g.key) == tuple(first[5::32])


@pytest.mark.parametrize("n", [1, 31, 32, 33, 127, 128, 129, 4095, 4096, 4097, 100_003])
@pytest.mark.parametrize("used", [0, 2**32 - 40])
def test_words_are_those_of_the_definition(n: int, used: int, generator: Generator) -> None:
    generator.used = used
    expected = words(generator, n)
    assert np.array_equal(generator.randint(0, 2**32, n, "uint32").read(), expected)
    assert generator.used == used + 32 * -(-n // 128)


def test_floats_are_made_of_the_words(generator: Generator) -> None:
    for dtype, bits in (("float32", 24), ("float16", 11), ("bfloat16", 8)):
        expected = (words(generator, 5000) >> (32 - bits)).astype(np.float64) / 2**bits
        got = generator.random(5000, dtype)
        assert got.dtype.name == dtype
        assert np.array_equal(got.read().astype(np.float64), expected)


def test_a_seed_gives_the_same_numbers_and_goes_on() -> None:
    one, other = Generator(7), Generator(7)
    assert np.array_equal(one.randn(1000).read(), other.randn(1000).read())
    again = one.randn(1000)
    assert np.array_equal(again.read(), other.randn(1000).read())
    resumed = Generator(0)
    resumed.key, resumed.used = one.key, one.used
    assert np.array_equal(resumed.rand(5).read(), one.rand(5).read())
    pickled = pickle.loads(pickle.dumps(one))  # noqa: S301
    assert np.array_equal(pickled.rand(5).read(), one.rand(5).read())
    mnb.random.seed(7)
    assert np.array_equal(mnb.random.randn(1000).read(), Generator(7).randn(1000).read())


def test_seeds_are_far_apart() -> None:
    seeds = [*range(64), 2**32, 2**64, 2**64 + 1, 2**200, 2**200 + 2**64]
    keys = [Generator(s).key for s in seeds]
    keys += [g.key for g in Generator(0).spawn(64)]
    assert len(set(keys)) == len(keys)
    ones = np.mean([(a ^ b).bit_count() for a, b in itertools.pairwise(keys)])
    assert 30 < ones < 34  # half of the 64 bits differ


@pytest.fixture
def metal(monkeypatch: pytest.MonkeyPatch) -> str:
    """Open the device "metal:metalcompute" on metalcompute, or on its double."""
    open_as(monkeypatch, {"metal:metalcompute": open_engine(module=metal_module())})
    return "metal:metalcompute"


def test_another_engine_gives_the_same_numbers(metal: str) -> None:
    here, there = Generator(7, device="cpu"), Generator(7, device=metal)
    for made in (
        lambda g: g.random(1001), lambda g: g.uniform(-3, 5, 1001), lambda g: g.randint(-5, 1000, 1001),
        lambda g: g.randint(0, 3 * 2**30, 1001, "uint32"), lambda g: g.permutation(100),
    ):  # fmt: skip
        one, other = made(here), made(there)
        assert (one.device, other.device) == ("cpu", metal)
        assert np.array_equal(one.read(), other.read())


# ---- Distributions, at a fixed seed. Critical values allow one failure in about 10,000.
def kolmogorov(u: np.ndarray) -> float:
    """Return the scaled Kolmogorov–Smirnov distance from uniform, which exceeds 2.23 once in 10,000."""
    ordered = np.sort(u.astype(np.float64))
    steps = np.arange(len(u) + 1) / len(u)
    return math.sqrt(len(u)) * max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1]))


def chi_square(counts: np.ndarray, expected: Any = None) -> float:
    """Return Pearson's statistic, as standard deviations from its mean."""
    expected = np.mean(counts) if expected is None else expected
    freedom = len(counts) - 1
    return float((np.sum((counts - expected) ** 2 / expected) - freedom) / math.sqrt(2 * freedom))


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 5), (1e6, 1e6 + 64)])
def test_uniform_numbers_are_uniform_within_their_bounds(low: float, high: float, generator: Generator) -> None:
    x = generator.uniform(low, high, N).read().astype(np.float64)
    assert low <= x.min()
    assert x.max() <= high
    assert kolmogorov((x - low) / (high - low)) < 2.23


def test_random_is_below_one(generator: Generator) -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        assert float(generator.random(1 << 20, dtype).read().max()) < 1


@pytest.mark.parametrize(("mean", "deviation", "dtype"), [(0, 1, "float32"), (5, 0.25, "float32"), (0, 1, "float16")])
def test_normal_numbers_have_a_normal_distributions_moments(
    mean: float, deviation: float, dtype: str, generator: Generator
) -> None:
    z = (generator.normal(mean, deviation, N, dtype).read().astype(np.float64) - mean) / deviation
    assert kolmogorov((1 + erf(z / math.sqrt(2))) / 2) < 2.23
    root = math.sqrt(N)
    assert abs(z.mean()) < 4 / root
    assert abs(z.var() - 1) < 4 * math.sqrt(2) / root
    assert abs((z**3).mean()) < 4 * math.sqrt(15) / root
    assert abs((z**4).mean() - 3) < 4 * math.sqrt(96) / root
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 4 / root
    assert abs(np.corrcoef(z[:-32], z[32:])[0, 1]) < 4 / root  # the two numbers of one Box-Muller pair


def test_normal_numbers_are_within_a_few_ulp_of_box_and_muller(generator: Generator) -> None:
    """The polynomials compared with float64; u keeps 24 significant bits of its word, as random.metal documents."""
    w = words(generator, N).reshape(-1, 4, 32)
    drop = 8 - np.minimum(32 - np.ceil(np.log2(w[:, ::2] + 1.0)), 8).astype(np.uint32)
    u = ((w[:, ::2] | 1) >> drop << drop) / 2.0**32
    turn = (w[:, 1::2] >> 6 << 6) / 2.0**32 + 1.0 / 2**3 - 2.0 / 8
    r, angle = np.sqrt(-2 * np.log(u)), 2 * np.pi * (turn + 1 / 8) - np.pi / 4
    expected = np.stack([r * np.cos(angle), r * np.sin(angle)], 2).reshape(-1, 4, 32)
    got = generator.randn(N).read().reshape(-1, 4, 32)
    off = np.abs(got - expected) / np.maximum(np.spacing(np.abs(expected).astype(np.float32)), 2.0**-26)
    assert off.max() < 6


def integers(generator: Generator) -> Iterator[tuple[int, np.ndarray]]:
    for count, dtype in ((2, "int8"), (3, "uint8"), (100, "int16"), (1000, "int32"), (10, "int64"), (7, "uint64")):
        yield count, generator.randint(0, count, N, dtype).read()


def test_integers_are_equally_likely(generator: Generator) -> None:
    for count, x in integers(generator):
        counts = np.bincount(x.astype(np.int64), minlength=count)
        assert len(counts) == count
        assert abs(chi_square(counts)) < 4


@pytest.mark.parametrize(("dtype", "word"), [("uint32", 32), ("uint64", 64)])
def test_a_range_that_does_not_divide_the_words_is_not_biased(dtype: str, word: int, generator: Generator) -> None:
    """3/4 of all words: without rejection, one in three numbers would be drawn twice as often."""
    count = 3 * 2 ** (word - 2)
    x = generator.randint(0, count, N, dtype).read()
    residues = np.bincount((x % x.dtype.type(3)).astype(np.int64), minlength=3)
    assert abs(chi_square(residues)) < 4
    assert kolmogorov(x.astype(np.float64) / count) < 2.23


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_cover_the_whole_range_of_a_dtype(dtype: str, generator: Generator) -> None:
    info = np.iinfo(dtype)
    x = generator.randint(info.min, info.max, 4096, dtype, endpoint=True).read()
    assert x.dtype == dtype
    ones = np.unpackbits(x.view(np.uint8)).reshape(4096, -1).mean(0)
    assert np.all(np.abs(ones - 0.5) < 0.04)  # each bit is set in half of the numbers, within 5 standard deviations
    assert generator.randint(info.max, info.max, 3, dtype, endpoint=True).tolist() == [info.max] * 3
    assert generator.randint(info.min, info.min + 1, 3, dtype).tolist() == [info.min] * 3


def test_every_order_is_equally_likely(generator: Generator) -> None:
    orders = [tuple(generator.permutation(4).tolist()) for _ in range(2000)]
    found = np.array([orders.count(p) for p in itertools.permutations(range(4))])
    assert found.sum() == 2000
    assert abs(chi_square(found)) < 4


def test_permutation_and_shuffle_keep_the_rows(generator: Generator) -> None:
    x = np.arange(3000).reshape(1000, 3)
    mixed = generator.permutation(mnb.asarray(x.copy())).read()
    assert not np.array_equal(mixed, x)
    assert np.array_equal(mixed[np.argsort(mixed[:, 0])], x)
    across = generator.permutation(mnb.asarray(x.copy()), axis=1).read()
    assert np.array_equal(np.sort(across, 1), x)
    given = mnb.asarray(x.copy())
    assert generator.shuffle(given) is None
    assert np.array_equal(np.sort(given.read()[:, 0]), x[:, 0])


def test_choice_follows_its_weights_and_can_leave_repetitions_out(generator: Generator) -> None:
    weights = np.array([0.1, 0.0, 0.6, 0.3, 0.0])
    counts = np.bincount(generator.choice(5, N, p=weights).read(), minlength=5)
    assert counts[1] == counts[4] == 0
    kept = weights > 0
    assert abs(chi_square(counts[kept], weights[kept] * N)) < 4
    plain = np.bincount(generator.choice(5, N).read(), minlength=5)
    assert abs(chi_square(plain)) < 4
    once = generator.choice(mnb.asarray(np.arange(10, 60)), (5, 8), replace=False).read()
    assert len(set(once.reshape(-1).tolist())) == 40
    assert generator.choice(3).shape == ()


@pytest.mark.parametrize("n", [0, 1, 5, 4096])
def test_bytes_are_those_of_the_words(n: int, generator: Generator) -> None:
    expected = words(generator, -(-n // 4)).tobytes()[:n]
    found = generator.bytes(n)
    assert isinstance(found, bytes)
    assert found == expected


# ---- Shapes and refusals.
def test_shapes_and_dtypes_are_as_requested(generator: Generator) -> None:
    assert generator.rand().shape == ()
    assert generator.rand(2, 3).shape == (2, 3)
    assert generator.randn(0, 3).shape == (0, 3)
    assert generator.random((4,)).dtype == np.float32
    assert generator.randint(10, size=(2, 2)).dtype == np.int64
    assert mnb.random.rand(3).shape == (3,)
    assert generator.randint(0, 2, 5, bool).dtype == np.bool_


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda g: g.randint(5, 5), ValueError, "no integers from 5 to 5"),
        (lambda g: g.randint(0, 300, dtype="uint8"), ValueError, "uint8 holds 0 to 255; got 0 to 299"),
        (lambda g: g.randint(0, 3, dtype="float32"), TypeError, "must be an integer dtype or bool; got float32"),
        (lambda g: g.randn(-1), ValueError, "lengths of a shape must be 0 or more"),
        (lambda g: g.random(3, "float64"), TypeError, "no float64"),
        (lambda g: g.random(3, "int32"), TypeError, "dtype must be float32, float16 or bfloat16; got int32"),
        (lambda g: g.normal(0, -1), ValueError, "scale must be 0 or more; got -1"),
        (lambda g: g.uniform(0, math.inf), ValueError, "bounds must be finite"),
        (lambda g: g.choice(3, 4, replace=False), ValueError, "cannot choose 4 of 3"),
        (lambda g: g.choice(0), ValueError, "nothing to choose from"),
        (lambda g: g.choice(2, p=[0.5, 0.6]), ValueError, r"p must sum to 1; it sums to 1\.1"),
        (lambda g: g.choice(3, p=[0.5, 0.5]), ValueError, r"p must be 3 numbers; got shape \(2,\)"),
        (lambda g: g.choice(3, p=[math.nan, 0.5, 0.5]), ValueError, "p must be numbers, 0 or more; got nan"),
        (lambda g: g.spawn(-32), ValueError, "spawn: needs a count of 0 or more; got -32"),
        (lambda g: g.permutation(-3), ValueError, "permutation: needs a count of 0 or more; got -3"),
        (lambda g: g.bytes(-1), ValueError, "bytes: needs a count of 0 or more; got -1"),
        (lambda g: g.shuffle(np.ones(3)), TypeError, r"takes a metalnb array; got ndarray\. Pass mnb\.asarray"),
        (lambda g: g.shuffle(mnb.broadcast_to(mnb.ones(1), (3,))), ValueError, "shuffle: x is broadcast"),
        (lambda g: g.uniform(0, 1e6, dtype="float16"), ValueError, "float16 holds -65504 to 65504.*high=1000000"),
        (lambda g: g.uniform(-3e38, 3e38), ValueError, "the bounds may be 3.4e.38 apart"),
        (lambda _: Generator(-1), ValueError, "seed: must be 0 or more; got -1"),
    ],
)
def test_a_wrong_call_names_argument_and_requirement(
    call: Any, error: type[Exception], says: str, generator: Generator
) -> None:
    with pytest.raises(error, match=says):
        call(generator)


def test_refused_calls_consume_nothing(generator: Generator) -> None:
    before = generator.used
    for call in (generator.spawn, generator.permutation, generator.bytes):
        with pytest.raises(ValueError, match="0 or more"):
            call(-32)
    assert generator.used == before
    assert generator.spawn(0) == []
    assert generator.bytes(0) == b""
    assert generator.permutation(0).shape == (0,)


@pytest.mark.usefixtures("shared_memory")
def test_shuffle_permutes_numpys_memory_in_place(generator: Generator) -> None:
    host = np.arange(1000, dtype=np.float32)
    generator.shuffle(mnb.asarray(host))
    assert (host != np.arange(1000)).any()
    assert np.array_equal(np.sort(host), np.arange(1000))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_bounds_as_far_as_the_dtype_reaches(dtype: str, generator: Generator) -> None:
    most = min(mnb.finfo(dtype).max, 1.7e38)
    drawn = generator.uniform(-most, most, 1000, dtype)
    assert mnb.isfinite(drawn).all()
    assert float(drawn.max()) > most / 2


def test_the_kernels_are_there_to_be_read() -> None:
    assert "Philox4x32-10" in program("random.metal", engines.current()).source
