"""Kernels that check indices report the first wrong one in a word, which later calls reuse."""

import functools
from typing import Any

import numpy as np
import pytest
from interrupts import run_together

import metalnb as mnb
from metalnb.library_kernels.launching import element_bits

X = np.arange(10, dtype=np.float32)


@pytest.fixture
def unused(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    words: dict[str, list[Any]] = {}
    monkeypatch.setattr(element_bits, "_unused_words", words)
    return words


def test_word_of_valid_indices_is_reused(unused: dict[str, list[Any]]) -> None:
    x = mnb.asarray(X)
    assert np.array_equal(mnb.take(x, mnb.asarray([3, -1])), [3, 9])
    (words,) = unused.values()
    (word,) = words
    assert np.array_equal(mnb.take(x, mnb.asarray([0])), [0])
    assert words == [word]
    assert word.read()[0] == element_bits.NO_FAULT


def test_word_that_has_a_fault_is_not_reused(unused: dict[str, list[Any]]) -> None:
    x = mnb.asarray(X)
    for _ in range(2):
        with pytest.raises(IndexError, match=r"index 10 \(at \(1,\) of the indices\)"):
            mnb.take(x, mnb.asarray([3, 10, 11]))
        assert not any(unused.values())
        assert np.array_equal(mnb.take(x, mnb.asarray([2, 1])), [2, 1])
        unused.clear()


def test_each_thread_has_its_own_word(unused: dict[str, list[Any]]) -> None:
    x, results = mnb.asarray(X), list[bool]()

    def take(number: int) -> None:
        for _ in range(20):
            try:
                results.append(float(mnb.take(x, mnb.asarray([number])).read()[0]) == number)
            except IndexError:
                results.append(number == 10)

    run_together([functools.partial(take, number) for number in (1, 10, 5, 10)])
    assert len(results) == 80
    assert all(results)
    assert all(word.read()[0] == element_bits.NO_FAULT for words in unused.values() for word in words)
