"""Factors of matrix products, the kernels that should run for them, and a assert_product against NumPy."""

from typing import Any

import numpy as np

from metalnb.arrays.array import Array
from metalnb.arrays.promotion import as_dtype

Host = np.ndarray[Any, Any]
# Half a unit in the last place, and half the least number: the error of one rounding to a dtype.
ROUNDING = {"float32": (2.0**-24, 0.0), "float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 0.0)}


def random_factor(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Host:
    """Return random_factor of all sizes, with integers whose products wrap."""
    if dtype == "bool":
        return rng.random(shape) < 0.15
    if "int" in dtype:
        return np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape)
    return rng.normal(size=shape).astype(as_dtype(dtype))


def assert_product(got: Array, a: Host, b: Host) -> None:
    """Compare a product with NumPy's: integers exactly, floats within one rounding per term and one at the end.

    The bound holds for any order of summation: N. Higham, "Accuracy and Stability of Numerical Algorithms", 3.1.
    """
    host = got.read()
    assert got.dtype == a.dtype
    if a.dtype.name not in ROUNDING:
        expected = np.matmul(a, b)
        assert host.shape == expected.shape
        assert np.array_equal(host, expected), f"{np.count_nonzero(host != expected)} of {host.size} are wrong"
        return
    x, y = a.astype(np.float64), b.astype(np.float64)
    expected = np.matmul(x, y)
    relative, least = ROUNDING[a.dtype.name]
    terms = a.shape[-1] + 1
    allowed = terms * 2.0**-24 * 1.01 * np.matmul(np.abs(x), np.abs(y))
    if a.dtype.itemsize == 2:
        allowed += relative * 1.01 * np.abs(expected) + least
    assert host.shape == expected.shape
    wrong = ~(np.abs(host - expected) <= allowed)
    assert not wrong.any(), f"{np.count_nonzero(wrong)} of {host.size} are wrong, first at {np.argwhere(wrong)[0]}"


# A shape for each path: its description, its factors' shapes and layouts, and the kernels that should run.
CODE_PATHS = [
    ("rows in place", (37, 50), "plain", (50, 70), "plain", ["matmul"]),
    ("a column of one panel", (37, 50), "plain", (50, 5), "plain", ["matmul"]),
    ("packed columns", (37, 30), "plain", (30, 70), "transposed", ["pack_4", "matmul_panels"]),
    ("packed columns, rows apart", (37, 30), "transposed", (30, 70), "transposed", ["pack_4", "matmul"]),
    ("packed rows", (50, 700), "plain", (700, 300), "plain", ["pack_4_rows", "matmul_panels"]),
    ("packed rows, many blocks", (401, 97), "plain", (97, 3000), "plain", ["pack_4_rows", "matmul_panels"]),
    ("packed, in parts", (49, 8203), "plain", (8203, 45), "transposed", ["pack_4", "matmul_panels", "add_parts"]),
    ("packed columns of few rows", (5, 30), "plain", (30, 70), "transposed", ["pack_4", "matmul"]),
    ("packed, any strides", (37, 50), "reversed", (50, 70), "stepped", ["pack_4", "matmul"]),
    ("long and thin, in parts", (5, 20000), "plain", (20000, 10), "plain", ["matmul", "add_parts"]),
    ("few rows", (3, 90), "plain", (90, 700), "plain", ["matmul_few"]),
    ("few rows, in parts", (2, 5000), "transposed", (5000, 300), "plain", ["matmul_few", "add_parts"]),
    ("few rows of a large matrix", (45, 700), "stepped", (700, 300), "plain", ["matmul_few", "add_parts"]),
    ("along both", (37, 90), "plain", (90, 6), "transposed", ["dots"]),
    ("along both, in parts", (3, 9000), "plain", (9000, 3), "transposed", ["dots", "add_parts"]),
    ("matrix times vector", (70, 90), "plain", (90, 1), "plain", ["dots"]),
    ("columns times vector", (300, 90), "transposed", (90, 1), "stepped", ["matmul_few"]),
    ("vector times matrix", (1, 90), "plain", (90, 300), "plain", ["matmul_few"]),
    ("vector times columns", (1, 90), "plain", (90, 300), "transposed", ["dots"]),
]
