"""Other libraries with metalnb arrays: each test is a user's workflow; docs/coming-from.md lists what fails."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import metalnb as mnb

MISSING = "computes with another library: pip install -e .[test-all]"


@pytest.fixture
def pair() -> tuple[Any, Any]:
    """Return a NumPy array, and ours with the same numbers."""
    x = np.arange(24, dtype=np.float32).reshape(4, 6) ** 1.5
    return x, mnb.asarray(x, copy=True)


def test_xarray_keeps_our_arrays(pair: Any) -> None:
    """Our array stays inside through arithmetic, reductions that skip NaN, grouping and selection."""
    xr = pytest.importorskip("xarray", reason=MISSING)
    x, ours = pair
    x[1, 2] = ours[1, 2] = np.nan
    coords = {"t": np.arange(4), "g": ("t", list("abab"))}
    expected, got = (xr.DataArray(v, dims=("t", "s"), coords=coords) for v in (x, ours))
    for calculate in (
        lambda d: d.groupby("g").mean(), lambda d: (d + 1).mean("t"), lambda d: d.std("s"), lambda d: d.sel(t=[0, 2]),
        lambda d: d.where(d > 3).sum("s"), lambda d: d.fillna(0).cumsum("t"), lambda d: d.diff("t"),
        lambda d: d.median("t"), lambda d: d.quantile(0.25, "t"), lambda d: d.pad(t=1),
        lambda d: d.fillna(1).dot(d.fillna(2), dim="s"),
        lambda d: d.coarsen(s=2).mean(), lambda d: d.transpose("s", "t").clip(1, 50), lambda d: xr.concat([d, d], "t"),
    ):  # fmt: skip
        wanted, found = calculate(expected), calculate(got)
        assert isinstance(found.data, mnb.Array)
        assert found.dims == wanted.dims
        np.testing.assert_allclose(np.asarray(found.data), wanted.values, rtol=1e-5)


def test_dask_overlap_infers_the_dtype(pair: Any) -> None:
    da = pytest.importorskip("dask.array", reason=MISSING)
    x, ours = pair
    blocks = da.from_array(ours, chunks=(2, 6), asarray=False)
    same = da.from_array(x, chunks=(2, 6))
    for made, expected in (
        (blocks.map_overlap(lambda b: b * 2 - 1, depth=1, boundary="reflect"), 2 * x - 1),
        ((blocks + 1).sum(), (same + 1).sum().compute()),
        (blocks.mean(axis=0), x.mean(axis=0)),
    ):
        found = made.compute()
        assert isinstance(found, mnb.Array)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


def test_scikit_learn_accepts_our_arrays_like_numpys() -> None:
    pytest.importorskip("sklearn", reason=MISSING)
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LinearRegression

    x = np.random.default_rng(0).random((100, 5), dtype=np.float32)
    ours = mnb.asarray(x)
    np.testing.assert_allclose(PCA(2).fit_transform(ours), PCA(2).fit_transform(x), atol=1e-5)
    np.testing.assert_allclose(LinearRegression().fit(ours, ours[:, 0]).coef_, [1, 0, 0, 0, 0], atol=1e-5)


@pytest.mark.long  # Seconds, mostly imports; test_array_api.py tests the functions that it calls
def test_scikit_learn_computes_on_our_arrays_through_the_array_api() -> None:
    """SciPy reads the environment when it is imported, so this needs a separate process."""
    pytest.importorskip("sklearn", reason=MISSING)
    code = """
import numpy as np, sklearn, metalnb as mnb
from sklearn.preprocessing import MinMaxScaler, StandardScaler
x = np.random.default_rng(0).random((50, 3), dtype=np.float32)
with sklearn.config_context(array_api_dispatch=True):
    for scaler in (StandardScaler, MinMaxScaler):
        made = scaler().fit_transform(mnb.asarray(x))
        assert isinstance(made, mnb.Array), type(made)
        np.testing.assert_allclose(np.asarray(made), scaler().fit_transform(x), atol=1e-5)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_matplotlib_draws_our_arrays_values(pair: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    x, ours = pair
    figure, (axes, named) = plt.subplots(2)
    bars = [*axes.bar(mnb.arange(4), ours[:, 1]), *named.bar(list("abcd"), ours[:, 1], yerr=ours[:, 2])]
    assert [bar.get_height() for bar in bars] == [*x[:, 1], *x[:, 1]]
    (line,) = axes.plot(ours[0], ours[1])
    assert np.array_equal(line.get_ydata(), x[1])
    axes.scatter(ours[:, 0], ours[:, 1], c=ours[:, 2])
    axes.fill_between(ours[0], ours[1], ours[2])
    assert axes.hist(ours.reshape(-1), bins=5)[0].sum() == 24
    assert np.array_equal(axes.imshow(ours).get_array(), x)
    figure.canvas.draw()
    plt.close(figure)


def test_einops_rearranges_reduces_and_repeats_our_arrays(pair: Any) -> None:
    """The functions of `einops.array_api` work; `einops.rearrange` accepts only a fixed list of libraries, not ours."""
    einops = pytest.importorskip("einops", reason=MISSING)
    from einops.array_api import rearrange, reduce, repeat

    x, ours = pair
    for found, expected in (
        (rearrange(ours, "h (w c) -> c h w", c=2), einops.rearrange(x, "h (w c) -> c h w", c=2)),
        (reduce(ours, "h w -> w", "mean"), x.mean(0)),
        (repeat(ours, "h w -> h w k", k=2), einops.repeat(x, "h w -> h w k", k=2)),
    ):
        assert isinstance(found, mnb.Array)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_pandas_takes_our_arrays_as_columns_and_tables(pair: Any) -> None:
    """Columns and tables made of our arrays become NumPy's."""
    pd = pytest.importorskip("pandas", reason=MISSING)
    x, ours = pair
    frame = pd.DataFrame({"k": list("abab"), "v": ours[:, 0]})
    assert frame.groupby("k").mean()["v"].tolist() == [(x[0, 0] + x[2, 0]) / 2, (x[1, 0] + x[3, 0]) / 2]
    table = pd.DataFrame(ours, columns=list("abcdef"))
    assert np.array_equal(table.to_numpy(), x)
    assert mnb.asarray(table["b"]).tolist() == x[:, 1].tolist()
