"""The engines that check a kernel's accesses and can stop its loops; `cuda` is among them where there is a GPU."""

import pytest

import metalnb as mnb
from metalnb.engine.cuda.driver_api import driver_api

__all__ = ["ENGINES", "no_gpu"]


def no_gpu() -> str:
    """Return why there is no GPU to test on, or an empty string if there is one.

    The tests then run, and fail if the engine `cuda` cannot use it.
    """
    try:
        driver_api()
    except mnb.EngineUnavailable as error:
        return str(error)
    return ""


_REASON = no_gpu()
ENGINES = ("cpu", pytest.param("cuda", marks=pytest.mark.skipif(bool(_REASON), reason=_REASON)))
