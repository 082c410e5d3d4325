"""The engines that check a kernel's accesses and can stop its loops; `cuda` is among them where there is a GPU."""

import pytest

import metalnb as mnb
from metalnb import engine as engines

__all__ = ["ENGINES", "no_gpu"]


def no_gpu() -> str:
    """Return why the engine `cuda` is not available, or an empty string if it is."""
    try:
        engines.named("cuda")
    except mnb.EngineUnavailable as error:
        return str(error)
    return ""


ENGINES = ("cpu", pytest.param("cuda", marks=pytest.mark.skipif(bool(no_gpu()), reason=no_gpu())))
