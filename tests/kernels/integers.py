"""Bits: random numbers, hashes, histograms, cellular automata."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import numpy as np

from .case import Array, Bench, Check, Table

table = Table()


def _threefry(key: Any, count: Any) -> Array:
    """Return Threefry-2x32-20 of counters (2, n), in NumPy; checked against a known answer below."""
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    ks = [int(key[0]), int(key[1]), int(key[0]) ^ int(key[1]) ^ 0x1BD11BDA]
    mask = np.uint64(0xFFFFFFFF)
    x, y = ((np.asarray(c, np.uint64) + np.uint64(k)) & mask for c, k in zip(count, ks[:2], strict=True))
    for i in range(5):
        for r in rotations[i % 2]:
            x = (x + y) & mask
            y = ((y << np.uint64(r)) | (y >> np.uint64(32 - r))) & mask ^ x
        x = (x + np.uint64(ks[(i + 1) % 3])) & mask
        y = (y + np.uint64(ks[(i + 2) % 3] + i + 1)) & mask
    return np.stack([x, y]).astype(np.uint32)


@table.case({"keys": 1, "nbytes": 8}, {"keys": 3, "nbytes": 801}, name="random_bits")
def threefry(bench: Bench, keys: int, nbytes: int) -> list[Check]:
    key = bench.rng.integers(0, 2**32, (keys, 2), dtype=np.uint32)
    key[-1] = 0x13198A2E, 0x03707344
    out = np.zeros((keys, nbytes), np.int8)
    half = -(-nbytes // 8)
    bench.load().threefry(key, out, nbytes, grid=(keys, half))
    counts = np.arange(half), half + np.arange(half)
    expected = np.stack([_threefry(k, counts).T.reshape(-1).view(np.int8)[:nbytes] for k in key])
    # A known answer from the authors' test vectors (Random123, kat_vectors).
    known = _threefry((0x13198A2E, 0x03707344), ([0x243F6A88], [0x85A308D3])).reshape(-1)
    return [Check(out, expected), Check(known, np.array([0xC4923A9C, 0x483DF7A0]))]


def _philox(counter: Array, seed: int) -> Array:
    """Return Philox-4x32-10 of counters (n, 4)."""
    a, b, c, d = (counter[:, i].astype(np.uint64) for i in range(4))
    key = [seed & 0xFFFFFFFF, seed >> 32]
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (
            (second >> shift) ^ b ^ np.uint64(key[0]),
            second & mask,
            (first >> shift) ^ d ^ np.uint64(key[1]),
            first & mask,
        )
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack([a, b, c, d], -1).astype(np.uint32)


@table.case({"n": 1}, {"n": 1000}, name="random_bits")
def philox(bench: Bench, n: int) -> list[Check]:
    seed, offset = int(bench.rng.integers(2**63)), 2**32 - 5  # the counter carries into its second word
    bits, uniform = bench.load().philox_uniform(seed=seed, offset=offset, grid=n, shapes={"bits": n, "uniform": n})
    counts = (np.uint64(offset) + np.arange(n, dtype=np.uint64)).view(np.uint32).reshape(n, 2)
    expected = _philox(np.pad(counts, ((0, 0), (0, 2))), seed)
    known = _philox(np.zeros((1, 4), np.uint32), 0)[0]  # Random123, kat_vectors
    return [
        Check(bits, expected),
        Check(uniform, (expected >> 8) * 2.0**-24),
        Check(known, np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])),
    ]


@table.case({"n": 1}, {"n": 12_345})
def histogram(bench: Bench, n: int) -> Check:
    program = bench.load()
    pixels = bench.rng.integers(0, 256, (n, 4)).astype(np.uint8)
    pixels[:, 3] = 255  # all threads in one bin
    bins = np.zeros((4, 256), np.uint32)
    program.histogram(pixels, bins, n, grid=1024, threadgroup=256)
    expected = np.stack([np.bincount(pixels[:, k], minlength=256) for k in range(4)])
    return Check(bins, expected)


@table.case({"n": 1}, {"n": 5000}, metal=False)  # float atomics need Metal 3
def float_atomics(bench: Bench, n: int) -> list[Check]:
    program = bench.load()
    where = bench.rng.integers(0, 7, n).astype(np.int32)
    weight = bench.normal(n)
    sums, greatest = np.zeros(7, np.float32), np.zeros(7, np.uint32)
    program.weighted_histogram(where, weight, sums, grid=n)
    program.greatest(where, np.abs(weight), greatest, grid=n)
    most = np.zeros(7)
    np.maximum.at(most, where, np.abs(weight))
    added = np.bincount(where, weight, 7)  # in any order
    return [
        Check(sums, added, roundings=n, scale=np.bincount(where, np.abs(weight), 7)),
        Check(greatest.view(np.float32), most.astype(np.float32)),
    ]


@table.case({"rows": 3, "columns": 3}, {"rows": 41, "columns": 70})
def life(bench: Bench, rows: int, columns: int) -> Check:
    kernel = bench.load().life
    board = bench.rng.random((rows, columns)) < 0.4
    cells, other = board.copy(), np.zeros_like(board)
    for _ in range(6):
        kernel(cells, other, (columns, rows), threadgroup=(16, 4))
        cells, other = other, cells
        around = sum(np.roll(board, (dy, dx), (0, 1)).astype(int) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - board
        board = (around == 3) | ((around == 2) & board)
    return Check(cells, board)


@table.case({"messages": 1}, {"messages": 77})
def crc32(bench: Bench, messages: int) -> Check:
    program = bench.load()
    tables = np.zeros((4, 256), np.uint32)
    program.crc_tables(tables, grid=256)
    lengths = bench.rng.integers(0, 60, messages)
    lengths[0] = 0
    texts = [bench.rng.bytes(int(n)) for n in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    sums = np.zeros(messages, np.uint32)
    program.crc32(data, offsets, tables, sums, grid=messages)
    return Check(sums, np.array([zlib.crc32(t) for t in texts]))


@table.case({"n": 1}, {"n": 500})
def sha256(bench: Bench, n: int) -> list[Check]:
    program = bench.load()
    message = bench.rng.integers(0, 2**32, (4, 4), dtype=np.uint32)
    digests = np.zeros(n, program.dtype("digest"))
    found = np.full(1, 2**32 - 1, np.uint32)
    program.sha256_search(message, digests, found, 5, grid=n)
    head = message.tobytes()[:60]
    expected = [np.frombuffer(hashlib.sha256(head + i.to_bytes(4, "big")).digest(), ">u4") for i in range(n)]
    hits = [i for i, words in enumerate(expected) if int(words[0]) < 2**27]
    return [Check(digests["words"], np.stack(expected)), Check(found, np.array([min(hits, default=2**32 - 1)]))]
