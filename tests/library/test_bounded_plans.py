"""Plans, forms, free memory and dispatches in flight: beyond each bound results stay right, and the bound holds."""

import collections
import functools
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.arrays import core, memory_pool, stream
from metalnb.library_kernels.elementwise import elementwise_op
from metalnb.library_kernels.fusion import fused_kernel
from metalnb.library_kernels.launching import (
    arg_reduction_launch,
    copying,
    product_launch,
    reduction_launch,
    scan_launch,
)  # fmt: skip
from metalnb.library_kernels.neural import quantized_products
from metalnb.library_kernels.op_table import op
from metalnb.library_kernels.planning.elementwise_plan import Strip, plan_elementwise, plan_row_reduction
from metalnb.library_kernels.planning.long_row_splits import Split
from metalnb.library_kernels.planning.reduction_plan import packed_reduction

SMALL = 8  # the bound of the tests whose own is a thousand or more


def test_plans_of_an_op_are_bounded_and_results_stay_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise_op, "_PLANS", SMALL)
    add = op("add")
    monkeypatch.setattr(add, "_plans", {})
    for n in [*range(1, 5 * SMALL), 1, 2, 3]:
        x = mnb.arange(n, dtype="int32")
        assert mnb.add(x, x).tolist() == [2 * k for k in range(n)]
        assert 0 < len(add._plans) <= SMALL


def test_plans_of_a_fused_function_are_bounded_and_results_stay_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_kernel, "_PLANS", SMALL)
    kernels: list[Any] = []
    call = fused_kernel.FusedKernel.__call__

    def recorded(kernel: Any, arguments: dict[str, Any]) -> Any:
        kernels.append(kernel)
        return call(kernel, arguments)

    monkeypatch.setattr(fused_kernel.FusedKernel, "__call__", recorded)
    function = mnb.fuse(lambda a, b: (a + b) * 3 - a)
    for n in [*range(1, 5 * SMALL), 1, 2, 3]:
        x = mnb.arange(n, dtype="int32")
        assert function(x, x).tolist() == [5 * k for k in range(n)]
        assert 0 < len(kernels[-1]._plans) <= SMALL


def test_plans_of_quantized_products_are_bounded_and_results_stay_right(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(quantized_products, "_LAUNCHES", SMALL)
    monkeypatch.setattr(quantized_products, "_KNOWN", {})
    for rows in [*range(1, 2 * SMALL), 1, 2, 3]:
        weights = mnb.asarray(rng.standard_normal((rows, 64)).astype(np.float32))
        x = mnb.asarray(rng.standard_normal((1, 64)).astype(np.float32))
        words, scales, minima = mnb.quantize(weights)
        exact = x.read().astype(np.float64) @ mnb.dequantize(words, scales, minima).read().astype(np.float64).T
        np.testing.assert_allclose(mnb.quantized_matmul(x, words, scales, minima).read(), exact, rtol=1e-4, atol=1e-4)
        assert 0 < len(quantized_products._KNOWN) <= SMALL


def test_arrays_whose_form_was_evicted_still_compute(rng: np.random.Generator) -> None:
    """An equal array has another form then, and is planned again."""
    host = rng.integers(-9, 9, (7, 11)).astype(np.int32)
    old = mnb.asarray(host)
    assert np.array_equal((old + old).read(), 2 * host)
    bound = core._form.cache_info().maxsize
    assert bound is not None
    for n in range(bound + 1):
        core.form_of(np.dtype(np.int32), (n,), (4,), 0, old.engine)
    assert core._form.cache_info().currsize == bound
    equal = mnb.asarray(host)
    assert equal.form is not old.form
    for left, right in ((old, old), (old, equal), (equal, equal)):
        assert np.array_equal((left + right).read(), 2 * host)


CACHED_LAUNCHES = (
    (reduction_launch, "_stages"), (arg_reduction_launch, "_steps"), (scan_launch, "_steps"), (copying, "_launch"),
    (product_launch, "_cached_plan"),
)  # fmt: skip


def test_ops_stay_right_while_their_cached_launches_are_evicted(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    caches = []
    for module, name in CACHED_LAUNCHES:
        cached = functools.lru_cache(2)(getattr(module, name).__wrapped__)
        monkeypatch.setattr(module, name, cached)
        caches.append(cached)
    for n in (5, 40, 300, 1000, 5, 40, 300, 1000):
        host = rng.integers(-9, 9, (3, n)).astype(np.int32)
        x = mnb.asarray(host)
        assert np.array_equal(mnb.sum(x, axis=1).read(), host.sum(1))
        assert np.array_equal(mnb.argmax(x, axis=1).read(), host.argmax(1))
        assert np.array_equal(mnb.cumulative_sum(x, axis=1).read(), host.cumsum(1))
        assert np.array_equal(x[:, ::-1].copy().read(), host[:, ::-1])
        assert np.array_equal(mnb.matmul(x, x.T).read(), host @ host.T)
    for (module, name), cached in zip(CACHED_LAUNCHES, caches, strict=True):
        assert cached.cache_info().misses > 2 >= cached.cache_info().currsize, f"{module.__name__}.{name}"


@pytest.mark.usefixtures("shared_memory")
def test_free_memory_is_bounded_and_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mnb.clear_cache()
    bound, size = 1 << 20, 1 << 16
    monkeypatch.setattr(memory_pool, "_MAX_FREE_BYTES", bound)
    for _ in range(3):
        arrays = [mnb.full(size // 4, number, dtype="int32") for number in range(64)]
        assert [set(array.read().tolist()) for array in arrays] == [{number} for number in range(64)]
        del arrays
        assert bound - size < mnb.memory_info().cached <= bound
    mnb.clear_cache()
    assert mnb.memory_info().cached == 0


def test_dispatches_in_flight_are_bounded_and_waited_for_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[int] = []

    class Ticket:
        done = counted = False

        def __init__(self, number: int) -> None:
            self.number = number

        def wait(self) -> None:
            waited.append(self.number)

    monkeypatch.setattr(stream, "_in_flight", collections.defaultdict(collections.deque))
    numbers = itertools.count()
    engine: Any = SimpleNamespace(name="queued", launch=lambda *_: Ticket(next(numbers)))
    count, bound = 200, stream._MAX_IN_FLIGHT
    for started in range(1, count + 1):
        stream.start(engine, None, (), (1, 1, 1), (1, 1, 1), ())
        assert len(stream._in_flight["queued"]) == min(started, bound)
    assert waited == [*range(count - bound)]


@pytest.mark.parametrize("call", [
    lambda: plan_elementwise((2**16, 2**16), [Strip((2**16, 1), 0)] * 2),
    lambda: plan_elementwise((2**32, 3), [Strip((1, 0), 0), Strip((3, 1), 0)]),
    lambda: plan_row_reduction((3, 2**32), [Strip((2**32, 1), 0)], (1,)),
    lambda: packed_reduction(0, 2**32, 1, 2**32, Split(2**31, 2**31, 2), 1),
])  # fmt: skip
def test_axes_of_two_to_the_32_elements_are_refused(call: Any) -> None:
    """In plans, which need no memory."""
    with pytest.raises(ValueError, match=r"in 32 bits; got 2\^32 or more. Compute the array in parts"):
        call()
