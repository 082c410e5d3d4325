"""The reducer of LLVM IR: it keeps a planted fault of the vectorizer, and little else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from vectorizer.vector_kernels import engine_is_here, kernel

from fuzz.reduce_llvm import Question, reduced
from fuzz.reducing.edits import entry
from fuzz.reducing.run_forms import Launch, in_vectors, one_at_a_time
from metalnb.engine.cpu.lanes.vector_build import thread_text
from metalnb.engine.vectorizer import vectorize
from metalnb.engine.vectorizer.vector_code.memory_access import vector_memory
from metalnb.engine.vectorizer.vector_code.memory_access.masked_memory import EVERY_LANE

__all__ = ["engine_is_here"]

# A loop with two exits, a switch, threadgroup memory and a SIMD function, and a store under a mask.
LONG = """
    threadgroup float shared[64];
    float a = x[i], b = x[i ^ 1], sum = 0;
    for (uint k = 0; k < t % 5 + 1; ++k) {
        if (a > b) { sum += a * x[(i + k) & 63]; continue; }
        switch (uint(b) & 3) {
            case 0: sum += 1; break;
            case 1: sum -= x[k]; break;
            default: b = b * 0.5f + sum;
        }
        if (sum > 1000) break;
    }
    shared[t] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float best = simd_max(shared[63 - t] + a);
    for (uint k = 0; k < 3; ++k) best += shared[(t + k * l) & 63] * float(k + l);
    if (uint(a) & 1) o[i] = best + sum;
"""
SIMD = """
    const int n = int(x[i]); const half h = half(x[i]);
    float sum = simd_sum(x[i]) + simd_product(x[i] > 3 ? 2.0f : 1.0f);
    if (n % 3) {
        sum += float(simd_min(n) + simd_max(ushort(n)) + simd_xor(n)) + float(simd_max(h));
        sum += float(simd_shuffle_down(h, ushort(2))) + float(simd_prefix_exclusive_sum(n));
        if (n & 1) { o[i] = sum + float(popcount(uint(ulong(simd_ballot(n > 4))))); return; }
        sum += float(simd_broadcast_first(n)) + float(simd_sum(char(n)));
    }
    o[i] = sum + float(simd_shuffle_xor(n, ushort(3))) + float(quad_sum(n)) + float(simd_and(n | 8));
"""
MATRICES = """
    simdgroup_float8x8 a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.5f);
    simdgroup_load(a, x); simdgroup_load(b, x, 8, ulong2(0), true);
    simdgroup_multiply_accumulate(c, a, b, c);
    if (t < 32) simdgroup_store(c, o);
"""
ARRAYS = [np.arange(64, dtype=np.float32) * 3 % 17, np.zeros(64, np.float32)]


def text_of(body: str) -> str:
    return thread_text(kernel(body, math="precise").unit)


def size(text: str) -> int:
    return sum(1 for _ in entry(text))


@pytest.fixture
def mask_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a fault: consecutive elements are stored by every lane, active or not."""
    right = vector_memory.write_stretch_store

    def wrong(body: Any, *given: Any) -> None:
        kept, body.masks = body.masks, body.masks | {body.current_block: EVERY_LANE}
        right(body, *given)
        body.masks = kept

    monkeypatch.setattr(vector_memory, "write_stretch_store", wrong)


@pytest.fixture
def ask() -> Iterator[Callable[..., Question]]:
    asked: list[Question] = []

    def question(*given: Any) -> Question:
        asked.append(Question(Launch(ARRAYS, 64, 64), *given))
        return asked[-1]

    yield question
    for each in asked:
        each.judge.close()


@pytest.mark.parametrize("body", [LONG, SIMD, MATRICES], ids=["long", "SIMD", "matrices"])
def test_both_forms_write_the_same(body: str) -> None:
    text, launch = text_of(body), Launch(ARRAYS, 64, 64)
    memory = one_at_a_time(text, launch)
    assert memory is not None
    assert memory == one_at_a_time(text, launch, in_step_and_reversed=True) == in_vectors(text, launch)
    assert any(memory[-launch.arguments[1].nbytes - (1 << 16) : -(1 << 16)])


def test_results_that_depend_on_thread_order_are_no_fault(ask: Callable[..., Question]) -> None:
    text, launch = text_of("o[i & 1] += x[i];"), Launch(ARRAYS, 64, 64)
    assert one_at_a_time(text, launch) != in_vectors(text, launch)
    assert not ask("differs")(text)


def test_endless_loop_is_refused(ask: Callable[..., Question]) -> None:
    assert not ask("differs")(text_of("while (x[t] >= 0) o[i] = x[(i + 1) & 63];"))


@pytest.mark.long  # Takes a hundred compilations; the reduction below takes fewer.
@pytest.mark.usefixtures("mask_dropped")
def test_a_dropped_mask_remains_and_little_else(ask: Callable[..., Question]) -> None:
    text, differs = text_of(LONG), ask("differs")
    assert size(text) > 90
    assert differs(text)
    smallest = [*reduced(text, differs)][-1]
    assert differs(smallest)
    assert size(smallest) <= 15
    assert {"store", "br", "call"} <= {made.opcode for made in entry(smallest)}


def test_the_reducer_keeps_the_code_that_makes_the_vectorizer_raise(
    ask: Callable[..., Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: Any) -> None:
        raise KeyError

    monkeypatch.setattr(vectorize, "write_atomic", wrong)
    text = text_of("for (uint k = 0; k < t; ++k) if (x[k] > 2) "
                   "atomic_fetch_add_explicit((device atomic_uint*)o, k, memory_order_relaxed);")  # fmt: skip
    smallest = [*reduced(text, ask("raises"))][-1]
    assert [made.opcode for made in entry(smallest)] == ["atomicrmw", "ret"]
