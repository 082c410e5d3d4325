"""Attention as planned for GPUs, run on CPU engines: by matrices, by tiles, and by parts of the keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import laid

import metalnb as mnb
from metalnb.engine import named
from metalnb.library_kernels.launching import attention_launch
from metalnb.library_kernels.planning.attention_plan import AttentionShape, plan_attention
from metalnb.library_kernels.planning.device import device_of

MANY = 132  # processors of an H100
CORES = ("half", "bfloat")
ULP = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
REFERENCE = mnb.scaled_dot_product_attention.row.reference


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects the kernels of each plan made."""
    seen: list[str] = []

    def plan(*given: Any) -> Any:
        steps = plan_attention(*given)
        seen.extend(step.template.partition("<")[0] for step in steps)
        return steps

    attention_launch._launches.cache_clear()
    monkeypatch.setattr(attention_launch, "plan_attention", plan)
    return seen


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    return rng.standard_normal(shape).astype(np.float32).astype(dtype)


def check(given: tuple[Any, ...], mask: Any = None, layout: str = "plain", **options: Any) -> None:
    """Compare a result with the reference.

    Each weight is rounded to the dtype, by half an ulp, and so is the mean of the values, by half an ulp of the
    largest. Sums are in float32; their 16 ulp, from the op's row, are negligible for narrower dtypes. Above 64 products
    per score they grow with the square root of that number.
    """
    more = () if mask is None else (laid(mask),)
    got = mnb.scaled_dot_product_attention(*(laid(a, layout) for a in given), *more, **options).read()
    wide = [a.astype(np.float64) for a in given]
    expected = REFERENCE(*wide, mask, **options)
    size = np.abs(wide[2]).max(initial=1.0)
    name = given[0].dtype.name
    sums = 16 * max(1.0, given[0].shape[-1] / 64) ** 0.5
    bound = (1 if name != "float32" else sums) * ULP[name] * size
    assert got.shape == expected.shape
    assert np.array_equal(np.isnan(got.astype(np.float64)), np.isnan(expected))
    error = np.nanmax(np.abs(got.astype(np.float64) - expected), initial=0)
    assert error <= bound, error / bound


# Heads, queries, keys, length of a query and of a value: near the sizes of a tile and a matrix, mostly no multiples.
SHAPES = [(2, 130, 200, 64, 64), (1, 9, 65, 64, 64), (1, 17, 64, 16, 8), (2, 70, 70, 37, 1)]
WIDER = [(1, 65, 97, 128, 128), (1, 33, 66, 251, 256), (1, 20, 64, 256, 100)]

# Heads, shared heads, queries, keys, length of a query and of a value.
FEW = [(3, 3, 1, 1000, 64, 64), (8, 2, 1, 777, 128, 128), (2, 2, 5, 256, 37, 20), (6, 2, 2, 2049, 16, 200),
       (1, 1, 1, 5000, 256, 1)]  # fmt: skip


# The form with matrices runs in the next test, and in gpu/test_tensor_cores.py.
@pytest.mark.long(unless=lambda form, dtype: (form, dtype) == ("attend_tiles", "float16"))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("form", ["attend_matrices", "attend_tiles"])
def test_attention_of_each_shape_matches_the_reference(
    gpu: Any, planned: list[str], form: str, dtype: str, rng: np.random.Generator
) -> None:
    """A query attends to all keys, or to those up to its own position."""
    gpu(MANY, (*CORES, "float") if form == "attend_matrices" else ())
    wider = dtype == ("float16" if form == "attend_matrices" else "float32")
    for heads, queries, keys, own, wide in (*SHAPES, *(WIDER if wider else ())):
        arguments = tuple(numbers(rng, (heads, *s), dtype) for s in ((queries, own), (keys, own), (keys, wide)))
        check(arguments)
        check(arguments, is_causal=True, scale=-0.3)
        check(arguments, is_causal=True, scale=0.0)
    assert set(planned) == {form}


@pytest.mark.long(unless=lambda dtype: dtype == "float16")  # Masks and layouts are read alike; float16 uses matrices
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_attention_with_masks_heads_and_layouts_matches_the_reference(
    gpu: Any, planned: list[str], dtype: str, rng: np.random.Generator
) -> None:
    gpu(MANY, CORES)
    q, k, v = (numbers(rng, s, dtype) for s in ((2, 4, 37, 24), (2, 2, 97, 24), (2, 2, 97, 24)))
    seen = rng.random((37, 97)) < 0.5
    seen[3] = False  # a query that attends to no key
    added = rng.standard_normal((2, 4, 37, 97)).astype(np.float32)
    added[0, 1, 5], added[1, 0, :, :70] = -np.inf, -np.inf
    for mask, is_causal in ((seen, False), (added, True), (added[:1], False)):
        check((q, k, v), mask, enable_gqa=True, is_causal=is_causal)
    for layout in ("transposed", "reversed", "stepped"):
        check((q[1, 1:3], k[1], v[1]), None, layout)
    assert set(planned) == {"attend_matrices" if dtype == "float16" else "attend_tiles"}


@pytest.mark.long(unless=lambda dtype: dtype == "bfloat16")  # All dtypes use the same parts
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_few_queries_over_many_keys_match_the_reference(
    gpu: Any, planned: list[str], dtype: str, rng: np.random.Generator
) -> None:
    """The keys are split into parts; some parts may be masked for every query."""
    gpu(MANY, CORES)
    for heads, shared, queries, keys, own, wide in FEW[: {"float32": 5, "float16": 2, "bfloat16": 1}[dtype]]:
        one, more = (heads, queries, own), ((shared, keys, own), (shared, keys, wide))
        arguments = tuple(numbers(rng, shape, dtype) for shape in (one, *more))
        check(arguments, enable_gqa=True)
        check(arguments, enable_gqa=True, is_causal=True)
        mask = rng.random((heads, queries, keys)) < 0.5
        mask[..., 100:300] = False
        mask[0, 0] = False
        check(arguments, mask, enable_gqa=True)
    assert set(planned) == {"attend_part", "attend_together"}


def test_a_cpu_decodes_by_parts_where_lanes_are_vectors(planned: list[str], rng: np.random.Generator) -> None:
    mnb.use("cpu")
    try:
        for heads, shared, queries, keys, own, wide in FEW:
            one, more = (heads, queries, own), ((shared, keys, own), (shared, keys, wide))
            arguments = tuple(numbers(rng, shape, "float32") for shape in (one, *more))
            check(arguments, enable_gqa=True, is_causal=True)
            check(arguments, rng.random((heads, queries, keys)) < 0.5, enable_gqa=True)
    finally:
        mnb.use(None)
    assert set(planned) == {"attend_part", "attend_together"}


def test_nan_stays_with_its_query(gpu: Any) -> None:
    gpu(MANY, CORES)
    for dtype, keys, queries in (("float16", 80, 40), ("float32", 80, 40), ("float32", 300, 2)):
        q, k, v = np.zeros((queries, 16), dtype), np.ones((keys, 16), dtype), np.ones((keys, 8), dtype)
        q[1, 2], v[0, 5] = np.nan, np.inf  # padding after the last values must not repeat the first value
        got = mnb.scaled_dot_product_attention(*map(laid, (q, k, v))).read()
        assert np.isnan(got[1]).all()
        assert (np.delete(got, 1, 0)[:, 5] == np.inf).all()
        assert (np.delete(np.delete(got, 1, 0), 5, 1) == 1).all()


def test_scores_that_exp_would_overflow_give_the_reference(gpu: Any, rng: np.random.Generator) -> None:
    """The largest scores come last."""
    gpu(MANY, CORES)
    for dtype in ("float16", "float32"):
        q, k = np.full((20, 16), 100, dtype), np.linspace(-9, 9, 200, dtype=np.float32)[:, None].astype(dtype)
        check((q, np.repeat(k, 16, 1), numbers(rng, (200, 8), dtype)))


def test_plan_selects_the_kernel_for_a_device(gpu: Any) -> None:
    device = device_of(named(gpu(MANY, CORES)).caps)

    def kernels(queries: int, keys: int, own: int, kind: str, share: int = 1) -> list[str]:
        shape = AttentionShape(
            8, share, queries, keys, own, own, kind, masked=False, causal=False, mask_pitch=0, starts=(0, 0, 0, 0),
            scale=1, rows_aligned=True,
        )  # fmt: skip
        return [step.template for step in plan_attention(shape, device)]

    assert kernels(1024, 1024, 64, "half") == ["attend_matrices<half, 64, 64, 64, 4, false, true>"]
    assert kernels(1024, 1024, 128, "bfloat16") == ["attend_matrices<bfloat, 128, 128, 32, 2, false, true>"]
    assert kernels(1024, 1024, 80, "float") == ["attend_tiles<float, 128, false, true>"]
    assert kernels(9, 30, 80, "half") == ["attend_tiles<half, 128, false, true>"]
    assert kernels(1, 4096, 128, "half", 4) == ["attend_part<half, 16, 8, 4, false, true>", "attend_together<half>"]
    assert kernels(64, 64, 257, "half") == []
