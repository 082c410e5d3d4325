"""mnb.linalg compared with NumPy in float64: products of factors, stacks, dtypes, layouts, and refusals."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import metalnb as mnb

Host = np.ndarray[Any, Any]
SHAPES = ((1, 1), (5, 5), (3, 4, 4), (2, 0, 3, 3))
WIDE = (*SHAPES, (5, 3), (3, 5), (2, 6, 4))


@pytest.fixture
def made(rng: np.random.Generator) -> Any:
    """Return matrices that are far from singular."""

    def make(*shape: int, symmetric: bool = False) -> Host:
        x = rng.standard_normal(shape)
        x = x + 3 * np.eye(*shape[-2:])
        return (x @ np.swapaxes(x, -1, -2) if symmetric else x).astype(np.float32)

    return make


def near(got: Any, want: Any, scale: float = 1.0) -> None:
    assert isinstance(got, mnb.Array)
    assert got.dtype == mnb.float32
    assert got.shape == np.shape(want)
    size = max(float(np.max(np.abs(want), initial=1.0)), scale)
    assert np.allclose(got.read(), want, rtol=0, atol=size * 100 * 2**-23)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_inverse_determinant_and_solve_match_numpy(made: Any, shape: tuple[int, ...]) -> None:
    host = made(*shape)
    wide = host.astype(np.float64)
    for x in (mnb.asarray(host), mnb.asarray(np.ascontiguousarray(np.swapaxes(host, -1, -2))).mT):
        near(mnb.linalg.inv(x), np.linalg.inv(wide), 10)
        near(mnb.linalg.det(x), np.linalg.det(wide), 1000)
        sign, size = mnb.linalg.slogdet(x)
        near(sign * mnb.exp(size), np.linalg.det(wide), 1000)
        for right in (made(*shape[:-2], shape[-1], 2), made(1, shape[-1])[0]):
            answer = np.linalg.solve(wide, right[:, None])[..., 0] if right.ndim == 1 else np.linalg.solve(wide, right)
            near(mnb.linalg.solve(x, mnb.asarray(right)), answer, 10)
        for n in (0, 1, 2, 5, -1, -2):
            near(mnb.linalg.matrix_power(x, n), np.linalg.matrix_power(wide, n))
        assert mnb.linalg.matrix_rank(x).tolist() == np.linalg.matrix_rank(wide).tolist()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cholesky_and_eigenvalues_of_symmetric_matrices_match_numpy(made: Any, shape: tuple[int, ...]) -> None:
    host = made(*shape, symmetric=True)
    x, wide = mnb.asarray(host), host.astype(np.float64)
    lower = mnb.linalg.cholesky(x)
    near(lower, np.linalg.cholesky(wide))
    near(mnb.linalg.cholesky(x, upper=True), np.swapaxes(np.linalg.cholesky(wide), -1, -2))
    values, vectors = mnb.linalg.eigh(x)
    near(values, np.linalg.eigvalsh(wide))
    near(mnb.linalg.eigvalsh(x), np.linalg.eigvalsh(wide))
    near(mnb.matmul(vectors * values[..., None, :], vectors.mT), wide)


@pytest.mark.parametrize("shape", WIDE, ids=str)
def test_factorizations_of_any_matrix_multiply_to_it(made: Any, shape: tuple[int, ...]) -> None:
    host = made(*shape)
    x, wide = mnb.asarray(host), host.astype(np.float64)
    for mode in ("reduced", "complete"):
        q, r = mnb.linalg.qr(x, mode=mode)
        assert (q.shape, r.shape) == tuple(p.shape for p in np.linalg.qr(wide, mode))
        near(mnb.matmul(q, r), wide)
    for full in (True, False):
        u, s, vh = mnb.linalg.svd(x, full_matrices=full)
        assert (u.shape, vh.shape) == tuple(np.linalg.svd(wide, full)[i].shape for i in (0, 2))
        n = s.shape[-1]
        near(mnb.matmul(u[..., :n] * s[..., None, :], vh[..., :n, :]), wide)
    near(mnb.linalg.svdvals(x), np.linalg.svd(wide, compute_uv=False))
    near(mnb.linalg.pinv(x), np.linalg.pinv(wide), 10)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for keep in (False, True):
            near(mnb.linalg.matrix_norm(x, ord=order, keepdims=keep), np.linalg.norm(wide, order, (-2, -1), keep))


def test_norms_by_numpys_name(made: Any) -> None:
    host = made(3, 4, 5)
    x, wide = mnb.asarray(host), host.astype(np.float64)
    near(mnb.linalg.norm(x), np.linalg.norm(wide))
    near(mnb.linalg.norm(x, axis=1), np.linalg.norm(wide, axis=1))
    near(mnb.linalg.norm(x, 1, 1, True), np.linalg.norm(wide, 1, 1, True))
    near(mnb.linalg.norm(x, 1, (0, 2), True), np.linalg.norm(wide, 1, (0, 2), True))
    near(mnb.linalg.norm(x, "nuc", (2, 0)), np.linalg.norm(wide, "nuc", (2, 0)))


ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


@pytest.mark.parametrize("p", ORDERS)
def test_condition_numbers_match_numpy(made: Any, p: Any) -> None:
    for shape in ((4, 4), (3, 4, 4), (0, 2, 2), *(((2, 3, 5),) if p in {None, 2, -2} else ())):
        host = made(*shape)
        got, expected = mnb.linalg.cond(mnb.asarray(host), p), np.linalg.cond(host.astype(np.float64), p)
        assert (got.dtype, got.shape) == (mnb.float32, np.shape(expected))
        np.testing.assert_allclose(got.read(), expected, rtol=1e-4)


@pytest.mark.parametrize("p", ORDERS)
def test_condition_number_of_a_singular_matrix_is_infinite(p: Any) -> None:
    """NumPy returns infinity too, except for the nuclear norm, where it raises."""
    stack = np.asarray([[[0, 0], [0, 0]], [[1, 0], [0, 0]], [[3, 1], [1, 2]]], np.float32)
    got = mnb.linalg.cond(mnb.asarray(stack), p)
    if p == "nuc":
        expected = np.asarray([np.inf, np.inf, np.linalg.cond(stack[2], p)])
    else:
        expected = np.linalg.cond(stack, p)
        assert float(mnb.linalg.cond(mnb.asarray(stack[0]), p)) == np.linalg.cond(stack[0], p) == np.inf
    np.testing.assert_allclose(got.read(), expected, rtol=1e-6)


def test_condition_numbers_of_nan_and_of_other_dtypes() -> None:
    nan = np.asarray([[np.nan, 1], [1, 1]], np.float32)
    assert np.isnan(np.linalg.cond(nan, 1))
    assert np.isnan(float(mnb.linalg.cond(mnb.asarray(nan), 1)))
    for dtype in ("float16", "bfloat16"):
        result = mnb.linalg.cond(mnb.asarray([[4.0, 0.0], [0.0, 0.5]]).astype(dtype), 1)
        assert (str(result.dtype), float(result)) == (dtype, np.linalg.cond([[4.0, 0.0], [0.0, 0.5]], 1))


def test_cross_products_match_numpy(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((4, 3)).astype(np.float32), rng.standard_normal((2, 1, 3)).astype(np.float32)
    near(mnb.linalg.cross(mnb.asarray(a), mnb.asarray(b)), np.cross(a.astype(np.float64), b))
    turned = mnb.linalg.cross(mnb.asarray(a.T), mnb.asarray(b[0].T), axis=0)
    near(turned, np.cross(a.astype(np.float64), b[0]).T)
    grid = np.arange(9).reshape(3, 3)
    for one, other, axis in ((a[0], grid, 0), (grid, a[0], 0), (np.ones((3, 2, 4)), b[0].T, 0), (grid, b.mT, 1)):
        one, other = one.astype(np.float32), other.astype(np.float32)  # noqa: PLW2901
        for cross in (mnb.linalg.cross, np.linalg.cross):
            got = cross(mnb.asarray(one), mnb.asarray(other), axis=axis)
            assert isinstance(got, mnb.Array)
            near(got, np.cross(one.astype(np.float64), other.astype(np.float64), axis=axis))
    assert mnb.linalg.cross(mnb.asarray([1, 0, 0]), mnb.asarray([0, 1, 0])).tolist() == [0, 0, 1]


def test_least_squares_match_numpy(made: Any) -> None:
    a, b = made(6, 3), made(6, 2)
    for right in (b, b[:, 0]):
        x, left, rank, values = mnb.linalg.lstsq(mnb.asarray(a), mnb.asarray(right))
        expected = np.linalg.lstsq(a.astype(np.float64), right, None)
        near(x, expected[0], 10)
        near(left, expected[1], 10)
        assert rank == 3
        near(values, expected[3])


def test_lu_factors_multiply_to_the_matrix(made: Any) -> None:
    pytest.importorskip("scipy")
    for shape in ((4, 4), (5, 3), (2, 3, 3)):
        host = made(*shape)
        p, lower, upper = mnb.linalg.lu(mnb.asarray(host))
        near(mnb.matmul(mnb.matmul(p, lower), upper), host)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_other_dtypes_are_computed_in_float32(dtype: str) -> None:
    x = mnb.asarray([[4.0, 2.0], [2.0, 5.0]]).astype(dtype)
    result = mnb.linalg.cholesky(x)
    assert result.dtype == (mnb.float32 if dtype == "int32" else getattr(mnb, dtype))
    assert result.tolist() == [[2, 0], [1, 2]]
    assert mnb.linalg.solve(x, x).dtype == result.dtype


def test_the_standards_names_and_numpys_calls() -> None:
    strict = pytest.importorskip("array_api_strict").linalg
    for name in set(strict.__all__) - {"eig", "eigvals"}:  # whose results are complex
        ours, theirs = (inspect.signature(getattr(m, name)).parameters for m in (mnb.linalg, strict))
        by_name = {n for n, p in theirs.items() if p.kind is p.KEYWORD_ONLY}
        assert by_name <= ours.keys(), name
    assert "linalg" in dir(mnb)
    x = mnb.asarray([[2.0, 0.0], [0.0, 4.0]])
    assert np.linalg.inv(x).tolist() == [[0.5, 0], [0, 0.25]]
    assert float(np.linalg.det(x)) == 8
    assert np.linalg.solve(x, x).tolist() == [[1, 0], [0, 1]]
    assert float(np.linalg.norm(x, 1)) == 4
    assert np.linalg.svd(x)[1].tolist() == [4, 2]
    assert np.linalg.matrix_power(x, 2).tolist() == [[4, 0], [0, 16]]


@pytest.mark.parametrize(
    ("call", "error", "why"),
    [
        (mnb.linalg.inv, ValueError, r"linalg.inv: needs square matrices \(…, M, M\); got shape \(3, 4\)"),
        (lambda x: mnb.linalg.svd(x[0]), ValueError, r"linalg.svd: needs matrices"),
        (lambda x: mnb.linalg.inv(x[:, :3] * 0), np.linalg.LinAlgError, "Singular"),
        (lambda x: mnb.linalg.cholesky(-mnb.eye(2)), np.linalg.LinAlgError, "positive definite"),
        (lambda x: mnb.linalg.solve(mnb.eye(2), x), ValueError, r"x2 must be \(2,\)"),
        (lambda x: mnb.linalg.qr(x, mode="raw"), ValueError, "mode is 'reduced' or 'complete'"),
        (lambda x: mnb.linalg.matrix_norm(x, ord=3), ValueError, "ord is 'fro'"),
        (lambda x: mnb.linalg.cond(x, 3), ValueError, "linalg.cond: p is None, 'fro'"),
        (lambda x: mnb.linalg.cond(x, 1), ValueError, r"linalg.cond: needs square matrices .* got shape \(3, 4\)"),
        (lambda x: mnb.linalg.cond(x[:0], 2), np.linalg.LinAlgError, "empty"),
        (lambda x: mnb.linalg.norm(x, "fro", 0), ValueError, "order of a vector's norm .* got ord='fro'"),
        (lambda x: mnb.linalg.norm(mnb.ones((2, 2, 2)), 2), ValueError, "one or two axes; got 3"),
        (lambda x: mnb.linalg.cross(x, x), ValueError, "must have length 3"),
        (lambda x: mnb.linalg.matrix_power(x, 2), ValueError, "needs square matrices"),
    ],
)  # fmt: skip
def test_invalid_calls_are_refused(call: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        call(mnb.ones((3, 4)))
