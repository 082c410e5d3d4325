"""Linear algebra by the array API's extension: ``mnb.linalg.solve(a, b)``.

Input: matrices, or stacks of them, of any layout. Output: arrays on the same engine. Products and norms are ops of
the kernel library (``matrix_norms``). Factorizations use LAPACK on the host (``factorizations``). LAPACK reads the
array in place if the host can access the engine's memory, and otherwise reads a copy. It is NumPy's LAPACK, which
supports stacks and float32; only `lu` needs SciPy (``pip install 'metalnb[linalg]'``). float16 and bfloat16 are
computed in float32 and rounded once; integers are converted to float32.
"""

from ..library_kernels.linear_algebra.contractions import trace
from ..library_kernels.linear_algebra.matrix_products import matmul, outer, tensordot, vecdot
from ..library_kernels.norms.vector_norms import vector_norm
from ..library_kernels.shapes.array_views import diagonal, matrix_transpose
from .factorizations import (
    EighResult,
    LUResult,
    QRResult,
    SlogdetResult,
    SVDResult,
    cholesky,
    cond,
    det,
    eigh,
    eigvalsh,
    inv,
    lstsq,
    lu,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from .matrix_norms import cross, matrix_norm, matrix_power, norm

__all__ = [
    "EighResult", "LUResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "cross", "det", "diagonal",
    "eigh", "eigvalsh", "inv", "lstsq", "lu", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip
