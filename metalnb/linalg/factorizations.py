"""Factorizations, and the solvers and condition numbers based on them, computed by LAPACK on the host."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from ..arrays.array import Array
from ..arrays.convert import asarray, check_engine
from ..arrays.promotion import floating_dtype, promote
from ..library_kernels.launching.copying import as_array

__all__ = [
    "EighResult", "LUResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "det", "eigh",
    "eigvalsh", "inv", "lstsq", "lu", "matrix_rank", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
]  # fmt: skip

Host = np.ndarray[Any, Any]


class EighResult(NamedTuple):
    """Eigenvalues in increasing order, and the eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangle; their product is the matrix."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values in decreasing order, right singular vectors as rows."""

    U: Array
    S: Array
    Vh: Array


class LUResult(NamedTuple):
    """A permutation, a lower triangle with a unit diagonal, an upper triangle; their product is the matrix."""

    P: Array
    L: Array
    U: Array


def _matrix(caller: str, x: Any, *, square: bool = False) -> tuple[Host, Array]:
    """Return a matrix, or a stack of matrices, as float32 on the host, together with the original array."""
    x = as_array(caller, x)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        rule = "square matrices (…, M, M)" if square else "matrices (…, M, N)"
        raise ValueError(f"linalg.{caller}: needs {rule}; got shape {x.shape}.")
    return x.read().astype(np.float32, copy=False), x


def _to_engine(result: Any, x: Array, dtype: Any = None) -> Array:
    """Return LAPACK's result on the engine and in the dtype of its argument."""
    target_dtype = floating_dtype(x.dtype) if dtype is None else dtype
    host = np.ascontiguousarray(result).reshape(np.shape(result))
    return asarray(host.astype(target_dtype, copy=False), device=x.device)


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Return the lower triangle L of positive definite matrices, L Lᵀ = x; with `upper`, its transpose.

    Parameters
    ----------
    x : Array (…, M, M)
        Symmetric matrices; only the lower triangle is read.
    upper : bool

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.
    """
    host, x = _matrix("cholesky", x, square=True)
    lower = np.linalg.cholesky(host)
    return _to_engine(np.swapaxes(lower, -1, -2) if upper else lower, x)


def det(x: Array, /) -> Array:
    """Return the determinants of square matrices (…, M, M)."""
    host, x = _matrix("det", x, square=True)
    return _to_engine(np.linalg.det(host), x)


def slogdet(x: Array, /) -> SlogdetResult:
    """Return the signs of determinants of square matrices (…, M, M), and the logarithms of their absolute values."""
    host, x = _matrix("slogdet", x, square=True)
    return SlogdetResult(*(_to_engine(part, x) for part in np.linalg.slogdet(host)))


def eigh(x: Array, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of symmetric matrices (…, M, M), reading only the lower triangle.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the computation does not converge.
    """
    host, x = _matrix("eigh", x, square=True)
    return EighResult(*(_to_engine(part, x) for part in np.linalg.eigh(host)))


def eigvalsh(x: Array, /) -> Array:
    """Return the eigenvalues of symmetric matrices in increasing order; see `eigh`."""
    host, x = _matrix("eigvalsh", x, square=True)
    return _to_engine(np.linalg.eigvalsh(host), x)


def inv(x: Array, /) -> Array:
    """Return the inverses of square matrices (…, M, M).

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix has no inverse.
    """
    host, x = _matrix("inv", x, square=True)
    return _to_engine(np.linalg.inv(host), x)


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Return the pseudoinverses of matrices (…, M, N); singular values up to rtol times the largest count as 0."""
    host, x = _matrix("pinv", x)
    tolerance = max(host.shape[-2:]) * np.finfo(np.float32).eps if rtol is None else _host(rtol)
    return _to_engine(np.linalg.pinv(host, rcond=tolerance), x)


def _host(x: Any) -> Any:
    return x.read() if isinstance(x, Array) else x


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Return how many singular values of matrices (…, M, N) are larger than rtol times the largest: int64."""
    host, x = _matrix("matrix_rank", x)
    values = np.linalg.svd(host, compute_uv=False)
    tolerance = max(host.shape[-2:]) * np.finfo(np.float32).eps if rtol is None else np.asarray(_host(rtol))[..., None]
    largest = np.max(values, axis=-1, keepdims=True, initial=0)
    return _to_engine(np.count_nonzero(values > largest * tolerance, axis=-1), x, np.int64)


def cond(x: Array, p: float | Literal["fro", "nuc"] | None = None, /) -> Array:
    """Return the condition numbers of matrices (…, M, N), as NumPy defines them.

    Parameters
    ----------
    x : Array
        Must be square unless `p` is None, 2 or -2.
    p : {None, "fro", "nuc", 1, -1, 2, -2, inf, -inf}
        None or 2: the largest singular value, divided by the smallest; -2: the smallest, divided by the largest.
        Otherwise the norm of the matrix (`matrix_norm`) times that of its inverse.

    Returns
    -------
    Array
        Infinity for a matrix that is still singular after rounding. For `p` = -2, the result for a singular matrix is
        0, or infinity if all elements are 0.

    Raises
    ------
    ValueError
        For another `p`.
    numpy.linalg.LinAlgError
        For matrices without elements.
    """
    if p not in {None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf}:
        raise ValueError(f"linalg.cond: p is None, 'fro', 'nuc', ±1, ±2 or ±inf; got {p!r}.")
    host, x = _matrix("cond", x, square=p not in {None, 2, -2})
    with np.errstate(all="ignore"):
        numbers = np.linalg.cond(host, "fro" if p == "nuc" else p)
        if p == "nuc":  # NumPy raises if any matrix of a stack has no inverse
            values = np.linalg.svd(host.astype(np.float64), compute_uv=False)
            numbers = np.where(np.isinf(numbers), numbers, values.sum(-1) * (1 / values).sum(-1))
        return _to_engine(numbers, x)


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Return orthonormal columns and an upper triangle whose product is the matrix (…, M, N).

    Parameters
    ----------
    x : Array
    mode : {"reduced", "complete"}
        min(M, N) columns, or M.
    """
    if mode not in {"reduced", "complete"}:
        raise ValueError(f"linalg.qr: mode is 'reduced' or 'complete'; got {mode!r}.")
    host, x = _matrix("qr", x)
    return QRResult(*(_to_engine(part, x) for part in np.linalg.qr(host, mode)))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decomposition of matrices (…, M, N): x = U S Vh.

    Parameters
    ----------
    x : Array
    full_matrices : bool
        False: min(M, N) columns of U and rows of Vh.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the computation does not converge.
    """
    host, x = _matrix("svd", x)
    return SVDResult(*(_to_engine(part, x) for part in np.linalg.svd(host, full_matrices)))


def svdvals(x: Array, /) -> Array:
    """Return the singular values of matrices (…, M, N) in decreasing order."""
    host, x = _matrix("svdvals", x)
    return _to_engine(np.linalg.svd(host, compute_uv=False), x)


def solve(x1: Array, x2: Array, /) -> Array:
    """Return the solution X of x1 X = x2.

    Parameters
    ----------
    x1 : Array (…, M, M)
    x2 : Array (M,) or (…, M, K)

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix has no inverse.
    """
    host, a = _matrix("solve", x1, square=True)
    b = as_array("solve", x2)
    check_engine(a.engine, "linalg.solve", b)
    if not b.ndim or b.shape[-1 if b.ndim == 1 else -2] != a.shape[-1]:
        raise ValueError(f"linalg.solve: x2 must be ({a.shape[-1]},) or (…, {a.shape[-1]}, K); got {b.shape}.")
    right_side = b.read().astype(np.float32, copy=False)
    solution = np.linalg.solve(host, right_side[:, None])[..., 0] if b.ndim == 1 else np.linalg.solve(host, right_side)
    return _to_engine(solution, a, promote(floating_dtype(a.dtype), floating_dtype(b.dtype), "linalg.solve"))


def lstsq(x1: Array, x2: Array, /, *, rcond: float | None = None) -> tuple[Array, Array, int, Array]:
    """Return the X that minimizes |x1 X - x2|, the squared residuals, and x1's rank and singular values.

    Parameters
    ----------
    x1 : Array (M, N)
    x2 : Array (M,) or (M, K)
    rcond : float, optional
        Singular values up to this fraction of the largest count as 0.
    """
    host, a = _matrix("lstsq", x1)
    b = as_array("lstsq", x2)
    check_engine(a.engine, "linalg.lstsq", b)
    solution, residuals, rank, values = np.linalg.lstsq(host, b.read().astype(np.float32, copy=False), rcond)
    return _to_engine(solution, a), _to_engine(residuals, a), int(rank), _to_engine(values, a)


def lu(x: Array, /) -> LUResult:
    """Return a permutation, a lower and an upper triangle whose product is the matrix (…, M, N); by SciPy.

    Raises
    ------
    ImportError
        Without SciPy.
    """
    try:
        from scipy.linalg import lu as factorized
    except ImportError as error:
        raise ImportError("linalg.lu needs SciPy: pip install 'metalnb[linalg]'") from error
    host, x = _matrix("lu", x)
    return LUResult(*(_to_engine(part, x) for part in factorized(host)))
