"""Neural networks' functions: what their samples do not show, and PyTorch's results where it is installed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import metalnb as mnb


def test_dropout_drops_and_scales() -> None:
    x = mnb.ones((200, 500))
    mnb.random.seed(1)
    one = mnb.dropout(x, 0.25).numpy()
    assert set(np.unique(one)) == {0, np.float32(1 / 0.75)}
    assert abs(np.mean(one == 0) - 0.25) < 0.01
    assert not np.array_equal(one, mnb.dropout(x, 0.25).numpy())
    mnb.random.seed(1)
    assert np.array_equal(one, mnb.dropout(x, 0.25).numpy())
    own = [mnb.dropout(x, generator=mnb.random.default_rng(3)).numpy() for _ in range(2)]
    assert np.array_equal(*own)
    assert mnb.dropout(x, 1.0).tolist() == np.zeros((200, 500)).tolist()
    assert mnb.dropout(x, training=False) is x


def test_running_statistics_are_moved() -> None:
    host = np.arange(24, dtype=np.float32).reshape(4, 3, 2) ** 1.5
    mean, var = mnb.zeros(3), mnb.ones(3)
    mnb.batch_norm(mnb.asarray(host), mean, var, training=True, momentum=0.25)
    assert np.allclose(mean.read(), 0.25 * host.mean((0, 2)), rtol=1e-6)
    assert np.allclose(var.read(), 0.75 + 0.25 * host.var((0, 2), ddof=1), rtol=1e-6)


@pytest.mark.usefixtures("shared_memory")
def test_running_statistics_may_be_numpys() -> None:
    x = mnb.asarray(np.arange(24, dtype=np.float32).reshape(4, 3, 2) ** 1.5)
    expected = mnb.zeros(3), mnb.ones(3)
    mnb.batch_norm(x, *expected, training=True)
    mean, var = np.zeros(3, np.float32), np.ones(3, np.float32)
    mnb.batch_norm(x, mean, var, training=True)
    assert (mean.tolist(), var.tolist()) == tuple(e.tolist() for e in expected)


@pytest.mark.parametrize("unfit", [
    np.ones(6, np.float32)[::2], np.ones(3), mnb.broadcast_to(mnb.ones(1), (3,)), mnb.ones(3, dtype="int32"),
], ids=["strided", "float64", "broadcast", "integers"])  # fmt: skip
def test_running_statistics_are_both_moved_or_neither(unfit: Any) -> None:
    own, before = mnb.zeros(3), np.asarray(unfit).tolist()
    for pair in ((own, unfit), (unfit, own)):
        with pytest.raises((ValueError, TypeError)):
            mnb.batch_norm(mnb.asarray(np.eye(3, dtype=np.float32)), *pair, training=True)
    assert (own.tolist(), np.asarray(unfit).tolist()) == ([0, 0, 0], before)


def test_large_batches_are_convolved_in_parts(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    from metalnb.library_kernels.launching import convolution_launch
    from metalnb.library_kernels.neural import convolution

    x, w = (mnb.asarray(rng.standard_normal(s).astype(np.float32)) for s in ((5, 4, 9, 9), (6, 2, 3, 3)))
    whole = mnb.conv2d(x, w, groups=2, stride=2).numpy()
    convolution_launch._parts.cache_clear()
    monkeypatch.setattr(convolution_launch, "_MAX_BYTES", 3000)  # two images
    assert np.array_equal(mnb.conv2d(x, w, groups=2, stride=2).numpy(), whole)
    convolution_launch._parts.cache_clear()
    monkeypatch.setattr(convolution, "convolve", lambda *_: None)  # as for images that are too large, and on GPUs
    whole = mnb.conv2d(x, w, groups=2, stride=2).numpy()
    monkeypatch.setattr(convolution, "_MAX_BYTES", 4000)
    assert np.array_equal(mnb.conv2d(x, w, groups=2, stride=2).numpy(), whole)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 40, 33), (12, 3, 1, 1), {}),  # read in place
    ((1, 2, 40, 33), (21, 2, 3, 3), {}),
    ((2, 6, 20, 35), (6, 1, 3, 3), {"groups": 6}),
    ((2, 3, 20, 75), (6, 1, 3, 5), {"groups": 3, "padding": (1, 2), "stride": (1, 2)}),  # one channel per group
    ((2, 3, 41, 75), (3, 1, 4, 3), {"groups": 3, "padding": 3, "stride": 3, "dilation": (1, 2)}),
    ((1, 4, 18, 40), (4, 1, 5, 5), {"groups": 4, "padding": 2}),
    ((2, 1, 3, 4), (5, 1, 2, 2), {}),  # fewer positions than a panel
    ((2, 3, 31, 18), (8, 3, 5, 5), {"padding": 2}),  # padding shared by two rows
    ((1, 3, 9, 8), (9, 3, 3, 3), {"padding": (5, 7)}),  # more than a window
    ((1, 2, 30, 31), (13, 2, 7, 7), {"stride": 2, "padding": 3}),
    ((1, 2, 30, 31), (2, 2, 4, 3), {"stride": 3, "padding": 2}),
    ((1, 2, 30, 31), (3, 2, 3, 3), {"stride": (2, 4), "padding": (1, 6), "dilation": (4, 3)}),
    ((1, 2, 30, 31), (4, 2, 1, 2), {"stride": 5, "dilation": 10}),  # one phase out of five
    ((3, 8, 17), (20, 4, 5), {"groups": 2, "stride": 2, "padding": 2}),
    ((1, 1, 5000), (1, 1, 33), {"padding": "same", "dilation": 2}),
]


@pytest.mark.parametrize("by_matrices", [False, True], ids=["summed", "as matrices"])
@pytest.mark.parametrize(("shape", "window", "options"), CONVOLUTIONS)
def test_each_way_of_convolving(
    shape: tuple[int, ...], window: tuple[int, ...], options: dict[str, Any], by_matrices: bool,
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator,
) -> None:  # fmt: skip
    from metalnb.library_kernels.neural import convolution

    if by_matrices:
        monkeypatch.setattr(convolution, "convolve", lambda *_: None)
    op = mnb.conv2d if len(window) == 4 else mnb.conv1d
    x, w, bias = (rng.standard_normal(s).astype(np.float32) for s in (shape, window, window[:1]))
    expected = op.row.reference(*(a.astype(np.float64) for a in (x, w, bias)), **options)
    got = op(*map(mnb.asarray, (x, w, bias)), **options).numpy()
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() < 1e-5 * math.sqrt(math.prod(window[1:]))
    turned = mnb.asarray(np.ascontiguousarray(x.T)).transpose(*reversed(range(x.ndim)))
    assert np.array_equal(op(turned, *map(mnb.asarray, (w, bias)), **options).numpy(), got)


def test_elements_outside_every_window_do_not_count(rng: np.random.Generator) -> None:
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 10, 11), (9, 3, 3, 3)))
    x[1, 2, 4, 10] = np.inf
    for options in ({"padding": 1}, {"padding": 3}, {}, {"stride": 2, "padding": 1}):
        got = mnb.conv2d(mnb.asarray(x), mnb.asarray(w), **options).numpy()
        expected = mnb.conv2d.row.reference(x.astype(np.float64), w.astype(np.float64), **options)
        assert np.array_equal(np.isfinite(got), np.isfinite(expected)), options


def test_long_rows_of_attention(rng: np.random.Generator) -> None:
    """Scores that would overflow exp, with the largest ones late."""
    q, k = (np.full((1, 4), s, np.float32) for s in (40, 1))
    k = np.repeat(k, 300, 0) * np.linspace(-1, 1, 300, dtype=np.float32)[:, None]
    v = rng.standard_normal((300, 4)).astype(np.float32)
    got = mnb.scaled_dot_product_attention(*(mnb.asarray(a) for a in (q, k, v)))
    s = (q.astype(np.float64) @ k.T / 2).ravel()
    e = np.exp(s - s.max())
    assert np.allclose(got.read(), e @ v / e.sum(), atol=1e-5)
    values = mnb.asarray([[math.nan], [1.0], [1.0]])
    one = mnb.scaled_dot_product_attention(mnb.zeros((1, 4)), mnb.zeros((3, 4)), values)
    assert np.isnan(one.read()).all()


def case(name: str, *shapes: Any, **options: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    return name, shapes, options


# Calls that both libraries accept: shapes of normal numbers, or plain values.
CALLS = (
    case("conv2d", (2, 4, 9, 11), (6, 2, 3, 3), (6,), stride=2, padding=1, groups=2),
    case("conv1d", (2, 4, 20), (6, 4, 3), padding="same", dilation=2),
    case("max_pool2d", (2, 3, 13, 17), 3, stride=2, padding=1, ceil_mode=True),
    case("avg_pool2d", (2, 3, 13, 17), 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    case("avg_pool2d", (2, 3, 13, 17), 4, stride=3, padding=2, ceil_mode=True),
    case("adaptive_avg_pool2d", (2, 3, 12, 8), 4),
    case("group_norm", (2, 6, 5), 3, (6,), (6,)),
    case("glu", (3, 8)),
    case("linear", (3, 8), (5, 8), (5,)),
    case("celu", (50,), 0.7),
    case("hardtanh", (50,)),
    case("softshrink", (50,), 0.3),
    case("hardshrink", (50,), 0.3),
    case("smooth_l1_loss", (9, 5), (9, 5), beta=0.3),
    case("huber_loss", (9, 5), (9, 5), delta=0.3),
    case("binary_cross_entropy_with_logits", (9, 5), (9, 5)),
    case("scaled_dot_product_attention", (2, 6, 37, 16), (2, 6, 41, 16), (2, 6, 41, 24), is_causal=True),
    case("scaled_dot_product_attention", (2, 6, 37, 16), (2, 2, 41, 16), (2, 2, 41, 24), enable_gqa=True),
)


@pytest.mark.parametrize(("name", "given", "options"), CALLS, ids=[c[0] for c in CALLS])
def test_pytorch_gives_the_same(name: str, given: Any, options: Any, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    args = [rng.standard_normal(a).astype(np.float32) if isinstance(a, tuple) else a for a in given]
    ours = getattr(mnb, name)(*(mnb.asarray(a) if isinstance(a, np.ndarray) else a for a in args), **options)
    own = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
    theirs = getattr(torch.nn.functional, name)(*own, **options).numpy()
    assert ours.shape == theirs.shape
    assert np.allclose(ours.read(), theirs, atol=2e-5, rtol=2e-5)


def test_cross_entropy_matches_pytorchs(rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    x, w = rng.standard_normal((20, 9)).astype(np.float32), rng.random(9).astype(np.float32)
    y = rng.integers(0, 9, 20)
    y[3] = -100
    for reduction in ("mean", "sum", "none"):
        options = {"reduction": reduction, "label_smoothing": 0.1}
        got = mnb.cross_entropy(mnb.asarray(x), mnb.asarray(y), mnb.asarray(w), **options).read()
        theirs = torch.nn.functional.cross_entropy(*(torch.from_numpy(a) for a in (x, y, w)), **options)
        assert np.allclose(got, theirs.numpy(), rtol=1e-5)


def ones(*shape: int) -> Any:
    return mnb.ones(shape)


def heads(*counts: int) -> list[Any]:
    return [ones(n, 2, 4) for n in counts]


REFUSED = (
    (lambda: mnb.conv2d(ones(1, 3, 5, 5), ones(2, 2, 3, 3)), "x's 3 channels in 1 group do not match weight"),
    (lambda: mnb.conv2d(ones(5, 5), ones(2, 2, 3, 3)), r"needs x \(N, C, …\)"),
    (lambda: mnb.conv2d(ones(1, 1, 2, 2), ones(1, 1, 3, 3)), r"a window of \(3, 3\) does not fit into \(2, 2\)"),
    (lambda: mnb.conv2d(ones(1, 1, 5, 5), ones(1, 1, 3, 3), ones(2)), r"bias must have shape \(1,\)"),
    (lambda: mnb.conv2d(ones(1, 1, 5, 5), ones(1, 1, 3, 3), stride=0), "stride must be 2 integers, 1 or more; got 0"),
    (lambda: mnb.conv2d(ones(1, 1, 5, 5), ones(1, 1, 3, 3), stride=2, padding="same"), "padding='same' needs stride=1"),
    (lambda: mnb.conv1d(ones(1, 1, 5), ones(1, 1, 3), padding=(1, 2)), "padding must be 1 integers"),
    (lambda: mnb.conv1d(ones(1, 1, 5), ones(1, 1, 3), padding="foo"), "padding must be 1 integers, .*; got 'foo'"),
    (lambda: mnb.max_pool2d(ones(1, 5, 5), 2.5), "must be 2 integers, 1 or more; got 2.5"),
    (lambda: mnb.rope(ones(2, 4), offset=1.5), "rope: offset must be an integer; got 1.5"),
    (lambda: mnb.max_pool2d(ones(5, 5), 2), r"x must be \(N, C, …\) or"),
    (lambda: mnb.max_pool2d(ones(1, 5, 5), 7), "does not fit"),
    (lambda: mnb.max_pool2d(ones(1, 5, 5), 3, padding=2), "padding must be at most half a window"),
    (lambda: mnb.adaptive_avg_pool2d(ones(1, 5, 5), 2), "does not divide evenly"),
    (lambda: mnb.batch_norm(ones(2, 3), None, None), "needs running_mean and running_var, or training=True"),
    (lambda: mnb.batch_norm(ones(1, 3), None, None, training=True), "more than one element per channel"),
    (lambda: mnb.batch_norm(ones(2, 3), ones(2), ones(3)), r"running_mean must have shape \(3,\)"),
    (lambda: mnb.group_norm(ones(2, 3), 2), "num_groups=2 does not divide x's 3 channels"),
    (lambda: mnb.one_hot(mnb.asarray([1, 5]), 3), "must be from 0 to 2; got 1 to 5"),
    (lambda: mnb.embedding(mnb.asarray([0]), ones(3)), "weight must have two axes"),
    (lambda: mnb.dropout(ones(3), 1.5), "p must be between 0 and 1; got 1.5"),
    (lambda: mnb.glu(ones(3)), "must have an even length; got 3"),
    (lambda: mnb.prelu(ones(2, 3), ones(2)), "weight must have 1 element or 3"),
    (lambda: mnb.mse_loss(ones(3), ones(2)), "must have one shape"),
    (lambda: mnb.mse_loss(ones(3), ones(3), reduction="avg"), "reduction must be 'mean', 'sum' or 'none'"),
    (lambda: mnb.cross_entropy(ones(3, 4), mnb.asarray([1, 2])), r"target must have shape \(3,\)"),
    (lambda: mnb.cross_entropy(ones(3, 4), ones(3)), r"probabilities must have x's shape \(3, 4\)"),
    (lambda: mnb.nll_loss(ones(2, 4), mnb.asarray([1, 2]), ones(3)), r"weight must have shape \(4,\)"),
    (lambda: mnb.scaled_dot_product_attention(ones(3, 4), ones(3, 5), ones(3, 5)), r"needs \(…, L, E\)"),
    (lambda: mnb.scaled_dot_product_attention(*heads(3, 2, 2), enable_gqa=True), "cannot share the heads"),
    (lambda: mnb.rope(ones(3, 5)), "with an even E"),
)


@pytest.mark.parametrize(("call", "why"), REFUSED, ids=[r[1][:40] for r in REFUSED])
def test_mismatched_arrays_are_refused(call: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        call()


def test_targets_and_indices_are_checked() -> None:
    with pytest.raises(IndexError):
        mnb.cross_entropy(ones(3, 4), mnb.asarray([1, 2, 4]))
    for loss in (mnb.cross_entropy, mnb.nll_loss):
        with pytest.raises(IndexError, match="targets must be classes from 0 to 3, or ignore_index=-100; got -1"):
            loss(ones(3, 4), mnb.asarray([1, -1, 2]))
        assert loss(ones(3, 4), mnb.asarray([1, -1, 2]), ignore_index=-1).shape == ()
    with pytest.raises(TypeError, match="targets must be class indices"):
        mnb.nll_loss(ones(3, 4), ones(3))
    with pytest.raises(TypeError, match="takes floats; got int64"):
        mnb.conv2d(mnb.asarray([[[[1]]]]), mnb.asarray([[[[1]]]]))


def _quantized(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    """Return weights of many sizes, with blocks that are constant, zero, or contain NaN or infinity."""
    w = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, (*shape[:-1], 1))
    w[0, :32], w[1, :32], w[2, 5], w[3, 40], w[4, 32:64] = 0, -1.25, np.nan, -np.inf, np.abs(w[4, 32:64]) + 100
    return w.astype(dtype)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_quantized_weights_are_the_nearest(dtype: str, bits: int, symmetric: bool, rng: np.random.Generator) -> None:
    w = _quantized(rng, (37, 96), dtype)
    parts = mnb.quantize(mnb.asarray(w), bits, symmetric=symmetric)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = mnb.quantize.row.reference(w, bits, symmetric=symmetric)
    finite = np.isfinite(w.reshape(37, 3, 32)).all(-1)
    assert len(parts) == len(expected) == 3 - symmetric
    assert np.array_equal(parts[1].read(), expected[1], equal_nan=True)
    for got, right in zip((parts[0], *parts[2:]), (expected[0], *expected[2:]), strict=True):
        assert np.array_equal(got.read().reshape(37, 3, -1)[finite], right.reshape(37, 3, -1)[finite])
    result = mnb.dequantize(*parts, dtype="float32").read().astype(np.float64).reshape(37, 3, 32)
    assert np.isnan(result[~finite]).all()
    whole = w.astype(np.float64).reshape(37, 3, 32)[finite]
    span = 2 * np.abs(whole).max(-1) / (2**bits - 2) if symmetric else np.ptp(whole, axis=-1) / (2**bits - 1)
    lost = 0.5 + 2**bits * float(np.finfo(dtype).eps)  # half a step, plus the roundings of the scale and of the result
    assert (np.abs(result[finite] - whole) <= lost * span[:, None] + np.abs(whole) * 2.0**-22 + 2.0**-18).all()


@pytest.mark.parametrize("processors", [1, 3])
def test_few_vectors_times_quantized_weights_match_on_a_gpu(
    gpu: Any, processors: int, rng: np.random.Generator
) -> None:
    """SIMD-groups that take one, two or four rows, a remaining row, and lanes without a part of K."""
    gpu(processors)
    for n, k, bits, m in ((13, 96, 4, 1), (27, 576, 4, 2), (61, 1056, 8, 1), (75, 32, 4, 4)):
        w, x = rng.standard_normal((n, k), np.float32), rng.standard_normal((m, k), np.float32)
        parts = mnb.quantize(mnb.asarray(w), bits)
        got = mnb.quantized_matmul(mnb.asarray(x), *parts).read()
        expected = mnb.quantized_matmul.row.reference(x.astype(np.float64), *(p.read() for p in parts))
        assert np.abs(got - expected).max() <= 1e-6 * np.abs(expected).max() * math.sqrt(k), (n, k, bits, m)


@pytest.mark.long(every=7)  # Each dtype, number of bits and form of weights remains
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_few_vectors_times_quantized_weights_match_by_matrices(
    gpu: Any, dtype: str, bits: int, symmetric: bool, rng: np.random.Generator
) -> None:
    """Tiles of 16 and of 32 rows and remaining ones, a step with units beyond the row, one to eight vectors."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    gpu(1, ("half", "bfloat"))
    for m, n, k in ((1, 5, 32), (2, 77, 96), (3, 17, 1056), (5, 33, 544), (8, 16, 288)):
        w = mnb.asarray(rng.standard_normal((n, k), np.float32).astype("float16"))
        x = mnb.asarray(rng.standard_normal((m, k), np.float32)).astype(dtype)
        parts = mnb.quantize(w, bits, symmetric=symmetric)
        got = mnb.quantized_matmul(x, *parts).astype("float32").read().astype(float)
        scales = [p.read().astype(float) for p in parts[1:]]
        arguments = [x.astype("float32").read().astype(float), parts[0].read(), *scales]
        expected, size = (f(*arguments) for f in (mnb.quantized_matmul.row.reference, mnb.quantized_matmul.row.size))
        eps = 2.0**-11 if dtype == "float16" else 2.0**-8
        assert (np.abs(got - expected) <= eps * np.abs(expected) + 2.0**-20 * size).all(), (m, n, k)


def test_nan_spreads_from_a_vector_and_from_a_scale_by_matrices(gpu: Any) -> None:
    """A vector's neighbor in a set, and rows beside one with a scale that is NaN, stay as they are."""
    gpu(1, ("half",))
    w = np.ones((20, 64), np.float16)
    w[3, 40] = np.nan
    parts = mnb.quantize(mnb.asarray(w))
    x = np.ones((3, 64), np.float16)
    x[1, 33] = np.nan
    got = mnb.quantized_matmul(mnb.asarray(x), *parts).read()
    assert np.isnan(got[1]).all()
    assert np.array_equal(np.isnan(got[[0, 2]]), np.arange(20)[None].repeat(2, 0) == 3)


def test_nan_spreads_from_a_vector_and_from_a_scale(rng: np.random.Generator) -> None:
    parts = mnb.quantize(mnb.asarray(_quantized(rng, (9, 64), "float32")))
    x = np.ones((2, 64), np.float32)
    x[1, 33] = np.nan
    got = mnb.quantized_matmul(mnb.asarray(x), *parts).read()
    assert np.isnan(got[0]).nonzero()[0].tolist() == [2, 3]
    assert np.isnan(got[1]).all()


def test_parts_that_do_not_fit_are_refused() -> None:
    w = mnb.ones((4, 64))
    words, scales, minima = mnb.quantize(w)
    for wrong, given, text in (
        (ValueError, lambda: mnb.quantize(mnb.ones((4, 33))), "multiple of 32"),
        (ValueError, lambda: mnb.quantize(w, 5), "4 or 8"),
        (TypeError, lambda: mnb.quantize(mnb.ones((4, 32), dtype="int32")), "int32"),
        (TypeError, lambda: mnb.dequantize(scales, scales), "uint32"),
        (TypeError, lambda: mnb.dequantize(words, words), "floats"),
        (TypeError, lambda: mnb.dequantize(words, scales, minima.astype("float16")), "minima must be float32"),
        (TypeError, lambda: mnb.dequantize(words, scales, dtype="int8"), "int8"),
        (ValueError, lambda: mnb.dequantize(words[:3], scales), "of one array"),
        (ValueError, lambda: mnb.dequantize(words[:, :4], scales), "4 or 8 times"),
        (ValueError, lambda: mnb.quantized_matmul(mnb.ones((2, 32)), words, scales), "64"),
        (TypeError, lambda: mnb.quantized_matmul(mnb.ones(64, dtype="int32"), words, scales), "int32"),
    ):  # fmt: skip
        with pytest.raises(wrong, match=text):
            given()
