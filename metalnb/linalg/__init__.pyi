# Written by tests/public_stub.py from the module's public names (`make docs`). Do not edit.
"""Linear algebra by the array API's extension: ``mnb.linalg.solve(a, b)``.

Input: matrices, or stacks of them, of any layout. Output: arrays on the same engine. Products and norms are ops of
the kernel library (``matrix_norms``). Factorizations use LAPACK on the host (``factorizations``). LAPACK reads the
array in place if the host can access the engine's memory, and otherwise reads a copy. It is NumPy's LAPACK, which
supports stacks and float32; only `lu` needs SciPy (``pip install 'metalnb[linalg]'``). float16 and bfloat16 are
computed in float32 and rounded once; integers are converted to float32.
"""

from builtins import bool as _bool
from metalnb import _ArrayLike
from metalnb import _Axis
from metalnb import _op
from metalnb import diagonal as diagonal
from metalnb import matmul as matmul
from metalnb import matrix_transpose as matrix_transpose
from metalnb import outer as outer
from metalnb import tensordot as tensordot
from metalnb import vecdot as vecdot
from metalnb import vector_norm as vector_norm
from metalnb.arrays.array import Array
from metalnb.linalg.factorizations import EighResult as EighResult
from metalnb.linalg.factorizations import LUResult as LUResult
from metalnb.linalg.factorizations import QRResult as QRResult
from metalnb.linalg.factorizations import SVDResult as SVDResult
from metalnb.linalg.factorizations import SlogdetResult as SlogdetResult
from numpy.typing import DTypeLike
from typing import Literal

__all__ = [
    "EighResult", "LUResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "cross", "det", "diagonal",
    "eigh", "eigvalsh", "inv", "lstsq", "lu", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace",
    "vecdot", "vector_norm",
]

@_op
def trace(
    x: _ArrayLike,
    /,
    offset: int = 0,
    *,
    dtype: DTypeLike | None = None,
    axis1: int = -2,
    axis2: int = -1,
) -> Array:
    """Return the sums of diagonals of matrices, by default of the last two axes.

    Parameters
    ----------
    x : Array
    offset : int
        Diagonals above the main one are positive.
    dtype : dtype, optional
        As for `metalnb.sum`.
    axis1, axis2 : int
        The matrices' rows and columns.
    """

def cholesky(x: _ArrayLike, /, *, upper: _bool = False) -> Array:
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

def cond(x: _ArrayLike, p: float | Literal['fro', 'nuc'] | None = None, /) -> Array:
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

def cross(x1: _ArrayLike, x2: _ArrayLike, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of three numbers along an axis.

    Raises
    ------
    ValueError
        If the axis has another length.
    """

def det(x: _ArrayLike, /) -> Array:
    """Return the determinants of square matrices (…, M, M)."""

def eigh(x: _ArrayLike, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of symmetric matrices (…, M, M), reading only the lower triangle.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the computation does not converge.
    """

def eigvalsh(x: _ArrayLike, /) -> Array:
    """Return the eigenvalues of symmetric matrices in increasing order; see `eigh`."""

def inv(x: _ArrayLike, /) -> Array:
    """Return the inverses of square matrices (…, M, M).

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix has no inverse.
    """

def lstsq(x1: _ArrayLike, x2: _ArrayLike, /, *, rcond: float | None = None) -> tuple[Array, Array, int, Array]:
    """Return the X that minimizes |x1 X - x2|, the squared residuals, and x1's rank and singular values.

    Parameters
    ----------
    x1 : Array (M, N)
    x2 : Array (M,) or (M, K)
    rcond : float, optional
        Singular values up to this fraction of the largest count as 0.
    """

def lu(x: _ArrayLike, /) -> LUResult:
    """Return a permutation, a lower and an upper triangle whose product is the matrix (…, M, N); by SciPy.

    Raises
    ------
    ImportError
        Without SciPy.
    """

def matrix_norm(x: _ArrayLike, /, *, keepdims: _bool = False, ord: float | Literal['fro', 'nuc'] = 'fro') -> Array:
    """Return norms of matrices (…, M, N).

    Parameters
    ----------
    x : Array
        Floating-point; integers are converted to float32.
    keepdims : bool
        Whether the axes stay, with length 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}
        The square root of the sum of squares; the sum of the singular values; the largest or least sum of absolute
        values of a column (1) or a row (inf); the largest or least singular value (2).

    Raises
    ------
    ValueError
        For another `ord`.
    """

def matrix_power(x: _ArrayLike, n: int, /) -> Array:
    """Return square matrices (…, M, M) multiplied n times, by squaring; for a negative n, their inverses.

    Raises
    ------
    numpy.linalg.LinAlgError
        If n is negative and a matrix has no inverse.
    """

def matrix_rank(x: _ArrayLike, /, *, rtol: float | _ArrayLike | None = None) -> Array:
    """Return how many singular values of matrices (…, M, N) are larger than rtol times the largest: int64."""

def norm(
    x: _ArrayLike,
    ord: float | Literal['fro', 'nuc'] | None = None,
    axis: _Axis | None = None,
    keepdims: _bool = False,
) -> Array:
    """Return norms as NumPy's function of this name does: of vectors along one axis, of matrices in two.

    Without an `ord` it is the square root of the sum of squares, by default over all axes.
    """

def pinv(x: _ArrayLike, /, *, rtol: float | _ArrayLike | None = None) -> Array:
    """Return the pseudoinverses of matrices (…, M, N); singular values up to rtol times the largest count as 0."""

def qr(x: _ArrayLike, /, *, mode: Literal['reduced', 'complete'] = 'reduced') -> QRResult:
    """Return orthonormal columns and an upper triangle whose product is the matrix (…, M, N).

    Parameters
    ----------
    x : Array
    mode : {"reduced", "complete"}
        min(M, N) columns, or M.
    """

def slogdet(x: _ArrayLike, /) -> SlogdetResult:
    """Return the signs of determinants of square matrices (…, M, M), and the logarithms of their absolute values."""

def solve(x1: _ArrayLike, x2: _ArrayLike, /) -> Array:
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

def svd(x: _ArrayLike, /, *, full_matrices: _bool = True) -> SVDResult:
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

def svdvals(x: _ArrayLike, /) -> Array:
    """Return the singular values of matrices (…, M, N) in decreasing order."""
