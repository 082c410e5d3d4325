"""Small arguments that are kept on the GPU by content, with a double of the driver that has 16 KiB of memory."""

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from metalnb.engine.cuda import argument_cache
from metalnb.engine.cuda.argument_cache import ArgumentCache

BASE, CAPACITY = 4096, 16384  # room for 32 contents in each half


@pytest.fixture
def memory() -> bytearray:
    return bytearray(BASE + CAPACITY)


@pytest.fixture
def cached(memory: bytearray, monkeypatch: pytest.MonkeyPatch) -> ArgumentCache:
    def copy(address: int, source: int, size: int, _stream: Any) -> None:
        memory[address : address + size] = ctypes.string_at(source, size)

    monkeypatch.setattr(argument_cache, "_CAPACITY", CAPACITY)
    api = SimpleNamespace(cuMemAlloc=lambda _: BASE, cuMemcpyHtoDAsync=copy)
    return ArgumentCache(SimpleNamespace(api=api, take=lambda result: result, stream=0))


def test_arguments_of_a_launch_do_not_overwrite_one_another(cached: ArgumentCache, memory: bytearray) -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        arguments = [rng.integers(0, 40, rng.integers(1, 3)).astype(np.uint32) for _ in range(20)]
        addresses = [cached.address_of(argument) for argument in arguments]
        for argument, address in zip(arguments, addresses, strict=True):
            assert address is not None
            assert BASE <= address <= BASE + CAPACITY - argument.nbytes
            assert memory[address : address + argument.nbytes] == argument.tobytes()


def test_equal_contents_share_an_address(cached: ArgumentCache) -> None:
    assert cached.address_of(np.arange(4)) == cached.address_of(np.arange(4)) != cached.address_of(np.arange(5))


def test_large_and_empty_arguments_are_not_kept(cached: ArgumentCache) -> None:
    assert cached.address_of(np.zeros(4097, np.uint8)) is None
    assert cached.address_of(np.zeros(0, np.uint8)) is None
    assert cached.address_of(bytearray(4096)) is not None
